"""The links of a tree as rows of X."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import final

import numpy as np

from add.equations.initial import Pose, RigidPose
from add.equations.lift import Embedding
from add.kernels import tree_map as kernel, tree_map_over as over
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
        over.place_links_over(self.tree, theta, self.links, np.ascontiguousarray(q), x, p)
        return x, p

    def rates_over(self, q: FloatArray, v: FloatArray, theta: FloatArray) -> FloatArray:
        """Return Q at k states."""
        out = np.empty((q.shape[0], self.n_rows, self.n))
        over.link_rates_over(self.tree, theta, self.links, np.ascontiguousarray(q), np.ascontiguousarray(v), out)
        return out

    def by_parameters_over(self, q: FloatArray, u: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return dPhi/dtheta and d(P u)/dtheta at k places."""
        shape = (q.shape[0], self.n_rows, *self.tree.placement.shape)
        place, rate = np.empty(shape), np.empty(shape)
        q, u = np.ascontiguousarray(q), np.ascontiguousarray(u)
        over.link_parameters_over(self.tree, theta, self.links, q, u, place, rate)
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

    def jvp(self, theta: FloatArray, theta_dot: FloatArray, q_dot: FloatArray, v_dot: FloatArray) -> None:
        """Fill the tree's part of the tangents."""
        if self.base is not None:
            self.base.jvp(theta, theta_dot, q_dot, v_dot)
        q_dot[self._own], v_dot[self._own] = theta_dot[self.value], theta_dot[self.rate]

    def vjp(self, theta: FloatArray, q_bar: FloatArray, v_bar: FloatArray, out: FloatArray) -> None:
        """Add the cotangent of theta to ``out``."""
        if self.base is not None:
            self.base.vjp(theta, q_bar, v_bar, out)
        np.add.at(out, self.value, q_bar[self._own])
        np.add.at(out, self.rate, v_bar[self._own])
