"""Forces on lengths l = sum_j c_j q_j of trees: fixed tendons, and actuators with a gear."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from add.equations.family import Family, Kind, NotCompiled
from add.equations.kinematics import Kinematics, Weights
from add.equations.signals import Signal
from add.equations.term import UNIT, Term
from add.kernels.arena import FAMILY, FIELD, Floats, Ints, Ints2, row_of, unpacker, window
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
    def parameters(arena, k, at, rows, lam, out):
        own, slopes = found(arena, k, at)
        pushed = np.zeros(slopes.shape[0])
        for e in range(own.length.size):
            pushed[own.length[e]] += at.theta[own.factor[e]] * lam[own.dof[e]]
        for e in range(own.length.size):
            l, i = own.length[e], own.dof[e]
            slope = slopes[l, 1] * at.q[i] + slopes[l, 2] * at.v[i]
            out[own.factor[e]] += lam[i] * slopes[l, 0] + pushed[l] * slope
        if driven:
            first, weights = window(arena, k, at)
            for j in range(weights.size):
                out[own.rows[first + j]] += pushed[0] * slopes[0, 3] * weights[j]
            for j in range(6):
                out[own.numbers[j]] += pushed[0] * slopes[0, 4 + j]
        else:
            for l in range(own.numbers.shape[0]):
                for j in range(own.numbers.shape[1]):
                    out[own.numbers[l, j]] += pushed[l] * slopes[l, 3 + j]

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
class OnLengths(Term):
    """Forces on lengths, each by itself, as forces on coordinates: r = C^T r_l(C q, C q').

    Attributes
    ----------
    law : Term
        Over m lengths in place of coordinates, with a diagonal matrix.
    length, dof, factor : (e,)
        Entries of C: number of the length, coordinate, index in theta of c.
    m : int
    """

    depends: ClassVar[str] = "qv"

    law: Term
    length: IntArray
    dof: IntArray
    factor: IntArray
    m: int
    _pairs: tuple[IntArray, IntArray] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        same = self.length[:, None] == self.length
        left, right = np.nonzero(same)
        object.__setattr__(self, "_pairs", (left.astype(np.int64), right.astype(np.int64)))

    def pattern(self) -> tuple[IntArray, IntArray]:
        """Return the entries of the coordinates of each length."""
        left, right = self._pairs
        return self.dof[left], self.dof[right]

    @property
    def inputs(self) -> IntArray:
        """Inputs of the law."""
        return self.law.inputs

    def family(self) -> Family:
        """See `Term.family`."""
        entries, law, pattern = (self.length, self.dof, self.factor, *self._pairs), self.law, self.pattern()
        if isinstance(law, AxisLaw):
            return Family(LAWS, _Laws(*entries, np.array([law.code]), *law.arrays), pattern)
        if isinstance(law, AffineDrive):
            numbers, bounds = np.concatenate([law.gain, law.bias]), np.array([*law.control, *law.force])
            return Family(DRIVE, _Drive(*entries, law.rows, numbers, bounds), pattern, law.signal, followers=1)
        raise NotCompiled(f"{type(law).__name__} on lengths")

    def _sums(self, factors: FloatArray, values: FloatArray) -> FloatArray:
        """Return C times values (n,), as (m,)."""
        return np.asarray(np.bincount(self.length, factors * values[self.dof], self.m))

    def _at(self, kin: Kinematics, theta: FloatArray) -> Kinematics:
        c = theta[self.factor]
        return Kinematics(self._sums(c, kin.q), self._sums(c, kin.v), np.zeros(self.m), kin.t, kin.step)

    def _forces(self, at: Kinematics, theta: FloatArray) -> FloatArray:
        out = np.zeros(self.m)
        self.law.residual(at, theta, out)
        return out

    def _slopes(self, at: Kinematics, theta: FloatArray, weights: Weights) -> FloatArray:
        rows, _ = self.law.pattern()
        values = np.zeros(rows.size)
        self.law.jacobian(at, theta, weights, values, np.arange(rows.size))
        return np.asarray(np.bincount(rows, values, self.m))

    def residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add C^T r_l."""
        r = self._forces(self._at(kin, theta), theta)
        np.add.at(out, self.dof, theta[self.factor] * r[self.length])

    def jacobian(self, kin: Kinematics, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray) -> None:
        """Add C^T (dr_l/dl) C."""
        left, right = self._pairs
        slopes, c = self._slopes(self._at(kin, theta), theta, weights), theta[self.factor]
        np.add.at(data, slots, c[left] * c[right] * slopes[self.length[left]])

    def _by_factors(self, kin: Kinematics, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return r_l of each entry, and d(r_l)/dc of each entry's own length (e,)."""
        at = self._at(kin, theta)
        by_q, by_v = (self._slopes(at, theta, unit)[self.length] for _, unit in UNIT[:2])
        return self._forces(at, theta)[self.length], by_q * kin.q[self.dof] + by_v * kin.v[self.dof]

    def parameter_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> None:
        """Add the cotangents of the law's numbers and of the factors."""
        pushed = self._sums(theta[self.factor], lam)
        self.law.parameter_vjp(self._at(kin, theta), theta, pushed, out)
        force, slope = self._by_factors(kin, theta)
        np.add.at(out, self.factor, lam[self.dof] * force + pushed[self.length] * slope)

    def parameter_jvp(self, kin: Kinematics, theta: FloatArray, theta_dot: FloatArray, out: FloatArray) -> None:
        """Add the tangent along ``theta_dot``."""
        r_dot = np.zeros(self.m)
        self.law.parameter_jvp(self._at(kin, theta), theta, theta_dot, r_dot)
        force, slope = self._by_factors(kin, theta)
        along = theta_dot[self.factor]
        r_dot += np.bincount(self.length, slope * along, self.m)
        np.add.at(out, self.dof, theta[self.factor] * r_dot[self.length] + along * force)

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the energy of the law [J]."""
        return self.law.energy(self._at(kin, theta), theta)


@final
@dataclass(frozen=True)
class AffineDrive(Term):
    """r = -clip((g0 + g1 l + g2 l') u + b0 + b1 l + b2 l') of one length, u = clip(u(t)): actuators of MuJoCo.

    Beyond a limit what is clipped is constant.

    Attributes
    ----------
    dof : int
        The length.
    signal : Signal
    rows : (n_rows,) indices in theta of the coefficients of u
    gain, bias : (3,) indices in theta of g and b
    control, force : (2,)
        Lowest and highest u and force [N, N m]; infinite for none.
    """

    depends: ClassVar[str] = "qv"

    dof: int
    signal: Signal
    rows: IntArray
    gain: IntArray
    bias: IntArray
    control: tuple[float, float] = (-np.inf, np.inf)
    force: tuple[float, float] = (-np.inf, np.inf)

    @property
    def inputs(self) -> IntArray:
        """See `Term.inputs`."""
        return self.rows.ravel()

    def pattern(self) -> tuple[IntArray, IntArray]:
        """Return the diagonal entry."""
        own = np.array([self.dof])
        return own, own

    def _slopes(self, kin: Kinematics, theta: FloatArray) -> tuple[Any, FloatArray, FloatArray]:
        """Return the rows of the signal that act, their weights, and the slopes (10,)."""
        acting, weights = self.signal.acting(kin.t)
        asked, out = float(weights @ theta[self.rows[acting]]), np.empty(AFFINE)
        bounds = np.array(self.control, dtype=float), np.array(self.force, dtype=float)
        affine_drive(kin.q[self.dof], kin.v[self.dof], asked, theta[self.gain], theta[self.bias], *bounds, out)
        return acting, weights, out

    def residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add minus the force."""
        out[self.dof] += self._slopes(kin, theta)[2][0]

    def jacobian(self, kin: Kinematics, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray) -> None:
        """Add the weighted derivatives."""
        slopes = self._slopes(kin, theta)[2]
        data[slots[0]] += weights.q * slopes[1] + weights.v * slopes[2]

    def parameter_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> None:
        """Add the cotangents of gains, biases and the signal's coefficients."""
        acting, weights, slopes = self._slopes(kin, theta)
        out[self.rows[acting]] += lam[self.dof] * slopes[3] * weights
        np.add.at(out, self.gain, lam[self.dof] * slopes[4:7])
        np.add.at(out, self.bias, lam[self.dof] * slopes[7:])

    def parameter_jvp(self, kin: Kinematics, theta: FloatArray, theta_dot: FloatArray, out: FloatArray) -> None:
        """Add the tangent along ``theta_dot``."""
        acting, weights, slopes = self._slopes(kin, theta)
        by_numbers = theta_dot[self.gain] @ slopes[4:7] + theta_dot[self.bias] @ slopes[7:]
        out[self.dof] += slopes[3] * (weights @ theta_dot[self.rows[acting]]) + by_numbers
