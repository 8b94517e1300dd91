"""The solve of one implicit step: Newton, the fallbacks for hard steps, and hybrid friction."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from add.compiled.newton import LOOSE_SHARE
from add.equations.kinematics import Kinematics, Weights
from add.equations.system import BranchEquations
from add.equations.term import AllCandidates
from add.errors import SolverError
from add.solve.hybrid_friction import at_rest, iterate_held, solve_hybrid, still_sticking
from add.solve.newton import PATIENCE, SMALLER, Point, Solve
from add.solve.proximal import flow
from add.solve.step_equations import NewtonOptions, NewtonResult, Status, StepEquations
from add.solve.step_matrix import Assembler
from add.typing import BoolArray, FloatArray

_log = logging.getLogger(__name__)

#: First multiple of the largest diagonal entry in regularised steps.
REGULARISATION = 1e-4

#: Shares of the contact stiffness through which the last fallback but one goes, quickly and slowly.
CONTINUATION = (1e-3, 1e-2, 1e-1, 0.3, 1.0)
SLOW_CONTINUATION = tuple(10.0 ** (k / 3.0) for k in range(-12, 1))

#: Iterations of proximal steps from where the first guesses ended, as a multiple of those of an attempt.
SHORT_FLOW = 1

#: What helps a step that has no solution near by, and a start that finds no equilibrium.
SMALLER_STEP = "try time.dt = {dt:.3g} s or less"
JUMPS = (
    "the force jumps there, between two faces that are equally near or as damping sets in, and there may be no "
    "solution: let balls and capsules meet meshes by their faces ('by_meshes' in contact.pairs), divide such steps "
    "(time.substeps 'auto'), or let damping set in along a contact.damping_ramp"
)
AT_ONCE = (
    "let damping set in along a contact.damping_ramp: at once it makes the force jump where anything touches, and "
    "there may be no solution, however short the step"
)
#: Ways between which a jump is looked for [m], [rad].
NEAR, NEARER = 1e-7, 16.0
NOT_HELD = (
    "the bodies may not be held: pin them, or start from a given state (time.initial); or two constraints ask for the "
    "same"
)


def _stiffened(given: Solve, guess: FloatArray, shares: Sequence[float], attempt: int) -> NewtonResult | None:
    """Solve with soft contact first and with the given one at last, each from the solution before.

    A rigid body that meets a stiff obstacle within one long step has its solution in another set of touching corners
    than every guess, and |r| has minima at the kinks in between. Soft contact has few of them. None without contact.
    """
    assembler, equations, theta = given.assembler, given.equations, given.theta
    indices = np.concatenate([np.zeros(0, dtype=np.int64), *(t.stiffnesses() for t in assembler.system.deciding)])
    if not indices.size:
        return None
    indices = np.unique(indices)
    u, result = guess, None
    for share in shares:
        softened = theta.copy()
        softened[indices] *= share
        work = Solve(assembler, equations, softened, given.options, None, given.candidates, given.origin)
        first = work.guess(u, reachable=result is not None)
        result = work.iterate(first, 0.0, attempt)
        if not result.report.status.success:
            result = work.iterate(first, REGULARISATION, attempt)
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
    replay: BranchEquations | None = None,
    before: Kinematics | None = None,
    candidates: AllCandidates = (),
    attempts: int | None = None,
    rested: bool = False,
) -> NewtonResult:
    """Solve r(q, v, a) = 0 of one step.

    Newton from the first finite guess with a residual-decreasing line search that also rejects inverted elements and
    values that are not finite. Where that fails, the fallbacks: the other guesses in turn, then a few proximal steps,
    `add.solve.proximal`, from where the best of them ended, mostly at a kink near the solution. Then, from the best
    guess, steps regularised by a multiple of the largest diagonal entry that falls while they succeed; then with what
    touches kept on the faces it met before the step; where anything may touch, continuation from soft to the given
    contact stiffness; at last proximal steps from every guess.
    Hybrid friction then goes on from there, `add.solve.hybrid_friction`.

    Parameters
    ----------
    assembler : Assembler
    equations : StepEquations
    theta : (n_theta,)
    guesses : u (n,) each, best first
    options : NewtonOptions
    replay : BranchEquations, optional
        Branches to keep instead of deciding.
    before : Kinematics, optional
        The state before the step: what rests there is held from the beginning under hybrid friction.
    candidates : optional
        What each deciding term may decide within the step; see `DecidingTerm.candidates`.
    attempts : int, optional
        The last one that is tried, as `NewtonReport.attempt` counts them; default: all.
    rested : bool
        Whether compiled steps have tried in vain to hold what rests.

    Returns
    -------
    NewtonResult
        Also when it failed: ``report.status`` says so, and the point is that of the regularised steps.
    """
    work = Solve(assembler, equations, theta, options, replay, candidates, before.q if before else None)
    work.patient = attempts == 0  # no other first guess follows
    # Without velocities nothing can stick: static equilibrium knows no friction.
    if not assembler.system.sticking or replay is not None or not equations.c:
        return _attempts(work, guesses, 0.0, attempts, before)
    work.kept = at_rest(work, before) if before is not None and not rested else None
    if work.kept is not None:
        result, limits = iterate_held(work, work.guess(guesses[0]), 0, 0.0)
        if result.report.status.success and still_sticking(work, result, limits):
            return result
        work.kept = None
    result = _attempts(work, guesses, LOOSE_SHARE, attempts, before)
    if not result.report.status.success:
        return result
    hybrid = solve_hybrid(work, result)
    if hybrid.report.status.success or attempts is not None:
        return hybrid
    work.kept = None  # the loose solution was one of a kink, with no tight one near by
    result = _attempts(work, guesses, 0.0, None, before)
    again = solve_hybrid(work, result) if result.report.status.success else result
    tried = hybrid.report
    report = again.report.behind(tried.iterations, tried.factorizations, np.asarray(tried.history))
    return replace(again, report=replace(report, attempt=max(1, report.attempt)))


class Ends(NamedTuple):
    """How attempts from first guesses ended.

    Attributes
    ----------
    result : the first that succeeded, or the last one
    all : of all attempts but the regularised one
    points : first iterates
    guesses : first guesses (n,), no two the same
    """

    result: NewtonResult
    all: list[NewtonResult]
    points: list[Point]
    guesses: list[FloatArray]


def _from_guesses(work: Solve, guesses: Sequence[FloatArray], share: float, attempts: int | None) -> Ends:
    """Try one guess after another, proximal steps from where they ended, and regularised steps."""
    equations = work.equations
    # Where a run begins, or behind an impact, some are the same: they would end in the same place.
    guesses = [u for k, u in enumerate(guesses) if not any(np.array_equal(u, earlier) for earlier in guesses[:k])]
    points = [work.guess(guesses[0])]
    result = work.iterate(points[0], 0.0, 0, share)
    ends = [result]
    if result.report.status.success or attempts == 0:
        return Ends(result, ends, points, guesses)
    if result.left is not None:
        if np.count_nonzero(result.left) <= SMALLER * result.left.size:
            found = _by_zones(work, result, result.left, guesses, attempts)
            if found.report.status.success:
                return Ends(found, [found], points, guesses)
        # Zones that meet and part while they are sought, or one that has no solution by itself: all as one.
        work.join()
        return _from_guesses(work, guesses, share, attempts)
    for attempt, guess in enumerate(guesses[1:], start=1):
        points.append(work.guess(guess))
        result = work.iterate(points[-1], 0.0, attempt, share)
        ends.append(result)
        if result.report.status.success:
            _log.info("step %d: solved from first guess %d", equations.step, attempt)
            return Ends(result, ends, points, guesses)
    if work.replay is None and equations.c:
        nearest = min(ends, key=lambda end: end.report.residual)
        start = Point(work, nearest.kin.q - equations.q_star, nearest.mu)
        rested = flow(work, start, len(guesses), share, SHORT_FLOW)
        if rested.report.status.success:
            _log.info("step %d: solved by proximal steps from where a first guess ended", equations.step)
            return Ends(rested, ends, points, guesses)
    best = min(points, key=lambda p: p.merit)
    blocked = result.report.status is Status.BLOCKED
    result = work.iterate(best, REGULARISATION, len(guesses) + 1, share)
    if result.report.status.success:
        _log.info("step %d: solved with regularised steps", equations.step)
    elif blocked:
        result = replace(result, report=replace(result.report, status=Status.BLOCKED))
    return Ends(result, ends, points, guesses)


def _by_zones(
    work: Solve, failed: NewtonResult, left: BoolArray, guesses: Sequence[FloatArray], attempts: int | None
) -> NewtonResult:
    """Try for the zones that the first guess has left, from the others first; what has converged waits."""
    inner, guesses = work.within(left), [_behind(work, u, failed) for u in guesses]
    result = replace(failed, left=None)
    for attempt, guess in enumerate(guesses[1:], start=1):
        result = inner.iterate(inner.guess(_behind(inner, guess, result)), 0.0, attempt, most=PATIENCE)
        if result.report.status.success:
            break
    else:
        inner.patient = True
        result = _from_guesses(inner, [_behind(inner, u, result) for u in guesses], 0.0, attempts).result
    work.factorizations += inner.factorizations
    if not result.report.status.success:
        return result
    work.patient = True
    point, done = Point(work, result.kin.q - work.equations.q_star, result.mu), result.report
    whole = work.iterate(point, 0.0, done.attempt)
    return replace(whole, report=whole.report.behind(done.iterations, 0, np.asarray(done.history[:-1])))


def _attempts(
    work: Solve,
    guesses: Sequence[FloatArray],
    share: float,
    attempts: int | None,
    before: Kinematics | None,
) -> NewtonResult:
    """Try one way after another; ``share`` as in `Solve.iterate`."""
    equations = work.equations
    result, ends, points, guesses = _from_guesses(work, guesses, share, attempts)
    if result.report.status.success or work.replay is not None or attempts is not None:
        return result
    blocked = result.report.status is Status.BLOCKED
    if before is not None:
        nearest = min(ends, key=lambda end: end.report.residual)
        starts = [nearest.kin.q - equations.q_star, *guesses, before.q - equations.q_star]
        kept = _by_faces(work, starts, before, len(guesses) + 2, share)
        if kept is not None:
            _log.info("step %d: solved with the faces that were met before it", equations.step)
            return kept
    # Quickly from every guess, then slowly from the first.
    ways = [*((guess, CONTINUATION) for guess in guesses), (guesses[0], SLOW_CONTINUATION)]
    for guess, shares in ways:
        trial = _stiffened(work, guess, shares, len(guesses) + 2)
        if trial is None:
            break
        if trial.report.status.success:
            _log.info("step %d: solved by continuation in the contact stiffness", equations.step)
            return trial
    if equations.c:
        _log.info("step %d is hard: trying proximal steps, which may take a while", equations.step)
        # The body that goes on as it did is where most such steps begin.
        for point in [*points[1:], points[0]]:
            trial = flow(work, point, len(guesses) + 3, share)
            if trial.report.status.success:
                _log.info("step %d: solved by proximal steps", equations.step)
                return trial
            # The error tells of the way that came nearest.
            result = min(result, trial, key=lambda r: r.report.residual)
    if blocked:
        result = replace(result, report=replace(result.report, status=Status.BLOCKED))
    return result


def _by_faces(
    work: Solve, guesses: Sequence[FloatArray], before: Kinematics, attempt: int, share: float
) -> NewtonResult | None:
    """Solve with what may touch by the smooth pieces that it was near before the step; None if that brings nothing.

    Between two faces that are equally near the force jumps, and there need be no solution. Which of them a corner meets
    is then known from before the step, as engines have it that look for contacts once a step. Nothing may have come so
    deep meanwhile, by the pieces that are near at the end, that its energy is more than there was before. The first of
    the ``guesses`` is where a solve has ended.
    """
    system, theta = work.system, work.theta
    faces = tuple(term.keep_faces(before, theta, work.equations.dt) for term in system.deciding)
    work.kept = system.on_branch(faces, work.candidates)
    for k, u in enumerate(guesses):
        point = work.guess(u, reachable=k == 0)  # a solve has come to the first
        result = work.iterate(point, 0.0, attempt, share)
        if result.report.status.success:
            pattern, data = work.assembler.assemble(before, point.mu, theta, Weights(0.0, 0.0, 1.0), point.branch)
            v = np.zeros(pattern.n)
            v[: work.free.size] = before.v[work.free]
            there = 0.5 * float(v @ (pattern.matrix(data) @ v))
            deep, others = (sum(term.energy(kin, theta) for term in system.deciding) for kin in (result.kin, before))
            if deep <= there + others:
                return result
    work.kept = None
    return None


def failure(
    result: NewtonResult,
    assembler: Assembler,
    equations: StepEquations,
    options: NewtonOptions,
    theta: FloatArray,
) -> SolverError:
    """Return the error that names step, time, residual, the worst coordinate, what is in the way, and the remedy."""
    report, dt = result.report, equations.dt
    place = assembler.system.dofs.describe(report.worst)
    remedy = SMALLER_STEP.format(dt=0.25 * dt) if dt else NOT_HELD
    if options.max_iterations < NewtonOptions.max_iterations:
        remedy = f"try time.newton.max_iterations = {NewtonOptions.max_iterations}, or {remedy}"
    if dt and any(term.stiffnesses().size for term in assembler.system.deciding):
        remedy += ", a contact.onset, or a softer contact.stiffness"
    if dt and any(term.damps_at_once(theta) for term in assembler.system.deciding):
        remedy = f"{AT_ONCE}; or {remedy}"
    if dt and report.status is Status.NO_DECREASE and _jumps(result, assembler, equations, theta):
        remedy = JUMPS  # smaller steps end there, too
    lost = [text for term in assembler.system.terms if (text := term.lost(result.kin, theta))]
    if lost:
        place, remedy = "; ".join([place, *lost[:-1]]), lost[-1]
    if report.status is Status.BLOCKED:
        tight = [text for term in assembler.system.deciding if (text := term.tightest(result.kin, theta))]
        if tight:
            place, remedy = "; ".join([place, *tight[:-1]]), tight[-1]  # that names what to try
        elif dt:
            remedy = SMALLER_STEP.format(dt=0.25 * dt)
    return SolverError(
        f"step {equations.step} (t={equations.t:.6g} s): |r|={report.residual:.3e} N > {report.tolerance:.3e} N after "
        f"{report.iterations} iterations ({report.status.value}); worst dof {place}; {remedy}"
    )


def _jumps(result: NewtonResult, assembler: Assembler, equations: StepEquations, theta: FloatArray) -> bool:
    """Whether the residual jumps where a solve has ended: between two places, one of them `NEARER` times as near.

    Where a ball lies in a valley of a mesh, or a corner half-way through a box, two faces are equally near. The force
    of each pushes towards the other's side, and no place between them has none.
    """
    system = assembler.system
    if result.mu.size != system.n_multipliers:
        return False  # what sticks is held by rows of its own
    owner = int(np.searchsorted([entry.stop for entry in system.dofs.entries], result.report.worst, side="right"))
    entry = system.dofs.entries[owner]
    if entry.name not in system.dofs.rigid:
        return False  # each coordinate costs four residuals, and a body of nodes has thousands
    free = np.intersect1d(np.arange(entry.start, entry.stop), system.partition.free)
    u = result.kin.q - equations.q_star

    def change(k: int, way: float) -> float:
        ends = []
        for sign in (1.0, -1.0):
            there = u.copy()
            there[k] += sign * way
            kin = equations.kinematics(there)
            ends.append(system.residual(kin, result.mu, theta, None, None, ())[0][free])
        return float(np.linalg.norm(ends[0] - ends[1]))

    pairs = ((change(k, NEAR), change(k, NEAR / NEARER)) for k in free)
    return any(near > 0.5 * far and near > 0.5 * result.report.residual for far, near in pairs)


def _behind(work: Solve, u: FloatArray, result: NewtonResult) -> FloatArray:
    """Return a guess (n,) in whose place stands what another attempt has found, in the zones that it solved."""
    if result.left is None:
        return u
    u, kept = u.copy(), work.free[~result.left]
    u[kept] = (result.kin.q - work.equations.q_star)[kept]
    return u
