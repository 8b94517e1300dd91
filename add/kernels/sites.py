"""Vectors y carried by bodies: values, rates, forces, and the matrices of a law of forces over them; its numbers.

A site is one of

    WORLD      y = X                          rate 0               (X read from theta)
    NODES      y = sum_k w_k x_k              rate sum_k w_k v_k
    POINT      y = x + rho, rho = R (X - X_c) rate x_dot + omega x rho
    DIRECTION  y = rho, rho = R X             rate omega x rho
    SPIN       y = 0                          rate omega = J_l w_dot

of a rigid body with centre of mass x and R = exp([w]x). With J = d(rate)/d(q_dot), which is dy/dq too (but for SPIN,
whose y no law may read), forces f on the sites of an interaction enter the residual as -J^T f. Numbers that theta
does not hold have the index -1 and are zero.

Columns of J: a node's three coordinates each, x and w of a POINT, w of a DIRECTION or a SPIN. ``frame`` (n_f, 12) keeps
rho, the coefficients of J_l and omega of rigid sites from `evaluate` for the other kernels.
"""

from typing import Any, NamedTuple

import numpy as np

from add.kernels.borrowed import put
from add.kernels.caching import CALLED, njit
from add.kernels.rotation import fill_jacobian, fill_rotation, jacobian_coefficients, turn, turn_derivative


class LawNumbers(NamedTuple):
    """Places of the numbers p of a law: ``index`` (n, n_i) and ``rows`` (n_rows, n, n_s) in theta, -1 for zero.

    ``weights`` (n_rows,) are those of the signal at this time.
    """

    index: Any
    weights: Any
    rows: Any


@njit(**CALLED)
def entry(theta, i):
    """Return theta[i], or zero for i = -1."""
    return theta[i] if i >= 0 else 0.0


@njit(**CALLED)
def law_values(theta, numbers, p):
    """Fill p (n, n_i + n_s): columns read from theta at ``index``, then a signal's, sum_k weights_k theta[rows_k]."""
    index, weights, rows = numbers
    n_i = index.shape[1]
    for e in range(p.shape[0]):
        for j in range(n_i):
            p[e, j] = entry(theta, index[e, j])
        for j in range(rows.shape[2]):
            total = 0.0
            for k in range(weights.size):
                total += weights[k] * entry(theta, rows[k, e, j])
            p[e, n_i + j] = total


WORLD, NODES, POINT, DIRECTION, SPIN = 0, 1, 2, 3, 4


class SiteArrays(NamedTuple):
    """Of each site: the code of its kind, coordinates (n_f, m) that move it, shares (n_f, m // 3) of its nodes.

    ``place`` (n_f, 6) are the indices in theta of X, then of X_c.
    """

    kind: Any
    dofs: Any
    shares: Any
    place: Any


@njit(**CALLED)
def cross(a, b, out):
    """Fill out with a x b."""
    out[0] = a[1] * b[2] - a[2] * b[1]
    out[1] = a[2] * b[0] - a[0] * b[2]
    out[2] = a[0] * b[1] - a[1] * b[0]


@njit(**CALLED)
def evaluate(q, v, theta, sites, numbers, y, y_dot, frame, p):
    """Fill y, y_dot (n_f, 3) and frame (n_f, 12) of all sites, and the law's numbers p."""
    kind, dofs, shares, place = sites.kind, sites.dofs, sites.shares, sites.place
    law_values(theta, numbers, p)
    R = np.empty((3, 3))
    X = np.empty(3)
    for b in range(kind.size):
        code = kind[b]
        for i in range(3):
            y[b, i] = 0.0
            y_dot[b, i] = 0.0
            X[i] = entry(theta, place[b, i])
        if code == WORLD:
            for i in range(3):
                y[b, i] = X[i]
            continue
        if code == NODES:
            for k in range(shares.shape[1]):
                if dofs[b, 3 * k] < 0:
                    break
                for i in range(3):
                    y[b, i] += shares[b, k] * q[dofs[b, 3 * k + i]]
                    y_dot[b, i] += shares[b, k] * v[dofs[b, 3 * k + i]]
            continue
        first = dofs[b, 3] if code == POINT else dofs[b, 0]
        w = q[first : first + 3]
        rho, coefficients, omega = frame[b, :3], frame[b, 3:9], frame[b, 9:]
        jacobian_coefficients(w[0] * w[0] + w[1] * w[1] + w[2] * w[2], coefficients)
        turn(1.0, w, v[first : first + 3], coefficients, omega)
        if code == SPIN:
            for i in range(3):
                y_dot[b, i] = omega[i]
            continue
        if code == POINT:
            for i in range(3):
                X[i] -= entry(theta, place[b, 3 + i])
        fill_rotation(w, coefficients, R)
        for i in range(3):
            rho[i] = R[i, 0] * X[0] + R[i, 1] * X[1] + R[i, 2] * X[2]
        cross(omega, rho, y_dot[b])
        for i in range(3):
            y[b, i] = rho[i]
            if code == POINT:
                y[b, i] += q[dofs[b, i]]
                y_dot[b, i] += v[dofs[b, i]]


