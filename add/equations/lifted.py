"""Terms, constraints and points that are written over rows of X = Phi(q), as terms, constraints and points over q.

`add.equations.lift` has the equations.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from scipy.sparse import coo_array

from add.equations.kinematics import Kinematics, Weights
from add.equations.lift import Lift, LiftedState
from add.equations.term import Candidates, Constraint, DecidingTerm, Decision, KinematicCotangent, Term
from add.kernels.caching import njit
from add.typing import FloatArray, IntArray

#: Expansions of branches that a deciding term keeps.
MOST_EXPANSIONS = 8


@final
@dataclass(frozen=True)
class Expansion:
    """Local entries over rows of X, each spread over the coordinates that its row and column depend on.

    Attributes
    ----------
    rows, cols : (k,) in q; those of the curvature last
    entry : (k',) the entry over X
    left, right : (k',) numbers of the entries of P that multiply it
    n_entries : entries over X
    """

    rows: IntArray
    cols: IntArray
    entry: IntArray
    left: IntArray
    right: IntArray
    n_entries: int

    @classmethod
    def of(cls, lift: Lift, rows: IntArray, cols: IntArray) -> Expansion:
        """Spread a pattern over X; rows and columns beyond X (multipliers) move behind q."""
        first, coordinate, number = lift.entries
        n_x = lift.rows.n
        beyond = np.arange(int(max(rows.max(initial=-1), cols.max(initial=-1), n_x - 1)) + 1 - n_x, dtype=np.int64)
        first = np.concatenate([first, first[-1] + 1 + beyond])
        coordinate = np.concatenate([coordinate, lift.dofs.n + beyond])
        number = np.concatenate([number, np.zeros_like(beyond)])
        high, wide = first[rows + 1] - first[rows], first[cols + 1] - first[cols]
        entry = np.repeat(np.arange(rows.size), high * wide)
        within = np.arange(entry.size) - np.repeat(np.cumsum(high * wide) - high * wide, high * wide)
        left = first[rows[entry]] + within // wide[entry]
        right = first[cols[entry]] + within % wide[entry]
        more_rows, more_cols = lift.curvature_pattern()
        return cls(
            np.concatenate([coordinate[left], more_rows]),
            np.concatenate([coordinate[right], more_cols]),
            entry,
            number[left],
            number[right],
            int(rows.size),
        )


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
    def of(cls, inner: Term, lift: Lift) -> LiftedTerm:
        """Lift a term."""
        return cls(inner, lift, Expansion.of(lift, *inner.pattern()))

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
        for values, unit in zip(by, (Weights(1, 0, 0), Weights(0, 1, 0), Weights(0, 0, 1)), strict=True):
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


def add_expanded(
    data: FloatArray, slots: IntArray, spread: Expansion, at: LiftedState, by: FloatArray, weights: Weights
) -> None:
    """Add the weighted entries ``by`` (3, n_entries) of dr_X/d(X, V, A), spread over q, to ``data[slots]``."""
    factors = np.array([weights.q, weights.v, weights.a])
    _add_expanded(data, slots, spread.entry, spread.left, spread.right, at.p, at.q, by, factors)


@njit(cache=True)
def _add_expanded(data, slots, entry, left, right, p, q, by, weights):
    w_q, w_v, w_a = weights
    for k in range(entry.size):
        e, l, r = entry[k], left[k], right[k]
        value = (w_q * by[0, e] + w_v * by[1, e] + w_a * by[2, e]) * p[r] + w_q * by[1, e] * q[r]
        data[slots[k]] += p[l] * value


@final
@dataclass(frozen=True)
class LiftedDecidingTerm(DecidingTerm):
    """A term with branches on rows of X as one on q.

    Attributes
    ----------
    inner : DecidingTerm
        Without hybrid friction.
    lift : Lift
    """

    inner: DecidingTerm
    lift: Lift
    _expansions: OrderedDict[Hashable, Expansion] = field(default_factory=OrderedDict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.inner.sticking is not None:
            raise ValueError("hybrid friction on bodies with coordinates of their own: use linear or tanh")

    def decide(self, kin: Kinematics, theta: FloatArray) -> Decision:
        """Return the branch that holds at ``kin``."""
        return self.inner.decide(self.lift.kinematics(kin, theta), theta)

    def candidates(self, kin: Kinematics, theta: FloatArray, dt: float) -> Candidates | None:
        """Return those of the inner term."""
        return self.inner.candidates(self.lift.kinematics(kin, theta), theta, dt)

    def structure(self, decision: Decision, candidates: Candidates | None = None) -> Hashable:
        """Return that of the inner term."""
        return self.inner.structure(decision, candidates)

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

    def tightest(self, kin: Kinematics, theta: FloatArray) -> str:
        """Return what is most in the way of the inner term."""
        return self.inner.tightest(self.lift.kinematics(kin, theta), theta)

    def describe(self, decision: Decision) -> dict[str, int]:
        """Return the counts of the inner term."""
        return self.inner.describe(decision)

    def forces(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return (n_q,) generalised forces."""
        at, out = self.lift.at(kin, theta), np.zeros(self.lift.dofs.n)
        self.lift.pull(at, self.inner.forces(at.kin, theta), out)
        return out

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the energy stored [J]."""
        return self.inner.energy(self.lift.kinematics(kin, theta), theta)

    def stiffnesses(self) -> IntArray:
        """Return the indices in theta by which all forces scale together."""
        return self.inner.stiffnesses()


@final
@dataclass(frozen=True)
class LiftedConstraint(Constraint):
    """Equations on rows of X as equations on q.

    Attributes
    ----------
    inner : Constraint
    lift : Lift
    """

    inner: Constraint
    lift: Lift
    _expansion: Expansion = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_expansion", Expansion.of(self.lift, *self.inner.pattern(self.lift.rows.n)))

    @property
    def n_rows(self) -> int:
        """Number of equations."""
        return self.inner.n_rows

    def pattern(self, first: int) -> tuple[IntArray, IntArray]:
        """Return flat (rows, cols)."""
        n = self.lift.dofs.n
        rows, cols = (
            np.where(part < n, part, part - n + first) for part in (self._expansion.rows, self._expansion.cols)
        )
        return rows, cols

    def residual(self, kin: Kinematics, mu: FloatArray, theta: FloatArray, out: FloatArray, rows: FloatArray) -> None:
        """Add P^T G_X^T mu to ``out`` and c to ``rows``."""
        at, r = self.lift.at(kin, theta), np.zeros(self.lift.rows.n)
        self.inner.residual(at.kin, mu, theta, r, rows)
        self.lift.pull(at, r, out)

    def jacobian(
        self,
        kin: Kinematics,
        mu: FloatArray,
        theta: FloatArray,
        weights: Weights,
        data: FloatArray,
        slots: IntArray,
    ) -> None:
        """Add the weighted derivatives of both parts, and weights.multiplier times those by mu."""
        at, spread = self.lift.at(kin, theta), self._expansion
        by, places = np.zeros((3, spread.n_entries)), np.arange(spread.n_entries)
        for values, unit in zip(by, (Weights(1, 0, 0), Weights(0, 1, 0), Weights(0, 0, 1)), strict=True):
            self.inner.jacobian(at.kin, mu, theta, unit, values, places)
        add_expanded(data, slots, spread, at, by, weights)
        if weights.multiplier:
            by = np.zeros((3, spread.n_entries))
            self.inner.jacobian(at.kin, mu, theta, Weights(0, 0, 0, weights.multiplier), by[2], places)
            add_expanded(data, slots, spread, at, by, Weights(0.0, 0.0, 1.0))
        if weights.q:
            r = np.zeros(self.lift.rows.n)
            self.inner.residual(at.kin, mu, theta, r, np.zeros(self.n_rows))
            np.add.at(data, slots[spread.entry.size :], weights.q * self.lift.curvature(kin, theta, r))

    def parameter_vjp(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, lam: FloatArray, lam_rows: FloatArray, out: FloatArray
    ) -> None:
        """Add the cotangents of theta."""
        at, lift = self.lift.at(kin, theta), self.lift
        pushed = lift.push(at, lam)
        self.inner.parameter_vjp(at.kin, mu, theta, pushed, lam_rows, out)
        if lift.has_parameters:
            r, rows = np.zeros(lift.rows.n), np.zeros(self.n_rows)
            self.inner.residual(at.kin, mu, theta, r, rows)
            by = self._by_rows(at, mu, theta)
            left = np.concatenate([pushed, lam_rows])
            x_bar, v_bar = (left @ block for block in by)
            lift.parameter_vjp(kin, theta, kin.v, x_bar, v_bar, out)
            lift.parameter_vjp(kin, theta, lam, np.zeros_like(r), r, out)

    def parameter_jvp(
        self,
        kin: Kinematics,
        mu: FloatArray,
        theta: FloatArray,
        theta_dot: FloatArray,
        out: FloatArray,
        rows: FloatArray,
    ) -> None:
        """Add the derivatives along theta_dot."""
        at, lift, r = self.lift.at(kin, theta), self.lift, np.zeros(self.lift.rows.n)
        self.inner.parameter_jvp(at.kin, mu, theta, theta_dot, r, rows)
        if lift.has_parameters:
            force = np.zeros(lift.rows.n)
            self.inner.residual(at.kin, mu, theta, force, np.zeros(self.n_rows))
            tangents = lift.parameter_jvp(kin, theta, kin.v, theta_dot)
            for block, along in zip(self._by_rows(at, mu, theta), tangents, strict=True):
                change = block @ along
                r += change[: lift.rows.n]
                rows += change[lift.rows.n :]
            lift.pull_parameter_jvp(kin, theta, theta_dot, force, out)
        lift.pull(at, r, out)

    def _by_rows(self, at: LiftedState, mu: FloatArray, theta: FloatArray) -> tuple[Any, Any]:
        """Return the derivatives of both parts by X and by V, sparse (n_x + n_rows, n_x)."""
        rows, cols = self.inner.pattern(self.lift.rows.n)
        n, size = self.lift.rows.n, self.lift.rows.n + self.n_rows
        out = []
        for unit in (Weights(1.0, 0.0, 0.0), Weights(0.0, 1.0, 0.0)):
            values = np.zeros(rows.size)
            self.inner.jacobian(at.kin, mu, theta, unit, values, np.arange(rows.size))
            out.append(coo_array((values, (rows, cols)), shape=(size, size)).tocsr()[:, :n])
        return out[0], out[1]
