"""Inertia of rigid bodies in exponential coordinates: residual, exact Jacobian, parameter derivatives.

With J_r = J_l(w)^T the right Jacobian, body axes throughout (Geilinger et al. 2020, section 5.2; the same as
J_l^T (I_w omega_dot + omega x I_w omega) in world axes, with half the products):

    omega = J_r(w) w_dot,    alpha = J_r(w) w_ddot + (d(J_r w_dot)/dw) w_dot
    m     = I alpha + omega x I omega
    r_x   = mass a_x,        r_w = J_r^T m = J_l m

Common arguments
    start    (nb,)    first coordinate of each body: x (3), w (3)
    mass     (nb,)    index in theta [kg]
    inertia  (nb, 6)  indices in theta of I about the centre of mass, body axes: xx, yy, zz, xy, xz, yz [kg m^2]
    q, v, a  (n,)
"""

import numpy as np

from add.kernels.caching import njit
from add.kernels.rotation import (
    fill_jacobian,
    fill_rotation,
    jacobian_coefficients,
    turn,
    turn_derivative,
    turn_second_derivative,
)

#: Row and column of the six inertia entries.
ROW = np.array([0, 1, 2, 0, 0, 1])
COL = np.array([0, 1, 2, 1, 2, 2])


@njit(cache=True)
def fill_inertia(theta, index, I):
    """Fill I (3, 3) from its six entries."""
    I[0, 0], I[1, 1], I[2, 2] = theta[index[0]], theta[index[1]], theta[index[2]]
    I[0, 1], I[0, 2], I[1, 2] = theta[index[3]], theta[index[4]], theta[index[5]]
    I[1, 0], I[2, 0], I[2, 1] = I[0, 1], I[0, 2], I[1, 2]


@njit(cache=True)
def _cross(a, b, out):
    x, y, z = a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]
    out[0], out[1], out[2] = x, y, z


@njit(cache=True)
def _times(A, x, out):
    x0, x1, x2 = x[0], x[1], x[2]
    for i in range(3):
        out[i] = A[i, 0] * x0 + A[i, 1] * x1 + A[i, 2] * x2


@njit(cache=True)
def _motion(w, wd, wdd, k, S):
    """Fill S[0] omega and S[1] alpha (body axes); S[2] and S[3:6] are scratch."""
    jacobian_coefficients(w[0] * w[0] + w[1] * w[1] + w[2] * w[2], k)
    turn(-1.0, w, wd, k, S[0])
    turn(-1.0, w, wdd, k, S[1])
    turn_derivative(-1.0, w, wd, k, S[3:6])
    _times(S[3:6], wd, S[2])
    for i in range(3):
        S[1, i] += S[2, i]


@njit(cache=True)
def inertia_residual(theta, start, mass, inertia, q, v, a, out):
    """Add r."""
    k, S, I = np.empty(6), np.empty((8, 3)), np.empty((3, 3))
    for b in range(start.size):
        s = start[b]
        m = theta[mass[b]]
        for i in range(3):
            out[s + i] += m * a[s + i]
        w = q[s + 3 : s + 6]
        _motion(w, v[s + 3 : s + 6], a[s + 3 : s + 6], k, S)
        fill_inertia(theta, inertia[b], I)
        _times(I, S[1], S[2])
        _times(I, S[0], S[3])
        _cross(S[0], S[3], S[4])
        for i in range(3):
            S[2, i] += S[4, i]
        turn(1.0, w, S[2], k, S[3])
        for i in range(3):
            out[s + 3 + i] += S[3, i]


@njit(cache=True)
def _rate_derivative(sign, w, h, k, B):
    """Fill B (3, 3) with d(D(w, u) h)/du = the derivative of J along h."""
    b, b1, c, c1 = sign * k[0], sign * k[1], k[3], k[4]
    wh = w[0] * h[0] + w[1] * h[1] + w[2] * h[2]
    p = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    for i in range(3):
        for j in range(3):
            B[i, j] = c * (h[i] * w[j] + w[i] * h[j]) + 2.0 * c1 * wh * w[i] * w[j]
        B[i, i] -= 2.0 * wh * (c + c1 * p)
    f = 2.0 * b1 * wh
    x0, x1, x2 = b * h[0] + f * w[0], b * h[1] + f * w[1], b * h[2] + f * w[2]
    B[0, 1] -= x2
    B[0, 2] += x1
    B[1, 0] += x2
    B[1, 2] -= x0
    B[2, 0] -= x1
    B[2, 1] += x0


