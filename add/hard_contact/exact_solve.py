"""The implicit solve of a step with exact contact: over the pairs that are near, until none is passed through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from add.equations.kinematics import State
from add.errors import SolverError
from add.hard_contact.contact_state import CarriedContacts
from add.hard_contact.equations import ContactEquations, Held
from add.hard_contact.geometry import touches
from add.hard_contact.options import ExactOptions
from add.hard_contact.pairs import ContactPairs
from add.hard_contact.solver import ContactSolution, solve
from add.simulation import ImplicitSolve, Record, Solution
from add.solve.step_equations import StepEquations
from add.solve.step_matrix import Assembler
from add.typing import BoolArray, FloatArray


@final
@dataclass(frozen=True)
class ExactContactSolve(ImplicitSolve):
    """r(q, v, a) - sum_i G_i^T F_i = 0 with 0 <= g _|_ F_n >= 0 and Coulomb's law at the end of the step.

    The carry of a solution has the pairs that were near, with a ``calm`` of zero.

    Attributes
    ----------
    pairs : ContactPairs
    options : ExactOptions
    """

    pairs: ContactPairs
    options: ExactOptions

    def solve(
        self,
        assembler: Assembler,
        equations: StepEquations,
        theta: FloatArray,
        guesses: Sequence[FloatArray],
        before: State | None = None,
    ) -> Solution:
        """Solve over the pairs that are near; add those that the solution passes through and solve again."""
        pairs, guesses = self.pairs, list(guesses)
        carried = CarriedContacts.of(before.carry) if before is not None else None
        movable = _movable(pairs, assembler)
        near = np.zeros(pairs.n, dtype=bool)
        force = np.zeros((pairs.n, 3))
        if carried is not None:
            near[carried.touching] = True
            force = carried.forces(pairs.n)
        for guess in guesses[:2]:
            near |= movable & (touches(pairs, equations.kinematics(guess), theta).gap <= 0.0)
        while True:
            rows = np.flatnonzero(near)
            work = ContactEquations(assembler, equations, pairs.select(rows), theta, self.options)
            found = solve(work, guesses, force[rows])
            if not found.report.status.success:
                raise _failure(found, assembler, equations)
            gap = touches(pairs, found.kin, theta).gap
            missed = movable & ~near & (gap < -self.options.gap)
            if not missed.any():
                carry = CarriedContacts(rows, found.branch, found.force, 0).carry()
                return Solution(found.kin, found.mu, found.decisions, equations.c, equations.dt, found.report, carry)
            near |= missed
            force[rows] = found.force
            guesses = [found.u, *guesses]

    def replayed(self, assembler: Assembler, equations: StepEquations, theta: FloatArray, record: Record) -> Solution:
        """Solve on the branches of a record, whatever the signs."""
        kept = CarriedContacts.of(record.carry)
        assert kept is not None
        held = Held(kept.branch, assembler.system.on_branch(record.decisions, record.solution.candidates))
        work = ContactEquations(assembler, equations, self.pairs.select(kept.pair), theta, self.options, held)
        found = solve(work, [record.kin.v / equations.c], kept.force)
        if not found.report.status.success:
            raise _failure(found, assembler, equations)
        carry = replace(kept, force=found.force).carry()
        return Solution(found.kin, found.mu, found.decisions, equations.c, equations.dt, found.report, carry)


def _movable(pairs: ContactPairs, assembler: Assembler) -> BoolArray:
    """Return which pairs (m,) have a free coordinate: what is held cannot get out of the way."""
    free = np.zeros(assembler.system.n + 1, dtype=bool)
    free[assembler.system.partition.free] = True
    dofs = pairs.dofs()
    return np.asarray(free[np.where(dofs >= 0, dofs, assembler.system.n)].any(axis=1))


def _failure(found: ContactSolution, assembler: Assembler, equations: StepEquations) -> SolverError:
    report = found.report
    place = assembler.system.dofs.describe(report.worst)
    return SolverError(
        f"step {equations.step} (t={equations.t:.6g} s), exact contact: |r|={report.residual:.3e} N (tolerance "
        f"{report.tolerance:.3e} N) after {report.iterations} iterations and {report.attempt} rounds of "
        f"projections ({report.status.value}); worst dof {place}; try dt < {equations.dt:g}"
    )
