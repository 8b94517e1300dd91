"""Gravity on soft bodies and on masses attached to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import numpy as np

from add.equations.family import Family, Kind
from add.equations.kinematics import Kinematics, Weights
from add.equations.term import Term
from add.kernels.arena import FAMILY, FIELD, Floats, Ints, unpacker
from add.kernels.caching import njit
from add.typing import FloatArray, IntArray


@njit(cache=True)
def gravity_residual(theta, nodes, mass, density, gravity, out):
    """Add -m g to ``out`` (n,); see `Gravity` for the arrays."""
    for k in range(nodes.size):
        m = theta[density[k]] * mass[k]
        for i in range(3):
            out[3 * nodes[k] + i] -= m * theta[gravity[i]]


@njit(cache=True)
def gravity_parameter_vjp(theta, nodes, mass, density, gravity, lam, out):
    """Add lam^T dr/dtheta to ``out`` (n_theta,)."""
    for k in range(nodes.size):
        m, work = theta[density[k]] * mass[k], 0.0
        for i in range(3):
            at_node = lam[3 * nodes[k] + i]
            out[gravity[i]] -= m * at_node
            work += at_node * theta[gravity[i]]
        out[density[k]] -= mass[k] * work


class _Arrays(NamedTuple):
    nodes: Ints
    mass: Floats
    density: Ints
    gravity: Ints


_own = unpacker(_Arrays)


@njit(**FAMILY)
def _forces(arena, k, at, replay, rows, out):
    own = _own(arena, arena.families[k, FIELD])
    gravity_residual(at.theta, own.nodes, own.mass, own.density, own.gravity, out)
    return rows


@njit(**FAMILY)
def _parameters(arena, k, at, rows, lam, out):
    own = _own(arena, arena.families[k, FIELD])
    gravity_parameter_vjp(at.theta, own.nodes, own.mass, own.density, own.gravity, lam, out)


KIND = Kind("gravity", _Arrays, _forces, _parameters)


@final
@dataclass(frozen=True)
class Gravity(Term):
    """r = -m g at every node, m = theta[density] * mass (row sums of the mass matrix).

    Attributes
    ----------
    nodes : (k,)
    mass : (k,)
        Mass at unit density [m^3], or weights of a point mass [-].
    density : (k,)
        Index in theta of the density [kg/m^3] or mass [kg].
    gravity : (3,)
        Indices in theta of g [m/s2].
    """

    depends: ClassVar[str] = ""

    nodes: IntArray
    mass: FloatArray
    density: IntArray
    gravity: IntArray

    def pattern(self) -> tuple[IntArray, IntArray]:
        """Return nothing: the force does not depend on the motion."""
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)

    def family(self) -> Family:
        """See `Term.family`."""
        return Family(KIND, _Arrays(self.nodes, self.mass, self.density, self.gravity), self.pattern())

    def residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add -m g."""
        gravity_residual(theta, self.nodes, self.mass, self.density, self.gravity, out)

    def jacobian(self, kin: Kinematics, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray) -> None:
        """Add nothing."""

    def parameter_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> None:
        """Add the cotangents of densities, masses and g."""
        gravity_parameter_vjp(theta, self.nodes, self.mass, self.density, self.gravity, lam, out)

    def parameter_jvp(self, kin: Kinematics, theta: FloatArray, theta_dot: FloatArray, out: FloatArray) -> None:
        """Add the tangent along ``theta_dot``."""
        force = np.outer(theta_dot[self.density] * self.mass, theta[self.gravity])
        force += np.outer(theta[self.density] * self.mass, theta_dot[self.gravity])
        np.subtract.at(out.reshape(-1, 3), self.nodes, force)

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return -sum m g . x [J]."""
        height = kin.q.reshape(-1, 3)[self.nodes] @ theta[self.gravity]
        return -float((theta[self.density] * self.mass) @ height)
