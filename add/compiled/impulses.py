"""A step of contact in velocities in one call: the normal path of `add.hard_contact.impulse_part`, without impacts.

Only what most steps are is here: nothing near may bounce, Newton converges, and the cone problem of each iteration is
solved, with every contact well within its mode. Whatever asks for more is left to Python, which begins the step anew.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from numba import typeof, types

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
from add.compiled.walk import no_choices
from add.cones.solver import CERTIFIED, MOST_ITERATIONS, WEAK
from add.kernels.arena import Instant, empty_arena, empty_instant
from add.kernels.borrowed import borrowed, put, uncounted
from add.kernels.by_address import Callee, address, by_address
from add.kernels.caching import CALLED, is_kept, njit
from add.kernels.cone_modes import margins
from add.kernels.cone_shares import max_norm
from add.kernels.cone_solve import ARGUMENTS, FINISH, POLISH, solve_unscaled
from add.kernels.cones import CONE, HALF_LINE, Blocks
from add.kernels.contact_arrays import Motion, Packed
from add.kernels.contact_rows import touch_rows, touches
from add.kernels.tree_map import fill_places
from add.kernels.trees import fill_motion
from add.typing import BoolArray, FloatArray, IntArray

#: What redundant normals may disagree about: an edge that rests and one that bounces turn a face in different ways.
AGREE = 1e-5
#: The same of all contacts that stick, where nothing else is left: the rows of a tilted rod that comes to lie flat and
#: sticks with both ends would stretch it, by its tilt times the speed with which they close.
LEFT_OVER = 3e-3
#: Residual, as a share of the largest force family, that no iteration need improve.
ROUND_OFF = 1e4 * float(np.finfo(float).eps)
#: Shares of a Newton step that are tried.
LENGTHS = (1.0, 0.5, 0.25, 0.0625)
#: What would be passed through by this share of the gap up to which a pair touches counts from the beginning.
MISSED = 1e-6


class Possible(NamedTuple):
    """What may touch what in a system, m pairs and s sides of stops.

    Attributes
    ----------
    packed, number : geometry of the pairs, and their numbers (m,) there
    movable : (m + s,) whether it can get out of the way
    restitution, friction : (m,) indices in theta; -1 is zero
    velocity : (m, 3) given ones of shapes of the world [m/s]
    dof, limit, sign : (s,) of the stops: coordinates, indices in theta, and 1 of a lower limit, -1 of an upper one
    links : (n_l,) elements of the trees that carry what touches: rows of X behind those that are coordinates
    """

    packed: Packed
    number: IntArray
    movable: BoolArray
    restitution: IntArray
    friction: IntArray
    velocity: FloatArray
    dof: IntArray
    limit: IntArray
    sign: FloatArray
    links: IntArray


class Rules(NamedTuple):
    """What is decided from the state before a step; see `add.hard_contact.impact_times.NearSearch`.

    Attributes
    ----------
    touching : gap up to which a pair counts [m]
    above : gap from which on it may close and no more [m]
    share : of a penetration that is taken back, over the step of the run [1/s]
    speed : the most with which that is done [m/s]
    resting : of an approach at rest [m/s]
    turn : of a joint in a step, beyond which Python looks at the energy [rad]
    """

    touching: float
    above: float
    share: float
    speed: float
    resting: float
    turn: float


_ROWS, _NUMBERS = types.float64[::1], types.int64[::1]
_THREES, _MATRIX, _CUBES = types.float64[:, ::1], types.float64[:, ::1], types.float64[:, :, ::1]
_MOTION = typeof(Motion(0.0, np.zeros(0), np.zeros(0), np.zeros(0)))
_PACKED = typeof(Packed(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros((0, 4), dtype=np.int64)))
_PAIRS = _MOTION, _PACKED, _NUMBERS
TOUCHES = Callee(touches, (*_PAIRS, types.Tuple((_ROWS, _THREES, _THREES, _THREES, _CUBES))), types.none)  # type: ignore[attr-defined]
_OF_ROWS = types.Tuple((_CUBES, types.int64[:, ::1], _CUBES, _CUBES, _MATRIX))  # type: ignore[attr-defined]
TOUCH_ROWS = Callee(touch_rows, (*_PAIRS, _THREES, _CUBES, _OF_ROWS), types.none)
CONES = Callee(
    solve_unscaled, ARGUMENTS,
    types.Tuple((_ROWS, _ROWS, _NUMBERS, types.float64, types.int64, types.int64, _ROWS, types.float64)),  # type: ignore[attr-defined]
)  # fmt: skip
_touches = by_address("gaps and velocities of pairs", lambda: TOUCHES)
_touch_rows = by_address("rows of pairs", lambda: TOUCH_ROWS)
_cones = by_address("problems over cones", lambda: CONES)


class Calls(NamedTuple):
    """Addresses of `TOUCHES`, `TOUCH_ROWS` and `CONES`, and of Newton's iterations on modes, which that one takes."""

    touches: int
    rows: int
    cones: int
    newton: tuple[int, int]


