"""Dry friction of ball joints without a jump: a torque against the rate of turning that keeps its size."""

import numpy as np

from add.kernels.caching import njit
from add.kernels.rotation import fill_jacobian, jacobian_coefficients, turn, turn_derivative


@njit(cache=True)
def ball_friction(first, torque, slip, q, v, forces, by_number, by_q, by_v):
    """Fill r = J^T tau tanh(|omega| / s) omega / |omega|, omega = J_l(w) w_dot, and its derivatives.

    Parameters
    ----------
    first : (m,) first coordinates of rotation vectors
    torque, slip : (m,) tau [N m] and s [rad/s]
    q, v : (n,)
    forces : (m, 3), filled
    by_number : (m, 2, 3) dr/dtau and dr/ds, filled
    by_q, by_v : (m, 3, 3), filled
    """
    k, J, D, E = np.empty(6), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    omega, T = np.empty(3), np.empty((3, 3))
    for i in range(first.size):
        w, rate = q[first[i] : first[i] + 3], v[first[i] : first[i] + 3]
        s, tau = slip[i], torque[i]
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
