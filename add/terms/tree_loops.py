"""Equations that close loops of trees exactly: between frames of links, and between coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from add.equations.kinematics import Kinematics, Weights
from add.equations.term import Constraint
from add.kernels.tree_loops import loop_curvature, loop_rows
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class LinkLoops(Constraint):
    """Rows of `add.kernels.tree_loops` between two frames each; mu are forces [N] and torques [N m].

    Frames are rows of X: their places on links are the lift's numbers.

    Attributes
    ----------
    kind : (m,)
    frames : (m, 2) first entries of both frames in X
    axes : (m, 2, 3) unit vectors e and f in them
    length : (m,)
        Indices in theta of distances [m]; -1 of rows without one.
    """

    closes_starts: ClassVar[bool] = True

    kind: IntArray
    frames: IntArray
    axes: FloatArray
    length: IntArray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.kind.size)

    @property
    def _places(self) -> IntArray:
        """Entries of X of each row (m, 12)."""
        return np.asarray((self.frames[:, :, None] + np.arange(6)).reshape(-1, 12))

    def pattern(self, first: int) -> tuple[IntArray, IntArray]:
        """Return the blocks G (multiplier rows), G^T (multiplier columns) and the curvature."""
        places = self._places
        row = np.repeat(first + np.arange(self.n_rows), 12)
        rows, cols = np.broadcast_arrays(places[:, :, None], places[:, None])
        flat = places.ravel()
        return np.concatenate([row, flat, rows.ravel()]), np.concatenate([flat, row, cols.ravel()])

    def _evaluated(self, kin: Kinematics, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return c (m,) and G (m, 12)."""
        c, G = np.empty(self.n_rows), np.empty((self.n_rows, 12))
        length = np.where(self.length >= 0, theta[self.length], 0.0)
        loop_rows(self.kind, self.frames, self.axes, length, kin.q, c, G)
        return c, G

    def residual(self, kin: Kinematics, mu: FloatArray, theta: FloatArray, out: FloatArray, rows: FloatArray) -> None:
        """Add G^T mu and c."""
        c, G = self._evaluated(kin, theta)
        rows += c
        np.add.at(out, self._places, G * mu[:, None])

    def jacobian(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray
    ) -> None:
        """Add G in both places and the derivative of G^T mu."""
        G, n = self._evaluated(kin, theta)[1].ravel(), 12 * self.n_rows
        if weights.q:
            H = np.empty((self.n_rows, 12, 12))
            loop_curvature(self.kind, self.frames, self.axes, mu, kin.q, H)
            np.add.at(data, slots[:n], weights.q * G)
            np.add.at(data, slots[2 * n :], weights.q * H.ravel())
        np.add.at(data, slots[n : 2 * n], weights.multiplier * G)

    def parameter_vjp(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, lam: FloatArray, lam_rows: FloatArray, out: FloatArray
    ) -> None:
        """Add the cotangents of the distances."""
        there = self.length >= 0
        np.subtract.at(out, self.length[there], lam_rows[there])

    def parameter_jvp(
        self,
        kin: Kinematics,
        mu: FloatArray,
        theta: FloatArray,
        theta_dot: FloatArray,
        out: FloatArray,
        rows: FloatArray,
    ) -> None:
        """Add the tangents of the distances."""
        rows -= np.where(self.length >= 0, theta_dot[self.length], 0.0)


@final
@dataclass(frozen=True)
class JointCouplings(Constraint):
    """c = (y - y_0) - sum_k a_k (x - x_0)^k of two coordinates, or of one (x = x_0); mu are forces or torques.

    Attributes
    ----------
    y, x : (m,) coordinates; x is -1 where there is none
    start : (m, 2) y_0 and x_0 [rad, m]
    coefficients : (m, 5) indices in theta of a_0 to a_4; -1 for zero
    """

    of_coordinates: ClassVar[bool] = True
    closes_starts: ClassVar[bool] = True

    y: IntArray
    x: IntArray
    start: FloatArray
    coefficients: IntArray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.y.size)

    def pattern(self, first: int) -> tuple[IntArray, IntArray]:
        """Return the places of G, G^T and of the curvature; of rows without x those of y stand in for it."""
        row, x = first + np.arange(self.n_rows), np.where(self.x >= 0, self.x, self.y)
        return np.concatenate([row, row, self.y, x, x]), np.concatenate([self.y, x, row, row, x])

    def _numbers(self, theta: FloatArray) -> FloatArray:
        return np.where(self.coefficients >= 0, theta[self.coefficients], 0.0)

    def _powers(self, kin: Kinematics) -> FloatArray:
        """Return (x - x_0)^k, their first and their second derivatives (3, m, 5)."""
        d = np.where(self.x >= 0, kin.q[self.x] - self.start[:, 1], 0.0)
        out, k = np.zeros((3, d.size, 5)), np.arange(5.0)
        powers = d[:, None] ** k
        out[0] = powers
        out[1, :, 1:] = k[1:] * powers[:, :-1]
        out[2, :, 2:] = k[2:] * k[1:-1] * powers[:, :-2]
        out[1:, self.x < 0] = 0.0
        return out

    def residual(self, kin: Kinematics, mu: FloatArray, theta: FloatArray, out: FloatArray, rows: FloatArray) -> None:
        """Add G^T mu and c."""
        value, slope, _ = (self._powers(kin) * self._numbers(theta)).sum(axis=2)
        rows += kin.q[self.y] - self.start[:, 0] - value
        np.add.at(out, self.y, mu)
        np.subtract.at(out, self.x, slope * mu)

    def jacobian(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray
    ) -> None:
        """Add G in both places and the derivative of G^T mu."""
        _, slope, bend = (self._powers(kin) * self._numbers(theta)).sum(axis=2)
        one = np.ones(self.n_rows)
        by_q = np.concatenate([weights.q * one, -weights.q * slope])
        by_mu = np.concatenate([weights.multiplier * one, -weights.multiplier * slope])
        np.add.at(data, slots, np.concatenate([by_q, by_mu, -weights.q * mu * bend]))

    def parameter_vjp(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, lam: FloatArray, lam_rows: FloatArray, out: FloatArray
    ) -> None:
        """Add the cotangents of the coefficients."""
        value, slope, _ = self._powers(kin)
        there, bar = self.coefficients >= 0, lam_rows[:, None] * value + (lam[self.x] * mu)[:, None] * slope
        np.subtract.at(out, self.coefficients[there], bar[there])

    def parameter_jvp(
        self,
        kin: Kinematics,
        mu: FloatArray,
        theta: FloatArray,
        theta_dot: FloatArray,
        out: FloatArray,
        rows: FloatArray,
    ) -> None:
        """Add the tangents of the coefficients."""
        value, slope, _ = (self._powers(kin) * self._numbers(theta_dot)).sum(axis=2)
        rows -= value
        np.subtract.at(out, self.x, slope * mu)
