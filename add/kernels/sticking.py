"""Rows that hold touching pairs against sliding, with all their derivatives.

For a pair in contact (symbols of `contact_pairs.py` and `contact_bodies.py`), with the projector P = I - n n^T and the
rotation R_o of the shape,

    c = R_o^T P v_rel = 0,        generalised force on the coordinates  -(dc/dv)^T mu,

is sticking of hybrid friction (Geilinger et al. 2020, section 4.3): mu (3,) [N], in the axes of the shape, holds the
point with the force -P R_o mu. Three rows of rank two need no tangents, whose choice would have to be differentiated;
the part of mu along n does nothing.

A point that has gone into a shape would be held by its place inside. The points of a body's face that leans a little go
in to different depths; held there, they could bear a torque, and the body could not rock. So bodies are held where the
surfaces meet: v_rel and the arms are those of the place c - g n, with the gap g of the point in place of the radius.

In axes that turn with the shape, c depends on ds and dnu by

    dc = P dnu - (v_n H + n (H v_rel)^T) ds,        d(-P mu) = ((n . mu) H + n (H mu)^T) ds.

`contact_bodies_jacobian.py` turns such pairs (A, K) into derivatives by the coordinates.
"""

from typing import NamedTuple

import numpy as np

from add.kernels.caching import njit
from add.kernels.contact_bodies import cross, evaluate, new_scratch
from add.kernels.contact_bodies_jacobian import fill_block, force_derivative, new_matrices
from add.kernels.contact_detection import TURN, frames_of, point_place
from add.kernels.contact_laws import NONE
from add.kernels.contact_nodes import coefficients_of
from add.kernels.contact_pairs import (
    ACTIVE,
    BITS,
    FEATURE,
    NO_SPIN,
    PAIR,
    Law,
    gap,
    penalty_law,
    static_coefficient,
    to_frame,
)
from add.kernels.distance import distance_branch, distance_feature
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


def new_stick_rows(k: int, m: int, p: int) -> StickRows:
    """Return room for k pairs."""
    return StickRows(
        np.empty((k, 3)), np.empty((k, 3, m)), np.empty((k, 3, m)), np.empty((k, m, m)),
        np.empty((k, 3, p)), np.empty((k, m, p)), np.empty(k), np.empty(k),
    )  # fmt: skip


@njit(cache=True, error_model="numpy", inline="always")
def _project(n, u, out):
    """Fill out with u - (n . u) n."""
    along = n[0] * u[0] + n[1] * u[1] + n[2] * u[2]
    for a in range(3):
        out[a] = u[a] - along * n[a]
    return along


@njit(cache=True, error_model="numpy")
def _slope(along, n, H, u, out):
    """Fill out (3, 3) with along H + n (H u)^T."""
    for c in range(3):
        Hu = H[c, 0] * u[0] + H[c, 1] * u[1] + H[c, 2] * u[2]
        for r in range(3):
            out[r, c] = along * H[r, c] + n[r] * Hu


