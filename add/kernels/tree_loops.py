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
from add.kernels.rotation import fill_jacobian, fill_rotation, jacobian_coefficients, turn, turn_derivative

#: Kinds of rows.
AT, ALONG, APART = 0, 1, 2


@njit(cache=True)
def _cross(a, b):
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


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
    k, R = np.empty(6), np.empty((3, 3))
    for i in range(kind.size):
        a, b = x[frames[i, 0] : frames[i, 0] + 6], x[frames[i, 1] : frames[i, 1] + 6]
        r = a[:3] - b[:3]
        G[i] = 0.0
        if kind[i] == APART:
            size = np.sqrt(r @ r)
            c[i] = size - length[i]
            G[i, :3] = r / size
            G[i, 6:9] = -r / size
            continue
        w = a[3:]
        jacobian_coefficients(w @ w, k)
        fill_rotation(w, k, R)
        d = R @ axes[i, 0]
        if kind[i] == AT:
            c[i] = d @ r
            G[i, :3] = d
            G[i, 6:9] = -d
            turn(-1.0, w, _cross(d, r), k, G[i, 3:6])
            continue
        other = b[3:]
        coefficients = np.empty(6)
        jacobian_coefficients(other @ other, coefficients)
        fill_rotation(other, coefficients, R)
        g = R @ axes[i, 1]
        c[i] = d @ g
        turn(-1.0, w, _cross(d, g), k, G[i, 3:6])
        turn(-1.0, other, _cross(g, d), coefficients, G[i, 9:12])


@njit(cache=True)
def _outer(a, b, by_unit, out):
    """Fill out (3, 3) = a b^T + by_unit I."""
    for i in range(3):
        for j in range(3):
            out[i, j] = a[i] * b[j]
        out[i, i] += by_unit


@njit(cache=True)
def loop_curvature(kind, frames, axes, mu, x, H):
    """Fill the second derivatives of mu c by (x_a, w_a, x_b, w_b), (m, 12, 12), symmetric; else as `loop_rows`."""
    k, other = np.empty(6), np.empty(6)
    R, J, S, M, D = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    for i in range(kind.size):
        a, b = x[frames[i, 0] : frames[i, 0] + 6], x[frames[i, 1] : frames[i, 1] + 6]
        r = a[:3] - b[:3]
        H[i] = 0.0
        if kind[i] == APART:
            size = np.sqrt(r @ r)
            _outer(-r / size**3, r, 1.0 / size, M)
            M *= mu[i]
            H[i, :3, :3] = M
            H[i, 6:9, 6:9] = M
            H[i, :3, 6:9] = -M
            H[i, 6:9, :3] = -M
            continue
        w = a[3:]
        jacobian_coefficients(w @ w, k)
        fill_rotation(w, k, R)
        fill_jacobian(1.0, w, k, J)
        d = mu[i] * (R @ axes[i, 0])
        if kind[i] == AT:
            M[:] = 0.0  # -[d]x
            M[0, 1], M[0, 2], M[1, 0], M[1, 2], M[2, 0], M[2, 1] = d[2], -d[1], -d[2], d[0], d[1], -d[0]
            moved = M @ J
            H[i, :3, 3:6] = moved
            H[i, 6:9, 3:6] = -moved
            H[i, 3:6, :3] = moved.T
            H[i, 3:6, 6:9] = -moved.T
            _outer(d, r, -(d @ r), M)
            turn_derivative(-1.0, w, _cross(d, r), k, D)
            H[i, 3:6, 3:6] = J.T @ M @ J + D
            continue
        v = b[3:]
        jacobian_coefficients(v @ v, other)
        fill_rotation(v, other, R)
        fill_jacobian(1.0, v, other, S)
        g = R @ axes[i, 1]
        dot = d @ g
        _outer(d, g, -dot, M)
        turn_derivative(-1.0, w, _cross(d, g), k, D)
        H[i, 3:6, 3:6] = J.T @ M @ J + D
        _outer(g, d, -dot, M)
        turn_derivative(-1.0, v, _cross(g, d), other, D)
        H[i, 9:12, 9:12] = S.T @ M @ S + D
        _outer(-g, d, dot, M)
        mixed = J.T @ M @ S
        H[i, 3:6, 9:12] = mixed
        H[i, 9:12, 3:6] = mixed.T
