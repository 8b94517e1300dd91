"""Gaps, velocities and rows of pairs of points and shapes, with all their derivatives, whatever law holds them.

Pairs, their columns and blocks are those of penalty contact (`contact_points.py`, `contact_blocks.py`). Common
arguments, always in this order

    motion   Motion of `contact_arrays.py`
    packed   Packed of `contact_arrays.py`
    number   (m,) int64, point * n_shapes + shape, and what a step decided of rims: `STANDS` or `KEEPS`

Coordinates of a pair are the six of the point's carrier (three of a node), then from the seventh on those of the body
that carries the shape.
"""

import math

import numpy as np

from add.kernels.borrowed import put
from add.kernels.caching import njit
from add.kernels.contact_arrays import OMEGA, PLACE, VELOCITY as SPEED, Motion, unpacked
from add.kernels.contact_blocks import (
    ARM,
    BODY,
    COUNT,
    DEPTH,
    NORMAL,
    OTHER,
    VELOCITY,
    add_turned_rows,
    fill_rows,
    hold,
    lever_columns,
    new_store,
    room_in,
)
from add.kernels.contact_bodies import add_turned, add_wrenches, set_ends
from add.kernels.contact_circles import CROSSES, OPEN, UPRIGHT, WHICH, WHOLE, is_line
from add.kernels.contact_detection import frames_of, gap_of
from add.kernels.contact_lines import AN_EDGE, ENDLESS, crossing_of, nearest
from add.kernels.contact_places import MOVED, ROLLS, is_beside, point_place
from add.kernels.contact_points import centre_columns, coordinate_columns, meet, scratch_in
from add.kernels.shape_codes import BOX
from add.kernels.shape_grid import BODY as OF_RUN, FIRST, STOP, ball_of

_JIT = {"cache": True, "nogil": True, "error_model": "numpy"}

#: Bits of a number: the point does not roll with its rim over the shape, or does so until half as near to upright; its
#: line does not cross the shape, or does so wherever that may be.
STANDS, KEEPS = 1 << 60, 1 << 61
#: The other bits: those of point and shape.
PAIRS = (1 << 60) - 1


@njit(**_JIT, inline="always")
def _split(number, contacts):
    """Return point and shape of a number."""
    pair, n_shapes = number & PAIRS, contacts.kind.size
    return pair // n_shapes, pair % n_shapes


@njit(**_JIT, forceinline=True)
def _met(number, order, motion, contacts, frames, scratch):
    """Evaluate a pair on the feature that is nearest: point, shape, bodies, lever, gap, and whether it is `OPEN`."""
    i, o = _split(number, contacts)
    least = math.inf if number & STANDS else 0.5 * UPRIGHT if number & KEEPS else UPRIGHT
    point_place(i, motion.q, contacts, frames.B, scratch.x, scratch.L)
    feature = nearest(i, o, motion.q, least, contacts, frames, scratch.x, scratch.L, scratch.S)
    met = feature if feature & CROSSES else feature & ~OPEN
    a, lever, _, d, _ = meet(i, o, met, order, motion, contacts, frames, scratch)
    d = -math.inf if number & STANDS and (feature & CROSSES or number & KEEPS) else d
    if feature & CROSSES and contacts.kind[o] != BOX and feature & WHICH == 2 * AN_EDGE:
        d = -ENDLESS  # a rim that was nearest to a core at two places is so at one
    return i, o, a, contacts.hosts[o], lever, -d, feature & OPEN != 0 and number & KEEPS == 0


