"""Derivatives by places and velocities of the forces of `mesh_contact.py`, whose symbols these are.

Coefficients move with the places, so that

    d(v_rel)/dx_i = -(d y_i n^T + c_i Y),     y_i = sum g_ij v_j,   Y = sum v_j W_j^T
    dF/dx_i       = c_i A + z_i n^T,          A = F_d n^T + F_n Q / d - F_v Y,   z_i = -(F_n W_i + d F_v y_i)
    d(c_j F)/dx_i = c_j c_i A + c_j z_i n^T - c_i F W_j^T - g_ij d F n^T
    d(c_j F)/dv_i = c_j c_i F_v

with the derivatives F_d, F_n, F_v of F by d, n and v_rel.
"""

from typing import NamedTuple

import numpy as np

from add.kernels.caching import njit
from add.kernels.contact_detection import OMEGA, TURN, TURN_RATE
from add.kernels.contact_laws import normal_law
from add.kernels.contact_pairs import ACTIVE, BEYOND, BITS, PAIR, QUADRATIC
from add.kernels.mesh_arrays import MOLLIFIED, points_of, unnumbered
from add.kernels.mesh_contact import evaluate, half_thicknesses, new_work, places_of
from add.kernels.mesh_spin import add_cross, round_side, shift_motions, spin_derivatives, turned_by_moving
from add.kernels.rotation import turn_derivative
from add.kernels.stencil import WAYS
from add.typing import IntArray


@njit(cache=True, error_model="numpy", inline="always")
def point_derivatives(n, d, v_n, weight, m, energy, values, found, mollified, work):
    """Fill K (12, 12) = dr/dx and C (3, 3) with dr_j/dv_i = c_j c_i C of one evaluated row (order 2)."""
    normal, coulomb, friction, _ = found
    f_n, f_n_d, f_n_v = normal
    _, f_c_d, f_c_v = coulomb
    _, m_over_u, m_u, m_f = friction
    c, g, P, Q, S, V, F = work.c, work.g, work.P, work.Q, work.S, work.V, work.F
    K, C, A, Fn, z = work.K, work.C, work.A, work.Fn, work.z
    normal_, v_rel, t = S[0], S[1], S[2]
    m_t = m_u - m_over_u
    for a in range(3):
        p_a = (f_n_v + m_over_u) * normal_[a] - m_f * f_c_v * t[a]
        for b in range(3):
            same = 1.0 if a == b else 0.0
            Fn[a, b] = (f_n + m_over_u * v_n) * same + p_a * v_rel[b] + m_t * v_n * t[a] * t[b]
            C[a, b] = p_a * normal_[b] - m_over_u * same - m_t * t[a] * t[b]
    # A, with Y in the columns of S[3:6]
    for a in range(3):
        for b in range(3):
            S[3 + a, b] = 0.0
            for k in range(n):
                S[3 + a, b] += V[k, a] * P[WAYS + k, b]
    for a in range(3):
        F_d = -(f_n_d * normal_[a] - m_f * f_c_d * t[a])
        for b in range(3):
            value = F_d * normal_[b]
            for e in range(3):
                value += Fn[a, e] * Q[e, b] - C[a, e] * S[3 + e, b]
            A[a, b] = value
    for i in range(n):
        for a in range(3):
            S[6, a] = 0.0
            for k in range(n):
                S[6, a] += g[i, k] * V[k, a]
        for a in range(3):
            value = 0.0
            for e in range(3):
                value -= Fn[a, e] * P[WAYS + i, e] + d * C[a, e] * S[6, e]
            z[i, a] = value
    scale = -weight * m
    for j in range(n):
        for i in range(n):
            for a in range(3):
                along = scale * (c[j] * z[i, a] - g[i, j] * d * F[a])
                pull = scale * c[i] * F[a]
                for b in range(3):
                    K[3 * j + a, 3 * i + b] = scale * c[j] * c[i] * A[a, b] + along * normal_[b] - pull * P[WAYS + j, b]
    if mollified:
        M, N = work.M, work.N
        # f_e alone: the damping is no part of the energy.
        f_e = values.k_n * work.S[7, 0]
        for j in range(n):
            for i in range(n):
                for a in range(3):
                    for b in range(3):
                        K[3 * j + a, 3 * i + b] += weight * (
                            values.k_n * energy * N[3 * j + a, 3 * i + b]
                            - f_e * M[j, a] * c[i] * normal_[b]
                            - c[j] * F[a] * M[i, b]
                        )
    for a in range(3):
        for b in range(3):
            C[a, b] *= scale


