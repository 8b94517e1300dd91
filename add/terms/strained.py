"""Energy and resistance of strained stencils: membranes and bending of cloth, stretch and bending of rods."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import numpy as np

from add.equations.family import Family, Kind
from add.equations.family_term import FamilyTerm
from add.equations.kinematics import Kinematics
from add.kernels.arena import FAMILY, FIELD, Floats, Floats2, Ints, Ints2, unpacker
from add.kernels.caching import njit
from add.materials.strain_loops import strain_loops
from add.materials.strains import StrainLaw
from add.terms.elastic import element_slots, gathered
from add.typing import FloatArray, IntArray


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


_own = unpacker(Stencils)


@functools.cache
def strained_kind(law: StrainLaw) -> Kind:
    """Return the family of stencils with a law."""
    loops = strain_loops(law)
    residual, jacobian, by_parameters, damped = loops.residual, loops.jacobian, loops.parameters, law.damped

    @njit(**FAMILY)
    def forces(arena, k, at, replay, rows, out):
        own = _own(arena, arena.families[k, FIELD])
        residual(at.q, own, gathered(at.theta, own.moduli), at.v, out)
        return rows

    @njit(**FAMILY)
    def matrix(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
        if weight_q == 0.0 and (weight_v == 0.0 or not damped):
            return
        own = _own(arena, arena.families[k, FIELD])
        moduli = gathered(at.theta, own.moduli)
        jacobian(at.q, own, moduli, at.v, weight_q, weight_v, data, element_slots(own.cells, slots))

    @njit(**FAMILY)
    def parameters(arena, k, at, rows, forward, along, out):
        own = _own(arena, arena.families[k, FIELD])
        by_parameters(at.q, own, gathered(at.theta, own.moduli), at.v, own.moduli, forward, along, out)

    return Kind(f"strained_{law.strain.name}_{law.name}", Stencils, forces, parameters, matrix, law=law)


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

    def family(self) -> Family:
        """Return dense blocks of stencils."""
        cells: IntArray = self.stencils.cells
        dofs = (3 * cells[:, :, None] + np.arange(3)).reshape(cells.shape[0], -1)
        n = dofs.shape[1]
        rows, cols = np.repeat(dofs, n, axis=1).ravel(), np.tile(dofs, n).ravel()
        return Family(strained_kind(self.law), self.stencils, (rows, cols))

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the stored energy [J]."""
        moduli = theta[self.stencils.moduli]
        return float(strain_loops(self.law).energy(kin.q, self.stencils, moduli))
