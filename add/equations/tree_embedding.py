"""The links of a tree as rows of X, and nodes that are fixed in a frame of a tree."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import final

import numpy as np

from add.equations.initial import Pose, RigidPose, skews, turn_slope
from add.equations.lift import Embedding
from add.kernels import tree_map as kernel
from add.kernels.rotation import left_jacobian, rotation_matrix, skew
from add.kernels.trees import Tree
from add.typing import BoolArray, FloatArray, IntArray


@final
@dataclass(frozen=True)
class TreeEmbedding(Embedding):
    """X = origin and rotation vector of the frames of links; see `add.kernels.tree_map`.

    Attributes
    ----------
    tree : Tree
    links : (n_l,) elements
    n : int
        Number of coordinates.
    """

    tree: Tree
    links: IntArray
    n: int
    _placed: tuple[IntArray, IntArray] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_placed", np.nonzero(self.tree.placement >= 0))

    @property
    def n_coordinates(self) -> int:
        """Number of coordinates."""
        return self.n

    @property
    def n_rows(self) -> int:
        """Six a link."""
        return 6 * self.links.size

    def place(self, q: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Phi and P."""
        x, p = np.empty(self.n_rows), np.empty((self.n_rows, self.n))
        kernel.place_links(self.tree, theta, self.links, q, x, p)
        return x, p

    def motion(self, q: FloatArray, v: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Phi and P v."""
        x, rate = np.empty(self.n_rows), np.empty(self.n_rows)
        kernel.move_links(self.tree, theta, self.links, q, v, x, rate)
        return x, rate

    def rates(self, q: FloatArray, v: FloatArray, theta: FloatArray) -> FloatArray:
        """Return Q = d(P v)/dq."""
        out = np.empty((self.n_rows, self.n))
        kernel.link_rates(self.tree, theta, self.links, q, v, out)
        return out

    def curvature(self, q: FloatArray, theta: FloatArray, force: FloatArray) -> FloatArray:
        """Return sum_i force_i d2Phi_i/dq2."""
        out = np.empty((self.n, self.n))
        kernel.link_curvature(self.tree, theta, self.links, q, force, out)
        return out

    @cached_property
    def structure(self) -> BoolArray:
        """Columns of a link's rows: the joints that carry it."""
        carries = np.zeros((self.tree.parent.size, self.n), dtype=bool)
        carries[self.tree.element, self.tree.coordinate] = True
        for element, parent in enumerate(self.tree.parent):
            if parent >= 0:
                carries[element] |= carries[parent]
        return np.repeat(carries[self.links], 6, axis=0)

    @property
    def parameters(self) -> IntArray:
        """Indices of positions and rotation vectors of the placements."""
        return self.tree.placement[self._placed]

    def by_parameters(self, q: FloatArray, u: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return dPhi/dtheta and d(P u)/dtheta."""
        shape = (self.n_rows, *self.tree.placement.shape)
        place, rate = np.empty(shape), np.empty(shape)
        kernel.link_parameters(self.tree, theta, self.links, q, u, place, rate)
        rows, columns = self._placed
        return place[:, rows, columns], rate[:, rows, columns]

    def place_over(self, q: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Phi and P at k places."""
        x, p = np.empty((q.shape[0], self.n_rows)), np.empty((q.shape[0], self.n_rows, self.n))
        kernel.place_links_over(self.tree, theta, self.links, np.ascontiguousarray(q), x, p)
        return x, p

    def rates_over(self, q: FloatArray, v: FloatArray, theta: FloatArray) -> FloatArray:
        """Return Q at k states."""
        out = np.empty((q.shape[0], self.n_rows, self.n))
        kernel.link_rates_over(self.tree, theta, self.links, np.ascontiguousarray(q), np.ascontiguousarray(v), out)
        return out

    def by_parameters_over(self, q: FloatArray, u: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return dPhi/dtheta and d(P u)/dtheta at k places."""
        shape = (q.shape[0], self.n_rows, *self.tree.placement.shape)
        place, rate = np.empty(shape), np.empty(shape)
        q, u = np.ascontiguousarray(q), np.ascontiguousarray(u)
        kernel.link_parameters_over(self.tree, theta, self.links, q, u, place, rate)
        rows, columns = self._placed
        return place[:, :, rows, columns], rate[:, :, rows, columns]


@final
@dataclass(frozen=True)
class TreePose(Pose):
    """Coordinates and their rates as they are in theta, after those of a free base.

    Attributes
    ----------
    start, n : int
        The tree's coordinates.
    base : RigidPose, optional
        Of the first six.
    value, rate : (k,) indices into theta of the others
    """

    start: int
    n: int
    base: RigidPose | None
    value: IntArray
    rate: IntArray

    @property
    def coordinates(self) -> slice:
        """The tree's coordinates."""
        return slice(self.start, self.start + self.n)

    @property
    def _own(self) -> slice:
        return slice(self.start + self.n - self.value.size, self.start + self.n)

    def evaluate(self, theta: FloatArray, q: FloatArray, v: FloatArray) -> None:
        """Fill the tree's part of q0 and v0 (n,)."""
        if self.base is not None:
            self.base.evaluate(theta, q, v)
        q[self._own], v[self._own] = theta[self.value], theta[self.rate]

    @property
    def numbers(self) -> IntArray:
        """Entries of the base, of the coordinates, and of their rates."""
        base = [] if self.base is None else [self.base.numbers]
        return np.concatenate([*base, self.value, self.rate])

    def derivatives(self, theta: FloatArray) -> FloatArray:
        """Return those of the tree's part of q0 and v0 by `numbers` (2, n, k)."""
        k, of_base = self.value.size, self.numbers.size - 2 * self.value.size
        out = np.zeros((2, self.n, of_base + 2 * k))
        if self.base is not None:
            out[:, :6, :of_base] = self.base.derivatives(theta)
        out[0, self.n - k :, of_base : of_base + k] = out[1, self.n - k :, of_base + k :] = np.eye(k)
        return out


@final
@dataclass(frozen=True)
class TiedNodes(Embedding):
    """Nodes in the frame (x, w) of one element of a tree: x_i = x + R(w) X_i.

    With rho_i = R X_i and omega = J_l(w) w',

        P_i = P_x - [rho_i]x Omega,   Omega = J_l P_w,   V_i = x' + omega x rho_i
        Q_i = Q_x - [rho_i]x (T P_w + J_l Q_w) - [omega]x [rho_i]x Omega,   T = d(J_l u)/dw at u = w'

    and the forces f_i curve as the frame's wrench (sum f_i, J_l^T m), m = sum rho_i x f_i, does, with

        P_w^T (d(J_l^T m)/dw + J_l^T sum [f_i]x [rho_i]x J_l) P_w

    added. Numbers move the nodes as coordinates do, by what they move of the frame.

    Attributes
    ----------
    frame : TreeEmbedding
        Of one element.
    rest : (k, 3) X_i in its frame [m]
    """

    frame: TreeEmbedding
    rest: FloatArray

    @property
    def n_coordinates(self) -> int:
        """That of the tree."""
        return self.frame.n_coordinates

    @property
    def n_rows(self) -> int:
        """Three a node."""
        return self.rest.size

    def _arms(self, w: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return rho (k, 3), -[rho]x (k, 3, 3) and J_l (3, 3)."""
        arms = self.rest @ rotation_matrix(w).T
        return arms, -skews(arms), left_jacobian(w)

    def _moved(self, w: FloatArray, by: FloatArray) -> FloatArray:
        """Return the change (3 k, m) of the places by changes (6, m) of the frame."""
        _, crosses, turn = self._arms(w)
        return np.asarray(by[:3] + crosses @ (turn @ by[3:])).reshape(-1, by.shape[1])

    def _rates_moved(self, w: FloatArray, u: FloatArray, by: FloatArray, rates_by: FloatArray) -> FloatArray:
        """Return the change (3 k, m) of the velocities by those (6, m) of frame and rate; ``u`` (3,) is w'."""
        _, crosses, turn = self._arms(w)
        turned, slope = turn @ by[3:], turn_slope(1.0, w, u)
        faster = slope @ by[3:] + turn @ rates_by[3:]
        out = rates_by[:3] + crosses @ faster + skew(turn @ u) @ (crosses @ turned)
        return np.asarray(out).reshape(-1, by.shape[1])

    def place(self, q: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Phi and P."""
        x, p = self.frame.place(q, theta)
        return (x[:3] + self._arms(x[3:])[0]).ravel(), self._moved(x[3:], p)

    def motion(self, q: FloatArray, v: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Phi and P v."""
        x, rate = self.frame.motion(q, v, theta)
        return (x[:3] + self._arms(x[3:])[0]).ravel(), self._moved(x[3:], rate[:, None])[:, 0]

    def rates(self, q: FloatArray, v: FloatArray, theta: FloatArray) -> FloatArray:
        """Return Q = d(P v)/dq."""
        x, p = self.frame.place(q, theta)
        return self._rates_moved(x[3:], p[3:] @ v, p, self.frame.rates(q, v, theta))

    def curvature(self, q: FloatArray, theta: FloatArray, force: FloatArray) -> FloatArray:
        """Return sum_i force_i d2Phi_i/dq2."""
        x, p = self.frame.place(q, theta)
        w, f = x[3:], force.reshape(-1, 3)
        turn, spun = left_jacobian(w), (self.rest @ rotation_matrix(w).T).T @ f
        moment = np.array([spun[1, 2] - spun[2, 1], spun[2, 0] - spun[0, 2], spun[0, 1] - spun[1, 0]])
        wrench = np.concatenate([f.sum(axis=0), turn.T @ moment])
        turned, spun = turn @ p[3:], spun - np.trace(spun) * np.eye(3)
        by_turn = p[3:].T @ turn_slope(-1.0, w, moment) @ p[3:] + turned.T @ spun @ turned
        return np.asarray(self.frame.curvature(q, theta, wrench) + by_turn)

    @property
    def structure(self) -> BoolArray:
        """The coordinates of the joints that carry the frame, for all rows."""
        return np.broadcast_to(self.frame.structure[:1], (self.n_rows, self.n_coordinates))

    @property
    def parameters(self) -> IntArray:
        """Indices of those of the frame."""
        return self.frame.parameters

    def by_parameters(self, q: FloatArray, u: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return dPhi/dtheta and d(P u)/dtheta."""
        x, rate = self.frame.motion(q, u, theta)
        by_place, by_rate = self.frame.by_parameters(q, u, theta)
        return self._moved(x[3:], by_place), self._rates_moved(x[3:], rate[3:], by_place, by_rate)