@njit(**_JIT)
def decide_rims(motion, packed, number):
    """Mark numbers of points of rims and lines, at the start of a step, as `STANDS` or `KEEPS`: no unknown chooses."""
    contacts, (floats, integers) = unpacked(packed.ints, packed.floats, packed.places), new_store()
    frames, scratch = frames_of(0, motion, contacts), scratch_in(floats)
    for k in range(number.size):
        i, o = _split(number[k], contacts)
        if contacts.points[i, 3] >= 0:
            point_place(i, motion.q, contacts, frames.B, scratch.x, scratch.L)
            feature = nearest(i, o, motion.q, UPRIGHT, contacts, frames, scratch.x, scratch.L, scratch.S)
            number[k] |= KEEPS if feature & ROLLS or feature & (CROSSES | OPEN) == CROSSES else STANDS
            if feature & (CROSSES | OPEN) == OPEN:  # its rim crosses as a line
                number[k] |= KEEPS
    hold(floats, integers)


@njit(**_JIT)
def touches(motion, packed, number, lowest, out):
    """Fill gap (m,) [m], normal and relative velocity (m, 3), place where surfaces meet, and arms (m, 2, 3) there.

    With ``lowest`` gaps are infinite of lines that do not cross, and of what is free beside the lowest point of a rim
    that rolls. The velocity of the
    material says of that one alone how its gap changes: beside it material goes down into the face where the rim does
    not.
    """
    contacts = unpacked(packed.ints, packed.floats, packed.places)
    _fill_touches(motion, contacts, number, lowest, out, *new_store())


@njit(**_JIT)
def _fill_touches(motion, contacts, number, lowest, out, floats, integers):
    gap, normal, velocity, place, arms = out
    frames, scratch = frames_of(0, motion, contacts), scratch_in(floats)
    for k in range(number.size):
        _, _, _, _, lever, gap[k], is_open = _met(number[k], 1, motion, contacts, frames, scratch)
        for r in range(3):
            normal[k, r], velocity[k, r] = scratch.S[0, r], scratch.S[1, r]
            place[k, r] = scratch.x[0, r] - lever * scratch.S[0, r]
            arms[k, 0, r], arms[k, 1, r] = scratch.L[3, r], scratch.L[4, r]
        if lowest and (is_open or (gap[k] > 0.0 and is_beside(scratch.L[MOVED], normal[k]))):
            gap[k] = math.inf


@njit(**_JIT)
def in_reach(motion, packed, number, dt, faster, resting, touching):
    """Return which of the pairs (k,) may be as near as ``touching`` [m] within dt: others, at these speeds, are not.

    Points of one body are looked at together, by their ball: its gap, less what the fastest of them could close by its
    speed, ``faster`` times, and ``resting`` [m/s] more.
    """
    contacts = unpacked(packed.ints, packed.floats, packed.places)
    frames, runs, n_shapes = frames_of(0, motion, contacts), contacts.runs, contacts.kind.size
    out, kept, run, last = np.empty(number.size, dtype=np.int64), 0, 0, -1
    centre, S, nothing = np.empty((1, 3)), np.empty((3, 3)), np.zeros(n_shapes, dtype=np.int64)
    clear, found = nothing.copy(), np.empty(2, dtype=np.int64)
    for k in range(number.size):
        i, o = _split(number[k], contacts)
        while not runs[run, FIRST] <= i < runs[run, STOP]:
            run = (run + 1) % runs.shape[0]
        if run != last:
            last = run
            put(nothing, clear)
        if clear[o] == 0:
            clear[o] = 1 if _clear(run, o, motion, contacts, frames, (dt, faster, resting, touching), centre, S) else -1
        if clear[o] < 0 and (not is_line(i, contacts) or crossing_of(i, o, WHOLE, contacts, frames, found) >= 0):
            out[kept] = k
            kept += 1
    return out[:kept].copy()


