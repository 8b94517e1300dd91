"""A system of terms and constraints, and the one place where they are summed: r(q, v, a; theta, t) = M a - f = 0."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import repeat
from typing import final

import numpy as np

from add.equations.branch_equations import BranchEquations
from add.equations.kinematics import Kinematics
from add.equations.layout import DofLayout, DofPartition, ParameterLayout
from add.equations.prescribed import Motion
from add.equations.tangents import Columns, Directions, ThetaMap, push
from add.equations.term import Constraint, DecidingTerm, Decisions, Term
from add.summary import Summarised, Summary
from add.typing import FloatArray, IntArray


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
    n_multipliers : number of rows of the constraints
    is_hybrid : whether contacts may add rows of their own, see `BranchEquations.holds`
    parts : the constraints with their multipliers
    owners : (n_free,) number of the body of each free coordinate
    """

    dofs: DofLayout
    parameters: ParameterLayout
    partition: DofPartition
    motion: Motion
    terms: tuple[Term, ...]
    deciding: tuple[DecidingTerm, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    rotations: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    n: int = field(init=False)
    n_multipliers: int = field(init=False)
    is_hybrid: bool = field(init=False)
    parts: list[tuple[Constraint, slice]] = field(init=False, repr=False)
    owners: IntArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        starts = [int(s) for s in np.cumsum([0, *(c.n_rows for c in self.constraints)])]
        parts = [(c, slice(first, first + c.n_rows)) for c, first in zip(self.constraints, starts, strict=False)]
        object.__setattr__(self, "n", self.dofs.n)
        object.__setattr__(self, "n_multipliers", starts[-1])
        object.__setattr__(self, "is_hybrid", any(d.is_hybrid for d in self.deciding))
        object.__setattr__(self, "parts", parts)
        owners = np.repeat(np.arange(len(self.dofs.entries)), [entry.size for entry in self.dofs.entries])
        object.__setattr__(self, "owners", owners[self.partition.free])

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

    @property
    def n_unknowns(self) -> int:
        """Free coordinates and multipliers."""
        return self.partition.free.size + self.n_multipliers

    def on_branch(self, decisions: Decisions) -> BranchEquations:
        """Return the smooth equations of these decisions."""
        return BranchEquations(self, decisions)

    def residual(
        self,
        kin: Kinematics,
        mu: FloatArray,
        theta: FloatArray,
        held: BranchEquations | None = None,
        families: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray, BranchEquations]:
        """Decide, and return r (n,), the rows (n_rows,) and the equations with these decisions.

        What ``held`` holds stays held. ``families`` (n_families, n), zeros, takes the forces of each term.
        """
        r = np.zeros(self.n)
        outs: Iterable[FloatArray] = repeat(r) if families is None else families
        for term, out in zip(self.terms, outs, strict=False):
            term.residual(kin, theta, out)
        kept = held.decisions if held else repeat(None)
        outs = outs if families is None else families[len(self.terms) :]
        decisions = tuple(
            [d.decided_residual(kin, theta, out, h) for d, out, h in zip(self.deciding, outs, kept, strict=False)]
        )
        if families is not None:
            r = families.sum(axis=0)
        branch = BranchEquations(self, decisions)
        return r, branch.rows(kin, mu, theta, r), branch

    @property
    def n_families(self) -> int:
        """Number of force families."""
        return len(self.terms) + len(self.deciding)

    def motion_tangents(self, t: float, theta: FloatArray, directions: Directions) -> Columns:
        """Return the tangents of the prescribed coordinates, (n_p, k), along directions of theta."""
        motion, n = self.motion, self.partition.prescribed.size

        def jvp(theta_dot: FloatArray, out: FloatArray) -> None:
            out += motion.jvp(t, theta, theta_dot)[0]

        parts = [ThetaMap(jvp, lambda bar, out: motion.vjp(t, theta, bar, None, out))] if n else []
        return push(parts, n, directions)
