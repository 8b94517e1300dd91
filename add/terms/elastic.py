"""Elasticity of all soft bodies of one element family and one law."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, final

import numpy as np

from add.equations.family import Family, Kind
from add.equations.family_term import FamilyTerm
from add.equations.kinematics import Kinematics
from add.kernels.arena import FAMILY, FIELD, Floats2, Floats4, Ints, Ints2, unpacker
from add.kernels.borrowed import borrowed
from add.kernels.caching import njit
from add.materials import ElementLoops, Elements, Material, element_loops
from add.typing import BoolArray, FloatArray, IntArray


@final
@dataclass(frozen=True)
class ElementBatch:
    """The elements of one family and one law over all bodies; a group is a region, or an element with its own moduli.

    Attributes
    ----------
    cells : (ne, nn) nodes of the system
    gradients : (ne, nq, nn, 3)
        Shape function gradients at the quadrature points [1/m].
    weights : (ne, nq)
        Rest volumes of the quadrature points [m^3].
    group : (ne,) group of each element
    mean_dilatation : (n_groups,) bool
    law : Material
    moduli : (n_groups, n_p)
        Indices in theta of the law's parameters.
    """

    cells: IntArray
    gradients: FloatArray
    weights: FloatArray
    group: IntArray
    mean_dilatation: BoolArray
    law: Material
    moduli: IntArray
    pattern: tuple[IntArray, IntArray] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        dofs = (3 * self.cells[:, :, None] + np.arange(3)).reshape(self.cells.shape[0], -1)
        shape = (dofs.shape[0], dofs.shape[1], dofs.shape[1])
        rows = np.ascontiguousarray(np.broadcast_to(dofs[:, :, None], shape)).ravel()
        cols = np.ascontiguousarray(np.broadcast_to(dofs[:, None, :], shape)).ravel()
        object.__setattr__(self, "pattern", (rows, cols))

    @property
    def loops(self) -> ElementLoops:
        """The compiled loops of the law."""
        return element_loops(self.law)

    @property
    def elements(self) -> Elements:
        """The elements as loops take them."""
        return Elements(self.cells, self.gradients, self.weights, self.group, self.mean_dilatation.astype(np.int64))


class _Arrays(NamedTuple):
    cells: Ints2
    gradients: Floats4
    weights: Floats2
    group: Ints
    mean: Ints
    moduli: Ints2


_own = unpacker(_Arrays)


@njit(error_model="numpy", nogil=True)
def gathered(theta, indices):
    """Return the numbers of theta at ``indices`` (n, m)."""
    out = np.empty(indices.shape)
    for i in range(indices.shape[0]):
        for j in range(indices.shape[1]):
            out[i, j] = theta[indices[i, j]]
    return out


@njit(**FAMILY)
def elements_of(own):
    """Return the elements of a family's own arrays."""
    return Elements(own.cells, own.gradients, own.weights, own.group, own.mean)


@njit(**FAMILY)
def element_slots(cells, slots):
    """Return flat slots as (ne, 3 nn, 3 nn)."""
    n = 3 * cells.shape[1]
    return borrowed(slots, 0, (cells.shape[0], n, n))


@functools.cache
def elastic_kind(law: Material) -> Kind:
    """Return the family of elements with a law."""
    loops = element_loops(law)
    residual, jacobian, by_parameters = loops.residual, loops.jacobian, loops.parameters

    @njit(**FAMILY)
    def forces(arena, k, at, replay, rows, out):
        own = _own(arena, arena.families[k, FIELD])
        moduli = gathered(at.theta, own.moduli)
        residual(at.q, elements_of(own), moduli, out)
        return rows

    @njit(**FAMILY)
    def matrix(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
        if weight_q == 0.0:
            return
        own = _own(arena, arena.families[k, FIELD])
        moduli, places = gathered(at.theta, own.moduli), element_slots(own.cells, slots)
        jacobian(at.q, elements_of(own), moduli, weight_q, data, places)

    @njit(**FAMILY)
    def parameters(arena, k, at, rows, forward, along, out):
        own = _own(arena, arena.families[k, FIELD])
        moduli = gathered(at.theta, own.moduli)
        by_parameters(at.q, elements_of(own), moduli, own.moduli, forward, along, out)

    return Kind(f"elastic_{law.name}", _Arrays, forces, parameters, matrix, law=law)


@final
@dataclass(frozen=True)
class Elastic(FamilyTerm):
    """r = dE/dq; see `add.materials` for the laws and `add.materials.elements` for the loops.

    It is NaN at the nodes of inverted elements.

    Attributes
    ----------
    batch : ElementBatch
    """

    depends: ClassVar[str] = "q"

    batch: ElementBatch

    def family(self) -> Family:
        """Return dense element blocks."""
        b, e = self.batch, self.batch.elements
        arrays = _Arrays(e.cells, e.gradients, e.weights, e.group, e.mean, b.moduli)
        return Family(elastic_kind(b.law), arrays, b.pattern)

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the strain energy [J]."""
        batch = self.batch
        return float(batch.loops.energy(kin.q, batch.elements, theta[batch.moduli]))
