"""Springs, cables and bonds between two points of bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from add.equations.sites import Indices, LawValues, Sites
from add.equations.term import Decision
from add.joints.law import PLACE, VECTOR, Law
from add.joints.law_term import DecidingJointLaw, JointLaw
from add.kernels import springs as kernel
from add.typing import AnyArray, FloatArray


def _spring_energy(y: FloatArray, p: FloatArray, codes: AnyArray) -> float:
    energy = 0.5 * p[:, 0] * (np.linalg.norm(y[:, 0] - y[:, 1], axis=1) - p[:, 2]) ** 2
    # A clipped cable is stretched: its energy is there, and damping eats what it gives back.
    return float((energy[codes != kernel.SLACK] if codes.size else energy).sum())


def _bond_energy(y: FloatArray, p: FloatArray, codes: AnyArray) -> float:
    return float(0.5 * p[:, 0] @ ((y[:, 0] - y[:, 1]) ** 2).sum(axis=1))


SPRING = Law("Spring", kernel.spring_force, kernel.spring_derivatives, (PLACE, PLACE), 3, energy=_spring_energy)
CABLE, CLIPPED_CABLE = (
    Law(name, force, kernel.cable_derivatives, (PLACE, PLACE), 3, branches=True, energy=_spring_energy)
    for name, force in (("Cable", kernel.cable_force), ("ClippedCable", kernel.clipped_cable_force))
)
BOND = Law(
    "ElasticJoint", kernel.bond_force, kernel.bond_derivatives, (PLACE | VECTOR, PLACE | VECTOR), 2, energy=_bond_energy
)


@final
@dataclass(frozen=True)
class Spring(JointLaw):
    """Central force between two places, f_a = -(k (l - L) + c l_dot) n = -f_b, n the unit vector from b to a."""

    law: ClassVar[Law] = SPRING

    @classmethod
    def of(cls, sites: Sites, *, k: Indices, c: Indices, length: Indices) -> Spring:
        """Make springs; indices (n,) in theta of stiffness [N/m], damping [N s/m] and rest length [m]; -1 for zero."""
        return cls(sites, LawValues.of(k, c, length))


@final
@dataclass(frozen=True)
class Cable(DecidingJointLaw):
    """A spring that pulls only: nothing where l <= L.

    Attributes
    ----------
    clip : bool
        Whether damping may not make it push, either: no force where k (l - L) + c l_dot < 0.
    """

    clip: bool = False

    @property
    def law(self) -> Law:
        """That of ``clip``."""
        return CLIPPED_CABLE if self.clip else CABLE

    @classmethod
    def of(cls, sites: Sites, *, k: Indices, c: Indices, length: Indices, clip: bool = False) -> Cable:
        """Make cables; indices (n,) in theta of stiffness [N/m], damping [N s/m] and slack length [m]; -1 for zero."""
        return cls(sites, LawValues.of(k, c, length), clip)

    def describe(self, decision: Decision) -> dict[str, int]:
        """Return how many cables are taut (of these: clipped) and slack."""
        counts = {"taut": len(decision), "slack": self.sites.n - len(decision)}
        if self.clip:
            counts["clipped"] = int((decision[:, 2] == kernel.CLIPPED).sum())
        return counts


@final
@dataclass(frozen=True)
class ElasticJoint(JointLaw):
    """Two sites held together, E = k/2 |y_a - y_b|^2, f_a = -k (y_a - y_b) - c (y_dot_a - y_dot_b) = -f_b.

    The soft constraints of Geilinger et al. 2020, Eqs. 23-25: places make a ball joint, two pairs of directions more a
    hinge, three a fixed joint. c y_dot gives the couple c (offset x rate) on the pair.
    """

    law: ClassVar[Law] = BOND

    @classmethod
    def of(cls, sites: Sites, *, k: Indices, c: Indices) -> ElasticJoint:
        """Make bonds; indices (n,) in theta of k [N/m] and c [N s/m], on directions [N m] and [N m s]; -1 for zero."""
        return cls(sites, LawValues.of(k, c))
