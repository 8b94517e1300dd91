"""Interpolation between steps, and where its derivatives stand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from add.equations.kinematics import Columns, Directions, Kinematics, State, StateTangent, StateTangents, generic
from add.equations.points import Along, PointMap
from add.typing import FloatArray, IntArray

#: Weights of (x_0, v_0, x_1, v_1): positions and velocities at the beginning and at the end of a step.
StepWeights = tuple[float, float, float, float]


def hermite(s: float, dt: float) -> StepWeights:
    """Return the cubic Hermite weights of (x_0, v_0, x_1, v_1) at the fraction ``s`` of a step that ends in x_1."""
    return (
        (1.0 + 2.0 * s) * (1.0 - s) ** 2,
        dt * s * (1.0 - s) ** 2,
        s * s * (3.0 - 2.0 * s),
        dt * s * s * (s - 1.0),
    )


@final
@dataclass(frozen=True)
class Interpolant:
    """Weights of the two states around a time.

    Attributes
    ----------
    dt : float
        Step [s].
    last : int or None
        The step that ends the run, beyond which things go straight on; None: no time lies there.
    """

    dt: float
    last: int | None

    def _outside(self, step: int, time: float) -> float | None:
        """Return how long after step ``step`` a time lies that is not within the run, None if it is within [s]."""
        beyond = time - step * self.dt
        if step == 0 and beyond <= 0.0:
            return beyond
        return beyond if step == self.last and beyond > 0.0 else None

    def _fraction(self, step: int, time: float) -> float:
        return float(min(max((time - (step - 1) * self.dt) / self.dt, 0.0), 1.0))

    def weights(self, step: int, time: float) -> StepWeights:
        """Return the weights of (x_0, v_0, x_1, v_1) at a time of the interval that ends with ``step``."""
        outside = self._outside(step, time)
        if outside is not None:
            # Straight on, so that a frame that the clock moves through an end of the run meets no kink.
            return 0.0, 0.0, 1.0, outside
        return hermite(self._fraction(step, time), self.dt) if step else (0.0, 0.0, 1.0, 0.0)

    def slopes(self, step: int, time: float) -> StepWeights:
        """Return the derivative of `weights` by the time."""
        if step == 0 or self._outside(step, time) is not None:
            return 0.0, 0.0, 0.0, 1.0
        s, dt = self._fraction(step, time), self.dt
        return 6.0 * s * (s - 1.0) / dt, (1.0 - s) * (1.0 - 3.0 * s), 6.0 * s * (1.0 - s) / dt, s * (3.0 * s - 2.0)


def pair(state: State, k: int) -> Kinematics:
    """Return pair k of a state as the maps take it."""
    return Kinematics(state.q[k], state.v[k], state.v[k], state.t, state.step)


@final
@dataclass(frozen=True)
class StateReads:
    """A state, theta, and what is read of them.

    Attributes
    ----------
    state : State
    theta : (n_theta,)
    coordinates, entries : indices of the coordinates and of the entries of theta that may be read
    """

    state: State
    theta: FloatArray
    coordinates: IntArray
    entries: IntArray

    @classmethod
    def of_points(cls, points: PointMap, state: State, theta: FloatArray, entries: IntArray) -> StateReads:
        """Return what points read of a state and of theta, and the entries of theta given beside it."""
        n = state.q.shape[1]
        bar = generic(3 * points.n_points).reshape(-1, 3)
        read, theta_bar = np.zeros(n), np.zeros_like(theta)
        for k in range(2):
            q_bar, v_bar = np.zeros(n), np.zeros(n)
            points.vjp(pair(state, k), theta, bar, bar, Along(q_bar, v_bar, theta_bar))
            read += np.abs(q_bar) + np.abs(v_bar)
        return cls(state, theta, np.flatnonzero(read), np.union1d(np.flatnonzero(theta_bar), entries))

    def columns(
        self,
        along: Callable[[StateTangent, FloatArray], FloatArray],
        size: int,
        tangents: StateTangents,
        directions: Directions,
    ) -> Columns:
        """Return the tangents of ``size`` numbers, which ``along`` gives (size, c) for tangents of the state and theta.

        Where few coordinates are read, the derivative by each of those, times the tangents, is cheaper than one pass a
        direction.
        """
        state, coordinates, dot = self.state, self.coordinates, tangents.dot
        own = directions.touching(directions.among(self.entries))
        index = np.union1d(tangents.index, own)
        if not index.size:
            return Columns(index, np.zeros((size, 0)))
        places, own_places = np.searchsorted(index, tangents.index), np.searchsorted(index, own)
        theta_dot = np.zeros((self.theta.size, index.size))
        for column, place in zip(own, own_places, strict=True):
            theta_dot[:, place] = directions.column(int(column))
        m, n = state.q.shape
        if tangents.index.size <= 2 * m * coordinates.size:
            q_dot, v_dot = np.zeros((2, m, n, index.size))
            q_dot[:, :, places], v_dot[:, :, places] = dot.q, dot.v
            return Columns(index, along(StateTangent(q_dot, v_dot), theta_dot))
        values = np.zeros((size, index.size))
        if own.size:
            still = np.zeros((m, n, own.size))
            values[:, own_places] = along(StateTangent(still, still), theta_dot[:, own_places])
        units = np.zeros((2, m, n, 2, m, coordinates.size))
        for i, k in np.ndindex(2, m):
            units[i, k, coordinates, i, k, np.arange(coordinates.size)] = 1.0
        q_dot, v_dot = units.reshape(2, m, n, -1)
        derivative = along(StateTangent(q_dot, v_dot), np.zeros((self.theta.size, q_dot.shape[2])))
        known = np.stack([dot.q[:, coordinates], dot.v[:, coordinates]]).reshape(q_dot.shape[2], -1)
        values[:, places] += derivative @ known
        return Columns(index, values)
