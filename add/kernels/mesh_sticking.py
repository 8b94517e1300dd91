"""Rows that hold vertices of one mesh against sliding on another, with all their derivatives.

With the symbols of `stencil.py` and `sticking.py`, P = I - n n^T and the coefficients c_i of a vertex and a face, edge
or vertex,

    c = P v_rel = 0,   v_rel = sum c_i v_i,        force on x_i   -c_i P mu,

in world axes. The coefficients move with the places, dc_i/dx_j = -(g_ij d n + c_j W_i)^T, and so does the normal,
dn/dx_j = c_j Q/d - W_j n^T = N_j:

    dc/dx_j = -P (d y_j n^T + c_j Y) - (v_n I + n v_rel^T) N_j,        dc/dv_j = c_j P
    d(c_i P mu)/dx_j = -P mu (g_ij d n + c_j W_i)^T - c_i (n mu^T + (n . mu) I) N_j

A vertex of a rigid body is held where the surfaces meet, at the closest point of the other side: at -s, s = d n, from
its own place, as the skin of a round body (`mesh_spin.py`). Held at their own places, vertices that are not equally
near would keep the body from rocking, and a ball from rolling. With the angular velocity omega of the body,

    v_rel = sum c_i v_i - omega x s,   torque on it   -J^T (s x P mu),
    dc/dx_j    and by the body as above, and further   -P (omega x ds/dx_j),   d(torque)/dx_j = -J^T (ds/dx_j x P mu)

Which vertices may be held says `mesh_held.py`.
"""

import numpy as np

from add.kernels.caching import njit
from add.kernels.contact_detection import OMEGA, TURN
from add.kernels.contact_pairs import ACTIVE, BITS, PAIR
from add.kernels.mesh_arrays import points_of, unnumbered
from add.kernels.mesh_contact import evaluate, half_thicknesses, new_work, places_of
from add.kernels.mesh_contact_jacobian import set_motions, turned_torque
from add.kernels.mesh_spin import add_cross, add_spin, shift_motions, turned_by_moving, way_derivatives
from add.kernels.rotation import turn_derivative
from add.kernels.stencil import WAYS

#: Coordinates of a pair: those of the vertex, then those of what it meets.
WIDTH, OWN = 15, 6


@njit(cache=True)
def stick_dofs(rows, meshes, dofs, centres):
    """Fill the coordinates (k, 15) of vertices that stick, -1 for none, and the indices (k, 6) of centres of mass."""
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
            begin = 0 if k == 0 else OWN + (3 * (k - 1) if b < 0 else 0)
            for a in range(carriers[carrier, 1]):
                dofs[row, begin + a] = carriers[carrier, 0] + a
            if b >= 0:
                for a in range(3):
                    centres[row, (0 if k == 0 else 3) + a] = bodies[b, 1 + a]


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
                begin = 0 if k == 0 else OWN + (3 * (k - 1) if points[p[k], 1] < 0 else 0)
                begin_col = 0 if m == 0 else OWN + (3 * (m - 1) if points[p[m], 1] < 0 else 0)
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


@njit(cache=True, error_model="numpy")
def _point_rows(n, d, mu, work, Cx, Cv, F, K):
    """Fill dc/dx and dc/dv (3, 12), the point forces c_i P mu in F (4, 3) and their derivatives K (12, 12)."""
    c, g, P, Q, V, S = work.c, work.g, work.P, work.Q, work.V, work.S
    normal, v_rel, Y, y, N = S[0], S[1], S[3:6], S[6], work.A
    v_n = normal[0] * v_rel[0] + normal[1] * v_rel[1] + normal[2] * v_rel[2]
    along = normal[0] * mu[0] + normal[1] * mu[1] + normal[2] * mu[2]
    for a in range(3):
        for b in range(3):
            Y[a, b] = 0.0
            for k in range(n):
                Y[a, b] += V[k, a] * P[WAYS + k, b]
    for i in range(n):
        for a in range(3):
            F[i, a] = c[i] * (mu[a] - along * normal[a])
    for j in range(n):
        for a in range(3):
            y[a] = 0.0
            for k in range(n):
                y[a] += g[j, k] * V[k, a]
            for b in range(3):
                N[a, b] = c[j] * Q[a, b] - P[WAYS + j, a] * normal[b]
        for b in range(3):
            turned, held, slid = 0.0, 0.0, 0.0
            for e in range(3):
                turned += v_rel[e] * N[e, b]
                held += mu[e] * N[e, b]
                slid += normal[e] * (d * y[e] * normal[b] + c[j] * Y[e, b])
            for a in range(3):
                same = 1.0 if a == b else 0.0
                slide = d * y[a] * normal[b] + c[j] * Y[a, b] - slid * normal[a]
                Cx[a, 3 * j + b] = -slide - v_n * N[a, b] - normal[a] * turned
                Cv[a, 3 * j + b] = c[j] * (same - normal[a] * normal[b])
                for i in range(n):
                    K[3 * i + a, 3 * j + b] = -(mu[a] - along * normal[a]) * (
                        g[i, j] * d * normal[b] + c[j] * P[WAYS + i, b]
                    ) - c[i] * (normal[a] * held + along * N[a, b])


