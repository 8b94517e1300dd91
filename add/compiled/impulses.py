"""Steps of contact in velocities in one call: the normal path of `add.hard_contact.impulse_part`, without impacts.

Only what most steps are is here: nothing near may bounce, Newton converges, and the cone problem of each iteration is
solved, with every contact well within its mode. Whatever asks for more is left to Python, which begins the step anew.
"""

from functools import cache

import numpy as np
from numba import typeof

from add.compiled.impulse_near import (
    SUDDEN,
    Possible,
    Rules,
    add_missed,
    arrives,
    call_cones,
    call_in_reach,
    choose,
    counts,
    last_of,
    measure,
    new_seen,
    push_rates,
    rows_of,
)
from add.compiled.linear import solve_all
from add.compiled.newton import (
    AT_ROUND_OFF,
    CONVERGED,
    GIVEN_UP,
    Criteria,
    Formula,
    Step,
    evaluate,
    free_norm,
    new_iterate,
    new_room,
    take_trial,
    tolerated,
)
from add.compiled.routines import NONE, call_jacobian, factor
from add.compiled.structure import layout_of, links_of, tree_of
from add.compiled.tree_equations import new_lifted, parts_of
from add.compiled.walk import no_choices, with_rows
from add.cones.solver import CERTIFIED, MOST_ITERATIONS, WEAK
from add.kernels.arena import Instant, Signals, empty_arena
from add.kernels.borrowed import borrowed, put, uncounted
from add.kernels.caching import CALLED, is_kept, njit
from add.kernels.cone_modes import margins
from add.kernels.cones import CONE
from add.kernels.contact_arrays import Motion, Packed
from add.kernels.rotation import beyond_pi, change_chart
from add.kernels.tree_map import fill_places
from add.kernels.trees import fill_motion

#: What redundant normals may disagree about: an edge that rests and one that bounces turn a face in different ways.
AGREE = 1e-5
#: The same of all contacts that stick, where nothing else is left: the rows of a tilted rod that comes to lie flat and
#: sticks with both ends would stretch it, by its tilt times the speed with which they close.
LEFT_OVER = 3e-3
#: Residual, as a share of the largest force family, that no iteration need improve.
ROUND_OFF = 1e4 * float(np.finfo(float).eps)
#: Shares of a Newton step that are tried.
LENGTHS = (1.0, 0.5, 0.25, 0.0625)


@njit(**CALLED)
def _left(r, free, J, force, order, rest):
    """Return the norm of r - J^T F over the free coordinates; ``rest`` (n,) is scratch."""
    put(r, rest)
    for i in range(force.size):
        if force[i] != 0.0:
            for j in range(rest.size):
                rest[j] -= J[i, j] * force[i]
    return free_norm(rest, free, order)


