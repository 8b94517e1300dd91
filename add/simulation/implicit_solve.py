"""The implicit equations of one instant, r(q, v, a; theta) = 0: their solution and its derivative.

The start from equilibrium and every step solve such equations; `StepEquations` says which. At a solution, with
J = dr/dq + c dr/dv + c^2 dr/da by the increment u, the implicit function theorem gives both derivatives:

    J^T lambda = u_bar,   theta_bar -= dr/dtheta^T lambda        J u_dot = -dr/dtheta theta_dot - (what else moves)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import final

import numpy as np

from add.equations.kinematics import NO_CARRY, Carry, Kinematics, State, Weights
from add.equations.system import BranchEquations
from add.equations.tangents import Columns, Directions, StateTangents
from add.equations.term import AllCandidates, Decisions, KinematicCotangent
from add.linalg import DenseLU, LinearSolve
from add.solve.fallbacks import NOT_HELD, SMALLER_STEP, failure, naming, solve
from add.solve.step_equations import NewtonOptions, NewtonReport, StepEquations
from add.solve.step_matrix import Assembler
from add.typing import FloatArray, IntArray


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


@final
@dataclass(frozen=True)
class Linearised:
    """A solution, ready for both derivatives.

    Attributes
    ----------
    branch : BranchEquations
        The equations with the solution's decisions.
    factors : LinearSolve
        With J.
    """

    branch: BranchEquations
    factors: LinearSolve


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
    """Newton's method with its fallbacks (see `add.solve.fallbacks`), and the derivative of what it finds.

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

    def linearise(self, assembler: Assembler, solution: Solution, theta: FloatArray) -> Linearised:
        """Assemble and factor J; the result holds until the assembler's next call."""
        branch = assembler.system.on_branch(solution.decisions, solution.candidates)
        with _naming(solution):
            factors = assembler.factor(solution.kin, solution.mu, theta, solution.weights, branch)
        return Linearised(branch, factors)

    def pullback(
        self,
        assembler: Assembler,
        solution: Solution,
        theta: FloatArray,
        u_bar: FloatArray,
        theta_bar: FloatArray,
        linearised: Linearised,
    ) -> KinematicCotangent:
        """Pull the cotangent (n,) of u back through the solve.

        Returns
        -------
        KinematicCotangent
            lambda^T dr/d(q, v, a); that of q only where coordinates are prescribed. The share of theta is added to
            ``theta_bar``.
        """
        system, c, kin, branch = assembler.system, solution.c, solution.kin, linearised.branch
        free, prescribed = system.partition.free, system.partition.prescribed
        with _naming(solution):
            both = linearised.factors.solve_transposed(np.concatenate([u_bar[free], np.zeros(solution.mu.size)]))
        adjoint = np.zeros(system.n)
        adjoint[free] = both[: free.size]
        rows = both[free.size :]
        wanted = ("q" if prescribed.size else "") + ("va" if c else "")
        bar = branch.state_vjp(kin, solution.mu, theta, adjoint, rows, wanted)
        if prescribed.size:
            by_position = (u_bar - bar.q - c * bar.v - c * c * bar.a)[prescribed]
            system.motion.vjp(kin.t, theta, by_position, None, theta_bar)
        share = np.zeros_like(theta_bar)
        branch.parameter_vjp(kin, solution.mu, theta, adjoint, rows, share)
        theta_bar -= share
        return bar

    def pushforward(
        self,
        assembler: Assembler,
        solution: Solution,
        theta: FloatArray,
        tangents: StateTangents,
        alpha: Sequence[float],
        directions: Directions,
        linearised: Linearised | None = None,
        matrices: tuple[FloatArray, Columns] | None = None,
    ) -> tuple[StateTangents, FloatArray, FloatArray]:
        """Push tangents of the history and directions of theta through the solve; one factorisation for all.

        Parameters
        ----------
        tangents : of the state before
        alpha : history coefficients, q_star = sum alpha_k q_k
        linearised : Linearised, optional
            Made here if something moves and it is not given.
        matrices : (3, n, n) and Columns, optional
            dr/dq, dr/dv, dr/da and dr along the directions, of a system without multipliers; of the terms if they are
            not given.

        Returns
        -------
        StateTangents
            ``tangents`` with zeros for the directions that set in now.
        q_dot, v_dot : (n, k)
        """
        system, c, kin, mu = assembler.system, solution.c, solution.kin, solution.mu
        free, prescribed = system.partition.free, system.partition.prescribed
        branch = linearised.branch if linearised else system.on_branch(solution.decisions, solution.candidates)
        by_theta = matrices[1] if matrices else branch.parameter_tangents(kin, mu, theta, directions)
        moved = system.motion_tangents(kin.t, theta, directions)
        tangents = tangents.including(by_theta.index, moved.index)
        before = tangents.dot
        # The tangents with the free coordinates held; their own are what the linear solves add.
        q_dot = np.zeros((system.n, tangents.index.size))
        if not tangents.index.size:
            return tangents, q_dot, q_dot
        q_dot[np.ix_(prescribed, tangents.places(moved.index))] = moved.values
        q_star = sum(a * q for a, q in zip(alpha, before.q, strict=False))
        v_star = sum(a * v for a, v in zip(alpha, before.v, strict=False))
        rates = (c * (q_dot - q_star), c * (c * (q_dot - q_star) - v_star)) if c else (None, None)
        if matrices is None:
            rhs = -assembler.product(kin, mu, theta, branch, q_dot, *rates)
        else:
            by_q, by_v, by_a = matrices[0]
            rhs = -(by_v @ rates[0] + by_a @ rates[1])
            if prescribed.size:
                rhs -= by_q @ q_dot
        rhs[:, tangents.places(by_theta.index)] -= by_theta.values
        if matrices is None:
            factors = (linearised or self.linearise(assembler, solution, theta)).factors
        else:
            factors = _full_factors(by_q + c * (by_v + c * by_a), free, solution)
        with _naming(solution):
            q_dot[free] = factors.solve(np.concatenate([rhs[free], rhs[system.n :]]))[: free.size]
        return tangents, q_dot, c * (q_dot - q_star)


def _full_factors(matrix: FloatArray, free: IntArray, solution: Solution) -> LinearSolve:
    """Return the factors of the rows and columns of the free coordinates."""
    factors = DenseLU()
    with _naming(solution):
        factors.factor_matrix(np.asfortranarray(matrix if free.size == matrix.shape[0] else matrix[np.ix_(free, free)]))
    return factors


def _naming(solution: Solution) -> AbstractContextManager[None]:
    """Name the instant in the errors of its derivative."""
    if not solution.dt:
        return naming("derivative of the static equilibrium", NOT_HELD)
    place = f"derivative of step {solution.kin.step} (t={solution.kin.t:.6g} s)"
    return naming(place, SMALLER_STEP.format(dt=0.25 * solution.dt))
