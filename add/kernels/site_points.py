"""Derivatives of sites by numbers: of the forces of a law over them, and of (q, v, theta) -> (y, y_dot) themselves.

`add.kernels.sites` has the equations.
"""

import numpy as np

from add.kernels.borrowed import put
from add.kernels.caching import CALLED, njit
from add.kernels.rotation import fill_rotation, turn
from add.kernels.sites import NODES, POINT, SPIN, WORLD, cross, entry, jacobians, law_values, pull


@njit(**CALLED)
def parameter_vjp(lam, q, sites, frame, f, f_y, f_v, f_p, numbers, out):
    """Add lam^T dr/dtheta, r = -J^T f, to ``out``: the law's numbers, the arms X and the centres X_c.

    With u_a = J_a lam, omega_lam = J_l lam_w, g_b = sum_a (df_a/dy_b)^T u_a, h_b = sum_a (df_a/dy_dot_b)^T u_a, minus

        WORLD              g
        POINT, DIRECTION   R^T (f x omega_lam + g + h x omega)

    is the cotangent of X, its opposite that of X_c.
    """
    kind, dofs, shares, place = sites.kind, sites.dofs, sites.shares, sites.place
    n, r, n_p = f_y.shape[0], f_y.shape[1] // 3, f_p.shape[2]
    u, spin = np.empty(3 * r), np.empty((r, 3))
    bar, turned, g, h, R = np.empty(3), np.empty(3), np.empty(3), np.empty(3), np.empty((3, 3))
    index, weights, rows = numbers
    n_i = index.shape[1]
    for e in range(n):
        for a in range(r):
            b = r * e + a
            code = kind[b]
            u_a = u[3 * a : 3 * a + 3]
            u_a[:] = 0.0
            if code == WORLD:
                continue
            if code == NODES:
                for k in range(shares.shape[1]):
                    if dofs[b, 3 * k] < 0:
                        break
                    for i in range(3):
                        u_a[i] += shares[b, k] * lam[dofs[b, 3 * k + i]]
                continue
            first = dofs[b, 3] if code == POINT else dofs[b, 0]
            turn(1.0, q[first : first + 3], lam[first : first + 3], frame[b, 3:9], spin[a])
            if code == SPIN:
                put(spin[a], u_a)
                continue
            cross(spin[a], frame[b, :3], u_a)
            if code == POINT:
                for i in range(3):
                    u_a[i] += lam[dofs[b, i]]
        for j in range(n_p):
            total = 0.0
            for i in range(3 * r):
                total -= u[i] * f_p[e, i, j]
            if j < n_i:
                if index[e, j] >= 0:
                    out[index[e, j]] += total
            else:
                for k in range(weights.size):
                    if rows[k, e, j - n_i] >= 0:
                        out[rows[k, e, j - n_i]] += weights[k] * total
        for a in range(r):
            b = r * e + a
            code = kind[b]
            if code == NODES or code == SPIN:
                continue
            for i in range(3):
                g[i] = 0.0
                h[i] = 0.0
                for k in range(3 * r):
                    g[i] -= f_y[e, k, 3 * a + i] * u[k]
                    h[i] -= f_v[e, k, 3 * a + i] * u[k]
            if code != WORLD:
                cross(spin[a], f[b], turned)  # minus f x omega_lam
                cross(h, frame[b, 9:], bar)
                for i in range(3):
                    turned[i] += bar[i] + g[i]
                first = dofs[b, 3] if code == POINT else dofs[b, 0]
                fill_rotation(q[first : first + 3], frame[b, 3:9], R)
                for i in range(3):
                    g[i] = R[0, i] * turned[0] + R[1, i] * turned[1] + R[2, i] * turned[2]
            for i in range(3):
                if place[b, i] >= 0:
                    out[place[b, i]] += g[i]
                if code == POINT and place[b, 3 + i] >= 0:
                    out[place[b, 3 + i]] -= g[i]