@njit(**CALLED)
def _solve(arrays, routines, step, rows, last, rooms, merits):
    """Iterate from the u of a point; fill ``merits`` with those of all iterates.

    Returns how it ended, iterations done, the size of the forces at the first guess, whether the last iterate is in the
    second point, the choices there, and forces, velocities, modes, margins, and how well the cones are met.
    """
    (J, shift, blocks), (modes, force), (point, trial, room, none) = rows, last, rooms
    criteria, free, c, m = step.criteria, point.free, step.formula.c, shift.size
    n, n_free, norm = point.u.size, free.size, criteria.norm
    right, columns, G, offset = np.empty((m + 1, n_free)), np.empty((m + 1, n_free)), np.empty((m, m)), np.empty(m)
    rest, scaled, swapped, unsaid, natural = np.empty(n), np.empty((2, m)), False, np.zeros(0), 0.0
    _, chosen, scale = evaluate(arrays, routines, step, none, True, point)
    new_force, nothing = np.zeros(m), np.zeros(n)
    merit = _left(point.r, free, J, new_force, norm, rest)
    tolerance, merits[0] = tolerated(criteria, scale), merit
    for i in range(m):
        for k in range(n_free):
            right[i, k] = J[i, free[k]]
    for iteration in range(criteria.max_iterations):
        at = Instant(step.formula.t, point.q, point.v, point.a, step.theta, step.signals)
        call_jacobian(routines.jacobian, (arrays, at, point.lifted, chosen, 1.0, c, c * c, room.data))
        largest = factor(arrays, routines, free, n, room.linear, room.data)
        if largest < 0.0:
            break
        for k in range(n_free):
            right[m, k] = -point.r[free[k]]
        if not solve_all(room.linear, largest, right, columns, routines.blas):
            break
        put(columns[m], room.step)
        if m:
            for i in range(m):
                offset[i] = shift[i]
                for j in range(n):
                    offset[i] += J[i, j] * (c * point.u[j])
                for k in range(n_free):
                    offset[i] += right[i, k] * (c * columns[m, k])
                for j in range(m):
                    total = 0.0
                    for k in range(n_free):
                        total += right[i, k] * columns[j, k]
                    G[i, j] = c * total
            convex = blocks.kind[0] != CONE
            answer = call_cones((G, offset, blocks, AGREE, LEFT_OVER, convex, MOST_ITERATIONS, force, modes))
            new_force, velocity, modes, natural, scales, size = (
                answer[0], answer[1], answer[2], answer[3], answer[6], answer[7],
            )  # fmt: skip
            if not natural <= CERTIFIED or size == 0.0:
                break
            force = new_force
            largest_u = 0.0
            for i in range(m):
                apart = velocity[i] - offset[i]
                for j in range(m):
                    apart -= G[i, j] * new_force[j]
                natural = max(natural, abs(apart * scales[i]) / size)
                largest_u = max(largest_u, abs(offset[i] * scales[i]))
                scaled[0, i], scaled[1, i] = new_force[i] / scales[i], velocity[i] * scales[i]
            unsaid = margins(blocks, modes, scaled[0], scaled[1], largest_u)
            for i in range(m):
                for k in range(n_free):
                    room.step[k] += new_force[i] * columns[i, k]
        best, at_length, value, choices = np.inf, 1.0, np.inf, chosen
        for length in LENGTHS:
            take_trial(trial, point, room.step, length, free)
            _, choices, _ = evaluate(arrays, routines, step, none, False, trial)
            value = _left(trial.r, free, J, new_force, norm, rest)
            if value < best:
                best, at_length = value, length
            if value <= max(0.9 * merit, tolerance) or iteration == 0:
                break
        if not np.isfinite(best):
            break
        if value > best:
            take_trial(trial, point, room.step, at_length, free)
            _, choices, _ = evaluate(arrays, routines, step, none, False, trial)
        point, trial, swapped, chosen = trial, point, not swapped, choices
        previous, merit = merit, best
        merits[iteration + 1] = merit
        result = iteration + 1, scale, swapped, chosen, new_force, modes, unsaid, natural
        if merit <= tolerance:
            return CONVERGED, *result
        if iteration > 1 and merit >= 0.5 * previous:
            # Contacts may bear more than all that presses on them: an impact within a step.
            borne = _left(nothing, free, J, new_force, norm, rest)
            if merit <= ROUND_OFF * max(scale, borne):
                return AT_ROUND_OFF, *result
    return GIVEN_UP, 0, scale, swapped, chosen, new_force, modes, unsaid, natural


