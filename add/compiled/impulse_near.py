"""Near pairs and stops of a step of contact in velocities, decided in compiled steps, and their rows.

The equations are those of `add.hard_contact.impact_times.NearSearch` and `add.hard_contact.impulse_rows`, but for
impacts with a restitution.
"""

from typing import NamedTuple

import numpy as np
from numba import typeof, types

from add.kernels.borrowed import put
from add.kernels.by_address import when_called
from add.kernels.caching import CALLED, njit
from add.kernels.cone_solve import ARGUMENTS, solve_unscaled
from add.kernels.cones import CONE, HALF_LINE, Blocks
from add.kernels.contact_arrays import Motion, Packed
from add.kernels.contact_rows import in_reach, touch_rows, touches
from add.typing import BoolArray, FloatArray, IntArray

#: What would be passed through by this share of the gap up to which a pair touches counts from the beginning.
MISSED = 1e-6
#: Share of the turn beyond which Python looks at the energy that an impact may change a turn by.
SUDDEN = 0.2


class Possible(NamedTuple):
    """Pairs that may touch in a system, m of them, and s sides of stops.

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
    """Numbers by which a step decides what is near; see `add.hard_contact.impact_times.NearSearch`.

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


class Seen(NamedTuple):
    """Room for m pairs and s stops at the beginning of a step.

    Attributes
    ----------
    gap, speed : (m,) of pairs in reach, and with which it opens [m], [m/s]; others have an infinite one
    normal, arms : (m, 3), (m, 2, 3)
    stops : (s,) how far coordinates may still go [m], [rad]
    near : (m + s,) what counts
    bounces : (m + s,) what is left out, as it would bounce if it arrived
    """

    gap: FloatArray
    speed: FloatArray
    normal: FloatArray
    arms: FloatArray
    stops: FloatArray
    near: BoolArray
    bounces: BoolArray


@njit(**CALLED)
def new_seen(possible):
    """Return room for what is seen of pairs and stops."""
    m, s = possible.number.size, possible.dof.size
    return Seen(
        np.full(m, np.inf), np.zeros(m), np.empty((m, 3)), np.empty((m, 2, 3)), np.empty(s),
        np.zeros(m + s, dtype=np.bool_), np.zeros(m + s, dtype=np.bool_),
    )  # fmt: skip


_ROWS, _NUMBERS = types.float64[::1], types.int64[::1]
_THREES, _MATRIX, _CUBES = types.float64[:, ::1], types.float64[:, ::1], types.float64[:, :, ::1]
_MOTION = typeof(Motion(0.0, np.zeros(0), np.zeros(0), np.zeros(0)))
_PACKED = typeof(Packed(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros((0, 4), dtype=np.int64)))
_PAIRS = _MOTION, _PACKED, _NUMBERS
call_touches = when_called(
    touches, (*_PAIRS, types.boolean, types.Tuple((_ROWS, _THREES, _THREES, _THREES, _CUBES))), types.none  # type: ignore[attr-defined]
)  # fmt: skip
_OF_ROWS = types.Tuple((_CUBES, types.int64[:, ::1], _CUBES, _CUBES, _MATRIX))  # type: ignore[attr-defined]
call_in_reach = when_called(in_reach, (*_PAIRS, *[types.float64] * 4), _NUMBERS)
call_touch_rows = when_called(touch_rows, (*_PAIRS, _THREES, _CUBES, _OF_ROWS), types.none)
call_cones = when_called(
    solve_unscaled, ARGUMENTS,
    types.Tuple((_ROWS, _ROWS, _NUMBERS, types.float64, types.int64, types.int64, _ROWS, types.float64)),  # type: ignore[attr-defined]
)  # fmt: skip


@njit(**CALLED)
def measure(possible, reached, t, x, w, theta, seen):
    """Fill gaps, normals, arms and speeds of pairs in reach at places x with velocities w of their rows."""
    m = reached.size
    gap, normal, arms, number = np.empty(m), np.empty((m, 3)), np.empty((m, 2, 3)), np.empty(m, dtype=np.int64)
    velocity, place = np.empty((m, 3)), np.empty((m, 3))
    for k in range(m):
        number[k] = possible.number[reached[k]]
    out = gap, normal, velocity, place, arms
    call_touches((Motion(t, x, w, theta), possible.packed, number, True, out))
    for k in range(m):
        i = reached[k]
        seen.gap[i], seen.speed[i] = gap[k], 0.0
        put(arms[k], seen.arms[i])
        for r in range(3):
            seen.normal[i, r] = normal[k, r]
            seen.speed[i] += normal[k, r] * velocity[k, r]


