"""Rows that hold vertices and edges of one mesh against sliding on another, with all their derivatives.

With the symbols of `stencil.py` and `sticking.py`, P = I - n n^T and the coefficients c_i of two primitives,

    c = P v_rel = 0,   v_rel = sum c_i v_i,        force on x_i   -c_i P mu,

in world axes. How coefficients, normal and v_rel change says `mesh_columns.py`.

A vertex of a rigid body is held where the surfaces meet, at the closest point of the other side: at -s, s = d n, from
its own place, as the skin of a round body. Held at their own places, vertices that are not equally near would keep the
body from rocking, and a ball from rolling.

Of two edges that of the side which carries is held so, or of the rigid one. A face of the other edge that lies in the
plane of contact, to within a few degrees, is that plane: its normal N = R N_0 takes the place of n in P. All edges that
lie on a face then slide in one plane, and leave a body its two ways of rocking; where edges cross, n is across both,
and differs a little from one crossing to the next, so that a body that may turn about none of them could not rock. N
turns with the body of its face, dN = dphi x N.

Which primitives may be held says `mesh_arrays.py`.
"""

import numpy as np

from add.kernels.borrowed import put
from add.kernels.caching import njit
from add.kernels.contact_arrays import OMEGA, TURN
from add.kernels.contact_blocks import (
    BODY,
    COUNT,
    NORMAL,
    OTHER,
    WIDTH,
    add_turned_rows,
    cross,
    fill_rows,
    hold_columns,
    lever_columns,
    new_store,
    room_in,
)
from add.kernels.contact_pairs import ACTIVE, BITS, FEATURE, PAIR, static_coefficient
from add.kernels.mesh_arrays import EDGE_EDGE, REGION_MASK, SAME_NORMAL, points_of, unnumbered
from add.kernels.mesh_columns import centre_column, coordinate_columns, set_ends
from add.kernels.mesh_contact import evaluate, half_thicknesses, places_of, round_side, work_in
from add.kernels.ordering import first_not_below
from add.kernels.stencil import EDGE_END, EDGES, ENDS


@njit(cache=True, forceinline=True)
def _side_of(k, kind):
    """Return on which side, 0 or 1, point k of a pair is, and which point is the side's first."""
    first = 2 if kind == EDGE_EDGE else 1
    return (0, 0) if k < first else (1, first)


@njit(cache=True, forceinline=True)
def _begin_of(k, kind, rigid):
    """Return the first of the pair's coordinates that point k moves with."""
    side, first = _side_of(k, kind)
    return OTHER * side + (0 if rigid else 3 * (k - first))


@njit(cache=True)
def stick_dofs(rows, meshes, dofs, centres):
    """Fill the coordinates (k, 15) of pairs that stick, -1 for none, and the indices (k, 6) of centres of mass."""
    n_p, n_e, n_f = meshes.points.shape[0], meshes.edges.shape[0], meshes.faces.shape[0]
    p, points, carriers, bodies = np.zeros(4, dtype=np.int64), meshes.points, meshes.carriers, meshes.bodies
    for row in range(rows.shape[0]):
        kind, i, j = unnumbered(rows[row, PAIR], n_p, n_e, n_f)
        n = points_of(kind, i, j, meshes, p)
        dofs[row], centres[row] = -1, -1
        for k in range(n):
            carrier, b = points[p[k], 0], points[p[k], 1]
            if carrier < 0:
                continue
            begin, side = _begin_of(k, kind, b >= 0), _side_of(k, kind)[0]
            for a in range(carriers[carrier, 1]):
                dofs[row, begin + a] = carriers[carrier, 0] + a
            if b >= 0:
                for a in range(3):
                    centres[row, 3 * side + a] = bodies[b, 1 + a]


