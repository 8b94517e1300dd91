"""Rows that hold vertices and edges of one mesh against sliding on another, with all their derivatives.

With the symbols of `stencil.py` and `sticking.py`, P = I - n n^T and the coefficients c_i of two primitives,

    c = P v_rel = 0,   v_rel = sum c_i v_i,        force on x_i   -c_i P mu,

in world axes. The coefficients move with the places, dc_i/dx_j = -(g_ij d n + c_j W_i)^T, and so does the normal,
dn/dx_j = c_j Q/d - W_j n^T = N_j:

    dc/dx_j = -P (d y_j n^T + c_j Y) - (v_n I + n v_rel^T) N_j,        dc/dv_j = c_j P
    d(c_i P mu)/dx_j = -P mu (g_ij d n + c_j W_i)^T - c_i (n mu^T + (n . mu) I) N_j

A vertex of a rigid body is held where the surfaces meet, at the closest point of the other side: at -s, s = d n, from
its own place, as the skin of a round body (`mesh_spin.py`). Held at their own places, vertices that are not equally
near would keep the body from rocking, and a ball from rolling. With its angular velocity omega,

    c = P (sum c_i v_i - omega x s),   torque on it   s x P mu,      by places with ds/dx_i = D_i

Of two edges that of the side which carries is held so, or of the rigid one. A face of the other edge that lies in the
plane of contact, to within a few degrees, is that plane: its normal N = R N_0 takes the place of n in P. All edges that
lie on a face then slide in one plane, and leave a body its two ways of rocking; where edges cross, n is across both,
and differs a little from one crossing to the next, so that a body that may turn about none of them could not rock. N
turns with the body of its face, dN = dphi x N.

Which primitives may be held says `mesh_held.py`.
"""

import numpy as np

from add.kernels.caching import njit
from add.kernels.contact_detection import OMEGA, TURN, TURN_RATE
from add.kernels.contact_pairs import ACTIVE, BITS, FEATURE, PAIR, static_coefficient
from add.kernels.mesh_arrays import EDGE_EDGE, REGION_MASK, points_of, unnumbered
from add.kernels.mesh_contact import evaluate, half_thicknesses, new_work, places_of
from add.kernels.mesh_contact_jacobian import set_motions, turned_torque
from add.kernels.mesh_held import SAME_NORMAL
from add.kernels.mesh_spin import round_side, way_derivatives
from add.kernels.rotation import turn_derivative
from add.kernels.stencil import EDGE_END, EDGES, ENDS, WAYS

#: Coordinates of a pair: those of the vertex or first edge, then those of what it meets.
WIDTH, OWN = 15, 6


@njit(cache=True, inline="always")
def _side_of(k, kind):
    """Return on which side, 0 or 1, point k of a pair is, and which point is the side's first."""
    first = 2 if kind == EDGE_EDGE else 1
    return (0, 0) if k < first else (1, first)


@njit(cache=True, inline="always")
def _begin_of(k, kind, rigid):
    """Return the first of the pair's coordinates that point k moves with."""
    side, first = _side_of(k, kind)
    return OWN * side + (0 if rigid else 3 * (k - first))


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
                at = first[np.searchsorted(keys, min(one, two) * n_c + max(one, two))]
                wide = carriers[two, 1]
                if one > two:
                    at += carriers[one, 1] * wide
                begin = _begin_of(k, kind, points[p[k], 1] >= 0)
                begin_col = _begin_of(m, kind, points[p[m], 1] >= 0)
                for a in range(carriers[one, 1]):
                    for e in range(wide):
                        out[row, begin + a, begin_col + e] = at + wide * a + e


@njit(cache=True)
def add_at(places, factor, blocks, data, slots):
    """Add factor times blocks (k, m, m) to ``data[slots[places]]``."""
    for k in range(places.shape[0]):
        for a in range(places.shape[1]):
            for e in range(places.shape[2]):
                if places[k, a, e] >= 0:
                    data[slots[places[k, a, e]]] += factor * blocks[k, a, e]