class Slots(NamedTuple):
    """The first entries of the blocks in a pattern.

    ``keys`` (m,) sorted: number of the lower carrier times the number of carriers, plus the higher one; ``first`` (m,)
    of the block (lower, higher), behind which (higher, lower) stands.
    """

    keys: IntArray
    first: IntArray


@njit(cache=True)
def carrier_keys(rows, meshes):
    """Return the sorted keys of `Slots` of all carriers of the rows."""
    n_c, points = meshes.carriers.shape[0], meshes.points
    n_p, n_e, n_f = points.shape[0], meshes.edges.shape[0], meshes.faces.shape[0]
    keys, n, p = np.empty(10 * rows.shape[0], dtype=np.int64), 0, np.zeros(4, dtype=np.int64)
    for row in range(rows.shape[0]):
        kind, i, j = unnumbered(rows[row, PAIR], n_p, n_e, n_f)
        size = points_of(kind, i, j, meshes, p)
        for a in range(size):
            for b in range(a + 1):
                one, two = points[p[a], 0], points[p[b], 0]
                if one >= 0 and two >= 0:
                    keys[n] = min(one, two) * n_c + max(one, two)
                    n += 1
    return np.unique(keys[:n])


@njit(cache=True)
def block_entries(keys, meshes):
    """Return the first entry (m,) of each block and (rows, cols) of all entries."""
    n_c, carriers = meshes.carriers.shape[0], meshes.carriers
    first, n = np.empty(keys.size, dtype=np.int64), 0
    for k in range(keys.size):
        one, two = keys[k] // n_c, keys[k] % n_c
        first[k] = n
        n += carriers[one, 1] * carriers[two, 1] * (1 if one == two else 2)
    rows, cols = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    n = 0
    for k in range(keys.size):
        one, two = keys[k] // n_c, keys[k] % n_c
        for side in range(1 if one == two else 2):
            s, w = carriers[one if side == 0 else two, 0], carriers[one if side == 0 else two, 1]
            s_col, w_col = carriers[two if side == 0 else one, 0], carriers[two if side == 0 else one, 1]
            for a in range(w):
                for b in range(w_col):
                    rows[n], cols[n] = s + a, s_col + b
                    n += 1
    return first, rows, cols


@njit(cache=True, error_model="numpy", inline="always")
def _first_entry(one, two, n_c, keys, first, carriers):
    """Return where the block of the rows of carrier one and the columns of carrier two begins."""
    at = first[np.searchsorted(keys, min(one, two) * n_c + max(one, two))]
    return at if one <= two else at + carriers[one, 1] * carriers[two, 1]