@njit(cache=True, error_model="numpy")
def _turn_with_the_way(n, d, B, work, Cx):
    """Fill D (4, 3, 3) = ds/dx_i, and take P (omega x ds/dx_i) from dc/dx (3, 12)."""
    normal, D, omega = work.S[0], work.D, B[OMEGA]
    way_derivatives(n, d, work)
    for i in range(n):
        for b in range(3):
            x0 = omega[1] * D[i, 2, b] - omega[2] * D[i, 1, b]
            x1 = omega[2] * D[i, 0, b] - omega[0] * D[i, 2, b]
            x2 = omega[0] * D[i, 1, b] - omega[1] * D[i, 0, b]
            along = normal[0] * x0 + normal[1] * x1 + normal[2] * x2
            Cx[0, 3 * i + b] -= x0 - along * normal[0]
            Cx[1, 3 * i + b] -= x1 - along * normal[1]
            Cx[2, 3 * i + b] -= x2 - along * normal[2]


@njit(cache=True, error_model="numpy")
def stick_rows_of_vertices(q, v, theta, meshes, law, rows, reactions, out):
    """Fill ``out`` (StickRows, m = 15, p = 6) for vertices that stick to meshes, in world axes; bits are completed."""
    rate, by_v, by_q, geometric, by_centre, geometric_by_centre, limit, stiffness = out
    places, half, work = places_of(2, q, v, theta, meshes), half_thicknesses(theta, meshes), new_work()
    points, bodies, p = meshes.points, meshes.bodies, work.p
    Cx, Cv, F, K = np.zeros((3, 12)), np.zeros((3, 12)), np.zeros((4, 3)), np.zeros((12, 12))
    U, Z, G, D = np.zeros((4, 3, 6)), np.zeros((4, 3, 6)), np.zeros((3, 3)), np.zeros((3, 3))
    begin, wide, delta, rates = np.zeros(4, dtype=np.int64), np.zeros(4, dtype=np.int64), np.zeros(3), np.zeros(3)
    E, shift, moved, turned, torque = np.zeros((3, 6)), np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3)
    for row in range(rows.shape[0]):
        touches = rows[row, BITS] & ACTIVE != 0
        n, _, _, d, _, _, weight, _, _, values, found = evaluate(
            row, 2, theta, places, meshes, law, True, rows, half, work
        )
        normal, v_rel, mu, own = work.S[0], work.S[1], reactions[row], points[p[0], 1]
        if own >= 0 and not meshes.round[meshes.body[p[0]]]:
            add_spin(places.B[own], d, work.S)
        limit[row] = weight * values.c_f * found[1][0] if touches else -1.0
        stiffness[row] = weight * values.k_t
        v_n = normal[0] * v_rel[0] + normal[1] * v_rel[1] + normal[2] * v_rel[2]
        for a in range(3):
            rate[row, a] = v_rel[a] - v_n * normal[a]
        by_v[row], by_q[row], geometric[row], by_centre[row], geometric_by_centre[row] = 0.0, 0.0, 0.0, 0.0, 0.0
        _point_rows(n, d, mu, work, Cx, Cv, F, K)
        E[:] = 0.0
        if own >= 0:
            _turn_with_the_way(n, d, places.B[own], work, Cx)
            for a in range(3):
                shift[a] = -d * normal[a]
        for k in range(n):
            carrier, b = points[p[k], 0], points[p[k], 1]
            wide[k] = meshes.carriers[carrier, 1] if carrier >= 0 else 0
            begin[k] = 0 if k == 0 else OWN + (3 * (k - 1) if b < 0 else 0)
            if b >= 0:
                set_motions(k, p[k], b, 1.0, 0.0, places, U, Z)
                if k == 0:
                    shift_motions(k, places.B[b], 1.0, 0.0, shift, Z, E)
            else:
                for a in range(3):
                    for e in range(6):
                        U[k, a, e], Z[k, a, e] = 1.0 if a == e else 0.0, 0.0
        for k in range(n):
            for e in range(wide[k]):
                at = begin[k] + e
                for a in range(3):
                    for f in range(3):
                        by_v[row, a, at] += Cv[a, 3 * k + f] * (U[k, f, e] + (E[f, e] if k == 0 else 0.0))
                        by_q[row, a, at] += Cx[a, 3 * k + f] * U[k, f, e] + Cv[a, 3 * k + f] * Z[k, f, e]
            for i in range(n):
                for a in range(wide[k]):
                    for e in range(wide[i]):
                        total = 0.0
                        for f in range(3):
                            way = U[k, f, a] + (E[f, a] if k == 0 else 0.0)
                            for h in range(3):
                                total += way * K[3 * k + f, 3 * i + h] * U[i, h, e]
                        geometric[row, begin[k] + a, begin[i] + e] += total
            b = points[p[k], 1]
            if b >= 0:
                s = bodies[b, 0]
                turned_torque(1.0, p[k], b, F[k], places, q[s + 3 : s + 6], places.k[b], G, D)
                for a in range(3):
                    for e in range(3):
                        geometric[row, begin[k] + 3 + a, begin[k] + 3 + e] += D[a, e]
        if own >= 0:
            for i in range(n):
                for e in range(wide[i]):
                    for a in range(3):
                        moved[a] = 0.0
                        for f in range(3):
                            moved[a] += work.D[i, a, f] * U[i, f, e]
                    turned_by_moving(moved, -1.0, F[0], places.B[own], turned)
                    for a in range(3):
                        geometric[row, 3 + a, begin[i] + e] += turned[a]
            s = bodies[own, 0]
            torque[0], torque[1], torque[2] = 0.0, 0.0, 0.0
            add_cross(1.0, shift, F[0], torque)
            turn_derivative(-1.0, q[s + 3 : s + 6], torque, places.k[own], G)
            for a in range(3):
                for e in range(3):
                    geometric[row, 3 + a, 3 + e] += G[a, e]
        for i in range(n):
            b = points[p[i], 1]
            if b < 0:
                continue
            J, omega = places.B[b, TURN : TURN + 3], places.B[b, OMEGA]
            for axis in range(3):
                column = (0 if i == 0 else 3) + axis
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
                            way = U[k, f, a] + (E[f, a] if k == 0 else 0.0)
                            for h in range(3):
                                total += way * K[3 * k + f, 3 * i + h] * delta[h]
                        geometric_by_centre[row, begin[k] + a, column] += total
                t0 = delta[1] * F[i, 2] - delta[2] * F[i, 1]
                t1 = delta[2] * F[i, 0] - delta[0] * F[i, 2]
                t2 = delta[0] * F[i, 1] - delta[1] * F[i, 0]
                for a in range(3):
                    geometric_by_centre[row, begin[i] + 3 + a, column] += J[0, a] * t0 + J[1, a] * t1 + J[2, a] * t2
                if own >= 0:
                    for a in range(3):
                        moved[a] = 0.0
                        for f in range(3):
                            moved[a] += work.D[i, a, f] * delta[f]
                    turned_by_moving(moved, -1.0, F[0], places.B[own], turned)
                    for a in range(3):
                        geometric_by_centre[row, 3 + a, column] += turned[a]
