"""Joints of trees: laws of single coordinates and of balls, and rows that close loops, with their derivatives.

Rows of loops are equations between two frames. A frame is six entries of X: origin x and rotation vector w,
R = exp([w]x). With d = R_a e and g = R_b f, e and f constant unit vectors, a row is

    AT     c = d . (x_a - x_b)           the origin of b stays in the plane of a's frame across e
    ALONG  c = d . g                     g stays across d
    APART  c = |x_a - x_b| - L           the origins keep their distance

Derivatives by small turns in world axes (omega = J_l w_dot) are pulled to w by J_l^T.
"""

import numpy as np

from add.kernels.caching import njit
from add.kernels.contact_pairs import PAIR
from add.kernels.ordering import add_congruent, add_pulled, fill_turned
from add.kernels.rotation import (
    fill_jacobian,
    fill_rotation,
    jacobian_coefficients,
    turn,
    turn_derivative,
    turn_second_derivative,
)

#: Codes of the laws of one coordinate, and columns of their slopes: r, dr/dq, dr/dv, and dr by up to four numbers.
SPRING, RESISTANCE, LIMIT = range(3)


@njit(cache=True)
def axis_law(code, q, v, p, constant, out):
    """Fill ``out`` (at least 7,) with r of a coordinate, its slopes by q and v, and by the numbers ``p`` (4,).

    - spring, p = (k, rest): r = k (q - rest)
    - resistance, p = (d, tau, v_s): r = d v + tau tanh(v / v_s)
    - limit, p = (lower, upper, k, d): r = k (s(q - upper) - s(lower - q)) + d v s', with s(e) = 0 for e < 0,
      e^2 / (2 delta) for e < delta, e - delta / 2 beyond; delta is the constant
    """
    out[:] = 0.0
    if code == SPRING:
        out[0], out[1], out[3], out[4] = p[0] * (q - p[1]), p[0], q - p[1], -p[0]
    elif code == RESISTANCE:
        grip = np.tanh(v / p[2])
        slope = 1.0 - grip * grip
        out[0], out[2] = p[0] * v + p[1] * grip, p[0] + p[1] / p[2] * slope
        out[3], out[4], out[5] = v, grip, -p[1] * slope * v / (p[2] * p[2])
    else:
        _limit(q, v, p, constant, out)


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


#: Columns of joints whose friction holds: first coordinate, how many, indices in theta of d (-1 for none), tau and v_s.
FIRST, WIDTH, DAMPING, DRY, SPEED = range(5)


@njit(cache=True)
def joint_rates(joint, q, v, k, J, D, omega):
    """Fill J and D = d(J v)/dq (3, 3), and omega = J v of a joint, and k (6,); J is one for a single coordinate."""
    i = joint[FIRST]
    if joint[WIDTH] == 1:
        J[0, 0], D[0, 0], omega[0] = 1.0, 0.0, v[i]
        return
    w, rate = q[i : i + 3], v[i : i + 3]
    jacobian_coefficients(w[0] * w[0] + w[1] * w[1] + w[2] * w[2], k)
    fill_jacobian(1.0, w, k, J)
    turn_derivative(1.0, w, rate, k, D)
    turn(1.0, w, rate, k, omega)


@njit(cache=True)
def joint_speed(omega, width):
    """Return |omega|."""
    total = 0.0
    for r in range(width):
        total += omega[r] * omega[r]
    return np.sqrt(total)


@njit(cache=True)
def held_joint_rows(joints, rows, q, v, theta, reactions, derivatives, own, out):
    """Fill ``out``, `add.kernels.sticking.StickRows`, for joints that stick: c = omega, reactions mu are torques.

    Three rows a joint, as of a point of contact: of hinges and slides the second and third are empty. ``own`` (k, 18),
    if there are any, takes their coordinates, -1 for none.
    """
    k, J, D, omega = np.empty(6), np.empty((3, 3)), np.empty((3, 3)), np.empty(3)
    out.rows[:], out.by_v[:], out.by_q[:], out.geometric[:] = 0.0, 0.0, 0.0, 0.0
    out.by_theta[:], out.geometric_by_theta[:] = 0.0, 0.0
    for n in range(rows.shape[0]):
        joint = joints[rows[n, PAIR]]
        first, width = joint[FIRST], joint[WIDTH]
        joint_rates(joint, q, v, k, J, D, omega)
        out.limit[n] = theta[joint[DRY]]
        out.stiffness[n] = out.limit[n] / max(joint_speed(omega, width), theta[joint[SPEED]])
        for r in range(width):
            out.rows[n, r] = omega[r]
            for c in range(width):
                out.by_v[n, r, c] = J[r, c]
                if derivatives:
                    out.by_q[n, r, c] = D[r, c]
        if derivatives and width == 3:
            turn_derivative(-1.0, q[first : first + 3], reactions[n], k, D)
            for r in range(3):
                for c in range(3):
                    out.geometric[n, r, c] = D[r, c]
        for c in range(own.shape[1] if own.size else 0):
            own[n, c] = first + c if c < width else -1


