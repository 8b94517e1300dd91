"""Penalty contact of points on any body with shapes on any body: force, places, energy, all derivatives.

Pairs stand in `contact_points.py`, blocks in `contact_blocks.py`. Common arguments, always in this order

    motion     Motion of `contact_arrays.py`
    contacts   Contacts of `contact_arrays.py`
    law        Law of `contact_pairs.py`
    rows       (k, 3) decision

Arrays should be C-contiguous and writeable. `body_contact_force` gives energies and places, too, on the way.
"""

import math

import numpy as np

from add.kernels.borrowed import borrowed, uncounted
from add.kernels.caching import njit
from add.kernels.contact_arrays import Motion, unpacked, unpacked_law
from add.kernels.contact_blocks import (
    BODY,
    COUNT,
    FIRST as FIRST_POINT,
    N_NUMBERS,
    N_WAYS,
    NODES,
    OTHER,
    SCALE,
    add_turned_rows,
    count,
    count_numbers,
    fill_rows,
    first_entry,
    force_columns,
    law_columns,
    law_slopes,
    new_store,
    pull_rates,
    room_in,
    scale_columns,
)
from add.kernels.contact_circles import CROSSES, UPRIGHT, is_line
from add.kernels.contact_detection import call_detect, frames_of, meets, reach_of
from add.kernels.contact_laws import couple, couple_slopes, force_slopes, normal_energy
from add.kernels.contact_lines import HALVES, OUTWARDS, WEIGHT
from add.kernels.contact_pairs import ACTIVE, BITS, FACE, FEATURE, GIVEN, has_faces, to_frame, with_given
from add.kernels.contact_places import BEND, GROWN, ROLLS, call_rolled, point_place, roll_way
from add.kernels.contact_points import (
    SCRATCH,
    coordinate_columns,
    evaluate,
    scratch_in,
    size_ways,
    way_column,
)
from add.kernels.distance import distance_branch, distance_feature
from add.kernels.mesh_distance import mesh_is_near
from add.kernels.rotation import turn
from add.kernels.shape_codes import MESH
from add.kernels.shape_grid import FIRST, GROUP, STOP


@njit(cache=True, error_model="numpy")
def add_wrenches(a, b, first, L, F, wrench, out):
    """Add minus the force and the couple F (6,) to ``wrench`` (nb, 2, 3), on a node at ``first`` to out (n,)."""
    f0, f1, f2 = F[0], F[1], F[2]
    for side in range(2):
        body, sign = (a, -1.0) if side == 0 else (b, 1.0)
        if body < 0:
            continue
        l0, l1, l2 = L[3 + side, 0], L[3 + side, 1], L[3 + side, 2]
        wrench[body, 0, 0] += sign * f0
        wrench[body, 0, 1] += sign * f1
        wrench[body, 0, 2] += sign * f2
        wrench[body, 1, 0] += sign * (l1 * f2 - l2 * f1 + F[3])
        wrench[body, 1, 1] += sign * (l2 * f0 - l0 * f2 + F[4])
        wrench[body, 1, 2] += sign * (l0 * f1 - l1 * f0 + F[5])
    if a < 0:
        out[first] -= f0
        out[first + 1] -= f1
        out[first + 2] -= f2


@njit(cache=True, error_model="numpy")
def add_turned(wrench, q, bodies, k, out):
    """Add forces and torques on bodies (nb, 2, 3), generalised, to out (n,); wrench is used up."""
    for b in range(bodies.shape[0]):
        s, tau = bodies[b, 0], wrench[b, 1]
        if s < 0:
            continue
        turn(-1.0, q[s + 3 : s + 6], tau, k[b], tau)
        for c in range(3):
            out[s + c] += wrench[b, 0, c]
            out[s + 3 + c] += tau[c]


