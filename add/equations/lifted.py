"""Terms that are written over rows of X = Phi(q), as terms over q, and how far a trial step may go.

`add.equations.lift` has the equations.
"""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np

from add.equations.kinematics import KinematicCotangent, Kinematics, Weights
from add.equations.lift import Lift
from add.equations.lifted_constraint import Expansion, LiftedStick, add_expanded
from add.equations.term import UNIT, Candidates, DecidingTerm, Decision, StickingTerm, Term
from add.typing import BoolArray, FloatArray, IntArray

#: Expansions of branches that a deciding term keeps.
MOST_EXPANSIONS = 8


@final
@dataclass(frozen=True)
class LiftedTerm(Term):
    """A term on rows of X as a term on q.

    Attributes
    ----------
    inner : Term
    lift : Lift
    expansion : Expansion
        Of the inner term's pattern.
    """

    inner: Term
    lift: Lift
    expansion: Expansion

    @classmethod
    def of(cls, inner: Term, lift: Lift) -> "LiftedTerm":
        """Lift a term."""
        return cls(inner, lift, Expansion.of(lift, *inner.pattern()))

    @property
    def inputs(self) -> IntArray:
        """Inputs of the inner term."""
        return self.inner.inputs

    def pattern(self) -> tuple[IntArray, IntArray]:
        """Return the spread entries, then those of the curvature."""
        return self.expansion.rows, self.expansion.cols

    def residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add P^T r_X."""
        at, r = self.lift.at(kin, theta, rates=False), np.zeros(self.lift.rows.n)
        self.inner.residual(at.kin, theta, r)
        self.lift.pull(at, r, out)

    def jacobian(self, kin: Kinematics, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray) -> None:
        """Add P^T (w_q (K P + C Q) + w_v C P + w_a M P) + w_q H."""
        at, spread = self.lift.at(kin, theta), self.expansion
        by = np.zeros((3, spread.n_entries))
        places = np.arange(spread.n_entries)
        asked = weights.q, weights.q or weights.v, weights.a
        for values, (name, unit), weight in zip(by, UNIT, asked, strict=True):
            if weight and name in self.inner.depends:
                self.inner.jacobian(at.kin, theta, unit, values, places)
        add_expanded(data, slots, spread, at, by, weights)
        if weights.q:
            r = np.zeros(self.lift.rows.n)
            self.inner.residual(at.kin, theta, r)
            np.add.at(data, slots[spread.entry.size :], weights.q * self.lift.curvature(kin, theta, r))

    def parameter_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> None:
        """Add (P lam)^T dr_X/dtheta, and the share of Phi, P and V in it."""
        at, lift = self.lift.at(kin, theta, rates=False), self.lift
        pushed = lift.push(at, lam)
        self.inner.parameter_vjp(at.kin, theta, pushed, out)
        if lift.has_parameters:
            bar, r = KinematicCotangent.zeros(lift.rows.n), np.zeros(lift.rows.n)
            self.inner.state_vjp(at.kin, theta, pushed, bar, "qv")
            self.inner.residual(at.kin, theta, r)
            lift.parameter_vjp(kin, theta, kin.v, bar.q, bar.v, out)
            lift.parameter_vjp(kin, theta, lam, np.zeros_like(r), r, out)

    def parameter_jvp(self, kin: Kinematics, theta: FloatArray, theta_dot: FloatArray, out: FloatArray) -> None:
        """Add P^T dr_X/dtheta theta_dot, and the share of Phi, P and V in it."""
        at, lift, r = self.lift.at(kin, theta), self.lift, np.zeros(self.lift.rows.n)
        self.inner.parameter_jvp(at.kin, theta, theta_dot, r)
        if lift.has_parameters:
            force = np.zeros(lift.rows.n)
            self.inner.residual(at.kin, theta, force)
            for name, along in zip("qv", lift.parameter_jvp(kin, theta, kin.v, theta_dot), strict=True):
                r += self.inner.state_jvp(at.kin, theta, along, name)
            lift.pull_parameter_jvp(kin, theta, theta_dot, force, out)
        lift.pull(at, r, out)

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the energy stored by the inner term [J]."""
        return self.inner.energy(self.lift.kinematics(kin, theta), theta)


