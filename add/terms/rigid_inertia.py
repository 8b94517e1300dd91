"""Inertia of rigid bodies, and inertia and gravity of trees of links in their own coordinates."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

from add.equations.family import Family, Kind
from add.equations.family_term import FamilyTerm
from add.equations.kinematics import Kinematics, Weights
from add.equations.term import Term
from add.kernels import rigid_inertia as kernel, tree_dynamics, tree_pullback
from add.kernels.arena import FAMILY, FIELD, Ints, Ints2, unpacker
from add.kernels.caching import njit
from add.kernels.trees import Tree
from add.typing import FloatArray, IntArray


class _Arrays(NamedTuple):
    start: Ints
    mass: Ints
    inertia: Ints2


_own = unpacker(_Arrays)
inertia_residual, inertia_jacobian, inertia_pullback = (
    kernel.inertia_residual, kernel.inertia_jacobian, kernel.inertia_pullback,
)  # fmt: skip


@njit(**FAMILY)
def _forces(arena, k, at, replay, rows, out):
    own = _own(arena, arena.families[k, FIELD])
    inertia_residual(at.theta, own.start, own.mass, own.inertia, at.q, at.v, at.a, out)
    return rows


@njit(**FAMILY)
def _jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
    own = _own(arena, arena.families[k, FIELD])
    inertia_jacobian(
        at.theta, own.start, own.mass, own.inertia, at.q, at.v, at.a, (weight_q, weight_v, weight_a), data, slots
    )


@njit(**FAMILY)
def _parameters(arena, k, at, rows, forward, along, out):
    own = _own(arena, arena.families[k, FIELD])
    if forward:
        inertia_residual(along, own.start, own.mass, own.inertia, at.q, at.v, at.a, out)
    else:
        inertia_pullback(own.start, own.mass, own.inertia, at.q, at.v, at.a, along, out)


KIND = Kind("rigid_inertia", _Arrays, _forces, _parameters, _jacobian)


@final
@dataclass(frozen=True)
class RigidInertia(FamilyTerm):
    """r_x = m a_x and r_w = J_l^T (I_w omega_dot + omega x I_w omega); see `add.kernels.rigid_inertia`.

    Attributes
    ----------
    start : (nb,)
        First coordinate of each body: centre of mass, then rotation vector.
    mass : (nb,)
        Index in theta [kg].
    inertia : (nb, 6)
        Indices in theta of xx, yy, zz, xy, xz, yz about the centre of mass in body axes [kg m^2].
    """

    start: IntArray
    mass: IntArray
    inertia: IntArray

    def family(self) -> Family:
        """Return three diagonal entries and one 3 x 3 block a body."""
        x = self.start[:, None] + np.arange(3)
        w = self.start[:, None] + np.arange(3, 6)
        rows = np.concatenate([x, np.repeat(w, 3, axis=1)], axis=1)
        cols = np.concatenate([x, np.tile(w, (1, 3))], axis=1)
        return Family(KIND, _Arrays(self.start, self.mass, self.inertia), (rows.ravel(), cols.ravel()))

    def kinetic_energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the kinetic energy of all bodies [J]."""
        return float(kernel.rigid_momentum(theta, self.start, self.mass, self.inertia, kin.q, kin.v, np.zeros(6)))

    def momentum(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return momentum [kg m/s] and angular momentum about the world's origin [kg m^2/s], (6,)."""
        out = np.zeros(6)
        kernel.rigid_momentum(theta, self.start, self.mass, self.inertia, kin.q, kin.v, out)
        return out


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
        tree_dynamics.tree_residual(self.tree, theta, self.start, self.n, kin.q, kin.v, kin.a, out)

    def jacobian(self, kin: Kinematics, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray) -> None:
        """Add the weighted derivatives."""
        block = np.zeros((self.n, self.n))
        factors = (float(weights.q), float(weights.v), float(weights.a))
        tree_dynamics.tree_jacobian(self.tree, theta, self.start, self.n, kin.q, kin.v, kin.a, factors, block)
        np.add.at(data, slots, block.ravel())

    def _cotangents(self, kin: Kinematics, theta: FloatArray, lam: FloatArray) -> FloatArray:
        """Return lam^T dr by the numbers of `_indices`."""
        bars = np.zeros((self.tree.parent.size, 16)), np.zeros(self.tree.element.size), np.zeros(3)
        tree_pullback.tree_parameters(self.tree, theta, self.start, self.n, kin.q, kin.v, kin.a, lam, bars)
        return np.concatenate([bar.ravel() for bar in bars])

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
        return float(tree_dynamics.tree_energy(self.tree, theta, self.start, self.n, kin.q, kin.v, np.zeros(6))[1])

    def kinetic_energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the kinetic energy of links and armatures [J]."""
        return float(tree_dynamics.tree_energy(self.tree, theta, self.start, self.n, kin.q, kin.v, np.zeros(6))[0])

    def momentum(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return momentum [kg m/s] and angular momentum about the world's origin [kg m^2/s] of the links, (6,)."""
        out = np.zeros(6)
        tree_dynamics.tree_energy(self.tree, theta, self.start, self.n, kin.q, kin.v, out)
        return out
