"""One step of a system: Newton's method as in `add.solve.newton`, without a return to Python.

Only the normal path is here: the first guess, undamped iterations, the line search. Whatever asks for more is left to
the terms and their fallbacks, which begin the step anew.
"""

from typing import NamedTuple

import numpy as np

from add.compiled.linear import Linear, new_linear
from add.compiled.routines import add_product, call_jacobian, call_residual, factor, solve
from add.compiled.structure import layout_of, sparse_of
from add.compiled.tree_equations import new_lifted
from add.kernels.arena import Instant, Signals
from add.kernels.borrowed import put
from add.kernels.caching import CALLED, njit
from add.kernels.contact_pairs import ACTIVE, BITS, SLIP
from add.linalg.blas import of_two
from add.typing import FloatArray, IntArray

#: Line search: halvings of a step, and the share of the predicted decrease that is asked for.
MAX_HALVINGS, SUFFICIENT_DECREASE = 14, 1e-4
#: A step of which no more than this share may be tried is blocked by surfaces in its way.
BLOCKED = 1e-9
#: After how many halvings without decrease the natural monotonicity test is asked.
NATURAL_AFTER = 2
#: How often a guess is shortened where prescribed coordinates move, which go all their way whatever the others do.
MOST_SHORTENED = 8
#: |r| within this many units of round-off of the largest force family cannot be improved.
ROUND_OFF = 64.0
EPS = float(np.finfo(float).eps)

#: Share of the largest force family below which a residual is small enough to judge what is to be held.
LOOSE_SHARE = 1e-4

#: In place of a scale, of a step that ends without a solution: nothing is left of it; something may rest at its first
#: guess, and is to be held from there on; something is to be held, as the last iterate shows.
NOTHING_LEFT, RESTING, HOLDING = -1.0, -2.0, -3.0

#: How an iteration ended.
CONVERGED, AT_ROUND_OFF, GIVEN_UP = range(3)


class Formula(NamedTuple):
    """The step: time t [s] and step dt [s], c = 1/(beta dt), the history coefficients."""

    t: float
    dt: float
    c: float
    alpha_0: float
    alpha_1: float


class Criteria(NamedTuple):
    """When to stop; see `add.solve.step_equations.NewtonOptions`."""

    atol: float
    rtol: float
    reuse: float
    norm: int
    max_iterations: int


class Step(NamedTuple):
    """The arguments of one step.

    Formula and criteria, q_star and v_star (2, n), signals, theta; whether it is replayed; a bit for each decision of
    which equations that are not here would hold what touches and does not slip; how many of the last coordinates are
    multipliers, and how many of these hold what sticks. Where there are, ``stars[1, n]`` is how much their rows weigh
    in the merit, see `add.solve.newton.Solve.row_norm`.
    """

    formula: Formula
    criteria: Criteria
    stars: FloatArray
    signals: Signals
    theta: FloatArray
    replay: bool
    holds: int
    multipliers: int
    held: int


class Iterate(NamedTuple):
    """Room for an iterate."""

    u: FloatArray
    q: FloatArray
    v: FloatArray
    a: FloatArray
    r: FloatArray
    lifted: FloatArray
    free: IntArray


@njit(**CALLED)
def new_iterate(arrays):
    """Return room for an iterate."""
    layout = layout_of(arrays)
    n = layout.size[0]
    return Iterate(np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), new_lifted(arrays), layout.free)


@njit(**CALLED)
def free_norm(r, free, order):
    """Return the norm of r over the free coordinates, infinite where it is not finite."""
    total = 0.0
    for i in free:
        total += r[i] * r[i] if order == 2 else abs(r[i])
    total = np.sqrt(total) if order == 2 else total
    return total if np.isfinite(total) else np.inf


