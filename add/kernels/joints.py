"""Laws of any numbers, and those about the axes of joints: friction of their rotation, sliders, limits of an angle.

Shapes and signs are those of `add.kernels.springs`: sites of interaction e are rows 3 e to 3 e + 2 of y, y_dot and
f; derivatives are added to zeros.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from add.kernels.caching import CALLED, njit
from add.kernels.springs import dot

# --- laws of any numbers ----------------------------------------------------------------------------------------------

_STEP, _OVER_STEP = 2.0**-100, 2.0**100


def by_imaginary_steps(name: str, law: Any, columns: Sequence[int]) -> tuple[Any, Any]:
    """Return force and derivatives of ``law``(y, y_dot, p, f), which fills f (r, 3) of one interaction from its sites.

    It takes real and complex numbers. Derivatives are by steps along the imaginary axis, exact to round-off (Squire &
    Trapp 1998), by those ``columns`` of (y, y_dot, p) in a row that f depends on.
    """
    used = tuple(columns)

    @njit(variant=name, **CALLED)
    def force(y, y_dot, p, imposed, codes, f):
        for e in range(p.shape[0]):
            arity = y.shape[0] // p.shape[0]
            first, end = arity * e, arity * (e + 1)
            law(y[first:end], y_dot[first:end], p[e], f[first:end])
        return p.shape[0]

    @njit(variant=name, **CALLED)
    def derivatives(y, y_dot, p, codes, f, f_y, f_v, f_p):
        size = f_y.shape[1]
        z = np.empty(2 * size + p.shape[1], dtype=np.complex128)
        at, rate, numbers = z[:size].reshape(-1, 3), z[size : 2 * size].reshape(-1, 3), z[2 * size :]
        out = np.empty(at.shape, dtype=np.complex128)
        for e in range(p.shape[0]):
            first = size // 3 * e
            for i in range(size):
                at[i // 3, i % 3], rate[i // 3, i % 3] = y[first + i // 3, i % 3], y_dot[first + i // 3, i % 3]
            for i in range(numbers.size):
                numbers[i] = p[e, i]
            for c in used:
                z[c] = complex(z[c].real, _STEP)
                law(at, rate, numbers, out)
                z[c] = complex(z[c].real, 0.0)
                for i in range(size):
                    slope = out[i // 3, i % 3].imag * _OVER_STEP
                    if c < size:
                        f_y[e, i, c] = slope
                    elif c < 2 * size:
                        f_v[e, i, c - size] = slope
                    else:
                        f_p[e, i, c - 2 * size] = slope
            for i in range(size):
                f[first + i // 3, i % 3] = out[i // 3, i % 3].real

    return force, derivatives


@njit(**CALLED)
def slide(y, y_dot, p, f):
    """Fill f = -A^T g, g = k eps + c eps_dot, p = (k, c): -dE/dy of E = k/2 |eps|^2, and damping likewise.

    eps = d - u (u . d),  d = y_a - y_b,  A = d eps / d(y_a, y_b, u) = [P, -P, -(u . d) I - u d^T],  P = I - u u^T
    """
    u, u_dot, along, along_dot, along_g = y[2], y_dot[2], 0.0 * p[0], 0.0 * p[0], 0.0 * p[0]
    for i in range(3):
        d, v = y[0, i] - y[1, i], y_dot[0, i] - y_dot[1, i]
        along += u[i] * d
        along_dot += u_dot[i] * d + u[i] * v
    for i in range(3):
        offset = y[0, i] - y[1, i] - u[i] * along
        rate = y_dot[0, i] - y_dot[1, i] - u_dot[i] * along - u[i] * along_dot
        f[1, i] = p[0] * offset + p[1] * rate
        along_g += u[i] * f[1, i]
    for i in range(3):
        f[2, i] = along * f[1, i] + along_g * (y[0, i] - y[1, i])
        f[1, i] -= along_g * u[i]
        f[0, i] = -f[1, i]


SLIDER = by_imaginary_steps("slider", slide, range(20))


# --- friction in a joint ----------------------------------------------------------------------------------------------


@njit(**CALLED)
def friction_force(y, y_dot, p, imposed, codes, f):
    """Fill the torques -T u on a and T u on b, p = (c, tau_c, s_0).

    T = c s + tau_c tanh(s / s_0),  s = u . (omega_a - omega_b)
    """
    for e in range(p.shape[0]):
        a, b, u = 3 * e, 3 * e + 1, y[3 * e + 2]
        s = dot(u, y_dot[a]) - dot(u, y_dot[b])
        torque = p[e, 0] * s + p[e, 1] * math.tanh(s / p[e, 2])
        for i in range(3):
            f[a, i] = -torque * u[i]
            f[b, i] = torque * u[i]
            f[3 * e + 2, i] = 0.0
    return p.shape[0]


@njit(**CALLED)
def friction_derivatives(y, y_dot, p, codes, f, f_y, f_v, f_p):
    """Fill f and its derivatives: df_a/du = -T I - T' u (omega_a - omega_b)^T,  df_a/domega_a = -T' u u^T."""
    friction_force(y, y_dot, p, True, codes, f)
    for e in range(p.shape[0]):
        a, b, u = 3 * e, 3 * e + 1, y[3 * e + 2]
        s = dot(u, y_dot[a]) - dot(u, y_dot[b])
        tanh = math.tanh(s / p[e, 2])
        bend = (1.0 - tanh * tanh) / p[e, 2]
        torque, slope = p[e, 0] * s + p[e, 1] * tanh, p[e, 0] + p[e, 1] * bend
        for t in range(2):
            sign = 1.0 if t == 0 else -1.0
            for i in range(3):
                row = 3 * t + i
                for j in range(3):
                    f_y[e, row, 6 + j] = -sign * slope * u[i] * (y_dot[a, j] - y_dot[b, j])
                    f_v[e, row, j] = -sign * slope * u[i] * u[j]
                    f_v[e, row, 3 + j] = sign * slope * u[i] * u[j]
                f_y[e, row, 6 + i] -= sign * torque
                f_p[e, row, 0] = -sign * s * u[i]
                f_p[e, row, 1] = -sign * tanh * u[i]
                f_p[e, row, 2] = sign * p[e, 1] * bend * s / p[e, 2] * u[i]


# --- limits of an angle -----------------------------------------------------------------------------------------------


@njit(**CALLED)
def wrapped(angle):
    """Return the angle in (-pi, pi] that differs from ``angle`` by whole turns."""
    return angle - 2.0 * math.pi * math.ceil((angle - math.pi) / (2.0 * math.pi))


@njit(**CALLED)
def joint_angle(y, y_dot, e, gradient):
    """Fill the gradient (9,) of phi = atan2(e_2 . m, e_1 . m); return phi, its rate and the two products."""
    e1, e2, m = y[3 * e], y[3 * e + 1], y[3 * e + 2]
    cos, sin = dot(e1, m), dot(e2, m)
    r2 = cos * cos + sin * sin
    rate = 0.0
    for i in range(3):
        gradient[i] = -sin * m[i] / r2
        gradient[3 + i] = cos * m[i] / r2
        gradient[6 + i] = (cos * e2[i] - sin * e1[i]) / r2
        for a in range(3):
            rate += gradient[3 * a + i] * y_dot[3 * e + a, i]
    return math.atan2(sin, cos), rate, cos, sin


@njit(**CALLED)
def angle_curvature(y, y_dot, e, cos, sin, curvature, turned):
    """Fill the Hessian (9, 9) of phi, of which `joint_angle` gave the two products, and its product with the rates."""
    c_y, s_y = np.empty(9), np.empty(9)
    r2 = cos * cos + sin * sin
    by_c, by_s = -sin / r2, cos / r2
    by_cc, by_cs = 2.0 * sin * cos / (r2 * r2), (sin * sin - cos * cos) / (r2 * r2)
    for i in range(3):
        e1, e2, m = y[3 * e, i], y[3 * e + 1, i], y[3 * e + 2, i]
        c_y[i], c_y[3 + i], c_y[6 + i] = m, 0.0, e1
        s_y[i], s_y[3 + i], s_y[6 + i] = 0.0, m, e2
    for i in range(9):
        for j in range(9):
            curvature[i, j] = by_cc * (c_y[i] * c_y[j] - s_y[i] * s_y[j]) + by_cs * (c_y[i] * s_y[j] + s_y[i] * c_y[j])
    for i in range(3):
        curvature[i, 6 + i] += by_c
        curvature[6 + i, i] += by_c
        curvature[3 + i, 6 + i] += by_s
        curvature[6 + i, 3 + i] += by_s
    for i in range(9):
        turned[i] = 0.0
        for j in range(9):
            turned[i] += curvature[i, j] * y_dot[3 * e + j // 3, j % 3]


def angle_law(name, formula):
    """Return force and derivatives of a law of the angle phi of a hinge, f = -T(phi, phi_dot; p) dphi/dy.

    ``formula``: (phi, phi_dot, p, T_p) -> T, dT/dphi, dT/dphi_dot; fills dT/dp. With gradient g and Hessian H of phi,
    df/dy = -g (T_phi g + T_rate H y_dot)^T - T H and df/dy_dot = -T_rate g g^T.
    """

    @njit(variant=name, **CALLED)
    def force(y, y_dot, p, imposed, codes, f):
        g, slopes = np.empty(9), np.empty(p.shape[1])
        for e in range(p.shape[0]):
            phi, rate, _, _ = joint_angle(y, y_dot, e, g)
            torque = formula(phi, rate, p[e], slopes)[0]
            for j in range(9):
                f[3 * e + j // 3, j % 3] = -torque * g[j]
        return p.shape[0]

    @njit(variant=name, **CALLED)
    def derivatives(y, y_dot, p, codes, f, f_y, f_v, f_p):
        g, turned, H, slopes = np.empty(9), np.empty(9), np.empty((9, 9)), np.empty(p.shape[1])
        for e in range(p.shape[0]):
            phi, rate, cos, sin = joint_angle(y, y_dot, e, g)
            torque, by_angle, by_rate = formula(phi, rate, p[e], slopes)
            angle_curvature(y, y_dot, e, cos, sin, H, turned)
            for i in range(9):
                f[3 * e + i // 3, i % 3] = -torque * g[i]
                for j in range(9):
                    f_y[e, i, j] = -g[i] * (by_angle * g[j] + by_rate * turned[j]) - torque * H[i, j]
                    f_v[e, i, j] = -by_rate * g[i] * g[j]
                for k in range(p.shape[1]):
                    f_p[e, i, k] = -slopes[k] * g[i]

    return force, derivatives


@njit(**CALLED)
def limit_force(y, y_dot, p, imposed, codes, f):
    """Fill f = -(k x + c phi_dot) dphi/dy, x = phi - hi (code 1) or phi - lo (code -1), p = (k, c, lo, hi).

    The turn of phi is the one nearest to the middle of the range. Return how many act.
    """
    active = 0
    gradient = np.empty(9)
    for e in range(p.shape[0]):
        f[3 * e : 3 * e + 3] = 0.0
        if imposed and codes[e] == 0:
            continue
        phi, rate, _, _ = joint_angle(y, y_dot, e, gradient)
        lo, hi = p[e, 2], p[e, 3]
        if not imposed:
            off = wrapped(phi - 0.5 * (lo + hi))
            codes[e] = 1 if off > 0.5 * (hi - lo) else (-1 if off < -0.5 * (hi - lo) else 0)
            if codes[e] == 0:
                continue
        active += 1
        torque = -p[e, 0] * wrapped(phi - (hi if codes[e] > 0 else lo)) - p[e, 1] * rate
        for j in range(9):
            f[3 * e + j // 3, j % 3] = torque * gradient[j]
    return active


@njit(**CALLED)
def limit_derivatives(y, y_dot, p, codes, f, f_y, f_v, f_p):
    """Fill f and its derivatives: g and H being the gradient and Hessian of phi.

    df/dy = -g (k g + c H y_dot)^T + tau H,  df/dy_dot = -c g g^T
    """
    g, turned, H = np.empty(9), np.empty(9), np.empty((9, 9))
    for e in range(p.shape[0]):
        f[3 * e : 3 * e + 3] = 0.0
        if codes[e] == 0:
            continue
        k, c = p[e, 0], p[e, 1]
        phi, rate, cos, sin = joint_angle(y, y_dot, e, g)
        excess = wrapped(phi - (p[e, 3] if codes[e] > 0 else p[e, 2]))
        torque = -k * excess - c * rate
        angle_curvature(y, y_dot, e, cos, sin, H, turned)
        for i in range(9):
            f[3 * e + i // 3, i % 3] = torque * g[i]
            for j in range(9):
                f_y[e, i, j] = -g[i] * (k * g[j] + c * turned[j]) + torque * H[i, j]
                f_v[e, i, j] = -c * g[i] * g[j]
            f_p[e, i, 0] = -excess * g[i]
            f_p[e, i, 1] = -rate * g[i]
            f_p[e, i, 3 if codes[e] > 0 else 2] = k * g[i]
