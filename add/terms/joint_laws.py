"""Forces on single coordinates of trees: springs, damping, dry friction, limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from add.equations.kinematics import Kinematics, Weights
from add.equations.term import Term
from add.kernels.caching import njit
from add.kernels.rotation import fill_jacobian, jacobian_coefficients, turn, turn_derivative
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class JointLaws(Term):
    """r = k (q - rest) + d v + tau tanh(v / v_s) on every coordinate: spring, damping, smoothed dry friction.

    Attributes
    ----------
    dof : (m,) coordinates, each once
    stiffness, rest, damping, friction, slip : (m,)
        Indices in theta of k [N/m, N m/rad], rest [m, rad], d [N s/m, N m s/rad], tau [N, N m], v_s [m/s, rad/s].
    """

    depends: ClassVar[str] = "qv"

    dof: IntArray
    stiffness: IntArray
    rest: IntArray
    damping: IntArray
    friction: IntArray
    slip: IntArray

    def pattern(self) -> tuple[IntArray, IntArray]:
        """Return the diagonal entries."""
        return self.dof, self.dof

    def _grip(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return tanh(v / v_s)."""
        return np.asarray(np.tanh(kin.v[self.dof] / theta[self.slip]))

    def residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add the forces."""
        out[self.dof] += theta[self.stiffness] * (kin.q[self.dof] - theta[self.rest])
        out[self.dof] += theta[self.damping] * kin.v[self.dof] + theta[self.friction] * self._grip(kin, theta)

    def jacobian(self, kin: Kinematics, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray) -> None:
        """Add the weighted derivatives."""
        slope = theta[self.friction] / theta[self.slip] * (1.0 - self._grip(kin, theta) ** 2)
        np.add.at(data, slots, weights.q * theta[self.stiffness] + weights.v * (theta[self.damping] + slope))

    def _slopes(self, kin: Kinematics, theta: FloatArray) -> tuple[tuple[IntArray, FloatArray], ...]:
        """Return the indices of the numbers and the derivatives of r by them."""
        q, v, grip = kin.q[self.dof], kin.v[self.dof], self._grip(kin, theta)
        by_slip = -theta[self.friction] * (1.0 - grip**2) * v / theta[self.slip] ** 2
        return (
            (self.stiffness, q - theta[self.rest]),
            (self.rest, -theta[self.stiffness]),
            (self.damping, v),
            (self.friction, grip),
            (self.slip, by_slip),
        )

    def parameter_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> None:
        """Add the cotangents of the numbers."""
        for index, slope in self._slopes(kin, theta):
            np.add.at(out, index, lam[self.dof] * slope)

    def parameter_jvp(self, kin: Kinematics, theta: FloatArray, theta_dot: FloatArray, out: FloatArray) -> None:
        """Add the tangent along ``theta_dot``."""
        for index, slope in self._slopes(kin, theta):
            out[self.dof] += slope * theta_dot[index]

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return k/2 (q - rest)^2 [J]."""
        return float(0.5 * theta[self.stiffness] @ (kin.q[self.dof] - theta[self.rest]) ** 2)


@njit(cache=True)
def _ball_damping(theta, first, damping, q, v, force, by_q, by_v):
    """Fill J^T J w_dot (m, 3) times d, and its derivatives (m, 3, 3) by w and by w_dot."""
    k, J, D = np.empty(6), np.empty((3, 3)), np.empty((3, 3))
    for i in range(first.size):
        w, rate, d = q[first[i] : first[i] + 3], v[first[i] : first[i] + 3], theta[damping[i]]
        omega = np.empty(3)
        jacobian_coefficients(w[0] * w[0] + w[1] * w[1] + w[2] * w[2], k)
        turn(1.0, w, rate, k, omega)
        turn(-1.0, w, omega, k, force[i])
        fill_jacobian(1.0, w, k, J)
        by_v[i] = d * (J.T @ J)
        turn_derivative(1.0, w, rate, k, D)
        by_q[i] = d * (J.T @ D)
        turn_derivative(-1.0, w, omega, k, D)
        by_q[i] += d * D


