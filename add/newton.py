"""Newton's method in the increment u of one implicit step, with the ladder for hard steps."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import final

import numpy as np

from add.errors import SolverError
from add.kinematics import Kinematics, Weights
from add.system import Assembler, Decisions
from add.typing import FloatArray

_log = logging.getLogger(__name__)

#: Line search: halvings of a step, and the share of the predicted decrease that is asked for.
MAX_HALVINGS = 14
SUFFICIENT_DECREASE = 1e-4

#: After how many halvings without decrease the natural monotonicity test is asked.
NATURAL_AFTER = 2

#: First multiple of the largest diagonal entry in regularised steps.
REGULARISATION = 1e-4

#: Shares of the contact stiffness through which the last rung of the ladder goes, quickly and slowly.
CONTINUATION = (1e-3, 1e-2, 1e-1, 0.3, 1.0)
SLOW_CONTINUATION = tuple(10.0 ** (k / 3.0) for k in range(-12, 1))

#: |r| within this many units of round-off of the largest force family cannot be improved.
ROUND_OFF = 64.0


class Status(Enum):
    """How a solve ended."""

    CONVERGED = "converged"
    ROUND_OFF = "as small as round-off allows"
    MAX_ITERATIONS = "iteration limit reached"
    NO_DECREASE = "line search found no decrease"
    NOT_FINITE = "no finite first guess (inverted elements)"
    SINGULAR = "the Jacobian is singular"

    @property
    def success(self) -> bool:
        """Whether the result may be used."""
        return self in (Status.CONVERGED, Status.ROUND_OFF)


@final
@dataclass(frozen=True)
class NewtonOptions:
    """When to stop.

    Attributes
    ----------
    atol : float
        Absolute tolerance on |r| [N].
    rtol : float
        Tolerance relative to the norm of the largest force family at the first guess [-].
    norm : int
        1 or 2: the norm of r over the free coordinates.
    max_iterations : int
        Per rung of the ladder.
    """

    atol: float = 1e-9
    rtol: float = 1e-10
    norm: int = 2
    max_iterations: int = 50


@final
@dataclass(frozen=True)
class StepEquations:
    """The unknown of a step and how the kinematics follow from it.

        q = q_star + u,   v = c u,   a = c (v - v_star)

    with q_star = sum alpha_k q_k, v_star likewise, c = 1/(beta dt).  c = 0 is static equilibrium: v = a = 0.
    Prescribed entries of u are fixed in ``u_prescribed``.
    """

    q_star: FloatArray
    v_star: FloatArray
    c: float
    t: float
    step: int
    u_prescribed: FloatArray

    @property
    def weights(self) -> Weights:
        """The factors of dr/dq, dr/dv, dr/da in J = dr/du."""
        return Weights(1.0, self.c, self.c * self.c, 1.0)

    def kinematics(self, u: FloatArray) -> Kinematics:
        """Return (q, v, a) at ``u`` (n,)."""
        v = self.c * u
        return Kinematics(self.q_star + u, v, self.c * (v - self.v_star), self.t, self.step)


@final
@dataclass(frozen=True)
class NewtonReport:
    """What a solve did.

    ``rung`` counts the attempts: 0 is the normal path, then come the other first guesses, regularised steps, and
    continuation in the contact stiffness.
    """

    status: Status
    iterations: int
    factorizations: int
    residual: float
    tolerance: float
    worst: int
    rung: int
    history: tuple[float, ...]


@final
@dataclass(frozen=True)
class NewtonResult:
    """The solution with the decisions that hold there."""

    kin: Kinematics
    mu: FloatArray
    decisions: Decisions
    report: NewtonReport


def _norm(x: FloatArray, order: int) -> float:
    """Return the L2 or L1 norm; the general function takes longer than a small system's kernels."""
    return math.sqrt(x.dot(x)) if order == 2 else float(np.abs(x).sum())


