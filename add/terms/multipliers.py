"""Constraints that multipliers hold: points at given places or on links and rigid bodies, and loops of trees."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple, final

import numpy as np

from add.equations.family import dense_blocks
from add.equations.kinematics import Kinematics, Weights
from add.equations.points import LinearPoints
from add.equations.signals import Signal
from add.equations.term import NO_INPUTS, Constraint, Entries
from add.equations.tree_embedding import TiedNodes
from add.kernels.joint_laws import loop_curvature, loop_rows
from add.linalg.pattern import add_product
from add.typing import FloatArray, IntArray


class Places(NamedTuple):
    """Places of derivatives: G by ``row`` (equation) and ``dof``, those of G^T mu by ``left`` and ``right``."""

    row: IntArray
    dof: IntArray
    left: IntArray = NO_INPUTS
    right: IntArray = NO_INPUTS


class Holonomic(Constraint):
    """Equations c(q; theta, t) = 0 that are known by c, G = dc/dq and the derivative of G^T mu."""

    @property
    @abstractmethod
    def places(self) -> Places:
        """Places of the entries."""

    @abstractmethod
    def evaluated(self, kin: Kinematics, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return c (n_rows,) and the entries of G."""

    def curvature(self, kin: Kinematics, mu: FloatArray, theta: FloatArray) -> FloatArray:
        """Return the entries of d(G^T mu)/dq; none of equations that are linear."""
        return np.zeros(0)

    @final
    def pattern(self, first: int) -> tuple[IntArray, IntArray]:
        """Return the places of G (multiplier rows), G^T (multiplier columns) and the curvature."""
        row, dof, left, right = self.places
        return np.concatenate([first + row, dof, left]), np.concatenate([dof, first + row, right])

    @final
    def residual(self, kin: Kinematics, mu: FloatArray, theta: FloatArray, out: FloatArray, rows: FloatArray) -> None:
        """Add G^T mu and c."""
        c, g = self.evaluated(kin, theta)
        rows += c
        add_product(self.places.dof, self.places.row, g, mu, out)

    @final
    def jacobian(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray
    ) -> None:
        """Add G in both places and the derivative of G^T mu."""
        g = self.evaluated(kin, theta)[1]
        bent = weights.q * self.curvature(kin, mu, theta) if weights.q else np.zeros(self.places.left.size)
        np.add.at(data, slots, np.concatenate([weights.q * g, weights.multiplier * g, bent]))


@final
@dataclass(frozen=True)
class LinkLoops(Holonomic):
    """Rows of `add.kernels.joint_laws` between two frames each; mu are forces [N] and torques [N m].

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

    @cached_property
    def places(self) -> Places:
        """Blocks of twelve."""
        dofs = (self.frames[:, :, None] + np.arange(6)).reshape(-1, 12)
        row = np.repeat(np.arange(self.n_rows), 12)
        return Places(row, dofs.ravel(), *dense_blocks(dofs))

    def evaluated(self, kin: Kinematics, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return c (m,) and G (12 m,)."""
        c, G = np.empty(self.n_rows), np.empty((self.n_rows, 12))
        length = np.where(self.length >= 0, theta[self.length], 0.0)
        loop_rows(self.kind, self.frames, self.axes, length, kin.q, c, G)
        return c, G.ravel()

    def curvature(self, kin: Kinematics, mu: FloatArray, theta: FloatArray) -> FloatArray:
        """Return the blocks of all rows (144 m,)."""
        H = np.empty((self.n_rows, 12, 12))
        loop_curvature(self.kind, self.frames, self.axes, mu, kin.q, H)
        return H.ravel()

    def by_numbers(self, kin: Kinematics, mu: FloatArray, theta: FloatArray) -> Entries:
        """See `Constraint.by_numbers`."""
        rows = np.flatnonzero(self.length >= 0)
        return Entries(kin.q.size + rows, self.length[rows], -np.ones(rows.size))


class Sums(NamedTuple):
    """Sums of coordinates, one for each equation: equation, coordinate and index in theta of the factor, -1 for one."""

    row: IntArray
    dof: IntArray
    factor: IntArray

    def factors(self, theta: FloatArray) -> FloatArray:
        """Return the factors (e,)."""
        return np.where(self.factor >= 0, theta[self.factor], 1.0)

    def of(self, values: FloatArray, n: int) -> FloatArray:
        """Return the sums (n,) of values by entry."""
        return np.bincount(self.row, values, n).astype(float)