@njit(**CALLED)
def _take(arrays, routines, step, contact, begin, rooms, seen, merits):
    """Do what `take_impulses` does, with room for it.

    Returns how it ended, iterations, the size of the forces at the first guess, the coordinate with the largest
    residual, whether the solution is in the second point, choices, modes, and the numbers that the step keeps.
    """
    arrays, step, (possible, rules), begin, seen = uncounted((arrays, step, contact, begin, seen))
    (point, trial, room, none, begun), ((t, q, v), driven, kept), theta = rooms, begin, step.theta
    prescribed, trees, dt = layout_of(arrays).prescribed, links_of(arrays).sizes.size > 0, step.formula.dt
    same = links_of(arrays).sizes[1] if trees else q.size
    P, x, w = np.zeros((6 * possible.links.size, q.size - same)), q, v
    ahead = np.empty(same + P.shape[0])
    if trees:
        x, w, motion, own = np.empty(ahead.size), np.empty(ahead.size), parts_of(arrays, begun).motion, (q.size - same,)
        rates = borrowed(v, same, own)
        fill_motion(tree_of(arrays), theta, borrowed(q, same, own), rates, np.zeros(own), motion)
        put(q[:same], x)
        fill_places(tree_of(arrays), motion, possible.links, x[same:], P)
        push_rates(P, v, w)
    for i in range(seen.stops.size):
        seen.stops[i] = possible.sign[i] * (q[possible.dof[i]] - theta[possible.limit[i]])
    pairs, touching = (possible.packed, possible.number), rules.touching
    # A solution by which something is more than twice as fast begins anew.
    reached = call_in_reach((Motion(t, x, w, theta), *pairs, dt, 2.0, rules.resting, touching))
    measure(possible, reached, t, x, w, theta, seen)
    choose(possible, rules, dt, seen, v, theta)
    ended = GIVEN_UP, 0, 0.0, 0, False, none, np.zeros(0, dtype=np.int64), np.zeros(0)
    while True:
        J, shift, blocks, slopes = rows_of(possible, rules, (t, dt, q.size, x, w, theta), seen, P)
        for i in range(q.size):
            point.u[i] = v[i] / step.formula.c
        for i in range(prescribed.size):
            point.u[prescribed[i]] = driven[i]
        begun_with = last_of(kept, seen.near, seen.gap.size)
        status, iterations, scale, swapped, chosen, force, modes, unsaid, natural = _solve(
            arrays, routines, step, (J, shift, blocks), begun_with, (point, trial, room, none), merits
        )
        for far in unsaid:
            if not far >= WEAK:
                return ended
        if status == GIVEN_UP:
            return ended
        rates = trial.v if swapped else point.v
        for i in range(same, q.size):
            if max(abs(rates[i]), abs(rates[i] - v[i]) / SUDDEN) * dt > rules.turn:
                return ended
        push_rates(P, rates, ahead)
        later, others = call_in_reach((Motion(t, x, ahead, theta), *pairs, dt, 1.0, 0.0, touching)), 0
        for i in later:
            if not seen.gap[i] < np.inf:
                return ended
            if not seen.near[i]:
                later[others] = i
                others += 1
        for i in reached:
            seen.speed[i] = 0.0
        measure(possible, later[:others], t, x, ahead, theta, seen)
        if add_missed(possible, rules, dt, seen, rates):
            continue
        if arrives(rules, dt, seen):
            return ended
        memory, first, last = np.empty(2 * slopes.size + force.size + 1), slopes.size, slopes.size + force.size
        put(slopes, memory)
        put(force, memory[first:])
        put(unsaid, memory[last:])
        memory[memory.size - 1] = natural
        rest, worst = np.empty(q.size), point.free[0]
        _left(trial.r if swapped else point.r, point.free, J, force, 1, rest)
        for i in point.free:
            worst = i if abs(rest[i]) > abs(rest[worst]) else worst
        return status, iterations, scale, worst, swapped, chosen, modes, memory


@njit(**CALLED)
def _room(store, used, more):
    """Return a store with room for more numbers behind those that are used."""
    if used + more <= store.size:
        return store
    wider = np.empty(2 * (used + more), dtype=store.dtype)
    put(store[:used], wider)
    return wider


