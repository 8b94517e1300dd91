"""Elasticity, viscosity and stiffness-proportional damping of soft bodies, of cloth and of rods."""

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, final

import numpy as np

from add.equations.family import Family, Kind, node_blocks
from add.equations.family_term import FamilyTerm
from add.equations.kinematics import Kinematics
from add.kernels.arena import FAMILY, FIELD, Floats, Floats2, Ints, Ints2, add_entry, rates_in, unpacker
from add.kernels.borrowed import borrowed
from add.kernels.caching import njit
from add.kernels.deformation import viscous_jacobian, viscous_pullback, viscous_residual
from add.materials import Dissipation, Elements, Material, called, called_dissipation, elements as loops
from add.materials.strain_loops import (
    DAMPED,
    called_strain,
    strain_energy,
    strain_jacobian,
    strain_parameters,
    strain_residual,
)
from add.materials.strains import StrainLaw
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
        object.__setattr__(self, "pattern", node_blocks(self.cells))

    @property
    def elements(self) -> Elements:
        """The elements as loops take them."""
        mean = self.mean_dilatation.astype(np.int64)
        return Elements(self.cells, self.gradients, self.weights, self.group, mean, called(self.law))


class _Arrays(NamedTuple):
    elements: Elements
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
def element_slots(cells, slots):
    """Return flat slots as (ne, 3 nn, 3 nn)."""
    n = 3 * cells.shape[1]
    return borrowed(slots, 0, (cells.shape[0], n, n))


@njit(**FAMILY)
def _elastic_forces(arena, k, at, replay, rows, out):
    body = _own(arena, arena.families[k, FIELD])
    moduli = gathered(at.theta, body.moduli)
    loops.residual(at.q, body.elements, moduli, out)
    return rows


