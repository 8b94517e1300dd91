"""Steps of a system, one behind the other, and the way back through them, each in one compiled call."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple, final

import numpy as np

from add.compiled.holding import call_bears, call_rests
from add.compiled.linear import Linear, new_linear
from add.compiled.newton import (
    GIVEN_UP,
    HOLDING,
    MOST_SHORTENED,
    NOTHING_LEFT,
    Formula,
    Step,
    evaluate,
    free_share,
    may_rest,
    new_iterate,
    new_room,
    solve_step,
    to_hold,
    tolerated,
)
from add.compiled.pack import PackedSystem
from add.compiled.routines import add_product, call_matrices, call_parameters, call_residual, factor, solve
from add.compiled.structure import CHUNK, layout_of, links_of, move_parameters, move_prescribed, pull_charts
from add.compiled.tree_equations import new_lifted
from add.compiled.walk import choices_of, unrated, with_rows
from add.equations.kinematics import Carry
from add.equations.term import AllCandidates, Decisions
from add.kernels.arena import Instant, Signals
from add.kernels.borrowed import put, uncounted
from add.kernels.caching import CALLED, njit
from add.kernels.rotation import beyond_pi, change_chart
from add.typing import BoolArray, FloatArray, IntArray


class Timing(NamedTuple):
    """The formula of all steps of a run.

    Attributes
    ----------
    dt : float
        [s].
    first : number of the state before the first of the steps
    c, alpha_0, alpha_1 : of the step that follows state number 0, then of all others, (2,) each
    """

    dt: float
    first: int
    c: FloatArray
    alpha_0: FloatArray
    alpha_1: FloatArray


class Steps(NamedTuple):
    """Consecutive steps, k of them.

    Attributes
    ----------
    q, v, a : (k, n) solutions, before any change of chart
    states_q, states_v : (k, n) the newest pair of each state, after it
    turned : (k, n_rotations) bool, the rotation vectors that change chart after each step
    counts : (k, 5) int64: how it ended, iterations, factorisations, worst coordinate, -
    tolerance : (k,) [N]
    merits : (k, max_iterations + 1) those of all iterates [N]
    rows : (m, 3) decisions of all steps, one behind the other
    ends : (k, n_deciding + 1) where those of each family begin in a step, and their end
    """

    q: FloatArray
    v: FloatArray
    a: FloatArray
    states_q: FloatArray
    states_v: FloatArray
    turned: BoolArray
    counts: IntArray
    tolerance: FloatArray
    merits: FloatArray
    rows: IntArray
    ends: IntArray


class Tableau(NamedTuple):
    """Coefficients of an explicit method of s stages: a (s, s), below the diagonal, b (s,), c (s,)."""

    a: FloatArray
    b: FloatArray
    c: FloatArray


class Stages(NamedTuple):
    """Stages of consecutive explicit steps: q, v and a (k, 3, s, n)."""

    tableau: Tableau
    values: FloatArray


@final
@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive steps that were found, and the newest pair (q, v) of the state before them.

    Attributes
    ----------
    system, timing, steps
    n : number of steps
    q, v : (n_coordinates,)
    candidates : of the deciding terms, of a system whose pattern changes: what its one step has places for
    mu : (n, m) multipliers
    stages : of explicit steps
    carry : k -> what a step hands on beside coordinates and velocities; none of most
    """

    system: PackedSystem
    timing: Timing
    steps: Steps
    n: int
    q: FloatArray
    v: FloatArray
    candidates: AllCandidates = ()
    mu: FloatArray = field(default_factory=lambda: np.zeros((CHUNK, 0)))
    stages: Stages | None = None
    carry: Callable[[int], Carry] | None = None

    def decisions(self, k: int) -> Decisions:
        """Return the decisions of the deciding terms in step ``k`` of the block, in the order of the terms."""
        rows, ends = self.steps.rows, self.steps.ends[k].tolist()
        return tuple([rows[first:last] for first, last in pairwise(ends)])


@njit(**CALLED)
def _formula(timing, k):
    """Return the formula of step k of the block."""
    step = timing.first + k
    row = 0 if step == 0 else 1
    # Not t + dt: a million additions drift.
    return Formula((step + 1) * timing.dt, timing.dt, timing.c[row], timing.alpha_0[row], timing.alpha_1[row])