@njit(cache=True, error_model="numpy")
def _add_force(motion, contacts, frames, law, replay, rows, into, floats):
    """Add minus the generalised forces of the rows; see `body_contact_force`."""
    motion, contacts, frames, rows, (out, seen), floats = uncounted((motion, contacts, frames, rows, into, floats))
    n = 1
    scratch, wrench, touching = scratch_in(floats), np.zeros((contacts.bodies.shape[0], 2, 3)), False
    F, Z, L = borrowed(floats, SCRATCH, (6,)), borrowed(floats, SCRATCH + 6, (5, 3)), scratch.L
    for k in range(rows.shape[0]):
        if rows[k, BITS] & (ACTIVE if replay else ACTIVE | FACE) == 0:
            continue
        i, o, a, lever, spin, _, values, pieces, d = evaluate(
            k, 1, motion, contacts, frames, law, replay, rows, scratch
        )
        if seen.size:
            onset, r = values.onset, values.thickness
            energy, _ = normal_energy(law.elastic, d, r, onset, d < onset, 2.0 * d > r)
            seen[0] += L[WEIGHT, 1] * values.k_n * energy
        if rows[k, BITS] & ACTIVE == 0:
            rows[k, BITS] &= GIVEN
            continue
        touching, braked = True, a >= 0 and values.w_0 > 0.0
        if braked:
            couple(scratch.S[0], spin, values.c_t, values.c_r, values.w_0, Z)
        for c in range(3):
            F[c], F[3 + c] = L[2, c], L[WEIGHT, 1] * pieces[1][0] * Z[0, c] if braked else 0.0
        add_wrenches(a, contacts.hosts[o], contacts.points[i, 0], L, F, wrench, out)
        if n < seen.size:
            for c in range(3):
                seen[n + c], seen[n + 3 + c] = scratch.x[0, c] - lever * scratch.S[0, c], L[2, c]
            n += 6
    if touching:
        add_turned(wrench, motion.q, contacts.bodies, frames.k, out)


@njit(cache=True, error_model="numpy")
def body_contact_force(t, q, v, theta, ints, floats, places, replay, given, into):
    """Decide, with the bits `GIVEN` of ``given``, or take it as it is where ``replay`` is true.

    Adds minus the generalised forces to the first array (n,) of ``into`` and returns the rows. Called at every
    residual, so that motion and the arrays (`Packed`) come as their parts.

    The other array is empty; or the elastic energy of all rows [J] is added to its first entry, and as far as it is
    longer, it is filled with place [m] and force on the point's body there [N] of each row that touches, six numbers a
    row.
    """
    motion, contacts, law = Motion(t, q, v, theta), unpacked(ints, floats, places), unpacked_law(ints)
    frames, rows = frames_of(0, motion, contacts), given
    if not replay:
        if has_faces(given):
            rows = given.copy()
            for k in range(rows.shape[0]):
                rows[k, BITS] &= GIVEN
        else:
            rows = with_given(call_detect((motion.q, theta, contacts, frames)), given)
    if rows.size:
        _add_force(motion, contacts, frames, law, replay, rows, into, np.zeros(SCRATCH + 24))
    return rows


@njit(cache=True, error_model="numpy", forceinline=True)
def set_ends(a, b, first, bodies, L, ends, dofs, arms):
    """Fill what `contact_blocks.Room` says of the sides of a pair: ``first`` is the first coordinate of its point."""
    dofs[:] = -1
    for side in range(2):
        body = a if side == 0 else b
        nodes = 1 if side == 0 and a < 0 else 0
        if body >= 0 and bodies[body, 0] < 0:
            body = -1
        size = 6 if body >= 0 else 3 * nodes
        ends[side, BODY], ends[side, NODES], ends[side, FIRST_POINT], ends[side, COUNT] = body, nodes, side, size
        start = bodies[body, 0] if body >= 0 else first
        for c in range(size):
            dofs[OTHER * side + c] = start + c
        for c in range(3):
            arms[side, c] = L[3 + side, c]


@njit(cache=True, error_model="numpy", forceinline=True)
def prepare(pair, motion, contacts, frames, law, rows, scratch, room):
    """Evaluate an active row: fill ends, slopes and force of ``room``.

    Returns point, shape, lever, whether the spin is braked, and what `penalty_law` found.
    """
    i, o, a, lever, spin, v_n, values, pieces, _ = evaluate(pair, 2, motion, contacts, frames, law, True, rows, scratch)
    first, scale, braked = contacts.points[i, 0], scratch.L[WEIGHT, 1], a >= 0 and values.w_0 > 0.0
    set_ends(a, contacts.hosts[o], first, contacts.bodies, scratch.L, room.ends, room.dofs, room.arms)
    force_slopes(v_n, pieces[0], pieces[1], pieces[2], scale, scratch.S, room.W)
    for c in range(3):
        room.F[c], room.F[3 + c] = scratch.L[2, c], 0.0
    if braked:
        couple_slopes(spin, values, pieces[1], scale, scratch.S, room.Z, room.F, room.W)
    return i, o, lever, braked, pieces