@njit(cache=True, inline="always")
def _turning_side(kind, region, one, two, meshes):
    """Return the side, 0 or 1, that is held at the closest point of the other one, if it is a rigid body."""
    spinning, sigma = round_side(one, two, meshes)
    if spinning >= 0:
        return 0 if sigma > 0.0 else 1
    if kind == EDGE_EDGE and region == EDGES:
        side = 0 if meshes.vertex_reach[meshes.body[one], meshes.body[two]] >= 1.0 else 1
        return side if meshes.points[one if side == 0 else two, 1] >= 0 else 1 - side
    return 1 if EDGE_END <= region < ENDS else 0


@njit(cache=True, error_model="numpy", inline="always")
def _dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@njit(cache=True, error_model="numpy")
def _set_plane(edge, frame, meshes, normal, plane):
    """Fill ``plane`` (3,) with the normal of the edge's face that lies across ``normal``; return whether there is one.

    ``frame`` (13, 3) is the state of its rigid body, empty if it stands still.
    """
    best, turned = SAME_NORMAL, np.zeros(3)
    for side in range(2):
        own = meshes.edge_normals[edge, side]
        for a in range(3):
            turned[a] = own[a]
            if frame.shape[0]:
                turned[a] = frame[a, 0] * own[0] + frame[a, 1] * own[1] + frame[a, 2] * own[2]
        along = abs(_dot(turned, normal))
        if along > best:
            best = along
            plane[:] = turned
    return best > SAME_NORMAL


@njit(cache=True, error_model="numpy")
def _plane_derivatives(n, on_face, plane, work, N):
    """Fill N (3, 15) with the derivatives of the plane's normal by the places, and by the turn of what it is on."""
    c, P, Q = work.c, work.P, work.Q
    N[:] = 0.0
    if on_face:
        N[0, 13], N[0, 14] = plane[2], -plane[1]
        N[1, 12], N[1, 14] = -plane[2], plane[0]
        N[2, 12], N[2, 13] = plane[1], -plane[0]
        return
    for j in range(n):
        for a in range(3):
            for b in range(3):
                N[a, 3 * j + b] = c[j] * Q[a, b] - P[WAYS + j, a] * plane[b]


@njit(cache=True, error_model="numpy", inline="always")
def _cross(a, b):
    return np.array((a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]))


@njit(cache=True, error_model="numpy")
def _point_rows(n, d, mu, omega, plane, N, work, out):
    """Fill what ``out`` names, from the normal of the plane and its derivatives N (3, 15).

    c (3,), dc/dx (3, 15) and dc/dv (3, 12), the point forces c_i P mu (4, 3) and their derivatives (12, 15), dc/domega
    (3, 3), the torque (3,) and its derivatives (3, 15).
    """
    rate, Cx, Cv, F, K, by_omega, L, LX = out
    c, g, P, V, S, D = work.c, work.g, work.P, work.V, work.S, work.D
    normal, v_rel, Y, y, held, s = S[0], S[1], S[3:6], S[6], S[7], S[8]
    for a in range(3):
        s[a] = d * normal[a]
        v_rel[a] = 0.0
        for b in range(3):
            Y[a, b] = 0.0
        for k in range(n):
            v_rel[a] += c[k] * V[k, a]
            for b in range(3):
                Y[a, b] += V[k, a] * P[WAYS + k, b]
    v_rel -= _cross(omega, s)
    v_n, along = _dot(v_rel, plane), _dot(mu, plane)
    for a in range(3):
        rate[a] = v_rel[a] - v_n * plane[a]
        held[a] = mu[a] - along * plane[a]
    L[:] = _cross(held, s)
    for i in range(n):
        for a in range(3):
            F[i, a] = c[i] * held[a]
    unit, moved = np.zeros(3), np.zeros(3)
    for b in range(3):
        unit[:] = 0.0
        unit[b] = 1.0
        moved[:] = _cross(unit, s)
        by_omega[:, b] = _dot(moved, plane) * plane - moved
    for at in range(15):
        j, b, dN = at // 3, at % 3, N[:, at]
        moved[:] = 0.0
        if j < n:
            for a in range(3):
                y[a] = 0.0
                for k in range(n):
                    y[a] += g[j, k] * V[k, a]
                moved[a] = -d * y[a] * normal[b] - c[j] * Y[a, b]
                Cv[a, at] = c[j] * ((1.0 if a == b else 0.0) - plane[a] * plane[b])
            moved -= _cross(omega, D[j, :, b])
        pull = along * dN + _dot(mu, dN) * plane
        Cx[:, at] = moved - (_dot(moved, plane) + _dot(v_rel, dN)) * plane - v_n * dN
        LX[:, at] = -_cross(pull, s)
        if j < n:
            LX[:, at] += _cross(held, D[j, :, b])
        for i in range(n):
            by_place = g[i, j] * d * normal[b] + c[j] * P[WAYS + i, b] if j < n else 0.0
            for a in range(3):
                K[3 * i + a, at] = -held[a] * by_place - c[i] * pull[a]


