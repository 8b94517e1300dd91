"""Rows that hold touching pairs against sliding, with all their derivatives.

For a pair in contact (symbols of `contact_pairs.py` and `contact_points.py`), with the projector P = I - n n^T and the
rotation R_o of the shape,

    c = R_o^T P v = 0,        generalised force on the coordinates  -(dc/dv)^T mu,

is sticking of hybrid friction (Geilinger et al. 2020, section 4.3): mu (3,) [N], in the axes of the shape, holds the
point with the force -P R_o mu. Three rows of rank two need no tangents, whose choice would have to be differentiated;
the part of mu along n does nothing.

A point that has gone into a shape would be held by its place inside. The points of a body's face that leans a little go
in to different depths; held there, they could bear a torque, and the body could not rock. So bodies are held where the
surfaces meet: v and the arms are those of the place c - g n, with the gap g of the point in place of the radius.

A pair k has up to m coordinates, ``dofs[k]`` (-1 for none). Its share of a matrix is the dense block over those it has,
row by row, from entry ``first[k]`` on.
"""

from typing import NamedTuple

import numpy as np

from add.kernels.borrowed import put
from add.kernels.caching import CALLED, njit
from add.kernels.contact_arrays import unpacked, unpacked_law
from add.kernels.contact_blocks import (
    BODY,
    COUNT,
    OTHER,
    add_turned_rows,
    fill_rows,
    hold_columns,
    lever_columns,
    new_store,
    room_in,
)
from add.kernels.contact_bodies import set_ends
from add.kernels.contact_circles import CROSSES, OPEN, UPRIGHT
from add.kernels.contact_detection import frames_of
from add.kernels.contact_laws import NONE
from add.kernels.contact_lines import GAP, WEIGHT, nearest
from add.kernels.contact_pairs import (
    ACTIVE,
    BITS,
    FEATURE,
    PAIR,
    RELEASED,
    SLIP,
    STICKS,
    Law,
    static_coefficient,
    to_frame,
)
from add.kernels.contact_places import ROLLS, point_place
from add.kernels.contact_points import centre_columns, coordinate_columns, evaluate, scratch_in
from add.kernels.distance import distance_branch
from add.typing import FloatArray


class StickRows(NamedTuple):
    """Rows c of held pairs at one state, with all derivatives; k pairs, m coordinates, p parameters each.

    Attributes
    ----------
    rows : (k, 3) c [m/s]
    by_v, by_q : (k, 3, m) dc/dv and dc/dq
    geometric : (k, m, m)
        Derivative of by_v^T reactions by q.
    by_theta, geometric_by_theta : (k, 3, p), (k, m, p)
        Derivatives of c and of by_v^T reactions by the parameters.
    limit : (k,)
        What Coulomb allows [N]; -1 where the pair does not touch.
    stiffness : (k,)
        Stick stiffness of the linear law [N s/m].
    """

    rows: FloatArray
    by_v: FloatArray
    by_q: FloatArray
    geometric: FloatArray
    by_theta: FloatArray
    geometric_by_theta: FloatArray
    limit: FloatArray
    stiffness: FloatArray


def new_stick_rows(k: int, m: int, p: int, derivatives: bool = True) -> StickRows:
    """Return room for k pairs, without ``derivatives`` for c, by_v, limit and stiffness alone."""
    n = k if derivatives else 0
    return StickRows(
        np.empty((k, 3)), np.empty((k, 3, m)), np.empty((n, 3, m)), np.empty((n, m, m)),
        np.empty((n, 3, p)), np.empty((n, m, p)), np.empty(k), np.empty(k),
    )  # fmt: skip


#: The same, for compiled functions.
stick_rows = njit(**CALLED)(new_stick_rows)


@njit(cache=True, error_model="numpy")
def _held(first, stop, R, m, S, room, by_row, out):
    """Fill the columns first to stop of ``out`` (3, m) with dc, in the axes R, and those of E with the change of F."""
    Y, E = room.Y, room.E
    hold_columns(first, stop, S[0], S[1], m, Y, by_row, E)
    for c in range(first, stop):
        lever_columns(c, room.F, Y, E)
        for r in range(3):
            out[r, c] = R[0, r] * by_row[0, c] + R[1, r] * by_row[1, c] + R[2, r] * by_row[2, c]


@njit(cache=True, error_model="numpy")
def stick_rows_of_bodies(motion, packed, decision, reactions, derivatives, own, out):
    """See `_fill_stick_rows`; ``packed`` is a `Packed`."""
    contacts, law = unpacked(packed.ints, packed.floats, packed.places), unpacked_law(packed.ints)
    _fill_stick_rows(motion, contacts, law, decision, reactions, derivatives, own, out, *new_store())