@njit(cache=True, error_model="numpy", inline="always")
def set_motions(k, i, b, weight_q, weight_v, places, U, Z):
    """Fill U[k], Z[k] (3, 6): dx/dq and w_q dv/dq + w_v dv/dv of point i of rigid body b."""
    l, B = places.arms[i], places.B[b]
    w0, w1, w2 = B[OMEGA, 0], B[OMEGA, 1], B[OMEGA, 2]
    for a in range(3):
        for e in range(3):
            U[k, a, e] = 1.0 if a == e else 0.0
            Z[k, a, e] = weight_v if a == e else 0.0
    for e in range(3):
        j0, j1, j2 = B[TURN, e], B[TURN + 1, e], B[TURN + 2, e]
        u0, u1, u2 = j1 * l[2] - j2 * l[1], j2 * l[0] - j0 * l[2], j0 * l[1] - j1 * l[0]
        U[k, 0, 3 + e], U[k, 1, 3 + e], U[k, 2, 3 + e] = u0, u1, u2
        r0, r1, r2 = B[TURN_RATE, e], B[TURN_RATE + 1, e], B[TURN_RATE + 2, e]
        Z[k, 0, 3 + e] = weight_q * (r1 * l[2] - r2 * l[1] + w1 * u2 - w2 * u1) + weight_v * u0
        Z[k, 1, 3 + e] = weight_q * (r2 * l[0] - r0 * l[2] + w2 * u0 - w0 * u2) + weight_v * u1
        Z[k, 2, 3 + e] = weight_q * (r0 * l[1] - r1 * l[0] + w0 * u1 - w1 * u0) + weight_v * u2


@njit(cache=True, error_model="numpy")
def turned_torque(weight, i, b, rho, places, w, k, G, D):
    """Fill D (3, 3) with weight d(J^T (l x rho))/dw at fixed rho."""
    l, B = places.arms[i], places.B[b]
    tau = (l[1] * rho[2] - l[2] * rho[1], l[2] * rho[0] - l[0] * rho[2], l[0] * rho[1] - l[1] * rho[0])
    turn_derivative(-1.0, w, tau, k, G)
    for e in range(3):
        j0, j1, j2 = B[TURN, e], B[TURN + 1, e], B[TURN + 2, e]
        u0, u1, u2 = j1 * l[2] - j2 * l[1], j2 * l[0] - j0 * l[2], j0 * l[1] - j1 * l[0]
        t0, t1, t2 = u1 * rho[2] - u2 * rho[1], u2 * rho[0] - u0 * rho[2], u0 * rho[1] - u1 * rho[0]
        for a in range(3):
            D[a, e] = weight * (G[a, e] + B[TURN, a] * t0 + B[TURN + 1, a] * t1 + B[TURN + 2, a] * t2)


