"""Sites of bodies as a map of points: markers and targets on rigid bodies, or on bodies of any kind."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from add.equations.kinematics import Kinematics
from add.equations.points import PointMap
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

    def _evaluate(self, kin: Kinematics, theta: FloatArray) -> Evaluation:
        return Evaluation(self.sites, _no_law(self.n_points), kin.q, kin.v, kin.t, theta)

    def points(self, kin: Kinematics, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return positions and velocities (n_points, 3)."""
        found = self._evaluate(kin, theta)
        return found.y, found.y_dot

    def jvp(
        self, kin: Kinematics, theta: FloatArray, q_dot: FloatArray, v_dot: FloatArray, theta_dot: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the tangents (n_points, 3, ...) of positions and velocities."""
        f, found, n = self.sites, self._evaluate(kin, theta), self.n_points
        along = [
            np.ascontiguousarray(x.reshape(x.shape[0], math.prod(x.shape[1:])).T) for x in (q_dot, v_dot, theta_dot)
        ]
        x_dot, rate_dot = np.empty((2, along[0].shape[0], n, 3))
        for one in zip(*along, x_dot, rate_dot, strict=True):
            kernel.points_jvp(
                *one[:3], kin.q, kin.v, f.kind, f.dofs, f.weights, f.arm, f.centre, found.frame, *one[3:]
            )  # fmt: skip
        shape = (n, 3, *q_dot.shape[1:])
        return np.moveaxis(x_dot, 0, -1).reshape(shape), np.moveaxis(rate_dot, 0, -1).reshape(shape)

    def vjp(
        self,
        kin: Kinematics,
        theta: FloatArray,
        x_bar: FloatArray,
        xv_bar: FloatArray,
        q_bar: FloatArray,
        v_bar: FloatArray,
        theta_bar: FloatArray,
    ) -> None:
        """Add the cotangents of (q, v, theta), theta for arms and centres of mass."""
        f, found = self.sites, self._evaluate(kin, theta)
        kernel.points_vjp(
            np.ascontiguousarray(x_bar), np.ascontiguousarray(xv_bar), kin.q, kin.v, f.kind, f.dofs, f.weights, f.arm,
            f.centre, found.frame, q_bar, v_bar, theta_bar,
        )  # fmt: skip

    def select(self, rows: IntArray) -> SitePoints:
        """Return the map of some of the points."""
        f = self.sites
        return SitePoints(Sites(f.kind[rows], f.dofs[rows], f.weights[rows], f.arm[rows], f.centre[rows]))


def _no_law(n: int) -> LawValues:
    """Return laws without numbers."""
    return LawValues.of(np.full(n, -1))
