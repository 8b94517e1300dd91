"""A kind of body of its own: a rod that resists stretch and bending, nodes on a line."""

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, final

import numpy as np
from pydantic import Field

from add.bodies import MassSpringBody
from add.equations.family import Family, Kind
from add.equations.family_term import FamilyTerm
from add.extensions import BodyExtension, Count, NonNegative, Positive
from add.kernels.arena import FAMILY, FIELD, Floats, Ints, add_entry, unpacker
from add.kernels.caching import njit
from add.scene.build.numbers import SceneParameter
from add.scene.build.rigid_bodies import pose_numbers


class _Arrays(NamedTuple):
    nodes: Ints
    per_unit: Floats
    stiffness: Ints


_own = unpacker(_Arrays)


@njit(**FAMILY)
def _curvature(q, node, d):
    return q[3 * node - 3 + d] - 2.0 * q[3 * node + d] + q[3 * node + 3 + d]


@njit(**FAMILY)
def _forces(arena, k, at, replay, rows, out):
    own = _own(arena, arena.families[k, FIELD])
    ei = at.theta[own.stiffness[0]] * own.per_unit[0]
    for node in own.nodes:
        for d in range(3):
            pull = ei * _curvature(at.q, node, d)
            out[3 * node - 3 + d] += pull
            out[3 * node + d] -= 2.0 * pull
            out[3 * node + 3 + d] += pull
    return rows


@njit(**FAMILY)
def _jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
    own = _own(arena, arena.families[k, FIELD])
    value = weight_q * at.theta[own.stiffness[0]] * own.per_unit[0]
    shares = (1.0, -2.0, 1.0)
    for i in range(own.nodes.size):
        for d in range(3):
            for a in range(3):
                for b in range(3):
                    data[slots[((3 * i + d) * 3 + a) * 3 + b]] += value * shares[a] * shares[b]


@njit(**FAMILY)
def _parameters(arena, k, at, rows, forward, along, out):
    own = _own(arena, arena.families[k, FIELD])
    for node in own.nodes:
        for d in range(3):
            bent = own.per_unit[0] * _curvature(at.q, node, d)
            add_entry(forward, 3 * node - 3 + d, own.stiffness[0], bent, along, out)
            add_entry(forward, 3 * node + d, own.stiffness[0], -2.0 * bent, along, out)
            add_entry(forward, 3 * node + 3 + d, own.stiffness[0], bent, along, out)


KIND = Kind("bending_of_rods", _Arrays, _forces, _parameters, _jacobian)


@final
@dataclass(frozen=True)
class Bending(FamilyTerm):
    """r = dE/dq of E = sum_i EI/2 |x_(i-1) - 2 x_i + x_(i+1)|^2 / h^3, of small strains at nodes a distance h apart."""

    depends: ClassVar[str] = "q"

    nodes: np.ndarray
    spacing: float
    stiffness: int

    def family(self):
        """Return its family: nine entries a node and axis."""
        dofs = 3 * (self.nodes[:, None] + np.arange(-1, 2)) + np.arange(3)[:, None, None]  # axis, node, neighbour
        dofs = dofs.transpose(1, 0, 2).reshape(-1, 3)
        rows, cols = np.repeat(dofs, 3, axis=1).ravel(), np.tile(dofs, 3).ravel()
        arrays = _Arrays(self.nodes, np.array([self.spacing**-3]), np.array([self.stiffness]))
        return Family(KIND, arrays, (rows, cols))


@final
@dataclass(frozen=True)
class RodBody(MassSpringBody):
    """A line of nodes with springs between neighbours, and bending."""

    def parameters(self):
        """Return those of springs, and the bending stiffness EI."""
        return [*super().parameters(), (f"bodies.{self.name}.bending", (), "N m^2")]

    def parts(self, at):
        """Return those of springs, and bending."""
        nodes = self.first_node(at) + np.arange(1, self.points.shape[0] - 1)
        spacing = float(np.linalg.norm(self.points[1] - self.points[0]))
        stiffness = at.parameters[f"bodies.{self.name}.bending"].start
        return [*super().parts(at), Bending(nodes, spacing, stiffness)]


class Rod(BodyExtension):
    """A straight rod along x of its frame, from the origin on."""

    type: Literal["thin-rod"] = Field("thin-rod", description="kind of body")
    length: Positive = Field(description="length [m]")
    segments: Count = Field(10, description="parts between nodes")
    mass: Positive = Field(description="mass [kg]")
    stretching: Positive = Field(description="EA [N]")
    bending: Positive = Field(description="EI [N m^2]")
    damping: NonNegative = Field(0.0, description="damping of the springs [N s/m]")

    def body(self, name, driven):
        """Return the body and its numbers."""
        at, n = f"bodies.{name}", self.segments + 1
        points = np.linspace([0.0, 0.0, 0.0], [self.length, 0.0, 0.0], n)
        edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
        shares = np.full(n, 1.0 / self.segments)
        shares[[0, -1]] *= 0.5
        spacing = self.length / self.segments
        numbers = [
            SceneParameter(f"{at}.{key}", np.array(value), unit, ((f"{at}.{block}", factor),))
            for key, value, unit, block, factor in (
                ("mass", self.mass, "kg", "mass", 1.0),
                ("stretching", self.stretching, "N", "stiffness", 1.0 / spacing),
                ("bending", self.bending, "N m^2", "bending", 1.0),
                ("damping", self.damping, "N s/m", "damping", 1.0),
            )
        ]
        lengths = SceneParameter(f"{at}.lengths", np.full(n - 1, spacing), "m", ((f"{at}.lengths", 1.0),), fixed=True)
        return RodBody(name, points, shares, edges), [*pose_numbers(at, self), *numbers, lengths], []
