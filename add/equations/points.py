"""Points and frames on bodies: what contacts, constraints, markers and objectives are written over.

`LiftedStates` are many states of motion on the rows of X at once.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import NamedTuple, final

import numpy as np

from add.equations.kinematics import Kinematics
from add.equations.lift import Lift
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class LiftedStates:
    """k states of motion on the rows of X, and the derivatives of the lift there.

    Attributes
    ----------
    lift : Lift
    q, u : (k, n)
        The states.
    theta : (n_theta,)
    x, v : (k, n_x)
        X and V.
    p : tuple of (k, m, n), dPhi/dq of each embedding
    """

    lift: Lift
    q: FloatArray
    u: FloatArray
    theta: FloatArray
    x: FloatArray
    v: FloatArray
    p: tuple[FloatArray, ...]

    @classmethod
    def at(cls, lift: Lift, q: FloatArray, v: FloatArray, theta: FloatArray) -> "LiftedStates":
        """Return k states (k, n) lifted."""
        x, blocks = np.empty((2, q.shape[0], lift.rows.n)), []
        x[:, :, lift.same] = q[:, : lift.n_same], v[:, : lift.n_same]
        for e, dofs, rows, _ in lift.blocks:
            x[0][:, rows], block = e.place_over(q[:, dofs], theta)
            x[1][:, rows] = (block @ v[:, dofs, None])[:, :, 0]
            blocks.append(block)
        return cls(lift, q, v, theta, x[0], x[1], tuple(blocks))

    def push(self, q_dot: FloatArray, v_dot: FloatArray, theta_dot: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the tangents (k, c, n_x) of X and V, X_dot = P q_dot, V_dot = P v_dot + Q q_dot, and theta's share.

        Parameters
        ----------
        q_dot, v_dot : (k, c, n)
        theta_dot : (c, n_theta)
        """
        n = self.lift.n_same
        x_dot, rate_dot = np.empty((2, *q_dot.shape[:2], self.lift.rows.n))
        x_dot[:, :, self.lift.same], rate_dot[:, :, self.lift.same] = q_dot[:, :, :n], v_dot[:, :, :n]
        for (e, dofs, rows, _), p in zip(self.lift.blocks, self.p, strict=True):
            by_q, by_v, across = q_dot[:, :, dofs], v_dot[:, :, dofs], p.transpose(0, 2, 1)
            bent = e.rates_over(self.q[:, dofs], self.u[:, dofs], self.theta).transpose(0, 2, 1)
            place, rate = by_q @ across, by_v @ across + by_q @ bent
            along = theta_dot[:, e.parameters]
            if along.any():
                by_place, by_rate = e.by_parameters_over(self.q[:, dofs], self.u[:, dofs], self.theta)
                place, rate = place + along @ by_place.transpose(0, 2, 1), rate + along @ by_rate.transpose(0, 2, 1)
            x_dot[:, :, rows], rate_dot[:, :, rows] = place, rate
        return x_dot, rate_dot


class Along(NamedTuple):
    """Coordinates, velocities and numbers that points depend on: values, tangents or cotangents of q, v and theta."""

    q: FloatArray
    v: FloatArray
    theta: FloatArray


