"""Terms, constraints, and the one place where they are summed: r(q, v, a; theta, t) = M a - f = 0."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, final

import numpy as np

from add.assembly import Pattern, add_product
from add.kinematics import Kinematics, Weights
from add.layout import DofLayout, DofPartition, ParameterLayout
from add.linalg import DENSE_LIMIT, Factorization, factorization_for
from add.motion import Motion
from add.tangents import Columns, Directions, ThetaMap, push
from add.typing import AnyArray, FloatArray, IntArray

#: What a deciding term decided: an integer array.
Decision = AnyArray
Decisions = tuple[Decision, ...]


@dataclass
class KinematicCotangent:
    """Cotangents of (q, v, a), accumulated."""

    q: FloatArray
    v: FloatArray
    a: FloatArray

    @classmethod
    def zeros(cls, n: int) -> KinematicCotangent:
        """Return a zero cotangent."""
        return cls(np.zeros(n), np.zeros(n), np.zeros(n))


_UNIT = (("q", Weights(1.0, 0.0, 0.0)), ("v", Weights(0.0, 1.0, 0.0)), ("a", Weights(0.0, 0.0, 1.0)))


class Term(ABC):
    """One force family over all bodies that have it. All methods add, none overwrites.

    A term holds indices and structure; every differentiable number is read from ``theta``. ``depends`` names the
    kinematic arguments that the term reads; derivatives by the others are zero and are not computed.
    """

    depends: ClassVar[str] = "qva"

    @abstractmethod
    def pattern(self) -> tuple[IntArray, IntArray]:
        """Return flat (rows, cols) of all local entries; repeats allowed."""

    @abstractmethod
    def residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add the term's share of r to ``out`` (n,): forces enter with a minus."""

    @abstractmethod
    def jacobian(self, kin: Kinematics, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray) -> None:
        """Add weights.q dr/dq + weights.v dr/dv + weights.a dr/da to ``data[slots[k]]``, k as in `pattern`."""

    @abstractmethod
    def parameter_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> None:
        """Add lam^T dr/dtheta to ``out`` (n_theta,)."""

    @abstractmethod
    def parameter_jvp(self, kin: Kinematics, theta: FloatArray, theta_dot: FloatArray, out: FloatArray) -> None:
        """Add dr/dtheta theta_dot to ``out`` (n,)."""

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the energy stored by this term [J]; zero for terms that store none."""
        return 0.0

    @final
    def state_vjp(
        self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: KinematicCotangent, wanted: str = "qva"
    ) -> None:
        """Add lam^T dr/d(q, v, a) to ``out``; by the Newton derivative itself, so that they cannot disagree."""
        rows, cols = self.pattern()
        for name, values in self._derivatives(kin, theta, wanted):
            add_product(cols, rows, values, lam, getattr(out, name))

    @final
    def state_jvp(
        self, kin: Kinematics, theta: FloatArray, dots: Sequence[KinematicCotangent], outs: Sequence[FloatArray]
    ) -> None:
        """Add dr/dq q_dot + dr/dv v_dot + dr/da a_dot of every tangent to its ``out``."""
        rows, cols = self.pattern()
        for name, values in self._derivatives(kin, theta, "qva"):
            for dot, out in zip(dots, outs, strict=True):
                add_product(rows, cols, values, getattr(dot, name), out)

    def _derivatives(self, kin: Kinematics, theta: FloatArray, wanted: str) -> Iterator[tuple[str, FloatArray]]:
        size = self.pattern()[0].size
        slots = np.arange(size)
        for name, weights in _UNIT:
            if name in wanted and name in self.depends:
                values = np.zeros(size)
                self.jacobian(kin, theta, weights, values, slots)
                yield name, values


class DecidingTerm(ABC):
    """A force with branches (contact made or not, stick or slip). A branch is a value, and each branch is smooth.

    Newton decides anew at every residual; the record keeps the last decision, and the backward pass, replayed finite
    differences and recomputations evaluate the frozen branch.
    """

    @abstractmethod
    def decide(self, kin: Kinematics, theta: FloatArray) -> Decision:
        """Return the branch that holds at ``kin``."""

    @abstractmethod
    def structure(self, decision: Decision) -> Hashable:
        """Return what the sparsity of this branch depends on; equal values share a pattern."""

    @abstractmethod
    def frozen(self, decision: Decision) -> Term:
        """Return the smooth term of this branch."""

    @abstractmethod
    def decided_residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> Decision:
        """Decide and add the residual in one pass; return the decision."""

    @abstractmethod
    def describe(self, decision: Decision) -> dict[str, int]:
        """Return counts that a person wants to see (touching, sticking, slipping)."""

    @abstractmethod
    def forces(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return (n,) generalised contact forces for display [N]."""

    @abstractmethod
    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the energy stored [J]."""

    def stiffnesses(self) -> IntArray:
        """Return the indices in theta by which all forces of this term scale together; none if there are no such."""
        return np.zeros(0, dtype=np.int64)


class Constraint(ABC):
    """Equations c(q, v; theta, t) = 0 with multipliers mu as unknowns of the step; the force on the bodies is -G^T mu.

    Multipliers have a numbering of their own behind the coordinates: row or column ``n_dofs + first + k`` is
    multiplier k of this constraint.
    """

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of equations."""

    @abstractmethod
    def pattern(self, first: int) -> tuple[IntArray, IntArray]:
        """Return flat (rows, cols); ``first`` is the number of this constraint's first multiplier."""

    @abstractmethod
    def residual(self, kin: Kinematics, mu: FloatArray, theta: FloatArray, out: FloatArray, rows: FloatArray) -> None:
        """Add G^T mu to ``out`` (n,) and c to ``rows`` (n_rows,)."""

    @abstractmethod
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

    @abstractmethod
    def parameter_vjp(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, lam: FloatArray, lam_rows: FloatArray, out: FloatArray
    ) -> None:
        """Add lam^T d(G^T mu)/dtheta + lam_rows^T dc/dtheta to ``out``."""

    @abstractmethod
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
    _starts: tuple[int, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        starts = np.cumsum([0, *(c.n_rows for c in self.constraints)])
        object.__setattr__(self, "n_multipliers", int(starts[-1]))
        object.__setattr__(self, "_starts", tuple(int(s) for s in starts[:-1]))

    @property
    def n(self) -> int:
        """Number of coordinates."""
        return self.dofs.n

    @property
    def n_unknowns(self) -> int:
        """Free coordinates and multipliers."""
        return self.partition.free.size + self.n_multipliers

    def residual(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, decisions: Decisions | None = None
    ) -> tuple[FloatArray, FloatArray, Decisions]:
        """Return r (n,), c (n_multipliers,) and the decisions made, or given, for it."""
        r = np.zeros(self.n)
        for term in self.terms:
            term.residual(kin, theta, r)
        if decisions is None:
            decisions = tuple(d.decided_residual(kin, theta, r) for d in self.deciding)
        else:
            for deciding, decision in zip(self.deciding, decisions, strict=True):
                deciding.frozen(decision).residual(kin, theta, r)
        rows = np.zeros(self.n_multipliers)
        for constraint, part in self._parts():
            constraint.residual(kin, mu[part], theta, r, rows[part])
        return r, rows, decisions

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
        for (constraint, part), first in zip(self._parts(), self._starts, strict=True):
            rows, cols = self._constraint_pattern(constraint, first)
            for name, weights in _UNIT:
                if name in wanted:
                    values = np.zeros(rows.size)
                    constraint.jacobian(kin, mu[part], theta, weights, values, np.arange(rows.size))
                    wide = np.zeros(self.n + self.n_multipliers)
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
        for constraint, part in self._parts():
            constraint.parameter_vjp(kin, mu[part], theta, lam, lam_rows[part], out)

    def parameter_tangents(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, decisions: Decisions, directions: Directions
    ) -> Columns:
        """Return the tangents of (r, c), (n + n_multipliers, k), along directions of theta."""
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
        maps += [of_constraint(constraint, part) for constraint, part in self._parts()]
        return push(maps, n + self.n_multipliers, directions)

    def motion_tangents(self, t: float, theta: FloatArray, directions: Directions) -> Columns:
        """Return the tangents of the prescribed coordinates, (n_p, k), along directions of theta."""
        motion, n = self.motion, self.partition.prescribed.size

        def jvp(theta_dot: FloatArray, out: FloatArray) -> None:
            out += motion.jvp(t, theta, theta_dot)[0]

        parts = [ThetaMap(jvp, lambda bar, out: motion.vjp(t, theta, bar, None, out))] if n else []
        return push(parts, n, directions)

    def _parts(self) -> Sequence[tuple[Constraint, slice]]:
        return [
            (constraint, slice(first, first + constraint.n_rows))
            for constraint, first in zip(self.constraints, self._starts, strict=True)
        ]

    def _constraint_pattern(self, constraint: Constraint, first: int) -> tuple[IntArray, IntArray]:
        return constraint.pattern(self.n + first)


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
        entries += [
            system._constraint_pattern(c, first) for c, first in zip(system.constraints, system._starts, strict=True)
        ]
        return entries

    def assemble(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, weights: Weights, decisions: Decisions
    ) -> tuple[Pattern, FloatArray]:
        """Return the pattern and the values of the weighted Jacobian; the values are reused by the next call."""
        pattern = self.pattern(decisions)
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
        for constraint, part in system._parts():
            constraint.jacobian(kin, mu[part], theta, weights, data, next(slots))

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
        """Return the tangents (n + n_multipliers, k) of (r, c) along tangents (n, k) of q, v and a.

        dr/dq is left out where q_dot is zero: it is not, in a step, only where coordinates are prescribed.
        """
        system = self.system
        size = system.n + system.n_multipliers
        key = self._structure(decisions)
        if key not in self._whole:
            self._whole[key] = Pattern.build(size, self._entries(decisions))
        pattern = self._whole[key]
        out = np.zeros((size, q_dot.shape[1]))
        dots = (q_dot if q_dot.any() else None, v_dot, a_dot)
        for (_, weights), dot in zip(_UNIT, dots, strict=True):
            if dot is not None:
                data = pattern.new_data()
                self._fill(pattern, data, kin, mu, theta, weights, decisions)
                matrix = pattern.matrix(data)
                by_state = matrix.toarray() if size <= DENSE_LIMIT else matrix
                out += by_state[:, : system.n] @ dot
        return out

    def factor(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, weights: Weights, decisions: Decisions
    ) -> Factorization:
        """Assemble and factor."""
        pattern, data = self.assemble(kin, mu, theta, weights, decisions)
        self.factorization.factor(pattern, data)
        return self.factorization
