"""Forces on lengths of trees: of coordinates, of sums l = sum_j c_j q_j (fixed tendons, a gear), and of paths."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, final

import numpy as np
from numba import types

from add.equations.family import Family, Kind, by_signal, dense_blocks
from add.equations.family_term import FamilyTerm
from add.equations.kinematics import Kinematics
from add.equations.signals import Signal
from add.kernels.arena import FAMILY, FIELD, Floats, Floats2, Ints, Ints2, add_entry, unpacker, window
from add.kernels.borrowed import borrowed
from add.kernels.by_address import Callee, address, by_address
from add.kernels.caching import njit
from add.kernels.joint_laws import axis_law
from add.kernels.muscles import NUMBERS, length_drive
from add.kernels.paths import path_length
from add.terms.pressure import signal_value
from add.typing import AnyArray, FloatArray, IntArray

#: Most columns of the slopes of a law.
_COLUMNS = 4 + max(NUMBERS)


def length_kind(name: str, arrays: type, measure: Any, law: Any, *, driven: bool, curved: bool = True) -> Kind:
    """Return the compiled functions of laws over what is measured, each by itself.

    Parameters
    ----------
    name, arrays : of the families, which have `begin` (m + 1,), where the rows `dof` of each length begin
    measure : (arrays, number, instant, g, h, bent, wanted) -> a length and its rate
        Fills its slopes g (n,), and where ``curved`` those of the rate h and of g, bent (n n,), if ``wanted``.
    law : (arrays, number, instant, asked, length, rate, room, out) -> a weight of the force
        Fills the force, its slopes by length and rate, if ``driven`` by what the signal asks for, and by its numbers.
    driven : whether one signal drives them, which have their numbers in common
    curved : whether g changes; else it is of factors, that may be numbers
    """
    unpacked = unpacker(arrays)

    @njit(**FAMILY)
    def opened(arena, k, at):
        """Return the arrays, what the signal asks for, and room for g, h, bent, numbers and slopes of any length."""
        own, most, asked = unpacked(arena, arena.families[k, FIELD]), 0, 0.0
        for l in range(own.begin.size - 1):
            most = max(most, own.begin[l + 1] - own.begin[l])
        if driven:
            asked = signal_value(arena, k, at, own.rows)
        room = np.empty(most), np.empty(most), np.empty(most * most), np.zeros(_COLUMNS), np.empty(_COLUMNS)
        return own, asked, room

    @njit(**FAMILY)
    def fill(own, l, at, asked, room, wanted):
        g, h, bent, p, slopes = room
        length, rate = measure(own, l, at, g, h, bent, wanted)
        return law(own, l, at, asked, length, rate, p, slopes)

    @njit(**FAMILY)
    def forces(arena, k, at, replay, rows, out):
        own, asked, room = opened(arena, k, at)
        g, _, _, _, slopes = room
        for l in range(own.begin.size - 1):
            force = fill(own, l, at, asked, room, False) * slopes[0]
            for e in range(own.begin[l], own.begin[l + 1]):
                out[own.dof[e]] += force * g[e - own.begin[l]]
        return rows

    @njit(**FAMILY)
    def jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
        if weight_q != 0.0 or weight_v != 0.0:
            own, asked, room = opened(arena, k, at)
            g, h, bent, _, slopes = room
            place = 0
            for l in range(own.begin.size - 1):
                n, weight = own.begin[l + 1] - own.begin[l], fill(own, l, at, asked, room, True)
                along = weight * (weight_q * slopes[1] + weight_v * slopes[2])
                turned, across = weight * weight_q * slopes[2], weight * weight_q * slopes[0]
                for r in range(n):
                    for c in range(n):
                        if curved:
                            data[slots[place]] += g[r] * (along * g[c] + turned * h[c]) + across * bent[r * n + c]
                        else:
                            data[slots[place]] += g[r] * along * g[c]
                        place += 1

    @njit(**FAMILY)
    def parameters(arena, k, at, rows, forward, along, out):
        own, asked, room = opened(arena, k, at)
        g, _, _, _, slopes = room
        for l in range(own.begin.size - 1):
            weight, first, stop = fill(own, l, at, asked, room, False), own.begin[l], own.begin[l + 1]
            for e in range(first, stop):
                i, c = own.dof[e], weight * g[e - first]
                if not curved and own.factor[e] >= 0:
                    add_entry(forward, i, own.factor[e], slopes[0], along, out)
                    slope = slopes[1] * at.q[i] + slopes[2] * at.v[i]
                    for b in range(first, stop):
                        add_entry(forward, own.dof[b], own.factor[e], g[b - first] * slope, along, out)
                if driven:
                    row, weights = window(arena, k, at)
                    for j in range(weights.size):
                        add_entry(forward, i, own.rows[row + j], c * slopes[3] * weights[j], along, out)
                    for j in range(own.numbers.size):
                        add_entry(forward, i, own.numbers[j], c * slopes[4 + j], along, out)
                else:
                    for j in range(own.numbers.shape[1]):
                        add_entry(forward, i, own.numbers[l, j], c * slopes[3 + j], along, out)

    return Kind(name, arrays, forces, parameters, jacobian, by_signal(arrays, parameters) if driven else None)


def length_blocks(begin: IntArray, dof: IntArray) -> tuple[IntArray, IntArray]:
    """Return the pattern of a family of lengths: a dense block of each."""
    blocks = [dense_blocks(dof[None, a:b]) for a, b in pairwise(begin)]
    return np.concatenate([rows for rows, _ in blocks]), np.concatenate([cols for _, cols in blocks])


class _Laws(NamedTuple):
    """Arrays of laws of m lengths: where the entries of each begin (m + 1,), those of C, and those of the law."""

    begin: Ints
    dof: Ints
    factor: Ints
    code: Ints
    numbers: Ints2
    constants: Floats


class _Drive(NamedTuple):
    """Arrays of a drive of one length: the entries of C, and those of the actuator."""

    begin: Ints
    dof: Ints
    factor: Ints
    law: Ints
    rows: Ints
    numbers: Ints
    bounds: Floats


class _LawsOfPaths(NamedTuple):
    """Arrays of laws of paths: where the coordinates and segments of each begin; these, the laws, and the paths."""

    begin: Ints
    dof: Ints
    code: Ints
    numbers: Ints2
    constants: Floats
    places: Ints
    segment: Ints
    segments: Ints2
    sizes: Floats2
    measure: Ints


class _DriveOfPath(NamedTuple):
    """The same with the arrays of an actuator of the one path."""

    begin: Ints
    dof: Ints
    law: Ints
    rows: Ints
    numbers: Ints
    bounds: Floats
    places: Ints
    segment: Ints
    segments: Ints2
    sizes: Floats2
    measure: Ints


PATH_LENGTH = Callee(
    path_length,
    (
        types.float64[::1], types.int64[::1], types.int64[:, ::1], types.float64[:, ::1], types.float64[::1],
        types.float64[:, ::1],
    ),
    types.float64,
)  # fmt: skip
_path_length = by_address("path's length", lambda: PATH_LENGTH)


@njit(**FAMILY)
def _sum(own, l, at, g, h, bent, wanted):
    """Return a sum of coordinates and its rate."""
    length, rate, first = 0.0, 0.0, own.begin[l]
    for e in range(own.begin[l + 1] - first):
        g[e] = at.theta[own.factor[first + e]] if own.factor[first + e] >= 0 else 1.0
        length += g[e] * at.q[own.dof[first + e]]
        rate += g[e] * at.v[own.dof[first + e]]
    return length, rate


@njit(**FAMILY)
def _path(own, l, at, g, h, bent, wanted):
    """Return the length of a path and its rate."""
    first, n = own.begin[l], own.begin[l + 1] - own.begin[l]
    square, part = borrowed(bent, 0, (n, n)), slice(own.segment[l], own.segment[l + 1])
    path = own.places[first // 3 : (first + n) // 3], own.segments[part], own.sizes[part]
    length, rate = _path_length(own.measure[0], (at.q, *path, g[:n], square)), 0.0
    h[:n] = 0.0
    for i in range(n):
        v = at.v[own.dof[first + i]]
        rate += g[i] * v
        for j in range(n):
            h[j] += square[j, i] * v
    return length, rate


@njit(**FAMILY)
def _axis(own, l, at, asked, length, rate, p, out):
    """Fill the slopes of an `AxisLaw`."""
    for j in range(own.numbers.shape[1]):
        p[j] = at.theta[own.numbers[l, j]]
    axis_law(own.code[0], length, rate, p, own.constants[l], out)
    return 1.0


@njit(**FAMILY)
def _actuator(own, l, at, asked, length, rate, p, out):
    """Fill the slopes of an actuator."""
    length_drive(own.law[0], length, rate, asked, at.theta, own.numbers, own.bounds, out)
    return 1.0


LAWS = length_kind("laws_of_lengths", _Laws, _sum, _axis, driven=False, curved=False)
DRIVE = length_kind("drive_of_length", _Drive, _sum, _actuator, driven=True, curved=False)
LAWS_OF_PATHS = length_kind("laws_of_paths", _LawsOfPaths, _path, _axis, driven=False)
DRIVE_OF_PATH = length_kind("drive_of_path", _DriveOfPath, _path, _actuator, driven=True)


class AxisLaw(FamilyTerm):
    """Forces on coordinates each by itself, with diagonal derivatives; `add.kernels.joint_laws` has the equations."""

    depends: ClassVar[str] = "qv"

    #: Of `add.kernels.joint_laws.axis_law`.
    code: ClassVar[int]

    dof: IntArray

    @property
    @abstractmethod
    def numbers(self) -> IntArray:
        """Indices in theta (m, k) of the numbers of each coordinate."""

    @property
    def constants(self) -> FloatArray:
        """Numbers (m,) that are no parameters."""
        return np.zeros(self.dof.size)

    @final
    @cached_property
    def arrays(self) -> tuple[IntArray, IntArray, FloatArray]:
        """The arrays of its family, gathered once."""
        return np.array([self.code]), np.ascontiguousarray(self.numbers), self.constants

    @final
    def family(self) -> Family:
        """Every coordinate is a length."""
        entries = np.arange(self.dof.size + 1), self.dof, np.full(self.dof.size, -1)
        return Family(LAWS, _Laws(*entries, *self.arrays), (self.dof, self.dof))


@final
@dataclass(frozen=True)
class LengthActuator:
    """A force on one length, affine in it and its rate or a Hill muscle's: `add.kernels.muscles`.

    Beyond a limit what is clipped is constant.

    Attributes
    ----------
    law : int
        `AFFINE` or `MUSCLE`.
    signal : Signal
    rows : (n_rows,) indices in theta of the coefficients of u
    numbers : (n_p,) indices in theta of the numbers of the law
    control, force : (2,)
        Lowest and highest u and force [N, N m]; infinite for none.
    """

    law: int
    signal: Signal
    rows: IntArray
    numbers: IntArray
    control: tuple[float, float] = (-np.inf, np.inf)
    force: tuple[float, float] = (-np.inf, np.inf)

    @property
    def arrays(self) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
        """The arrays of its family."""
        return np.array([self.law]), self.rows, self.numbers, np.array([*self.control, *self.force])

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return 0: it stores none."""
        return 0.0