@njit(cache=True, error_model="numpy", nogil=True)
def take_impulses(arrays, routines, method, contact, begun, driven, theta):
    """Take steps of contact in velocities, or a part of one, until one is left to Python.

    ``method``: a formula with dt and c of all of them, criteria, and what decides nothing; ``contact``: what is
    possible, and rules. ``begun``: q and v (n,), pairs and stops that were near in the step before, their modes and
    forces, and whether there was one. ``driven``: times (k + 1,) from that of q on, prescribed coordinates (k, n_p),
    and the signals, with one axis more. They end, too, with one from which all may fly freely.

    Returns how many were found, the fields of their `Steps`, and what they hand on: what is near and its modes, then
    slopes, forces and margins of these and how well the cones are met, of all steps one behind the other, and where
    both begin in each (k + 1, 2).
    """
    (formula, criteria, none), possible, (times, targets, signals) = method, contact[0], driven
    (begin_q, begin_v), kept, (n_steps, n_driven), n = begun[0], begun[1], targets.shape, begun[0][0].size
    m, s, rotations, prescribed = (
        possible.number.size, possible.dof.size, layout_of(arrays).rotations, layout_of(arrays).prescribed,
    )  # fmt: skip
    q, v, a = np.empty((n_steps, n)), np.empty((n_steps, n)), np.empty((n_steps, n))
    states_q, states_v = np.empty((n_steps, n)), np.empty((n_steps, n))
    turned, counted = np.zeros((n_steps, rotations.size), dtype=np.bool_), np.zeros((n_steps, 5), dtype=np.int64)
    tolerance, merits = np.empty(n_steps), np.zeros((n_steps, criteria.max_iterations + 1))
    ends, rows = np.zeros((n_steps, none.ends.size), dtype=np.int64), np.empty((4 * n_steps, 3), dtype=np.int64)
    marks, memory = np.empty(64, dtype=np.int64), np.empty(128)
    limits, old_q, old_v = np.zeros((n_steps + 1, 2), dtype=np.int64), np.empty((1, n)), np.empty((1, n))
    put(begin_q, old_q[0])
    put(begin_v, old_v[0])
    point, trial, moves, done = new_iterate(arrays), new_iterate(arrays), np.empty(n_driven), 0
    rooms = point, trial, new_room(arrays), none, new_lifted(arrays)
    for k in range(n_steps):
        stars, seen = np.empty((2, n)), new_seen(possible)
        put(old_q[0], stars[0])
        put(old_v[0], stars[1])
        for i in range(n_driven):
            moves[i] = targets[k, i] - stars[0, prescribed[i]]
        now = Formula(times[k + 1], formula.dt, formula.c, 1.0, 0.0), Signals(signals.weights[k], signals.table[k])
        step = Step(now[0], criteria, stars, now[1], theta, False, 0, 0, 0)
        begin = (times[k], stars[0], stars[1]), moves, kept
        status, iterations, scale, worst, swapped, chosen, modes, numbers = _take(
            arrays, routines, step, contact, begin, rooms, seen, merits[k]
        )
        if status == GIVEN_UP:
            break
        end = trial if swapped else point
        put(end.q, q[k])
        put(end.v, v[k])
        put(end.a, a[k])
        put(end.q, old_q[0])
        put(end.v, old_v[0])
        put(beyond_pi(q[k], rotations), turned[k])
        for i in range(rotations.size):
            if turned[k, i]:
                change_chart(rotations[i], old_q, old_v)
        put(old_q[0], states_q[k])
        put(old_v[0], states_v[k])
        counted[k, 0], counted[k, 1], counted[k, 2], counted[k, 3] = status, iterations, iterations, worst
        tolerance[k], first = tolerated(criteria, scale), 0 if k == 0 else ends[k - 1, ends.shape[1] - 1]
        rows = with_rows(rows, first, chosen.rows)
        for i in range(ends.shape[1]):
            ends[k, i] = first + chosen.ends[i]
        (mark, number), (near, beside) = limits[k], counts(seen.near, m)
        marks, memory = _room(marks, mark, 2 * (near + beside)), _room(memory, number, numbers.size)
        pairs, stops = np.empty(near, dtype=np.int64), np.empty(beside, dtype=np.int64)
        count = 0
        for i in range(m + s):
            if seen.near[i]:
                marks[mark + count] = i
                if i < m:
                    pairs[count] = i
                else:
                    stops[count - near] = i - m
                count += 1
        put(modes, marks[mark + count :])
        put(numbers, memory[number:])
        limits[k + 1, 0], limits[k + 1, 1] = mark + 2 * count, number + numbers.size
        kept = pairs, stops, modes, numbers[count : 2 * near + 2 * count].copy(), True
        done += 1
        if count == 0 and s == 0 and possible.links.size == 0:
            break  # it may fly on
    last = ends[done - 1, ends.shape[1] - 1] if done else 0
    return (
        done, q, v, a, states_q, states_v, turned, counted, tolerance, merits, rows[:last].copy(), ends[:done].copy(),
        marks[: limits[done, 0]].copy(), memory[: limits[done, 1]].copy(), limits,
    )  # fmt: skip


@cache
def at_hand() -> bool:
    """Return whether `add warm` has kept the steps."""
    return is_kept(take_impulses, tuple(map(typeof, arguments())))


def arguments() -> tuple[object, ...]:
    """Return arguments of the types of `take_impulses`."""
    one, two, marks = np.zeros(0), np.zeros((0, 0)), np.zeros(0, dtype=np.int64)
    packed = Packed(marks, one, np.zeros((0, 4), dtype=np.int64))
    possible = Possible(
        packed, marks, np.zeros(0, dtype=bool), marks, marks, np.zeros((0, 3)), marks, marks, one, marks
    )
    method = Formula(*[0.0] * 5), Criteria(0.0, 0.0, 0.0, 2, 1), no_choices(0)
    begun, signals = ((one, one), (marks, marks, marks, one, False)), Signals(two, np.zeros((0, 0, 3), dtype=np.int64))
    return (
        empty_arena(), NONE, method, (possible, Rules(*[0.0] * 6)), begun,
        (one, two, signals), one,
    )  # fmt: skip