@njit(cache=True, error_model="numpy")
def stick_rows_of_nodes(points, shapes, table, law, decision, reactions, out):
    """Fill ``out`` (StickRows, m = 3, p = 0) for nodes that stick to shapes of the world, in world axes.

    ``decision`` (k, 3) are their rows; the features of those that do not touch are found here. ``reactions`` (k, 3)
    are the reactions. Of the `Law` the friction is not read.
    """
    rows, by_v, by_q, geometric, _, _, limit, stiffness = out
    S, y, W, n_shapes = np.zeros((9, 3)), np.empty(3), shapes.W, shapes.kind.size
    alone = Law(NONE, law.normal, law.elastic)
    for k in range(decision.shape[0]):
        i, o = decision[k, PAIR] // n_shapes, decision[k, PAIR] % n_shapes
        bits = decision[k, BITS]
        if bits & ACTIVE == 0:
            X0, X1, X2 = to_frame(i, o, points.x, shapes.R, shapes.p)
            decision[k, FEATURE] = distance_feature(shapes.kind[o], shapes.size[o], X0, X1, X2)
        values = coefficients_of(table, points.group[i], table.column[o])
        d, v_n = gap(i, o, points.x, points.v, shapes, decision[k, FEATURE], 2, 0.0, NO_SPIN, S)
        d += table.reach[points.group[i], table.column[o]]
        coulomb = penalty_law(d, v_n, values, alone, True, bits, S)[2]
        limit[k] = points.scale[i] * static_coefficient(values) * coulomb[0] if bits & ACTIVE != 0 else -1.0
        stiffness[k] = points.scale[i] * values.k_t
        n, v_rel, H = S[0], S[1], S[3:6]
        _project(n, v_rel, rows[k])
        _slope(-v_n, n, H, v_rel, by_q[k])
        for c in range(3):
            # -n (H v_rel)^T, and P times -[W].
            for r in range(3):
                by_q[k, r, c] -= 2.0 * n[r] * (H[c, 0] * v_rel[0] + H[c, 1] * v_rel[1] + H[c, 2] * v_rel[2])
                by_v[k, r, c] = -n[r] * n[c]
            by_v[k, c, c] += 1.0
        for c in range(3):
            S[6, 0], S[6, 1], S[6, 2] = 0.0, 0.0, 0.0
            S[6, c] = 1.0
            cross(W[o], S[6], y)
            _project(n, y, S[7])
            for r in range(3):
                by_q[k, r, c] -= S[7, r]
        along = n[0] * reactions[k, 0] + n[1] * reactions[k, 1] + n[2] * reactions[k, 2]
        _slope(along, n, H, reactions[k], geometric[k])
        for r in range(3):
            for c in range(3):
                geometric[k, r, c] *= -1.0


@njit(cache=True, error_model="numpy")
def _turned_back(R, D, out):
    """Fill out with R^T D; R (3, 3), D (3, m)."""
    for r in range(3):
        for c in range(D.shape[1]):
            out[r, c] = R[0, r] * D[0, c] + R[1, r] * D[1, c] + R[2, r] * D[2, c]


