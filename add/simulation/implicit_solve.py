"""The implicit equations of one instant, r(q, v, a; theta) = 0, and their solution.

The start from equilibrium and every step solve such equations; `StepEquations` says which, and `derivative` has their
derivatives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from add.equations.kinematics import NO_CARRY, Carry, Kinematics, State, Weights
from add.equations.term import AllCandidates, Decisions
from add.solve.fallbacks import failure, solve
from add.solve.step_equations import NewtonOptions, NewtonReport, StepEquations
from add.solve.step_matrix import Assembler
from add.typing import FloatArray


@final
@dataclass(frozen=True)
class Solution:
    """A solution of the equations of one instant, with the decisions made there; no derivative decides again.

    Attributes
    ----------
    kin : Kinematics
        Converged coordinates and rates.
    mu : multipliers
    decisions : branches of the deciding terms
    c : float
        1/(beta dt) [1/s]; 0 of static equilibrium.
    dt : float
        Step [s]; 0 of static equilibrium.
    report : NewtonReport
    carry : Carry
        Handed on beside coordinates and velocities.
    candidates : of the deciding terms, as of the state before; they choose patterns, no numbers
    """

    kin: Kinematics
    mu: FloatArray
    decisions: Decisions
    c: float
    dt: float
    report: NewtonReport
    carry: Carry = NO_CARRY
    candidates: AllCandidates = ()

    @property
    def weights(self) -> Weights:
        """The factors of dr/dq, dr/dv and dr/da in J."""
        return Weights(1.0, self.c, self.c * self.c, 1.0)


class ImplicitSolve(ABC):
    """A way to solve the equations of an instant; steppers and starts hold one, and it keeps nothing."""

    @abstractmethod
    def solve(
        self,
        assembler: Assembler,
        equations: StepEquations,
        theta: FloatArray,
        guesses: Sequence[FloatArray],
        before: State | None = None,
    ) -> Solution:
        """Return the solution.

        Parameters
        ----------
        assembler : Assembler
        equations : StepEquations
        theta : (n_theta,)
        guesses : u (n,) each, best first
        before : State, optional
            The state that a step begins with.

        Raises
        ------
        SolverError
            If there is none within reach; it names time, residual, worst coordinate and remedy.
        """


@final
@dataclass(frozen=True)
class NewtonSolve(ImplicitSolve):
    """Newton's method with its fallbacks (see `add.solve.fallbacks`).

    Attributes
    ----------
    options : NewtonOptions
    attempts : int, optional
        How far it goes, see `add.solve.fallbacks.solve`: of a step that may be divided instead, not all the way.
    """

    options: NewtonOptions
    attempts: int | None = None

    def solve(
        self,
        assembler: Assembler,
        equations: StepEquations,
        theta: FloatArray,
        guesses: Sequence[FloatArray],
        before: State | None = None,
        replay: Solution | None = None,
    ) -> Solution:
        """Solve; ``replay`` holds the decisions of an earlier run. See `ImplicitSolve.solve`."""
        branch, resting, candidates = None, None, replay.candidates if replay else ()
        if replay is not None:
            branch = assembler.system.on_branch(replay.decisions, replay.candidates)
            # A branch may have more than one root (slip forward or backward): stay at the recorded one.
            u = replay.kin.v / equations.c if equations.c else replay.kin.q - equations.q_star
            guesses = [u, *guesses]
        if before is not None:
            a = (before.v[0] - before.v[1]) / equations.dt
            resting = Kinematics(before.q[0], before.v[0], a, before.t, before.step)
            if replay is None:
                candidates = assembler.system.candidates(resting, theta, equations.dt)
        result = solve(assembler, equations, theta, guesses, self.options, branch, resting, candidates, self.attempts)
        if not result.report.status.success:
            raise failure(result, assembler, equations, self.options, theta)
        found = result.kin, result.mu, result.branch.decisions
        return Solution(*found, equations.c, equations.dt, result.report, candidates=candidates)