@njit(cache=True)
def ball_motion(first, p, constants, state, wanted, forces, by_number, by_state):
    """Fill r = J^T (d omega + I omega_dot), omega = J_l(w) w_dot, p = (d [N m s/rad], I [kg m^2]).

    As all laws of balls, it takes the ``state`` q, v, a, and fills the derivatives (3, m, 3, 3) by these, which come as
    zeros, where they are ``wanted``.
    """
    q, v, a = state
    by_q, by_v, by_a = by_state[0], by_state[1], by_state[2]
    k, J, D, E, F = np.empty(6), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    omega, total, unit = np.empty(3), np.empty(3), np.empty(3)
    for i in range(first.size):
        part = slice(first[i], first[i] + 3)
        w, rate, d, inertia = q[part], v[part], p[i, 0], p[i, 1]
        jacobian_coefficients(w[0] * w[0] + w[1] * w[1] + w[2] * w[2], k)
        turn(1.0, w, rate, k, omega)
        turn(-1.0, w, omega, k, by_number[i, 0])
        for r in range(3):
            total[r] = d * omega[r]
        turn_derivative(1.0, w, rate, k, D)
        turn(1.0, w, a[part], k, omega)
        for r in range(3):
            for c in range(3):
                omega[r] += D[r, c] * rate[c]
        turn(-1.0, w, omega, k, by_number[i, 1])
        for r in range(3):
            forces[i, r] = d * by_number[i, 0, r] + inertia * by_number[i, 1, r]
            total[r] += inertia * omega[r]
        if not wanted:
            continue
        fill_jacobian(1.0, w, k, J)
        turn_second_derivative(1.0, w, rate, rate, k, E)
        turn_derivative(1.0, w, a[part], k, F)
        turn_derivative(-1.0, w, total, k, by_q[i])
        for r in range(3):
            for c in range(3):
                E[r, c] = d * D[r, c] + inertia * (E[r, c] + F[r, c])
        add_pulled(1.0, J, E, by_q[i])
        for c in range(3):
            for r in range(3):
                D[r, c] = d * J[r, c] + inertia * D[r, c]
                unit[r] = 1.0 if r == c else 0.0
            turn_derivative(1.0, w, unit, k, F)
            for r in range(3):
                for l in range(3):
                    D[r, c] += inertia * F[r, l] * rate[l]
        add_pulled(1.0, J, D, by_v[i])
        add_pulled(inertia, J, J, by_a[i])


@njit(cache=True)
def ball_friction(first, p, constants, state, wanted, forces, by_number, by_state):
    """Fill r = J^T tau tanh(|omega| / s) omega / |omega|, omega = J_l(w) w_dot, p = (tau [N m], s [rad/s])."""
    q, v, by_q, by_v = state[0], state[1], by_state[0], by_state[1]
    k, J, D = np.empty(6), np.empty((3, 3)), np.empty((3, 3))
    omega, unit, T, A = np.empty(3), np.empty(3), np.empty((3, 3)), np.empty((3, 3))
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
        for r in range(3):
            unit[r] = -tau * sech2 / (s * s) * omega[r]
        turn(-1.0, w, unit, k, by_number[i, 1])
        for r in range(3):
            unit[r] = share / s * omega[r]  # torque per tau
        turn(-1.0, w, unit, k, by_number[i, 0])
        for r in range(3):
            forces[i, r] = tau * by_number[i, 0, r]
            unit[r] *= tau
            for c in range(3):
                T[r, c] = tau / s * slope * omega[r] * omega[c] / (s * s)
            T[r, r] += tau * share / s
        fill_jacobian(1.0, w, k, J)
        turn_derivative(1.0, w, rate, k, D)
        turn_derivative(-1.0, w, unit, k, by_q[i])
        add_congruent(J, T, J, A, by_v[i])
        add_congruent(J, T, D, A, by_q[i])


@njit(cache=True)
def ball_limit(first, p, constants, state, wanted, forces, by_number, by_state):
    """Fill r = (k s(e) + d e' s'(e)) n, n = w / |w|, e = |w| - upper, e' = n . w_dot, p = (upper, k, d).

    s(e) = 0 for e < 0, e^2 / (2 delta) for e < delta, e - delta / 2 beyond; delta is the constant [rad].
    """
    q, v, by_q, by_v = state[0], state[1], by_state[0], by_state[1]
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
        for r in range(3):
            forces[i, r] = size * n[r]
            by_number[i, 0, r], by_number[i, 1, r], by_number[i, 2, r] = (
                -by_angle * n[r],
                s * n[r],
                e_dot * slope * n[r],
            )
            for c in range(3):
                across = ((1.0 if r == c else 0.0) - n[r] * n[c]) / angle
                turned = n[r] * (rate[c] - e_dot * n[c]) / angle
                by_q[i, r, c] = by_angle * n[r] * n[c] + size * across + p[i, 2] * slope * turned
                by_v[i, r, c] = p[i, 2] * slope * n[r] * n[c]


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
