"""Couplings between sites of bodies: everything but the local law, written once.

r = -J^T f(y, y_dot; p), f (n, arity, 3) forces on the sites of n interactions; `add.kernels.sites` has the
equations. Internal couplings (sites of bodies alone) conserve momentum. Angular momentum is conserved by central
forces, by torques and by forces from an energy; the damping c y_dot of a `ElasticJoint` or a `Slider` gives the couple
c (offset x rate), which vanishes with the offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from add.equations.family import Family
from add.equations.family_term import FamilyTerm, OneFamily, OverFamily
from add.equations.kinematics import Kinematics
from add.equations.sites import Evaluation, LawValues, Sites
from add.equations.term import Candidates, DecidingTerm, Decision
from add.joints.law import Law, family_of, grouped
from add.typing import AnyArray, FloatArray, IntArray

_SMOOTH: AnyArray = np.zeros(0, dtype=np.int8)


@dataclass(frozen=True)
class _OverSites(OverFamily):
    law: ClassVar[Law]

    sites: Sites
    values: LawValues

    def __post_init__(self) -> None:
        object.__setattr__(self, "sites", grouped(self.law, self.sites, self.values))

    @property
    def inputs(self) -> IntArray:
        """See `Term.inputs`."""
        return self.values.rows[self.values.rows >= 0]

    def family(self) -> Family:
        """See `Term.family`."""
        return family_of(self.law, self.sites, self.values)


@dataclass(frozen=True)
class JointLaw(_OverSites, FamilyTerm):
    """Forces between the sites of an interaction by a smooth law, or by one branch of another.

    Attributes
    ----------
    sites : Sites
    values : LawValues
        The law's numbers, in the order that the class says.
    """

    depends: ClassVar[str] = "qv"

    @property
    def codes(self) -> AnyArray:
        """Branch of each interaction (n,); none of a smooth law."""
        return _SMOOTH

    @final
    def forces(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return (n, arity, 3): the forces on points and directions [N], the torques on spins [N m], in world axes.

        A force f on a direction y acts as the torque y x f.
        """
        at = Evaluation(self.sites, self.values, kin.q, kin.v, kin.t, theta)
        f = np.empty_like(at.y)
        self.law.force(at.y, at.y_dot, at.p, True, self.codes, f)
        return f.reshape(self.sites.n, self.sites.arity, 3)

    @final
    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the energy stored [J]."""
        at = Evaluation(self.sites, self.values, kin.q, kin.v, kin.t, theta)
        return self.law.energy(at.y.reshape(self.sites.n, self.sites.arity, 3), at.p, self.codes)


@final
@dataclass(frozen=True)
class JointBranch(JointLaw):
    """One branch of a law with branches.

    Attributes
    ----------
    whole : DecidingJointLaw
    branch : (k, 3) rows (e, 0, code)
    """

    whole: DecidingJointLaw
    branch: Decision

    def __post_init__(self) -> None:
        """Check nothing: the law did, and Newton makes these all the time."""

    @property
    def decided(self) -> Decision:
        """The branch."""
        return self.branch

    @property
    def one(self) -> OneFamily:  # type: ignore[override]
        """The family of all branches."""
        return self.whole.one

    @property
    def law(self) -> Law:  # type: ignore[override]
        """The law with branches."""
        return self.whole.law

    @property
    def codes(self) -> AnyArray:
        """Branch of each interaction (n,)."""
        out = np.zeros(self.sites.n, dtype=np.int8)
        out[self.branch[:, 0]] = self.branch[:, 2]
        return out


@dataclass(frozen=True)
class DecidingJointLaw(_OverSites, DecidingTerm):
    """A coupling whose law has branches: a row (e, 0, code) for every interaction that is not idle.

    Attributes
    ----------
    sites : Sites
    values : LawValues
    """

    @final
    def on_branch(self, decision: Decision, candidates: Candidates | None = None) -> JointBranch:
        """Return the smooth law of the given branch."""
        return JointBranch(self.sites, self.values, self, decision)

    @final
    def decided_residual(
        self, kin: Kinematics, theta: FloatArray, out: FloatArray, sticking: Decision | None = None
    ) -> Decision:
        """Decide and add -J^T f in one pass."""
        return self.one.forces(kin, theta, None, out)

    @final
    def changes(self, decision: Decision, other: Decision) -> int:
        """Return how many interactions are on another branch."""
        return int((self.on_branch(decision).codes != self.on_branch(other).codes).sum())

    @final
    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the energy stored [J]."""
        return self.on_branch(self.decide(kin, theta)).energy(kin, theta)