@njit(**CALLED)
def _gaps(calls, possible, t, x, w, theta, arms, out):
    """Fill gaps and normals of all pairs, and the velocities along these; return (m,) and (m, 3) arrays of them."""
    m = possible.number.size
    gap, normal, velocity, place = np.empty(m), np.empty((m, 3)), np.empty((m, 3)), np.empty((m, 3))
    _touches(calls.touches, (Motion(t, x, w, theta), possible.packed, possible.number,
                             (gap, normal, velocity, place, arms)))  # fmt: skip
    for i in range(m):
        out[i] = normal[i, 0] * velocity[i, 0] + normal[i, 1] * velocity[i, 1] + normal[i, 2] * velocity[i, 2]
    return gap, normal


@njit(**CALLED)
def _slope(gap, dt, rules):
    """Return how the speed with which a gap has to open follows from it [1/s]."""
    slope = 1.0 / dt if gap > rules.above else rules.share
    return 0.0 if -slope * gap > rules.speed else slope


@njit(**CALLED)
def _number_at(theta, index):
    return theta[index] if index >= 0 else 0.0


@njit(**CALLED)
def _counts(near, m):
    """Return how many pairs, which come first, and how many stops are near."""
    k, s = 0, 0
    for i in range(near.size):
        k += i < m and near[i]
        s += i >= m and near[i]
    return k, s