class _Point:
    """An iterate: residual, merit, decisions."""

    __slots__ = ("decisions", "kin", "merit", "mu", "r", "rows", "u")

    def __init__(self, solve: _Solve, u: FloatArray, mu: FloatArray) -> None:
        self.u, self.mu = u, mu
        self.kin = solve.equations.kinematics(u)
        self.r, self.rows, self.decisions = solve.system.residual(self.kin, mu, solve.theta, solve.replay)
        free = self.r[solve.free]
        merit = _norm(free, solve.options.norm)
        if self.rows.size:
            merit += solve.row_scale * _norm(self.rows, solve.options.norm)
        self.merit = merit if math.isfinite(merit) else math.inf


class _Solve:
    """One step's solve: the fixed data and the ladder."""

    def __init__(
        self,
        assembler: Assembler,
        equations: StepEquations,
        theta: FloatArray,
        options: NewtonOptions,
        replay: Decisions | None,
    ) -> None:
        self.assembler, self.system = assembler, assembler.system
        self.equations, self.theta, self.options, self.replay = equations, theta, options, replay
        self.free = self.system.partition.free
        self.factorizations = 0
        # Constraint rows [m] weigh like the inertia forces [N] that their violation would cost: per metre, m c^2.
        self.row_scale = self._row_scale() if self.system.n_multipliers else 1.0
        self._scale: float | None = None

    def _row_scale(self) -> float:
        """Return the mean diagonal entry of J at the start of the step [N/m]."""
        kin = self.equations.kinematics(np.zeros(self.system.n))
        mu = np.zeros(self.system.n_multipliers)
        _, _, decisions = self.system.residual(kin, mu, self.theta, self.replay)
        pattern, data = self.assembler.assemble(kin, mu, self.theta, self.equations.weights, decisions)
        diagonal = np.abs(pattern.matrix(data).diagonal()[: self.free.size])
        return float(diagonal.mean()) if diagonal.size and np.isfinite(diagonal).all() else 1.0

    def scale(self, point: _Point) -> float:
        """Return the norm of the largest force family, found once at the first finite iterate [N]."""
        if self._scale is None:
            self._scale = self.system.force_scale(point.kin, self.theta, point.decisions, self.options.norm)
        return self._scale

    def guess(self, u: FloatArray) -> _Point:
        """Return the iterate of a first guess, prescribed entries put in place."""
        u = u.copy()
        u[self.system.partition.prescribed] = self.equations.u_prescribed
        return _Point(self, u, np.zeros(self.system.n_multipliers))

    def direction(self, point: _Point, damping: float) -> tuple[FloatArray, FloatArray] | None:
        """Return the Newton direction (free part, multipliers); None if the matrix is singular."""
        pattern, data = self.assembler.assemble(
            point.kin, point.mu, self.theta, self.equations.weights, point.decisions
        )
        if damping:
            columns = np.repeat(np.arange(pattern.n), np.diff(pattern.indptr))
            diagonal = np.flatnonzero((pattern.indices == columns) & (columns < self.free.size))
            data[diagonal] += damping * np.abs(data[diagonal]).max()
        rhs = -np.concatenate([point.r[self.free], point.rows])
        try:
            factorization = self.assembler.factorization
            factorization.factor(pattern, data)
            self.factorizations += 1
            step = factorization.solve(rhs)
        except SolverError as error:
            _log.debug("step %d: %s", self.equations.step, error)
            return None
        return step[: self.free.size], step[self.free.size :]

    def iterate(self, point: _Point, damping: float, rung: int) -> NewtonResult:
        """Iterate from ``point``; positive ``damping`` regularises and adapts."""
        history = [point.merit]
        tolerance = self.options.atol
        if not np.isfinite(point.merit):
            return self._result(point, Status.NOT_FINITE, tolerance, rung, history)
        if self.options.rtol:
            tolerance += self.options.rtol * self.scale(point)
        limit = self.options.max_iterations * (4 if damping else 1)
        status = Status.MAX_ITERATIONS
        for iteration in range(limit + 1):
            if point.merit <= tolerance:
                status = Status.CONVERGED
                break
            if self._stalled(history) and self._at_round_off(point):
                status = Status.ROUND_OFF
                break
            if iteration == limit:
                break
            move = self.direction(point, damping)
            if move is None:
                if damping and damping < 1e8:
                    damping *= 10.0
                    continue
                status = Status.SINGULAR
                break
            following = self._search(point, *move)
            if following is None:
                if self._at_round_off(point):
                    status = Status.ROUND_OFF
                    break
                if damping and damping < 1e8:
                    damping *= 10.0
                    continue
                status = Status.NO_DECREASE
                break
            damping = max(0.3 * damping, 1e-14) if damping else 0.0
            point = following
            history.append(point.merit)
        return self._result(point, status, tolerance, rung, history)

    @staticmethod
    def _stalled(history: list[float]) -> bool:
        """Whether the last three iterations brought next to nothing."""
        return len(history) > 3 and history[-1] > 0.7 * history[-4]

    def _at_round_off(self, point: _Point) -> bool:
        return bool(point.merit <= ROUND_OFF * np.finfo(float).eps * self._round_off_scale(point))

    def _round_off_scale(self, point: _Point) -> float:
        """Return the size of the numbers whose rounding limits r [N]: forces, and stiffness times coordinates."""
        mu, theta, decisions = point.mu, self.theta, point.decisions
        scale = self.scale(point)
        for weights, coordinates in (
            (self.equations.weights, point.u),
            (Weights(1.0, 0.0, 0.0), point.kin.q),
        ):
            pattern, data = self.assembler.assemble(point.kin, mu, theta, weights, decisions)
            sizes = np.zeros(pattern.n)
            sizes[: self.free.size] = np.abs(coordinates[self.free])
            scale += float(np.linalg.norm(abs(pattern.matrix(data)) @ sizes, self.options.norm))
        return scale

    def _search(self, point: _Point, step: FloatArray, mu_step: FloatArray) -> _Point | None:
        """Return the next iterate along a step: the first that decreases the residual, or passes the natural test.

        Thin bodies are soft in bending and stiff in stretch: a good Newton step that turns an element raises |r| at
        first. Deuflhard's natural monotonicity test sees that it is good, |J^-1 r(trial)| < |J^-1 r(point)| with J of
        the point. It is asked only where no residual decrease was found for steps that are not short.
        """
        length = 1.0
        trials = []
        for halving in range(MAX_HALVINGS):
            u = point.u.copy()
            u[self.free] += length * step
            trial = _Point(self, u, point.mu + length * mu_step)
            if trial.merit <= (1.0 - SUFFICIENT_DECREASE * length) * point.merit:
                return trial
            trials.append((length, trial))
            if halving == NATURAL_AFTER:
                natural = self._natural(trials, np.concatenate([step, mu_step]))
                if natural is not None:
                    return natural
            length *= 0.5
        return None

    def _natural(self, trials: list[tuple[float, _Point]], step: FloatArray) -> _Point | None:
        """Return the first of the trials that passes the natural monotonicity test."""
        size = float(np.linalg.norm(step))
        for length, trial in trials:
            if not np.isfinite(trial.merit):
                continue
            rest = self.assembler.factorization.solve(-np.concatenate([trial.r[self.free], trial.rows]))
            if float(np.linalg.norm(rest)) <= (1.0 - 0.25 * length) * size:
                return trial
        return None

    def _result(self, point: _Point, status: Status, tolerance: float, rung: int, history: list[float]) -> NewtonResult:
        free = np.abs(point.r[self.free])
        worst = int(self.free[np.argmax(np.where(np.isfinite(free), free, np.inf))]) if free.size else 0
        report = NewtonReport(
            status, len(history) - 1, self.factorizations, point.merit, tolerance, worst, rung, tuple(history)
        )
        return NewtonResult(point.kin, point.mu, point.decisions, report)


