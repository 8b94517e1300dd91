"""Inertia and gravity of a tree of links, in its own coordinates."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import final

import numpy as np

from add.equations.kinematics import Kinematics, Weights
from add.equations.term import Term
from add.kernels import tree_dynamics as kernel
from add.kernels.trees import Tree
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class TreeInertia(Term):
    """r = M(q) a + bias(q, v) by the recursion of Newton and Euler; see `add.kernels.tree_dynamics`.

    Attributes
    ----------
    tree : Tree
    start, n : int
        The tree's coordinates in q.
    """

    tree: Tree
    start: int
    n: int
    _indices: IntArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        tree = self.tree
        own = np.concatenate([tree.mass[:, None], tree.centre, tree.inertia, tree.placement], axis=1)
        object.__setattr__(self, "_indices", np.concatenate([own.ravel(), tree.armature, tree.gravity]))

    def pattern(self) -> tuple[IntArray, IntArray]:
        """Return the full block of the tree's coordinates."""
        return self._pattern

    @cached_property
    def _pattern(self) -> tuple[IntArray, IntArray]:
        rows, cols = np.indices((self.n, self.n)) + self.start
        return rows.ravel(), cols.ravel()

    def residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add the generalised forces of inertia, less those of gravity."""
        kernel.tree_residual(self.tree, theta, self.start, self.n, kin.q, kin.v, kin.a, out)

    def jacobian(self, kin: Kinematics, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray) -> None:
        """Add the weighted derivatives."""
        block = np.zeros((self.n, self.n))
        factors = (float(weights.q), float(weights.v), float(weights.a))
        kernel.tree_jacobian(self.tree, theta, self.start, self.n, kin.q, kin.v, kin.a, factors, block)
        np.add.at(data, slots, block.ravel())

    def _cotangents(self, kin: Kinematics, theta: FloatArray, lam: FloatArray) -> FloatArray:
        """Return lam^T dr by the numbers of `_indices`."""
        own = np.zeros((self.tree.parent.size, 16))
        armature, gravity = np.zeros(self.tree.element.size), np.zeros(3)
        kernel.tree_parameters(
            self.tree, theta, self.start, self.n, kin.q, kin.v, kin.a, lam, own, armature, gravity
        )  # fmt: skip
        return np.concatenate([own.ravel(), armature, gravity])

    def parameter_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> None:
        """Add the cotangents of masses, centres, inertias, placements, armatures and g."""
        there = self._indices >= 0
        np.add.at(out, self._indices[there], self._cotangents(kin, theta, lam)[there])

    def parameter_jvp(self, kin: Kinematics, theta: FloatArray, theta_dot: FloatArray, out: FloatArray) -> None:
        """Add the tangent along ``theta_dot``, row by row."""
        along = np.where(self._indices >= 0, theta_dot[self._indices], 0.0)
        if along.any():
            lam = np.zeros_like(kin.q)
            for row in range(self.start, self.start + self.n):
                lam[row] = 1.0
                out[row] += self._cotangents(kin, theta, lam) @ along
                lam[row] = 0.0

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return -sum m g . y, y the places of the centres of mass [J]."""
        return float(kernel.tree_energy(self.tree, theta, self.start, self.n, kin.q, kin.v, np.zeros(6))[1])

    def kinetic_energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the kinetic energy of links and armatures [J]."""
        return float(kernel.tree_energy(self.tree, theta, self.start, self.n, kin.q, kin.v, np.zeros(6))[0])

    def momentum(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return momentum [kg m/s] and angular momentum about the world's origin [kg m^2/s] of the links, (6,)."""
        out = np.zeros(6)
        kernel.tree_energy(self.tree, theta, self.start, self.n, kin.q, kin.v, out)
        return out
