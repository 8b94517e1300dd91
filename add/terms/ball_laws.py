"""Forces on ball joints of trees, each on three coordinates: dry friction, a limit of the angle."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from add.equations.kinematics import Kinematics, Weights
from add.equations.term import Term
from add.kernels.ball_friction import ball_friction
from add.typing import FloatArray, IntArray


class RotationLaw(Term):
    """Forces on rotation vectors, each by itself: blocks of derivatives."""

    depends: ClassVar[str] = "qv"

    first: IntArray

    @abstractmethod
    def forces(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return r (m, 3)."""

    @abstractmethod
    def slopes(self, kin: Kinematics, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return dr/dq and dr/dv (m, 3, 3)."""

    @abstractmethod
    def by_numbers(self, kin: Kinematics, theta: FloatArray) -> tuple[tuple[IntArray, FloatArray], ...]:
        """Return the indices (m,) of the numbers in theta and dr by them (m, 3)."""

    @property
    def dofs(self) -> IntArray:
        """Coordinates (m, 3)."""
        return np.asarray(self.first[:, None] + np.arange(3))

    @final
    def pattern(self) -> tuple[IntArray, IntArray]:
        """Return one 3 x 3 block a joint."""
        rows, cols = self.first[:, None, None] + np.indices((3, 3))[:, None]
        return rows.ravel(), cols.ravel()

    @final
    def residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add the forces."""
        out[self.dofs] += self.forces(kin, theta)

    @final
    def jacobian(self, kin: Kinematics, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray) -> None:
        """Add the weighted derivatives."""
        by_q, by_v = self.slopes(kin, theta)
        np.add.at(data, slots, (weights.q * by_q + weights.v * by_v).ravel())

    @final
    def parameter_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> None:
        """Add the cotangents of the numbers."""
        for index, slope in self.by_numbers(kin, theta):
            np.add.at(out, index, (lam[self.dofs] * slope).sum(axis=1))

    @final
    def parameter_jvp(self, kin: Kinematics, theta: FloatArray, theta_dot: FloatArray, out: FloatArray) -> None:
        """Add the tangent along ``theta_dot``."""
        for index, slope in self.by_numbers(kin, theta):
            out[self.dofs] += slope * theta_dot[index][:, None]


@final
@dataclass(frozen=True)
class BallFriction(RotationLaw):
    """r_w = J_l(w)^T tau tanh(|omega| / s) omega / |omega|, omega = J_l(w) w_dot.

    Attributes
    ----------
    first : (m,) first coordinates of their rotation vectors
    friction, slip : (m,) indices in theta of tau [N m] and s [rad/s]
    """

    first: IntArray
    friction: IntArray
    slip: IntArray

    def _all(self, kin: Kinematics, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        m = self.first.size
        out = np.empty((m, 3)), np.empty((m, 2, 3)), np.empty((m, 3, 3)), np.empty((m, 3, 3))
        ball_friction(self.first, theta[self.friction], theta[self.slip], kin.q, kin.v, *out)
        return out

    def forces(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return r (m, 3)."""
        return self._all(kin, theta)[0]

    def slopes(self, kin: Kinematics, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return dr/dq and dr/dv (m, 3, 3)."""
        return self._all(kin, theta)[2:]

    def by_numbers(self, kin: Kinematics, theta: FloatArray) -> tuple[tuple[IntArray, FloatArray], ...]:
        """Return the derivatives by tau and s."""
        found = self._all(kin, theta)[1]
        return (self.friction, found[:, 0]), (self.slip, found[:, 1])


@final
@dataclass(frozen=True)
class BallLimits(RotationLaw):
    """r_w = (k s(e) + d e' s'(e)) w / |w|, e = |w| - upper: a stop for the angle by which a ball is turned.

    The ramp s is that of `add.terms.JointLimits`. Angles are at most pi: beyond it the rotation vector changes chart.

    Attributes
    ----------
    first : (m,) first coordinates of their rotation vectors
    upper, stiffness, damping : (m,) indices in theta [rad], [N m/rad], [N m s/rad]
    onset : (m,) [rad]
    """

    first: IntArray
    upper: IntArray
    stiffness: IntArray
    damping: IntArray
    onset: FloatArray

    def _depths(self, kin: Kinematics, theta: FloatArray) -> tuple[FloatArray, ...]:
        """Return |w|, w / |w|, e' = n . w_dot, s, s' and s''."""
        w, rate = kin.q[self.dofs], kin.v[self.dofs]
        angle = np.maximum(np.sqrt((w * w).sum(axis=1)), 1e-12)  # where it is that small, nothing acts
        n, e, d = w / angle[:, None], angle - theta[self.upper], self.onset
        beyond, within = e >= d, (e > 0.0) & (e < d)
        s = np.where(beyond, e - 0.5 * d, np.where(within, e * e / (2.0 * d), 0.0))
        slope = np.where(beyond, 1.0, np.where(within, e / d, 0.0))
        return angle, n, (n * rate).sum(axis=1), s, slope, np.where(within, 1.0 / d, 0.0)

    def _size(self, theta: FloatArray, e_dot: FloatArray, s: FloatArray, slope: FloatArray) -> FloatArray:
        return np.asarray(theta[self.stiffness] * s + theta[self.damping] * e_dot * slope)

    def forces(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return r (m, 3)."""
        _, n, e_dot, s, slope, _ = self._depths(kin, theta)
        return self._size(theta, e_dot, s, slope)[:, None] * n

    def slopes(self, kin: Kinematics, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return dr/dq and dr/dv (m, 3, 3)."""
        angle, n, e_dot, s, slope, bend = self._depths(kin, theta)
        along = n[:, :, None] * n[:, None]
        across = (np.eye(3) - along) / angle[:, None, None]
        damping = theta[self.damping] * slope
        by_angle = theta[self.stiffness] * slope + theta[self.damping] * e_dot * bend
        turned = np.einsum("mi,mj,mjk->mik", n, kin.v[self.dofs], across)
        by_q = by_angle[:, None, None] * along + self._size(theta, e_dot, s, slope)[:, None, None] * across
        return by_q + damping[:, None, None] * turned, damping[:, None, None] * along

    def by_numbers(self, kin: Kinematics, theta: FloatArray) -> tuple[tuple[IntArray, FloatArray], ...]:
        """Return the derivatives by stiffness, damping and the limit."""
        _, n, e_dot, s, slope, bend = self._depths(kin, theta)
        by_upper = -(theta[self.stiffness] * slope + theta[self.damping] * e_dot * bend)
        found = ((self.stiffness, s), (self.damping, e_dot * slope), (self.upper, by_upper))
        return tuple((index, size[:, None] * n) for index, size in found)

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the energy of the stops [J]."""
        angle, d = self._depths(kin, theta)[0], self.onset
        e = angle - theta[self.upper]
        outer = 0.5 * (e - 0.5 * d) ** 2 + d * d / 24.0
        return float(theta[self.stiffness] @ np.where(e >= d, outer, np.where(e > 0.0, e**3 / (6.0 * d), 0.0)))