@njit(cache=True, error_model="numpy")
def stick_rows_of_bodies(motion, contacts, law, decision, reactions, out):
    """As `stick_rows_of_nodes` for points and shapes on bodies (m = 12, p = 6), in the axes of the shape.

    Columns are the coordinates (x, w) of the point's carrier a, then those of the shape's body b; a node has the first
    three alone. Parameters are the centres of mass of a and of b.
    """
    rows, by_v, by_q, geometric, by_centre, geometric_by_centre, limit, stiffness = out
    frames, scratch, work = frames_of(2, motion, contacts), new_scratch(), new_matrices()
    q, B, shapes, R, W = motion.q, frames.B, frames.shapes, frames.shapes.R, frames.shapes.W
    kind, size, x, S, L, A, K = shapes.kind, shapes.size, scratch.x, scratch.S, scratch.L, work.A, work.K
    DF, tau = work.DF, work.tau
    A_c, A_f, zero, world = np.empty((3, 3)), np.empty((3, 3)), np.zeros(3), np.empty((7, 3))
    n_shapes, alone = kind.size, Law(NONE, law.normal, law.elastic)
    for k in range(decision.shape[0]):
        if decision[k, BITS] & ACTIVE == 0:
            i, o = decision[k, PAIR] // n_shapes, decision[k, PAIR] % n_shapes
            point_place(i, q, contacts, B, x, L)
            X0, X1, X2 = to_frame(0, o, x, R, shapes.p)
            decision[k, FEATURE] = distance_feature(kind[o], size[o], X0, X1, X2)
        i, o, a, lever, spin, v_n, values, found = evaluate(
            k, 2, motion, contacts, frames, alone, True, decision, scratch
        )
        b, scale = contacts.hosts[o], contacts.arms[i, 4]
        limit[k] = scale * static_coefficient(values) * found[1][0] if decision[k, BITS] & ACTIVE != 0 else -1.0
        stiffness[k] = scale * values.k_t
        n, v_rel, H, F = S[0], S[1], S[3:6], L[2]
        slope = 0.0
        if a >= 0:
            # The place of contact is on the surface, not on the point inside: lever g instead of r.
            X0, X1, X2 = to_frame(0, o, x, R, shapes.p)
            g = distance_branch(kind[o], size[o], X0, X1, X2, decision[k, FEATURE], 0, n, H)
            v_rel[0] += (lever - g) * (spin[1] * n[2] - spin[2] * n[1])
            v_rel[1] += (lever - g) * (spin[2] * n[0] - spin[0] * n[2])
            v_rel[2] += (lever - g) * (spin[0] * n[1] - spin[1] * n[0])
            for r in range(3):
                L[3, r], L[4, r] = L[0, r] - g * n[r], L[1, r] - g * n[r]
            lever, slope = g, 1.0
        _project(n, v_rel, world[0])
        for r in range(3):
            rows[k, r] = R[o, 0, r] * world[0, 0] + R[o, 1, r] * world[0, 1] + R[o, 2, r] * world[0, 2]
            world[1, r] = R[o, r, 0] * reactions[k, 0] + R[o, r, 1] * reactions[k, 1] + R[o, r, 2] * reactions[k, 2]
        along = _project(n, world[1], world[2])
        _slope(v_n, n, H, v_rel, A_c)
        _slope(along, n, H, world[1], A_f)
        for r in range(3):
            F[r] = -world[2, r]
            for c in range(3):
                A_c[r, c] *= -1.0
                K[r, c] = (1.0 if r == c else 0.0) - n[r] * n[c]
        for way in range(2):
            A[:] = A_c
            weight_q, weight_v = (1.0, 0.0) if way == 0 else (0.0, 1.0)
            force_derivative(a, b, lever, slope, spin, weight_q, weight_v, zero, W[o], B, S, L, work)
            _turned_back(R[o], DF, by_q[k] if way == 0 else by_v[k])
        if b < 0:
            by_q[k, :, 6:], by_v[k, :, 6:] = 0.0, 0.0
        by_centre[k], geometric_by_centre[k] = 0.0, 0.0
        for side in range(2):
            body = a if side == 0 else b
            if body < 0:
                continue
            sign, keep = (-1.0, 1.0) if side == 0 else (1.0, 0.0)
            for column in range(3):
                delta, moved, y, dF, z = world[3], world[4], world[5], world[6], tau
                for r in range(3):
                    delta[r] = sign * B[body, r, column]
                for r in range(3):
                    moved[r] = keep * delta[r]
                    for c in range(3):
                        moved[r] -= (lever * H[r, c] + slope * n[r] * n[c]) * delta[c]
                y[0] = spin[1] * moved[2] - spin[2] * moved[1]
                y[1] = spin[2] * moved[0] - spin[0] * moved[2]
                y[2] = spin[0] * moved[1] - spin[1] * moved[0]
                for r in range(3):
                    z[r], dF[r] = 0.0, 0.0
                    for c in range(3):
                        z[r] += A_c[r, c] * delta[c] + K[r, c] * y[c]
                        dF[r] += A_f[r, c] * delta[c]
                at = 3 * side + column
                for r in range(3):
                    by_centre[k, r, at] = R[o, 0, r] * z[0] + R[o, 1, r] * z[1] + R[o, 2, r] * z[2]
                for end in range(2):
                    other = a if end == 0 else b
                    sense = -1.0 if end == 0 else 1.0
                    if end == 1 and b < 0:
                        continue
                    for r in range(3):
                        geometric_by_centre[k, 6 * end + r, at] = sense * dF[r]
                    if other < 0:
                        continue
                    cross(moved, F, y)
                    cross(L[3 + end], dF, z)
                    for r in range(3):
                        y[r] += z[r]
                    for r in range(3):
                        for c in range(3):
                            geometric_by_centre[k, 6 * end + 3 + r, at] += sense * B[other, TURN + c, r] * y[c]
        A[:], K[:] = A_f, 0.0
        force_derivative(a, b, lever, slope, spin, 1.0, 0.0, F, W[o], B, S, L, work)
        fill_block(a, b, 1.0, q, contacts, frames, F, L, work)
        geometric[k] = work.block
        if b < 0:
            geometric[k, :, 6:] = 0.0