@njit(**CALLED)
def merit_of(step, r, free):
    """Return the norm of r over the free coordinates and, by their weight (`Step`), that of the rows of multipliers."""
    order = step.criteria.norm
    if step.multipliers == 0:
        return free_norm(r, free, order)
    n, held, weight = free.size - step.multipliers, free.size - step.held, step.stars[1, r.size]
    merit = free_norm(r, free[:n], order) + weight * free_norm(r, free[n:held], order)
    return merit + weight / step.formula.c * free_norm(r, free[held:], order) if step.held else merit


@njit(**CALLED)
def weight_of_rows(arrays, data, n):
    """Return the mean size of the first ``n`` free diagonal entries of a matrix [N/m], one where it is not finite."""
    layout, sparse, total = layout_of(arrays), sparse_of(arrays), 0.0
    for k in range(n):
        i = layout.free[k]
        total += abs(data[sparse.place[sparse.diagonal[k]]] if sparse.sizes.size else data[i * layout.size[0] + i])
    return total / n if n and np.isfinite(total) else 1.0


@njit(**CALLED)
def evaluate(arrays, routines, step, given, measured, point):
    """Fill an iterate at its u; return its merit, its choices, and the norm of the largest force family."""
    u, q, v, a, r, lifted, free = point
    formula, norm, q_star, v_star = step.formula, step.criteria.norm, step.stars[0], step.stars[1]
    for i in range(u.size):
        v[i] = formula.c * u[i]
        a[i] = formula.c * (v[i] - v_star[i])
        q[i] = q_star[i] + u[i]
    at = Instant(formula.t, q, v, a, step.theta, step.signals)
    order = norm if measured else 0
    chosen, scale = call_residual(routines.residual, (arrays, at, lifted, step.replay, given, order, r))
    return merit_of(step, r, free), chosen, scale


@njit(**CALLED)
def _weighted_size(arrays, routines, data, free, x, order, n):
    """Return the norm of |A| |x| over the free coordinates, of x (n_all,) without multipliers: the first ``n``."""
    out, sizes = np.zeros(x.size), np.zeros(x.size)
    for k in range(n):
        sizes[free[k]] = abs(x[free[k]])
    add_product(arrays, routines, data, sizes, False, out)
    return free_norm(out, free, order)


@njit(**CALLED)
def _at_round_off(arrays, routines, at, chosen, point, step, merit, scale, data):
    """Whether the residual is as small as rounding allows; overwrites ``data``."""
    free, u, c, order = point.free, point.u, step.formula.c, step.criteria.norm
    n = free.size - step.multipliers
    call_jacobian(routines.jacobian, (arrays, at, point.lifted, chosen, 1.0, c, c * c, data))
    scale += _weighted_size(arrays, routines, data, free, u, order, n)
    call_jacobian(routines.jacobian, (arrays, at, point.lifted, chosen, 1.0, 0.0, 0.0, data))
    scale += _weighted_size(arrays, routines, data, free, at.q, order, n)
    # Not where the matrix had no places for all that acts.
    return np.isfinite(scale) and merit <= ROUND_OFF * EPS * scale


@njit(**CALLED)
def free_share(routines, q0, q1):
    """Return the share of the way from q0 to q1 (n,) that is free; NaN where Python could not say."""
    share = np.full(1, np.nan)
    of_two(routines.limit, (q0, 0, q1, 0, share, 0))
    return share[0]


@njit(**CALLED)
def take_trial(trial, point, step, length, free):
    """Fill u of a trial at a length along a step."""
    put(point.u, trial.u)
    for k in range(free.size):
        trial.u[free[k]] += length * step[k]


class Room(NamedTuple):
    """Room for a step: values of the matrix, its free block and factors, directions, residuals of rejected trials."""

    data: FloatArray
    linear: Linear
    step: FloatArray
    rest: FloatArray
    b: FloatArray
    residuals: FloatArray
    lengths: FloatArray
    merits: FloatArray