@njit(**CALLED)
def _rows(calls, possible, rules, given, near, geometry, P):
    """Return J (n_rows, n), velocities without any (n_rows,), cones and slopes (k + s,) of what is near."""
    (t, dt, n, x, w, theta), (gap, normal, arms, stops) = given, geometry
    m, (k, s) = gap.size, _counts(near, gap.size)
    number, normals, levers = np.empty(k, dtype=np.int64), np.empty((k, 3)), np.empty((k, 2, 3))
    slopes, bound = np.empty(k + s), np.zeros(k + s)
    kind, first = np.empty(k + s, dtype=np.int64), np.empty(k + s, dtype=np.int64)
    shift, J, count = np.zeros(3 * k + s), np.zeros((3 * k + s, n)), 0
    for i in range(m):
        if near[i]:
            number[count] = possible.number[i]
            put(arms[i], levers[count])
            for r in range(3):
                normals[count, r] = normal[i, r]
            slopes[count], kind[count], first[count] = _slope(gap[i], dt, rules), CONE, 3 * count
            bound[count] = _number_at(theta, possible.friction[i])
            shift[3 * count + 2] = slopes[count] * gap[i]
            if slopes[count] == 0.0 and gap[i] < 0.0:
                shift[3 * count + 2] = -rules.speed
            count += 1
    axes, dofs, push = np.zeros((k, 3, 3)), np.full((k, 12), -1), np.zeros((k, 12, 3))
    over_rows = np.zeros((3 * k, x.size))
    out = axes, dofs, push, np.zeros((k, 3, 12)), over_rows
    _touch_rows(calls.rows, (Motion(t, x, w, theta), possible.packed, number, normals, levers, out))
    count = 0
    for i in range(m):
        if near[i]:
            for a in range(3):
                for r in range(3):
                    shift[3 * count + a] -= possible.velocity[i, r] * axes[count, r, a]
            count += 1
    same = n - P.shape[1]
    for i in range(3 * k):
        put(over_rows[i, :same], J[i])
        for l in range(P.shape[0]):
            if over_rows[i, same + l] != 0.0:
                for j in range(n - same):
                    J[i, same + j] += over_rows[i, same + l] * P[l, j]
    for i in range(stops.size):
        if near[m + i]:
            row = 2 * k + count
            slopes[count], kind[count], first[count] = _slope(stops[i], dt, rules), HALF_LINE, row
            J[row, possible.dof[i]] = possible.sign[i]
            shift[row] = slopes[count] * stops[i]
            if slopes[count] == 0.0 and stops[i] < 0.0:
                shift[row] = -rules.speed
            count += 1
    return J, shift, Blocks(kind, first, bound), slopes


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
def _solve(arrays, routines, calls, step, rows, last, rooms, merits):
    """Iterate from the u of a point; fill ``merits`` with those of all iterates.

    Returns how it ended, iterations done, the size of the forces at the first guess, whether the last iterate is in the
    second point, the choices there, and forces, velocities, modes, margins, and how well the cones are met.
    """
    (J, shift, blocks), (modes, force), (point, trial, room, none) = rows, last, rooms
    criteria, free, c, m = step.criteria, point.free, step.formula.c, shift.size
    n, n_free, norm = point.u.size, free.size, criteria.norm
    right, columns, G, offset = np.empty((m + 1, n_free)), np.empty((m + 1, n_free)), np.empty((m, m)), np.empty(m)
    rest, swapped, unsaid, natural = np.empty(n), False, np.ones(blocks.kind.size), 0.0
    _, chosen, scale = evaluate(arrays, routines, step, none, True, point)
    new_force = np.zeros(m)
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
            answer = _cones(
                calls.cones,
                (calls.newton, G, offset, blocks, AGREE, LEFT_OVER, convex, MOST_ITERATIONS, force, modes),
            )
            new_force, velocity, modes, natural, scales, size = (
                answer[0], answer[1], answer[2], answer[3], answer[6], answer[7],
            )  # fmt: skip
            if not natural <= CERTIFIED:
                break
            force = new_force
            unsaid = margins(blocks, modes, new_force / scales, velocity * scales, max_norm(offset * scales))
            for i in range(m):
                apart = velocity[i] - offset[i]
                for j in range(m):
                    apart -= G[i, j] * new_force[j]
                natural = max(natural, abs(apart * scales[i]) / size)
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
            put(np.zeros(n), room.residuals[0])
            borne = _left(room.residuals[0], free, J, new_force, norm, rest)
            if merit <= ROUND_OFF * max(scale, borne):
                return AT_ROUND_OFF, *result
    return GIVEN_UP, 0, scale, swapped, chosen, new_force, modes, unsaid, natural


@njit(**CALLED)
def _push(P, rates, out):
    """Fill ``out`` with P times what is given of the coordinates."""
    same = rates.size - P.shape[1]
    put(rates[:same], out)
    for i in range(P.shape[0]):
        out[same + i] = 0.0
        for k in range(P.shape[1]):
            out[same + i] += P[i, k] * rates[same + k]


@njit(**CALLED)
def _first(possible, rules, dt, speed, gap, stops, v, theta, near):
    """Fill what is near before the step; return whether none of it may bounce."""
    m = gap.size
    for i in range(m):
        if possible.movable[i]:
            if speed[i] < -rules.resting and _number_at(theta, possible.restitution[i]) > 0.0:
                return False
            # With what gravity may add: of points on one plane round-off must not choose some.
            near[i] = gap[i] + dt * min(speed[i] - rules.resting, 0.0) <= rules.touching
    for i in range(stops.size):
        closing = min(possible.sign[i] * v[possible.dof[i]], 0.0)
        near[m + i] = possible.movable[m + i] and stops[i] + dt * closing <= rules.touching
    return True


