"""Forces on single coordinates of trees: springs, damping, dry friction, limits."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from add.equations.kinematics import Kinematics, Weights
from add.equations.term import Term
from add.kernels.caching import njit
from add.kernels.rotation import fill_jacobian, jacobian_coefficients, turn, turn_derivative, turn_second_derivative
from add.typing import FloatArray, IntArray


class _OneByOne(Term):
    """Forces on coordinates each by itself: diagonal derivatives."""

    depends: ClassVar[str] = "qv"

    dof: IntArray

    @abstractmethod
    def forces(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return r (m,)."""

    @abstractmethod
    def slopes(self, kin: Kinematics, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return dr/dq and dr/dv (m,)."""

    @abstractmethod
    def by_numbers(self, kin: Kinematics, theta: FloatArray) -> tuple[tuple[IntArray, FloatArray], ...]:
        """Return the indices (m,) of the numbers in theta and dr by them (m,)."""

    @final
    def pattern(self) -> tuple[IntArray, IntArray]:
        """Return the diagonal entries."""
        return self.dof, self.dof

    @final
    def residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add the forces."""
        out[self.dof] += self.forces(kin, theta)

    @final
    def jacobian(self, kin: Kinematics, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray) -> None:
        """Add the weighted derivatives."""
        by_q, by_v = self.slopes(kin, theta)
        np.add.at(data, slots, weights.q * by_q + weights.v * by_v)

    @final
    def parameter_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> None:
        """Add the cotangents of the numbers."""
        for index, slope in self.by_numbers(kin, theta):
            np.add.at(out, index, lam[self.dof] * slope)

    @final
    def parameter_jvp(self, kin: Kinematics, theta: FloatArray, theta_dot: FloatArray, out: FloatArray) -> None:
        """Add the tangent along ``theta_dot``."""
        for index, slope in self.by_numbers(kin, theta):
            out[self.dof] += slope * theta_dot[index]


@final
@dataclass(frozen=True)
class JointSprings(_OneByOne):
    """r = k (q - rest) on every coordinate.

    Attributes
    ----------
    dof : (m,) coordinates, each once
    stiffness, rest : (m,)
        Indices in theta of k [N/m, N m/rad] and rest [m, rad].
    """

    depends: ClassVar[str] = "q"

    dof: IntArray
    stiffness: IntArray
    rest: IntArray

    def _stretch(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        return np.asarray(kin.q[self.dof] - theta[self.rest])

    def forces(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return r (m,)."""
        return np.asarray(theta[self.stiffness] * self._stretch(kin, theta))

    def slopes(self, kin: Kinematics, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return dr/dq and dr/dv (m,)."""
        return theta[self.stiffness], np.zeros(self.dof.size)

    def by_numbers(self, kin: Kinematics, theta: FloatArray) -> tuple[tuple[IntArray, FloatArray], ...]:
        """Return the derivatives by k and rest."""
        return (self.stiffness, self._stretch(kin, theta)), (self.rest, -theta[self.stiffness])

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return k/2 (q - rest)^2 [J]."""
        return float(0.5 * theta[self.stiffness] @ self._stretch(kin, theta) ** 2)


@final
@dataclass(frozen=True)
class JointResistance(_OneByOne):
    """r = d v + tau tanh(v / v_s) on every coordinate: damping, and dry friction without a jump.

    Attributes
    ----------
    dof : (m,) coordinates, each once
    damping, friction, slip : (m,)
        Indices in theta of d [N s/m, N m s/rad], tau [N, N m], v_s [m/s, rad/s].
    """

    depends: ClassVar[str] = "v"

    dof: IntArray
    damping: IntArray
    friction: IntArray
    slip: IntArray

    def _grip(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return tanh(v / v_s)."""
        return np.asarray(np.tanh(kin.v[self.dof] / theta[self.slip]))

    def forces(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return r (m,)."""
        return np.asarray(theta[self.damping] * kin.v[self.dof] + theta[self.friction] * self._grip(kin, theta))

    def slopes(self, kin: Kinematics, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return dr/dq and dr/dv (m,)."""
        by_grip = theta[self.friction] / theta[self.slip] * (1.0 - self._grip(kin, theta) ** 2)
        return np.zeros(self.dof.size), theta[self.damping] + by_grip

    def by_numbers(self, kin: Kinematics, theta: FloatArray) -> tuple[tuple[IntArray, FloatArray], ...]:
        """Return the derivatives by d, tau and v_s."""
        v, grip = kin.v[self.dof], self._grip(kin, theta)
        by_slip = -theta[self.friction] * (1.0 - grip**2) * v / theta[self.slip] ** 2
        return (self.damping, v), (self.friction, grip), (self.slip, by_slip)


@njit(cache=True)
def _ball_forces(theta, first, damping, armature, q, v, a, forces):
    """Fill J^T omega and J^T omega_dot of each ball (m, 2, 3)."""
    k, D, omega = np.empty(6), np.empty((3, 3)), np.empty(3)
    for i in range(first.size):
        part = slice(first[i], first[i] + 3)
        w, rate = q[part], v[part]
        jacobian_coefficients(w[0] * w[0] + w[1] * w[1] + w[2] * w[2], k)
        turn(1.0, w, rate, k, omega)
        turn(-1.0, w, omega, k, forces[i, 0])
        turn_derivative(1.0, w, rate, k, D)
        turn(1.0, w, a[part], k, omega)
        omega += D @ rate
        turn(-1.0, w, omega, k, forces[i, 1])


@njit(cache=True)
def _ball_derivatives(theta, first, damping, armature, q, v, a, weights, out):
    """Fill the weighted derivatives (m, 3, 3) of J^T (d omega + I omega_dot)."""
    k, J, D, E = np.empty(6), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    unit, by_q, by_v = np.zeros(3), np.empty((3, 3)), np.empty((3, 3))
    w_q, w_v, w_a = weights
    for i in range(first.size):
        part = slice(first[i], first[i] + 3)
        w, rate, d, inertia = q[part], v[part], theta[damping[i]], theta[armature[i]]
        jacobian_coefficients(w[0] * w[0] + w[1] * w[1] + w[2] * w[2], k)
        fill_jacobian(1.0, w, k, J)
        turn_derivative(1.0, w, rate, k, D)
        turn_second_derivative(1.0, w, rate, rate, k, E)
        total = d * (J @ rate) + inertia * (J @ a[part] + D @ rate)
        by_q[:] = d * D + inertia * E
        by_v[:] = d * J + inertia * D
        turn_derivative(1.0, w, a[part], k, E)
        by_q += inertia * E
        for c in range(3):
            unit[:] = 0.0
            unit[c] = 1.0
            turn_derivative(1.0, w, unit, k, E)
            by_v[:, c] += inertia * (E @ rate)
        out[i] = J.T @ (w_q * by_q + w_v * by_v + w_a * inertia * J)
        turn_derivative(-1.0, w, total, k, D)
        out[i] += w_q * D


@final
@dataclass(frozen=True)
class BallLaws(Term):
    """r_w = J_l(w)^T (d omega + I omega_dot), omega = J_l(w) w_dot: damping and armature of ball joints.

    Attributes
    ----------
    first : (m,) first coordinates of their rotation vectors
    damping, armature : (m,) indices in theta of d [N m s/rad] and I [kg m^2]
    """

    first: IntArray
    damping: IntArray
    armature: IntArray

    def pattern(self) -> tuple[IntArray, IntArray]:
        """Return one 3 x 3 block a joint."""
        rows, cols = self.first[:, None, None] + np.indices((3, 3))[:, None]
        return rows.ravel(), cols.ravel()

    def _forces(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return the torques per damping and per armature (m, 2, 3)."""
        out = np.empty((self.first.size, 2, 3))
        _ball_forces(theta, self.first, self.damping, self.armature, kin.q, kin.v, kin.a, out)
        return out

    @property
    def _dofs(self) -> IntArray:
        return np.asarray(self.first[:, None] + np.arange(3))

    def _sum(self, numbers: FloatArray, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add the torques with d and I from ``numbers`` (n_theta,)."""
        factors = np.stack([numbers[self.damping], numbers[self.armature]], axis=1)
        out[self._dofs] += (factors[:, :, None] * self._forces(kin, theta)).sum(axis=1)

    def residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add the torques."""
        self._sum(theta, kin, theta, out)

    def jacobian(self, kin: Kinematics, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray) -> None:
        """Add the weighted derivatives."""
        out = np.empty((self.first.size, 3, 3))
        factors = (float(weights.q), float(weights.v), float(weights.a))
        _ball_derivatives(theta, self.first, self.damping, self.armature, kin.q, kin.v, kin.a, factors, out)
        np.add.at(data, slots, out.ravel())

    def parameter_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> None:
        """Add the cotangents of d and I."""
        work = (lam[self._dofs][:, None] * self._forces(kin, theta)).sum(axis=2)
        np.add.at(out, self.damping, work[:, 0])
        np.add.at(out, self.armature, work[:, 1])

    def parameter_jvp(self, kin: Kinematics, theta: FloatArray, theta_dot: FloatArray, out: FloatArray) -> None:
        """Add the tangent along ``theta_dot``."""
        self._sum(theta_dot, kin, theta, out)

    def kinetic_energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the sum of I omega^2 / 2 [J]."""
        work = (kin.v[self._dofs] * self._forces(kin, theta)[:, 0]).sum(axis=1)
        return float(0.5 * theta[self.armature] @ work)


@final
@dataclass(frozen=True)
class JointLimits(_OneByOne):
    """r = k (s(q - upper) - s(lower - q)) + d v s' beyond the limits of coordinates.

    s(e) = 0 for e < 0, e^2 / (2 delta) for e < delta, e - delta / 2 beyond: force and damping begin without a jump.

    Attributes
    ----------
    dof : (m,) coordinates
    lower, upper, stiffness, damping : (m,)
        Indices in theta [m, rad], [N/m, N m/rad], [N s/m, N m s/rad].
    onset : (m,) delta [m, rad]
    hard : bool
        Whether a stepper with hard contact is to take its place by stops that give not at all.
    """

    dof: IntArray
    lower: IntArray
    upper: IntArray
    stiffness: IntArray
    damping: IntArray
    onset: FloatArray
    hard: bool = False

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

    def forces(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return r (m,)."""
        total, slope, _ = self._depths(kin, theta)
        return np.asarray(theta[self.stiffness] * total + theta[self.damping] * kin.v[self.dof] * slope)

    def slopes(self, kin: Kinematics, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return dr/dq and dr/dv (m,)."""
        _, slope, bend = self._depths(kin, theta)
        by_q = theta[self.stiffness] * slope + theta[self.damping] * kin.v[self.dof] * bend
        return np.asarray(by_q), np.asarray(theta[self.damping] * slope)

    def by_numbers(self, kin: Kinematics, theta: FloatArray) -> tuple[tuple[IntArray, FloatArray], ...]:
        """Return the derivatives by stiffness, damping and limits."""
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

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the energy of the stops [J]; hard ones store none."""
        out = 0.0
        if self.hard:
            return out
        for sign, limit in ((1.0, self.upper), (-1.0, self.lower)):
            e, d = sign * (kin.q[self.dof] - theta[limit]), self.onset
            outer = 0.5 * (e - 0.5 * d) ** 2 + d * d / 24.0
            out += float(theta[self.stiffness] @ np.where(e >= d, outer, np.where(e > 0.0, e**3 / (6.0 * d), 0.0)))
        return out
