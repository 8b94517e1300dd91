"""Forces on lengths of trees: of coordinates, of sums l = sum_j c_j q_j (fixed tendons, a gear), and of paths."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, final

import numpy as np
from numba import types

from add.equations.family import Family, Kind
from add.equations.family_term import FamilyTerm
from add.equations.kinematics import Kinematics
from add.equations.signals import Signal
from add.kernels.arena import FAMILY, FIELD, Floats, Floats2, Ints, Ints2, add_entry, row_of, unpacker, window
from add.kernels.borrowed import borrowed
from add.kernels.by_address import Callee, address, by_address
from add.kernels.caching import njit
from add.kernels.joint_laws import COLUMNS, axis_laws
from add.kernels.muscles import length_drive
from add.kernels.paths import path_length
from add.typing import AnyArray, FloatArray, IntArray


class _Laws(NamedTuple):
    """The entries of C, pairs of entries of the same length, and the arrays of an `AxisLaw` over the lengths."""

    length: Ints
    dof: Ints
    factor: Ints
    left: Ints
    right: Ints
    code: Ints
    numbers: Ints2
    constants: Floats


class _Drive(NamedTuple):
    """The entries of C, pairs of them, and the arrays of an actuator of the one length."""

    length: Ints
    dof: Ints
    factor: Ints
    left: Ints
    right: Ints
    law: Ints
    rows: Ints
    numbers: Ints
    bounds: Floats


class _LawsOfPaths(NamedTuple):
    """Number of the path and row of every coordinate, pairs of them, the laws, and the paths.

    ``places``: the first row of each point; ``begin``: where points, segments and pairs of each path begin.
    """

    length: Ints
    dof: Ints
    left: Ints
    right: Ints
    code: Ints
    numbers: Ints2
    constants: Floats
    places: Ints
    begin: Ints2
    segments: Ints2
    sizes: Floats2
    measure: Ints


class _DriveOfPath(NamedTuple):
    """The same with the arrays of an actuator of the one path."""

    length: Ints
    dof: Ints
    left: Ints
    right: Ints
    law: Ints
    rows: Ints
    numbers: Ints
    bounds: Floats
    places: Ints
    begin: Ints2
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
def _sums(own, m, at):
    """Return lengths and their rates (2, m), the slopes of the lengths by entry, and none of theirs."""
    state, g = np.zeros((2, m)), np.empty(own.length.size)
    for e in range(own.length.size):
        g[e] = at.theta[own.factor[e]] if own.factor[e] >= 0 else 1.0
        state[0, own.length[e]] += g[e] * at.q[own.dof[e]]
        state[1, own.length[e]] += g[e] * at.v[own.dof[e]]
    return state, g, (), ()


@njit(**FAMILY)
def _paths(own, m, at):
    """Return lengths and rates (2, m), slopes of the lengths by entry, their rates, and their slopes by pair."""
    state, g, h = np.zeros((2, m)), np.empty(own.length.size), np.zeros(own.length.size)
    bent = np.empty(own.left.size)
    for k in range(m):
        a, b, pair = own.begin[k, 0], own.begin[k + 1, 0], own.begin[k, 2]
        n = 3 * (b - a)
        square = borrowed(bent, pair, (n, n))
        part = slice(own.begin[k, 1], own.begin[k + 1, 1])
        path = own.places[a:b], own.segments[part], own.sizes[part]
        state[0, k] = _path_length(own.measure[0], (at.q, *path, g[3 * a : 3 * b], square))
        for i in range(n):
            v = at.v[own.dof[3 * a + i]]
            state[1, k] += g[3 * a + i] * v
            for j in range(n):
                h[3 * a + j] += square[j, i] * v
    return state, g, h, bent


def length_kind(name: str, arrays: type, measured: Any, *, driven: bool, curved: bool, long: bool = True) -> Kind:
    """Return the compiled functions of laws, or of an actuator, over what is measured.

    Parameters
    ----------
    name, arrays : of the families
    measured : (arrays, m, instant) -> lengths and rates (2, m), slopes g of the rates by rate and entry, and where
        ``curved`` the slopes of the rates by entry and of g by pair
    driven : whether they are of one actuator
    curved : whether g changes
    long : whether g has the slopes of the lengths, too; else these are constant
    """
    unpacked = unpacker(arrays)

    @njit(**FAMILY)
    def found(arena, k, at):
        own = unpacked(arena, arena.families[k, FIELD])
        m = 1 if driven else own.numbers.shape[0]
        state, g, h, bent = measured(own, m, at)
        if driven:
            first, weights = window(arena, k, at)
            asked, slopes = 0.0, np.empty((1, 4 + own.numbers.size))
            for j in range(weights.size):
                asked += weights[j] * at.theta[own.rows[first + j]]
            length_drive(own.law[0], state[0, 0], state[1, 0], asked, at.theta, own.numbers, own.bounds, slopes[0])
            if not long:
                slopes[0, 1] = 0.0
        else:
            slopes = np.empty((m, COLUMNS))
            axis_laws(own.code[0], np.arange(m), own.numbers, own.constants, state[0], state[1], at.theta, slopes)
        return own, slopes, g, h, bent

    @njit(**FAMILY)
    def forces(arena, k, at, replay, rows, out):
        own, slopes, g, _, _ = found(arena, k, at)
        for e in range(own.length.size):
            out[own.dof[e]] += g[e] * slopes[own.length[e], 0]
        return rows

    @njit(**FAMILY)
    def jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
        if weight_q != 0.0 or weight_v != 0.0:
            own, slopes, g, h, bent = found(arena, k, at)
            for i in range(own.left.size):
                a, b, l = own.left[i], own.right[i], own.length[own.left[i]]
                value = g[a] * g[b] * (weight_q * slopes[l, 1] + weight_v * slopes[l, 2])
                if curved:
                    value += weight_q * (slopes[l, 2] * g[a] * h[b] + slopes[l, 0] * bent[i])
                data[slots[i]] += value

    @njit(**FAMILY)
    def parameters(arena, k, at, rows, forward, along, out):
        own, slopes, g, _, _ = found(arena, k, at)
        for e in range(own.length.size):
            l, i, c = own.length[e], own.dof[e], g[e]
            if not curved and own.factor[e] >= 0:
                add_entry(forward, i, own.factor[e], slopes[l, 0], along, out)
                slope = slopes[l, 1] * at.q[i] + slopes[l, 2] * at.v[i]
                for b in range(own.length.size):
                    if own.length[b] == l:
                        add_entry(forward, own.dof[b], own.factor[e], g[b] * slope, along, out)
            if driven:
                first, weights = window(arena, k, at)
                for j in range(weights.size):
                    add_entry(forward, i, own.rows[first + j], c * slopes[l, 3] * weights[j], along, out)
                for j in range(own.numbers.size):
                    add_entry(forward, i, own.numbers[j], c * slopes[l, 4 + j], along, out)
            else:
                for j in range(own.numbers.shape[1]):
                    add_entry(forward, i, own.numbers[l, j], c * slopes[l, 3 + j], along, out)

    @njit(**FAMILY)
    def inputs(arena, k, at, rows, indptr, derivatives):
        own, slopes, g, _, _ = found(arena, k, at)
        first, weights = window(arena, k, at)
        for j in range(weights.size):
            to = row_of(own.rows[first + j], indptr, derivatives)
            if to >= 0:
                for e in range(own.length.size):
                    derivatives.values[to, own.dof[e]] += g[e] * slopes[0, 3] * weights[j]

    return Kind(name, arrays, forces, parameters, jacobian, inputs if driven else None)


LAWS = length_kind("laws_of_lengths", _Laws, _sums, driven=False, curved=False)
DRIVE = length_kind("drive_of_length", _Drive, _sums, driven=True, curved=False)
LAWS_OF_PATHS = length_kind("laws_of_paths", _LawsOfPaths, _paths, driven=False, curved=True)
DRIVE_OF_PATH = length_kind("drive_of_path", _DriveOfPath, _paths, driven=True, curved=True)


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
        each = np.arange(self.dof.size)
        entries = _Laws(each, self.dof, np.full(self.dof.size, -1), each, each, *self.arrays)
        return Family(LAWS, entries, (self.dof, self.dof))


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
    law: AxisLaw | LengthActuator,
    kinds: tuple[tuple[Kind, type], tuple[Kind, type]],
    entries: tuple[AnyArray, ...],
    paths: tuple[AnyArray, ...],
    pattern: tuple[IntArray, IntArray],
) -> Family:
    """Return the family of a law over lengths."""
    (of_laws, laws), (of_drive, drive) = kinds
    if isinstance(law, AxisLaw):
        return Family(of_laws, laws(*entries, *law.arrays, *paths), pattern)
    return Family(of_drive, drive(*entries, *law.arrays, *paths), pattern, law.signal, followers=1)


@final
@dataclass(frozen=True)
class OnLengths(FamilyTerm):
    """Forces on lengths, each by itself, as forces on coordinates: r = C^T r_l(C q, C q').

    Attributes
    ----------
    law : AxisLaw or LengthActuator
        Over m lengths in place of coordinates, or of the only one.
    length, dof, factor : (e,)
        Entries of C: number of the length, coordinate, index in theta of c, -1 for one.
    m : int
    """

    depends: ClassVar[str] = "qv"

    law: AxisLaw | LengthActuator
    length: IntArray
    dof: IntArray
    factor: IntArray
    m: int

    def family(self) -> Family:
        """Return the entries of the coordinates of each length."""
        left, right = (np.asarray(part, dtype=np.int64) for part in np.nonzero(self.length[:, None] == self.length))
        entries = self.length, self.dof, self.factor, left, right
        return _family(self.law, ((LAWS, _Laws), (DRIVE, _Drive)), entries, (), (self.dof[left], self.dof[right]))

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
        sizes = np.array([[path.places.size, len(path.segments), (3 * path.places.size) ** 2] for path in self.paths])
        begin = np.concatenate([np.zeros((1, 3), dtype=np.int64), np.cumsum(sizes, axis=0)])
        dof = np.concatenate(self._dofs)
        length = np.repeat(np.arange(len(self.paths)), 3 * sizes[:, 0])
        blocks = [np.arange(3 * a, 3 * b) for a, b in zip(begin[:-1, 0], begin[1:, 0], strict=True)]
        left = np.concatenate([np.repeat(block, block.size) for block in blocks])
        right = np.concatenate([np.tile(block, block.size) for block in blocks])
        places, segments, weights = (np.concatenate(part) for part in zip(*self.paths, strict=True))
        kinds = (LAWS_OF_PATHS, _LawsOfPaths), (DRIVE_OF_PATH, _DriveOfPath)
        entries = length, dof, left, right
        of_paths = places, begin, segments, weights, np.array([address(PATH_LENGTH)])
        return _family(self.law, kinds, entries, of_paths, (dof[left], dof[right]))

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
