"""Laws of ball joints, each on a rotation vector: dry friction without a jump, a stop for the angle of the turn.

Common arguments, m balls, k numbers of a law

    first       (m,) first coordinates of rotation vectors
    p           (m, k) numbers of the law
    constants   (m,) numbers that are no parameters
    q, v        (n,)
    forces      (m, 3) r, filled
    by_number   (m, k, 3) dr/dp, filled
    by_q, by_v  (m, 3, 3), filled
"""

import numpy as np

from add.kernels.caching import njit
from add.kernels.rotation import fill_jacobian, jacobian_coefficients, turn, turn_derivative


@njit(cache=True)
def ball_friction(first, p, constants, q, v, forces, by_number, by_q, by_v):
    """Fill r = J^T tau tanh(|omega| / s) omega / |omega|, omega = J_l(w) w_dot, p = (tau [N m], s [rad/s])."""
    k, J, D, E = np.empty(6), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    omega, T = np.empty(3), np.empty((3, 3))
    for i in range(first.size):
        w, rate = q[first[i] : first[i] + 3], v[first[i] : first[i] + 3]
        tau, s = p[i, 0], p[i, 1]
        jacobian_coefficients(w[0] * w[0] + w[1] * w[1] + w[2] * w[2], k)
        turn(1.0, w, rate, k, omega)
        y = np.sqrt(omega[0] * omega[0] + omega[1] * omega[1] + omega[2] * omega[2]) / s
        if y < 1e-3:
            share, slope = 1.0 - y * y / 3.0, -2.0 / 3.0 + 8.0 * y * y / 15.0  # tanh(y) / y, its slope over y
            sech2 = 1.0 - y * y
        else:
            grip = np.tanh(y)
            share, sech2 = grip / y, 1.0 - grip * grip
            slope = (sech2 - share) / (y * y)
        unit = (share / s) * omega  # torque per tau
        turn(-1.0, w, unit, k, by_number[i, 0])
        turn(-1.0, w, (-tau * sech2 / (s * s)) * omega, k, by_number[i, 1])
        forces[i] = tau * by_number[i, 0]
        for a in range(3):
            for b in range(3):
                T[a, b] = tau / s * slope * omega[a] * omega[b] / (s * s)
            T[a, a] += tau * share / s
        fill_jacobian(1.0, w, k, J)
        turn_derivative(1.0, w, rate, k, D)
        turn_derivative(-1.0, w, tau * unit, k, E)
        by_v[i] = J.T @ T @ J
        by_q[i] = J.T @ T @ D + E


@njit(cache=True)
def ball_limit(first, p, constants, q, v, forces, by_number, by_q, by_v):
    """Fill r = (k s(e) + d e' s'(e)) n, n = w / |w|, e = |w| - upper, e' = n . w_dot, p = (upper, k, d).

    s(e) = 0 for e < 0, e^2 / (2 delta) for e < delta, e - delta / 2 beyond; delta is the constant [rad].
    """
    for i in range(first.size):
        w, rate, delta = q[first[i] : first[i] + 3], v[first[i] : first[i] + 3], constants[i]
        forces[i], by_number[i], by_q[i], by_v[i] = 0.0, 0.0, 0.0, 0.0
        angle = np.sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
        e = angle - p[i, 0]
        if e <= 0.0 or angle == 0.0:
            continue
        s, slope, bend = (e - 0.5 * delta, 1.0, 0.0) if e >= delta else (e * e / (2.0 * delta), e / delta, 1.0 / delta)
        n = w / angle
        e_dot = n[0] * rate[0] + n[1] * rate[1] + n[2] * rate[2]
        size, by_angle = p[i, 1] * s + p[i, 2] * e_dot * slope, p[i, 1] * slope + p[i, 2] * e_dot * bend
        for a in range(3):
            forces[i, a] = size * n[a]
            by_number[i, 0, a], by_number[i, 1, a], by_number[i, 2, a] = (
                -by_angle * n[a],
                s * n[a],
                e_dot * slope * n[a],
            )
            for b in range(3):
                across = ((1.0 if a == b else 0.0) - n[a] * n[b]) / angle
                turned = n[a] * (rate[b] - e_dot * n[b]) / angle
                by_q[i, a, b] = by_angle * n[a] * n[b] + size * across + p[i, 2] * slope * turned
                by_v[i, a, b] = p[i, 2] * slope * n[a] * n[b]
