"""Rows that close loops of trees: equations between two frames, with first and second derivatives.

A frame is six entries of X: origin x and rotation vector w, R = exp([w]x). With d = R_a e and g = R_b f, e and f
constant unit vectors, a row is

    AT     c = d . (x_a - x_b)           the origin of b stays in the plane of a's frame across e
    ALONG  c = d . g                     g stays across d
    APART  c = |x_a - x_b| - L           the origins keep their distance

Derivatives by small turns in world axes (omega = J_l w_dot) are pulled to w by J_l^T.
"""

import numpy as np

from add.kernels.caching import njit
from add.kernels.ordering import add_congruent, fill_turned
from add.kernels.rotation import fill_jacobian, fill_rotation, jacobian_coefficients, turn, turn_derivative

#: Kinds of rows.
AT, ALONG, APART = 0, 1, 2


@njit(cache=True)
def _cross(a, b, out):
    """Fill out (3,) = a x b; return a . b."""
    for i in range(3):
        j, l = (i + 1) % 3, (i + 2) % 3
        out[i] = a[j] * b[l] - a[l] * b[j]
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@njit(cache=True)
def _turned(w, axis, k, R, out):
    """Fill the coefficients k of a rotation vector, R, and out (3,) = R axis."""
    jacobian_coefficients(w[0] * w[0] + w[1] * w[1] + w[2] * w[2], k)
    fill_rotation(w, k, R)
    fill_turned(R, axis, out)


@njit(cache=True)
def _apart(x, frames, r):
    """Fill r (3,), from the origin of b to that of a; return its length."""
    for i in range(3):
        r[i] = x[frames[0] + i] - x[frames[1] + i]
    return np.sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2])


@njit(cache=True)
def loop_rows(kind, frames, axes, length, x, c, G):
    """Fill the rows and their derivatives by (x_a, w_a, x_b, w_b).

    Parameters
    ----------
    kind : (m,)
    frames : (m, 2) first entries of both frames in x
    axes : (m, 2, 3) e and f
    length : (m,) L of APART [m]
    x : entries of X
    c, G : (m,) and (m, 12), filled
    """
    k, other, R, (r, d, g, t) = np.empty(6), np.empty(6), np.empty((3, 3)), np.empty((4, 3))
    for i in range(kind.size):
        a, b = frames[i]
        w, v = x[a + 3 : a + 6], x[b + 3 : b + 6]
        size = _apart(x, frames[i], r)
        G[i] = 0.0
        if kind[i] == APART:
            c[i] = size - length[i]
            for j in range(3):
                G[i, j], G[i, 6 + j] = r[j] / size, -r[j] / size
            continue
        _turned(w, axes[i, 0], k, R, d)
        if kind[i] == AT:
            c[i] = _cross(d, r, t)
            for j in range(3):
                G[i, j], G[i, 6 + j] = d[j], -d[j]
            turn(-1.0, w, t, k, G[i, 3:6])
            continue
        _turned(v, axes[i, 1], other, R, g)
        c[i] = _cross(d, g, t)
        turn(-1.0, w, t, k, G[i, 3:6])
        _cross(g, d, t)
        turn(-1.0, v, t, other, G[i, 9:12])


@njit(cache=True)
def _outer(weight, a, b, by_unit, out):
    """Fill out (3, 3) = weight a b^T + by_unit I."""
    for i in range(3):
        for j in range(3):
            out[i, j] = weight * a[i] * b[j]
        out[i, i] += by_unit


@njit(cache=True)
def loop_curvature(kind, frames, axes, mu, x, H):
    """Fill the second derivatives of mu c by (x_a, w_a, x_b, w_b), (m, 12, 12), symmetric; else as `loop_rows`."""
    k, other, (r, d, g, t) = np.empty(6), np.empty(6), np.empty((4, 3))
    R, J, S, M, room = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    for i in range(kind.size):
        a, b = frames[i]
        w, v, block = x[a + 3 : a + 6], x[b + 3 : b + 6], H[i]
        size = _apart(x, frames[i], r)
        block[:] = 0.0
        if kind[i] == APART:
            _outer(-mu[i] / (size * size * size), r, r, mu[i] / size, M)
            for p in range(3):
                for s in range(3):
                    block[p, s] = block[6 + p, 6 + s] = M[p, s]
                    block[p, 6 + s] = block[6 + p, s] = -M[p, s]
            continue
        _turned(w, axes[i, 0], k, R, d)
        fill_jacobian(1.0, w, k, J)
        for p in range(3):
            d[p] *= mu[i]
        if kind[i] == AT:
            for p in range(3):
                for s in range(3):  # -[d]x J_l
                    p1, p2 = (p + 1) % 3, (p + 2) % 3
                    moved = d[p2] * J[p1, s] - d[p1] * J[p2, s]
                    block[p, 3 + s] = block[3 + s, p] = moved
                    block[6 + p, 3 + s] = block[3 + s, 6 + p] = -moved
            along = _cross(d, r, t)
            turn_derivative(-1.0, w, t, k, block[3:6, 3:6])
            _outer(1.0, d, r, -along, M)
            add_congruent(J, M, J, room, block[3:6, 3:6])
            continue
        _turned(v, axes[i, 1], other, R, g)
        fill_jacobian(1.0, v, other, S)
        along = _cross(d, g, t)
        turn_derivative(-1.0, w, t, k, block[3:6, 3:6])
        _outer(1.0, d, g, -along, M)
        add_congruent(J, M, J, room, block[3:6, 3:6])
        _cross(g, d, t)
        turn_derivative(-1.0, v, t, other, block[9:12, 9:12])
        _outer(1.0, g, d, -along, M)
        add_congruent(S, M, S, room, block[9:12, 9:12])
        _outer(-1.0, g, d, along, M)
        add_congruent(J, M, S, room, block[3:6, 9:12])
        for p in range(3):
            for s in range(3):
                block[9 + s, 3 + p] = block[3 + p, 9 + s]
