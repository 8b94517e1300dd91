"""Forces on lengths l = sum_j c_j q_j of trees: fixed tendons, and actuators with a gear."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, final

import numpy as np

from add.equations.kinematics import Kinematics, Weights
from add.equations.signals import Signal
from add.equations.term import UNIT, Term
from add.typing import FloatArray, IntArray


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

    def _evaluated(self, kin: Kinematics, theta: FloatArray) -> tuple[float, float, FloatArray, float, bool]:
        """Return the force before it is clipped, u, (1, l, l'), whether u is free, whether the force is."""
        acting, weights = self.signal.acting(kin.t)
        asked = float(weights @ theta[self.rows[acting]])
        u = float(np.clip(asked, *self.control))
        state = np.array([1.0, kin.q[self.dof], kin.v[self.dof]])
        f = float((theta[self.gain] * u + theta[self.bias]) @ state)
        return f, u, state, float(self.control[0] < asked < self.control[1]), self.force[0] < f < self.force[1]

    def residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add minus the force."""
        out[self.dof] -= np.clip(self._evaluated(kin, theta)[0], *self.force)

    def jacobian(self, kin: Kinematics, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray) -> None:
        """Add the weighted derivatives."""
        _, u, _, _, free = self._evaluated(kin, theta)
        if free:
            _, by_l, by_rate = theta[self.gain] * u + theta[self.bias]
            data[slots[0]] -= weights.q * by_l + weights.v * by_rate

    def parameter_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> None:
        """Add the cotangents of gains, biases and the signal's coefficients."""
        _, u, state, asked, free = self._evaluated(kin, theta)
        if free:
            acting, weights = self.signal.acting(kin.t)
            out[self.rows[acting]] -= lam[self.dof] * asked * (theta[self.gain] @ state) * weights
            np.subtract.at(out, self.gain, lam[self.dof] * u * state)
            np.subtract.at(out, self.bias, lam[self.dof] * state)

    def parameter_jvp(self, kin: Kinematics, theta: FloatArray, theta_dot: FloatArray, out: FloatArray) -> None:
        """Add the tangent along ``theta_dot``."""
        _, u, state, asked, free = self._evaluated(kin, theta)
        if free:
            acting, weights = self.signal.acting(kin.t)
            by_u = asked * float(theta[self.gain] @ state) * float(weights @ theta_dot[self.rows[acting]])
            out[self.dof] -= by_u + float((theta_dot[self.gain] * u + theta_dot[self.bias]) @ state)
