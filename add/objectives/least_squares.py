"""Objectives that are sums of squares, with their residuals: what Gauss-Newton asks for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.sparse as sp

from add.equations.kinematics import Kinematics, State, StateTangent
from add.equations.tangents import Columns, Directions, StateTangents, generic
from add.objectives.base import Objective, WeightedSum
from add.objectives.tracking import Tracking
from add.typing import FloatArray, IntArray


class LeastSquares(Objective):
    """phi = sum over steps |rho_k|^2 + |rho(theta)|^2.

    A step's residuals see what `Objective.step_value` sees, the state after the step and theta.
    """

    @abstractmethod
    def step_residuals(self, state: State, theta: FloatArray) -> FloatArray:
        """Return rho_k (r,) of the interval that ends at ``state``."""

    @abstractmethod
    def step_residual_tangents(
        self, state: State, theta: FloatArray, tangents: StateTangents, directions: Directions
    ) -> Columns:
        """Return the tangents (r, k) of `step_residuals`, by the state and by theta itself."""

    def parameter_residuals(self, theta: FloatArray) -> FloatArray:
        """Return rho(theta) (r,)."""
        return np.zeros(0)

    def parameter_residual_jacobian(self, theta: FloatArray) -> sp.csr_array:
        """Return its derivative (r, n_theta)."""
        return sp.csr_array((0, theta.size))


@final
@dataclass(frozen=True)
class TrackingResiduals(LeastSquares):
    """A `Tracking` by its residuals.

    The residuals of a step read few coordinates: their derivative by each of those, times the tangents, is cheaper
    than one pass a direction.
    """

    tracking: Tracking

    def step_value(self, state: State, theta: FloatArray) -> float:
        """Return that of the tracking."""
        return self.tracking.step_value(state, theta)

    def step_pullback(self, state: State, theta: FloatArray, state_bar: StateTangent, theta_bar: FloatArray) -> None:
        """Pull back through the tracking."""
        self.tracking.step_pullback(state, theta, state_bar, theta_bar)

    def step_residuals(self, state: State, theta: FloatArray) -> FloatArray:
        """Return sqrt(w) P (x - y) of all samples of the interval that count [m]."""
        found = self.tracking.residuals(state, theta)
        return np.concatenate([r[self.tracking.weights[f] > 0.0].ravel() for f, r in found] or [np.zeros(0)])

    def for_run(self) -> TrackingResiduals:
        """Return the residuals of the tracking for one run."""
        return TrackingResiduals(self.tracking.for_run())

    def _along(self, state: State, theta: FloatArray, dot: StateTangent, theta_dot: FloatArray) -> FloatArray:
        found = self.tracking.residual_tangents(state, theta, dot, theta_dot)
        frames = self.tracking.frames(state, theta)
        return np.concatenate(
            [r[self.tracking.weights[f] > 0.0].ravel() for f, r in zip(frames, found, strict=True)] or [np.zeros(0)]
        )

    def _reads(self, state: State, theta: FloatArray) -> tuple[IntArray, IntArray]:
        """Return the coordinates and the entries of theta that the residuals may depend on."""
        tracking, n = self.tracking, state.q.shape[1]
        bar = generic(3 * tracking.points.n_points).reshape(-1, 3)
        read, theta_bar = np.zeros(n), np.zeros_like(theta)
        for k in range(2):
            kin = Kinematics(state.q[k], state.v[k], state.v[k], state.t, state.step)
            q_bar, v_bar = np.zeros(n), np.zeros(n)
            tracking.points.vjp(kin, theta, bar, bar, q_bar, v_bar, theta_bar)
            read += np.abs(q_bar) + np.abs(v_bar)
        entries = theta_bar != 0.0
        if tracking.clock is not None:
            entries[tracking.clock] = True
        return np.flatnonzero(read), np.flatnonzero(entries)

    def step_residual_tangents(
        self, state: State, theta: FloatArray, tangents: StateTangents, directions: Directions
    ) -> Columns:
        """Return the tangents of `step_residuals`; of displacements, from the first state of the run on."""
        tracking = self.tracking
        size = self.step_residuals(state, theta).size

        def place(dot: StateTangent, theta_dot: FloatArray) -> FloatArray:
            found = tracking.reference_tangent(state, theta, dot, theta_dot)
            return np.zeros(0) if found is None else found.ravel()

        still = StateTangent(np.zeros_like(state.q), np.zeros_like(state.v))
        n_place = place(still, np.zeros_like(theta)).size
        if n_place:
            assert tracking.origin is not None
            tracking.origin.tangents = self._columns(place, n_place, state, theta, tangents, directions)
        if not size:
            return Columns(np.zeros(0, dtype=np.int64), np.zeros((0, 0)))

        def residuals(dot: StateTangent, theta_dot: FloatArray) -> FloatArray:
            return self._along(state, theta, dot, theta_dot)

        found = self._columns(residuals, size, state, theta, tangents, directions)
        return found if tracking.reference is None else self._less_origin(found, state, theta)

    def _less_origin(self, found: Columns, state: State, theta: FloatArray) -> Columns:
        """Return the tangents with those of the place subtracted from which displacements count."""
        tracking = self.tracking
        assert tracking.origin is not None and tracking.origin.tangents is not None
        origin = tracking.origin.tangents
        index = np.union1d(found.index, origin.index)
        values = np.zeros((found.values.shape[0], index.size))
        values[:, np.searchsorted(index, found.index)] = found.values
        places = np.searchsorted(index, origin.index)
        moved = origin.values.reshape(-1, 3, origin.index.size)
        first = 0
        for frame in tracking.frames(state, theta):
            seen = tracking.weights[frame] > 0.0
            roots = np.sqrt(tracking.weights[frame][seen])[:, None, None]
            rows = roots * np.einsum("pik,ij->pjk", moved[seen], tracking.projector)
            values[first : first + 3 * rows.shape[0], places] -= rows.reshape(-1, origin.index.size)
            first += 3 * rows.shape[0]
        return Columns(index, values)

    def _columns(
        self,
        along: Callable[[StateTangent, FloatArray], FloatArray],
        size: int,
        state: State,
        theta: FloatArray,
        tangents: StateTangents,
        directions: Directions,
    ) -> Columns:
        """Return the tangents of ``size`` numbers that depend on this state and theta, linear in ``along``."""
        coordinates, entries = self._reads(state, theta)
        own = directions.touching(directions.among(entries))
        index = np.union1d(tangents.index, own)
        values = np.zeros((size, index.size))
        nothing = StateTangent(np.zeros_like(state.q), np.zeros_like(state.v))
        for column, place in zip(own, np.searchsorted(index, own), strict=True):
            values[:, place] = along(nothing, directions.column(int(column)))
        places, still = np.searchsorted(index, tangents.index), np.zeros_like(theta)
        m = state.q.shape[0]
        if tangents.index.size <= 2 * m * coordinates.size:
            for c, place in enumerate(places):
                dot = StateTangent(tangents.dot.q[:, :, c], tangents.dot.v[:, :, c])
                values[:, place] += along(dot, still)
            return Columns(index, values)
        for unit, known in ((nothing.q, tangents.dot.q), (nothing.v, tangents.dot.v)):
            for k in range(m):
                derivative = np.empty((size, coordinates.size))
                for c, coordinate in enumerate(coordinates):
                    unit[k, coordinate] = 1.0
                    derivative[:, c] = along(nothing, still)
                    unit[k, coordinate] = 0.0
                values[:, places] += derivative @ known[k, coordinates]
        return Columns(index, values)


def squares(objective: Objective) -> list[tuple[float, LeastSquares]]:
    """Return an objective as weighted sums of squares.

    Raises
    ------
    TypeError
        If a part of it is none.
    """
    if isinstance(objective, WeightedSum):
        pairs = zip(objective.weights, objective.objectives, strict=True)
        return [(w * inner, part) for w, o in pairs for inner, part in squares(o)]
    if isinstance(objective, Tracking):
        return [(1.0, TrackingResiduals(objective))]
    if isinstance(objective, LeastSquares):
        return [(1.0, objective)]
    raise TypeError(f"{type(objective).__name__} is not a sum of squares")