@njit(cache=True, error_model="numpy")
def _fill_stick_rows(motion, contacts, law, decision, reactions, derivatives, own, out, floats, integers):
    """Fill ``out`` (StickRows, m = 12, p = 6) for points that stick to shapes, in the axes of the shape.

    ``decision`` (k, 3) are their rows; the features of those that do not touch are found here. ``reactions`` (k, 3)
    are the reactions. Of the `Law` the friction is not read. Columns are the coordinates (x, w) of the point's carrier
    a, then those of the shape's body b; a node has the first three alone. Parameters are the centres of mass of a and
    of b. ``own`` (k, 18), if there are any, takes the columns' coordinates and the parameters' indices, -1 for none.
    """
    rows, by_v, by_q, geometric, by_centre, geometric_by_centre, limit, stiffness = out
    by_v[:], by_q[:], by_centre[:], geometric_by_centre[:] = 0.0, 0.0, 0.0, 0.0
    frames, scratch, room = frames_of(2, motion, contacts), scratch_in(floats), room_in(floats, integers)
    q, B, shapes, R = motion.q, frames.B, frames.shapes, frames.shapes.R
    kind, size, x, S, L = shapes.kind, shapes.size, scratch.x, scratch.S, scratch.L
    F, Y, Z, E, block, ends, dofs = room.F, room.Y, room.Z, room.E, room.block, room.ends, room.dofs
    m, by_row = np.empty(3), np.empty((3, Y.shape[1]))
    n_shapes, alone = kind.size, Law(NONE, law.normal, law.elastic, law.curve)
    for k in range(decision.shape[0]):
        if decision[k, BITS] & ACTIVE == 0:
            i, o = decision[k, PAIR] // n_shapes, decision[k, PAIR] % n_shapes
            point_place(i, q, contacts, B, x, L)
            decision[k, FEATURE] = nearest(i, o, q, UPRIGHT, contacts, frames, x, L, S)
            if decision[k, FEATURE] & (CROSSES | OPEN) == OPEN:
                decision[k, FEATURE] &= ~OPEN
        i, o, a, lever, spin, _, values, pieces, _ = evaluate(
            k, 2, motion, contacts, frames, alone, True, decision, scratch
        )
        b, scale = contacts.hosts[o], L[WEIGHT, 1]
        f_c, touches = pieces[1][0], decision[k, BITS] & ACTIVE != 0
        limit[k] = scale * static_coefficient(law, values, f_c) * f_c if touches else -1.0
        stiffness[k] = scale * values.k_t
        n, v, slope = S[0], S[1], 0.0
        if a >= 0:
            # The place of contact is on the surface, not on the point inside: lever g instead of r.
            g = L[GAP, 0]
            if decision[k, FEATURE] & CROSSES == 0:
                X0, X1, X2 = to_frame(0, o, x, R, shapes.p)
                g = distance_branch(kind[o], size[o], X0, X1, X2, decision[k, FEATURE] & ~ROLLS, 0, n, S[3:6])
            v[0] += (lever - g) * (spin[1] * n[2] - spin[2] * n[1])
            v[1] += (lever - g) * (spin[2] * n[0] - spin[0] * n[2])
            v[2] += (lever - g) * (spin[0] * n[1] - spin[1] * n[0])
            for r in range(3):
                L[3, r], L[4, r] = L[0, r] - g * n[r], L[1, r] - g * n[r]
            lever, slope = g, 1.0
        v_n = n[0] * v[0] + n[1] * v[1] + n[2] * v[2]
        for r in range(3):
            m[r] = R[o, r, 0] * reactions[k, 0] + R[o, r, 1] * reactions[k, 1] + R[o, r, 2] * reactions[k, 2]
            rows[k, r] = 0.0
            for c in range(3):
                rows[k, r] += R[o, c, r] * (v[c] - v_n * n[c])
        m_n = n[0] * m[0] + n[1] * m[1] + n[2] * m[2]
        for r in range(3):
            F[r] = m_n * n[r] - m[r]
        set_ends(a, b, contacts.points[i, 0], contacts.bodies, L, ends, dofs, room.arms)
        for c in range(18 if own.size else 0):
            side = c // 6 if c < 12 else (c - 12) // 3
            body = ends[side, BODY]
            own[k, c] = dofs[c] if c < 12 else contacts.bodies[body, 1 + (c - 12) % 3] if body >= 0 else -1
        if derivatives:
            block[:] = 0.0
            centre_columns((a, b), (lever, slope), B, scratch, Z, Y)
            for side in range(2):
                if ends[side, BODY] >= 0:
                    first, stop = 3 * side, 3 * side + 3
                    _held(first, stop, R[o], m, S, room, by_row, by_centre[k])
                    fill_rows(first, stop, B, ends, room.shares, room.arms, F, Y, E, block)
            put(block[:12, :6], geometric_by_centre[k])
            block[:] = 0.0
        for way_of in range(0 if derivatives else 1, 2):
            weights, by = ((1.0, 0.0), by_q[k]) if way_of == 0 else ((0.0, 1.0), by_v[k])
            coordinate_columns((a, b), lever, slope, weights, B, S, L, Z, Y)
            for side in range(2):
                first, stop = OTHER * side, OTHER * side + ends[side, COUNT]
                _held(first, stop, R[o], m, S, room, by_row, by)
                if way_of == 0:
                    fill_rows(first, stop, B, ends, room.shares, room.arms, F, Y, E, block)
        if derivatives:
            add_turned_rows(1.0, q, dofs, frames.k, ends, room.arms, F, Z, room.G, block)
            put(block[:12, :12], geometric[k])


