"""Rotation vectors: exponential map, left Jacobian, quaternions (w, x, y, z), and changes of chart.

The equations of a change of chart stand in `add.equations.charts`.
"""

import math

import numpy as np

from add.kernels.caching import CALLED, njit


@njit(cache=True)
def skew(w):
    """Return [w]x with [w]x u = w x u."""
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


@njit(cache=True)
def rotation_matrix(w):
    """Return exp([w]x); see `fill_rotation`."""
    k, R = np.empty(6), np.empty((3, 3))
    jacobian_coefficients(w[0] * w[0] + w[1] * w[1] + w[2] * w[2], k)
    fill_rotation(w, k, R)
    return R


@njit(cache=True)
def left_jacobian(w):
    """Return J_l with omega = J_l(w) w_dot; see `fill_jacobian`."""
    k, J = np.empty(6), np.empty((3, 3))
    jacobian_coefficients(w[0] * w[0] + w[1] * w[1] + w[2] * w[2], k)
    fill_jacobian(1.0, w, k, J)
    return J


def rotation_vector(quaternion):
    """Return the rotation vector of a unit quaternion (w, x, y, z), of length at most pi [rad]."""
    w, *xyz = np.asarray(quaternion, dtype=float)
    axis = np.array(xyz)
    if w < 0.0:
        w, axis = -w, -axis
    s = np.linalg.norm(axis)
    if s < 1e-12:
        return 2.0 * axis
    return 2.0 * np.arctan2(s, w) / s * axis


@njit(cache=True)
def jacobian_coefficients(p, out):
    """Fill out (6,) with b, b', b'', c, c', c'' at p = |w|^2, primes being d/dp.

    b = (1 - cos t)/t^2,  c = (t - sin t)/t^3,  t = sqrt(p). With s = sin(t)/t:
    p b' = s/2 - b,  p c' = (b - 3 c)/2,  p s' = (cos t - s)/2,  p b'' = s'/2 - 2 b',  p c'' = (b' - 5 c')/2. Near zero,
    where these cancel, the power series: b = sum (-p)^k / (2k + 2)!,  c = sum (-p)^k / (2k + 3)!.
    """
    if p < 1.0:
        for k in range(6):
            out[k] = 0.0
        fb, fc = 0.5, 1.0 / 6.0  # 1/(2k + 2)!, 1/(2k + 3)! with the sign of (-1)^k
        power0, power1, power2 = 1.0, 0.0, 0.0  # p^k, d/dp, d2/dp2
        for k in range(13):
            out[0] += fb * power0
            out[1] += fb * power1
            out[2] += fb * power2
            out[3] += fc * power0
            out[4] += fc * power1
            out[5] += fc * power2
            power2 = p * power2 + 2.0 * power1
            power1 = p * power1 + power0
            power0 = p * power0
            fb /= -(2.0 * k + 3.0) * (2.0 * k + 4.0)
            fc /= -(2.0 * k + 4.0) * (2.0 * k + 5.0)
        return
    t = np.sqrt(p)
    s, cos = np.sin(t) / t, np.cos(t)
    half = np.sin(0.5 * t)
    b = 2.0 * half * half / p
    c = (1.0 - s) / p
    s1 = 0.5 * (cos - s) / p
    b1 = (0.5 * s - b) / p
    c1 = 0.5 * (b - 3.0 * c) / p
    out[0], out[1], out[2] = b, b1, (0.5 * s1 - 2.0 * b1) / p
    out[3], out[4], out[5] = c, c1, 0.5 * (b1 - 5.0 * c1) / p


@njit(cache=True)
def turn(sign, w, u, k, out):
    """Fill out (3,) with J u, J = J_l(w) for sign +1 and J_r(w) = J_l(w)^T for sign -1; k from `jacobian_coefficients`.

    J u = u + sign b w x u + c w x (w x u)
    """
    x0, x1, x2 = w[1] * u[2] - w[2] * u[1], w[2] * u[0] - w[0] * u[2], w[0] * u[1] - w[1] * u[0]
    b, c = sign * k[0], k[3]
    y0, y1, y2 = w[1] * x2 - w[2] * x1, w[2] * x0 - w[0] * x2, w[0] * x1 - w[1] * x0
    out[0] = u[0] + b * x0 + c * y0
    out[1] = u[1] + b * x1 + c * y1
    out[2] = u[2] + b * x2 + c * y2