class PointMap(ABC):
    """World points x(q, theta) carried by bodies and their velocities v(q, q_dot, theta), with both derivatives."""

    @property
    @abstractmethod
    def n_points(self) -> int:
        """Number of points."""

    @property
    @abstractmethod
    def numbers(self) -> IntArray:
        """Indices of the numbers of theta that the points may depend on."""

    @abstractmethod
    def points(self, kin: Kinematics, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return positions and velocities (n_points, 3)."""

    @abstractmethod
    def vjp(self, kin: Kinematics, theta: FloatArray, x_bar: FloatArray, xv_bar: FloatArray, out: Along) -> None:
        """Add to ``out`` the cotangents for those of positions and velocities (n_points, 3)."""

    @abstractmethod
    def points_over(self, q: FloatArray, v: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return positions and velocities (k, n_points, 3) in k states; q and v (k, n)."""

    @abstractmethod
    def jvp_over(self, at: Along, dot: Along) -> tuple[FloatArray, FloatArray]:
        """Return the tangents (k, c, n_points, 3) of positions and velocities in k states along c directions.

        Parameters
        ----------
        at : q and v (k, n), theta (n_theta,)
        dot : of q and v (k, c, n), of theta (c, n_theta)
        """

    @abstractmethod
    def select(self, rows: IntArray) -> "PointMap":
        """Return the map of some of the points."""


class LinearPoints(PointMap):
    """Points that are fixed combinations of nodes, x = J q with a constant J; velocities are J v."""

    @abstractmethod
    def gather(self, vector: FloatArray) -> FloatArray:
        """Return J times vectors (n, ...), as (n_points, 3, ...)."""

    @abstractmethod
    def pull(self, force: FloatArray, out: FloatArray) -> None:
        """Add J^T f to ``out`` (n,)."""

    @abstractmethod
    def entries(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Return J as (rows 3 point + axis, cols, values)."""

    @final
    @property
    def numbers(self) -> IntArray:
        """None."""
        return np.zeros(0, dtype=np.int64)

    @final
    def points(self, kin: Kinematics, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return positions and velocities (n_points, 3); theta is not read."""
        return self.gather(kin.q), self.gather(kin.v)

    @final
    def points_over(self, q: FloatArray, v: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return positions and velocities (k, n_points, 3) in k states."""
        return np.moveaxis(self.gather(q.T), 2, 0), np.moveaxis(self.gather(v.T), 2, 0)

    @final
    def jvp_over(self, at: Along, dot: Along) -> tuple[FloatArray, FloatArray]:
        """Return J q_dot and J v_dot (k, c, n_points, 3)."""
        x, rate = (np.moveaxis(self.gather(np.moveaxis(part, 2, 0)), (2, 3), (0, 1)) for part in dot[:2])
        return x, rate

    @final
    def vjp(self, kin: Kinematics, theta: FloatArray, x_bar: FloatArray, xv_bar: FloatArray, out: Along) -> None:
        """Add J^T x_bar and J^T xv_bar."""
        self.pull(x_bar, out.q)
        self.pull(xv_bar, out.v)


@final
@dataclass(frozen=True)
class NodePoints(LinearPoints):
    """The points are nodes: J selects.

    Attributes
    ----------
    nodes : (n_points,) nodes of the system
    """

    nodes: IntArray
    _dofs: IntArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_dofs", 3 * self.nodes[:, None] + np.arange(3))

    @property
    def n_points(self) -> int:
        """Number of points."""
        return self.nodes.size

    def gather(self, vector: FloatArray) -> FloatArray:
        """Return the nodes' entries."""
        return vector.reshape(-1, 3, *vector.shape[1:]).take(self.nodes, axis=0)

    def select(self, rows: IntArray) -> "NodePoints":
        """Return the map of some of the points."""
        return NodePoints(self.nodes[rows])

    def pull(self, force: FloatArray, out: FloatArray) -> None:
        """Add the forces to their nodes; a node may occur once."""
        out.reshape(-1, 3)[self.nodes] += force

    def entries(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Return the identity at the nodes."""
        return np.arange(3 * self.nodes.size), self._dofs.ravel(), np.ones(3 * self.nodes.size)


@final
@dataclass(frozen=True)
class WeightedPoints(LinearPoints):
    """Every point is a weighted sum of nodes: x_p = sum_k w_pk x_nodes[p, k].

    Barycentric points of elements and means of patches; rows are padded with weight zero.

    Attributes
    ----------
    nodes : (n_points, k) nodes of the system
    weights : (n_points, k)
    """

    nodes: IntArray
    weights: FloatArray

    @property
    def n_points(self) -> int:
        """Number of points."""
        return self.nodes.shape[0]

    def gather(self, vector: FloatArray) -> FloatArray:
        """Return the weighted sums."""
        return np.einsum("pk,pki...->pi...", self.weights, vector.reshape(-1, 3, *vector.shape[1:])[self.nodes])

    def select(self, rows: IntArray) -> "WeightedPoints":
        """Return the map of some of the points."""
        return WeightedPoints(self.nodes[rows], self.weights[rows])

    def pull(self, force: FloatArray, out: FloatArray) -> None:
        """Add the forces' shares to the nodes."""
        shares = self.weights[:, :, None] * force[:, None, :]
        np.add.at(out.reshape(-1, 3), self.nodes.ravel(), shares.reshape(-1, 3))

    def entries(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Return the weights."""
        p, k = self.nodes.shape
        shape = (p, k, 3)
        rows = np.broadcast_to(3 * np.arange(p)[:, None, None] + np.arange(3), shape)
        cols = np.broadcast_to(3 * self.nodes[:, :, None] + np.arange(3), shape)
        return rows.ravel(), cols.ravel(), np.broadcast_to(self.weights[:, :, None], shape).ravel()


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
        of_bodies = [e.parameters for e, *_ in self.lift.blocks]
        return np.unique(np.concatenate([self.inner.numbers, *of_bodies]))

    def points(self, kin: Kinematics, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return positions and velocities (n_points, 3)."""
        return self.inner.points(self.lift.kinematics(kin, theta), theta)

    def points_over(self, q: FloatArray, v: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return positions and velocities (k, n_points, 3) in k states."""
        at = LiftedStates.at(self.lift, q, v, theta)
        return self.inner.points_over(at.x, at.v, theta)

    def jvp_over(self, at: Along, dot: Along) -> tuple[FloatArray, FloatArray]:
        """Return the tangents (k, c, n_points, 3) of positions and velocities in k states along c directions."""
        lifted = LiftedStates.at(self.lift, *at)
        moved = Along(*lifted.push(*dot), dot.theta)
        return self.inner.jvp_over(Along(lifted.x, lifted.v, at.theta), moved)

    def vjp(self, kin: Kinematics, theta: FloatArray, x_bar: FloatArray, xv_bar: FloatArray, out: Along) -> None:
        """Add the cotangents: q_bar = P^T X_bar + Q^T V_bar, v_bar = P^T V_bar."""
        at, lift = self.lift.at(kin, theta), self.lift
        place_bar, rate_bar = np.zeros(lift.rows.n), np.zeros(lift.rows.n)
        self.inner.vjp(at.kin, theta, x_bar, xv_bar, Along(place_bar, rate_bar, out.theta))
        lift.pull(at, place_bar, out.q)
        lift.pull(at, rate_bar, out.q, at.q)
        lift.pull(at, rate_bar, out.v)
        if lift.has_parameters:
            lift.parameter_vjp(kin, theta, kin.v, place_bar, rate_bar, out.theta)

    def select(self, rows: IntArray) -> "LiftedPoints":
        """Return the map of some of the points."""
        return LiftedPoints(self.inner.select(rows), self.lift)
