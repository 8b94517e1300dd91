"""Forces on lengths l = sum_j c_j q_j of trees: fixed tendons, and actuators with a gear."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from add.equations.family import Family, Kind
from add.equations.family_term import FamilyTerm
from add.equations.kinematics import Kinematics
from add.equations.signals import Signal
from add.equations.term import NO_INPUTS
from add.kernels.arena import FAMILY, FIELD, Floats, Ints, Ints2, add_entry, row_of, unpacker, window
from add.kernels.caching import njit
from add.kernels.joint_laws import COLUMNS, axis_laws
from add.terms.joint_laws import AxisLaw
from add.typing import FloatArray, IntArray

#: Columns of the slopes of an actuator: r, its slopes by l, by l', by the signal, by three gains and three biases.
AFFINE = 10


@njit(cache=True)
def affine_drive(length, rate, asked, gain, bias, control, force, out):
    """Fill ``out`` (10,) with r = -clip((g0 + g1 l + g2 l') u + b0 + b1 l + b2 l'), u = clip(asked), and its slopes.

    ``control`` and ``force`` (2,) are the lowest and highest u and force; beyond them what is clipped is constant.
    """
    out[:] = 0.0
    u = min(max(asked, control[0]), control[1])
    state = (1.0, length, rate)
    by_u, f = 0.0, 0.0
    for i in range(3):
        by_u += gain[i] * state[i]
        f += (gain[i] * u + bias[i]) * state[i]
    if not force[0] < f < force[1]:
        out[0] = -min(max(f, force[0]), force[1])
        return
    out[0], out[1], out[2] = -f, -(gain[1] * u + bias[1]), -(gain[2] * u + bias[2])
    if control[0] < asked < control[1]:
        out[3] = -by_u
    for i in range(3):
        out[4 + i], out[7 + i] = -u * state[i], -state[i]


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
    """The entries of C, pairs of them, and the arrays of an `AffineDrive` of the one length."""

    length: Ints
    dof: Ints
    factor: Ints
    left: Ints
    right: Ints
    rows: Ints
    numbers: Ints
    bounds: Floats


_laws, _drive = unpacker(_Laws), unpacker(_Drive)


@njit(**FAMILY)
def _lengths(own, m, at):
    """Return lengths and their rates (m,)."""
    l, rate = np.zeros(m), np.zeros(m)
    for e in range(own.length.size):
        c = at.theta[own.factor[e]]
        l[own.length[e]] += c * at.q[own.dof[e]]
        rate[own.length[e]] += c * at.v[own.dof[e]]
    return l, rate


@njit(**FAMILY)
def _of_laws(arena, k, at):
    """Return the arrays of a family of laws, and the slopes of each length."""
    own = _laws(arena, arena.families[k, FIELD])
    m = own.numbers.shape[0]
    l, rate = _lengths(own, m, at)
    slopes = np.empty((m, COLUMNS))
    axis_laws(own.code[0], np.arange(m), own.numbers, own.constants, l, rate, at.theta, slopes)
    return own, slopes


@njit(**FAMILY)
def _of_drive(arena, k, at):
    """Return the arrays of an actuator, and its slopes (1, 10)."""
    own = _drive(arena, arena.families[k, FIELD])
    first, weights = window(arena, k, at)
    l, rate = _lengths(own, 1, at)
    asked, gain, bias, slopes = 0.0, np.empty(3), np.empty(3), np.empty((1, AFFINE))
    for j in range(weights.size):
        asked += weights[j] * at.theta[own.rows[first + j]]
    for i in range(3):
        gain[i], bias[i] = at.theta[own.numbers[i]], at.theta[own.numbers[3 + i]]
    affine_drive(l[0], rate[0], asked, gain, bias, own.bounds[:2], own.bounds[2:], slopes[0])
    return own, slopes


def _kind(name: str, arrays: type, found: Any, driven: bool) -> Kind:
    """Return the compiled functions of laws, or of an actuator."""

    @njit(**FAMILY)
    def forces(arena, k, at, replay, rows, out):
        own, slopes = found(arena, k, at)
        for e in range(own.length.size):
            out[own.dof[e]] += at.theta[own.factor[e]] * slopes[own.length[e], 0]
        return rows

    @njit(**FAMILY)
    def jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
        if weight_q != 0.0 or weight_v != 0.0:
            own, slopes = found(arena, k, at)
            for i in range(own.left.size):
                a, b, l = own.left[i], own.right[i], own.length[own.left[i]]
                slope = weight_q * slopes[l, 1] + weight_v * slopes[l, 2]
                data[slots[i]] += at.theta[own.factor[a]] * at.theta[own.factor[b]] * slope

    @njit(**FAMILY)
    def parameters(arena, k, at, rows, forward, along, out):
        own, slopes = found(arena, k, at)
        for e in range(own.length.size):
            l, i, c = own.length[e], own.dof[e], at.theta[own.factor[e]]
            add_entry(forward, i, own.factor[e], slopes[l, 0], along, out)
            slope = slopes[l, 1] * at.q[i] + slopes[l, 2] * at.v[i]
            for b in range(own.length.size):
                if own.length[b] == l:
                    pushed = at.theta[own.factor[b]]
                    add_entry(forward, own.dof[b], own.factor[e], pushed * slope, along, out)
            if driven:
                first, weights = window(arena, k, at)
                for j in range(weights.size):
                    add_entry(forward, i, own.rows[first + j], c * slopes[l, 3] * weights[j], along, out)
                for j in range(6):
                    add_entry(forward, i, own.numbers[j], c * slopes[l, 4 + j], along, out)
            else:
                for j in range(own.numbers.shape[1]):
                    add_entry(forward, i, own.numbers[l, j], c * slopes[l, 3 + j], along, out)

    @njit(**FAMILY)
    def inputs(arena, k, at, rows, indptr, derivatives):
        own, slopes = found(arena, k, at)
        first, weights = window(arena, k, at)
        for j in range(weights.size):
            to = row_of(own.rows[first + j], indptr, derivatives)
            if to >= 0:
                for e in range(own.length.size):
                    derivatives.values[to, own.dof[e]] += at.theta[own.factor[e]] * slopes[0, 3] * weights[j]

    return Kind(name, arrays, forces, parameters, jacobian, inputs if driven else None)


LAWS, DRIVE = _kind("laws_of_lengths", _Laws, _of_laws, False), _kind("drive_of_length", _Drive, _of_drive, True)


@final
@dataclass(frozen=True)
class AffineDrive:
    """r = -clip((g0 + g1 l + g2 l') u + b0 + b1 l + b2 l') of one length, u = clip(u(t)): actuators of MuJoCo.

    Beyond a limit what is clipped is constant.

    Attributes
    ----------
    signal : Signal
    rows : (n_rows,) indices in theta of the coefficients of u
    gain, bias : (3,) indices in theta of g and b
    control, force : (2,)
        Lowest and highest u and force [N, N m]; infinite for none.
    """

    signal: Signal
    rows: IntArray
    gain: IntArray
    bias: IntArray
    control: tuple[float, float] = (-np.inf, np.inf)
    force: tuple[float, float] = (-np.inf, np.inf)


@final
@dataclass(frozen=True)
class OnLengths(FamilyTerm):
    """Forces on lengths, each by itself, as forces on coordinates: r = C^T r_l(C q, C q').

    Attributes
    ----------
    law : AxisLaw or AffineDrive
        Over m lengths in place of coordinates, or of the only one.
    length, dof, factor : (e,)
        Entries of C: number of the length, coordinate, index in theta of c.
    m : int
    """

    depends: ClassVar[str] = "qv"

    law: AxisLaw | AffineDrive
    length: IntArray
    dof: IntArray
    factor: IntArray
    m: int

    @property
    def inputs(self) -> IntArray:
        """See `Term.inputs`."""
        return self.law.rows if isinstance(self.law, AffineDrive) else NO_INPUTS

    def family(self) -> Family:
        """Return the entries of the coordinates of each length."""
        left, right = (np.asarray(part, dtype=np.int64) for part in np.nonzero(self.length[:, None] == self.length))
        entries, pattern = (self.length, self.dof, self.factor, left, right), (self.dof[left], self.dof[right])
        law = self.law
        if isinstance(law, AxisLaw):
            return Family(LAWS, _Laws(*entries, np.array([law.code]), *law.arrays), pattern)
        numbers, bounds = np.concatenate([law.gain, law.bias]), np.array([*law.control, *law.force])
        return Family(DRIVE, _Drive(*entries, law.rows, numbers, bounds), pattern, law.signal, followers=1)

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the energy of the law [J]."""
        if isinstance(self.law, AffineDrive):
            return 0.0
        c = theta[self.factor]
        l, rate = (np.bincount(self.length, c * x[self.dof], self.m).astype(float) for x in (kin.q, kin.v))
        return self.law.energy(Kinematics(l, rate, np.zeros(self.m), kin.t, kin.step), theta)