@njit(**CALLED)
def new_room(arrays):
    """Return room for the steps of a system."""
    layout = layout_of(arrays)
    n, n_free = layout.size[0], layout.free.size
    return Room(
        np.empty(layout.size[1]), new_linear(arrays), np.empty(n_free), np.empty(n_free), np.empty(n_free),
        np.empty((NATURAL_AFTER + 1, n)), np.empty(NATURAL_AFTER + 1), np.empty(NATURAL_AFTER + 1),
    )  # fmt: skip


@njit(**CALLED)
def _natural(arrays, room, largest, size, free, routines):
    """Return the first of the trials that passes the natural monotonicity test, -1 for none, -2 if a solve is noise."""
    x = np.empty(free.size)
    for k in range(room.lengths.size):
        if not np.isfinite(room.merits[k]):
            continue
        for i in range(free.size):
            room.b[i] = -room.residuals[k, free[i]]
        if not solve(arrays, routines, room.linear, largest, False, room.b, x, room.rest):
            return -2
        total = 0.0
        for i in range(free.size):
            total += x[i] * x[i]
        if np.sqrt(total) <= (1.0 - 0.25 * room.lengths[k]) * size:
            return k
    return -1


@njit(**CALLED)
def _search(arrays, routines, step, given, point, trial, merit, room, largest):
    """Look for the next iterate along room.step; return whether it was found, its merit and its choices."""
    free, way, size, length = point.free, room.step, 0.0, 1.0
    for k in range(free.size):
        size += way[k] * way[k]
    size = np.sqrt(size)
    if routines.limit and not step.replay:
        put(point.q, trial.q)
        for k in range(free.size):
            trial.q[free[k]] += way[k]
        length = free_share(routines, point.q, trial.q)
    for halving in range(MAX_HALVINGS):
        if not length > BLOCKED:
            break
        take_trial(trial, point, way, length, free)
        value, choices, _ = evaluate(arrays, routines, step, given, False, trial)
        if value <= (1.0 - SUFFICIENT_DECREASE * length) * merit:
            return True, value, choices
        if halving <= NATURAL_AFTER:
            room.residuals[halving], room.lengths[halving], room.merits[halving] = trial.r, length, value
        if halving == NATURAL_AFTER:
            natural = _natural(arrays, room, largest, size, free, routines)
            if natural == -2:
                return False, merit, given
            if natural >= 0:
                take_trial(trial, point, way, room.lengths[natural], free)
                value, choices, _ = evaluate(arrays, routines, step, given, False, trial)
                return True, value, choices
        length *= 0.5
    return False, merit, given


class Begun(NamedTuple):
    """A step that goes on with more places in its matrix than it began with: the iterations done so far.

    Attributes
    ----------
    iterations, factorizations : int
    scale : float
        Of the first guess [N]; for a step that begins `FIRST`, or `MOVES` where it is known that nothing rests.
    merits : (iterations,) of the iterates before the one that it goes on from [N]
    """

    iterations: int
    factorizations: int
    scale: float
    merits: FloatArray


FIRST, MOVES = -1.0, -2.0
#: Of a step that begins.
FRESH, MOVING = Begun(0, 0, FIRST, np.zeros(0)), Begun(0, 0, MOVES, np.zeros(0))


@njit(**CALLED)
def to_hold(chosen, deciding):
    """Return how many pairs equations would hold, those that do not slip under hybrid friction, and how many touch.

    ``deciding`` has a bit for each of the decisions that say so.
    """
    held, touching = 0, 0
    for number in range(chosen.ends.size - 1):
        if (deciding >> number) & 1:
            for k in range(chosen.ends[number], chosen.ends[number + 1]):
                bits = chosen.rows[k, BITS]
                if bits & ACTIVE != 0:
                    touching += 1
                    held += bits & SLIP == 0
    return held, touching


@njit(**CALLED)
def may_rest(arrays, chosen, deciding):
    """Whether what touches at a first guess may rest: some of it, or all where matrices are sparse, of the terms."""
    held, touching = to_hold(chosen, deciding)
    return held > 0 and (held == touching or sparse_of(arrays).sizes.size == 0)