@final
@dataclass(frozen=True)
class LiftedDecidingTerm(StickingTerm):
    """A term with branches on rows of X as one on q.

    Attributes
    ----------
    inner : DecidingTerm
    lift : Lift
    """

    inner: DecidingTerm
    lift: Lift
    _expansions: OrderedDict[Hashable, Expansion] = field(default_factory=OrderedDict, repr=False, compare=False)

    @property
    def inputs(self) -> IntArray:
        """Inputs of the inner term."""
        return self.inner.inputs

    def decide(self, kin: Kinematics, theta: FloatArray) -> Decision:
        """Return the branch that holds at ``kin``."""
        return self.inner.decide(self.lift.kinematics(kin, theta), theta)

    def candidates(self, kin: Kinematics, theta: FloatArray, dt: float) -> Candidates | None:
        """Return those of the inner term."""
        return self.inner.candidates(self.lift.kinematics(kin, theta), theta, dt)

    def keys(self, decision: Decision, candidates: Candidates | None = None) -> Candidates | None:
        """Return those of the inner term."""
        return self.inner.keys(decision, candidates)

    def on_branch(self, decision: Decision, candidates: Candidates | None = None) -> LiftedTerm:
        """Return the lifted smooth term of this branch."""
        branch, key = self.inner.on_branch(decision, candidates), self.structure(decision, candidates)
        expansion = self._expansions.get(key)
        if expansion is None:
            expansion = Expansion.of(self.lift, *branch.pattern())
            self._expansions[key] = expansion
            while len(self._expansions) > MOST_EXPANSIONS:
                self._expansions.popitem(last=False)
        return LiftedTerm(branch, self.lift, expansion)

    def decided_residual(
        self, kin: Kinematics, theta: FloatArray, out: FloatArray, sticking: Decision | None = None
    ) -> Decision:
        """Decide and add P^T r_X in one pass; return the decision."""
        at, r = self.lift.at(kin, theta, rates=False), np.zeros(self.lift.rows.n)
        decision = self.inner.decided_residual(at.kin, theta, r, sticking)
        self.lift.pull(at, r, out)
        return decision

    def changes(self, decision: Decision, other: Decision) -> int:
        """Return how many branches of the inner term differ."""
        return self.inner.changes(decision, other)

    def keep_faces(self, kin: Kinematics, theta: FloatArray, dt: float) -> Decision:
        """Return what keeps the pieces of the inner term."""
        return self.inner.keep_faces(self.lift.kinematics(kin, theta), theta, dt)

    def tightest(self, kin: Kinematics, theta: FloatArray) -> str:
        """Return what is most in the way of the inner term."""
        return self.inner.tightest(self.lift.kinematics(kin, theta), theta)

    def describe(self, decision: Decision) -> dict[str, int]:
        """Return the counts of the inner term."""
        return self.inner.describe(decision)

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the energy stored [J]."""
        return self.inner.energy(self.lift.kinematics(kin, theta), theta)

    def stiffnesses(self) -> IntArray:
        """Return the indices in theta by which all forces scale together."""
        return self.inner.stiffnesses()

    def damps_at_once(self, theta: FloatArray) -> bool:
        """Whether a damping acts whole as soon as anything touches."""
        return self.inner.damps_at_once(theta)

    # --- sticking -----------------------------------------------------------------------------------------------------

    @property
    def sticking(self) -> "LiftedDecidingTerm | None":
        """The term itself if the inner one has equations for points that stick."""
        return self if self.inner.sticking is not None else None

    @property
    def _holding(self) -> StickingTerm:
        inner = self.inner.sticking
        if inner is None:
            raise TypeError(f"nothing sticks by equations in {type(self.inner).__name__}")
        return inner

    def stick(self, decision: Decision) -> Decision:
        """Return the decision with a constraint on everything that sticks in it."""
        return self._holding.stick(decision)

    def stick_touching(self, decision: Decision) -> Decision:
        """Return the decision with a constraint on everything that touches."""
        return self._holding.stick_touching(decision)

    def none_creeps(self, decision: Decision) -> bool:
        """Return whether everything that touches, and could stick, sticks or slips."""
        return self._holding.none_creeps(decision)

    def at_rest(self, kin: Kinematics, theta: FloatArray) -> Decision:
        """Return the branch at ``kin`` with a constraint on all that rests, and without one on what creeps."""
        return self._holding.at_rest(self.lift.kinematics(kin, theta), theta)

    def stick_constraint(self, decision: Decision, candidates: Candidates | None = None) -> LiftedStick | None:
        """Return the equations of a decision; None if nothing sticks."""
        inner = self._holding.stick_constraint(decision, candidates)
        if inner is None:
            return None
        return LiftedStick(inner, self.lift, self.on_branch(decision, candidates).expansion)

    def release(self, decision: Decision, rows: BoolArray) -> Decision:
        """Return the decision with some points released."""
        return self._holding.release(decision, rows)

    def without(self, decision: Decision, rows: BoolArray) -> Decision:
        """Return the decision without the constraints of some points."""
        return self._holding.without(decision, rows)

    def is_sticking(self, decision: Decision, other: Decision) -> BoolArray:
        """Return which of the points that stick in ``decision`` (k,) stick in another one, too."""
        return self._holding.is_sticking(decision, other)


class StepLimit(ABC):
    """A bound on the way from one set of coordinates to another.

    It chooses which solution of a step is found and is no part of its equations: derivatives and replays ask nothing.
    """

    @abstractmethod
    def share(self, q0: FloatArray, q1: FloatArray, theta: FloatArray) -> float:
        """Return the largest known share in [0, 1] of the way from ``q0`` to ``q1``, both (n,), that may be gone."""


#: How often a way that one limit has shortened is shown to the others again.
_MOST_ROUNDS = 8


@final
@dataclass(frozen=True)
class AllLimits(StepLimit):
    """Several limits at once.

    Attributes
    ----------
    limits : StepLimit
    """

    limits: tuple[StepLimit, ...]

    @staticmethod
    def of(limits: Sequence[StepLimit]) -> StepLimit | None:
        """Return the limit that all are together; None for none."""
        return AllLimits(tuple(limits)) if len(limits) > 1 else (limits[0] if limits else None)

    def share(self, q0: FloatArray, q1: FloatArray, theta: FloatArray) -> float:
        """Return the share that all leave: one that has shortened the way is no word on a shorter one of arcs."""
        length = 1.0
        for _ in range(_MOST_ROUNDS):
            before = length
            for limit in self.limits:
                length *= limit.share(q0, q0 + length * (q1 - q0), theta)
                if length == 0.0:
                    return 0.0
            if length == before:
                return length
        return 0.0


#: How often a shortened way is tested again, for its rows of X are not on the way tested before.
MOST_TESTS = 12


@final
@dataclass(frozen=True)
class LiftedLimit(StepLimit):
    """The limit of a way of q by straight ways of X between its ends.

    Attributes
    ----------
    inner : StepLimit
    lift : Lift
    """

    inner: StepLimit
    lift: Lift

    def share(self, q0: FloatArray, q1: FloatArray, theta: FloatArray) -> float:
        """Return the largest known share of the way; see `StepLimit.share`."""
        begin, length = self._rows(q0, theta), 1.0
        for _ in range(MOST_TESTS):
            free = self.inner.share(begin, self._rows(q0 + length * (q1 - q0), theta), theta)
            if free >= 1.0:
                return length
            length *= free
        return 0.0

    def _rows(self, q: FloatArray, theta: FloatArray) -> FloatArray:
        none = np.zeros_like(q)
        return self.lift.kinematics(Kinematics(q, none, none, 0.0, 0), theta).q