@njit(cache=True, error_model="numpy")
def body_contact_jacobian(motion, packed, rows, weights, slots, data, places):
    """See `_add_jacobian`; ``packed`` is a `Packed`."""
    contacts, law = unpacked(packed.ints, packed.floats, packed.places), unpacked_law(packed.ints)
    given = motion, contacts, frames_of(2, motion, contacts), law
    _add_jacobian(given, rows, weights, slots, data, places, *new_store())


@njit(cache=True, error_model="numpy")
def _add_jacobian(given, rows, weights, slots, data, places, floats, integers):
    """Add w_q dr/dq + w_v dr/dv, r minus the generalised forces, to data[places], of replayed rows.

    A block is over the coordinates of the point's carrier, then those of the shape's body: 12 x 12, or 9 x 9 for a
    node, or 6 x 6 and 3 x 3 with the world; `slots` say where they begin among the places.
    """
    (motion, contacts, frames, law), rows, slots, data, places = uncounted((given, rows, slots, data, places))
    scratch, room = scratch_in(floats), room_in(floats, integers)
    S, L, F, Y, E, block, ends, dofs = scratch.S, scratch.L, room.F, room.Y, room.E, room.block, room.ends, room.dofs
    for pair in range(rows.shape[0]):
        if rows[pair, BITS] & ACTIVE == 0:
            continue
        i, _, lever, braked, _ = prepare(pair, motion, contacts, frames, law, rows, scratch, room)
        a, b = ends[0, BODY], ends[1, BODY]
        levers = a >= 0 or b >= 0
        coordinate_columns((a, b), lever, 0.0, weights, frames.B, S, L, room.Z, Y)
        at = first_entry(i, b, contacts, slots)
        if not levers:  # a node and the world
            force_columns(0, 3, False, False, F, room.W, Y, E)
            for r in range(3):
                for c in range(3):
                    data[places[at + 3 * r + c]] -= E[r, c]
            continue
        for side in range(2):
            first, stop = OTHER * side, OTHER * side + ends[side, COUNT]
            force_columns(first, stop, braked, True, F, room.W, Y, E)
            if L[WEIGHT, 2] != 0.0:
                scale_columns(first, stop, F, Y, E)
            fill_rows(first, stop, frames.B, ends, room.shares, room.arms, F, Y, E, block)
        add_turned_rows(weights[0], motion.q, dofs, frames.k, ends, room.arms, F, room.Z, room.G, block)
        size, width = ends[0, COUNT], ends[0, COUNT] + ends[1, COUNT]
        for r in range(width):
            row = r if r < size else OTHER + r - size
            for c in range(width):
                data[places[at + r * width + c]] += block[row, c if c < size else OTHER + c - size]


@njit(cache=True, error_model="numpy")
def body_contact_parameters(motion, packed, growth, rows, forward, theta_p, f, by_v):
    """See `_add_parameters`; ``packed`` is a `Packed`."""
    contacts, law = unpacked(packed.ints, packed.floats, packed.places), unpacked_law(packed.ints)
    given = motion, contacts, frames_of(2, motion, contacts), law, growth
    _add_parameters(given, rows, forward, theta_p, f, by_v, *new_store())