@final
@dataclass(frozen=True)
class BallDamping(Term):
    """r_w = d J_l(w)^T omega, omega = J_l(w) w_dot, on the rotation vectors of ball joints.

    Attributes
    ----------
    first : (m,) first coordinates
    damping : (m,) indices in theta [N m s/rad]
    """

    depends: ClassVar[str] = "qv"

    first: IntArray
    damping: IntArray

    def pattern(self) -> tuple[IntArray, IntArray]:
        """Return one 3 x 3 block a joint."""
        rows, cols = self.first[:, None, None] + np.indices((3, 3))[:, None]
        return rows.ravel(), cols.ravel()

    def _all(self, kin: Kinematics, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        m = self.first.size
        force, by_q, by_v = np.empty((m, 3)), np.empty((m, 3, 3)), np.empty((m, 3, 3))
        _ball_damping(theta, self.first, self.damping, kin.q, kin.v, force, by_q, by_v)
        return force, by_q, by_v

    @property
    def _dofs(self) -> IntArray:
        return np.asarray(self.first[:, None] + np.arange(3))

    def residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add the torques."""
        out[self._dofs] += theta[self.damping][:, None] * self._all(kin, theta)[0]

    def jacobian(self, kin: Kinematics, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray) -> None:
        """Add the weighted derivatives."""
        _, by_q, by_v = self._all(kin, theta)
        np.add.at(data, slots, (weights.q * by_q + weights.v * by_v).ravel())

    def parameter_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> None:
        """Add the cotangents of d."""
        np.add.at(out, self.damping, (lam[self._dofs] * self._all(kin, theta)[0]).sum(axis=1))

    def parameter_jvp(self, kin: Kinematics, theta: FloatArray, theta_dot: FloatArray, out: FloatArray) -> None:
        """Add the tangent along ``theta_dot``."""
        out[self._dofs] += theta_dot[self.damping][:, None] * self._all(kin, theta)[0]


@final
@dataclass(frozen=True)
class JointLimits(Term):
    """r = k (s(q - upper) - s(lower - q)) + d v s' beyond the limits of coordinates.

    s(e) = 0 for e < 0, e^2 / (2 delta) for e < delta, e - delta / 2 beyond: force and damping begin without a jump.

    Attributes
    ----------
    dof : (m,) coordinates
    lower, upper, stiffness, damping : (m,)
        Indices in theta [m, rad], [N/m, N m/rad], [N s/m, N m s/rad].
    onset : (m,) delta [m, rad]
    """

    depends: ClassVar[str] = "qv"

    dof: IntArray
    lower: IntArray
    upper: IntArray
    stiffness: IntArray
    damping: IntArray
    onset: FloatArray

    def pattern(self) -> tuple[IntArray, IntArray]:
        """Return the diagonal entries."""
        return self.dof, self.dof

    def _depths(self, kin: Kinematics, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return s of the upper minus that of the lower limit, the sum of their s', and of s'' with its sign."""
        total, slope, bend = (np.zeros(self.dof.size) for _ in range(3))
        for sign, limit in ((1.0, self.upper), (-1.0, self.lower)):
            e = sign * (kin.q[self.dof] - theta[limit])
            beyond, within = e >= self.onset, (e > 0.0) & (e < self.onset)
            total += sign * np.where(beyond, e - 0.5 * self.onset, np.where(within, e * e / (2.0 * self.onset), 0.0))
            slope += np.where(beyond, 1.0, np.where(within, e / self.onset, 0.0))
            bend += np.where(within, sign / self.onset, 0.0)
        return total, slope, bend

    def residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add the forces."""
        total, slope, _ = self._depths(kin, theta)
        out[self.dof] += theta[self.stiffness] * total + theta[self.damping] * kin.v[self.dof] * slope

    def jacobian(self, kin: Kinematics, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray) -> None:
        """Add the weighted derivatives."""
        _, slope, bend = self._depths(kin, theta)
        by_q = theta[self.stiffness] * slope + theta[self.damping] * kin.v[self.dof] * bend
        np.add.at(data, slots, weights.q * by_q + weights.v * theta[self.damping] * slope)

    def _slopes(self, kin: Kinematics, theta: FloatArray) -> tuple[tuple[IntArray, FloatArray], ...]:
        """Return the indices of the numbers and the derivatives of r by them."""
        total, slope, bend = self._depths(kin, theta)
        by_q = theta[self.stiffness] * slope + theta[self.damping] * kin.v[self.dof] * bend
        middle = 0.5 * (theta[self.lower] + theta[self.upper])
        upper = kin.q[self.dof] > middle
        return (
            (self.stiffness, total),
            (self.damping, kin.v[self.dof] * slope),
            (self.upper, np.where(upper, -by_q, 0.0)),
            (self.lower, np.where(upper, 0.0, -by_q)),
        )

    def parameter_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> None:
        """Add the cotangents of the numbers."""
        for index, slope in self._slopes(kin, theta):
            np.add.at(out, index, lam[self.dof] * slope)

    def parameter_jvp(self, kin: Kinematics, theta: FloatArray, theta_dot: FloatArray, out: FloatArray) -> None:
        """Add the tangent along ``theta_dot``."""
        for index, slope in self._slopes(kin, theta):
            out[self.dof] += slope * theta_dot[index]

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the energy of the stops [J]."""
        out = 0.0
        for sign, limit in ((1.0, self.upper), (-1.0, self.lower)):
            e, d = sign * (kin.q[self.dof] - theta[limit]), self.onset
            outer = 0.5 * (e - 0.5 * d) ** 2 + d * d / 24.0
            out += theta[self.stiffness] @ np.where(e >= d, outer, np.where(e > 0.0, e**3 / (6.0 * d), 0.0))
        return float(out)
