"""Newton's method in the increment u of one implicit step, from first guesses that pass through no surface."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import final

import numpy as np

from add.compiled.newton import BLOCKED, MAX_HALVINGS, MOST_SHORTENED, NATURAL_AFTER, SUFFICIENT_DECREASE
from add.equations.kinematics import Kinematics, Weights
from add.equations.lifted import StepLimit
from add.equations.system import BranchEquations, largest_norm
from add.equations.term import AllCandidates
from add.errors import SolverError
from add.solve.step_equations import NewtonOptions, NewtonReport, Status, StepEquations
from add.solve.step_matrix import Assembler
from add.typing import FloatArray, IntArray


def reached(
    limit: StepLimit, equations: StepEquations, origin: FloatArray, u: FloatArray, free: IntArray, theta: FloatArray
) -> FloatArray:
    """Return the guess, or as much of its way from ``origin`` (n,) as is free.

    Raises
    ------
    SolverError
        If prescribed motion passes through what stands still.
    """
    begin, aim = origin - equations.q_star, u.copy()
    for shortened in range(MOST_SHORTENED + 1):
        share = limit.share(origin, equations.q_star + aim, theta)
        if share >= 1.0:
            return aim
        # At last the free ones stay where they are.
        length = share if shortened < MOST_SHORTENED - 1 else 0.0
        aim[free] = begin[free] + length * (aim - begin)[free]
        if free.size == aim.size:
            return aim
    raise SolverError(
        f"step {equations.step} (t={equations.t:.6g} s): a body of given motion passes through others within one step; "
        f"try time.dt = {0.25 * equations.dt:.3g} s or less"
    )


_log = logging.getLogger(__name__)

#: |r| within this many units of round-off of the largest force family cannot be improved.
ROUND_OFF = 64.0


@final
@dataclass(frozen=True)
class NewtonResult:
    """The solution with the equations of the decisions that hold there."""

    kin: Kinematics
    mu: FloatArray
    branch: BranchEquations
    report: NewtonReport


def _norm(x: FloatArray, order: int) -> float:
    """Return the L2 or L1 norm; the general function takes longer than a small system's kernels."""
    return math.sqrt(x.dot(x)) if order == 2 else float(np.abs(x).sum())


@final
class Point:
    """An iterate: residual, merit, the equations with the decisions made there."""

    __slots__ = ("branch", "kin", "merit", "mu", "r", "rows", "u")

    def __init__(self, solve: Solve, u: FloatArray, mu: FloatArray) -> None:
        self.u, self.mu = u, mu
        self.kin = solve.equations.kinematics(u)
        system, families, smooth = solve.system, None, None
        if solve.unmeasured and solve.replay is None:
            families = np.zeros((system.n_families, system.n))
        elif solve.assembler.at_once is not None:
            smooth = solve.assembler.at_once.smooth_forces(self.kin, solve.theta)
        if solve.replay is not None:
            self.branch = solve.replay
            self.r, self.rows = self.branch.residual(self.kin, mu, solve.theta, smooth)
        else:
            self.r, self.rows, self.branch = system.residual(
                self.kin, mu, solve.theta, solve.kept, families, solve.candidates, smooth
            )
        merit = _norm(self.r[solve.free], solve.options.norm) + solve.row_norm(self)
        self.merit = merit if math.isfinite(merit) else math.inf
        if families is not None and merit < math.inf:
            solve.measured(families)