@njit(**CALLED)
def _add_missed(possible, rules, dt, speed, gap, stops, v, near):
    """Add what a solution with velocities v would pass through; return whether there was anything."""
    some, m = False, gap.size
    for i in range(m + stops.size):
        if possible.movable[i] and not near[i]:
            if i < m:
                end = gap[i] + dt * speed[i]
            else:
                end = stops[i - m] + dt * possible.sign[i - m] * v[possible.dof[i - m]]
            near[i] = end < -MISSED * rules.touching
            some |= near[i]
    return some


@njit(**CALLED)
def _last(kept, near, m):
    """Return modes and forces of the step before, of what is near: separate what was not; none where none are kept."""
    (pairs, stops, modes, force, any_step), (k, s) = kept, _counts(near, m)
    begun, forces = np.zeros(k + s if any_step else 0, dtype=np.int64), np.zeros(3 * k + s)
    if modes.size:
        every, all_forces = np.zeros(near.size, dtype=np.int64), np.zeros((near.size, 3))
        for i in range(pairs.size):
            every[pairs[i]] = modes[i]
            put(force[3 * i : 3 * i + 3], all_forces[pairs[i]])
        for i in range(stops.size):
            every[m + stops[i]], all_forces[m + stops[i], 0] = modes[pairs.size + i], force[3 * pairs.size + i]
        count = 0
        for i in range(near.size):
            if near[i]:
                begun[count] = every[i]
                put(all_forces[i, : 3 if i < m else 1], forces[3 * min(count, k) + max(count - k, 0) :])
                count += 1
    return begun, forces


@njit(**CALLED)
def _take(arrays, routines, calls, step, possible, rules, before, driven, kept, rooms, near, merits):
    """Do what `take_impulses` does, with room for it.

    Returns how it ended, iterations, the size of the forces at the first guess, the coordinate with the largest
    residual, whether the solution is in the second point, choices, modes, and the numbers that the step keeps.
    """
    arrays, step, possible, before, kept = uncounted((arrays, step, possible, before, kept))
    (point, trial, room, none, begun), (t, q, v), theta = rooms, before, step.theta
    prescribed, trees = layout_of(arrays).prescribed, links_of(arrays).sizes.size > 0
    m, s, dt = possible.number.size, possible.dof.size, step.formula.dt
    same = links_of(arrays).sizes[1] if trees else q.size
    P, x, w = np.zeros((6 * possible.links.size, q.size - same)), q, v
    ahead = np.empty(same + P.shape[0])
    if trees:
        x, w, motion, own = ahead.copy(), ahead.copy(), parts_of(arrays, begun).motion, (q.size - same,)
        rates = borrowed(v, same, own)
        fill_motion(tree_of(arrays), theta, borrowed(q, same, own), rates, np.zeros(own), motion)
        put(q[:same], x)
        fill_places(tree_of(arrays), motion, possible.links, x[same:], P)
        _push(P, v, w)
    arms, speed, stops = np.empty((m, 2, 3)), np.empty(m), np.empty(s)
    for i in range(s):
        stops[i] = possible.sign[i] * (q[possible.dof[i]] - theta[possible.limit[i]])
    gap, normal = _gaps(calls, possible, t, x, w, theta, arms, speed)
    ended = GIVEN_UP, 0, 0.0, 0, False, none, np.zeros(0, dtype=np.int64), np.zeros(0)
    if not _first(possible, rules, dt, speed, gap, stops, v, theta, near):
        return ended
    while True:
        J, shift, blocks, slopes = _rows(
            calls, possible, rules, (t, dt, q.size, x, w, theta), near, (gap, normal, arms, stops), P
        )
        for i in range(q.size):
            point.u[i] = v[i] / step.formula.c
        for i in range(prescribed.size):
            point.u[prescribed[i]] = driven[i]
        status, iterations, scale, swapped, chosen, force, modes, unsaid, natural = _solve(
            arrays, routines, calls, step, (J, shift, blocks), _last(kept, near, m), (point, trial, room, none), merits
        )
        for far in unsaid:
            if far < WEAK:
                return ended
        if status == GIVEN_UP:
            return ended
        rates = trial.v if swapped else point.v
        for i in range(same, q.size):
            if abs(rates[i]) * dt > rules.turn:
                return ended
        _push(P, rates, ahead)
        _gaps(calls, possible, t, x, ahead, theta, arms, speed)
        if not _add_missed(possible, rules, dt, speed, gap, stops, rates, near):
            memory = np.concatenate((slopes, force, unsaid, np.full(1, natural)))
            rest, worst = np.empty(q.size), point.free[0]
            _left(trial.r if swapped else point.r, point.free, J, force, 1, rest)
            for i in point.free:
                worst = i if abs(rest[i]) > abs(rest[worst]) else worst
            return status, iterations, scale, worst, swapped, chosen, modes, memory


