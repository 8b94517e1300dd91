"""Tangents of a few numbers that depend on one state and on theta, along many directions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from add.equations.kinematics import State, StateTangent
from add.equations.tangents import Columns, Directions, StateTangents
from add.typing import FloatArray, IntArray


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

    def columns(
        self,
        along: Callable[[StateTangent, FloatArray], FloatArray],
        size: int,
        tangents: StateTangents,
        directions: Directions,
    ) -> Columns:
        """Return the tangents of ``size`` numbers, which ``along`` gives for a tangent of the state and of theta.

        Few coordinates are read: the derivative by each of those, times the tangents, is cheaper than one pass a
        direction.
        """
        state, coordinates = self.state, self.coordinates
        own = directions.touching(directions.among(self.entries))
        index = np.union1d(tangents.index, own)
        values = np.zeros((size, index.size))
        nothing = StateTangent.zeros_like(state)
        for column, place in zip(own, np.searchsorted(index, own), strict=True):
            values[:, place] = along(nothing, directions.column(int(column)))
        places, still = np.searchsorted(index, tangents.index), np.zeros_like(self.theta)
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