@njit(**_JIT)
def _clear(run, o, motion, contacts, frames, within, centre, S):
    """Whether no point of a run may come near a shape; see `in_reach`. Nodes go their own ways: that is not known."""
    a, B, shapes, square, spins = contacts.runs[run, OF_RUN], frames.B, frames.shapes, 0.0, 0.0
    if a < 0:
        return False
    radius = ball_of(run, motion.q, contacts, B, centre)
    for r in range(3):
        s, t = (r + 1) % 3, (r + 2) % 3
        speed = B[a, SPEED, r] - shapes.V[o, r]
        speed += B[a, OMEGA, s] * (centre[0, t] - B[a, PLACE, t]) - B[a, OMEGA, t] * (centre[0, s] - B[a, PLACE, s])
        speed -= shapes.W[o, s] * (centre[0, t] - shapes.p[o, t]) - shapes.W[o, t] * (centre[0, s] - shapes.p[o, s])
        square += speed * speed
        spins += abs(B[a, OMEGA, r]) + abs(shapes.W[o, r])
    dt, faster, resting, touching = within
    ahead = dt * (faster * (math.sqrt(square) + spins * radius) + resting)
    return gap_of(o, centre, shapes.kind, shapes.size, shapes.R, shapes.p, S) - radius > touching + ahead


@njit(**_JIT)
def steps_apart(t, dt, states, theta, packed, number, resting, touching):
    """Return how many steps of dt pass before a pair is as near as it could come to touch within one.

    That is a gap that its approach, before the step or behind it, closes up to ``touching`` [m]; before it with
    ``resting`` [m/s] more, which gravity may add. ``states`` are q and v (k, n) before the steps, from t on, and v
    behind them.
    """
    contacts = unpacked(packed.ints, packed.floats, packed.places)
    return _steps_apart(t, dt, states, theta, contacts, number, resting, touching, *new_store())


@njit(**_JIT)
def _steps_apart(t, dt, states, theta, contacts, number, resting, touching, floats, integers):
    scratch, (q, v, after) = scratch_in(floats), states
    for k in range(q.shape[0]):
        for behind in range(2):
            motion = Motion(t + k * dt, q[k], after[k] if behind else v[k], theta)
            frames, more = frames_of(0, motion, contacts), 0.0 if behind else resting
            for i in number:
                _, _, _, _, _, gap, is_open = _met(i, 1, motion, contacts, frames, scratch)
                if is_open:
                    continue
                S = scratch.S
                speed = S[0, 0] * S[1, 0] + S[0, 1] * S[1, 1] + S[0, 2] * S[1, 2]
                if gap + dt * min(speed - more, 0.0) <= touching:
                    return k
    return q.shape[0]


@njit(**_JIT)
def add_touch_forces(motion, packed, number, arms, force, out):
    """Add the generalised forces (n,) of ``force`` (m, 3) on the points and the opposite on the shapes."""
    contacts = unpacked(packed.ints, packed.floats, packed.places)
    frames, L, F = frames_of(0, motion, contacts), np.zeros((5, 3)), np.zeros(6)
    wrench = np.zeros((contacts.bodies.shape[0], 2, 3))
    for k in range(number.size):
        i, o = _split(number[k], contacts)
        for r in range(3):
            L[3, r], L[4, r], F[r] = arms[k, 0, r], arms[k, 1, r], -force[k, r]
        add_wrenches(contacts.points[i, 2], contacts.hosts[o], contacts.points[i, 0], L, F, wrench, out)
    add_turned(wrench, motion.q, contacts.bodies, frames.k, out)


@njit(**_JIT, forceinline=True)
def _fill_push(B, room, push):
    """Fill ``push`` (12, 3): the generalised force per force on the point, in world axes."""
    E, block, ends = room.E, room.block, room.ends
    E[:, :3] = 0.0
    for r in range(3):
        E[r, r] = 1.0
    fill_rows(0, 3, B, ends, room.shares, room.arms, room.F, room.Y, E, block)
    for side in range(2):
        for r in range(OTHER * side, OTHER * side + ends[side, COUNT]):
            for c in range(3):
                push[r, c] = -block[r, c]


#: |n_x| from which the tangents are taken from y. The axis that is furthest from n would not do: of a normal along z,
#: which those of most contacts are, round-off decides between x and y, and forces are kept in these axes.
NEAR_X = 0.77


