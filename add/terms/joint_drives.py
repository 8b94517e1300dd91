"""Actuators of joints: a force along one coordinate that follows a signal, with feedback and a limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from add.equations.kinematics import Kinematics, Weights
from add.equations.signals import Signal
from add.equations.term import Term
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class JointDrive(Term):
    """r = -clip(g u(t) + b_q q + b_v v, -limit, limit) on one coordinate.

    Torque: g = 1; position servo: g = k_p, b_q = -k_p, b_v = -k_d; velocity servo: g = k_d, b_v = -k_d. Beyond the
    limit the force is constant, and its derivatives by everything but the limit are zero.

    Attributes
    ----------
    dof : int
    signal : Signal
    rows : (n_rows,) indices in theta of the coefficients of u
    gains : (3,) indices in theta of g, b_q, b_v
    limit : float
        Largest force [N, N m]; infinity for none.
    """

    depends: ClassVar[str] = "qv"

    dof: int
    signal: Signal
    rows: IntArray
    gains: IntArray
    limit: float = np.inf

    def pattern(self) -> tuple[IntArray, IntArray]:
        """Return the diagonal entry."""
        own = np.array([self.dof])
        return own, own

    def _input(self, kin: Kinematics, theta: FloatArray) -> float:
        acting, weights = self.signal.acting(kin.t)
        return float(weights @ theta[self.rows[acting]])

    def force(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the force before it is clipped [N, N m]."""
        g, by_q, by_v = theta[self.gains]
        return float(g * self._input(kin, theta) + by_q * kin.q[self.dof] + by_v * kin.v[self.dof])

    def _clipped(self, kin: Kinematics, theta: FloatArray) -> bool:
        return abs(self.force(kin, theta)) >= self.limit

    def residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add minus the force."""
        out[self.dof] -= np.clip(self.force(kin, theta), -self.limit, self.limit)

    def jacobian(self, kin: Kinematics, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray) -> None:
        """Add the weighted derivatives."""
        if not self._clipped(kin, theta):
            _, by_q, by_v = theta[self.gains]
            data[slots[0]] -= weights.q * by_q + weights.v * by_v

    def parameter_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> None:
        """Add the cotangents of the gains and of the signal's coefficients."""
        if self._clipped(kin, theta):
            return
        acting, weights = self.signal.acting(kin.t)
        out[self.rows[acting]] -= lam[self.dof] * theta[self.gains[0]] * weights
        np.subtract.at(out, self.gains, lam[self.dof] * self._state(kin, theta))

    def parameter_jvp(self, kin: Kinematics, theta: FloatArray, theta_dot: FloatArray, out: FloatArray) -> None:
        """Add the tangent along ``theta_dot``."""
        if self._clipped(kin, theta):
            return
        acting, weights = self.signal.acting(kin.t)
        out[self.dof] -= theta[self.gains[0]] * (weights @ theta_dot[self.rows[acting]])
        out[self.dof] -= theta_dot[self.gains] @ self._state(kin, theta)

    def _state(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        return np.array([self._input(kin, theta), kin.q[self.dof], kin.v[self.dof]])
