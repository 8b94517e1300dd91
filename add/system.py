"""A system of terms and constraints, and the one place where they are summed: r(q, v, a; theta, t) = M a - f = 0."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np

from add.assembly import Pattern, add_product
from add.kinematics import Kinematics, Weights
from add.layout import DofLayout, DofPartition, ParameterLayout
from add.linalg import DENSE_LIMIT, Factorization, factorization_for
from add.motion import Motion
from add.saddle import PENALTY, HeldSolve, Rows
from add.tangents import Columns, Directions, ThetaMap, push
from add.term import UNIT, Constraint, DecidingTerm, Decisions, Hold, KinematicCotangent, Term
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class System:
    """Everything that makes forces, and the layout of the numbers it acts on.

    Attributes
    ----------
    dofs, parameters : layouts of q and theta
    partition : free and prescribed coordinates
    motion : the prescribed coordinates over time
    terms : smooth force families
    deciding : force families with branches
    constraints : equations with multipliers
    n_multipliers : number of rows of the constraints
    holding : whether contacts may add rows of their own, see `holds`
    rotations : first coordinates of the rotation vectors that change chart beyond pi (see `add.charts`)
    """

    dofs: DofLayout
    parameters: ParameterLayout
    partition: DofPartition
    motion: Motion
    terms: tuple[Term, ...]
    deciding: tuple[DecidingTerm, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    rotations: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    n_multipliers: int = field(init=False)
    holding: bool = field(init=False)
    _starts: tuple[int, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        starts = np.cumsum([0, *(c.n_rows for c in self.constraints)])
        object.__setattr__(self, "n_multipliers", int(starts[-1]))
        object.__setattr__(self, "holding", any(d.holds for d in self.deciding))
        object.__setattr__(self, "_starts", tuple(int(s) for s in starts[:-1]))

    @property
    def n(self) -> int:
        """Number of coordinates."""
        return self.dofs.n

    @property
    def n_unknowns(self) -> int:
        """Free coordinates and multipliers."""
        return self.partition.free.size + self.n_multipliers

    def holds(self, decisions: Decisions) -> list[tuple[int, Hold]]:
        """Return the deciding terms, by number, that hold anything, with the equations that hold it."""
        if not self.holding:
            return []
        pairs = ((k, d.held(x)) for k, (d, x) in enumerate(zip(self.deciding, decisions, strict=True)))
        return [(k, hold) for k, hold in pairs if hold is not None]

    def n_rows(self, decisions: Decisions) -> int:
        """Return the number of multipliers: those of the constraints, then the reactions of what is held."""
        return self.n_multipliers + sum(hold.n_rows for _, hold in self.holds(decisions))

    def residual(
        self,
        kin: Kinematics,
        mu: FloatArray,
        theta: FloatArray,
        decisions: Decisions | None = None,
        held: Decisions | None = None,
    ) -> tuple[FloatArray, FloatArray, Decisions]:
        """Return r (n,), the rows (n_rows,) and the decisions made, or given, for it; ``held`` stays held."""
        r = np.zeros(self.n)
        for term in self.terms:
            term.residual(kin, theta, r)
        if decisions is None:
            kept = held or (None,) * len(self.deciding)
            decisions = tuple(d.decided_residual(kin, theta, r, h) for d, h in zip(self.deciding, kept, strict=True))
        else:
            for deciding, decision in zip(self.deciding, decisions, strict=True):
                deciding.frozen(decision).residual(kin, theta, r)
        rows = np.zeros(mu.size)
        for constraint, part in self._parts(decisions):
            constraint.residual(kin, mu[part], theta, r, rows[part])
        return r, rows, decisions

    def reactions(self, k: int, mu: FloatArray, decisions: Decisions) -> FloatArray:
        """Return the part of the multipliers that are reactions of what deciding term number ``k`` holds [N]."""
        first = self.n_multipliers
        for j, hold in self.holds(decisions):
            if j == k:
                return mu[first : first + hold.n_rows]
            first += hold.n_rows
        return np.zeros(0)

    def decided_forces(
        self, k: int, kin: Kinematics, mu: FloatArray, theta: FloatArray, decisions: Decisions
    ) -> FloatArray:
        """Return the generalised forces (n,) of deciding term number ``k`` on a branch, reactions included [N]."""
        r = np.zeros(self.n)
        self.deciding[k].frozen(decisions[k]).residual(kin, theta, r)
        hold = self.deciding[k].held(decisions[k])
        if hold is not None:
            hold.residual(kin, self.reactions(k, mu, decisions), theta, r, np.zeros(hold.n_rows))
        return -r

    def force_scale(self, kin: Kinematics, theta: FloatArray, decisions: Decisions, order: int) -> float:
        """Return the norm of the largest force family at ``kin`` [N]: what |r| has to be small against."""
        largest = 0.0
        for term in self.frozen_terms(decisions):
            r = np.zeros(self.n)
            term.residual(kin, theta, r)
            largest = max(largest, float(np.linalg.norm(r, order)))
        return largest

    def frozen_terms(self, decisions: Decisions) -> tuple[Term, ...]:
        """Return all terms, the deciding ones on the given branch."""
        return self.terms + tuple(d.frozen(x) for d, x in zip(self.deciding, decisions, strict=True))

    def state_vjp(
        self,
        kin: Kinematics,
        mu: FloatArray,
        theta: FloatArray,
        decisions: Decisions,
        lam: FloatArray,
        lam_rows: FloatArray,
        wanted: str = "qva",
    ) -> KinematicCotangent:
        """Return the cotangents lam^T dr/d(q, v, a) + lam_rows^T dc/d(q, v, a)."""
        out = KinematicCotangent.zeros(self.n)
        for term in self.frozen_terms(decisions):
            term.state_vjp(kin, theta, lam, out, wanted)
        extended = np.concatenate([lam, lam_rows])
        for constraint, part in self._parts(decisions):
            rows, cols = constraint.pattern(self.n + part.start)
            for name, weights in UNIT:
                if name in wanted:
                    values = np.zeros(rows.size)
                    constraint.jacobian(kin, mu[part], theta, weights, values, np.arange(rows.size))
                    wide = np.zeros(self.n + mu.size)
                    add_product(cols, rows, values, extended, wide)
                    getattr(out, name)[:] += wide[: self.n]
        return out

    def parameter_vjp(
        self,
        kin: Kinematics,
        mu: FloatArray,
        theta: FloatArray,
        decisions: Decisions,
        lam: FloatArray,
        lam_rows: FloatArray,
        out: FloatArray,
    ) -> None:
        """Add lam^T dr/dtheta + lam_rows^T dc/dtheta to ``out``."""
        for term in self.frozen_terms(decisions):
            term.parameter_vjp(kin, theta, lam, out)
        for constraint, part in self._parts(decisions):
            constraint.parameter_vjp(kin, mu[part], theta, lam, lam_rows[part], out)

    def parameter_tangents(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, decisions: Decisions, directions: Directions
    ) -> Columns:
        """Return the tangents of r and the rows, (n + n_rows, k), along directions of theta."""
        n = self.n

        def of_term(term: Term) -> ThetaMap:
            return ThetaMap(
                lambda dot, out: term.parameter_jvp(kin, theta, dot, out[:n]),
                lambda bar, out: term.parameter_vjp(kin, theta, bar[:n], out),
            )

        def of_constraint(constraint: Constraint, part: slice) -> ThetaMap:
            return ThetaMap(
                lambda dot, out: constraint.parameter_jvp(kin, mu[part], theta, dot, out[:n], out[n:][part]),
                lambda bar, out: constraint.parameter_vjp(kin, mu[part], theta, bar[:n], bar[n:][part], out),
            )

        maps = [of_term(term) for term in self.frozen_terms(decisions)]
        maps += [of_constraint(constraint, part) for constraint, part in self._parts(decisions)]
        return push(maps, n + mu.size, directions)

    def motion_tangents(self, t: float, theta: FloatArray, directions: Directions) -> Columns:
        """Return the tangents of the prescribed coordinates, (n_p, k), along directions of theta."""
        motion, n = self.motion, self.partition.prescribed.size

        def jvp(theta_dot: FloatArray, out: FloatArray) -> None:
            out += motion.jvp(t, theta, theta_dot)[0]

        parts = [ThetaMap(jvp, lambda bar, out: motion.vjp(t, theta, bar, None, out))] if n else []
        return push(parts, n, directions)

    def _parts(self, decisions: Decisions) -> Sequence[tuple[Constraint, slice]]:
        parts: list[tuple[Constraint, slice]] = [
            (constraint, slice(first, first + constraint.n_rows))
            for constraint, first in zip(self.constraints, self._starts, strict=True)
        ]
        first = self.n_multipliers
        for _, hold in self.holds(decisions):
            parts.append((hold, slice(first, first + hold.n_rows)))
            first += hold.n_rows
        return parts


@final
class Assembler:
    """The matrix of a step: its pattern, its values and its factors. One per run, never shared between runs.

    Nothing here outlives a factorisation except structure, so that a recomputation from a checkpoint meets the same
    numbers.
    """

    def __init__(self, system: System, factorization: Factorization | None = None) -> None:
        self.system = system
        self.factorization = factorization or factorization_for(system.n_unknowns)
        compressed = np.full(system.n + system.n_multipliers, -1, dtype=np.int64)
        free = system.partition.free
        compressed[free] = np.arange(free.size)
        compressed[system.n :] = free.size + np.arange(system.n_multipliers)
        self._compressed = compressed
        self._patterns: dict[tuple[Hashable, ...], Pattern] = {}
        self._start: tuple[FloatArray, FloatArray] | None = None
        self._data = np.zeros(0)
        self._asked: tuple[Weights, tuple[object, ...]] | None = None
        # Derivatives by the state want the prescribed coordinates too.
        self._whole: dict[tuple[Hashable, ...], Pattern] = {}

    def prescribed(self, t: float, theta: FloatArray) -> FloatArray:
        """Return the prescribed coordinates (n_p,) at time ``t``; the initial pose is evaluated once a theta."""
        motion = self.system.motion
        if not motion.prescribed.size:
            return motion.positions(t, theta)
        if self._start is None or self._start[0] is not theta:
            self._start = theta, motion.initial.evaluate(theta)[0]
        return motion.positions(t, theta, self._start[1])

    def pattern(self, decisions: Decisions) -> Pattern:
        """Return the pattern of these decisions; a new one only when their structure is new."""
        key = self._structure(decisions)
        if key not in self._patterns:
            self._patterns[key] = Pattern.build(self.system.n_unknowns, self._entries(decisions), self._compressed)
        return self._patterns[key]

    def _structure(self, decisions: Decisions) -> tuple[Hashable, ...]:
        return tuple(d.structure(x) for d, x in zip(self.system.deciding, decisions, strict=True))

    def _entries(self, decisions: Decisions) -> list[tuple[IntArray, IntArray]]:
        system = self.system
        entries = [term.pattern() for term in system.frozen_terms(decisions)]
        entries += [c.pattern(system.n + first) for c, first in zip(system.constraints, system._starts, strict=True)]
        return entries

    def assemble(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, weights: Weights, decisions: Decisions
    ) -> tuple[Pattern, FloatArray]:
        """Return the pattern and the values of the weighted Jacobian; the values are reused by the next call.

        Asked again for the same state, it does nothing: a line search may want the diagonal of what is factored next.
        """
        pattern = self.pattern(decisions)
        asked = (kin, mu, theta, decisions)
        last = self._asked
        if last is not None and weights == last[0] and all(a is b for a, b in zip(asked, last[1], strict=True)):
            return pattern, self._data
        self._asked = weights, asked
        if self._data.size == pattern.nnz + 1:
            self._data[:] = 0.0
        else:
            self._data = pattern.new_data()
        self._fill(pattern, self._data, kin, mu, theta, weights, decisions)
        return pattern, self._data

    def _fill(
        self,
        pattern: Pattern,
        data: FloatArray,
        kin: Kinematics,
        mu: FloatArray,
        theta: FloatArray,
        weights: Weights,
        decisions: Decisions,
    ) -> None:
        system, slots = self.system, iter(pattern.slots)
        for term in system.frozen_terms(decisions):
            term.jacobian(kin, theta, weights, data, next(slots))
        for constraint, part in system._parts(decisions):
            if not isinstance(constraint, Hold):
                constraint.jacobian(kin, mu[part], theta, weights, data, next(slots))
        first = system.n_multipliers
        for k, hold in system.holds(decisions):
            if weights.q:
                lam = mu[first : first + hold.n_rows]
                hold.add_geometry(kin, lam, theta, weights.q, data, self._slots(pattern, k))
            first += hold.n_rows

    def _slots(self, pattern: Pattern, deciding: int) -> IntArray:
        """Return the slots of the frozen term of a deciding term."""
        return pattern.slots[len(self.system.terms) + deciding]

    def product(
        self,
        kin: Kinematics,
        mu: FloatArray,
        theta: FloatArray,
        decisions: Decisions,
        q_dot: FloatArray,
        v_dot: FloatArray | None = None,
        a_dot: FloatArray | None = None,
    ) -> FloatArray:
        """Return the tangents (n + n_rows, k) of r and the rows along tangents (n, k) of q, v and a.

        dr/dq is left out where q_dot is zero: it is not, in a step, only where coordinates are prescribed.
        """
        system = self.system
        size = system.n + system.n_multipliers
        key = self._structure(decisions)
        if key not in self._whole:
            self._whole[key] = Pattern.build(size, self._entries(decisions))
        pattern = self._whole[key]
        out = np.zeros((system.n + mu.size, q_dot.shape[1]))
        dots = (q_dot if q_dot.any() else None, v_dot, a_dot)
        for (name, weights), dot in zip(UNIT, dots, strict=True):
            if dot is not None:
                data = pattern.new_data()
                self._fill(pattern, data, kin, mu, theta, weights, decisions)
                matrix = pattern.matrix(data)
                by_state = matrix.toarray() if size <= DENSE_LIMIT else matrix
                out[:size] += by_state[:, : system.n] @ dot
                first = size
                for _, hold in system.holds(decisions):
                    if name != "a":
                        operators = hold.operators(kin, theta)
                        rows = operators.by_q if name == "q" else operators.by_v
                        # A missing coordinate has a zero column.
                        moved = np.einsum("kam,kmj->kaj", rows, dot[operators.dofs])
                        out[first : first + hold.n_rows] += moved.reshape(hold.n_rows, -1)
                    first += hold.n_rows
        return out

    def factor(
        self,
        kin: Kinematics,
        mu: FloatArray,
        theta: FloatArray,
        weights: Weights,
        decisions: Decisions,
        damping: float = 0.0,
    ) -> Factorization | HeldSolve:
        """Assemble and factor; the result solves for free coordinates, multipliers and reactions.

        ``damping`` adds this multiple of the largest diagonal entry to all coordinates.

        Raises
        ------
        SolverError
            If the matrix is singular or not finite.
        """
        pattern, data = self.assemble(kin, mu, theta, weights, decisions)
        self._asked = None  # damping and penalties change the values
        n_free = self.system.partition.free.size
        diagonal = pattern.diagonal[:n_free]
        holds = self.system.holds(decisions)
        size = float(np.abs(data[diagonal]).mean()) if holds else 0.0
        if damping:
            data[diagonal] += damping * np.abs(data[diagonal]).max()
        if not holds:
            self.factorization.factor(pattern, data)
            return self.factorization
        exact = data.copy()
        penalty = PENALTY * size / weights.v
        dofs, by_v, by_u = [], [], []
        for k, hold in holds:
            operators = hold.operators(kin, theta)
            hold.add_penalty(operators, weights, penalty, data, self._slots(pattern, k))
            dofs.append(operators.dofs)
            by_v.append(operators.by_v)
            by_u.append(weights.q * operators.by_q + weights.v * operators.by_v)
        self.factorization.factor(pattern, data)
        index = self._columns(dofs)
        return HeldSolve(
            self.factorization, pattern, exact, Rows(index, _stack(by_v)), Rows(index, _stack(by_u)), penalty
        )

    def _columns(self, dofs: list[IntArray]) -> IntArray:
        """Return the unknowns (k, m) of coordinates, -1 for those that are not free; as wide as the widest."""
        wide = max(part.shape[1] for part in dofs)
        out = np.full((sum(part.shape[0] for part in dofs), wide), -1, dtype=np.int64)
        first = 0
        for part in dofs:
            place = out[first : first + part.shape[0], : part.shape[1]]
            place[...] = np.where(part >= 0, self._compressed[part], -1)
            first += part.shape[0]
        return out


def _stack(blocks: list[FloatArray]) -> FloatArray:
    """Return blocks (k, 3, m) of all parts, as wide as the widest."""
    if len(blocks) == 1:
        return blocks[0]
    wide = max(part.shape[2] for part in blocks)
    return np.concatenate([np.pad(part, ((0, 0), (0, 0), (0, wide - part.shape[2]))) for part in blocks])
