"""Dry friction of ball joints that holds; `add.terms.held_friction` has the law."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from add.equations.kinematics import Kinematics, Weights
from add.equations.term import Candidates, Decision, StickConstraint, StickOperators, Term
from add.kernels.rotation import fill_jacobian, jacobian_coefficients, turn_derivative
from add.terms.held_friction import RELEASED, STICKS, STIFFER, UP, HeldFriction
from add.typing import FloatArray, IntArray


def _turned(first: IntArray, kin: Kinematics) -> tuple[FloatArray, FloatArray]:
    """Return J_l(w) and d(J_l w_dot)/dw (m, 3, 3) of rotation vectors at ``first``."""
    k, J, D = np.empty(6), np.empty((first.size, 3, 3)), np.empty((first.size, 3, 3))
    for i, start in enumerate(first):
        w, rate = kin.q[start : start + 3], kin.v[start : start + 3]
        jacobian_coefficients(float(w @ w), k)
        fill_jacobian(1.0, w, k, J[i])
        turn_derivative(1.0, w, rate, k, D[i])
    return J, D


def _bent(first: IntArray, kin: Kinematics, torque: FloatArray) -> FloatArray:
    """Return d(J_l^T torque)/dw (m, 3, 3) at fixed torques (m, 3)."""
    k, D = np.empty(6), np.empty((first.size, 3, 3))
    for i, start in enumerate(first):
        w = kin.q[start : start + 3]
        jacobian_coefficients(float(w @ w), k)
        turn_derivative(-1.0, w, torque[i], k, D[i])
    return D


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

    def rates(self, kin: Kinematics) -> FloatArray:
        """Return omega (m, 3)."""
        return np.einsum("mij,mj->mi", _turned(self.first, kin)[0], kin.v[self.first[:, None] + np.arange(3)])

    def on_branch(self, decision: Decision, candidates: Candidates | None = None) -> HeldBallsBranch:
        """Return the smooth term of this branch, without reactions."""
        return HeldBallsBranch(self.first, self.friction, self.slip, decision)

    def held(self, which: IntArray) -> HeldTurns:
        """Return the equations of some balls, by number."""
        return HeldTurns(self, which)


@final
@dataclass(frozen=True)
class HeldBallsBranch(Term):
    """The friction of balls that slip or creep: r_w = J_l^T g(omega).

    Attributes
    ----------
    first, friction, slip : those of `HeldBalls`
    decision : (m,)
    """

    depends: ClassVar[str] = "qv"

    first: IntArray
    friction: IntArray
    slip: IntArray
    decision: Decision

    def _torques(self, omega: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return g per tau (m, 3), its slope by omega (m, 3, 3), and its slope by v_s (m, 3)."""
        decision = self.decision
        share = np.where(decision & RELEASED, STIFFER, 1.0) / theta[self.slip]
        share[decision & (UP | STICKS) != 0] = 0.0
        size = np.sqrt((omega * omega).sum(axis=1))
        slips = (decision & UP != 0) & (size > 0.0)
        inverse = np.divide(1.0, size, out=np.zeros_like(size), where=slips)
        n = omega * inverse[:, None]
        slope = share[:, None, None] * np.eye(3)
        slope += inverse[:, None, None] * (np.eye(3) - n[:, :, None] * n[:, None])
        slow = share[:, None] * omega
        return n + slow, slope, -slow / theta[self.slip][:, None]

    def forces(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return r (m, 3)."""
        J = _turned(self.first, kin)[0]
        g = self._torques(np.einsum("mij,mj->mi", J, kin.v[self.dofs]), theta)[0]
        return np.einsum("mji,mj->mi", J, theta[self.friction][:, None] * g)

    def slopes(self, kin: Kinematics, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return dr/dq and dr/dv (m, 3, 3)."""
        (J, D), tau = _turned(self.first, kin), theta[self.friction]
        g, slope, _ = self._torques(np.einsum("mij,mj->mi", J, kin.v[self.dofs]), theta)
        by_omega = J.transpose(0, 2, 1) @ (tau[:, None, None] * slope)
        return by_omega @ D + _bent(self.first, kin, tau[:, None] * g), by_omega @ J

    def by_numbers(self, kin: Kinematics, theta: FloatArray) -> tuple[tuple[IntArray, FloatArray], ...]:
        """Return the derivatives by tau and v_s."""
        J = _turned(self.first, kin)[0]
        g, _, by_slip = self._torques(np.einsum("mij,mj->mi", J, kin.v[self.dofs]), theta)
        by_slip *= theta[self.friction][:, None]
        return tuple(
            (index, np.einsum("mji,mj->mi", J, own)) for index, own in ((self.friction, g), (self.slip, by_slip))
        )

    @property
    def dofs(self) -> IntArray:
        """Coordinates (m, 3)."""
        return np.asarray(self.first[:, None] + np.arange(3))

    def pattern(self) -> tuple[IntArray, IntArray]:
        """Return one 3 x 3 block a joint."""
        rows, cols = self.first[:, None, None] + np.indices((3, 3))[:, None]
        return rows.ravel(), cols.ravel()

    def residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add the forces."""
        out[self.dofs] += self.forces(kin, theta)

    def jacobian(self, kin: Kinematics, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray) -> None:
        """Add the weighted derivatives."""
        by_q, by_v = self.slopes(kin, theta)
        np.add.at(data, slots, (weights.q * by_q + weights.v * by_v).ravel())

    def parameter_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> None:
        """Add the cotangents of the numbers."""
        for index, slope in self.by_numbers(kin, theta):
            np.add.at(out, index, (lam[self.dofs] * slope).sum(axis=1))

    def parameter_jvp(self, kin: Kinematics, theta: FloatArray, theta_dot: FloatArray, out: FloatArray) -> None:
        """Add the tangent along ``theta_dot``."""
        for index, slope in self.by_numbers(kin, theta):
            out[self.dofs] += slope * theta_dot[index][:, None]


@final
@dataclass(frozen=True)
class HeldTurns(StickConstraint):
    """omega = 0 of the balls that stick; mu is minus the torque that holds [N m].

    Attributes
    ----------
    whole : HeldBalls
    which : (k,) its balls that stick
    """

    whole: HeldBalls
    which: IntArray

    @property
    def _first(self) -> IntArray:
        return np.asarray(self.whole.first[self.which])

    @property
    def n_rows(self) -> int:
        """Three a ball."""
        return 3 * self.which.size

    @property
    def dofs(self) -> IntArray:
        """The coordinates (k, 3) of each ball."""
        return np.asarray(self._first[:, None] + np.arange(3))

    def pattern(self, first: int) -> tuple[IntArray, IntArray]:
        """Return the blocks of the rows, of the columns of the reactions, and of the torques by w."""
        row, dof = first + 3 * np.arange(self.which.size)[:, None, None], self._first[:, None, None]
        down, across = np.indices((3, 3))[:, None]
        rows = np.concatenate([row + down, dof + down, dof + down]).ravel()
        return rows, np.concatenate([dof + across, row + across, dof + across]).ravel()

    def residual(self, kin: Kinematics, mu: FloatArray, theta: FloatArray, out: FloatArray, rows: FloatArray) -> None:
        """Add the reactions J^T mu and the angular velocities."""
        J = _turned(self._first, kin)[0]
        out[self.dofs] += np.einsum("mji,mj->mi", J, mu.reshape(-1, 3))
        rows += np.einsum("mij,mj->mi", J, kin.v[self.dofs]).ravel()

    def jacobian(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray
    ) -> None:
        """Add the weighted derivatives of both parts."""
        J, D = _turned(self._first, kin)
        bent = _bent(self._first, kin, mu.reshape(-1, 3))
        parts = weights.q * D + weights.v * J, weights.multiplier * J.transpose(0, 2, 1), weights.q * bent
        np.add.at(data, slots, np.concatenate(parts).ravel())

    def operators(self, kin: Kinematics, theta: FloatArray) -> StickOperators:
        """Return the linearised rows."""
        return StickOperators(*_turned(self._first, kin))

    @property
    def _blocks(self) -> IntArray:
        """Entries (k, 9) of the frozen term."""
        return np.asarray(9 * self.which[:, None] + np.arange(9))

    def add_geometry(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, factor: float, data: FloatArray, slots: IntArray
    ) -> None:
        """Add factor d(J^T mu)/dw."""
        bent = _bent(self._first, kin, mu.reshape(-1, 3))
        np.add.at(data, slots[self._blocks], factor * bent.reshape(-1, 9))

    def add_products(
        self, factor: float, left: FloatArray, right: FloatArray, data: FloatArray, slots: IntArray
    ) -> None:
        """Add factor left^T right."""
        np.add.at(data, slots[self._blocks], factor * (left.transpose(0, 2, 1) @ right).reshape(-1, 9))

    def limits(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return tau of each ball [N m]."""
        return np.asarray(theta[self.whole.friction[self.which]])

    def first_guess(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return the torques of the creeping law, at most tau."""
        omega = self.whole.rates(kin)[self.which]
        size = np.sqrt((omega * omega).sum(axis=1))
        share = self.limits(kin, theta) / np.maximum(size, theta[self.whole.slip[self.which]])
        return np.asarray((share[:, None] * omega).ravel())