def _stiffened(
    assembler: Assembler,
    equations: StepEquations,
    theta: FloatArray,
    guess: FloatArray,
    options: NewtonOptions,
    shares: Sequence[float],
    rung: int,
) -> NewtonResult | None:
    """Solve with soft contact first and with the given one at last, each from the solution before.

    A rigid body that meets a stiff obstacle within one long step has its solution in another set of touching corners
    than every guess, and |r| has minima at the kinks in between. Soft contact has few of them. None without contact.
    """
    indices = np.concatenate([np.zeros(0, dtype=np.int64), *(t.stiffnesses() for t in assembler.system.deciding)])
    if not indices.size:
        return None
    indices = np.unique(indices)
    u, result = guess, None
    for share in shares:
        softened = theta.copy()
        softened[indices] *= share
        work = _Solve(assembler, equations, softened, options, None)
        result = work.iterate(work.guess(u), 0.0, rung)
        if not result.report.status.success:
            result = work.iterate(work.guess(u), REGULARISATION, rung)
        if not result.report.status.success:
            break
        u = result.kin.q - equations.q_star
    return result


def solve(
    assembler: Assembler,
    equations: StepEquations,
    theta: FloatArray,
    guesses: Sequence[FloatArray],
    options: NewtonOptions,
    replay: Decisions | None = None,
) -> NewtonResult:
    """Solve r(q, v, a) = 0 of one step.

    Newton from the first finite guess with a residual-decreasing line search that also rejects inverted elements and
    values that are not finite.  Where that fails, the ladder: the other guesses in turn, then, from the best guess,
    steps regularised by a multiple of the largest diagonal entry that falls while they succeed. At last, where anything
    may touch, continuation from soft to the given contact stiffness.

    Parameters
    ----------
    assembler : Assembler
    equations : StepEquations
    theta : (n_theta,)
    guesses : u (n,) each, best first
    options : NewtonOptions
    replay : Decisions, optional
        Branches to hold instead of deciding.

    Returns
    -------
    NewtonResult
        Also when it failed: ``report.status`` says so, and the point is that of the regularised steps.
    """
    work = _Solve(assembler, equations, theta, options, replay)
    points = [work.guess(guesses[0])]
    result = work.iterate(points[0], 0.0, 0)
    if result.report.status.success:
        return result
    for rung, guess in enumerate(guesses[1:], start=1):
        points.append(work.guess(guess))
        result = work.iterate(points[-1], 0.0, rung)
        if result.report.status.success:
            _log.info("step %d: solved from first guess %d", equations.step, rung)
            return result
    best = min(points, key=lambda p: p.merit)
    result = work.iterate(best, REGULARISATION, len(guesses))
    if result.report.status.success:
        _log.info("step %d: solved with regularised steps", equations.step)
        return result
    if replay is None:
        # Quickly from every guess, then slowly from the first.
        attempts = [*((guess, CONTINUATION) for guess in guesses), (guesses[0], SLOW_CONTINUATION)]
        for guess, shares in attempts:
            found = _stiffened(assembler, equations, theta, guess, options, shares, len(guesses) + 1)
            if found is None:
                break
            if found.report.status.success:
                _log.info("step %d: solved by continuation in the contact stiffness", equations.step)
                return found
    return result


def failure(result: NewtonResult, assembler: Assembler, equations: StepEquations, dt: float) -> SolverError:
    """Return the error that names step, time, residual, the worst coordinate and the remedy."""
    report = result.report
    place = assembler.system.dofs.describe(report.worst)
    remedy = f"try dt < {dt:g}" if dt else "the bodies may not be held: pin them or start from a given state"
    if report.status is Status.NO_DECREASE or report.status is Status.MAX_ITERATIONS:
        remedy += ", a damping ramp, a smooth contact onset, or a softer contact stiffness"
    return SolverError(
        f"step {equations.step} (t={equations.t:.6g} s): |r|={report.residual:.3e} N > {report.tolerance:.3e} N after "
        f"{report.iterations} iterations ({report.status.value}); worst dof {place}; {remedy}"
    )