@njit(**_JIT)
def touch_rows(motion, packed, number, normal, arms, out):
    """Fill the rows of pairs in velocities.

    axes (k, 3, 3) columns t_1, t_2, n; dofs (k, 12) coordinates of carrier and host, -1 for none; push (k, 12, 3)
    generalised force per force, world axes; local (k, 3, 12) rows over the coordinates of the pairs, in their axes;
    matrix (3 k, n) over all. All are zeros when they come, dofs -1.
    """
    _fill_rows(motion, unpacked(packed.ints, packed.floats, packed.places), number, normal, arms, out, *new_store())


@njit(**_JIT)
def _fill_rows(motion, contacts, number, normal, arms, out, floats, integers):
    axes, dofs, push, local, matrix = out
    frames, room = frames_of(2, motion, contacts), room_in(floats, integers)
    L = np.zeros((5, 3))
    for k in range(number.size):
        i, o = _split(number[k], contacts)
        put(arms[k], L[3:])
        set_ends(
            contacts.points[i, 2], contacts.hosts[o], contacts.points[i, 0], contacts.bodies, L, room.ends, room.dofs,
            room.arms,
        )  # fmt: skip
        put(room.dofs[:12], dofs[k])
        fill_axes(normal[k], axes[k])
        _fill_push(frames.B, room, push[k])
        for a in range(3):
            for p in range(12):
                total = 0.0
                for r in range(3):
                    total += axes[k, r, a] * push[k, p, r]
                local[k, a, p] = total
                if dofs[k, p] >= 0:
                    matrix[3 * k + a, dofs[k, p]] += total


@njit(**_JIT)
def fill_axes(n, axes):
    """Write t_1 along n x e, e the world axis x, or y where n is near x; t_2 = n x t_1; n."""
    far = 0 if abs(n[0]) < NEAR_X else 1
    j, l = (far + 1) % 3, (far + 2) % 3
    size = np.sqrt(n[j] * n[j] + n[l] * n[l])
    axes[far, 0], axes[j, 0], axes[l, 0] = 0.0, n[l] / size, -n[j] / size
    for r in range(3):
        a, b = (r + 1) % 3, (r + 2) % 3
        axes[r, 1] = n[a] * axes[b, 0] - n[b] * axes[a, 0]
        axes[r, 2] = n[r]


@njit(**_JIT)
def touch_derivatives(motion, packed, number, centres, c, force, out):
    """Fill derivatives by the p = 12 coordinates of pairs, whose rates move with c, or by p = 6 centres of mass.

    gap (m, p), normal, velocity (m, 3, p); push (m, 12, 3) generalised force per force, not of ``centres``; pushed
    (m, 12, p) the change of the generalised forces at fixed ``force`` (m, 3). ``centres`` chooses. All are zeros when
    they come.
    """
    contacts = unpacked(packed.ints, packed.floats, packed.places)
    _fill_derivatives(motion, contacts, number, centres, c, force, out, *new_store())


