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

from add.equations.kinematics import Kinematics, Weights
from add.equations.sites import Evaluation, LawValues, SiteKind, Sites
from add.equations.term import Candidates, DecidingTerm, Decision, Term
from add.kernels import sites as kernel
from add.typing import FloatArray, IntArray

#: What may stand in a slot.
PLACE = frozenset({SiteKind.WORLD, SiteKind.NODES, SiteKind.POINT})
VECTOR = frozenset({SiteKind.WORLD, SiteKind.NODES, SiteKind.DIRECTION})
TURNING = frozenset({SiteKind.WORLD, SiteKind.SPIN})
Slots = tuple[frozenset[SiteKind], ...]


def grouped(name: str, slots: Slots, n_columns: int, sites: Sites, values: LawValues) -> Sites:
    """Return the sites grouped by the slots of a law; raise unless they fit them and the values fit its columns."""
    sites = sites.grouped(len(slots))
    if values.index.shape[0] != sites.n or values.n_columns != n_columns:
        shape = (values.index.shape[0], values.n_columns)
        raise ValueError(f"{name}: law values {shape} must be {(sites.n, n_columns)}")
    for slot, allowed in enumerate(slots):
        kinds = sites.kind[slot :: sites.arity]
        wrong = np.flatnonzero(~np.isin(kinds, list(allowed)))
        if wrong.size:
            names = ", ".join(sorted(k.name for k in allowed))
            found = SiteKind(int(kinds[wrong[0]])).name
            raise ValueError(f"{name}: site {slot} of interaction {wrong[0]} is a {found}, not {names}")
    return sites


@dataclass(frozen=True)
class JointLaw(Term):
    """Forces between the sites of an interaction by a local law.

    Attributes
    ----------
    sites : Sites
    values : LawValues
        The law's numbers; their order is that of the class's ``of``.
    """

    depends: ClassVar[str] = "qv"
    slots: ClassVar[Slots]
    n_columns: ClassVar[int]

    sites: Sites
    values: LawValues

    def __post_init__(self) -> None:
        sites = grouped(type(self).__name__, self.slots, self.n_columns, self.sites, self.values)
        object.__setattr__(self, "sites", sites)

    @property
    def inputs(self) -> IntArray:
        """See `Term.inputs`."""
        return self.values.rows[self.values.rows >= 0]

    @abstractmethod
    def law_forces(self, y: FloatArray, y_dot: FloatArray, p: FloatArray, f: FloatArray) -> None:
        """Fill f (n_f, 3)."""

    @abstractmethod
    def law_derivatives(
        self,
        y: FloatArray,
        y_dot: FloatArray,
        p: FloatArray,
        f: FloatArray,
        f_y: FloatArray,
        f_v: FloatArray,
        f_p: FloatArray,
    ) -> None:
        """Fill f, and df/dy, df/dy_dot (n, 3 arity, 3 arity), df/dp (n, 3 arity, n_p), which are zeros."""

    def law_energy(self, y: FloatArray, p: FloatArray) -> float:
        """Return the energy stored [J], y (n, arity, 3)."""
        return 0.0

    def pattern(self) -> tuple[IntArray, IntArray]:
        """Return dense blocks over the coordinates of an interaction."""
        return self.sites.pattern

    @final
    def _at(self, kin: Kinematics, theta: FloatArray) -> Evaluation:
        return Evaluation(self.sites, self.values, kin.q, kin.v, kin.t, theta)

    @final
    def _linearised(self, at: Evaluation) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        n, size = self.sites.n, 3 * self.sites.arity
        f = np.empty_like(at.y)
        f_y, f_v = np.zeros((n, size, size)), np.zeros((n, size, size))
        f_p = np.zeros((n, size, at.p.shape[1]))
        self.law_derivatives(at.y, at.y_dot, at.p, f, f_y, f_v, f_p)
        return f, f_y, f_v, f_p

    @final
    def residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add -J^T f."""
        at = self._at(kin, theta)
        f = np.empty_like(at.y)
        self.law_forces(at.y, at.y_dot, at.p, f)
        at.pull(self.sites, kin.q, f, out)

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
        at = self._at(kin, theta)
        f = np.empty_like(at.y)
        self.law_forces(at.y, at.y_dot, at.p, f)
        return f.reshape(self.sites.n, self.sites.arity, 3)

    @final
    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the energy stored [J]."""
        at = self._at(kin, theta)
        return self.law_energy(at.y.reshape(self.sites.n, self.sites.arity, 3), at.p)


@dataclass(frozen=True)
class DecidingJointLaw(DecidingTerm):
    """A coupling whose law has branches: an int8 code for every interaction, zero where it is idle.

    Attributes
    ----------
    sites : Sites
    values : LawValues
    """

    slots: ClassVar[Slots]
    n_columns: ClassVar[int]

    sites: Sites
    values: LawValues

    def __post_init__(self) -> None:
        sites = grouped(type(self).__name__, self.slots, self.n_columns, self.sites, self.values)
        object.__setattr__(self, "sites", sites)

    @property
    def inputs(self) -> IntArray:
        """See `Term.inputs`."""
        return self.values.rows[self.values.rows >= 0]

    @abstractmethod
    def decide_forces(self, y: FloatArray, y_dot: FloatArray, p: FloatArray, codes: Decision, f: FloatArray) -> int:
        """Fill codes (n,) and f (n_f, 3); return how many interactions act."""

    @abstractmethod
    def on_branch(self, decision: Decision, candidates: Candidates | None = None) -> JointLaw:
        """Return the smooth law of the given branch."""

    @final
    def decided_residual(
        self, kin: Kinematics, theta: FloatArray, out: FloatArray, sticking: Decision | None = None
    ) -> Decision:
        """Decide and add -J^T f in one pass."""
        at = Evaluation(self.sites, self.values, kin.q, kin.v, kin.t, theta)
        f, codes = np.empty_like(at.y), np.empty(self.sites.n, dtype=np.int8)
        if self.decide_forces(at.y, at.y_dot, at.p, codes, f):
            at.pull(self.sites, kin.q, f, out)
        return codes

    @final
    def decide(self, kin: Kinematics, theta: FloatArray) -> Decision:
        """Return the branch that holds at ``kin``."""
        at = Evaluation(self.sites, self.values, kin.q, kin.v, kin.t, theta)
        codes = np.empty(self.sites.n, dtype=np.int8)
        self.decide_forces(at.y, at.y_dot, at.p, codes, np.empty_like(at.y))
        return codes

    @final
    def structure(self, decision: Decision, candidates: Candidates | None = None) -> Hashable:
        """Return a constant: idle interactions keep their entries."""
        return None

    @final
    def forces(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return (n,) generalised forces; those on the sites are ``frozen(decision).forces``."""
        out = np.zeros_like(kin.q)
        self.decided_residual(kin, theta, out)
        return -out

    @final
    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the energy stored [J]."""
        return self.on_branch(self.decide(kin, theta)).energy(kin, theta)
