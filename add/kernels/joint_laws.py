"""Laws of single coordinates of trees, and of the rotation vectors of their balls: forces and their slopes."""

import numpy as np

from add.kernels.caching import njit
from add.kernels.rotation import fill_jacobian, jacobian_coefficients, turn, turn_derivative, turn_second_derivative

#: Codes of the laws of one coordinate, and columns of their slopes: r, dr/dq, dr/dv, and dr by up to four numbers.
SPRING, RESISTANCE, LIMIT, DRIVE = range(4)
COLUMNS = 7


@njit(cache=True)
def axis_law(code, q, v, p, constant, out):
    """Fill ``out`` (7,) with r of a coordinate, its slopes by q and v, and by the numbers ``p`` (4,).

    - spring, p = (k, rest): r = k (q - rest)
    - resistance, p = (d, tau, v_s): r = d v + tau tanh(v / v_s)
    - limit, p = (lower, upper, k, d): r = k (s(q - upper) - s(lower - q)) + d v s', with s(e) = 0 for e < 0,
      e^2 / (2 delta) for e < delta, e - delta / 2 beyond; delta is the constant
    - drive, p = (u, g, b_q, b_v): r = -clip(g u + b_q q + b_v v, -limit, limit); limit is the constant
    """
    out[:] = 0.0
    if code == SPRING:
        out[0], out[1], out[3], out[4] = p[0] * (q - p[1]), p[0], q - p[1], -p[0]
    elif code == RESISTANCE:
        grip = np.tanh(v / p[2])
        slope = 1.0 - grip * grip
        out[0], out[2] = p[0] * v + p[1] * grip, p[0] + p[1] / p[2] * slope
        out[3], out[4], out[5] = v, grip, -p[1] * slope * v / (p[2] * p[2])
    elif code == LIMIT:
        _limit(q, v, p, constant, out)
    else:
        force = p[1] * p[0] + p[2] * q + p[3] * v
        if abs(force) >= constant:
            out[0] = -constant if force > 0.0 else constant
        else:
            out[0], out[1], out[2] = -force, -p[2], -p[3]
            out[3], out[4], out[5], out[6] = -p[1], -p[0], -q, -v


@njit(cache=True)
def _limit(q, v, p, delta, out):
    total, slope, bend = 0.0, 0.0, 0.0
    for sign in (1.0, -1.0):
        e = sign * (q - (p[1] if sign > 0.0 else p[0]))
        if e >= delta:
            total += sign * (e - 0.5 * delta)
            slope += 1.0
        elif e > 0.0:
            total += sign * (e * e / (2.0 * delta))
            slope += e / delta
            bend += sign / delta
    out[0] = p[2] * total + p[3] * v * slope
    out[1], out[2] = p[2] * slope + p[3] * v * bend, p[3] * slope
    if q > 0.5 * (p[0] + p[1]):
        out[4] = -out[1]
    else:
        out[3] = -out[1]
    out[5], out[6] = total, v * slope


@njit(cache=True)
def axis_laws(code, dof, numbers, constants, q, v, theta, out):
    """Fill ``out`` (m, 7) for the coordinates ``dof`` (m,); ``numbers`` (m, k) are indices into theta."""
    p = np.zeros(4)
    for i in range(dof.size):
        for k in range(numbers.shape[1]):
            p[k] = theta[numbers[i, k]]
        axis_law(code, q[dof[i]], v[dof[i]], p, constants[i], out[i])


@njit(cache=True)
def ball_forces(first, q, v, a, forces):
    """Fill J^T omega and J^T omega_dot of each ball, ``forces`` (m, 2, 3); ``first`` (m,) its first coordinate."""
    k, D, omega = np.empty(6), np.empty((3, 3)), np.empty(3)
    for i in range(first.size):
        part = slice(first[i], first[i] + 3)
        w, rate = q[part], v[part]
        jacobian_coefficients(w[0] * w[0] + w[1] * w[1] + w[2] * w[2], k)
        turn(1.0, w, rate, k, omega)
        turn(-1.0, w, omega, k, forces[i, 0])
        turn_derivative(1.0, w, rate, k, D)
        turn(1.0, w, a[part], k, omega)
        omega += D @ rate
        turn(-1.0, w, omega, k, forces[i, 1])


@njit(cache=True)
def ball_derivatives(theta, first, damping, armature, q, v, a, weights, out):
    """Fill the weighted derivatives (m, 3, 3) of J^T (d omega + I omega_dot)."""
    k, J, D, E = np.empty(6), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    unit, by_q, by_v = np.zeros(3), np.empty((3, 3)), np.empty((3, 3))
    w_q, w_v, w_a = weights
    for i in range(first.size):
        part = slice(first[i], first[i] + 3)
        w, rate, d, inertia = q[part], v[part], theta[damping[i]], theta[armature[i]]
        jacobian_coefficients(w[0] * w[0] + w[1] * w[1] + w[2] * w[2], k)
        fill_jacobian(1.0, w, k, J)
        turn_derivative(1.0, w, rate, k, D)
        turn_second_derivative(1.0, w, rate, rate, k, E)
        total = d * (J @ rate) + inertia * (J @ a[part] + D @ rate)
        by_q[:] = d * D + inertia * E
        by_v[:] = d * J + inertia * D
        turn_derivative(1.0, w, a[part], k, E)
        by_q += inertia * E
        for c in range(3):
            unit[:] = 0.0
            unit[c] = 1.0
            turn_derivative(1.0, w, unit, k, E)
            by_v[:, c] += inertia * (E @ rate)
        out[i] = J.T @ (w_q * by_q + w_v * by_v + w_a * inertia * J)
        turn_derivative(-1.0, w, total, k, D)
        out[i] += w_q * D