@njit(**CALLED)
def _reach(routines, layout, origin, q_star, point):
    """Shorten u of a first guess to what is free of the way from ``origin``, as `StepEquations.reached`.

    Returns whether there is such a way: given motions go all of theirs.
    """
    u, moves = point.u, False
    for i in layout.prescribed:
        moves |= u[i] != origin[i] - q_star[i]
    for shortened in range(MOST_SHORTENED + 1):
        for i in range(u.size):
            point.q[i] = q_star[i] + u[i]
        share = free_share(routines, origin, point.q)
        if not 0.0 <= share < 1.0:
            return share >= 1.0
        length = share if shortened < MOST_SHORTENED - 1 else 0.0
        for i in layout.free:
            begin = origin[i] - q_star[i]
            u[i] = begin + length * (u[i] - begin)
        if not moves:
            return True
    return False


@njit(**CALLED)
def _take(arrays, routines, timing, criteria, driven, replay, given, rooms, out):
    """Fill ``out`` with the steps of `take_steps`.

    ``driven`` are ``start``, ``signals`` and ``theta``. Returns how many were found, their decisions, and of the step
    that was not found what `take_steps` does: copies, since all arrays here are views.
    """
    arrays, (start, signals, theta), given, rooms, out = uncounted((arrays, driven, given, rooms, out))
    q, v, a, states_q, states_v, turned, counts, tolerance, merits, ends = out
    point, trial, room, (old_q, old_v, stars) = rooms
    layout, (u_given, kept, begun) = layout_of(arrays), given
    (n_steps, n), multipliers, held = q.shape, layout.size[3], layout.size[4]
    rows, n_rows = np.empty((4 * n_steps, 3), dtype=np.int64), 0
    done, chosen, left = 0, kept, (0, 0, NOTHING_LEFT)
    for k in range(n_steps):
        formula, now = _formula(timing, k), Signals(signals.weights[k], signals.table[k])
        c = formula.c
        for i in range(n):
            stars[0, i] = formula.alpha_0 * old_q[0, i] + formula.alpha_1 * old_q[1, i]
            stars[1, i] = formula.alpha_0 * old_v[0, i] + formula.alpha_1 * old_v[1, i]
            if replay or begun.scale >= 0.0:
                point.u[i] = u_given[i]
            else:
                point.u[i] = stars[1, i] / c + (old_v[0, i] - old_v[1, i]) / formula.dt / (c * c)
        if layout.prescribed.size:
            at = Instant(formula.t, point.q, point.v, point.a, theta, now)
            move_prescribed(arrays, at, start, point.q)
            for i in layout.prescribed:
                point.u[i] = point.q[i] - stars[0, i]
        whole = replay or begun.scale >= 0.0
        if routines.limit and not whole and not _reach(routines, layout, old_q[0], stars[0], point):
            break
        holds = 0 if replay or held else layout.size[2]
        step = Step(formula, criteria, stars, now, theta, replay, holds, multipliers, held)
        if held and not replay:
            # As where a run goes on from here: what needs nothing that holds is found without.
            if k and not may_rest(arrays, evaluate(arrays, routines, step, given[1], False, point)[1], layout.size[2]):
                break
            before = Instant(formula.t - formula.dt, old_q[0], old_v[0], point.a, theta, now)
            rests, kept = call_rests((arrays, routines, before, point.lifted, given[1]))
            if not rests:
                break
        status, iterations, factorizations, scale, swapped, chosen = solve_step(
            arrays, routines, step, kept, begun, point, trial, room, merits[k]
        )
        if swapped:
            point, trial = trial, point
        if held and not replay and status != GIVEN_UP:
            at = Instant(formula.t, point.q, point.v, point.a, theta, now)
            if not call_bears((arrays, routines, at, point.lifted, chosen)):
                left = iterations, factorizations, NOTHING_LEFT
                break
        if status != GIVEN_UP and holds and to_hold(chosen, holds)[0] > 0:
            status, scale = GIVEN_UP, HOLDING
        if status == GIVEN_UP:
            left = iterations, factorizations, scale
            break
        put(point.q, q[k])
        put(point.v, v[k])
        put(point.a, a[k])
        tolerance[k] = tolerated(criteria, scale)
        rows = with_rows(rows, n_rows, chosen.rows)
        for i in range(ends.shape[1]):
            ends[k, i] = n_rows + chosen.ends[i]
        n_rows += chosen.rows.shape[0]
        worst, most = 0, -1.0
        for i in layout.free[: layout.free.size - multipliers]:
            if abs(point.r[i]) > most:
                worst, most = i, abs(point.r[i])
        counts[k, 0], counts[k, 1], counts[k, 2], counts[k, 3] = status, iterations, factorizations, worst
        for i in range(n - multipliers):
            old_q[1, i], old_v[1, i] = old_q[0, i], old_v[0, i]
            old_q[0, i], old_v[0, i] = q[k, i], v[k, i]
        put(beyond_pi(q[k], layout.rotations), turned[k])
        for i in range(layout.rotations.size):
            if turned[k, i]:
                change_chart(layout.rotations[i], old_q, old_v)
        put(old_q[0], states_q[k])
        put(old_v[0], states_v[k])
        done += 1
    decided = chosen.rows.copy(), chosen.ends.copy()
    return done, rows[:n_rows].copy(), (point.u.copy(), decided, left[0], left[1], left[2])