@njit(cache=True, error_model="numpy")
def mesh_contact_jacobian(q, v, theta, meshes, law, rows, weight_q, weight_v, slots, data, entries):
    """Add weight_q dr/dq + weight_v dr/dv, r minus the generalised forces, to data[entries], of replayed rows."""
    places, half, work = places_of(2, q, v, theta, meshes), half_thicknesses(theta, meshes), new_work()
    U, Z, G, D, rho = np.zeros((4, 3, 6)), np.zeros((4, 3, 6)), np.zeros((3, 3)), np.zeros((3, 3)), np.zeros(3)
    T, E, shift, turned, own = np.zeros((3, 6)), np.zeros((3, 6)), np.zeros(3), np.zeros(3), -1
    points, carriers, n_c = meshes.points, meshes.carriers, meshes.carriers.shape[0]
    keys, first = slots.keys, slots.first
    for row in range(rows.shape[0]):
        if rows[row, BITS] & ACTIVE == 0:
            continue
        n, one, two, d, depth, v_n, weight, m, energy, values, found = evaluate(
            row, 2, theta, places, meshes, law, True, rows, half, work
        )
        spinning, sigma = round_side(one, two, meshes)
        mollified = rows[row, BITS] & MOLLIFIED != 0
        if mollified:
            bits = rows[row, BITS]
            work.S[7, 0], _, _ = normal_law(
                law.elastic, depth, values.thickness, values.onset, bits & QUADRATIC != 0, bits & BEYOND != 0
            )
        point_derivatives(n, d, v_n, weight, m, energy, values, found, mollified, work)
        p, c, K, C = work.p, work.c, work.K, work.C
        if spinning >= 0:
            spin_derivatives(n, d, places.B[spinning], work)
            own = points[one if sigma > 0.0 else two, 0]
            for a in range(3):
                shift[a] = -sigma * d * work.S[0, a]
        any_rigid = False
        for k in range(n):
            b = points[p[k], 1]
            if b >= 0:
                any_rigid = True
                set_motions(k, p[k], b, weight_q, weight_v, places, U, Z)
                if b == spinning:
                    shift_motions(k, places.B[b], weight_q, weight_v, shift, Z, E)
        for k in range(n):
            one = points[p[k], 0]
            if one < 0:
                continue
            for i in range(n):
                two = points[p[i], 0]
                if two < 0:
                    continue
                at = _first_entry(one, two, n_c, keys, first, carriers)
                wide, wide_row = carriers[two, 1], carriers[one, 1]
                by_v = c[k] * c[i]
                if not any_rigid:
                    by_v *= weight_v
                    for a in range(3):
                        for e in range(3):
                            data[entries[at + 3 * a + e]] += weight_q * K[3 * k + a, 3 * i + e] + by_v * C[a, e]
                    continue
                for a in range(3):
                    for e in range(wide):
                        if wide == 3:
                            T[a, e] = weight_q * K[3 * k + a, 3 * i + e] + by_v * weight_v * C[a, e]
                        else:
                            value = 0.0
                            for f in range(3):
                                value += weight_q * K[3 * k + a, 3 * i + f] * U[i, f, e] + by_v * C[a, f] * Z[i, f, e]
                            T[a, e] = value
                for a in range(wide_row):
                    for e in range(wide):
                        if wide_row == 3:
                            value = T[a, e]
                        else:
                            value = U[k, 0, a] * T[0, e] + U[k, 1, a] * T[1, e] + U[k, 2, a] * T[2, e]
                            if points[p[k], 1] == spinning:
                                value += E[0, a] * T[0, e] + E[1, a] * T[1, e] + E[2, a] * T[2, e]
                        data[entries[at + wide * a + e]] += value
            b = points[p[k], 1]
            if b >= 0 and weight_q != 0.0:
                for a in range(3):
                    rho[a] = -weight * m * c[k] * work.F[a]
                    if mollified:
                        rho[a] += weight * values.k_n * energy * work.M[k, a]
                s = meshes.bodies[b, 0]
                turned_torque(weight_q, p[k], b, rho, places, q[s + 3 : s + 6], places.k[b], G, D)
                at = _first_entry(one, one, n_c, keys, first, carriers)
                for a in range(3):
                    for e in range(3):
                        data[entries[at + 6 * (3 + a) + 3 + e]] += D[a, e]
        if spinning < 0 or weight_q == 0.0:
            continue
        # The torque of the round body's skin: by the way from its primitive, and by how that torque is turned.
        for i in range(n):
            two = points[p[i], 0]
            if two < 0:
                continue
            at, wide = _first_entry(own, two, n_c, keys, first, carriers), carriers[two, 1]
            for e in range(wide):
                for a in range(3):
                    rho[a] = work.D[i, a, e] if wide == 3 else 0.0
                    if wide == 6:
                        for f in range(3):
                            rho[a] += work.D[i, a, f] * U[i, f, e]
                turned_by_moving(rho, weight_q * weight * m, work.F, places.B[spinning], turned)
                for a in range(3):
                    data[entries[at + wide * (3 + a) + e]] += turned[a]
        rho[0], rho[1], rho[2] = 0.0, 0.0, 0.0
        add_cross(weight * m * d, work.S[0], work.F, rho)
        s = meshes.bodies[spinning, 0]
        turn_derivative(-1.0, q[s + 3 : s + 6], rho, places.k[spinning], G)
        at = _first_entry(own, own, n_c, keys, first, carriers)
        for a in range(3):
            for e in range(3):
                data[entries[at + 6 * (3 + a) + 3 + e]] += weight_q * G[a, e]