@final
class Solve:
    """The iteration on one step's equations.

    Attributes
    ----------
    replay : BranchEquations or None
        Branches to keep instead of deciding.
    candidates : of each deciding term, what it may decide within the step
    origin : (n,) or None
        Coordinates before the step, from which first guesses may be reached.
    kept : BranchEquations or None
        Its stick constraints hold from the first iterate on, and what has faces in it keeps them.
    factorizations : int
        Done so far.
    """

    def __init__(
        self,
        assembler: Assembler,
        equations: StepEquations,
        theta: FloatArray,
        options: NewtonOptions,
        replay: BranchEquations | None,
        candidates: AllCandidates = (),
        origin: FloatArray | None = None,
    ) -> None:
        self.candidates, self.origin = candidates, origin
        self.assembler, self.system = assembler, assembler.system
        self.equations, self.theta, self.options, self.replay = equations, theta, options, replay
        self.free = self.system.partition.free
        self.factorizations = 0
        self.kept: BranchEquations | None = None
        self._rows: float | None = None
        self._scale: float | None = None
        self._scales: FloatArray | None = None

    def row_norm(self, point: Point) -> float:
        """Return the share of the rows in the merit of an iterate [N].

        Rows of constraints [m] weigh like the inertia forces [N] that their violation would cost: per metre, m c^2;
        those of held points are velocities. The weight is the mean diagonal entry of J at the first iterate [N/m].
        """
        rows = point.rows
        if not rows.size:
            return 0.0
        if self._rows is None:
            pattern, data = self.assembler.assemble(
                point.kin, point.mu, self.theta, self.equations.weights, point.branch
            )
            diagonal = np.abs(data[pattern.diagonal[: self.free.size]])
            self._rows = float(diagonal.mean()) if diagonal.size and np.isfinite(diagonal).all() else 1.0
        n, order = self.system.n_multipliers, self.options.norm
        total = self._rows * _norm(rows[:n], order) if n else 0.0
        if rows.size > n:
            total += self._rows / self.equations.c * _norm(rows[n:], order)
        return total

    def tolerance(self, point: Point | NewtonResult) -> float:
        """Return the tolerance on |r| [N]."""
        options = self.options
        return options.atol + (options.rtol * self.scale(point) if options.rtol else 0.0)

    def scale(self, point: Point | NewtonResult) -> float:
        """Return the norm of the largest force family, found once at the first finite iterate [N]."""
        if self._scale is None:
            self._scale = self.assembler.force_scale(point.branch, point.kin, self.theta, self.options.norm)
        return self._scale

    @property
    def unmeasured(self) -> bool:
        """Whether the force families have yet to be measured."""
        return self._scale is None

    def measured(self, families: FloatArray) -> None:
        """Take the forces of the families (n_families, n) at the first finite iterate."""
        self._scale = largest_norm(families, self.options.norm)
        if self.system.sticking:
            self._scales = np.max([self._of_bodies(force) for force in families], axis=0)

    def _of_bodies(self, force: FloatArray) -> FloatArray:
        """Return the norm of a force (n,) on the free coordinates of each body [N]."""
        squares = np.bincount(self.system.owners, force[self.free] ** 2, len(self.system.dofs.entries))
        return np.asarray(np.sqrt(squares))

    def loose(self, point: Point, share: float, tolerance: float) -> bool:
        """Whether every body's residual is at most this share of its own largest force family, or of the tolerance.

        A heavy body says nothing about what a light one does beside it.
        """
        if self._scales is None:
            return False
        allowed = np.maximum(share * self._scales, tolerance)
        return bool(np.all(self._of_bodies(point.r) <= allowed)) and self.row_norm(point) <= float(allowed.min())

    def guess(self, u: FloatArray, *, reachable: bool = False) -> Point:
        """Return the iterate of a first guess, prescribed entries put in place.

        Unless it is known to be ``reachable`` from the state before, it is moved there as far as nothing is in the way.
        """
        u = u.copy()
        u[self.system.partition.prescribed] = self.equations.u_prescribed
        if self.limits is not None and self.origin is not None and not reachable:
            u = reached(self.limits, self.equations, self.origin, u, self.free, self.theta)
        return Point(self, u, np.zeros(self.n_rows))

    @property
    def limits(self) -> StepLimit | None:
        """The bound of trials; none where decisions are given: they are those of a way that was free."""
        return self.system.limit if self.replay is None else None

    def length(self, point: Point, step: FloatArray) -> float:
        """Return how much of a step (n_free,) may be tried: one, or up to where surfaces would meet."""
        if self.limits is None:
            return 1.0
        aim = point.kin.q.copy()
        aim[self.free] += step
        return self.limits.share(point.kin.q, aim, self.theta)

    @property
    def n_rows(self) -> int:
        """Number of multipliers."""
        given = self.replay or self.kept
        return given.n_rows if given else self.system.n_multipliers

    def direction(self, point: Point, damping: float, reuse: bool = False) -> tuple[FloatArray, FloatArray] | None:
        """Return the Newton direction (free part, multipliers), by the last factors if ``reuse``; None if singular."""
        rhs = -np.concatenate([point.r[self.free], point.rows])
        try:
            if not reuse:
                self.linear = self.assembler.factor(
                    point.kin, point.mu, self.theta, self.equations.weights, point.branch, damping
                )
                self.factorizations += 1
            step = self.linear.increment(rhs)
        except SolverError as error:
            _log.debug("step %d: %s", self.equations.step, error)
            return None
        return step[: self.free.size], step[self.free.size :]

    def iterate(
        self, point: Point, damping: float, attempt: int, share: float = 0.0, most: int | None = None
    ) -> NewtonResult:
        """Iterate from ``point``; positive ``damping`` regularises and adapts.

        With a positive ``share`` it is enough to be `loose`.
        ``most`` bounds the iterations in place of the options.
        """
        history = [point.merit]
        if not np.isfinite(point.merit):
            return self.result(point, Status.NOT_FINITE, self.options.atol, attempt, history)
        tolerance = self.tolerance(point)
        limit = (most or self.options.max_iterations) * (4 if damping else 1)
        status = Status.MAX_ITERATIONS
        reuse = False
        for iteration in range(limit + 1):
            if point.merit <= tolerance or (share and self.loose(point, share, tolerance)):
                status = Status.CONVERGED
                break
            if self._stalled(history) and self.at_round_off(point):
                status = Status.ROUND_OFF
                break
            if iteration == limit:
                break
            move = self.direction(point, damping, reuse)
            if move is None:
                if damping and damping < 1e8:
                    damping *= 10.0
                    continue
                status = Status.SINGULAR
                break
            following = self._search(point, *move)
            if reuse and (following is None or following.merit > 0.5 * point.merit):
                reuse = False
                continue
            reuse = following is not None and not damping and following.merit < self.options.reuse * point.merit
            if following is None:
                if self.at_round_off(point):
                    status = Status.ROUND_OFF
                    break
                if damping and damping < 1e8:
                    damping *= 10.0
                    continue
                status = Status.NO_DECREASE if self.length(point, move[0]) > BLOCKED else Status.BLOCKED
                break
            damping = max(0.3 * damping, 1e-14) if damping else 0.0
            point = following
            history.append(point.merit)
        return self.result(point, status, tolerance, attempt, history)

    @staticmethod
    def _stalled(history: list[float]) -> bool:
        """Whether the last three iterations brought next to nothing."""
        return len(history) > 3 and history[-1] > 0.7 * history[-4]

    def at_round_off(self, point: Point) -> bool:
        """Whether the residual is as small as rounding allows."""
        return bool(point.merit <= ROUND_OFF * np.finfo(float).eps * self._round_off_scale(point))

    def _round_off_scale(self, point: Point) -> float:
        """Return the size of the numbers whose rounding limits r [N]: forces, and stiffness times coordinates."""
        mu, theta, branch = point.mu, self.theta, point.branch
        scale = self.scale(point)
        for weights, coordinates in (
            (self.equations.weights, point.u),
            (Weights(1.0, 0.0, 0.0), point.kin.q),
        ):
            pattern, data = self.assembler.assemble(point.kin, mu, theta, weights, branch)
            sizes = np.zeros(pattern.n)
            sizes[: self.free.size] = np.abs(coordinates[self.free])
            scale += float(np.linalg.norm(abs(pattern.matrix(data)) @ sizes, self.options.norm))
        return scale

    def _search(self, point: Point, step: FloatArray, mu_step: FloatArray) -> Point | None:
        """Return the next iterate along a step: the first that decreases the residual, or passes the natural test.

        Thin bodies are soft in bending and stiff in stretch: a good Newton step that turns an element raises |r| at
        first. Deuflhard's natural monotonicity test sees that it is good, |J^-1 r(trial)| < |J^-1 r(point)| with J of
        the point. It is asked only where no residual decrease was found for steps that are not short.
        """
        length = self.length(point, step)
        trials = []
        for halving in range(MAX_HALVINGS):
            if length <= BLOCKED:
                break
            u = point.u.copy()
            u[self.free] += length * step
            trial = Point(self, u, point.mu + length * mu_step)
            if trial.merit <= (1.0 - SUFFICIENT_DECREASE * length) * point.merit:
                return trial
            trials.append((length, trial))
            if halving == NATURAL_AFTER:
                natural = self._natural(trials, np.concatenate([step, mu_step]))
                if natural is not None:
                    return natural
            length *= 0.5
        return None

    def _natural(self, trials: list[tuple[float, Point]], step: FloatArray) -> Point | None:
        """Return the first of the trials that passes the natural monotonicity test."""
        size = float(np.linalg.norm(step))
        for length, trial in trials:
            if not np.isfinite(trial.merit):
                continue
            try:
                rest = self.linear.solve(-np.concatenate([trial.r[self.free], trial.rows]))
            except SolverError as error:
                _log.debug("step %d: %s", self.equations.step, error)
                return None
            if float(np.linalg.norm(rest)) <= (1.0 - 0.25 * length) * size:
                return trial
        return None

    def result(
        self, point: Point, status: Status, tolerance: float, attempt: int, history: list[float]
    ) -> NewtonResult:
        """Return an iterate as a result."""
        free = np.abs(point.r[self.free])
        worst = int(self.free[np.argmax(np.where(np.isfinite(free), free, np.inf))]) if free.size else 0
        report = NewtonReport(
            status, len(history) - 1, self.factorizations, point.merit, tolerance, worst, attempt, tuple(history)
        )
        return NewtonResult(point.kin, point.mu, point.branch, report)
