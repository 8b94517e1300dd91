"""Points of bodies held at given places by multipliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from add.equations.kinematics import Kinematics, Weights
from add.equations.points import LinearPoints
from add.equations.signals import Signal
from add.equations.term import Constraint, Entries
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class PointConstraint(Constraint):
    """c = x(q) - p(t) = 0 for every point of a map; mu is the force that the point exerts on its holder [N].

    Unlike a pin it can hold any point of a body, not only a node. Attributes:

    points : LinearPoints
        The points that are held.
    signal : Signal
    rows : (n_points, n_rows, 3)
        Indices in theta of the places' coefficients [m].
    """

    points: LinearPoints
    signal: Signal
    rows: IntArray

    @property
    def n_rows(self) -> int:
        """Three a point."""
        return 3 * self.points.n_points

    def pattern(self, first: int) -> tuple[IntArray, IntArray]:
        """Return the blocks G (multiplier rows) and G^T (multiplier columns)."""
        point, dofs, _ = self.points.entries()
        return np.concatenate([first + point, dofs]), np.concatenate([dofs, first + point])

    def _places(self, t: float, theta: FloatArray) -> FloatArray:
        return np.einsum("r,pri->pi", self.signal.weights(t), theta[self.rows])

    def residual(self, kin: Kinematics, mu: FloatArray, theta: FloatArray, out: FloatArray, rows: FloatArray) -> None:
        """Add G^T mu and x - p."""
        x = self.points.gather(kin.q)
        rows += (x - self._places(kin.t, theta)).ravel()
        self.points.pull(mu.reshape(-1, 3), out)

    def jacobian(
        self,
        kin: Kinematics,
        mu: FloatArray,
        theta: FloatArray,
        weights: Weights,
        data: FloatArray,
        slots: IntArray,
    ) -> None:
        """Add G in both places."""
        _, _, values = self.points.entries()
        np.add.at(data, slots[: values.size], weights.q * values)
        np.add.at(data, slots[values.size :], weights.multiplier * values)

    def by_numbers(self, kin: Kinematics, mu: FloatArray, theta: FloatArray) -> Entries:
        """See `Constraint.by_numbers`."""
        place = kin.q.size + np.arange(self.n_rows).reshape(-1, 1, 3)
        values = -self.signal.weights(kin.t)[:, None]
        return Entries(*(part.ravel() for part in np.broadcast_arrays(place, self.rows, values)))
