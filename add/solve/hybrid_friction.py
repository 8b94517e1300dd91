"""Hybrid friction within one step: what sticks is held by equations, what is held beyond Coulomb's limit is let go.

Geilinger et al. 2020, section 4.3. The step is first solved loosely with the linear law. Points that stick in that
solution are held, T v_rel = 0, and the step is solved again with the reactions as unknowns. Wherever the residual is
small, points whose reaction exceeds c_f f_n, or that touch no more, are released, one or several at a time, so that the
loop ends. Released points follow a stiffer linear law, which keeps the limit too. Those that creep by it at the end are
held again, once, and go on creeping unless all bear that.

Two things are added. What rests before the step is held at once, and what creeps then is let go; if all bear that, and
all else slips at the end, a step is one solve, not two. And where a body sticks at some points, holding all that touch
is tried first: under the linear law a box that creeps slips at its uphill corners, but once the others are held those
have no direction to slip in. Reactions that the equations leave open are those of `add.solve.reactions`.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from add.compiled.equations import CompiledEquations, StepOf
from add.compiled.holding import MOST_ITERATIONS
from add.compiled.newton import AT_ROUND_OFF, CONVERGED, GIVEN_UP, Criteria
from add.equations.family_term import NO_ROWS
from add.equations.kinematics import Kinematics
from add.equations.system import BranchEquations
from add.equations.term import Decision
from add.kernels.sticking import beyond
from add.solve.newton import Point, Solve
from add.solve.proximal import flow
from add.solve.reactions import StickingPoints, distribute_reactions, share_coordinates
from add.solve.step_equations import NewtonReport, NewtonResult, Status
from add.typing import FloatArray

_log = logging.getLogger(__name__)

#: Share of a body's largest force family below which |r| is small enough to judge who is let go, which is for good:
#: reactions are then right to about this share. Who sticks in the linear law is judged at `LOOSE_SHARE`.
STICK_SHARE = 1e-6

#: Reactions beyond this multiple of Coulomb's limit are no matter of a residual that is not small yet.
BEARABLE = 1.5

#: How a compiled solve ended.
_STATUS = {CONVERGED: Status.CONVERGED, AT_ROUND_OFF: Status.ROUND_OFF, GIVEN_UP: Status.MAX_ITERATIONS}


class Start(NamedTuple):
    """First iterate: increments u (n,), and multipliers."""

    u: FloatArray
    mu: FloatArray


def at_rest(work: Solve, before: Kinematics) -> BranchEquations | None:
    """Return decisions that hold what rests from the beginning of a step; None where nothing does."""
    system = work.system
    # Terms that never stick ignore what is said here.
    choices: list[Decision] = [NO_ROWS] * len(system.deciding)
    for k, term in system.sticking:
        choices[k] = term.at_rest(before, work.theta)
    branch = system.on_branch(tuple(choices), work.candidates)
    return branch if branch.stick_constraints else None


def still_sticking(work: Solve, resting: NewtonResult, limits: FloatArray) -> bool:
    """Return whether a solution in which what rests goes on resting is the hybrid one, with nothing left to decide."""
    creeps = not all(term.none_creeps(resting.branch.decisions[k]) for k, term in work.system.sticking)
    return not creeps and _release(work, resting, limits) is None


def solve_hybrid(work: Solve, linear: NewtonResult) -> NewtonResult:
    """Return the hybrid solution of a step, from the loose solution with the linear law.

    Where holding fails, the linear law's solution stands in for this step; ``report.attempt`` then says so.
    """
    system, given = work.system, work.kept
    decisions = list(linear.branch.decisions)
    for k, term in system.sticking:
        decisions[k] = term.stick(decisions[k])
    sticking = system.on_branch(tuple(decisions), work.candidates)
    history = list(linear.report.history)
    bodies = _whole_bodies(work, linear, sticking)
    if bodies is not None:
        fewer, start = _bearable(work, linear, bodies, history)
        if fewer is None:
            result = _finish(work, linear, start, bodies, history, False)
            if result is not None:
                return result
    wanted: BranchEquations | None = sticking
    while wanted is not None:
        branch = wanted
        wanted, start = _bearable(work, linear, branch, history)
    return _finish(work, linear, start, branch, history, True) or _creeping(work, linear, given, history)


def _from_linear(work: Solve, linear: NewtonResult, branch: BranchEquations) -> Start:
    """Return where to begin from: the increments of the linear law, with its forces for reactions."""
    rows = [constraint.first_guess(linear.kin, work.theta) for _, constraint in branch.stick_constraints]
    mu = np.concatenate([linear.mu[: work.system.n_multipliers], *rows])
    return Start(linear.kin.q - work.equations.q_star, mu)


def _whole_bodies(work: Solve, linear: NewtonResult, sticking: BranchEquations) -> BranchEquations | None:
    """Return ``sticking`` with all that touches on the same bodies; None if that adds nothing."""
    system, terms = work.system, dict(work.system.sticking)
    choices = list(linear.branch.decisions)
    for k, term in terms.items():
        choices[k] = term.stick_touching(choices[k])
    everything = system.on_branch(tuple(choices), work.candidates)
    constraints = everything.stick_constraints
    alone = [constraint for _, constraint in constraints]
    if everything.n_rows == sticking.n_rows or not share_coordinates(system, alone):
        return None
    points = StickingPoints.of(system, alone)
    already = np.concatenate([terms[k].is_sticking(choices[k], sticking.decisions[k]) for k, _ in constraints])
    groups = np.bincount(points.label, already) > 0
    wanted = groups[points.label]
    if wanted.sum() == already.sum():
        return None
    first = 0
    for k, constraint in constraints:
        part = wanted[first : first + constraint.n_rows // 3]
        choices[k] = terms[k].without(choices[k], ~part)
        first += constraint.n_rows // 3
    return system.on_branch(tuple(choices), work.candidates)


def _finish(
    work: Solve, linear: NewtonResult, start: Start, branch: BranchEquations, history: list[float], releasing: bool
) -> NewtonResult | None:
    """Return the solution on this branch, or with fewer stick constraints if ``releasing``; None if there is none."""
    released = False
    while True:
        work.kept = branch
        # First as far as the reactions may be judged, then to the end, which may still release a point.
        for share in (STICK_SHARE, 0.0):
            result, limits = iterate_held(work, start, linear.report.attempt, share)
            history += result.report.history[1:]
            if not result.report.status.success and released:
                # With more constraints the solution may lie across a kink; in that of the linear law points slip.
                start = _from_linear(work, linear, branch)
                result, limits = iterate_held(work, start, linear.report.attempt, share)
                history += result.report.history[1:]
            if not result.report.status.success:
                return None
            start, following = Start(result.kin.q - work.equations.q_star, result.mu), _release(work, result, limits)
            if following is not None or result.report.residual <= work.tolerance(result):
                break
        if following is None:
            result = (_held_again(work, result, history) if releasing else None) or result
            report = replace(result.report, history=tuple(history), iterations=len(history) - 1)
            return replace(result, report=report)
        if not releasing:
            return None
        branch, mu = following
        released, start = True, Start(start.u, mu)


def _held_again(work: Solve, result: NewtonResult, history: list[float]) -> NewtonResult | None:
    """Return the solution in which what creeps is held again; None unless all bear that.

    Of several that could not bear to be held together, some can once others are let go.
    """
    decisions = list(result.branch.decisions)
    for k, term in work.system.sticking:
        decisions[k] = term.stick(decisions[k])
    branch = work.system.on_branch(tuple(decisions), work.candidates)
    if branch.n_rows == result.branch.n_rows:
        return None
    let_go = work.kept
    wanted, start = _bearable(work, result, branch, history)
    if wanted is None:
        again, limits = iterate_held(work, start, result.report.attempt, 0.0)
        history += again.report.history[1:]
        if again.report.status.success and _release(work, again, limits) is None:
            return again
    work.kept = let_go
    return None


def _at_once(work: Solve) -> CompiledEquations | None:
    """Return the equations on the branch that is kept as one call; None where the terms are asked one by one."""
    if work.kept is None or work.loose_scale is None or work.limits is not None:
        return None
    return work.assembler.holding(work.kept)


def _step_of(work: Solve) -> StepOf:
    equations = work.equations
    return equations.t, equations.c, equations.q_star, equations.v_star


def iterate_held(work: Solve, start: Start | Point, attempt: int, share: float) -> tuple[NewtonResult, FloatArray]:
    """Return the solution on the branch that is kept, its reactions shared out, and what each point can bear [N].

    In one compiled call where there is one, and that converges. The latter is -1 of a point that does not touch.
    """
    at_once, kept, scale = _at_once(work), work.kept, work.loose_scale
    if at_once is not None and kept is not None and scale is not None:
        options, n, free = work.options, start.u.size, work.free
        tolerance = work.tolerance()
        # As loose as is enough, whichever body it is of.
        criteria = Criteria(max(tolerance, share * scale), 0.0, options.reuse, options.norm, MOST_ITERATIONS)
        status, iterations, factorizations, u, r, limits, merits, decisions = at_once.iterate(
            _step_of(work), criteria, work.theta, np.concatenate([start.u, start.mu]), kept.decisions, work.scale()
        )
        if status != GIVEN_UP or iterations == MOST_ITERATIONS:  # all else is for what only terms try
            work.factorizations += factorizations
            report = NewtonReport(
                _STATUS[status], iterations, work.factorizations, float(merits[-1]), tolerance,
                int(free[np.argmax(np.abs(r[free]))]), attempt, tuple(merits.tolist()),
            )  # fmt: skip
            branch = work.system.on_branch(decisions, work.candidates)
            return NewtonResult(work.equations.kinematics(u[:n]), u[n:], branch, report), limits
    point = start if isinstance(start, Point) else Point(work, *start)
    result = work.iterate(point, 0.0, attempt, share, MOST_ITERATIONS)
    if not result.report.status.success:
        return result, np.zeros(0)
    mu, limits = distribute_reactions(result.branch, work.system, result.kin, work.theta, result.mu)
    return replace(result, mu=mu), limits


def _bearable(
    work: Solve, linear: NewtonResult, branch: BranchEquations, history: list[float]
) -> tuple[BranchEquations | None, Start]:
    """Return the branch without the points that one iteration shows far beyond Coulomb's limit; None if all bear.

    Where the linear law is weak, points that creep fast count as sticking in it. Stopping them within the step may have
    no solution near by: the body would topple over them. From the linear solution they begin to slip the right way.
    If all bear, the point to go on from is behind that iteration.
    """
    work.kept = branch
    if branch.n_rows == work.system.n_multipliers:
        return None, Start(linear.kin.q - work.equations.q_star, linear.mu)
    one = _first_iteration(work, linear, branch)
    following = None if np.isnan(one.merit_ahead) else _release(work, one.loaded, one.limits, BEARABLE)
    if following is not None:
        history.append(one.merit)
        return following[0], one.start
    if one.merit_ahead < one.merit:
        history.append(one.merit_ahead)
        return None, one.ahead
    return None, one.start


class _Iteration(NamedTuple):
    """One whole step of Newton's method: both ends and their merits; NaN behind, where it has no direction.

    And the solution before it with the reactions that it leads to, shared out, and what each point can bear.
    """

    start: Start
    merit: float
    ahead: Start
    merit_ahead: float
    loaded: NewtonResult
    limits: FloatArray


def _first_iteration(work: Solve, linear: NewtonResult, branch: BranchEquations) -> _Iteration:
    """Take one iteration on a branch from a solution, with the forces of the linear law for reactions."""
    at_once, system = _at_once(work), work.system
    if at_once is not None:
        u, mu = linear.kin.q - work.equations.q_star, linear.mu[: system.n_multipliers]
        n, given = u.size, np.concatenate([u, mu, np.zeros(branch.n_rows - mu.size)])
        criteria = Criteria(0.0, 0.0, 0.0, work.options.norm, 1)
        merit, lower, first, last, limits, reactions, decisions = at_once.first_iteration(
            _step_of(work), criteria, work.theta, given, branch.decisions
        )
        if not np.isnan(lower):  # else for what only terms try
            work.factorizations += 1
            made = system.on_branch(decisions, work.candidates)
            loaded = replace(linear, mu=np.concatenate([mu, reactions]), branch=made)
            return _Iteration(Start(first[:n], first[n:]), merit, Start(last[:n], last[n:]), lower, loaded, limits)
    start = _from_linear(work, linear, branch)
    point = Point(work, *start)
    move = work.direction(point, 0.0)
    if move is None:
        return _Iteration(start, point.merit, start, np.nan, linear, np.zeros(0))
    mu, limits = distribute_reactions(point.branch, system, point.kin, work.theta, start.mu + move[1])
    moved, length = start.u.copy(), work.length(point, move[0])
    moved[work.free] += length * move[0]
    ahead = Start(moved, start.mu + length * move[1])
    loaded = replace(linear, mu=mu, branch=point.branch)
    return _Iteration(start, point.merit, ahead, Point(work, *ahead).merit, loaded, limits)


def _creeping(work: Solve, linear: NewtonResult, given: BranchEquations | None, history: list[float]) -> NewtonResult:
    """Return the tight solution with the linear law, on the faces that the loose one was ``given``."""
    _log.info("step %d: sticking points creep, since holding them failed", work.equations.step)
    work.kept = given
    point = Point(work, linear.kin.q - work.equations.q_star, linear.mu)
    result = work.iterate(point, 0.0, linear.report.attempt + 1)
    history += result.report.history[1:]
    if not result.report.status.success:
        result = flow(work, point, linear.report.attempt + 2, 0.0)
        history += result.report.history[1:]
    return replace(result, report=replace(result.report, history=tuple(history), iterations=len(history) - 1))


def _release(
    work: Solve, at: NewtonResult, limits: FloatArray, margin: float = 1.0
) -> tuple[BranchEquations, FloatArray] | None:
    """Return the branch without the points beyond Coulomb's limit, and the other reactions; None if all stick."""
    system, terms = work.system, dict(work.system.sticking)
    decisions, first = list(at.branch.decisions), 0
    kept, changed = [at.mu[: system.n_multipliers]], False
    for k, constraint in at.branch.stick_constraints:
        reactions, last = at.branch.reactions(k, at.mu).reshape(-1, 3), first + constraint.n_rows // 3
        free, first = beyond(reactions, limits[first:last], margin), last
        if free.any():
            decisions[k] = terms[k].release(decisions[k], free)
            changed = True
        kept.append(reactions[~free].ravel())
    if not changed:
        return None
    return system.on_branch(tuple(decisions), work.candidates), np.concatenate(kept)
