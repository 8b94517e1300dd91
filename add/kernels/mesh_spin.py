"""Round bodies that meet meshes: a ball is a vertex with a radius, a capsule a row of vertices and edges with one.

The skin of a round body meets the other mesh away from its own primitive, at the closest point there: by -sigma s,
where s = d n is the vector of `stencil.py` and sigma = 1 if the round body comes first in the pair, -1 if second. Omega
is the angular velocity of the round body, and R are its points among the x_i:

    v_rel = sum c_i v_i - omega x s              torque on it   sum_R (l_i - sigma s) x f_i

Both forces of a pair then act at one place, so that torques add up to zero with friction, too, and a ball rolls. As the
mollifier's forces on the ends of an edge add up to zero, the torque of s is that of sigma w m F. Derivatives go by

    ds/dx_i = c_i (n n^T + Q) - d W_i n^T
"""

import numpy as np

from add.kernels.caching import njit
from add.kernels.contact_detection import OMEGA, TURN, TURN_RATE
from add.kernels.stencil import WAYS

_JIT = {"cache": True, "error_model": "numpy"}


@njit(**_JIT, inline="always")
def round_side(one, two, meshes):
    """Return row of `Meshes.bodies` and sigma of the round body of points one and two; -1 and 0 if none is."""
    if meshes.round[meshes.body[one]]:
        return meshes.points[one, 1], 1.0
    if meshes.round[meshes.body[two]]:
        return meshes.points[two, 1], -1.0
    return -1, 0.0


@njit(**_JIT, inline="always")
def add_spin(B, d, S):
    """Take omega x s from the relative velocity in S[1]; the normal is in S[0]."""
    n0, n1, n2 = d * S[0, 0], d * S[0, 1], d * S[0, 2]
    w0, w1, w2 = B[OMEGA, 0], B[OMEGA, 1], B[OMEGA, 2]
    S[1, 0] -= w1 * n2 - w2 * n1
    S[1, 1] -= w2 * n0 - w0 * n2
    S[1, 2] -= w0 * n1 - w1 * n0


@njit(**_JIT, inline="always")
def add_cross(factor, a, b, out):
    """Add factor a x b to out (3,)."""
    out[0] += factor * (a[1] * b[2] - a[2] * b[1])
    out[1] += factor * (a[2] * b[0] - a[0] * b[2])
    out[2] += factor * (a[0] * b[1] - a[1] * b[0])


@njit(**_JIT)
def way_derivatives(n, d, work):
    """Fill D (4, 3, 3) = ds/dx_i."""
    c, P, Q, S, D = work.c, work.P, work.Q, work.S, work.D
    for i in range(n):
        for a in range(3):
            for b in range(3):
                D[i, a, b] = c[i] * (S[0, a] * S[0, b] + d * Q[a, b]) - d * P[WAYS + i, a] * S[0, b]


@njit(**_JIT)
def spin_derivatives(n, d, B, work):
    """Fill D (4, 3, 3) = ds/dx_i, and add to K what the change of omega x s with the places does."""
    c, K, C, D = work.c, work.K, work.C, work.D
    w0, w1, w2 = B[OMEGA, 0], B[OMEGA, 1], B[OMEGA, 2]
    way_derivatives(n, d, work)
    for i in range(n):
        for b in range(3):
            x0 = w1 * D[i, 2, b] - w2 * D[i, 1, b]
            x1 = w2 * D[i, 0, b] - w0 * D[i, 2, b]
            x2 = w0 * D[i, 1, b] - w1 * D[i, 0, b]
            for j in range(n):
                for a in range(3):
                    K[3 * j + a, 3 * i + b] -= c[j] * (C[a, 0] * x0 + C[a, 1] * x1 + C[a, 2] * x2)


@njit(**_JIT)
def shift_motions(k, B, weight_q, weight_v, shift, Z, E):
    """Add to Z[k] what the arm ``shift`` of the skin does; fill E (3, 6) with its motion by the rotation vector."""
    for e in range(3):
        j0, j1, j2 = B[TURN, e], B[TURN + 1, e], B[TURN + 2, e]
        r0, r1, r2 = B[TURN_RATE, e], B[TURN_RATE + 1, e], B[TURN_RATE + 2, e]
        E[0, 3 + e] = j1 * shift[2] - j2 * shift[1]
        E[1, 3 + e] = j2 * shift[0] - j0 * shift[2]
        E[2, 3 + e] = j0 * shift[1] - j1 * shift[0]
        Z[k, 0, 3 + e] += weight_q * (r1 * shift[2] - r2 * shift[1]) + weight_v * E[0, 3 + e]
        Z[k, 1, 3 + e] += weight_q * (r2 * shift[0] - r0 * shift[2]) + weight_v * E[1, 3 + e]
        Z[k, 2, 3 + e] += weight_q * (r0 * shift[1] - r1 * shift[0]) + weight_v * E[2, 3 + e]


@njit(**_JIT)
def turned_by_moving(delta, factor, F, B, out):
    """Fill out (3,) with factor J^T (delta x F), by which a change delta of s changes the torque on a round body."""
    t = np.zeros(3)
    add_cross(factor, delta, F, t)
    for a in range(3):
        out[a] = B[TURN, a] * t[0] + B[TURN + 1, a] * t[1] + B[TURN + 2, a] * t[2]
