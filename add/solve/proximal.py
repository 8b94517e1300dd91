"""Proximal steps for a step of time that Newton's method does not solve.

Where a corner meets a floor at speed, or a stiff body turns far within one step, |r| has minima at kinks and at the
sides of curved valleys that are no solutions, and every line search on |r| ends in one. The flow

    M du/ds = -r(u)

does not see |r|. With M the mass it goes down the incremental potential of which r is the gradient (but for friction
and gyroscopic forces), and comes to rest at the solutions of the step, whatever kinks it meets: kinks of the force are
none of the potential. It is followed by implicit Euler steps of growing length: proximal steps

    r(u) + pull c^2 M (u - u_k) = 0        ->  u_{k+1},

solved roughly, the pull falling while they succeed (Rockafellar 1976; pseudo-transient continuation, Kelley and Keyes
1998). At last Newton solves the step's own equations, which are the same as ever, to the same tolerance.

Within a proximal step Newton's directions s are searched by Matthies and Strang (1979): the power s . r of the residual
says whether the potential still falls, without any potential. A force that jumps has no such flow: a box that lies deep
within another one is pushed out of another face a little further on, and the step may have no solution at all.
"""

from dataclasses import replace

import numpy as np

from add.compiled.newton import BLOCKED
from add.solve.newton import Point, Solve
from add.solve.step_equations import NewtonResult, Status
from add.typing import FloatArray

#: The first pull, the least one, and the largest one, beyond which nothing moves.
FIRST_PULL, LEAST_PULL, LARGEST_PULL = 1.0, 1e-8, 1e8

#: A proximal step is solved until its residual is this share of that at its beginning; more brings nothing.
ROUGHLY = 0.5

#: Iterations of Newton's method within one proximal step, and in all of them as a multiple of those of an attempt.
MOST_INNER, MOST_ITERATIONS = 15, 30

#: Below this pull the step's own equations are tried after every proximal step.
TRY_BELOW = 1e-3
MOST_FINAL = 12

#: The search ends where |s . r| is at most this share of its value at the beginning.
POWER_SHARE = 0.8
MAX_SEARCH = 20


def flow(work: Solve, first: Point, attempt: int, share: float, most: int = MOST_ITERATIONS) -> NewtonResult:
    """Return the solution of a step of time at which the flow from ``first`` ends; ``share`` as in `Solve.iterate`.

    ``most`` bounds the iterations, as a multiple of those of an attempt.
    """
    history: list[float] = [first.merit]
    if not np.isfinite(first.merit):
        return work.result(first, Status.NOT_FINITE, work.options.atol, attempt, history)
    point, pull = first, FIRST_PULL
    tolerance = work.tolerance(point)
    while len(history) <= most * work.options.max_iterations and pull <= LARGEST_PULL:
        following, spent = _proximal_step(work, point, pull, max(tolerance, ROUGHLY * point.merit))
        history += spent
        if following is None:
            if work.at_round_off(point):
                return work.result(point, Status.ROUND_OFF, tolerance, attempt, history)
            pull *= 4.0
            continue
        point = Point(work, following.u, following.mu)
        if pull <= TRY_BELOW or point.merit <= tolerance:
            result = work.iterate(point, 0.0, attempt, share, min(MOST_FINAL, work.options.max_iterations))
            history += result.report.history[1:]
            if result.report.status.success:
                report = replace(result.report, iterations=len(history) - 1, history=tuple(history))
                return replace(result, report=report)
        pull = max(pull * _change(len(spent)), LEAST_PULL)
    return work.result(point, Status.NO_DECREASE, tolerance, attempt, history)


def _change(iterations: int) -> float:
    """Return the factor of the pull after a proximal step that took so many iterations."""
    if iterations <= 2:
        return 0.1
    if iterations <= MOST_INNER // 3:
        return 0.3
    return 0.8 if iterations <= MOST_INNER // 2 else 1.5


def _proximal_step(work: Solve, point: Point, pull: float, tolerance: float) -> tuple[Point | None, list[float]]:
    """Return the solution of a proximal step, None if it is not found, and the merits of its iterates."""
    equations = replace(work.equations, pull=pull, anchor=point.u)
    step = Solve(work.assembler, equations, work.theta, work.options, None, work.candidates, work.origin)
    at = Point(step, point.u, point.mu)
    merits: list[float] = []
    while at.merit > tolerance and len(merits) < min(MOST_INNER, work.options.max_iterations):
        move = step.direction(at, 0.0)
        following = _search(step, at, *move, tolerance) if move is not None else None
        if following is None:
            merits.append(at.merit)
            break
        at = following
        merits.append(at.merit)
    work.factorizations += step.factorizations
    return (at if at.merit <= tolerance else None), merits


def _search(work: Solve, point: Point, step: FloatArray, mu_step: FloatArray, tolerance: float) -> Point | None:
    """Return the iterate along a step where the power s . r has all but vanished; None if it does not fall at first."""
    free = work.free
    power = float(step @ point.r[free])
    # Rows of constraints are mended by the whole step; what it does to the forces is seen in the next iteration.
    mending = work.row_norm(point) > tolerance
    if power >= 0.0 and not mending:
        return None
    length, low, high = work.length(point, step), (0.0, power), np.inf
    if length <= BLOCKED:
        return None
    for _ in range(MAX_SEARCH):
        u = point.u.copy()
        u[free] += length * step
        trial = Point(work, u, point.mu + length * mu_step)
        if not np.isfinite(trial.merit):
            high, length = length, low[0] + 0.25 * (length - low[0])
            continue
        there = float(step @ trial.r[free])
        if mending or abs(there) <= POWER_SHARE * abs(power) or (there < 0.0 and high == np.inf):
            return trial
        if there < 0.0:
            low = (length, there)
            length = 0.5 * (low[0] + high)
        else:
            high = length
            share = min(max(low[1] / (low[1] - there), 0.1), 0.9)
            length = low[0] + share * (high - low[0])
    return None
