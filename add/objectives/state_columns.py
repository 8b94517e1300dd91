"""Tangents of a few numbers that depend on one state and on theta, along many directions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from add.equations.kinematics import Kinematics, State, StateTangent
from add.equations.points import PointMap
from add.equations.tangents import Columns, Directions, StateTangents, generic
from add.typing import FloatArray, IntArray


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
            points.vjp(pair(state, k), theta, bar, bar, q_bar, v_bar, theta_bar)
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
