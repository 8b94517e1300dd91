"""Points on rows of X = Phi(q) as points on q; `add.equations.lift` has the equations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from add.equations.kinematics import Kinematics
from add.equations.lift import Lift
from add.equations.lift_over import LiftedStates
from add.equations.points import PointMap
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class LiftedPoints(PointMap):
    """Points on rows of X as points on q.

    Attributes
    ----------
    inner : PointMap
    lift : Lift
    """

    inner: PointMap
    lift: Lift

    @property
    def n_points(self) -> int:
        """Number of points."""
        return self.inner.n_points

    @property
    def numbers(self) -> IntArray:
        """Indices of those of the points on X, and of those that X depends on."""
        own = [e.parameters for e, *_ in self.lift.blocks]
        return np.unique(np.concatenate([self.inner.numbers, *own]))

    def points(self, kin: Kinematics, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return positions and velocities (n_points, 3)."""
        return self.inner.points(self.lift.kinematics(kin, theta), theta)

    def jvp(
        self, kin: Kinematics, theta: FloatArray, q_dot: FloatArray, v_dot: FloatArray, theta_dot: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the tangents: X_dot = P q_dot, V_dot = P v_dot + Q q_dot."""
        at, lift = self.lift.at(kin, theta), self.lift
        place_dot, rate_dot = lift.push(at, q_dot), lift.push(at, v_dot) + lift.push(at, q_dot, at.q)
        if lift.has_parameters:
            place, rate = lift.parameter_jvp(kin, theta, kin.v, theta_dot)
            place_dot, rate_dot = place_dot + place, rate_dot + rate
        return self.inner.jvp(at.kin, theta, place_dot, rate_dot, theta_dot)

    def points_over(self, q: FloatArray, v: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return positions and velocities (k, n_points, 3) in k states."""
        at = LiftedStates.at(self.lift, q, v, theta)
        return self.inner.points_over(at.x, at.v, theta)

    def jvp_over(
        self,
        q: FloatArray,
        v: FloatArray,
        theta: FloatArray,
        q_dot: FloatArray,
        v_dot: FloatArray,
        theta_dot: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the tangents (k, c, n_points, 3) of positions and velocities in k states along c directions."""
        at = LiftedStates.at(self.lift, q, v, theta)
        x_dot, rate_dot = at.push(q_dot, v_dot, theta_dot)
        return self.inner.jvp_over(at.x, at.v, theta, x_dot, rate_dot, theta_dot)

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
        """Add the cotangents: q_bar = P^T X_bar + Q^T V_bar, v_bar = P^T V_bar."""
        at, lift = self.lift.at(kin, theta), self.lift
        place_bar, rate_bar = np.zeros(lift.rows.n), np.zeros(lift.rows.n)
        self.inner.vjp(at.kin, theta, x_bar, xv_bar, place_bar, rate_bar, theta_bar)
        lift.pull(at, place_bar, q_bar)
        lift.pull(at, rate_bar, q_bar, at.q)
        lift.pull(at, rate_bar, v_bar)
        if lift.has_parameters:
            lift.parameter_vjp(kin, theta, kin.v, place_bar, rate_bar, theta_bar)

    def select(self, rows: IntArray) -> LiftedPoints:
        """Return the map of some of the points."""
        return LiftedPoints(self.inner.select(rows), self.lift)