@njit(cache=True)
def turn_derivative(sign, w, u, k, D):
    """Fill D (3, 3) with d(J u)/dw, J as in `turn`, u held.

    D = sign (-b [u]x + 2 b' (w x u) w^T) + c ((w.u) I + w u^T - 2 u w^T) + 2 c' (w (w.u) - p u) w^T
    """
    b, b1, c, c1 = sign * k[0], sign * k[1], k[3], k[4]
    dot = w[0] * u[0] + w[1] * u[1] + w[2] * u[2]
    p = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    for i in range(3):
        j, l = (i + 1) % 3, (i + 2) % 3
        cross = w[j] * u[l] - w[l] * u[j]
        along = 2.0 * b1 * cross + 2.0 * c1 * (w[i] * dot - p * u[i]) - 2.0 * c * u[i]
        for a in range(3):
            D[i, a] = along * w[a] + c * w[i] * u[a]
        D[i, i] += c * dot
    D[0, 1] += b * u[2]
    D[0, 2] -= b * u[1]
    D[1, 0] -= b * u[2]
    D[1, 2] += b * u[0]
    D[2, 0] += b * u[1]
    D[2, 1] -= b * u[0]


@njit(cache=True)
def turn_second_derivative(sign, w, u, h, k, E):
    """Fill E (3, 3) with d(D h)/dw, D from `turn_derivative`, u and h held."""
    b1, b2, c, c1, c2 = sign * k[1], sign * k[2], k[3], k[4], k[5]
    wu = w[0] * u[0] + w[1] * u[1] + w[2] * u[2]
    wh = w[0] * h[0] + w[1] * h[1] + w[2] * h[2]
    uh = u[0] * h[0] + u[1] * h[1] + u[2] * h[2]
    p = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    for i in range(3):
        j, l = (i + 1) % 3, (i + 2) % 3
        wxu = w[j] * u[l] - w[l] * u[j]
        hxu = h[j] * u[l] - h[l] * u[j]
        wwu = w[i] * wu - p * u[i]
        by_w = 2.0 * b1 * hxu + 4.0 * b2 * wh * wxu + 2.0 * c1 * (wu * h[i] + w[i] * uh - 2.0 * u[i] * wh)
        by_w += 4.0 * c2 * wh * wwu - 4.0 * c1 * wh * u[i]
        by_h = 2.0 * b1 * wxu + 2.0 * c1 * wwu - 2.0 * c * u[i]
        by_u = c * h[i] + 2.0 * c1 * wh * w[i]
        for a in range(3):
            E[i, a] = by_w * w[a] + by_h * h[a] + by_u * u[a]
        E[i, i] += c * uh + 2.0 * c1 * wh * wu
    f = 2.0 * b1 * wh
    E[0, 1] += f * u[2]
    E[0, 2] -= f * u[1]
    E[1, 0] -= f * u[2]
    E[1, 2] += f * u[0]
    E[2, 0] += f * u[1]
    E[2, 1] -= f * u[0]


@njit(cache=True)
def _fill(w, a, b, out):
    """Fill out (3, 3) = I + a [w]x + b [w]x^2, where [w]x^2 = w w^T - |w|^2 I."""
    p = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    for i in range(3):
        for j in range(3):
            out[i, j] = b * w[i] * w[j]
        out[i, i] += 1.0 - b * p
    out[0, 1] -= a * w[2]
    out[0, 2] += a * w[1]
    out[1, 0] += a * w[2]
    out[1, 2] -= a * w[0]
    out[2, 0] -= a * w[1]
    out[2, 1] += a * w[0]


@njit(cache=True)
def fill_rotation(w, k, R):
    """Fill R (3, 3) = exp([w]x) = I + s [w]x + b [w]x^2, s = sin(t)/t = 1 - p c (Rodrigues)."""
    p = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    _fill(w, 1.0 - p * k[3], k[0], R)