@final
@dataclass(frozen=True)
class JointCouplings(Holonomic):
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

    @cached_property
    def places(self) -> Places:
        """Entries of y, then those of x, and pairs of these."""
        (left, right), y, x = self._pairs, self.y, self.x
        return Places(np.append(y.row, x.row), np.append(y.dof, x.dof), x.dof[left], x.dof[right])

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

    def evaluated(self, kin: Kinematics, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return c (m,) and G by y and by x."""
        value, slope, _ = (self._powers(kin, theta) * self._numbers(theta)).sum(axis=2)
        by_y, by_x = self.y.factors(theta), self.x.factors(theta)
        c = self.y.of(by_y * kin.q[self.y.dof], self.n_rows) - self.start[:, 0] - value
        return c, np.append(by_y, -by_x * slope[self.x.row])

    def curvature(self, kin: Kinematics, mu: FloatArray, theta: FloatArray) -> FloatArray:
        """Return it by the pairs of x."""
        bend = (self._powers(kin, theta)[2] * self._numbers(theta)).sum(axis=1)
        by_x, (left, right) = self.x.factors(theta), self._pairs
        return np.asarray(-(mu * bend)[self.x.row[left]] * by_x[left] * by_x[right])

    def by_numbers(self, kin: Kinematics, mu: FloatArray, theta: FloatArray) -> Entries:
        """See `Constraint.by_numbers`."""
        powers, by_x, x, y, n = self._powers(kin, theta), self.x.factors(theta), self.x, self.y, kin.q.size
        _, slope, bend = (powers * self._numbers(theta)).sum(axis=2)
        left, right = self._pairs
        parts = (
            (n + np.arange(self.n_rows)[:, None], self.coefficients, -powers[0]),
            (x.dof[:, None], self.coefficients[x.row], -by_x[:, None] * (mu[:, None] * powers[1])[x.row]),
            (n + y.row, y.factor, kin.q[y.dof]),
            (y.dof, y.factor, mu[y.row]),
            (n + x.row, x.factor, -slope[x.row] * kin.q[x.dof]),
            (x.dof, x.factor, -(mu * slope)[x.row]),
            (x.dof[left], x.factor[right], -(mu * bend)[x.row[left]] * by_x[left] * kin.q[x.dof[right]]),
        )
        flat = ([one.ravel() for one in np.broadcast_arrays(*part)] for part in parts)
        place, number, value = (np.concatenate(own) for own in zip(*flat, strict=True))
        there = number >= 0
        return Entries(place[there], number[there], value[there])


@final
@dataclass(frozen=True)
class TiedPoints(Holonomic):
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

    def points(self, q: FloatArray) -> FloatArray:
        """Return the places (k, 3) of the nodes."""
        return q[self._dofs].reshape(-1, 3)

    @cached_property
    def places(self) -> Places:
        """One entry a row by the nodes, then blocks by y."""
        y, rows = self.first + self._moved, np.arange(self.n_rows)
        row, dof = np.append(rows, np.repeat(rows, y.size)), np.append(self._dofs, np.tile(y, rows.size))
        return Places(row, dof, *dense_blocks(y[None]))

    def evaluated(self, kin: Kinematics, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return x - Phi and G."""
        places, by = self.frame.place(self._own(kin.q), theta)
        return kin.q[self._dofs] - places, np.append(np.ones(self.n_rows), -by[:, self._moved])

    def curvature(self, kin: Kinematics, mu: FloatArray, theta: FloatArray) -> FloatArray:
        """Return it by y."""
        moved = np.ix_(self._moved, self._moved)
        return np.asarray(-self.frame.curvature(self._own(kin.q), theta, mu)[moved]).ravel()

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
class PointConstraint(Holonomic):
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

    @cached_property
    def places(self) -> Places:
        """Places of the entries of the points."""
        return Places(*self.points.entries()[:2])

    def evaluated(self, kin: Kinematics, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return x - p and its slopes."""
        p = np.einsum("r,pri->pi", self.signal.weights(kin.t), theta[self.rows])
        return (self.points.gather(kin.q) - p).ravel(), self.points.entries()[2]

    def by_numbers(self, kin: Kinematics, mu: FloatArray, theta: FloatArray) -> Entries:
        """See `Constraint.by_numbers`."""
        place = kin.q.size + np.arange(self.n_rows).reshape(-1, 1, 3)
        values = -self.signal.weights(kin.t)[:, None]
        return Entries(*(part.ravel() for part in np.broadcast_arrays(place, self.rows, values)))
