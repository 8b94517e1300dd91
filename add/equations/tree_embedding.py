"""The links of a tree as rows of X, and nodes that are fixed in a frame of a tree."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import final

import numpy as np

from add.equations.initial import Pose, RigidPose
from add.equations.lift import Embedding
from add.kernels import tree_map as kernel
from add.kernels.tree_pullback import point_parameters
from add.kernels.trees import Motion, Tree, tree_motion
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
    placed : elements and columns of the numbers of the placements
    """

    tree: Tree
    links: IntArray
    n: int
    placed: tuple[IntArray, IntArray] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "placed", np.nonzero(self.tree.placement >= 0))

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
        return self.tree.placement[self.placed]

    def by_parameters(self, q: FloatArray, u: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return dPhi/dtheta and d(P u)/dtheta."""
        shape = (self.n_rows, *self.tree.placement.shape)
        place, rate = np.empty(shape), np.empty(shape)
        kernel.link_parameters(self.tree, theta, self.links, q, u, place, rate)
        rows, columns = self.placed
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
        rows, columns = self.placed
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
    """Nodes in the frame (x, R) of one element of a tree: x_i = x + R X_i; see `add.kernels.tree_map`.

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

    @cached_property
    def elements(self) -> IntArray:
        """The element of each node (k,)."""
        return np.repeat(self.frame.links, len(self.rest))

    def _moving(self, q: FloatArray, v: FloatArray, theta: FloatArray) -> tuple[Tree, Motion]:
        """Return the tree and its state of motion."""
        return self.frame.tree, tree_motion(self.frame.tree, theta, q, v, np.zeros_like(q))

    def _placed(self, q: FloatArray, v: FloatArray, theta: FloatArray, rates: bool) -> tuple[FloatArray, ...]:
        """Return Phi, P, and Q if asked for."""
        x, shape = np.empty(self.n_rows), (self.n_rows, q.size)
        p, by_rate = np.empty(shape), np.empty(shape if rates else (0, 0))
        kernel.fill_points(*self._moving(q, v, theta), self.elements, self.rest, x, p, by_rate)
        return x, p, by_rate

    def place(self, q: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Phi and P."""
        x, p, _ = self._placed(q, np.zeros_like(q), theta, False)
        return x, p

    def rates(self, q: FloatArray, v: FloatArray, theta: FloatArray) -> FloatArray:
        """Return Q = d(P v)/dq."""
        return self._placed(q, v, theta, True)[2]

    def curvature(self, q: FloatArray, theta: FloatArray, force: FloatArray) -> FloatArray:
        """Return sum_i force_i d2Phi_i/dq2."""
        out = np.zeros((q.size, q.size))
        kernel.add_point_curvature(
            *self._moving(q, np.zeros_like(q), theta), self.elements, self.rest, q, 1.0, force, out
        )
        return out

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
        tree, motion = self._moving(q, u, theta)
        place, rate = np.empty((2, self.n_rows, *tree.placement.shape))
        point_parameters(tree, theta, motion, self.elements, self.rest, place, rate)
        rows, columns = self.frame.placed
        return place[:, rows, columns], rate[:, rows, columns]