def _family(
    law: AxisLaw | LengthActuator, of_laws: Kind, of_drive: Kind, entries: tuple[AnyArray, ...], *paths: AnyArray
) -> Family:
    """Return the family of a law over lengths."""
    arrays, pattern = (*entries, *law.arrays, *paths), length_blocks(*entries[:2])
    if isinstance(law, AxisLaw):
        return Family(of_laws, of_laws.arrays(*arrays), pattern)
    return Family(of_drive, of_drive.arrays(*arrays), pattern, law.signal, followers=1)


@final
@dataclass(frozen=True)
class OnLengths(FamilyTerm):
    """Forces on lengths, each by itself, as forces on coordinates: r = C^T r_l(C q, C q').

    Attributes
    ----------
    law : AxisLaw or LengthActuator
        Over m lengths in place of coordinates, or of the only one.
    length, dof, factor : (e,)
        Entries of C, in the order of lengths: number of the length, coordinate, index in theta of c, -1 for one.
    m : int
    """

    depends: ClassVar[str] = "qv"

    law: AxisLaw | LengthActuator
    length: IntArray
    dof: IntArray
    factor: IntArray
    m: int

    def family(self) -> Family:
        """Return a dense block for each length."""
        entries = np.searchsorted(self.length, np.arange(self.m + 1)), self.dof, self.factor
        return _family(self.law, LAWS, DRIVE, entries)

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the energy of the law [J]."""
        c = np.where(self.factor >= 0, theta[self.factor], 1.0)
        l, rate = (np.bincount(self.length, c * x[self.dof], self.m).astype(float) for x in (kin.q, kin.v))
        return self.law.energy(Kinematics(l, rate, np.zeros(l.size), kin.t, kin.step), theta)


class Path(NamedTuple):
    """A path: first rows of its points (m,), segments (k, 6) and sizes (k, 2) as `add.kernels.paths` has them."""

    places: IntArray
    segments: IntArray
    sizes: FloatArray


@final
@dataclass(frozen=True)
class OnPaths(FamilyTerm):
    """Forces on lengths of paths through points, each by itself: r = (dl/dX)^T r_l(l, l').

    Attributes
    ----------
    law : AxisLaw or LengthActuator
        Over the lengths in place of coordinates, or of the only one.
    paths : tuple of Path
        Of each length, over rows of X.
    """

    depends: ClassVar[str] = "qv"

    law: AxisLaw | LengthActuator
    paths: tuple[Path, ...]

    def family(self) -> Family:
        """Return a dense block for each path."""
        begin, segment = np.cumsum(
            [(0, 0), *((3 * path.places.size, len(path.segments)) for path in self.paths)], axis=0
        ).T
        places, segments, weights = (np.concatenate(part) for part in zip(*self.paths, strict=True))
        of_paths = places, segment, segments, weights, np.array([address(PATH_LENGTH)])
        return _family(self.law, LAWS_OF_PATHS, DRIVE_OF_PATH, (begin, np.concatenate(self._dofs)), *of_paths)

    @property
    def _dofs(self) -> list[IntArray]:
        return [(path.places[:, None] + np.arange(3)).ravel() for path in self.paths]

    def lengths(self, x: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
        """Return the lengths (m,) at rows x, and the slopes of each by the coordinates of its points."""
        lengths, slopes = np.empty(len(self.paths)), []
        for k, path in enumerate(self.paths):
            slopes.append(np.empty(3 * path.places.size))
            lengths[k] = path_length(x, *path, slopes[k], np.empty((slopes[k].size, slopes[k].size)))
        return lengths, slopes

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the energy of the law [J]."""
        l, slopes = self.lengths(kin.q)
        rate = np.array([g @ kin.v[dof] for g, dof in zip(slopes, self._dofs, strict=True)])
        return self.law.energy(Kinematics(l, rate, np.zeros(l.size), kin.t, kin.step), theta)