@njit(**CALLED)
def parameter_jvp(theta_dot, q, sites, frame, f, f_y, f_v, f_p, numbers, out):
    """Add dr/dtheta theta_dot, r = -J^T f, to ``out``: -J^T f' - [0, J_l^T (rho' x f)] with rho' = R (X' - X_c')."""
    kind, dofs, place = sites.kind, sites.dofs, sites.place
    n, r, n_p = f_y.shape[0], f_y.shape[1] // 3, f_p.shape[2]
    p_dot = np.empty((n, n_p))
    law_values(theta_dot, numbers, p_dot)
    f_dot = np.zeros((kind.size, 3))
    y_dot, rate_dot = np.empty(3 * r), np.empty(3 * r)
    moved, couple, R = np.empty(3), np.empty(3), np.empty((3, 3))
    for e in range(n):
        for a in range(r):
            b = r * e + a
            code = kind[b]
            y_a, rate_a = y_dot[3 * a : 3 * a + 3], rate_dot[3 * a : 3 * a + 3]
            y_a[:] = 0.0
            rate_a[:] = 0.0
            if code == NODES or code == SPIN:
                continue
            for i in range(3):
                moved[i] = entry(theta_dot, place[b, i])
                if code == POINT:
                    moved[i] -= entry(theta_dot, place[b, 3 + i])
            if code == WORLD:
                put(moved, y_a)
                continue
            first = dofs[b, 3] if code == POINT else dofs[b, 0]
            w = q[first : first + 3]
            fill_rotation(w, frame[b, 3:9], R)
            for i in range(3):
                y_a[i] = R[i, 0] * moved[0] + R[i, 1] * moved[1] + R[i, 2] * moved[2]
            cross(frame[b, 9:], y_a, rate_a)
            cross(y_a, f[b], couple)
            turn(-1.0, w, couple, frame[b, 3:9], moved)
            for i in range(3):
                out[first + i] -= moved[i]
        for a in range(r):
            for i in range(3):
                total = 0.0
                for k in range(3 * r):
                    total += f_y[e, 3 * a + i, k] * y_dot[k] + f_v[e, 3 * a + i, k] * rate_dot[k]
                for j in range(n_p):
                    total += f_p[e, 3 * a + i, j] * p_dot[e, j]
                f_dot[r * e + a, i] = total
    pull(-1.0, q, sites, frame, f_dot, out)


@njit(**CALLED)
def points_vjp(y_bar, rate_bar, q, v, sites, frame, q_bar, v_bar, theta_bar):
    """Add J^T y_bar + J_v^T rate_bar to q_bar, J^T rate_bar to v_bar, R^T (y_bar + rate_bar x omega) to the arms."""
    kind, dofs, place = sites.kind, sites.dofs, sites.place
    m = dofs.shape[1]
    J, J_v, G, work = np.empty((3, m)), np.empty((3, m)), np.empty((3, 3)), np.empty((2, 3, 3))
    none = np.zeros((kind.size, 3))
    bar, R = np.empty(3), np.empty((3, 3))
    for b in range(kind.size):
        code = kind[b]
        n = jacobians(b, q, v, sites, frame, none, J, J_v, G, work)
        for j in range(n):
            for i in range(3):
                if code != SPIN:  # the place of an angular velocity is no number
                    q_bar[dofs[b, j]] += J[i, j] * y_bar[b, i]
                q_bar[dofs[b, j]] += J_v[i, j] * rate_bar[b, i]
                v_bar[dofs[b, j]] += J[i, j] * rate_bar[b, i]
        if code == NODES or code == SPIN:
            continue
        if code == WORLD:
            for i in range(3):
                if place[b, i] >= 0:
                    theta_bar[place[b, i]] += y_bar[b, i]
            continue
        cross(rate_bar[b], frame[b, 9:], bar)
        for i in range(3):
            bar[i] += y_bar[b, i]
        first = dofs[b, 3] if code == POINT else dofs[b, 0]
        fill_rotation(q[first : first + 3], frame[b, 3:9], R)
        for i in range(3):
            value = R[0, i] * bar[0] + R[1, i] * bar[1] + R[2, i] * bar[2]
            if place[b, i] >= 0:
                theta_bar[place[b, i]] += value
            if code == POINT and place[b, 3 + i] >= 0:
                theta_bar[place[b, 3 + i]] -= value


@njit(**CALLED)
def points_jvp(q_dot, v_dot, theta_dot, q, v, sites, frame, y_dot, rate_dot):
    """Fill the tangents of y and of its rate (n, 3)."""
    kind, dofs, place = sites.kind, sites.dofs, sites.place
    m = dofs.shape[1]
    J, J_v, G, work = np.empty((3, m)), np.empty((3, m)), np.empty((3, 3)), np.empty((2, 3, 3))
    none = np.zeros((kind.size, 3))
    X, rho, turned, R = np.empty(3), np.empty(3), np.empty(3), np.empty((3, 3))
    for b in range(kind.size):
        code = kind[b]
        n = jacobians(b, q, v, sites, frame, none, J, J_v, G, work)
        for i in range(3):
            y_dot[b, i] = 0.0
            rate_dot[b, i] = 0.0
            for j in range(n):
                if code != SPIN:
                    y_dot[b, i] += J[i, j] * q_dot[dofs[b, j]]
                rate_dot[b, i] += J_v[i, j] * q_dot[dofs[b, j]] + J[i, j] * v_dot[dofs[b, j]]
        if code == NODES or code == SPIN:
            continue
        for i in range(3):
            X[i] = entry(theta_dot, place[b, i])
            if code == POINT:
                X[i] -= entry(theta_dot, place[b, 3 + i])
        if code == WORLD:
            for i in range(3):
                y_dot[b, i] += X[i]
            continue
        first = dofs[b, 3] if code == POINT else dofs[b, 0]
        fill_rotation(q[first : first + 3], frame[b, 3:9], R)
        for i in range(3):
            rho[i] = R[i, 0] * X[0] + R[i, 1] * X[1] + R[i, 2] * X[2]
        cross(frame[b, 9:], rho, turned)
        for i in range(3):
            y_dot[b, i] += rho[i]
            rate_dot[b, i] += turned[i]
