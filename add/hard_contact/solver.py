"""Semismooth Newton for one step with complementarity, with projections where it cycles between branches."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from add.equations.kinematics import Kinematics
from add.equations.term import Decisions
from add.errors import SolverError
from add.hard_contact import law
from add.hard_contact.equations import ContactEquations, Iterate
from add.solve.step_equations import NewtonReport, Status
from add.typing import FloatArray, IntArray

#: A step is shortened at most so often, and may then raise the residual: active sets need room to change.
MAX_HALVINGS = 4


@final
@dataclass(frozen=True)
class ContactSolution:
    """The end of a step; rows of the forces follow the pairs that it was solved with.

    ``report.attempt`` is the number of rounds of projections.
    """

    u: FloatArray
    kin: Kinematics
    mu: FloatArray
    decisions: Decisions
    force: FloatArray
    branch: IntArray
    report: NewtonReport


def _search(
    step: ContactEquations, point: Iterate, move: FloatArray, force_step: FloatArray, recent: Sequence[float]
) -> Iterate:
    """Return the next iterate: the longest step that is no worse than the worst of the last few, or the best."""
    best: Iterate | None = None
    length = 1.0
    for _ in range(MAX_HALVINGS + 1):
        trial = step.moved(point, length, move, force_step)
        if trial.merit <= (1.0 - 1e-4 * length) * max(recent):
            return trial
        if best is None or trial.merit < best.merit:
            best = trial
        length *= 0.5
    while best is not None and not math.isfinite(best.merit) and length > 1e-6:
        # Inverted elements: shorten until there are none.
        best = step.moved(point, length, move, force_step)
        length *= 0.5
    assert best is not None
    return best


def _newton(step: ContactEquations, point: Iterate, history: list[float], limit: int) -> tuple[Iterate, Status]:
    """Iterate until solved, at round-off, or at the limit."""
    recent = [point.merit]
    for iteration in range(limit + 1):
        if step.solved(point):
            return point, Status.CONVERGED
        if len(recent) > 3 and recent[-1] > 0.7 * recent[-4] and step.at_round_off(point):
            return point, Status.ROUND_OFF
        if iteration == limit:
            break
        if not math.isfinite(point.merit):
            return point, Status.NOT_FINITE
        try:
            move = step.direction(point)
        except SolverError:
            return point, Status.SINGULAR
        point = _search(step, point, *move, recent[-4:])
        recent.append(point.merit)
        history.append(point.merit)
    return point, Status.MAX_ITERATIONS


def solve(step: ContactEquations, guesses: Sequence[FloatArray], force: FloatArray) -> ContactSolution:
    """Solve the step.

    Parameters
    ----------
    guesses : u (n,) each, best first
    force : (m, 3) first guess of the forces [N]

    Returns
    -------
    ContactSolution
        Also when it failed: ``report.status`` says so.
    """
    prescribed = step.system.partition.prescribed
    mu = np.zeros(step.system.n_multipliers)
    history: list[float] = []
    point, status, rounds = None, Status.NOT_FINITE, 0
    for number, guess in enumerate(guesses):
        u = guess.copy()
        u[prescribed] = step.equations.u_prescribed
        start = Iterate(step, u, mu, force if number == 0 else np.zeros_like(force))
        if not math.isfinite(start.merit):
            continue
        history.append(start.merit)
        point, status = _newton(step, start, history, step.options.max_iterations)
        if status.success or step.held is not None:
            break
        point, status, done = _rescue(step, start, history)
        rounds += done
        if status.success:
            break
    if point is None:
        point = Iterate(step, guesses[0].copy(), mu, force)
    return _solution(step, point, status, rounds, history)


def _rescue(step: ContactEquations, start: Iterate, history: list[float]) -> tuple[Iterate, Status, int]:
    """Alternate rounds of projections with a few iterations of Newton."""
    point, ended, status, rounds = start, start, Status.MAX_ITERATIONS, 0
    while rounds < step.options.projections and not status.success:
        rounds += 1
        try:
            move, force_step = step.project(point)
        except SolverError:
            return ended, Status.SINGULAR, rounds
        trial, length = step.moved(point, 1.0, move, force_step), 0.5
        while not math.isfinite(trial.merit) and length > 1e-4:
            trial, length = step.moved(point, length, move, force_step), 0.5 * length
        point = trial
        history.append(point.merit)
        ended, status = _newton(step, point, history, max(4, step.options.max_iterations // 3))
    return ended, status, rounds


def _solution(
    step: ContactEquations, point: Iterate, status: Status, rounds: int, history: list[float]
) -> ContactSolution:
    # The balance takes what the forces move into their cones: less than the tolerance.
    if status.success and step.held is None:
        branch = point.branch
        force = law.feasible(point.contacts, branch)
        point = Iterate(step, point.u, point.mu, force)
        point.branch = branch
    free = np.abs(point.r[step.free])
    worst = int(step.free[np.argmax(np.where(np.isfinite(free), free, np.inf))]) if free.size else 0
    report = NewtonReport(
        status,
        max(0, len(history) - 1),
        step.factorizations,
        step.balance_norm(point),
        step.tolerance(point) if math.isfinite(point.merit) else step.options.newton.atol,
        worst,
        rounds,
        tuple(history),
    )
    decisions = point.smooth.decisions
    return ContactSolution(point.u, point.kin, point.mu, decisions, point.force, point.branch, report)