@njit(cache=True, error_model="numpy", nogil=True)
def take_impulses(arrays, routines, calls, step, none, possible, rules, before, driven, kept):
    """Take a step, or a part of one, of contact in velocities.

    ``before`` are time, q and v (n,); ``driven`` (n_p,) the increments of prescribed coordinates; ``kept`` pairs and
    stops that were near in the step before, their modes and forces, and whether there was one; ``none`` what decides
    nothing.

    Returns how it ended, iterations, the size of the forces at the first guess, the coordinate with the largest
    residual, q, v and a, merits of the iterates, decisions and where those of each term begin, the pairs and stops that
    are near, their modes, and, one behind the other, slopes, forces and margins of these, and how well the cones are
    met. What ended in `GIVEN_UP` is Python's.
    """
    m, s = possible.number.size, possible.dof.size
    point, trial = new_iterate(arrays), new_iterate(arrays)
    near, merits = np.zeros(m + s, dtype=np.bool_), np.zeros(step.criteria.max_iterations + 1)
    rooms = point, trial, new_room(arrays), none, new_lifted(arrays)
    status, iterations, scale, worst, swapped, chosen, modes, memory = _take(
        arrays, routines, calls, step, possible, rules, before, driven, kept, rooms, near, merits
    )
    end, (k, beside) = trial if swapped else point, _counts(near, m)
    pairs, stops = np.empty(k, dtype=np.int64), np.empty(beside, dtype=np.int64)
    count = 0
    for i in range(near.size):
        if near[i]:
            if i < m:
                pairs[count] = i
            else:
                stops[count - k] = i - m
            count += 1
    return (
        status, iterations, scale, worst, end.q, end.v, end.a, merits[: iterations + 1], chosen.rows, chosen.ends,
        pairs, stops, modes, memory,
    )  # fmt: skip


@cache
def calls() -> Calls | None:
    """Return the addresses in this process; None where `add warm` has not kept the functions."""
    if not is_kept(take_impulses, tuple(map(typeof, arguments()))):
        return None
    polish = address(POLISH)
    return Calls(address(TOUCHES), address(TOUCH_ROWS), address(CONES), (address(FINISH), polish))


def arguments() -> tuple[object, ...]:
    """Return arguments of the types of `take_impulses`."""
    one, marks, at = np.zeros(0), np.zeros(0, dtype=np.int64), empty_instant()
    step = Step(
        Formula(0.0, 0.0, 0.0, 0.0, 0.0), Criteria(0.0, 0.0, 0.0, 2, 1), np.zeros((2, 0)), at.signals, one, False, False
    )
    packed = Packed(marks, one, np.zeros((0, 4), dtype=np.int64))
    possible = Possible(
        packed, marks, np.zeros(0, dtype=bool), marks, marks, np.zeros((0, 3)), marks, marks, one, marks
    )
    kept = marks, marks, marks, one, False
    return (
        empty_arena(), NONE, Calls(0, 0, 0, (0, 0)), step, no_choices(0), possible, Rules(*[0.0] * 6), (0.0, one, one),
        one, kept,
    )  # fmt: skip