@njit(**CALLED)
def tolerated(criteria, scale):
    """Return the tolerance of a step [N] from the size of its forces at the first guess."""
    return criteria.atol + criteria.rtol * scale


@njit(**CALLED)
def solve_step(arrays, routines, step, given, begun, point, trial, room, merits):
    """Iterate from the u of ``point``; fill ``merits`` with those of all iterates. See `Begun`.

    ``given`` are the choices of a step that is replayed, or what sticks all through the step.
    Returns how it ended, iterations and factorisations done, the size of the forces at the first guess that the
    tolerance follows, `RESTING` or `HOLDING`, whether the last iterate is in ``trial`` in place of
    ``point``, and the choices made there.
    """
    formula, criteria = step.formula, step.criteria
    free, c = point.free, formula.c
    n_free, swapped, filled = free.size, False, step.multipliers > 0
    merit, chosen, scale = evaluate(arrays, routines, step, given, True, point)
    iterations, factorizations, largest, reuse = begun.iterations, begun.factorizations, 0.0, False
    if begun.scale >= 0.0:
        scale = begun.scale
    put(begun.merits, merits[:iterations])
    merits[iterations] = merit
    if not np.isfinite(merit):
        return GIVEN_UP, iterations, factorizations, scale, swapped, chosen
    if step.holds and begun.scale == FIRST and may_rest(arrays, chosen, step.holds):
        return GIVEN_UP, iterations, factorizations, RESTING, swapped, chosen
    if filled:
        at = Instant(formula.t, point.q, point.v, point.a, step.theta, step.signals)
        call_jacobian(routines.jacobian, (arrays, at, point.lifted, chosen, 1.0, c, c * c, room.data))
        step.stars[1, point.u.size] = weight_of_rows(arrays, room.data, n_free - step.multipliers)
        merit = merits[iterations] = merit_of(step, point.r, free)
    tolerance = tolerated(criteria, scale)
    for iteration in range(iterations, criteria.max_iterations + 1):
        if step.holds and merit <= max(tolerance, LOOSE_SHARE * scale) and to_hold(chosen, step.holds)[0] > 0:
            return GIVEN_UP, iterations, factorizations, HOLDING, swapped, chosen
        if merit <= tolerance:
            return CONVERGED, iterations, factorizations, scale, swapped, chosen
        at = Instant(formula.t, point.q, point.v, point.a, step.theta, step.signals)
        stalled = iterations > 2 and merits[iterations] > 0.7 * merits[iterations - 3]
        if stalled and _at_round_off(arrays, routines, at, chosen, point, step, merit, scale, room.data):
            return AT_ROUND_OFF, iterations, factorizations, scale, swapped, chosen
        if iteration == criteria.max_iterations:
            break
        if not reuse:
            if not filled:
                call_jacobian(routines.jacobian, (arrays, at, point.lifted, chosen, 1.0, c, c * c, room.data))
            filled = False
            largest = factor(arrays, routines, free, point.u.size, room.linear, room.data)
            if largest < 0.0:
                break
            factorizations += 1
        for k in range(n_free):
            room.b[k] = -point.r[free[k]]
        if not solve(arrays, routines, room.linear, largest, False, room.b, room.step, room.rest):
            break
        lower, following, choices = _search(arrays, routines, step, given, point, trial, merit, room, largest)
        if reuse and (not lower or following > 0.5 * merit):
            reuse = False
            continue
        if not lower:
            if _at_round_off(arrays, routines, at, chosen, point, step, merit, scale, room.data):
                return AT_ROUND_OFF, iterations, factorizations, scale, swapped, chosen
            break
        reuse = following < criteria.reuse * merit
        point, trial, swapped = trial, point, not swapped
        merit, chosen = following, choices
        iterations += 1
        merits[iterations] = merit
    return GIVEN_UP, iterations, factorizations, scale, swapped, chosen