@njit(cache=True)
def fill_jacobian(sign, w, k, J):
    """Fill J (3, 3) = I + sign b [w]x + c [w]x^2: J_l(w) for sign +1, J_r(w) = J_l(w)^T for sign -1.

    omega = J_l w_dot in world axes, J_r w_dot in body axes.
    """
    _fill(w, sign * k[0], k[3], J)


@njit(cache=True)
def rotation_vector_of(R, w):
    """Fill w (3,), |w| <= pi, with R = exp([w]x), by the largest entry of the quaternion (Shepperd's method)."""
    p = np.empty(4)
    trace = R[0, 0] + R[1, 1] + R[2, 2]
    largest, best = 3, trace
    for i in range(3):
        if R[i, i] > best:
            largest, best = i, R[i, i]
    if largest == 3:
        p[3] = 1.0 + trace
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            p[i] = R[k, j] - R[j, k]
    else:
        i, j, k = largest, (largest + 1) % 3, (largest + 2) % 3
        p[i] = 1.0 + R[i, i] - R[j, j] - R[k, k]
        p[j] = R[j, i] + R[i, j]
        p[k] = R[k, i] + R[i, k]
        p[3] = R[k, j] - R[j, k]
    sign = -1.0 if p[3] < 0.0 else 1.0
    sine = np.sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2])
    if sine < 1e-9 * abs(p[3]):
        f = 2.0 / abs(p[3])
    else:
        f = 2.0 * np.arctan2(sine, abs(p[3])) / sine
    for i in range(3):
        w[i] = sign * f * p[i]


@njit(**CALLED)
def beyond_pi(q, rotations):
    """Return which (k,) of the rotation vectors, given by their first coordinates, are longer than pi."""
    out = np.zeros(rotations.size, dtype=np.bool_)
    for k in range(rotations.size):
        i = rotations[k]
        out[k] = q[i] * q[i] + q[i + 1] * q[i + 1] + q[i + 2] * q[i + 2] > math.pi * math.pi
    return out


@njit(**CALLED)
def _derivative(w, D):
    """Fill D (3, 3), and return |w|."""
    t = math.sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
    for i in range(3):
        for j in range(3):
            D[i, j] = 2.0 * math.pi / (t * t * t) * w[i] * w[j]
        D[i, i] += 1.0 - 2.0 * math.pi / t
    return t


@njit(**CALLED)
def change_chart(first, q, v):
    """Change the chart of the rotation vector that begins at ``first`` in all pairs q, v (m, n)."""
    D, turned = np.empty((3, 3)), np.empty(3)
    for k in range(q.shape[0]):
        t = _derivative(q[k, first : first + 3], D)
        for i in range(3):
            turned[i] = D[i, 0] * v[k, first] + D[i, 1] * v[k, first + 1] + D[i, 2] * v[k, first + 2]
        for i in range(3):
            v[k, first + i] = turned[i]
            q[k, first + i] *= 1.0 - 2.0 * math.pi / t


@njit(**CALLED)
def change_chart_pullback(first, q, v, q_bar, v_bar):
    """Replace the cotangents (m, n) after `change_chart` by those before it, at the pairs q, v before it."""
    D, of_q, of_v = np.empty((3, 3)), np.empty(3), np.empty(3)
    for k in range(q.shape[0]):
        w, h = q[k, first : first + 3], v[k, first : first + 3]
        t = _derivative(w, D)
        wh = w[0] * h[0] + w[1] * h[1] + w[2] * h[2]
        for i in range(3):
            of_q[i], of_v[i] = 0.0, 0.0
            for j in range(3):
                second = h[i] * w[j] + w[i] * h[j] - 3.0 * wh / (t * t) * w[i] * w[j] + (wh if i == j else 0.0)
                second *= 2.0 * math.pi / (t * t * t)
                of_v[i] += D[i, j] * v_bar[k, first + j]
                of_q[i] += D[i, j] * q_bar[k, first + j] + second * v_bar[k, first + j]
        for i in range(3):
            q_bar[k, first + i], v_bar[k, first + i] = of_q[i], of_v[i]