@njit(**CALLED)
def _slope(gap, dt, rules):
    """Return how the speed with which a gap has to open follows from it [1/s]."""
    slope = 1.0 / dt if gap > rules.above else rules.share
    return 0.0 if -slope * gap > rules.speed else slope


@njit(**CALLED)
def _number_at(theta, index):
    return theta[index] if index >= 0 else 0.0


@njit(**CALLED)
def counts(near, m):
    """Return how many pairs, which come first, and how many stops are near."""
    k, s = 0, 0
    for i in range(near.size):
        k += i < m and near[i]
        s += i >= m and near[i]
    return k, s


@njit(**CALLED)
def rows_of(possible, rules, given, seen, P):
    """Return J (n_rows, n), velocities without any (n_rows,), cones and slopes (k + s,) of what is near."""
    (t, dt, n, x, w, theta), (gap, _, normal, arms, stops, near, _) = given, seen
    m, (k, s) = gap.size, counts(near, gap.size)
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
    axes, dofs, push = np.zeros((k, 3, 3)), np.empty((k, 12), dtype=np.int64), np.zeros((k, 12, 3))
    over_rows = np.zeros((3 * k, x.size))
    for i in range(k):
        for j in range(12):
            dofs[i, j] = -1
    out = axes, dofs, push, np.zeros((k, 3, 12)), over_rows
    call_touch_rows((Motion(t, x, w, theta), possible.packed, number, normals, levers, out))
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
def push_rates(P, rates, out):
    """Fill ``out`` with P times what is given of the coordinates."""
    same = rates.size - P.shape[1]
    put(rates[:same], out)
    for i in range(P.shape[0]):
        out[same + i] = 0.0
        for k in range(P.shape[1]):
            out[same + i] += P[i, k] * rates[same + k]


@njit(**CALLED)
def choose(possible, rules, dt, seen, v, theta):
    """Fill what is near before the step, and which pairs, left out, would bounce if they arrived."""
    gap, speed, _, _, stops, near, bounces = seen
    m = gap.size
    for i in range(m):
        fast = speed[i] < -rules.resting
        bounces[i] = possible.movable[i] and fast and _number_at(theta, possible.restitution[i]) > 0.0
        # With what gravity may add: of points on one plane round-off must not choose some.
        closing = min(speed[i] - rules.resting, 0.0)
        near[i] = possible.movable[i] and not bounces[i] and gap[i] + dt * closing <= rules.touching
    for i in range(stops.size):
        closing = min(possible.sign[i] * v[possible.dof[i]], 0.0)
        near[m + i] = possible.movable[m + i] and stops[i] + dt * closing <= rules.touching


@njit(**CALLED)
def arrives(rules, dt, seen):
    """Whether a pair that would bounce arrives with these speeds at the end of the step."""
    for i in range(seen.gap.size):
        if seen.bounces[i] and (seen.gap[i] <= rules.touching or seen.gap[i] + dt * seen.speed[i] < 0.0):
            return True
    return False


@njit(**CALLED)
def add_missed(possible, rules, dt, seen, v):
    """Add what a solution with velocities v would pass through; return whether there was anything."""
    gap, speed, _, _, stops, near, bounces = seen
    some, m = False, gap.size
    for i in range(m + stops.size):
        if possible.movable[i] and not near[i] and not bounces[i]:
            if i < m:
                end = gap[i] + dt * speed[i]
            else:
                end = stops[i - m] + dt * possible.sign[i - m] * v[possible.dof[i - m]]
            near[i] = end < -MISSED * rules.touching
            some |= near[i]
    return some


@njit(**CALLED)
def last_of(kept, near, m):
    """Return modes and forces of the step before, of what is near: separate what was not; none where none are kept."""
    (pairs, stops, modes, force, any_step), (k, s) = kept, counts(near, m)
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