@njit(cache=True)
def dense_places(rows, meshes, keys, first, out):
    """Fill the entries (k, 15, 15) in the blocks of `Slots` of the coordinates that `stick_dofs` gives; -1 for none."""
    n_p, n_e, n_f = meshes.points.shape[0], meshes.edges.shape[0], meshes.faces.shape[0]
    p, points, carriers = np.zeros(4, dtype=np.int64), meshes.points, meshes.carriers
    n_c = carriers.shape[0]
    for row in range(rows.shape[0]):
        kind, i, j = unnumbered(rows[row, PAIR], n_p, n_e, n_f)
        n = points_of(kind, i, j, meshes, p)
        out[row] = -1
        for k in range(n):
            for m in range(n):
                one, two = points[p[k], 0], points[p[m], 0]
                if one < 0 or two < 0:
                    continue
                at = first[first_not_below(keys, min(one, two) * n_c + max(one, two))]
                wide = carriers[two, 1]
                if one > two:
                    at += carriers[one, 1] * wide
                begin = _begin_of(k, kind, points[p[k], 1] >= 0)
                begin_col = _begin_of(m, kind, points[p[m], 1] >= 0)
                for a in range(carriers[one, 1]):
                    for e in range(wide):
                        out[row, begin + a, begin_col + e] = at + wide * a + e


@njit(cache=True, forceinline=True)
def _turning_side(kind, region, one, two, meshes):
    """Return the side, 0 or 1, that is held at the closest point of the other one, if it is a rigid body."""
    spinning, sigma = round_side(one, two, meshes)
    if spinning >= 0:
        return 0 if sigma > 0.0 else 1
    if kind == EDGE_EDGE and region == EDGES:
        side = 0 if meshes.vertex_reach[meshes.body[one], meshes.body[two]] >= 1.0 else 1
        return side if meshes.points[one if side == 0 else two, 1] >= 0 else 1 - side
    return 1 if EDGE_END <= region < ENDS else 0


@njit(cache=True, error_model="numpy", forceinline=True)
def _dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@njit(cache=True, error_model="numpy")
def _set_plane(edge, frame, meshes, normal, plane):
    """Fill ``plane`` (3,) with the normal of the edge's face that lies across ``normal``; return whether there is one.

    ``frame`` (13, 3) is the state of its rigid body, empty if it stands still.
    """
    best, turned = SAME_NORMAL, np.zeros(3)
    for side in range(2):
        rest = meshes.edge_normals[edge, side]
        for a in range(3):
            turned[a] = rest[a]
            if frame.shape[0]:
                turned[a] = frame[a, 0] * rest[0] + frame[a, 1] * rest[1] + frame[a, 2] * rest[2]
        along = abs(_dot(turned, normal))
        if along > best:
            best = along
            put(turned, plane)
    return best > SAME_NORMAL


@njit(cache=True, error_model="numpy")
def _held(columns, weight_q, plane, on_face, on, m, B, work, room, out):
    """Fill ``columns``, first and stop, of ``out`` (3, WIDTH) with dc, and those of E with the change of F = -P m.

    ``on_face``: the plane is that of a face of side ``on``, whose body turns it; of a side that stands it stands, too.
    """
    Y, E, F, S = room.Y, room.E, room.F, work.S
    first, stop = columns
    for c in range(first, stop):
        if on_face:
            side = 0 if c < OTHER else 1
            turns = on == side and room.ends[side, BODY] >= 0 and c - OTHER * side >= 3
            for r in range(3):
                Y[NORMAL + r, c] = 0.0
            if turns:
                J, axis = B[room.ends[side, BODY]], c % 3
                j0, j1, j2 = J[TURN, axis], J[TURN + 1, axis], J[TURN + 2, axis]
                Y[NORMAL, c] = weight_q * (j1 * plane[2] - j2 * plane[1])
                Y[NORMAL + 1, c] = weight_q * (j2 * plane[0] - j0 * plane[2])
                Y[NORMAL + 2, c] = weight_q * (j0 * plane[1] - j1 * plane[0])
    hold_columns(first, stop, plane, S[1], m, Y, out, E)
    for c in range(first, stop):
        lever_columns(c, F, Y, E)


@njit(cache=True, error_model="numpy")
def stick_rows_of_primitives(q, v, theta, meshes, law, rows, reactions, out):
    """Fill ``out`` (StickRows, m = 15, p = 6) for vertices and edges that stick to meshes, in world axes.

    Bits of the rows are completed.
    """
    _fill_stick_rows(q, v, theta, meshes, law, rows, reactions, out, *new_store())