@njit(cache=True)
def with_sticking(rows, slipping):
    """Return a copy of a decision with all pairs sticking that touch, those that slip only if ``slipping``."""
    out = rows.copy()
    for k in range(rows.shape[0]):
        bits = rows[k, BITS]
        if bits & ACTIVE != 0 and (slipping or bits & SLIP == 0):
            out[k, BITS] = (bits | STICKS) & ~RELEASED
    return out


@njit(cache=True)
def sticking(rows):
    """Return the rows (k, 3) that stick."""
    out, n = np.empty(rows.shape, dtype=np.int64), 0
    for k in range(rows.shape[0]):
        if rows[k, BITS] & STICKS != 0:
            put(rows[k], out[n])
            n += 1
    return out[:n]


@njit(cache=True)
def none_creeps(rows):
    """Whether all pairs that touch stick or slip."""
    for k in range(rows.shape[0]):
        bits = rows[k, BITS]
        if bits & ACTIVE != 0 and bits & (SLIP | STICKS) == 0:
            return False
    return True


@njit(cache=True)
def resting(rows, rates, rest):
    """Return a copy of a decision without STICKS where what sticks moves: what creeps there is released instead.

    ``rates`` (k, 3) are c of those that stick, in their order [m/s]; up to ``rest`` they rest.
    """
    out, n = rows.copy(), 0
    for k in range(rows.shape[0]):
        if rows[k, BITS] & STICKS != 0:
            if not (abs(rates[n, 0]) <= rest and abs(rates[n, 1]) <= rest and abs(rates[n, 2]) <= rest):
                out[k, BITS] = rows[k, BITS] & ~STICKS | (RELEASED if rows[k, BITS] & SLIP == 0 else 0)
            n += 1
    return out


@njit(cache=True)
def beyond(reactions, limits, margin):
    """Which reactions (k, 3) are longer than margin times their limits (k,), or have none (below zero)."""
    out = np.empty(limits.size, dtype=np.bool_)
    for k in range(limits.size):
        length = np.sqrt(reactions[k, 0] ** 2 + reactions[k, 1] ** 2 + reactions[k, 2] ** 2)
        out[k] = limits[k] < 0.0 or length > margin * limits[k]
    return out


@njit(cache=True)
def meet(dofs, taken):
    """Whether two of the points, with coordinates dofs (k, m), share one.

    ``taken`` (n,) is 0 for a coordinate without a point so far, 1 with one, 2 for one that does not count.
    """
    for k in range(dofs.shape[0]):
        for m in range(dofs.shape[1]):
            i = dofs[k, m]
            if i >= 0:
                if taken[i] == 1:
                    return True
                if taken[i] == 0:
                    taken[i] = 1
    return False


@njit(cache=True)
def groups(column, point, label):
    """Fill the number (n_points,) of the group of each point: points of a group share coordinates in turn.

    ``column`` and ``point`` (k,) are the coordinates that each point acts on; a group's number is its first point.
    """
    first = np.full(column.max() + 1 if column.size else 0, -1)
    for i in range(label.size):
        label[i] = i
    for k in range(column.size):
        i = point[k]
        if first[column[k]] < 0:
            first[column[k]] = i
            continue
        one, other = label[i], label[first[column[k]]]
        for j in range(label.size if one != other else 0):
            if label[j] == max(one, other):
                label[j] = min(one, other)


@njit(cache=True, error_model="numpy")
def add_forces(dofs, by_v, reactions, out):
    """Add by_v^T reactions to ``out``; by_v (k, 3, m), reactions (k, 3)."""
    for k in range(dofs.shape[0]):
        for m in range(dofs.shape[1]):
            i = dofs[k, m]
            if i >= 0:
                out[i] += (
                    by_v[k, 0, m] * reactions[k, 0] + by_v[k, 1, m] * reactions[k, 1] + by_v[k, 2, m] * reactions[k, 2]
                )
