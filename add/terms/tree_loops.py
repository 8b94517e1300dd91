"""Equations that close loops of trees exactly: between frames of links, and between coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple, final

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


class Sums(NamedTuple):
    """Sums of coordinates, one for each equation: equation, coordinate and index in theta of the factor, -1 for one."""

    row: IntArray
    dof: IntArray
    factor: IntArray

    def factors(self, theta: FloatArray, one: float = 1.0) -> FloatArray:
        """Return the factors (e,), or their tangents with ``one`` zero."""
        return np.where(self.factor >= 0, theta[self.factor], one)

    def of(self, values: FloatArray, n: int) -> FloatArray:
        """Return the sums (n,) of values by entry."""
        return np.bincount(self.row, values, n).astype(float)


@final
@dataclass(frozen=True)
class JointCouplings(Constraint):
    """c = (y - y_0) - sum_k a_k (x - x_0)^k of coordinates or sums of them (lengths of tendons); mu are their forces.

    Attributes
    ----------
    y, x : Sums
        x of an equation without entries is x_0.
    start : (m, 2) y_0 and x_0 [rad, m]
    coefficients : (m, 5) indices in theta of a_0 to a_4; -1 for zero
    """

    of_coordinates: ClassVar[bool] = True
    closes_starts: ClassVar[bool] = True

    y: Sums
    x: Sums
    start: FloatArray
    coefficients: IntArray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.start)

    @cached_property
    def _pairs(self) -> tuple[IntArray, IntArray]:
        """Entries of x of the same row."""
        left, right = np.nonzero(self.x.row[:, None] == self.x.row)
        return np.asarray(left, dtype=np.int64), np.asarray(right, dtype=np.int64)

    def pattern(self, first: int) -> tuple[IntArray, IntArray]:
        """Return the places of G, G^T and of the curvature."""
        (left, right), y, x = self._pairs, self.y, self.x
        rows = [first + y.row, first + x.row, y.dof, x.dof, x.dof[left]]
        return np.concatenate(rows), np.concatenate([y.dof, x.dof, first + y.row, first + x.row, x.dof[right]])

    def _numbers(self, theta: FloatArray) -> FloatArray:
        return np.where(self.coefficients >= 0, theta[self.coefficients], 0.0)

    def _powers(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return (x - x_0)^k, their first and their second derivatives (3, m, 5)."""
        x = self.x.of(self.x.factors(theta) * kin.q[self.x.dof], self.n_rows)
        there = self.x.of(np.ones(self.x.row.size), self.n_rows) > 0.0
        d = np.where(there, x - self.start[:, 1], 0.0)
        out, k = np.zeros((3, d.size, 5)), np.arange(5.0)
        powers = d[:, None] ** k
        out[0] = powers
        out[1, :, 1:] = k[1:] * powers[:, :-1]
        out[2, :, 2:] = k[2:] * k[1:-1] * powers[:, :-2]
        return out

    def residual(self, kin: Kinematics, mu: FloatArray, theta: FloatArray, out: FloatArray, rows: FloatArray) -> None:
        """Add G^T mu and c."""
        value, slope, _ = (self._powers(kin, theta) * self._numbers(theta)).sum(axis=2)
        by_y, by_x = self.y.factors(theta), self.x.factors(theta)
        rows += self.y.of(by_y * kin.q[self.y.dof], self.n_rows) - self.start[:, 0] - value
        np.add.at(out, self.y.dof, by_y * mu[self.y.row])
        np.subtract.at(out, self.x.dof, by_x * (slope * mu)[self.x.row])

    def jacobian(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray
    ) -> None:
        """Add G in both places and the derivative of G^T mu."""
        _, slope, bend = (self._powers(kin, theta) * self._numbers(theta)).sum(axis=2)
        by_x, (left, right) = self.x.factors(theta), self._pairs
        g = np.concatenate([self.y.factors(theta), -by_x * slope[self.x.row]])
        curved = -weights.q * (mu * bend)[self.x.row[left]] * by_x[left] * by_x[right]
        np.add.at(data, slots, np.concatenate([weights.q * g, weights.multiplier * g, curved]))

    def parameter_vjp(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, lam: FloatArray, lam_rows: FloatArray, out: FloatArray
    ) -> None:
        """Add the cotangents of coefficients and factors."""
        powers, by_x, x, y = self._powers(kin, theta), self.x.factors(theta), self.x, self.y
        along = x.of(by_x * lam[x.dof], self.n_rows)
        there, bar = self.coefficients >= 0, lam_rows[:, None] * powers[0] + (along * mu)[:, None] * powers[1]
        np.subtract.at(out, self.coefficients[there], bar[there])
        _, slope, bend = (powers * self._numbers(theta)).sum(axis=2)
        of_y = lam_rows[y.row] * kin.q[y.dof] + lam[y.dof] * mu[y.row]
        of_x = (lam_rows * slope + mu * bend * along)[x.row] * kin.q[x.dof] + (mu * slope)[x.row] * lam[x.dof]
        np.add.at(out, y.factor[y.factor >= 0], of_y[y.factor >= 0])
        np.subtract.at(out, x.factor[x.factor >= 0], of_x[x.factor >= 0])

    def parameter_jvp(
        self,
        kin: Kinematics,
        mu: FloatArray,
        theta: FloatArray,
        theta_dot: FloatArray,
        out: FloatArray,
        rows: FloatArray,
    ) -> None:
        """Add the tangents of coefficients and factors."""
        powers, by_x, x, y = self._powers(kin, theta), self.x.factors(theta), self.x, self.y
        value, slope_dot, _ = (powers * self._numbers(theta_dot)).sum(axis=2)
        _, slope, bend = (powers * self._numbers(theta)).sum(axis=2)
        y_dot, x_dot = self.y.factors(theta_dot, 0.0), self.x.factors(theta_dot, 0.0)
        way = x.of(x_dot * kin.q[x.dof], self.n_rows)
        rows += y.of(y_dot * kin.q[y.dof], self.n_rows) - value - slope * way
        np.add.at(out, y.dof, y_dot * mu[y.row])
        turned = by_x * ((slope_dot + bend * way) * mu)[x.row] + x_dot * (slope * mu)[x.row]
        np.subtract.at(out, x.dof, turned)
