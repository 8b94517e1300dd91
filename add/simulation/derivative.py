"""The solution of one instant and its derivative, both ways, once for the start, for steps and for their parts.

An instant solves r(q, v, a; theta) = 0 with q = u + q_star, v = c u, a = c (v - v_star) (`StepEquations`), q_star and
v_star being the sums alpha_k q_k and alpha_k v_k over the states behind it. With J = dr/dq + c dr/dv + c^2 dr/da,

    J^T lambda = q_bar + c v_bar,    theta_bar -= dr/dtheta^T lambda,
    q_bar_k += c alpha_k (dr/dv^T lambda + c dr/da^T lambda - v_bar),    v_bar_k += c alpha_k dr/da^T lambda,

    J q_dot = -dr/dtheta theta_dot - (what else moves).

Contact that is solved for, rather than a force of a term, has equations of its own beside r: see `Coupling`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
import scipy.sparse as sp

from add.equations.kinematics import (
    NO_CARRY,
    Carry,
    Columns,
    Directions,
    KinematicCotangent,
    Kinematics,
    State,
    StateTangent,
    StateTangents,
    Weights,
)
from add.equations.system import BranchEquations, System
from add.equations.term import UNIT, AllCandidates, Decisions
from add.errors import SolverError
from add.linalg import DenseLU, LinearSolve
from add.solve.fallbacks import NOT_HELD, SMALLER_STEP, failure, solve
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


@final
@dataclass(frozen=True)
class NewtonSolve:
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
        rested: bool = False,
    ) -> Solution:
        """Solve from guesses of u, the best first; a step is told the state ``before`` it.

        ``replay`` holds the decisions of an earlier run. ``rested``: holding what rests has been tried.

        Raises
        ------
        SolverError
            If there is no solution within reach; it names time, residual, worst coordinate and remedy.
        """
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
        given = branch, resting, candidates, self.attempts, rested
        result = solve(assembler, equations, theta, guesses, self.options, *given)
        if not result.report.status.success:
            raise failure(result, assembler, equations, self.options, theta)
        solved = result.kin, result.mu, result.branch.decisions
        return Solution(*solved, equations.c, equations.dt, result.report, candidates=candidates)


class Coupling(ABC):
    """Equations phi = 0 of contact with forces F, solved together with r - B F = 0.

    Along what moves they are

        J dx - B dF = balance,    L dx + E dF = contact

    Both right-hand sides are taken with the free coordinates and F held.
    """

    @abstractmethod
    def solve(self, balance: FloatArray, contact: FloatArray) -> FloatArray:
        """Return dx (n_unknowns, k) from both right-hand sides."""

    @abstractmethod
    def solve_transposed(self, x_bar: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the cotangents of both right-hand sides from that of x (n_unknowns,)."""

    @abstractmethod
    def pull(
        self, adjoint: FloatArray, contact: FloatArray, bar: KinematicCotangent, before: StateTangent, share: FloatArray
    ) -> None:
        """Add the part of contact in the cotangents of (q, v, a), of the states before and, negative, of theta.

        Parameters
        ----------
        adjoint, contact : (n,) and (n_rows,)
            Cotangents of both right-hand sides.
        """

    @abstractmethod
    def along(self, directions: Directions) -> Columns:
        """Return the tangents of both right-hand sides, (n + n_rows, .) or more rows, along directions of theta."""

    @abstractmethod
    def push(
        self, tangents: StateTangents, q_dot: FloatArray, v_dot: FloatArray, by_theta: Columns, balance: FloatArray
    ) -> FloatArray:
        """Add the part of contact to ``balance``; return the right-hand side of its own equations.

        Parameters
        ----------
        tangents : of the states before
        q_dot, v_dot : (n, k) at the instant, with the free coordinates held
        by_theta : what `along` returned
        balance : (n_unknowns, k)
        """


@final
@dataclass(frozen=True)
class Linearised:
    """A solution, ready for both derivatives.

    Attributes
    ----------
    branch : BranchEquations
        The equations with the solution's decisions.
    factors : LinearSolve or Coupling
        With J, or with that and the equations of contact.
    """

    branch: BranchEquations
    factors: LinearSolve | Coupling


def linearise(assembler: Assembler, solution: Solution, theta: FloatArray) -> Linearised:
    """Assemble and factor J; the result holds until the assembler's next call.

    Raises
    ------
    SolverError
        If J is singular.
    """
    branch = assembler.system.on_branch(solution.decisions, solution.candidates)
    with named_instant(solution, assembler.system, theta):
        factors = assembler.factor(solution.kin, solution.mu, theta, solution.weights, branch)
    return Linearised(branch, factors)