@njit(cache=True, error_model="numpy")
def _add_parameters(given, rows, forward, theta_p, f, by_v, floats, integers):
    """Derivatives of r by the numbers of the law, centres of mass and sizes, in either direction.

    forward False (vjp)  theta_p (n_theta,) += lam^T dr/dtheta, lam = f (n,) given; ``by_v`` (n,) += lam^T dr/dv, if it
                         has any size
    forward True  (jvp)  f (n,) += dr/dtheta theta_p

    A size moves a point by R_a dX - n dradius, as far as both go, and a shape by what `size_ways` says.
    """
    (motion, contacts, frames, law, growth), theta_p, f, by_v = uncounted((given, theta_p, f, by_v))
    scratch, room = scratch_in(floats), room_in(floats, integers)
    bodies, B, S, M = contacts.bodies, frames.B, scratch.S, room.G
    F, Y, E, Z, block, ends, dofs = room.F, room.Y, room.E, room.Z, room.block, room.ends, room.dofs
    numbers, index = borrowed(integers, 24, (N_NUMBERS,)), borrowed(integers, 34, (3,))
    slopes, sums = borrowed(floats, SCRATCH, (N_NUMBERS, N_WAYS)), borrowed(floats, SCRATCH + 60, (N_WAYS,))
    causes = 4 if growth.points.shape[0] + growth.shapes.shape[0] > 0 else 2
    for pair in range(rows.shape[0]):
        if rows[pair, BITS] & ACTIVE == 0:
            continue
        i, o, lever, braked, pieces = prepare(pair, motion, contacts, frames, law, rows, scratch, room)
        table = contacts.tables[contacts.points[i, 1], contacts.columns[o, 0]]
        for number in range(N_NUMBERS):
            numbers[number] = table[number if number < 4 else number + 1]
        columns = law_columns(scratch.L[WEIGHT, 1], braked, pieces[1][0], S, Z, E)
        fill_rows(0, columns, B, ends, room.shares, room.arms, F, Y, E, block)
        law_slopes(pieces, slopes)
        count_numbers(columns, numbers, slopes, sums, dofs, ends, forward, theta_p, f, block)
        if by_v.size:
            pull_rates(braked, f, B, room, by_v)
        # The centres of mass of both bodies, then the sizes of the point and of the shape.
        for cause in range(causes):
            side = cause % 2
            body = ends[side, BODY]
            if body < 0:
                continue
            for c in range(3):
                if cause < 2:
                    index[c] = bodies[body, 1 + c]
                else:
                    index[c] = growth.points[i, c] if side == 0 else growth.shapes[o, c]
            if index[0] < 0 and index[1] < 0 and index[2] < 0:
                continue
            if cause == 3:
                size_ways(o, rows[pair, FEATURE] & ~ROLLS, scratch.x[0], frames, S[0], M)
            for r in range(3):
                for c in range(3):
                    if cause < 2:
                        M[r, c] = B[body, r, c] if side == 1 else -B[body, r, c]
                    elif cause == 2:
                        M[r, c] = -S[0, r] * growth.arms[i, c, 3]
                        for e in range(3):
                            M[r, c] += B[body, r, e] * growth.arms[i, c, e]
            if cause == 2 and rows[pair, FEATURE] & ROLLS:
                for c in range(3):
                    roll_way(i, contacts, B, scratch.L, M[:, c])
            if cause == 2 and scratch.L[WEIGHT, 2] != 0.0:  # a rim that crosses goes outwards as it grows
                for r in range(3):
                    M[r, int(scratch.L[HALVES, 2]) // 3] += scratch.L[OUTWARDS, r]
            bend, bodies_of = scratch.L[GROWN if cause == 2 else BEND], (ends[0, BODY], ends[1, BODY])
            for c in range(3):
                if index[c] >= 0:
                    # A radius of a round side moves no normal, nor a place.
                    still = 0.0 if cause == 3 and c == 0 and rows[pair, FEATURE] & CROSSES == 0 else 1.0
                    rolls = still * (M[0, c] * bend[0] + M[1, c] * bend[1] + M[2, c] * bend[2])
                    way_column(c, side, M[:, c], rolls, (lever, 0.0), bodies_of, B, scratch, Z, Y)
            if cause >= 2 and scratch.L[WEIGHT, 2] != 0.0:  # half-lengths are what crossings fade by
                numbers_of = divmod(int(scratch.L[HALVES, 2]), 3)
                Y[SCALE, numbers_of[side]] += scratch.L[HALVES, side]
            force_columns(0, 3, braked, True, F, room.W, Y, E)
            if scratch.L[WEIGHT, 2] != 0.0:
                scale_columns(0, 3, F, Y, E)
            fill_rows(0, 3, B, ends, room.shares, room.arms, F, Y, E, block)
            for c in range(3):
                if index[c] >= 0:
                    count(index[c], c, dofs, ends, forward, theta_p, f, block)


# --- How far points may go before they touch shapes, for laws that are infinite there ---------------------------------

#: Share of its gap that a point keeps.
KEPT = 0.1
#: Kinds up to this code are convex.
LAST_CONVEX = MESH - 1
#: Steps along one way; then its rest is not gone.
MOST = 100


@njit(cache=True, error_model="numpy")
def free_way(kind, size, X, D, radius, S):
    """Return the share of the way D (3,) from X (3,), in the frame of a shape, on which a ball keeps off it.

    A ball that begins inside is not held. A distance to a convex shape is convex along the way: its tangents are below
    it, and Newton's method on them comes from the free side; any other one changes by no more than the way.
    """
    length = math.sqrt(D[0] * D[0] + D[1] * D[1] + D[2] * D[2])
    if length == 0.0 or (kind == MESH and not mesh_is_near(size, X[0], X[1], X[2], radius + 2.0 * length)):
        return 1.0
    n, t, gap, least = S[0], 0.0, 0.0, 0.0
    for step in range(MOST):
        x0, x1, x2 = X[0] + t * D[0], X[1] + t * D[1], X[2] + t * D[2]
        feature = distance_feature(kind, size, x0, x1, x2)
        gap = distance_branch(kind, size, x0, x1, x2, feature, 1, n, S[1:4]) - radius
        if step == 0:
            if not gap > 0.0:
                return 1.0
            least = KEPT * gap
        if (1.0 - t) * length < gap - least:
            return 1.0
        if gap - least <= 0.01 * least:
            return t
        speed = length
        if kind <= LAST_CONVEX:
            speed = -(n[0] * D[0] + n[1] * D[1] + n[2] * D[2])
            if speed <= 0.0:
                return 1.0
        t += (gap - least) / speed
        if t >= 1.0:
            return 1.0
    return t


@njit(cache=True, error_model="numpy")
def free_points(motion, other, contacts):
    """Return the share of the ways between two motions that is free, straight in the frames of the shapes."""
    one, two = frames_of(0, motion, contacts), frames_of(0, other, contacts)
    runs, hosts, columns, tables = contacts.runs, contacts.hosts, contacts.columns, contacts.tables
    kind, size, bounds = contacts.kind, contacts.size, contacts.bounds
    out, S = 1.0, np.zeros((4, 3))
    x, y, L, X, D = np.empty((1, 3)), np.empty((1, 3)), np.empty((10, 3)), np.empty(3), np.empty(3)
    for run in range(runs.shape[0]):
        for o in range(kind.size):
            if not meets(run, o, runs, hosts, columns, tables, contacts.apart, contacts.stride):
                continue
            if reach_of(runs[run, GROUP], columns[o, 0], motion.theta, contacts) == 0.0:
                continue
            for i in range(runs[run, FIRST], runs[run, STOP]):
                point_place(i, motion.q, contacts, one.B, x, L)
                if is_line(i, contacts):
                    continue
                is_rim = contacts.points[i, 3] >= 0
                rolls = is_rim and call_rolled((i, o, motion.q, math.inf, UPRIGHT, contacts, one, x, L, S)) >= 0
                point_place(i, other.q, contacts, two.B, y, L)
                if is_rim and call_rolled((i, o, other.q, math.inf, UPRIGHT, contacts, two, y, L, S)) < 0 and rolls:
                    point_place(i, motion.q, contacts, one.B, x, L)
                X[0], X[1], X[2] = to_frame(0, o, x, one.shapes.R, one.shapes.p)
                D[0], D[1], D[2] = to_frame(0, o, y, two.shapes.R, two.shapes.p)
                square, way = 0.0, 0.0
                for a in range(3):
                    D[a] -= X[a]
                    square, way = square + X[a] * X[a], way + D[a] * D[a]
                radius = contacts.arms[i, 3]
                if math.sqrt(square) > bounds[o] + radius + 1.2 * math.sqrt(way):
                    continue
                out = min(out, free_way(kind[o], size[o], X, D, radius, S))
    return out