@njit(**_JIT)
def _fill_derivatives(motion, contacts, number, centres, c, force, out, floats, integers):
    gap, normal, velocity, push, pushed = out
    frames, scratch, room = frames_of(2, motion, contacts), scratch_in(floats), room_in(floats, integers)
    B, S, F, Y, E, Z, block, ends = frames.B, scratch.S, room.F, room.Y, room.E, room.Z, room.block, room.ends
    for k in range(number.size):
        i, _, a, b, lever, _, _ = _met(number[k], 2, motion, contacts, frames, scratch)
        set_ends(a, b, contacts.points[i, 0], contacts.bodies, scratch.L, ends, room.dofs, room.arms)
        put(force[k], F)
        if centres:
            centre_columns((a, b), (lever, 0.0), B, scratch, Z, Y)
        else:
            Y[ARM : ARM + 6] = 0.0
            coordinate_columns((a, b), lever, 0.0, (1.0, c), B, S, scratch.L, Z, Y)
        wide = 3 if centres else OTHER
        for side in range(2):
            first = wide * side
            stop = first + ((3 if ends[side, BODY] >= 0 else 0) if centres else ends[side, COUNT])
            E[:, first:stop] = 0.0
            for p in range(first, stop):
                lever_columns(p, F, Y, E)
                gap[k, p] = -Y[DEPTH, p]
                for r in range(3):
                    normal[k, r, p], velocity[k, r, p] = Y[NORMAL + r, p], Y[VELOCITY + r, p]
            fill_rows(first, stop, B, ends, room.shares, room.arms, F, Y, E, block)
        if not centres:
            add_turned_rows(1.0, motion.q, room.dofs, frames.k, ends, room.arms, F, Z, room.G, block)
        for side in range(2):
            for r in range(OTHER * side, OTHER * side + ends[side, COUNT]):
                for other in range(2):
                    first = wide * other
                    there = (3 if ends[other, BODY] >= 0 else 0) if centres else ends[other, COUNT]
                    for p in range(first, first + there):
                        pushed[k, r, p] = -block[r, p]
        if not centres:
            _fill_push(B, room, push[k])


@njit(cache=True, error_model="numpy")
def staggered_projections(gap, velocity, by_gap, by_velocity, normal, c_f, sweeps, tolerance, force):
    """Sweep over contacts in turn, normal then tangential, for the linear problem of one iteration of the outer method.

        g_i = gap_i + sum_j by_gap_ij F_j,   v_i = velocity_i + sum_j by_velocity_ij F_j
        F_n <- max(0, F_n - g / w_n),   F_t <- proj(F_t - v_t / w_t; disc of radius c_f F_n)

    w_n, w_t : how much a contact's own force moves it. The forces (m, 3) are read and overwritten.

    Parameters
    ----------
    gap, velocity, normal, c_f : (m,) [m], (m, 3) [m/s], (m, 3), (m,)
    by_gap : (m, m, 3) [m/N]
    by_velocity : (m, 3, m, 3) [m/(s N)]
    sweeps, tolerance : at most so many, until no force changes by more [N]

    Returns
    -------
    int
        Sweeps done.
    """
    m = gap.size
    v, t = np.empty(3), np.empty(3)
    for sweep in range(sweeps):
        change = 0.0
        for i in range(m):
            n = normal[i]
            g = gap[i]
            for j in range(m):
                for c in range(3):
                    g += by_gap[i, j, c] * force[j, c]
            w_n = by_gap[i, i, 0] * n[0] + by_gap[i, i, 1] * n[1] + by_gap[i, i, 2] * n[2]
            f_n = force[i, 0] * n[0] + force[i, 1] * n[1] + force[i, 2] * n[2]
            new = max(0.0, f_n - g / w_n) if w_n > 0.0 else 0.0
            change = max(change, abs(new - f_n))
            for c in range(3):
                force[i, c] += (new - f_n) * n[c]
            w_t = 0.0
            for r in range(3):
                v[r] = velocity[i, r]
                for j in range(m):
                    for c in range(3):
                        v[r] += by_velocity[i, r, j, c] * force[j, c]
                w_t += by_velocity[i, r, i, r]
                for c in range(3):
                    w_t -= n[r] * by_velocity[i, r, i, c] * n[c]
            # The trace over the two tangential directions is at least the larger of the two: steps are never too long.
            v_n = v[0] * n[0] + v[1] * n[1] + v[2] * n[2]
            square = 0.0
            for c in range(3):
                t[c] = force[i, c] - new * n[c] - ((v[c] - v_n * n[c]) / w_t if w_t > 0.0 else 0.0)
                square += t[c] * t[c]
            length, limit = math.sqrt(square), c_f[i] * new
            factor = 1.0 if length <= limit else limit / length
            for c in range(3):
                value = new * n[c] + factor * t[c]
                change = max(change, abs(value - force[i, c]))
                force[i, c] = value
        if change <= tolerance:
            return sweep + 1
    return sweeps
