"""Newton's method in the increment u of one implicit step, from first guesses that pass through no surface."""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from typing import final

import numpy as np

from add.compiled.newton import BLOCKED, MAX_HALVINGS, NATURAL_AFTER, ROUND_OFF, SUFFICIENT_DECREASE
from add.equations.lifted import StepLimit
from add.equations.system import BranchEquations, largest_norm
from add.equations.term import AllCandidates
from add.errors import SolverError
from add.solve.step_equations import NewtonOptions, NewtonReport, NewtonResult, Status, StepEquations, Zones
from add.solve.step_matrix import Assembler
from add.typing import BoolArray, FloatArray

_log = logging.getLogger(__name__)

#: How much the size of the numbers behind r may change within a step; it takes two matrices to measure.
SIEVE = 100.0

#: Iterations after which zones that have not converged try the other first guesses.
PATIENCE = 16

#: Fewer bodies are one zone; the share of so many coordinates that may be left for a solve to go on with them alone.
FEW, SMALLER, MANY = 24, 0.5, 90


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
        system, families, replay = solve.system, None, solve.replay
        apart = system.owners.max(initial=0) > 0 or solve.assembler.at_once is None
        if solve.unmeasured and replay is None and apart:
            families = np.zeros((system.n_families, system.n))
            self.r, self.rows, self.branch = system.residual(
                self.kin, mu, solve.theta, solve.kept, families, solve.candidates
            )
        else:
            self.r, self.rows, self.branch = solve.assembler.residual(
                self.kin, mu, solve.theta, replay or solve.kept, replay is not None, solve.candidates
            )
        merit = _norm(self.r[solve.free], solve.options.norm) + solve.row_norm(self)
        self.merit = merit if math.isfinite(merit) else math.inf
        if families is not None and merit < math.inf:
            solve.measured(families)
        elif solve.unmeasured and replay is None and merit < math.inf:
            solve.measured_alone(self)


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
    factorizations : int, done so far
    together, patient : bool
        Whether all zones are one, with one length; whether they go on beyond `PATIENCE`.
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
        self.free = assembler.free
        self.factorizations = 0
        self.kept: BranchEquations | None = None
        # Compiled steps have one length, and these their iterates; rows, and ways that are free, are those of all.
        few, bound = len(self.system.dofs.entries) < FEW, self.system.limit is not None
        self.together = few or bound or bool(self.system.n_multipliers or self.system.sticking)
        self.patient = False
        self._stuck: BoolArray = np.zeros(self.free.size, dtype=bool)
        self._zones = self._one = Zones(1, np.zeros(self._stuck.size, dtype=np.int64), options.norm)
        self._rows: float | None = None
        self._scale: float | None = None
        self._round_off: float | None = None
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
            weights = self.equations.weights
            self._rows = self.assembler.mean_diagonal(point.kin, point.mu, self.theta, weights, point.branch)
        n, order = self.system.n_multipliers, self.options.norm
        total = self._rows * _norm(rows[:n], order) if n else 0.0
        if rows.size > n:
            total += self._rows / self.equations.c * _norm(rows[n:], order)
        return total

    def merits(self, point: Point, zones: Zones) -> FloatArray:
        """Return the merit of each zone."""
        if zones.number == 1:
            return np.array([point.merit])
        return zones.norms(point.r[self.free])  # rows keep all together

    def tolerance(self, point: Point | NewtonResult | None = None) -> float:
        """Return the tolerance on |r| [N]."""
        options = self.options
        return options.atol + (options.rtol * self.scale(point) if options.rtol else 0.0)

    def scale(self, point: Point | NewtonResult | None = None) -> float:
        """Return the norm of the largest force family, found once at the first finite iterate [N]."""
        if self._scale is None:
            assert point is not None, "asked before a point is known"
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

    def measured_alone(self, point: Point) -> None:
        """Measure the forces of a system of one body at the first finite iterate, in one call."""
        self._scales = np.array([self.scale(point)])

    def _of_bodies(self, force: FloatArray) -> FloatArray:
        """Return the norm of a force (n,) on the free coordinates of each body [N]."""
        return np.asarray(np.sqrt(np.bincount(self.system.owners, force[self.free] ** 2)))

    def loose(self, point: Point, share: float, tolerance: float) -> bool:
        """Whether every body's residual is at most this share of its own largest force family, or of the tolerance.

        A heavy body says nothing about what a light one does beside it.
        """
        if self._scales is None:
            return False
        allowed = np.maximum(share * self._scales, tolerance)
        return bool(np.all(self._of_bodies(point.r) <= allowed)) and self.row_norm(point) <= float(allowed.min())

    @property
    def loose_scale(self) -> float | None:
        """The least of the bodies' largest force families [N]; None before they are measured, or where none asks."""
        return None if self._scales is None or not self._scales.size else float(self._scales.min())

    def guess(self, u: FloatArray, *, reachable: bool = False) -> Point:
        """Return the iterate of a first guess, prescribed entries put in place.

        Unless it is known to be ``reachable`` from the state before, it is moved there as far as nothing is in the way.
        Multipliers behind u (n,) are a guess of theirs, zeros without.
        """
        n, mu = self.system.n, np.zeros(self.n_rows)
        mu[: u.size - n] = u[n:]
        u = u[:n].copy()
        u[self.system.partition.prescribed] = self.equations.u_prescribed
        if self.limits is not None and self.origin is not None and not reachable:
            u = self.equations.reached(self.limits, self.origin, u, self.free, self.theta)
        return Point(self, u, mu)

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

    def join(self) -> None:
        """Take all zones as one from now on."""
        self.together, self._zones = True, self._one

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
                self._zones = self.assembler.zones(point.branch, self.options.norm, self.together)
            step = self.linear.increment(rhs)
        except SolverError as error:
            _log.debug("step %d: %s", self.equations.step, error)
            return None
        return step[: self.free.size], step[self.free.size :]

    def _rest(self, point: Point, tolerance: float) -> Solve | None:
        """Return the solve of the zones that have not converged where they are the smaller part."""
        zones = self._zones
        if zones.number == 1 or self.free.size < MANY:
            return None
        left = ~(self.merits(point, zones) <= zones.settled(tolerance))[zones.labels]
        return self.within(left) if 0 < np.count_nonzero(left) <= SMALLER * left.size else None

    def within(self, left: BoolArray) -> Solve:
        """Return the solve for these of the free coordinates alone, to half the tolerance."""
        o = self.options
        options = replace(o, atol=0.5 * o.atol, rtol=0.5 * o.rtol)
        assembler, candidates = self.assembler.within(self.free[left], self.candidates)
        inner = Solve(assembler, self.equations, self.theta, options, self.replay, candidates, self.origin)
        inner._scale, inner.kept = self._scale, self.kept
        return inner

    def iterate(
        self, point: Point, damping: float, attempt: int, share: float = 0.0, most: int | None = None
    ) -> NewtonResult:
        """Iterate from ``point``; positive ``damping`` regularises and adapts.

        With a positive ``share`` it is enough to be `loose`; ``most`` bounds the iterations in place of the options.
        """
        history = [point.merit]
        if not np.isfinite(point.merit):
            return self.result(point, Status.NOT_FINITE, self.options.atol, attempt, history)
        tolerance = self.tolerance(point)
        limit = (most or self.options.max_iterations) * (4 if damping else 1)
        status, hasty = Status.MAX_ITERATIONS, not (most or damping or share or self.patient)
        self._stuck[:] = False
        reuse = False
        for iteration in range(limit + 1):
            if point.merit <= tolerance or (share and self.loose(point, share, tolerance)):
                status = Status.CONVERGED
                break
            if self._stalled(history) and self.at_round_off(point):
                status = Status.ROUND_OFF
                break
            most = min(limit, PATIENCE) if hasty and self._zones.number > 1 else limit
            if iteration >= most:
                break
            inner = None if damping or share else self._rest(point, tolerance)
            if inner is not None:
                part = inner.iterate(Point(inner, point.u, point.mu), 0.0, attempt, most=most - iteration)
                point = Point(self, part.kin.q - self.equations.q_star, part.mu)
                history += part.report.history[1:]
                self.factorizations += inner.factorizations
                if part.report.status.success:
                    continue
                left = np.isin(self.free, inner.free if part.left is None else inner.free[part.left])
                return replace(self.result(point, part.report.status, tolerance, attempt, history), left=left)
            move = self.direction(point, damping, reuse)
            if move is None:
                if damping and damping < 1e8:
                    damping *= 10.0
                    continue
                status = Status.SINGULAR
                break
            following = self._search(point, *move, tolerance)
            if reuse and (following is None or following.merit > 0.5 * point.merit):
                reuse, self._stuck[:] = False, False
                continue
            reuse = following is not None and not damping and following.merit < self.options.reuse * point.merit
            if following is None:
                if self.at_round_off(point):
                    status = Status.ROUND_OFF
                    break
                if damping and damping < 1e8:
                    damping, self._stuck[:] = 10.0 * damping, False
                    continue
                status = Status.NO_DECREASE if self.length(point, move[0]) > BLOCKED else Status.BLOCKED
                break
            damping = max(0.3 * damping, 1e-14) if damping else 0.0
            point = following
            history.append(point.merit)
        result = self.result(point, status, tolerance, attempt, history)
        zones = self._zones
        if status.success or zones.number == 1:
            return result
        left = ~(self.merits(point, zones) <= zones.settled(tolerance))
        return replace(result, left=left[zones.labels[: self.free.size]])

    @staticmethod
    def _stalled(history: list[float]) -> bool:
        """Whether the last three iterations brought next to nothing."""
        return len(history) > 3 and history[-1] > 0.7 * history[-4]

    def at_round_off(self, point: Point) -> bool:
        """Whether the residual is as small as rounding allows."""
        limit = ROUND_OFF * np.finfo(float).eps
        if self._round_off is not None and point.merit > SIEVE * limit * self._round_off:
            return False
        self._round_off = self.scale(point) + self.assembler.rounding(
            self.equations, point.kin, (point.u, point.mu), self.theta, point.branch, self.options.norm
        )
        return bool(point.merit <= limit * self._round_off)

    def _search(self, point: Point, step: FloatArray, mu_step: FloatArray, tolerance: float) -> Point | None:
        """Return the next iterate along a step: in each zone the first that decreases the residual, or is `_natural`.

        Thin bodies are soft in bending and stiff in stretch: a good Newton step that turns an element raises |r| at
        first. Deuflhard's natural monotonicity test sees that it is good, |J^-1 r(trial)| < |J^-1 r(point)| with J of
        the point. It is asked only where no residual decrease was found for steps that are not short.
        A zone that finds nothing stays where it is, and is not searched again before the matrix is another one.
        """
        zones, step = self._zones, np.concatenate([step, mu_step])
        before, stuck = self.merits(point, zones), zones.norms(~self._stuck) == 0.0
        searched = ~(before <= zones.settled(tolerance)) & ~stuck  # of what is no number, too
        lengths = np.where(searched, self.length(point, step[: self.free.size]), 0.0)
        looking, natural, trials = searched, np.zeros_like(searched), list[tuple[FloatArray, Point]]()
        for halving in range(MAX_HALVINGS):
            if not (lengths[looking] > BLOCKED).any():
                break
            trial = self._along(point, step, lengths[zones.labels])
            lower = self.merits(trial, zones) <= (1.0 - SUFFICIENT_DECREASE * lengths) * before
            looking = searched & ~lower & ~natural
            if not looking.any():
                return trial
            trials.append((lengths, trial))
            lengths = np.where(looking, 0.5 * lengths, lengths)
            if halving == NATURAL_AFTER:
                found = self._natural(trials, step, zones)
                natural = looking & (found > 0.0)
                lengths, looking = np.where(natural, found, lengths), looking & ~natural
                if not looking.any():
                    same = [at for tried, at in trials if np.array_equal(tried, lengths)]
                    return same[0] if same else self._along(point, step, lengths[zones.labels])
        if not (searched & ~looking).any():
            return None
        self._stuck |= looking[zones.labels[: self._stuck.size]]
        return self._along(point, step, np.where(looking, 0.0, lengths)[zones.labels])

    def _along(self, point: Point, step: FloatArray, lengths: FloatArray) -> Point:
        """Return the trial at some length along a step, both of every unknown."""
        u, way = point.u.copy(), lengths * step
        u[self.free] += way[: self.free.size]
        return Point(self, u, point.mu + way[self.free.size :])

    def _natural(self, trials: list[tuple[FloatArray, Point]], step: FloatArray, zones: Zones) -> FloatArray:
        """Return the length of the first of the trials that passes the natural monotonicity test in each zone, or 0."""
        found, sizes = np.zeros(zones.number), zones.norms(step)
        for lengths, trial in trials:
            if not np.isfinite(trial.merit):
                continue
            try:
                rest = self.linear.solve(-np.concatenate([trial.r[self.free], trial.rows]))
            except SolverError as error:
                _log.debug("step %d: %s", self.equations.step, error)
                return np.zeros(zones.number)
            passed = zones.norms(rest) <= (1.0 - 0.25 * lengths) * sizes
            found = np.where((found == 0.0) & passed, lengths, found)
        return found

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