@njit(cache=True, error_model="numpy")
def stick_rows_of_primitives(q, v, theta, meshes, law, rows, reactions, out):
    """Fill ``out`` (StickRows, m = 15, p = 6) for vertices and edges that stick to meshes, in world axes.

    Bits of the rows are completed.
    """
    rate, by_v, by_q, geometric, by_centre, geometric_by_centre, limit, stiffness = out
    places, half, work = places_of(2, q, v, theta, meshes), half_thicknesses(theta, meshes), new_work()
    points, bodies, p = meshes.points, meshes.bodies, work.p
    n_p, n_e, n_f = points.shape[0], meshes.edges.shape[0], meshes.faces.shape[0]
    Cx, Cv, F, K = np.zeros((3, 15)), np.zeros((3, 12)), np.zeros((4, 3)), np.zeros((12, 15))
    U, Z, G, D = np.zeros((5, 3, 6)), np.zeros((4, 3, 6)), np.zeros((3, 3)), np.zeros((3, 3))
    begin, wide, delta, rates = np.zeros(5, dtype=np.int64), np.zeros(5, dtype=np.int64), np.zeros(3), np.zeros(3)
    by_omega, L, LX, spin = np.zeros((3, 3)), np.zeros(3), np.zeros((3, 15)), np.zeros(3)
    plane, N, still = np.zeros(3), np.zeros((3, 15)), np.zeros((0, 3))
    for row in range(rows.shape[0]):
        touches = rows[row, BITS] & ACTIVE != 0
        n, one, two, d, _, _, weight, m, _, values, found = evaluate(
            row, 2, theta, places, meshes, law, True, rows, half, work
        )
        kind, first, second = unnumbered(rows[row, PAIR], n_p, n_e, n_f)
        limit[row] = weight * m * static_coefficient(values) * found[1][0] if touches else -1.0
        stiffness[row] = weight * m * values.k_t
        by_v[row], by_q[row], geometric[row], by_centre[row], geometric_by_centre[row] = 0.0, 0.0, 0.0, 0.0, 0.0
        way_derivatives(n, d, work)
        region = rows[row, FEATURE] & REGION_MASK
        side = _turning_side(kind, region, one, two, meshes)
        turning, other = (points[one, 1], two) if side == 0 else (points[two, 1], one)
        on, stands = points[other, 1], points[other, 0] < 0
        plane[:] = work.S[0]
        on_face = kind == EDGE_EDGE and region == EDGES and turning >= 0 and (on >= 0 or stands)
        if on_face:
            frame = places.B[on] if on >= 0 else still
            on_face = _set_plane(second if side == 0 else first, frame, meshes, work.S[0], plane)
        spin[:] = 0.0
        if turning >= 0:
            spin[:] = places.B[turning, OMEGA]
        _plane_derivatives(n, on_face, plane, work, N)
        _point_rows(n, d, reactions[row], spin, plane, N, work, (rate[row], Cx, Cv, F, K, by_omega, L, LX))
        n_x, wide[n], begin[n] = n, 0, 0
        if on_face and on >= 0:
            # The turn of the plane, behind the places of the points; its columns are moved there.
            n_x, wide[n], begin[n] = n + 1, 6, OWN * (1 - side)
            for a in range(3):
                for e in range(3):
                    U[n, a, e], U[n, a, 3 + e] = 0.0, places.B[on, TURN + a, e]
        for k in range(n):
            carrier, b = points[p[k], 0], points[p[k], 1]
            wide[k] = meshes.carriers[carrier, 1] if carrier >= 0 else 0
            begin[k] = _begin_of(k, kind, b >= 0)
            if b >= 0:
                set_motions(k, p[k], b, 1.0, 0.0, places, U, Z)
            else:
                for a in range(3):
                    for e in range(6):
                        U[k, a, e], Z[k, a, e] = 1.0 if a == e else 0.0, 0.0
        for k in range(n):
            for e in range(wide[k]):
                at_e = begin[k] + e
                for a in range(3):
                    for f in range(3):
                        by_v[row, a, at_e] += Cv[a, 3 * k + f] * U[k, f, e]
                        by_q[row, a, at_e] += Cx[a, 3 * k + f] * U[k, f, e] + Cv[a, 3 * k + f] * Z[k, f, e]
            for i in range(n_x):
                for a in range(wide[k]):
                    for e in range(wide[i]):
                        total = 0.0
                        for f in range(3):
                            for h in range(3):
                                total += U[k, f, a] * K[3 * k + f, 3 * i + h] * U[i, h, e]
                        geometric[row, begin[k] + a, begin[i] + e] += total
            b = points[p[k], 1]
            if b >= 0:
                s = bodies[b, 0]
                turned_torque(1.0, p[k], b, F[k], places, q[s + 3 : s + 6], places.k[b], G, D)
                for a in range(3):
                    for e in range(3):
                        geometric[row, begin[k] + 3 + a, begin[k] + 3 + e] += D[a, e]
        if n_x > n:
            for e in range(6):
                for a in range(3):
                    for f in range(3):
                        by_q[row, a, begin[n] + e] += Cx[a, 3 * n + f] * U[n, f, e]
        if turning >= 0:
            J, by_w = places.B[turning, TURN : TURN + 3], places.B[turning, TURN_RATE : TURN_RATE + 3]
            turns, s = OWN * side + 3, bodies[turning, 0]
            turn_derivative(-1.0, q[s + 3 : s + 6], L, places.k[turning], G)
            for e in range(3):
                for a in range(3):
                    geometric[row, turns + a, turns + e] += G[a, e]
                    for f in range(3):
                        by_v[row, a, turns + e] += by_omega[a, f] * J[f, e]
                        by_q[row, a, turns + e] += by_omega[a, f] * by_w[f, e]
            for i in range(n_x):
                for a in range(3):
                    for e in range(wide[i]):
                        total = 0.0
                        for f in range(3):
                            for h in range(3):
                                total += J[f, a] * LX[f, 3 * i + h] * U[i, h, e]
                        geometric[row, turns + a, begin[i] + e] += total
        for i in range(n):
            b = points[p[i], 1]
            if b < 0:
                continue
            J, omega = places.B[b, TURN : TURN + 3], places.B[b, OMEGA]
            for axis in range(3):
                column = 3 * _side_of(i, kind)[0] + axis
                for a in range(3):
                    delta[a] = -places.B[b, a, axis]
                rates[0] = omega[1] * delta[2] - omega[2] * delta[1]
                rates[1] = omega[2] * delta[0] - omega[0] * delta[2]
                rates[2] = omega[0] * delta[1] - omega[1] * delta[0]
                for a in range(3):
                    for f in range(3):
                        by_centre[row, a, column] += Cx[a, 3 * i + f] * delta[f] + Cv[a, 3 * i + f] * rates[f]
                for k in range(n):
                    for a in range(wide[k]):
                        total = 0.0
                        for f in range(3):
                            for h in range(3):
                                total += U[k, f, a] * K[3 * k + f, 3 * i + h] * delta[h]
                        geometric_by_centre[row, begin[k] + a, column] += total
                t0 = delta[1] * F[i, 2] - delta[2] * F[i, 1]
                t1 = delta[2] * F[i, 0] - delta[0] * F[i, 2]
                t2 = delta[0] * F[i, 1] - delta[1] * F[i, 0]
                for a in range(3):
                    geometric_by_centre[row, begin[i] + 3 + a, column] += J[0, a] * t0 + J[1, a] * t1 + J[2, a] * t2
                if turning >= 0:
                    own = places.B[turning, TURN : TURN + 3]
                    for a in range(3):
                        for f in range(3):
                            for h in range(3):
                                geometric_by_centre[row, OWN * side + 3 + a, column] += (
                                    own[f, a] * LX[f, 3 * i + h] * delta[h]
                                )
