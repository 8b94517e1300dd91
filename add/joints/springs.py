"""Springs, cables and bonds between two points of bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from add.equations.sites import Indices, LawValues, Sites
from add.equations.term import Candidates, Decision
from add.joints.law_term import PLACE, VECTOR, DecidingJointLaw, JointLaw, Slots
from add.kernels import springs as kernel
from add.typing import FloatArray

_ALL = np.zeros(0, dtype=np.int8)


def _spring_energy(y: FloatArray, p: FloatArray) -> FloatArray:
    return 0.5 * p[:, 0] * (np.linalg.norm(y[:, 0] - y[:, 1], axis=1) - p[:, 2]) ** 2


@final
@dataclass(frozen=True)
class Spring(JointLaw):
    """Central force between two places, f_a = -(k (l - L) + c l_dot) n = -f_b, n the unit vector from b to a."""

    slots: ClassVar[Slots] = (PLACE, PLACE)
    n_columns: ClassVar[int] = 3

    @classmethod
    def of(cls, sites: Sites, *, k: Indices, c: Indices, length: Indices) -> Spring:
        """Make springs; indices (n,) in theta of stiffness [N/m], damping [N s/m] and rest length [m]; -1 for zero."""
        return cls(sites, LawValues.of(k, c, length))

    def law_forces(self, y, y_dot, p, f):
        kernel.spring_force(y, y_dot, p, False, False, True, _ALL, f)

    def law_derivatives(self, y, y_dot, p, f, f_y, f_v, f_p):
        kernel.spring_derivatives(y, y_dot, p, False, _ALL, f, f_y, f_v, f_p)

    def law_energy(self, y: FloatArray, p: FloatArray) -> float:
        return float(_spring_energy(y, p).sum())


@final
@dataclass(frozen=True)
class CableBranch(JointLaw):
    """One branch of a `Cable`.

    Attributes
    ----------
    codes : (n,)
        `add.kernels.springs.TAUT` acts; all others do nothing.
    """

    slots: ClassVar[Slots] = (PLACE, PLACE)
    n_columns: ClassVar[int] = 3

    codes: Decision

    def __post_init__(self) -> None:
        """Check nothing: the cable did, and Newton makes these all the time."""

    def law_forces(self, y, y_dot, p, f):
        kernel.spring_force(y, y_dot, p, True, False, True, self.codes, f)

    def law_derivatives(self, y, y_dot, p, f, f_y, f_v, f_p):
        kernel.spring_derivatives(y, y_dot, p, True, self.codes, f, f_y, f_v, f_p)

    def law_energy(self, y: FloatArray, p: FloatArray) -> float:
        # A clipped cable is stretched: its energy is there, and damping eats what it gives back.
        return float(_spring_energy(y, p)[self.codes != kernel.SLACK].sum())


@final
@dataclass(frozen=True)
class Cable(DecidingJointLaw):
    """A spring that pulls only: nothing where l <= L.

    Attributes
    ----------
    clip : bool
        Whether damping may not make it push, either: no force where k (l - L) + c l_dot < 0.
    """

    slots: ClassVar[Slots] = (PLACE, PLACE)
    n_columns: ClassVar[int] = 3

    clip: bool = False

    @classmethod
    def of(cls, sites: Sites, *, k: Indices, c: Indices, length: Indices, clip: bool = False) -> Cable:
        """Make cables; indices (n,) in theta of stiffness [N/m], damping [N s/m] and slack length [m]; -1 for zero."""
        return cls(sites, LawValues.of(k, c, length), clip)

    def decide_forces(self, y: FloatArray, y_dot: FloatArray, p: FloatArray, codes: Decision, f: FloatArray) -> int:
        return int(kernel.spring_force(y, y_dot, p, True, self.clip, False, codes, f))

    def on_branch(self, decision: Decision, candidates: Candidates | None = None) -> CableBranch:
        return CableBranch(self.sites, self.values, decision)

    def describe(self, decision: Decision) -> dict[str, int]:
        """Return how many cables are taut (of these: clipped) and slack."""
        slack = int((decision == kernel.SLACK).sum())
        counts = {"taut": decision.size - slack, "slack": slack}
        if self.clip:
            counts["clipped"] = int((decision == kernel.CLIPPED).sum())
        return counts


@final
@dataclass(frozen=True)
class ElasticJoint(JointLaw):
    """Two sites held together, E = k/2 |y_a - y_b|^2, f_a = -k (y_a - y_b) - c (y_dot_a - y_dot_b) = -f_b.

    The soft constraints of Geilinger et al. 2020, Eqs. 23-25: places make a ball joint, two pairs of directions more a
    hinge, three a fixed joint. c y_dot gives the couple c (offset x rate) on the pair.
    """

    slots: ClassVar[Slots] = (PLACE | VECTOR, PLACE | VECTOR)
    n_columns: ClassVar[int] = 2

    @classmethod
    def of(cls, sites: Sites, *, k: Indices, c: Indices) -> ElasticJoint:
        """Make bonds; indices (n,) in theta of k [N/m] and c [N s/m], on directions [N m] and [N m s]; -1 for zero."""
        return cls(sites, LawValues.of(k, c))

    def law_forces(self, y, y_dot, p, f):
        kernel.bond_force(y, y_dot, p, f)

    def law_derivatives(self, y, y_dot, p, f, f_y, f_v, f_p):
        kernel.bond_derivatives(y, y_dot, p, f, f_y, f_v, f_p)

    def law_energy(self, y: FloatArray, p: FloatArray) -> float:
        return float(0.5 * p[:, 0] @ ((y[:, 0] - y[:, 1]) ** 2).sum(axis=1))