@njit(**CALLED)
def pull(factor, q, sites, frame, f, out):
    """Add factor J^T f to ``out`` (n,); for a POINT J^T f = [f, J_l^T (rho x f)]."""
    kind, dofs, shares = sites.kind, sites.dofs, sites.shares
    couple = np.empty(3)
    turned = np.empty(3)
    for b in range(kind.size):
        code = kind[b]
        if code == WORLD:
            continue
        if code == NODES:
            for k in range(shares.shape[1]):
                if dofs[b, 3 * k] < 0:
                    break
                for i in range(3):
                    out[dofs[b, 3 * k + i]] += factor * shares[b, k] * f[b, i]
            continue
        first = dofs[b, 0]
        if code == POINT:
            first = dofs[b, 3]
            for i in range(3):
                out[dofs[b, i]] += factor * f[b, i]
        if code == SPIN:
            put(f[b], couple)
        else:
            cross(frame[b, :3], f[b], couple)
        turn(-1.0, q[first : first + 3], couple, frame[b, 3:9], turned)
        for i in range(3):
            out[first + i] += factor * turned[i]


@njit(**CALLED)
def jacobians(b, q, v, sites, frame, f, J, J_v, G, work):
    """Fill J and J_v = d(rate)/dq (3, m), and G (3, 3), the w-w block of d(J^T f)/dq at fixed f; return their columns.

    POINT, DIRECTION  J_w = -[rho]x J_l =: A,  J_v,w = -[rho]x D + [omega]x A,  G = d(J_l^T (rho x f))/dw - J_l^T [f]x A
    SPIN              J_w = J_l,  J_v,w = D,  G = d(J_l^T f)/dw

    with D = d omega/dw. ``work`` is (2, 3, 3). G is left alone for other kinds.
    """
    kind, dofs, shares = sites.kind, sites.dofs, sites.shares
    code = kind[b]
    if code == WORLD:
        return 0
    if code == NODES:
        n = 0
        while n < dofs.shape[1] and dofs[b, n] >= 0:
            for i in range(3):
                J[i, n] = 0.0
                J_v[i, n] = 0.0
            J[n % 3, n] = shares[b, n // 3]
            n += 1
        return n
    at = 3 if code == POINT else 0
    if code == POINT:
        for i in range(3):
            for j in range(3):
                J[i, j] = 0.0
                J_v[i, j] = 0.0
            J[i, i] = 1.0
    first = dofs[b, at]
    w = q[first : first + 3]
    rho, coefficients, omega = frame[b, :3], frame[b, 3:9], frame[b, 9:]
    J_l, D = work[0], work[1]
    fill_jacobian(1.0, w, coefficients, J_l)
    turn_derivative(1.0, w, v[first : first + 3], coefficients, D)
    if code == SPIN:
        for i in range(3):
            for j in range(3):
                J[i, j] = J_l[i, j]
                J_v[i, j] = D[i, j]
        turn_derivative(-1.0, w, f[b], coefficients, G)
        return 3
    for j in range(3):
        for i in range(3):
            k, l = (i + 1) % 3, (i + 2) % 3
            J[i, at + j] = rho[l] * J_l[k, j] - rho[k] * J_l[l, j]
        for i in range(3):
            k, l = (i + 1) % 3, (i + 2) % 3
            turned = rho[l] * D[k, j] - rho[k] * D[l, j]
            J_v[i, at + j] = turned + omega[k] * J[l, at + j] - omega[l] * J[k, at + j]
    couple = D[0]  # D is done with
    cross(rho, f[b], couple)
    turn_derivative(-1.0, w, couple, coefficients, G)
    for j in range(3):
        for i in range(3):
            k, l = (i + 1) % 3, (i + 2) % 3
            lever = f[b, k] * J[l, at + j] - f[b, l] * J[k, at + j]
            for c in range(3):
                G[c, j] -= J_l[i, c] * lever
    return at + 3


@njit(**CALLED)
def assemble(weights, q, v, sites, frame, f, f_y, f_v, data, slots):
    """Add w_q dr/dq + w_v dr/dv of r = -J^T f(y, y_dot) to ``data[slots]``.

    dr_a/dq_b = -J_a^T (df_a/dy_b J_b + df_a/dy_dot_b J_v,b) - G_a,  dr_a/dv_b = -J_a^T df_a/dy_dot_b J_b

    Dense over the columns of all sites of an interaction, in the order of `add.equations.sites.Sites.pattern`.
    """
    weight_q, weight_v = weights
    kind, dofs, shares = sites.kind, sites.dofs, sites.shares
    n, r, m = f_y.shape[0], f_y.shape[1] // 3, dofs.shape[1]
    J, J_v, G = np.empty((r, 3, m)), np.empty((r, 3, m)), np.empty((r, 3, 3))
    work, T = np.empty((2, 3, 3)), np.empty((3, m))
    by_y, by_rate = np.empty((3, 3)), np.empty((3, 3))
    counts = np.empty(r, dtype=np.int64)
    position = 0
    for e in range(n):
        if m == 3 and r == 2 and kind[2 * e] == NODES and kind[2 * e + 1] == NODES:
            # Springs between particles, thousands of them: blocks without any products.
            for a in range(2):
                for b in range(2):
                    factor = shares[2 * e + a, 0] * shares[2 * e + b, 0]
                    for i in range(3):
                        for j in range(3):
                            y_ij, v_ij = f_y[e, 3 * a + i, 3 * b + j], f_v[e, 3 * a + i, 3 * b + j]
                            slot = slots[position + 6 * (3 * a + i) + 3 * b + j]
                            data[slot] -= factor * (weight_q * y_ij + weight_v * v_ij)
            position += 36
            continue
        total = 0
        for a in range(r):
            b = r * e + a
            counts[a] = jacobians(b, q, v, sites, frame, f, J[a], J_v[a], G[a], work)
            total += counts[a]
        row = 0
        for a in range(r):
            column = 0
            nodes = kind[r * e + a] == NODES
            for b in range(r):
                for i in range(3):
                    for k in range(3):
                        y_ik, v_ik = f_y[e, 3 * a + i, 3 * b + k], f_v[e, 3 * a + i, 3 * b + k]
                        by_y[i, k] = weight_q * y_ik + weight_v * v_ik
                        by_rate[i, k] = weight_q * v_ik
                if kind[r * e + b] == NODES:
                    # J has one entry a column and J_v none.
                    for j in range(counts[b]):
                        for i in range(3):
                            T[i, j] = J[b, j % 3, j] * by_y[i, j % 3]
                else:
                    for i in range(3):
                        for j in range(counts[b]):
                            value = 0.0
                            for k in range(3):
                                value += by_y[i, k] * J[b, k, j] + by_rate[i, k] * J_v[b, k, j]
                            T[i, j] = value
                for i in range(counts[a]):
                    base = position + (row + i) * total + column
                    if nodes:
                        for j in range(counts[b]):
                            data[slots[base + j]] -= J[a, i % 3, i] * T[i % 3, j]
                    else:
                        for j in range(counts[b]):
                            value = J[a, 0, i] * T[0, j] + J[a, 1, i] * T[1, j] + J[a, 2, i] * T[2, j]
                            data[slots[base + j]] -= value
                column += counts[b]
            code = kind[r * e + a]
            if code >= POINT:
                at = row + (3 if code == POINT else 0)
                for i in range(3):
                    for j in range(3):
                        data[slots[position + (at + i) * total + at + j]] -= weight_q * G[a, i, j]
            row += counts[a]
        position += total * total
