"""Gravity on soft bodies and on masses attached to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

from add.equations.family import NO_ENTRIES, Family, Kind
from add.equations.family_term import FamilyTerm
from add.equations.kinematics import Kinematics
from add.kernels.arena import FAMILY, FIELD, Floats, Ints, add_entry, unpacker
from add.kernels.caching import njit
from add.typing import FloatArray, IntArray


class _Arrays(NamedTuple):
    nodes: Ints
    mass: Floats
    density: Ints
    gravity: Ints


_own = unpacker(_Arrays)


@njit(**FAMILY)
def _forces(arena, k, at, replay, rows, out):
    own = _own(arena, arena.families[k, FIELD])
    for i in range(own.nodes.size):
        m = at.theta[own.density[i]] * own.mass[i]
        for d in range(3):
            out[3 * own.nodes[i] + d] -= m * at.theta[own.gravity[d]]
    return rows


@njit(**FAMILY)
def _parameters(arena, k, at, rows, forward, along, out):
    own = _own(arena, arena.families[k, FIELD])
    for i in range(own.nodes.size):
        density, mass = own.density[i], own.mass[i]
        for d in range(3):
            row, g = 3 * own.nodes[i] + d, own.gravity[d]
            add_entry(forward, row, g, -at.theta[density] * mass, along, out)
            add_entry(forward, row, density, -mass * at.theta[g], along, out)


KIND = Kind("gravity", _Arrays, _forces, _parameters)


@final
@dataclass(frozen=True)
class Gravity(FamilyTerm):
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

    def family(self) -> Family:
        """See `Term.family`."""
        return Family(KIND, _Arrays(self.nodes, self.mass, self.density, self.gravity), NO_ENTRIES)

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return -sum m g . x [J]."""
        height = kin.q.reshape(-1, 3)[self.nodes] @ theta[self.gravity]
        return -float((theta[self.density] * self.mass) @ height)