@njit(cache=True, error_model="numpy", nogil=True)
def take_steps(arrays, routines, timing, criteria, before, start, signals, theta, replay, given):
    """Take steps from the history ``before``, q and v (2, n), until one is not found by the normal path.

    ``arrays`` is an `Arena`; ``start`` (n_p,) are the prescribed coordinates without their moves; ``signals``
    the `Signals` of every step to take, with one axis more. ``given``: for a ``replay`` of one step, or one that goes
    on, u to begin with (n,), the choices to hold, and what is `Begun` of it.

    Returns how many were found, the fields of their `Steps`, and of the step that was not found the last u, the fields
    of the choices there, iterations, factorisations and scale of `Begun`; a negative scale where there is nothing to go
    on from.
    """
    n, n_rotations = layout_of(arrays).size[0], layout_of(arrays).rotations.size
    n_steps, n_choices = signals.weights.shape[0], given[1].ends.size
    q, v, a = np.empty((n_steps, n)), np.empty((n_steps, n)), np.empty((n_steps, n))
    states_q, states_v = np.empty((n_steps, n)), np.empty((n_steps, n))
    turned, counts = np.zeros((n_steps, n_rotations), dtype=np.bool_), np.zeros((n_steps, 5), dtype=np.int64)
    tolerance, merits = np.empty(n_steps), np.empty((n_steps, criteria.max_iterations + 1))
    ends = np.zeros((n_steps, n_choices), dtype=np.int64)
    history = before[0].copy(), before[1].copy(), np.zeros((2, n + 1))  # no weight of rows yet
    rooms = new_iterate(arrays), new_iterate(arrays), new_room(arrays), history
    out = q, v, a, states_q, states_v, turned, counts, tolerance, merits, ends
    driven = start, signals, theta
    done, rows, left = _take(arrays, routines, timing, criteria, driven, replay, given, rooms, out)
    # No `Steps`, no `Choices`: making one runs Python, and Ctrl-C, which Python hears first of all then, ends it there.
    return (
        done, q, v, a, states_q, states_v, turned, counts, tolerance, merits, rows, ends[:done].copy(), left,
    )  # fmt: skip


