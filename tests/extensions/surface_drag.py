"""A force of its own: quadratic drag of the air on the surface of a soft body."""

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, final

import numpy as np
from pydantic import Field

from add.equations.family import Family, Kind
from add.equations.family_term import FamilyTerm
from add.extensions import CouplingExtension, InputError, Name, NonNegative
from add.kernels.arena import FAMILY, FIELD, Floats, Ints, add_entry, unpacker
from add.kernels.caching import njit


class _Arrays(NamedTuple):
    nodes: Ints
    areas: Floats
    coefficient: Ints


_own = unpacker(_Arrays)


@njit(**FAMILY)
def _speed(v, i):
    return np.sqrt(v[i] ** 2 + v[i + 1] ** 2 + v[i + 2] ** 2)


@njit(**FAMILY)
def _forces(arena, k, at, replay, rows, out):
    own = _own(arena, arena.families[k, FIELD])
    for m in range(own.nodes.size):
        i = 3 * own.nodes[m]
        share = at.theta[own.coefficient[0]] * own.areas[m] * _speed(at.v, i)
        for d in range(3):
            out[i + d] += share * at.v[i + d]
    return rows


@njit(**FAMILY)
def _jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
    own = _own(arena, arena.families[k, FIELD])
    for m in range(own.nodes.size):
        i = 3 * own.nodes[m]
        speed = _speed(at.v, i)
        if speed == 0.0 or weight_v == 0.0:
            continue
        share = weight_v * at.theta[own.coefficient[0]] * own.areas[m]
        for r in range(3):
            for c in range(3):
                value = at.v[i + r] * at.v[i + c] / speed + (speed if r == c else 0.0)
                data[slots[9 * m + 3 * r + c]] += share * value


@njit(**FAMILY)
def _parameters(arena, k, at, rows, forward, along, out):
    own = _own(arena, arena.families[k, FIELD])
    for m in range(own.nodes.size):
        i = 3 * own.nodes[m]
        for d in range(3):
            value = own.areas[m] * _speed(at.v, i) * at.v[i + d]
            add_entry(forward, i + d, own.coefficient[0], value, along, out)


KIND = Kind("drag_of_surfaces", _Arrays, _forces, _parameters, _jacobian)


@final
@dataclass(frozen=True)
class Drag(FamilyTerm):
    """r_i = k A_i |v_i| v_i at surface nodes, k = theta[coefficient] [kg/m^3]."""

    depends: ClassVar[str] = "v"

    nodes: np.ndarray
    areas: np.ndarray
    coefficient: int

    def family(self):
        """Return its family: a 3 x 3 block a node."""
        dofs = 3 * self.nodes[:, None] + np.arange(3)
        arrays = _Arrays(self.nodes, self.areas, np.array([self.coefficient]))
        return Family(KIND, arrays, (np.repeat(dofs, 3, axis=1).ravel(), np.tile(dofs, 3).ravel()))


class SurfaceDrag(CouplingExtension):
    """Drag of the air on the surface of a soft body: k A |v| v against each node's velocity."""

    type: Literal["surface-drag"] = Field("surface-drag", description="kind of coupling")
    body: Name = Field(description="name of a soft body")
    coefficient: NonNegative = Field(0.6, description="k = rho c_d / 2 [kg/m^3]")

    def build(self, place, bodies, parts, driven):
        """Add the term and its number."""
        soft = bodies.nodal.get(self.body)
        if soft is None or not hasattr(soft, "surface"):
            raise InputError("drag on its surface needs a soft body", place=f"{place}.body", found=f"'{self.body}'")
        number = parts.number(f"{place}.coefficient", self.coefficient, "kg/m^3")

        def terms(bodies, at):
            nodes = soft.first_node(at) + soft.surface.nodes
            return [Drag(nodes, soft.surface.areas, at.parameters[number].start)]

        parts.terms.append(terms)
