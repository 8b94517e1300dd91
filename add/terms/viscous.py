"""Viscosity and stiffness-proportional damping of all soft bodies of one element family and one law."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import numpy as np

from add.equations.family import Family, Kind
from add.equations.family_term import FamilyTerm
from add.kernels.arena import FAMILY, FIELD, Floats2, Floats4, Ints, Ints2, add_entry, unpacker
from add.kernels.caching import njit
from add.kernels.viscous import viscous_jacobian, viscous_pullback, viscous_residual
from add.materials import Material
from add.terms.elastic import ElementBatch, element_slots, elements_of, gathered
from add.typing import IntArray


class _Arrays(NamedTuple):
    cells: Ints2
    gradients: Floats4
    weights: Floats2
    group: Ints
    mean: Ints
    moduli: Ints2
    viscosity: Ints
    beta: Ints
    exponent: Ints


_own = unpacker(_Arrays)


@functools.cache
def viscous_kind(law: Material) -> Kind:
    """Return the family of elements with a law."""
    linear_moduli = law.functions.linear_moduli

    @njit(error_model="numpy", nogil=True)
    def viscosities(theta, own):
        """Return eta_b, zeta, nu and h of all groups (4 n_groups,)."""
        moduli = gathered(theta, own.moduli)
        out, slopes = np.empty(4 * own.beta.size), np.empty((2, moduli.shape[1]))
        for g in range(own.beta.size):
            mu, lame = linear_moduli(moduli[g], slopes)
            beta = theta[own.beta[g]]
            out[4 * g], out[4 * g + 1], out[4 * g + 2] = 2.0 * beta * mu, beta * lame, theta[own.viscosity[g]]
            out[4 * g + 3] = theta[own.exponent[g]] if own.exponent[g] >= 0 else 2.0
        return out

    @njit(error_model="numpy", nogil=True)
    def add_slopes(theta, own, forward, along, out):
        """Add the derivatives of the viscosities (4 n_groups,) along theta, or backward."""
        moduli = gathered(theta, own.moduli)
        slopes = np.empty((2, moduli.shape[1]))
        for g in range(own.beta.size):
            both = linear_moduli(moduli[g], slopes)
            add_entry(forward, 4 * g + 2, own.viscosity[g], 1.0, along, out)
            if own.exponent[g] >= 0:
                add_entry(forward, 4 * g + 3, own.exponent[g], 1.0, along, out)
            for i in range(2):
                factor = 2.0 if i == 0 else 1.0
                add_entry(forward, 4 * g + i, own.beta[g], factor * both[i], along, out)
                for p in range(moduli.shape[1]):
                    value = factor * theta[own.beta[g]] * slopes[i, p]
                    add_entry(forward, 4 * g + i, own.moduli[g, p], value, along, out)

    @njit(**FAMILY)
    def forces(arena, k, at, replay, rows, out):
        own = _own(arena, arena.families[k, FIELD])
        given = viscosities(at.theta, own)
        along = given.copy()
        along[3::4] = 0.0
        viscous_residual(at.q, at.v, elements_of(own), given, along, out)
        return rows

    @njit(**FAMILY)
    def matrix(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
        if weight_q == 0.0 and weight_v == 0.0:
            return
        own = _own(arena, arena.families[k, FIELD])
        viscous_jacobian(
            at.q, at.v, elements_of(own), viscosities(at.theta, own),
            weight_q, weight_v, data, element_slots(own.cells, slots),
        )  # fmt: skip

    @njit(**FAMILY)
    def parameters(arena, k, at, rows, forward, along, out):
        own = _own(arena, arena.families[k, FIELD])
        given = viscosities(at.theta, own)
        rates = np.zeros(given.size)
        if forward:
            add_slopes(at.theta, own, True, along, rates)
            viscous_residual(at.q, at.v, elements_of(own), given, rates, out)
        else:
            viscous_pullback(at.q, at.v, along, elements_of(own), given, rates)
            add_slopes(at.theta, own, False, rates, out)

    return Kind(f"viscous_{law.name}", _Arrays, forces, parameters, matrix, law=law)


@final
@dataclass(frozen=True)
class Viscous(FamilyTerm):
    """First Piola stress F (eta D + zeta <tr D> I), see `add.kernels.viscous`.

    eta = nu s + 2 mu beta, zeta = lambda beta, with the Lame constants mu and lambda of the law at rest.

    Attributes
    ----------
    batch : ElementBatch
    viscosity : (n_groups,)
        Indices in theta of nu [Pa s] (Geilinger et al. 2020, Eq. 19).
    beta : (n_groups,)
        Indices of the stiffness-proportional damping [s].
    exponent : (n_groups,)
        Indices of the exponents h of the rate [-]; -1 for 2.
    """

    depends: ClassVar[str] = "qv"

    batch: ElementBatch
    viscosity: IntArray
    beta: IntArray
    exponent: IntArray

    @property
    def linear(self) -> str:  # type: ignore[override]
        """See `Term`: nothing where an exponent may differ from two."""
        return "" if (self.exponent >= 0).any() else "v"

    def family(self) -> Family:
        """Return dense element blocks."""
        b, e = self.batch, self.batch.elements
        numbers = b.moduli, self.viscosity, self.beta, self.exponent
        arrays = _Arrays(e.cells, e.gradients, e.weights, e.group, e.mean, *numbers)
        return Family(viscous_kind(b.law), arrays, b.pattern)