@njit(**CALLED)
def _pull_back(arrays, routines, formula, at, chosen, room, q_bar, v_bar, by_position, by_numbers):
    """Replace the cotangents (2, n) of the state after a step by those before it; return whether there are such.

    Behind theta, ``by_numbers`` has room for products (`add.kernels.arena.rates_in`).
    """
    layout, c = layout_of(arrays), formula.c
    free, n, n_free = layout.free, layout.size[0], layout.free.size
    linear, lam_free, rest, b, lam, by_a, by_rates = (
        room.linear, room.lam_free, room.rest, room.b, room.lam, room.by_a, room.by_rates,
    )  # fmt: skip
    data, by_v, by_acceleration = room.parts[0], room.parts[1], room.parts[2]
    if links_of(arrays).sizes.size:
        call_residual(routines.residual, (arrays, at, room.lifted, True, chosen, 0, by_a))
    call_matrices(routines.matrices, (arrays, at, room.lifted, chosen, c, room.over_rows, room.parts))
    largest = factor(arrays, routines, free, n, linear, data)
    if largest < 0.0:
        return False
    for k in range(n_free):
        b[k] = q_bar[0, free[k]] + c * v_bar[0, free[k]]
    if not solve(arrays, routines, linear, largest, True, b, lam_free, rest):
        return False
    lam[:], by_a[:], by_rates[:] = 0.0, 0.0, 0.0
    for k in range(n_free):
        lam[free[k]] = lam_free[k]
    if layout.prescribed.size:
        whole = np.zeros(n)
        add_product(arrays, routines, data, lam, True, whole)
        by_now = np.zeros(n)
        for i in layout.prescribed:
            by_now[i] = q_bar[0, i] + c * v_bar[0, i] - whole[i]
            by_position[i] += by_now[i]
        move_parameters(arrays, at, by_now, by_numbers)
    n_theta = at.theta.size
    if by_numbers.size == n_theta or unrated(arrays):
        add_product(arrays, routines, by_acceleration, lam, True, by_a)
        add_product(arrays, routines, by_v, lam, True, by_rates)
    for i in range(n):
        lam[i] = -lam[i]
    by_numbers[n_theta:] = 0.0
    call_parameters(routines.parameters, (arrays, at, room.lifted, chosen, room.over_rows, lam, by_numbers))
    for i in range((by_numbers.size - n_theta) // 2):
        by_rates[i] -= by_numbers[n_theta + i]
        by_a[i] -= by_numbers[n_theta + n + i]
    for i in range(n):
        by_rates[i] += c * by_a[i] - v_bar[0, i]
        q_bar[0, i] = q_bar[1, i] + c * formula.alpha_0 * by_rates[i]
        q_bar[1, i] = c * formula.alpha_1 * by_rates[i]
        v_bar[0, i] = v_bar[1, i] + c * formula.alpha_0 * by_a[i]
        v_bar[1, i] = c * formula.alpha_1 * by_a[i]
    return True


class BackRoom(NamedTuple):
    """Room for the way back through a step."""

    linear: Linear
    lam_free: FloatArray
    rest: FloatArray
    b: FloatArray
    lam: FloatArray
    by_a: FloatArray
    by_rates: FloatArray
    lifted: FloatArray
    parts: FloatArray
    over_rows: FloatArray


@njit(**CALLED)
def _pull_all(arrays, routines, timing, steps, before, signals, theta, cotangents, room, pairs):
    """Do what `pull_back_steps` does, with ``pairs`` of cotangents of one state and those that are scratch."""
    arrays, steps, before, signals, theta, room = uncounted((arrays, steps, before, signals, theta, room))
    ((q_bars, v_bars), by_position, theta_bar), ((bar_q, bar_v), pairs) = uncounted((cotangents, pairs))
    layout = layout_of(arrays)
    for left in range(signals.weights.shape[0], 0, -1):
        k = left - 1
        formula, now = _formula(timing, k), Signals(signals.weights[k], signals.table[k])
        put(q_bars[left], bar_q)
        put(v_bars[left], bar_v)
        pull_charts(layout.rotations, steps, k, before, pairs, (bar_q, bar_v))
        chosen = choices_of(steps, k)
        at = Instant(formula.t, steps.q[k], steps.v[k], steps.a[k], theta, now)
        if not _pull_back(arrays, routines, formula, at, chosen, room, bar_q, bar_v, by_position, theta_bar):
            return left
        for j in range(2):
            for i in range(bar_q.shape[1]):
                q_bars[k, j, i] += bar_q[j, i]
                v_bars[k, j, i] += bar_v[j, i]
    return 0


@njit(cache=True, error_model="numpy", nogil=True)
def pull_back_steps(arrays, routines, timing, steps, before, signals, theta, bars, by_position, theta_bar):
    """Pull cotangents back through the first of consecutive steps, as many as ``signals`` has, the last first.

    ``bars``, of q and of v (k + 1, 2, n), are the cotangents of the state before the steps and of the state after each,
    of its two pairs; row 0 ends as the whole cotangent of the state before the first step, whose newest pair (q, v)
    ``before`` is.

    Returns the number of steps left, zero unless a matrix could not be solved with. ``by_position`` (n,) takes the
    cotangents of prescribed coordinates, ``theta_bar`` all but the share of where these begin.
    """
    layout = layout_of(arrays)
    n, n_free = layout.size[0], layout.free.size
    lifted = new_lifted(arrays)
    sizes = links_of(arrays).sizes
    rows = sizes[0] if sizes.size else 0
    room = BackRoom(
        new_linear(arrays), np.empty(n_free), np.empty(n_free), np.empty(n_free),
        np.empty(n), np.empty(n), np.empty(n), lifted, np.empty((3, layout.size[1])), np.empty((3, rows * rows)),
    )  # fmt: skip
    pairs = (np.empty((2, n)), np.empty((2, n))), (np.empty((2, n)), np.empty((2, n)))
    by_numbers = np.empty(theta.size + (0 if sizes.size else 2 * n))
    put(theta_bar, by_numbers)
    cotangents = bars, by_position, by_numbers
    left = _pull_all(arrays, routines, timing, steps, before, signals, theta, cotangents, room, pairs)
    put(by_numbers[: theta.size], theta_bar)
    return left
