"""Dry friction of ball joints that holds; `add.terms.held_friction` has the law."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from add.equations.kinematics import Kinematics
from add.equations.term import Candidates, Decision
from add.kernels.rotation import fill_jacobian, jacobian_coefficients, turn_derivative
from add.terms.held_friction import RELEASED, STICKS, STIFFER, UP, HeldBranch, HeldFriction
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class HeldBalls(HeldFriction):
    """Dry friction that holds, of balls.

    Attributes
    ----------
    first : (m,) first coordinates of their rotation vectors
    friction, slip : (m,) indices in theta of tau [N m] and v_s [rad/s]
    """

    first: IntArray
    friction: IntArray
    slip: IntArray

    @property
    def dofs(self) -> IntArray:
        """The coordinates (m, 3) of the rotation vectors."""
        return np.asarray(self.first[:, None] + np.arange(3))

    def rates(self, kin: Kinematics) -> FloatArray:
        """Return omega (m, 3)."""
        return np.einsum("mij,mj->mi", self.turned(kin, np.arange(self.first.size))[0], kin.v[self.dofs])

    def turned(self, kin: Kinematics, which: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return J_l(w) and d(J_l w_dot)/dw (n, 3, 3)."""
        k, J, D = np.empty(6), np.empty((which.size, 3, 3)), np.empty((which.size, 3, 3))
        for i, start in enumerate(self.first[which]):
            w, rate = kin.q[start : start + 3], kin.v[start : start + 3]
            jacobian_coefficients(float(w @ w), k)
            fill_jacobian(1.0, w, k, J[i])
            turn_derivative(1.0, w, rate, k, D[i])
        return J, D

    def bent(self, kin: Kinematics, which: IntArray, torque: FloatArray) -> FloatArray:
        """Return d(J_l^T torque)/dw (n, 3, 3) at fixed torques."""
        k, D = np.empty(6), np.empty((which.size, 3, 3))
        for i, start in enumerate(self.first[which]):
            w = kin.q[start : start + 3]
            jacobian_coefficients(float(w @ w), k)
            turn_derivative(-1.0, w, torque[i], k, D[i])
        return D

    def on_branch(self, decision: Decision, candidates: Candidates | None = None) -> HeldBallsBranch:
        """Return the smooth term of this branch, without reactions."""
        return HeldBallsBranch(self, decision)


@final
@dataclass(frozen=True)
class HeldBallsBranch(HeldBranch):
    """The friction of balls that slip or creep: r_w = J_l^T g(omega).

    Attributes
    ----------
    whole : HeldBalls
    decision : (m,)
    """

    depends: ClassVar[str] = "qv"

    whole: HeldBalls
    decision: Decision

    def _turned(self, kin: Kinematics) -> tuple[FloatArray, FloatArray]:
        return self.whole.turned(kin, np.arange(self.whole.first.size))

    def _torques(self, omega: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return g per tau (m, 3), its slope by omega (m, 3, 3), and its slope by v_s (m, 3)."""
        decision = self.decision
        share = np.where(decision & RELEASED, STIFFER, 1.0) / theta[self.whole.slip]
        share[decision & (UP | STICKS) != 0] = 0.0
        size = np.sqrt((omega * omega).sum(axis=1))
        slips = (decision & UP != 0) & (size > 0.0)
        inverse = np.divide(1.0, size, out=np.zeros_like(size), where=slips)
        n = omega * inverse[:, None]
        slope = share[:, None, None] * np.eye(3)
        slope += inverse[:, None, None] * (np.eye(3) - n[:, :, None] * n[:, None])
        slow = share[:, None] * omega
        return n + slow, slope, -slow / theta[self.whole.slip][:, None]

    def forces(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return r (m, 3)."""
        J = self._turned(kin)[0]
        g = self._torques(np.einsum("mij,mj->mi", J, kin.v[self.whole.dofs]), theta)[0]
        return np.einsum("mji,mj->mi", J, theta[self.whole.friction][:, None] * g)

    def slopes(self, kin: Kinematics, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return dr/dq and dr/dv (m, 3, 3)."""
        (J, D), tau = self._turned(kin), theta[self.whole.friction]
        g, slope, _ = self._torques(np.einsum("mij,mj->mi", J, kin.v[self.whole.dofs]), theta)
        by_omega = J.transpose(0, 2, 1) @ (tau[:, None, None] * slope)
        return by_omega @ D + self.whole.bent(kin, np.arange(tau.size), tau[:, None] * g), by_omega @ J

    def by_numbers(self, kin: Kinematics, theta: FloatArray) -> tuple[tuple[IntArray, FloatArray], ...]:
        """Return the derivatives by tau and v_s."""
        J = self._turned(kin)[0]
        g, _, by_slip = self._torques(np.einsum("mij,mj->mi", J, kin.v[self.whole.dofs]), theta)
        by_slip *= theta[self.whole.friction][:, None]
        return tuple(
            (index, np.einsum("mji,mj->mi", J, own))
            for index, own in ((self.whole.friction, g), (self.whole.slip, by_slip))
        )