@njit(cache=True)
def inertia_jacobian(theta, start, mass, inertia, q, v, a, weights, data, slots):
    """Add w_q dr/dq + w_v dr/dv + w_a dr/da, twelve entries a body: three of the mass, nine of the rotation.

    dr/dw = D_+(w, m) + J_l dm/dw, and dm = I dalpha + ([omega]x I - [I omega]x) domega with

        domega/dw  = D_-(w, w_dot)                      domega/dw_dot = J_r
        dalpha/dw  = D_-(w, w_ddot) + E_-(w, w_dot, w_dot)
        dalpha/dw_dot = D_-(w, w_dot) + dJ_r/dw[w_dot]    dalpha/dw_ddot = J_r
    """
    wq, wv, wa = weights
    k, S, T = np.empty(6), np.empty((8, 3)), np.empty((7, 3, 3))
    I, J, D, O, A, B, X = T[0], T[1], T[2], T[3], T[4], T[5], T[6]
    for b in range(start.size):
        s = start[b]
        w, wd, wdd = q[s + 3 : s + 6], v[s + 3 : s + 6], a[s + 3 : s + 6]
        _motion(w, wd, wdd, k, S)
        fill_inertia(theta, inertia[b], I)
        _times(I, S[1], S[2])
        _times(I, S[0], S[6])
        _cross(S[0], S[6], S[7])
        for i in range(3):
            S[2, i] += S[7, i]  # m

        fill_jacobian(-1.0, w, k, J)
        turn_derivative(-1.0, w, wd, k, D)
        _rate_derivative(-1.0, w, wd, k, B)
        for i in range(3):
            for j in range(3):
                O[i, j] = wq * D[i, j] + wv * J[i, j]
                A[i, j] = wv * (D[i, j] + B[i, j]) + wa * J[i, j]
        turn_derivative(-1.0, w, wdd, k, D)
        turn_second_derivative(-1.0, w, wd, wd, k, B)
        for i in range(3):
            for j in range(3):
                A[i, j] += wq * (D[i, j] + B[i, j])

        for j in range(3):  # X = [omega]x I - [I omega]x
            X[0, j] = S[0, 1] * I[2, j] - S[0, 2] * I[1, j]
            X[1, j] = S[0, 2] * I[0, j] - S[0, 0] * I[2, j]
            X[2, j] = S[0, 0] * I[1, j] - S[0, 1] * I[0, j]
        X[0, 1] += S[6, 2]
        X[0, 2] -= S[6, 1]
        X[1, 0] -= S[6, 2]
        X[1, 2] += S[6, 0]
        X[2, 0] += S[6, 1]
        X[2, 1] -= S[6, 0]
        for i in range(3):
            for j in range(3):
                B[i, j] = 0.0
                for l in range(3):
                    B[i, j] += I[i, l] * A[l, j] + X[i, l] * O[l, j]
        turn_derivative(1.0, w, S[2], k, D)
        e = 12 * b
        for i in range(3):
            data[slots[e + i]] += wa * theta[mass[b]]
            for j in range(3):
                value = wq * D[i, j]
                for l in range(3):
                    value += J[l, i] * B[l, j]
                data[slots[e + 3 + 3 * i + j]] += value


@njit(cache=True)
def inertia_pullback(start, mass, inertia, q, v, a, lam, out):
    """Add lam^T dr/dtheta to ``out`` (n_theta,); r is linear in theta, and its own change along a tangent."""
    k, S = np.empty(6), np.empty((8, 3))
    for b in range(start.size):
        s = start[b]
        w = q[s + 3 : s + 6]
        _motion(w, v[s + 3 : s + 6], a[s + 3 : s + 6], k, S)
        for i in range(3):
            out[mass[b]] += lam[s + i] * a[s + i]
        turn(-1.0, w, lam[s + 3 : s + 6], k, S[2])  # cotangent of m
        _cross(S[2], S[0], S[3])  # of I omega: m . (omega x I omega) = (m x omega) . I omega
        for e in range(6):
            i, j = ROW[e], COL[e]
            value = S[2, i] * S[1, j] + S[3, i] * S[0, j]
            if i != j:
                value += S[2, j] * S[1, i] + S[3, j] * S[0, i]
            out[inertia[b, e]] += value


@njit(cache=True)
def rigid_momentum(theta, start, mass, inertia, q, v, out):
    """Return the kinetic energy [J]; add momentum and angular momentum about the origin to out (6,)."""
    k, S, I, R = np.empty(6), np.empty((8, 3)), np.empty((3, 3)), np.empty((3, 3))
    energy = 0.0
    for b in range(start.size):
        s = start[b]
        w, m = q[s + 3 : s + 6], theta[mass[b]]
        jacobian_coefficients(w[0] * w[0] + w[1] * w[1] + w[2] * w[2], k)
        turn(-1.0, w, v[s + 3 : s + 6], k, S[0])
        fill_inertia(theta, inertia[b], I)
        _times(I, S[0], S[1])
        fill_rotation(w, k, R)
        _times(R, S[1], S[2])
        _cross(q[s : s + 3], v[s : s + 3], S[3])
        for i in range(3):
            energy += 0.5 * (m * v[s + i] * v[s + i] + S[0, i] * S[1, i])
            out[i] += m * v[s + i]
            out[3 + i] += m * S[3, i] + S[2, i]
    return energy
