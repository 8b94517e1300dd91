"""Points held by multipliers: at given places, or where a link or a rigid body carries them."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, final

import numpy as np

from add.equations.kinematics import Kinematics, Weights
from add.equations.points import LinearPoints
from add.equations.signals import Signal
from add.equations.term import Constraint, Entries
from add.equations.tree_embedding import TiedNodes
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class TiedPoints(Constraint):
    """c = x - Phi(y) = 0, places of nodes and those in the frame of a carrier; mu is the force of each on it [N].

    With P = dPhi/dy, forces are mu on the nodes and -P^T mu on the coordinates y of the carrier; their derivative has
    -sum_i mu_i d2Phi_i/dy2 (see `add.equations.tree_embedding`).

    Attributes
    ----------
    body, carrier : names, for results
    nodes : (k,) first coordinate of each node
    frame : TiedNodes
    first : first of the coordinates y
    """

    of_coordinates: ClassVar[bool] = True

    body: str
    carrier: str
    nodes: IntArray
    frame: TiedNodes
    first: int

    @property
    def n_rows(self) -> int:
        """Three a node."""
        return 3 * self.nodes.size

    @cached_property
    def _dofs(self) -> IntArray:
        """Coordinates (3 k,) of the nodes."""
        return np.asarray((self.nodes[:, None] + np.arange(3)).ravel())

    @cached_property
    def _moved(self) -> IntArray:
        """Coordinates of y (m,) that the frame moves with."""
        return np.flatnonzero(self.frame.structure[0])

    def _own(self, vector: FloatArray) -> FloatArray:
        """Return the entries of y."""
        return vector[self.first : self.first + self.frame.n_coordinates]

    def places(self, q: FloatArray) -> FloatArray:
        """Return the places (k, 3) of the nodes."""
        return q[self._dofs].reshape(-1, 3)

    def pattern(self, first: int) -> tuple[IntArray, IntArray]:
        """Return the blocks G (multiplier rows), G^T (multiplier columns) and the curvature."""
        y, held = self.first + self._moved, first + np.arange(self.n_rows)
        rows = np.concatenate([held, np.repeat(held, y.size)])
        cols = np.concatenate([self._dofs, np.tile(y, held.size)])
        bent = np.repeat(y, y.size), np.tile(y, y.size)
        return np.concatenate([rows, cols, bent[0]]), np.concatenate([cols, rows, bent[1]])

    def residual(self, kin: Kinematics, mu: FloatArray, theta: FloatArray, out: FloatArray, rows: FloatArray) -> None:
        """Add G^T mu and x - Phi."""
        places, by = self.frame.place(self._own(kin.q), theta)
        rows += kin.q[self._dofs] - places
        out[self._dofs] += mu
        self._own(out)[...] -= by.T @ mu

    def jacobian(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray
    ) -> None:
        """Add G in both places and the derivative of G^T mu."""
        y, moved = self._own(kin.q), self._moved
        g = np.append(np.ones(self.n_rows), -self.frame.place(y, theta)[1][:, moved])
        bent = -self.frame.curvature(y, theta, mu)[np.ix_(moved, moved)] if weights.q else np.zeros(moved.size**2)
        np.add.at(data, slots, np.concatenate([weights.q * g, weights.multiplier * g, weights.q * bent.ravel()]))

    def by_numbers(self, kin: Kinematics, mu: FloatArray, theta: FloatArray) -> Entries:
        """See `Constraint.by_numbers`."""
        y, of_frame = self._own(kin.q), self.frame.by_parameters
        turned = [-mu @ of_frame(y, unit, theta)[1] for unit in np.eye(y.size)]
        values = np.concatenate([*(row[None] for row in turned), -of_frame(y, np.zeros(y.size), theta)[0]])
        place = np.append(self.first + np.arange(y.size), kin.q.size + np.arange(self.n_rows))
        parts = np.broadcast_arrays(place[:, None], self.frame.parameters, values)
        return Entries(*(part.ravel() for part in parts))


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