@final
@dataclass(frozen=True)
class Instant:
    """A solved instant whose derivatives are wanted.

    Attributes
    ----------
    assembler : Assembler
    solution : Solution
    alpha : (m,) history coefficients
    theta : (n_theta,)
    linearised : Linearised, optional
        Made when it is asked for if it is not given.
    matrices : (3, n + n_rows, n + n_rows) and Columns, optional
        dr/dq, dr/dv, dr/da and dr along the directions that are pushed, multipliers among q; those of the terms if they
        are not given.
    """

    assembler: Assembler
    solution: Solution
    alpha: Sequence[float]
    theta: FloatArray
    linearised: Linearised | None = None
    matrices: tuple[FloatArray, Columns] | None = None

    @cached_property
    def _factors(self) -> LinearSolve | Coupling:
        """The factors of J, of the matrices where they are given."""
        solution, free, dense = self.solution, self.assembler.system.partition.free, DenseLU()
        if self.linearised is not None and self.matrices is None:
            return self.linearised.factors
        with self._named():
            if self.matrices is None:
                return self.assembler.factor(solution.kin, solution.mu, self.theta, solution.weights, self._branch)
            matrix = self._given(solution.weights)
            unknown = np.append(free, np.arange(self.assembler.system.n, len(matrix)))
            dense.factor_matrix(
                np.asfortranarray(matrix if unknown.size == len(matrix) else matrix[np.ix_(unknown, unknown)])
            )
        return dense

    @cached_property
    def _branch(self) -> BranchEquations:
        """The equations with the solution's decisions."""
        solution = self.solution
        if self.linearised is not None:
            return self.linearised.branch
        return self.assembler.system.on_branch(solution.decisions, solution.candidates)

    def _by_state(self, weights: Weights) -> Any:
        """Return the weighted derivative of r and the rows by (q, v, a), (n + n_rows, n)."""
        if self.matrices is None:
            return self.assembler.by_state(self.solution.kin, self.solution.mu, self.theta, self._branch, weights)
        return self._given(weights)[:, : self.assembler.system.n]

    def _given(self, weights: Weights) -> Any:
        """Return the weighted sum of the given matrices."""
        assert self.matrices is not None
        shares = zip((weights.q, weights.v, weights.a), self.matrices[0], strict=True)
        return sum(share * matrix for share, matrix in shares if share)

    def _by_theta(self, directions: Directions) -> tuple[Columns, Columns]:
        """Return the tangents of r and the rows, and of the prescribed coordinates, along directions."""
        kin, mu, theta, system = self.solution.kin, self.solution.mu, self.theta, self.assembler.system
        of_r = self.matrices[1] if self.matrices else self._branch.parameter_tangents(kin, mu, theta, directions)
        return of_r, system.motion_tangents(kin.t, theta, directions)

    def _named(self) -> AbstractContextManager[None]:
        return named_instant(self.solution, self.assembler.system, self.theta)

    def _adjoint(self, u_bar: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the cotangents of r and the rows (n + n_rows, r) from those of u, and of the equations of contact."""
        n, free, factors = len(u_bar), self.assembler.system.partition.free, self._factors
        x_bar, contact = np.zeros((free.size + self.solution.mu.size, u_bar.shape[1])), np.zeros(0)
        x_bar[: free.size] = u_bar[free]
        with self._named():
            if isinstance(factors, Coupling):
                one, contact = factors.solve_transposed(x_bar[:, 0])
                both = one[:, None]
            else:
                both = factors.solve_transposed(x_bar)
        out = np.zeros((n + self.solution.mu.size, u_bar.shape[1]))
        out[free], out[n:] = both[: free.size], both[free.size :]
        return out, contact

    def _before(self, bar: KinematicCotangent, v_bar: FloatArray, before: StateTangent) -> None:
        """Add the cotangents of the states before from those of (q, v, a) in r and the rows, and that of v (n, ...)."""
        c = self.solution.c
        for k, alpha in enumerate(self.alpha):
            before.q[k] += c * alpha * (bar.v + c * bar.a - v_bar)
            before.v[k] += c * alpha * bar.a

    def pull(self, q_bar: FloatArray, v_bar: FloatArray, theta_bar: FloatArray) -> StateTangent:
        """Return the cotangents of the states before from those of (q, v) (n,); add that of theta to ``theta_bar``."""
        solution, theta, system = self.solution, self.theta, self.assembler.system
        c, kin, mu, n, prescribed = solution.c, solution.kin, solution.mu, system.n, system.partition.prescribed
        u_bar = q_bar + c * v_bar
        both, contact = self._adjoint(u_bar[:, None])
        adjoint, rows = both[:n, 0], both[n:, 0]
        wanted = ("q" if prescribed.size else "") + ("va" if c else "")
        bar, share = self._branch.state_vjp(kin, mu, theta, adjoint, rows, wanted), np.zeros_like(theta_bar)
        self._branch.parameter_vjp(kin, mu, theta, adjoint, rows, share)
        before = StateTangent.zeros(max(2, len(self.alpha)), n)
        if isinstance(self._factors, Coupling):
            self._factors.pull(adjoint, contact, bar, before, share)
        if prescribed.size:
            by_position = (u_bar - bar.q - c * bar.v - c * c * bar.a)[prescribed]
            system.motion.vjp(kin.t, theta, by_position, None, theta_bar)
        theta_bar -= share
        self._before(bar, v_bar, before)
        return before

    def pull_each(self, q_bar: FloatArray, v_bar: FloatArray, directions: Directions) -> tuple[StateTangent, Columns]:
        """Return the cotangents of the states before (2, n, r) and of directions (r, .) from r of (q, v), (n, r)."""
        c, prescribed = self.solution.c, self.assembler.system.partition.prescribed
        u_bar, before = q_bar + c * v_bar, StateTangent(*np.zeros((2, 2, *v_bar.shape)))
        adjoint, _ = self._adjoint(u_bar)
        bar = KinematicCotangent(*np.zeros((3, *v_bar.shape)))
        for name, weights in UNIT if prescribed.size else UNIT[1:]:
            setattr(bar, name, self._by_state(weights).T @ adjoint)
        self._before(bar, v_bar, before)
        of_r, moved = self._by_theta(directions)
        by_position = (u_bar - bar.q - c * bar.v - c * c * bar.a)[prescribed]
        by_motion = Columns(moved.index, by_position.T @ moved.values)
        return before, Columns.summed(Columns(of_r.index, -adjoint.T @ of_r.values), by_motion)

    def push(self, tangents: StateTangents, directions: Directions) -> tuple[StateTangents, FloatArray, FloatArray]:
        """Push tangents of the states before and directions of theta through the solve; one factorisation for all.

        Returns
        -------
        StateTangents
            ``tangents`` with zeros for the directions that set in now.
        q_dot, v_dot : (n, k)
        """
        solution, system = self.solution, self.assembler.system
        c, n, free, prescribed = solution.c, system.n, system.partition.free, system.partition.prescribed
        coupling = self.linearised.factors if self.linearised is not None else None
        coupling = coupling if isinstance(coupling, Coupling) else None
        by_theta, moved = self._by_theta(directions)
        by_contact = by_theta
        if coupling:  # signals drive terms and given motions, and not how contact is
            reads = system.moves_numbers(directions)
            by_contact = coupling.along(directions if reads else Directions(sp.csr_array(directions.matrix.shape)))
        tangents = tangents.including(by_theta.index, moved.index, by_contact.index)
        before = tangents.dot
        # The tangents with the free coordinates held; their own are what the linear solves add.
        q_dot = np.zeros((n, tangents.index.size))
        if not tangents.index.size:
            return tangents, q_dot, q_dot
        q_dot[np.ix_(prescribed, tangents.places(moved.index))] = moved.values
        q_star = sum(a * q for a, q in zip(self.alpha, before.q, strict=False))
        v_star = sum(a * v for a, v in zip(self.alpha, before.v, strict=False))
        v_dot = c * (q_dot - q_star)
        rhs = np.zeros((n + solution.mu.size, tangents.index.size))
        for (_, weights), dot in zip(UNIT, (q_dot, v_dot, c * (v_dot - v_star)), strict=True):
            if dot.any():  # dr/dq is asked for only where coordinates are prescribed
                rhs -= self._by_state(weights) @ dot
        rhs[:, tangents.places(by_theta.index)] -= by_theta.values
        phi = coupling.push(tangents, q_dot, v_dot, by_contact, rhs) if coupling else rhs[:0]
        held, factors = np.concatenate([rhs[free], rhs[n:]]), self._factors
        with self._named():
            if isinstance(factors, Coupling):
                dx = factors.solve(held, phi)
            else:
                dx = factors.solve(held)
        q_dot[free] = dx[: free.size]
        return tangents, q_dot, c * (q_dot - q_star)


@contextmanager
def named_instant(solution: Solution, system: System, theta: FloatArray) -> Iterator[None]:
    """Name the instant and a remedy in the errors of the linear solves of its derivative."""
    try:
        yield
    except SolverError as error:
        place, remedy = "derivative of the static equilibrium", NOT_HELD
        if solution.dt:
            place = f"derivative of step {solution.kin.step} (t={solution.kin.t:.6g} s)"
            remedy = SMALLER_STEP.format(dt=0.25 * solution.dt)
        lost = [text for term in system.terms if (text := term.lost(solution.kin, theta))]
        raise SolverError(f"{place}: {error}; {'; '.join(lost) or remedy}") from error
