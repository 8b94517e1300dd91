"""Couplings between sites of bodies: everything but the local law, written once.

r = -J^T f(y, y_dot; p), f (n, arity, 3) forces on the sites of n interactions; `add.kernels.sites` has the
equations. Internal couplings (sites of bodies alone) conserve momentum. Angular momentum is conserved by central
forces, by torques and by forces from an energy; the damping c y_dot of a `ElasticJoint` or a `Slider` gives the couple
c (offset x rate), which vanishes with the offset.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from add.equations.family import Family
from add.equations.kinematics import Kinematics, Weights
from add.equations.sites import Evaluation, LawValues, Sites
from add.equations.term import Candidates, DecidingTerm, Decision, Term
from add.joints.law import Law, family_of, grouped
from add.kernels import sites as kernel
from add.typing import AnyArray, FloatArray, IntArray

_SMOOTH: AnyArray = np.zeros(0, dtype=np.int8)


@dataclass(frozen=True)
class JointLaw(Term):
    """Forces between the sites of an interaction by a smooth law, or by one branch of another.

    Attributes
    ----------
    sites : Sites
    values : LawValues
        The law's numbers; their order is that of the class's ``of``.
    """

    depends: ClassVar[str] = "qv"

    sites: Sites
    values: LawValues

    def __post_init__(self) -> None:
        object.__setattr__(self, "sites", grouped(self.law, self.sites, self.values))

    @property
    @abstractmethod
    def law(self) -> Law:
        """The law."""

    @property
    def inputs(self) -> IntArray:
        """See `Term.inputs`."""
        return self.values.rows[self.values.rows >= 0]

    @property
    def codes(self) -> AnyArray:
        """Branch of each interaction (n,); none of a smooth law."""
        return _SMOOTH

    def pattern(self) -> tuple[IntArray, IntArray]:
        """Return dense blocks over the coordinates of an interaction."""
        return self.sites.pattern

    def family(self) -> Family:
        """See `Term.family`."""
        return family_of(self.law, self.sites, self.values)

    @final
    def _at(self, kin: Kinematics, theta: FloatArray) -> Evaluation:
        return Evaluation(self.sites, self.values, kin.q, kin.v, kin.t, theta)

    @final
    def _forces(self, at: Evaluation) -> FloatArray:
        f = np.empty_like(at.y)
        self.law.force(at.y, at.y_dot, at.p, True, self.codes, f)
        return f

    @final
    def _linearised(self, at: Evaluation) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        n, size = self.sites.n, 3 * self.sites.arity
        f = np.empty_like(at.y)
        f_y, f_v = np.zeros((n, size, size)), np.zeros((n, size, size))
        f_p = np.zeros((n, size, at.p.shape[1]))
        self.law.derivatives(at.y, at.y_dot, at.p, self.codes, f, f_y, f_v, f_p)
        return f, f_y, f_v, f_p

    @final
    def residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add -J^T f."""
        at = self._at(kin, theta)
        at.pull(self.sites, kin.q, self._forces(at), out)

    @final
    def jacobian(self, kin: Kinematics, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray) -> None:
        """Add the weighted derivatives, unsymmetric."""
        if not (weights.q or weights.v):
            return
        at, sites = self._at(kin, theta), self.sites
        f, f_y, f_v, _ = self._linearised(at)
        kernel.assemble(
            weights.q,
            weights.v,
            kin.q,
            kin.v,
            sites.kind,
            sites.dofs,
            sites.weights,
            at.frame,
            f,
            f_y,
            f_v,
            data,
            slots,
        )

    @final
    def parameter_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> None:
        """Add the cotangents of the law's numbers, of arms and centres of mass."""
        at, sites = self._at(kin, theta), self.sites
        place = (sites.arm, sites.centre, at.numbers)
        kernel.parameter_vjp(lam, *at.arguments(sites, kin.q), *self._linearised(at), *place, out)

    @final
    def parameter_jvp(self, kin: Kinematics, theta: FloatArray, theta_dot: FloatArray, out: FloatArray) -> None:
        """Add the tangent along ``theta_dot``."""
        at, sites = self._at(kin, theta), self.sites
        place = (sites.arm, sites.centre, at.numbers)
        r = np.zeros(out.size)  # contiguous, whatever ``out`` is: no second compilation
        kernel.parameter_jvp(theta_dot, *at.arguments(sites, kin.q), *self._linearised(at), *place, r)
        out += r

    @final
    def forces(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return (n, arity, 3): the forces on points and directions [N], the torques on spins [N m], in world axes.

        A force f on a direction y acts as the torque y x f.
        """
        return self._forces(self._at(kin, theta)).reshape(self.sites.n, self.sites.arity, 3)

    @final
    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the energy stored [J]."""
        at = self._at(kin, theta)
        return self.law.energy(at.y.reshape(self.sites.n, self.sites.arity, 3), at.p, self.codes)


@final
@dataclass(frozen=True)
class JointBranch(JointLaw):
    """One branch of a law with branches.

    Attributes
    ----------
    of : Law
    branch : (n,) int8
    """

    of: Law
    branch: AnyArray

    def __post_init__(self) -> None:
        """Check nothing: the law did, and Newton makes these all the time."""

    @property
    def law(self) -> Law:
        """The law with branches."""
        return self.of

    @property
    def codes(self) -> AnyArray:
        """Branch of each interaction (n,)."""
        return self.branch


@dataclass(frozen=True)
class DecidingJointLaw(DecidingTerm):
    """A coupling whose law has branches: a row (e, 0, code) for every interaction that is not idle.

    Attributes
    ----------
    sites : Sites
    values : LawValues
    """

    sites: Sites
    values: LawValues

    def __post_init__(self) -> None:
        object.__setattr__(self, "sites", grouped(self.law, self.sites, self.values))

    @property
    @abstractmethod
    def law(self) -> Law:
        """The law."""

    @property
    def inputs(self) -> IntArray:
        """See `Term.inputs`."""
        return self.values.rows[self.values.rows >= 0]

    def family(self) -> Family:
        """See `DecidingTerm.family`."""
        return family_of(self.law, self.sites, self.values)

    @final
    def on_branch(self, decision: Decision, candidates: Candidates | None = None) -> JointBranch:
        """Return the smooth law of the given branch."""
        codes = np.zeros(self.sites.n, dtype=np.int8)
        codes[decision[:, 0]] = decision[:, 2]
        return JointBranch(self.sites, self.values, self.law, codes)

    @final
    def decided_residual(
        self, kin: Kinematics, theta: FloatArray, out: FloatArray, sticking: Decision | None = None
    ) -> Decision:
        """Decide and add -J^T f in one pass."""
        at = Evaluation(self.sites, self.values, kin.q, kin.v, kin.t, theta)
        f, codes = np.empty_like(at.y), np.empty(self.sites.n, dtype=np.int8)
        if self.law.force(at.y, at.y_dot, at.p, False, codes, f):
            at.pull(self.sites, kin.q, f, out)
        acting = np.flatnonzero(codes)
        return np.stack([acting, np.zeros_like(acting), codes[acting]], axis=1)

    @final
    def decide(self, kin: Kinematics, theta: FloatArray) -> Decision:
        """Return the branch that holds at ``kin``."""
        return self.decided_residual(kin, theta, np.zeros_like(kin.q))

    @final
    def changes(self, decision: Decision, other: Decision) -> int:
        """Return how many interactions are on another branch."""
        return int((self.on_branch(decision).codes != self.on_branch(other).codes).sum())

    @final
    def structure(self, decision: Decision, candidates: Candidates | None = None) -> Hashable:
        """Return a constant: idle interactions keep their entries."""
        return None

    @final
    def forces(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return (n,) generalised forces; those on the sites are ``on_branch(decision).forces``."""
        out = np.zeros_like(kin.q)
        self.decided_residual(kin, theta, out)
        return -out

    @final
    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the energy stored [J]."""
        return self.on_branch(self.decide(kin, theta)).energy(kin, theta)