@njit(cache=True, error_model="numpy")
def _fill_stick_rows(q, v, theta, meshes, law, rows, reactions, out, floats, integers):
    rate, by_v, by_q, geometric, by_centre, geometric_by_centre, limit, stiffness = out
    by_v[:], by_q[:], by_centre[:], geometric_by_centre[:] = 0.0, 0.0, 0.0, 0.0
    places, half = places_of(2, q, v, theta, meshes), half_thicknesses(theta, meshes)
    work, room = work_in(floats, integers), room_in(floats, integers)
    points, B, S = meshes.points, places.B, work.S
    F, Y, E, block, ends, dofs = room.F, room.Y, room.E, room.block, room.ends, room.dofs
    n_p, n_e, n_f = points.shape[0], meshes.edges.shape[0], meshes.faces.shape[0]
    plane, still, wide = np.zeros(3), np.zeros((0, 3)), np.zeros((3, WIDTH))
    for row in range(rows.shape[0]):
        touches = rows[row, BITS] & ACTIVE != 0
        n, one, two, d, _, _, weight, m, _, values, terms = evaluate(
            row, 2, theta, places, meshes, law, True, rows, half, work
        )
        kind, first_edge, second_edge = unnumbered(rows[row, PAIR], n_p, n_e, n_f)
        limit[row] = weight * m * static_coefficient(law, values, terms[1][0]) * terms[1][0] if touches else -1.0
        stiffness[row] = weight * m * values.k_t
        region = rows[row, FEATURE] & REGION_MASK
        side = _turning_side(kind, region, one, two, meshes)
        turning, other = (points[one, 1], two) if side == 0 else (points[two, 1], one)
        set_ends(n, kind, d, side if turning >= 0 else -1, meshes, work, room)
        on, stands = points[other, 1], points[other, 0] < 0
        put(S[0], plane)
        on_face = kind == EDGE_EDGE and region == EDGES and turning >= 0 and (on >= 0 or stands)
        if on_face:
            frame = B[on] if on >= 0 else still
            on_face = _set_plane(second_edge if side == 0 else first_edge, frame, meshes, S[0], plane)
        for a in range(3):
            S[1, a], S[8, a] = 0.0, d * S[0, a]
            for k in range(n):
                S[1, a] += work.c[k] * work.V[k, a]
        if turning >= 0:
            cross(B[turning, OMEGA], S[8], S[7])
            for a in range(3):
                S[1, a] -= S[7, a]
        mu = reactions[row]
        v_n, along = _dot(S[1], plane), _dot(mu, plane)
        for a in range(3):
            rate[row, a] = S[1, a] - v_n * plane[a]
            F[a] = along * plane[a] - mu[a]
        skin = side if turning >= 0 else -1
        block[:] = 0.0
        for centre in range(6):
            if ends[centre // 3, BODY] < 0:
                continue
            centre_column(centre, centre // 3, centre % 3, n, d, skin, False, B, work, room)
            _held((centre, centre + 1), 0.0, plane, on_face, -1, mu, B, work, room, wide)
            put(wide[:, centre], by_centre[row, :, centre])
            fill_rows(centre, centre + 1, B, ends, room.shares, room.arms, F, Y, E, block)
        put(block[:, :6], geometric_by_centre[row])
        block[:] = 0.0
        for way in range(2):
            weights, by = ((1.0, 0.0), by_q[row]) if way == 0 else ((0.0, 1.0), by_v[row])
            coordinate_columns(n, d, weights, skin, False, B, work, room)
            for part in range(2):
                first, stop = OTHER * part, OTHER * part + ends[part, COUNT]
                _held((first, stop), weights[0], plane, on_face, 1 - side, mu, B, work, room, by)
                if way == 0:
                    fill_rows(first, stop, B, ends, room.shares, room.arms, F, Y, E, block)
        add_turned_rows(1.0, q, dofs, places.k, ends, room.arms, F, room.Z, room.G, block)
        put(block, geometric[row])
