"""Sites of bodies as a map of points: markers and targets on rigid bodies, or on bodies of any kind."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from add.equations.kinematics import Kinematics
from add.equations.points import Along, PointMap
from add.equations.sites import Evaluation, LawValues, Sites
from add.kernels import site_points as kernel
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class SitePoints(PointMap):
    """Places of points, directions (unit vectors, rates of turning included) and weighted nodes.

    Attributes
    ----------
    sites : Sites
        Of arity one.
    """

    sites: Sites

    @property
    def n_points(self) -> int:
        """Number of points."""
        return self.sites.kind.size

    @property
    def numbers(self) -> IntArray:
        """Indices of arms and centres of mass."""
        place = self.sites.place
        return np.unique(place[place >= 0])

    def _evaluate(self, kin: Kinematics, theta: FloatArray) -> Evaluation:
        return Evaluation(self.sites, _no_law(self.n_points), kin.q, kin.v, kin.t, theta)

    def points(self, kin: Kinematics, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return positions and velocities (n_points, 3)."""
        found = self._evaluate(kin, theta)
        return found.y, found.y_dot

    def jvp(self, kin: Kinematics, theta: FloatArray, dot: Along) -> tuple[FloatArray, FloatArray]:
        """Return the tangents (n_points, 3, ...) of positions and velocities."""
        f, found, n = self.sites, self._evaluate(kin, theta), self.n_points
        along = [np.ascontiguousarray(x.reshape(x.shape[0], math.prod(x.shape[1:])).T) for x in dot]
        x_dot, rate_dot = np.empty((2, along[0].shape[0], n, 3))
        for one in zip(*along, x_dot, rate_dot, strict=True):
            kernel.points_jvp(
                *one[:3], kin.q, kin.v, f.kind, f.dofs, f.weights, f.arm, f.centre, found.frame, *one[3:]
            )  # fmt: skip
        shape = (n, 3, *dot.q.shape[1:])
        return np.moveaxis(x_dot, 0, -1).reshape(shape), np.moveaxis(rate_dot, 0, -1).reshape(shape)

    def points_over(self, q: FloatArray, v: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return positions and velocities (k, n_points, 3) in k states."""
        one = Kinematics(q.ravel(), v.ravel(), v.ravel(), 0.0, 0)
        y, y_dot = self._repeated(*q.shape).points(one, theta)
        return y.reshape(q.shape[0], -1, 3), y_dot.reshape(q.shape[0], -1, 3)

    def jvp_over(self, at: Along, dot: Along) -> tuple[FloatArray, FloatArray]:
        """Return the tangents (k, c, n_points, 3) of positions and velocities in k states along c directions."""
        one = Kinematics(at.q.ravel(), at.v.ravel(), at.v.ravel(), 0.0, 0)
        k, c, _ = dot.q.shape
        by_q, by_v = (np.moveaxis(part, 1, 2).reshape(-1, c) for part in dot[:2])
        found = self._repeated(*at.q.shape).jvp(one, at.theta, Along(by_q, by_v, dot.theta.T))
        x, rate = (np.moveaxis(part.reshape(k, -1, 3, c), 3, 1) for part in found)
        return x, rate

    def _repeated(self, k: int, n: int) -> SitePoints:
        """Return the points of k states of n coordinates, one behind the other, as those of one state."""
        f, again = self.sites, np.tile(np.arange(self.n_points), k)
        shifts = np.repeat(n * np.arange(k), self.n_points)[:, None]
        dofs = np.where(f.dofs[again] >= 0, f.dofs[again] + shifts, -1)
        return SitePoints(Sites(f.kind[again], dofs, f.weights[again], f.arm[again], f.centre[again]))

    def vjp(self, kin: Kinematics, theta: FloatArray, x_bar: FloatArray, xv_bar: FloatArray, out: Along) -> None:
        """Add the cotangents of (q, v, theta), theta for arms and centres of mass."""
        f, found = self.sites, self._evaluate(kin, theta)
        kernel.points_vjp(
            np.ascontiguousarray(x_bar), np.ascontiguousarray(xv_bar), kin.q, kin.v, f.kind, f.dofs, f.weights, f.arm,
            f.centre, found.frame, *out,
        )  # fmt: skip

    def select(self, rows: IntArray) -> SitePoints:
        """Return the map of some of the points."""
        f = self.sites
        return SitePoints(Sites(f.kind[rows], f.dofs[rows], f.weights[rows], f.arm[rows], f.centre[rows]))


def _no_law(n: int) -> LawValues:
    """Return laws without numbers."""
    return LawValues.of(np.full(n, -1))