@njit(**FAMILY)
def _elastic_matrix(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
    if weight_q == 0.0:
        return
    body = _own(arena, arena.families[k, FIELD])
    moduli, places = gathered(at.theta, body.moduli), element_slots(body.elements.cells, slots)
    loops.jacobian(at.q, body.elements, moduli, weight_q, data, places)


@njit(**FAMILY)
def _elastic_parameters(arena, k, at, rows, forward, along, out):
    body = _own(arena, arena.families[k, FIELD])
    moduli = gathered(at.theta, body.moduli)
    loops.parameters(at.q, body.elements, moduli, body.moduli, forward, along, out)


ELASTIC = Kind("elastic", _Arrays, _elastic_forces, _elastic_parameters, _elastic_matrix, rates=True)


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
        return Family(ELASTIC, (*e, b.moduli), b.pattern)

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the strain energy [J]."""
        batch = self.batch
        return float(loops.energy(kin.q, batch.elements, theta[batch.moduli]))


class _Viscous(NamedTuple):
    elements: Elements
    moduli: Ints2
    beta: Ints
    numbers: Ints2
    law: Ints


_viscous = unpacker(_Viscous)


@njit(error_model="numpy", nogil=True)
def _numbers(theta, own):
    """Return 2 mu beta, lambda beta and the numbers of the law of viscosity, of all groups (n_groups, 2 + n)."""
    lame, _ = loops.linear_moduli(own.elements.law, gathered(theta, own.moduli))
    out = np.empty((own.beta.size, 2 + own.numbers.shape[1]))
    for g in range(own.beta.size):
        beta = theta[own.beta[g]]
        out[g, 0], out[g, 1] = 2.0 * beta * lame[g, 0], beta * lame[g, 1]
        for k in range(own.numbers.shape[1]):
            out[g, 2 + k] = theta[own.numbers[g, k]]
    return out


@njit(error_model="numpy", nogil=True)
def _add_slopes(theta, own, forward, along, out):
    """Add the derivatives of those numbers, flat, along theta, or backward."""
    lame, slopes = loops.linear_moduli(own.elements.law, gathered(theta, own.moduli))
    n = own.numbers.shape[1]
    for g in range(own.beta.size):
        first = (2 + n) * g
        for k in range(n):
            add_entry(forward, first + 2 + k, own.numbers[g, k], 1.0, along, out)
        for i in range(2):
            factor = 2.0 if i == 0 else 1.0
            add_entry(forward, first + i, own.beta[g], factor * lame[g, i], along, out)
            for p in range(own.moduli.shape[1]):
                value = factor * theta[own.beta[g]] * slopes[g, i, p]
                add_entry(forward, first + i, own.moduli[g, p], value, along, out)


@njit(**FAMILY)
def _viscous_forces(arena, k, at, replay, rows, out):
    body = _viscous(arena, arena.families[k, FIELD])
    viscous_residual(at.q, at.v, body.elements, body.law, _numbers(at.theta, body), np.empty((0, 0)), out)
    return rows


@njit(**FAMILY)
def _viscous_matrix(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
    if weight_q == 0.0 and weight_v == 0.0:
        return
    body = _viscous(arena, arena.families[k, FIELD])
    viscous_jacobian(
        at.q, at.v, body.elements, body.law, _numbers(at.theta, body),
        weight_q, weight_v, data, element_slots(body.elements.cells, slots),
    )  # fmt: skip


@njit(**FAMILY)
def _viscous_parameters(arena, k, at, rows, forward, along, out):
    body = _viscous(arena, arena.families[k, FIELD])
    numbers = _numbers(at.theta, body)
    flat = np.zeros(numbers.size)
    rates = borrowed(flat, 0, numbers.shape)
    if forward:
        _add_slopes(at.theta, body, True, along, flat)
        viscous_residual(at.q, at.v, body.elements, body.law, numbers, rates, out)
    else:
        viscous_pullback(
            at.q, at.v, along, body.elements, body.law, numbers, rates, rates_in(forward, at, out)
        )  # fmt: skip
        _add_slopes(at.theta, body, False, flat, out)


VISCOUS = Kind("viscous", _Viscous, _viscous_forces, _viscous_parameters, _viscous_matrix, rates=True)


@final
@dataclass(frozen=True)
class Viscous(FamilyTerm):
    """First Piola stress of a dissipation potential, see `add.kernels.deformation`, and of the rate of the stiffness.

    The latter is F (2 mu beta D + lambda beta <tr D> I) with the Lame constants mu and lambda of the law at rest.

    Attributes
    ----------
    batch : ElementBatch
    law : Dissipation
    beta : (n_groups,)
        Indices in theta of the stiffness-proportional damping [s].
    numbers : (n_groups, n)
        Indices of the numbers of the law.
    """

    depends: ClassVar[str] = "qv"

    batch: ElementBatch
    law: Dissipation
    beta: IntArray
    numbers: IntArray

    @property
    def linear(self) -> str:  # type: ignore[override]
        """See `Term`: v where the potential is quadratic in the rates."""
        return "v" if self.law.is_linear else ""

    def family(self) -> Family:
        """Return dense element blocks."""
        b, e = self.batch, self.batch.elements
        return Family(VISCOUS, (*e, b.moduli, self.beta, self.numbers, called_dissipation(self.law)), b.pattern)


class Stencils(NamedTuple):
    """Stencils of nodes; a body is a group.

    Attributes
    ----------
    cells : (ne, m) nodes of the system
    places, shape : (ne, ...) what the strain knows of each at rest, see `add.kernels.strains`
    weights : (ne,) areas or lengths at rest
    group : (ne,)
    moduli : (n_groups, n_p) indices in theta of the law's parameters
    """

    cells: Ints2
    places: Ints2
    shape: Floats2
    weights: Floats
    group: Ints
    moduli: Ints2


class StrainArrays(NamedTuple):
    """`Stencils` as loops take them, with what `add.materials.strain_loops.called_strain` returns."""

    cells: Ints2
    places: Ints2
    shape: Floats2
    weights: Floats
    group: Ints
    moduli: Ints2
    law: Ints


_stencils = unpacker(StrainArrays)


@njit(**FAMILY)
def _strained_forces(arena, k, at, replay, rows, out):
    body = _stencils(arena, arena.families[k, FIELD])
    strain_residual(at.q, body, gathered(at.theta, body.moduli), at.v, out)
    return rows


@njit(**FAMILY)
def _strained_matrix(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
    body = _stencils(arena, arena.families[k, FIELD])
    if weight_q == 0.0 and (weight_v == 0.0 or not body.law[DAMPED]):
        return
    moduli = gathered(at.theta, body.moduli)
    strain_jacobian(at.q, body, moduli, at.v, weight_q, weight_v, data, element_slots(body.cells, slots))


@njit(**FAMILY)
def _strained_parameters(arena, k, at, rows, forward, along, out):
    body = _stencils(arena, arena.families[k, FIELD])
    moduli, by_v = gathered(at.theta, body.moduli), rates_in(forward, at, out)
    strain_parameters(at.q, body, moduli, at.v, body.moduli, forward, along, out, by_v)


STRAINED = Kind("strained", StrainArrays, _strained_forces, _strained_parameters, _strained_matrix, rates=True)


@final
@dataclass(frozen=True)
class Strained(FamilyTerm):
    """r = sum_a F_a dz_a/dq of stencils with strains z; see `add.materials.strains`.

    Attributes
    ----------
    law : StrainLaw
    stencils : Stencils
    """

    depends: ClassVar[str] = "qv"

    law: StrainLaw
    stencils: Stencils

    @property
    def _arrays(self) -> StrainArrays:
        return StrainArrays(*self.stencils, called_strain(self.law))

    def family(self) -> Family:
        """Return dense blocks of stencils."""
        return Family(STRAINED, self._arrays, node_blocks(self.stencils.cells))

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the stored energy [J]."""
        moduli = theta[self.stencils.moduli]
        return float(strain_energy(kin.q, self._arrays, moduli))
