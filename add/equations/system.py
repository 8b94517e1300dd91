"""A system of terms and constraints: r(q, v, a; theta, t) = M a - f = 0, deciding and on one set of branches."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from typing import final

import numpy as np

from add.equations.initial import Motion
from add.equations.kinematics import Columns, Directions, KinematicCotangent, Kinematics, ThetaMap, push
from add.equations.layout import DofLayout, DofPartition, ParameterLayout
from add.equations.lifted import StepLimit
from add.equations.term import (
    UNIT,
    AllCandidates,
    Constraint,
    DecidingTerm,
    Decisions,
    StickConstraint,
    StickingTerm,
    Term,
)
from add.kernels.sticking import sticking
from add.linalg.pattern import add_product
from add.summary import Summarised, Summary
from add.typing import BoolArray, FloatArray, IntArray


@final
@dataclass(frozen=True, repr=False)
class System(Summarised):
    """Everything that makes forces, and the layout of the numbers it acts on.

    Attributes
    ----------
    dofs, parameters : layouts of q and theta
    partition : free and prescribed coordinates
    motion : the prescribed coordinates over time
    terms : smooth force families
    deciding : force families with branches
    constraints : equations with multipliers
    rotations : first coordinates of the rotation vectors that change chart beyond pi (see `add.equations.charts`)
    limit : how far a trial may go; None: anywhere
    n_multipliers : number of rows of the constraints
    sticking : the deciding terms, by number, that may add rows of their own, see `BranchEquations.stick_constraints`
    parts : the constraints with their multipliers
    owners : (n_free,) number of the body of each free coordinate, among those that have any
    """

    dofs: DofLayout
    parameters: ParameterLayout
    partition: DofPartition
    motion: Motion
    terms: tuple[Term, ...]
    deciding: tuple[DecidingTerm, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    rotations: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    limit: StepLimit | None = None
    n: int = field(init=False)
    n_multipliers: int = field(init=False)
    sticking: tuple[tuple[int, StickingTerm], ...] = field(init=False, repr=False)
    parts: list[tuple[Constraint, slice]] = field(init=False, repr=False)
    owners: IntArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        starts = [int(s) for s in np.cumsum([0, *(c.n_rows for c in self.constraints)])]
        parts = [(c, slice(first, first + c.n_rows)) for c, first in zip(self.constraints, starts, strict=False)]
        object.__setattr__(self, "n", self.dofs.n)
        object.__setattr__(self, "n_multipliers", starts[-1])
        sticking = tuple((k, d.sticking) for k, d in enumerate(self.deciding) if d.sticking is not None)
        object.__setattr__(self, "sticking", sticking)
        object.__setattr__(self, "parts", parts)
        owners = np.repeat(np.arange(len(self.dofs.entries)), [entry.size for entry in self.dofs.entries])
        object.__setattr__(self, "owners", np.unique(owners[self.partition.free], return_inverse=True)[1])

    def summary(self) -> Summary:
        """Return a few lines: bodies, coordinates, parameters, terms."""
        bodies = ", ".join(f"{entry.name} ({entry.size})" for entry in self.dofs.entries)
        terms = ", ".join(type(term).__name__ for term in (*self.terms, *self.deciding, *self.constraints))
        rows = [
            ("bodies", f"{len(self.dofs.entries)}: {bodies}"),
            ("coordinates", f"{self.n}, {self.partition.free.size} of them free"),
            ("parameters", f"{self.parameters.n} numbers in {len(self.parameters.entries)} blocks of theta"),
            ("terms", terms),
        ]
        return Summary("System", tuple(rows))

    @cached_property
    def inputs(self) -> tuple[IntArray, ...]:
        """Entries of theta that each term reads as coefficients of signals; those of the deciding terms last."""
        return tuple([term.inputs for term in self.terms] + [term.inputs for term in self.deciding])

    @cached_property
    def reading_prescribed(self) -> BoolArray:
        """Of every term that does not decide, whether its matrix has columns of prescribed coordinates."""
        prescribed = np.zeros(self.n, dtype=bool)
        prescribed[self.partition.prescribed] = True
        return np.array([bool(prescribed[np.ravel(term.pattern()[1])].any()) for term in self.terms], dtype=bool)

    def moves_numbers(self, directions: Directions) -> bool:
        """Whether any direction moves more than coefficients of signals."""
        return bool(directions.moved[self.other_entries].any())

    @cached_property
    def other_entries(self) -> BoolArray:
        """Of every entry of theta, whether it is no coefficient of a signal."""
        out = np.ones(self.parameters.n, dtype=bool)
        for entries in (*self.inputs, *(move.rows for move in self.motion.moves)):
            out[entries] = False
        return out

    @property
    def n_unknowns(self) -> int:
        """Free coordinates and multipliers."""
        return self.partition.free.size + self.n_multipliers

    def candidates(self, kin: Kinematics, theta: FloatArray, dt: float) -> AllCandidates:
        """Return what the deciding terms may decide within a step of ``dt`` [s] from ``kin``."""
        return tuple([term.candidates(kin, theta, dt) for term in self.deciding])

    def on_branch(self, decisions: Decisions, candidates: AllCandidates = ()) -> "BranchEquations":
        """Return the smooth equations of these decisions; see `DecidingTerm.candidates`."""
        return BranchEquations(self, decisions, candidates)

    def residual(
        self,
        kin: Kinematics,
        mu: FloatArray,
        theta: FloatArray,
        sticking: "BranchEquations | None" = None,
        families: FloatArray | None = None,
        candidates: AllCandidates = (),
    ) -> "tuple[FloatArray, FloatArray, BranchEquations]":
        """Decide, and return r (n,), the rows (n_rows,) and the equations with these decisions.

        All that sticks in ``sticking`` goes on sticking. ``families`` (n_families, n), zeros, takes the forces by term.
        """
        r = np.zeros(self.n)
        outs: Iterable[FloatArray] = repeat(r) if families is None else families
        for term, out in zip(self.terms, outs, strict=False):
            term.residual(kin, theta, out)
        kept = sticking.decisions if sticking else repeat(None)
        outs = outs if families is None else families[len(self.terms) :]
        decisions = tuple(
            [d.decided_residual(kin, theta, out, h) for d, out, h in zip(self.deciding, outs, kept, strict=False)]
        )
        if families is not None:
            r = families.sum(axis=0)
        branch = BranchEquations(self, decisions, candidates)
        return r, branch.rows(kin, mu, theta, r), branch

    def held(self, decisions: Decisions) -> tuple[int, ...]:
        """Return how many equations hold what sticks in decisions, of each term of which something may."""
        return tuple([3 * sticking(decisions[k]).shape[0] for k, _ in self.sticking])

    @property
    def n_families(self) -> int:
        """Number of force families."""
        return len(self.terms) + len(self.deciding)

    def motion_tangents(self, t: float, theta: FloatArray, directions: Directions) -> Columns:
        """Return the tangents of the prescribed coordinates, (n_p, k), along directions of theta."""
        if not self.partition.prescribed.size:
            return Columns.none()
        entries, values = self.motion.rows(t, theta, directions.moved)
        index = directions.touching(entries)
        return Columns(index, values @ directions.block(entries, index))


@final
class BranchEquations:
    """r(q, v, a, mu; theta, t) = 0 and c(q, v; theta, t) = 0 with every decision made.

    Made once for an iterate, so that terms and stick constraints may keep what they have evaluated there.

    Attributes
    ----------
    system : System
    decisions : Decisions
    candidates : of each deciding term; none: patterns are those of the decisions alone
    stick_constraints : list of (int, StickConstraint)
        Those of the deciding terms, by number, in which anything sticks.
    parts : list of (Constraint, slice)
        The constraints, then the stick constraints, with their multipliers.
    n_rows : int
        Number of multipliers: those of the constraints, then the reactions of those that stick.
    """

    def __init__(self, system: System, decisions: Decisions, candidates: AllCandidates = ()) -> None:
        self.system, self.decisions = system, decisions
        self.candidates = candidates or (None,) * len(system.deciding)
        self.parts: list[tuple[Constraint, slice]] = system.parts
        self.stick_constraints: list[tuple[int, StickConstraint]] = []
        self.n_rows = system.n_multipliers
        self._structure: tuple[Hashable, ...] | None = None
        for k, term in system.sticking:
            constraint = term.stick_constraint(decisions[k], self.candidates[k])
            if constraint is not None:
                self.stick_constraints.append((k, constraint))
                first, self.n_rows = self.n_rows, self.n_rows + constraint.n_rows
                self.parts = [*self.parts, (constraint, slice(first, self.n_rows))]

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """All terms; those of the deciding ones last, frozen."""
        return self.system.terms + tuple([self._frozen(k) for k in range(len(self.system.deciding))])

    def _frozen(self, k: int) -> Term:
        return self.system.deciding[k].on_branch(self.decisions[k], self.candidates[k])

    @property
    def structure(self) -> tuple[Hashable, ...]:
        """The key of the sparsity: equal values share a pattern."""
        if self._structure is None:
            chosen = zip(self.system.deciding, self.decisions, self.candidates, strict=True)
            self._structure = tuple([term.structure(decision, near) for term, decision, near in chosen])
        return self._structure

    def residual(self, kin: Kinematics, mu: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return r (n,) and the rows (n_rows,)."""
        r = np.zeros(self.system.n)
        for term in self.terms:
            term.residual(kin, theta, r)
        return r, self.rows(kin, mu, theta, r)

    def rows(self, kin: Kinematics, mu: FloatArray, theta: FloatArray, r: FloatArray) -> FloatArray:
        """Add the forces of constraints and stick constraints to ``r`` and return the rows (n_rows,)."""
        rows = np.zeros(mu.size)
        for constraint, part in self.parts:
            constraint.residual(kin, mu[part], theta, r, rows[part])
        return rows

    def reactions(self, k: int, mu: FloatArray) -> FloatArray:
        """Return the part of the multipliers that are reactions in deciding term number ``k`` [N]."""
        for (j, _), (_, part) in zip(self.stick_constraints, self.parts[len(self.system.parts) :], strict=True):
            if j == k:
                return mu[part]
        return np.zeros(0)

    def decided_forces(self, k: int, kin: Kinematics, mu: FloatArray, theta: FloatArray) -> FloatArray:
        """Return the generalised forces (n,) of deciding term number ``k``, reactions included [N]."""
        r = np.zeros(self.system.n)
        self.terms[len(self.system.terms) + k].residual(kin, theta, r)
        for j, constraint in self.stick_constraints:
            if j == k:
                constraint.residual(kin, self.reactions(k, mu), theta, r, np.zeros(constraint.n_rows))
        return -r

    def force_scale(self, kin: Kinematics, theta: FloatArray, order: int) -> float:
        """Return the norm of the largest force family at ``kin`` [N]: what |r| has to be small against."""
        forces = np.zeros((len(self.terms), self.system.n))
        for term, force in zip(self.terms, forces, strict=True):
            term.residual(kin, theta, force)
        return largest_norm(forces, order)

    def state_vjp(
        self,
        kin: Kinematics,
        mu: FloatArray,
        theta: FloatArray,
        lam: FloatArray,
        lam_rows: FloatArray,
        wanted: str = "qva",
    ) -> KinematicCotangent:
        """Return the cotangents lam^T dr/d(q, v, a) + lam_rows^T dc/d(q, v, a).

        Those by q are whole at prescribed coordinates alone: terms that do not read any are left out.
        """
        n, reading = self.system.n, self.system.reading_prescribed
        out = KinematicCotangent.zeros(n)
        for k, term in enumerate(self.terms):
            left_out = k < reading.size and not reading[k]
            term.state_vjp(kin, theta, lam, out, wanted.replace("q", "") if left_out else wanted)
        if not self.parts:
            return out
        extended = np.concatenate([lam, lam_rows])
        for constraint, part in self.parts:
            rows, cols = constraint.pattern(n + part.start)
            for name, weights in UNIT:
                if name in wanted:
                    values = np.zeros(rows.size)
                    constraint.jacobian(kin, mu[part], theta, weights, values, np.arange(rows.size))
                    wide = np.zeros(n + mu.size)
                    add_product(cols, rows, values, extended, wide)
                    getattr(out, name)[:] += wide[:n]
        return out

    def parameter_vjp(
        self,
        kin: Kinematics,
        mu: FloatArray,
        theta: FloatArray,
        lam: FloatArray,
        lam_rows: FloatArray,
        out: FloatArray,
    ) -> None:
        """Add lam^T dr/dtheta + lam_rows^T dc/dtheta to ``out``."""
        for term in self.terms:
            term.parameter_vjp(kin, theta, lam, out)
        for constraint, part in self.parts:
            constraint.parameter_vjp(kin, mu[part], theta, lam, lam_rows[part], out)

    def _reading(self, directions: Directions) -> tuple[Term, ...]:
        """Return the terms that read what any direction moves: of signals those alone that follow them."""
        system, moved = self.system, directions.moved
        if system.moves_numbers(directions):
            return self.terms
        first = len(system.terms)
        following = [k for k, entries in enumerate(system.inputs) if moved[entries].any()]
        return tuple([system.terms[k] if k < first else self._frozen(k - first) for k in following])

    def parameter_tangents(self, kin: Kinematics, mu: FloatArray, theta: FloatArray, directions: Directions) -> Columns:
        """Return the tangents of r and the rows, (n + n_rows, k), along directions of theta."""
        n = self.system.n

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

        maps = [of_term(term) for term in self._reading(directions)]
        maps += [of_constraint(constraint, part) for constraint, part in self.parts]
        return push(maps, n + mu.size, directions)


def largest_norm(forces: FloatArray, order: int) -> float:
    """Return the largest L1 or L2 norm of the rows."""
    sums = np.einsum("kn,kn->k", forces, forces) if order == 2 else np.abs(forces).sum(axis=1)
    largest = float(sums.max(initial=0.0))
    return largest**0.5 if order == 2 else largest
