"""Laws of the air and of fluids: drag of a body as a whole or along an axis, pressure and friction on faces.

Shapes and signs are those of `add.kernels.springs`: derivatives are added to zeros. The air moves with the wind w; the
pressure is one half rho C s^2, s the speed against the face, and the friction c times the speed along it (the law of
Narain, Samii, O'Brien 2012 with C = 2). All forces are continuously differentiable.
"""

import math

import numpy as np

from add.kernels.caching import njit

_JIT = {"cache": True, "error_model": "numpy"}


@njit(**_JIT)
def drag_force(y, y_dot, p, imposed, codes, f):
    """Fill f = rho C A |u| u / 2, u = w - y_dot, p = (rho, C, A, w)."""
    for e in range(p.shape[0]):
        size = 0.0
        for i in range(3):
            size += (p[e, 3 + i] - y_dot[e, i]) ** 2
        scale = 0.5 * p[e, 0] * p[e, 1] * p[e, 2] * math.sqrt(size)
        for i in range(3):
            f[e, i] = scale * (p[e, 3 + i] - y_dot[e, i])
    return p.shape[0]


@njit(**_JIT)
def drag_derivatives(y, y_dot, p, codes, f, f_y, f_v, f_p):
    """Fill f and its derivatives: df/du = rho C A (|u| I + u u^T / |u|) / 2."""
    drag_force(y, y_dot, p, True, codes, f)
    u = np.empty(3)
    for e in range(p.shape[0]):
        size, half = 0.0, 0.5 * p[e, 0] * p[e, 1] * p[e, 2]
        for i in range(3):
            u[i] = p[e, 3 + i] - y_dot[e, i]
            size += u[i] ** 2
        size = math.sqrt(size)
        if size == 0.0:
            continue
        for i in range(3):
            along = 0.5 * size * u[i]
            f_p[e, i, 0] = p[e, 1] * p[e, 2] * along
            f_p[e, i, 1] = p[e, 0] * p[e, 2] * along
            f_p[e, i, 2] = p[e, 0] * p[e, 1] * along
            for j in range(3):
                slope = half * (u[i] * u[j] / size + (size if i == j else 0.0))
                f_v[e, i, j] = -slope
                f_p[e, i, 3 + j] = slope


@njit(**_JIT)
def axial_drag_force(y, y_dot, p, imposed, codes, f):
    """Fill f = -(c + b |s|) s u, s = u . y_dot, on the first of two sites, u the second, p = (c, b)."""
    for e in range(p.shape[0]):
        u, s = y[2 * e + 1], 0.0
        for i in range(3):
            s += u[i] * y_dot[2 * e, i]
        for i in range(3):
            f[2 * e, i] = -(p[e, 0] + p[e, 1] * abs(s)) * s * u[i]
            f[2 * e + 1, i] = 0.0
    return p.shape[0]


@njit(**_JIT)
def axial_drag_derivatives(y, y_dot, p, codes, f, f_y, f_v, f_p):
    """Fill f and its derivatives: df/dy_dot = -(c + 2 b |s|) u u^T, df/du = -(c + 2 b |s|) u y_dot^T + f . u I."""
    axial_drag_force(y, y_dot, p, True, codes, f)
    for e in range(p.shape[0]):
        u, s = y[2 * e + 1], 0.0
        for i in range(3):
            s += u[i] * y_dot[2 * e, i]
        slope = p[e, 0] + 2.0 * p[e, 1] * abs(s)
        for i in range(3):
            f_p[e, i, 0] = -s * u[i]
            f_p[e, i, 1] = -abs(s) * s * u[i]
            f_y[e, i, 3 + i] -= (p[e, 0] + p[e, 1] * abs(s)) * s
            for j in range(3):
                f_v[e, i, j] = -slope * u[i] * u[j]
                f_y[e, i, 3 + j] -= slope * u[i] * y_dot[2 * e, j]


@njit(**_JIT)
def face_wind(y, y_dot, p, e, a, u):
    """Fill the area vector a = (y_1 - y_0) x (y_2 - y_0) / 2 of a face and u = w - mean of y_dot; return |a|, a . u."""
    size, flow = 0.0, 0.0
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        a[i] = 0.5 * (
            (y[3 * e + 1, j] - y[3 * e, j]) * (y[3 * e + 2, k] - y[3 * e, k])
            - (y[3 * e + 1, k] - y[3 * e, k]) * (y[3 * e + 2, j] - y[3 * e, j])
        )
        u[i] = p[e, 3 + i] - (y_dot[3 * e, i] + y_dot[3 * e + 1, i] + y_dot[3 * e + 2, i]) / 3.0
        size += a[i] ** 2
        flow += a[i] * u[i]
    return math.sqrt(size), flow


@njit(**_JIT)
def _press(y, y_dot, p, closed, f):
    """Fill a third of F on each corner, p = (rho, C, c, w).

    F = rho C |g| g a / (2 |a|^2) + c (|a| u - g a / |a|),  g = a . u,  the pressure of a ``closed`` surface, whose
    normals point outward, only where g < 0: from outside.
    """
    a, u = np.empty(3), np.empty(3)
    for e in range(p.shape[0]):
        area, flow = face_wind(y, y_dot, p, e, a, u)
        if area == 0.0:
            f[3 * e : 3 * e + 3] = 0.0
            continue
        pressure = 0.0 if closed and flow > 0.0 else 0.5 * p[e, 0] * p[e, 1] * abs(flow) * flow / area**2
        for i in range(3):
            force = pressure * a[i] + p[e, 2] * (area * u[i] - flow * a[i] / area)
            for k in range(3):
                f[3 * e + k, i] = force / 3.0


@njit(**_JIT)
def _press_derivatives(y, y_dot, p, closed, f, f_y, f_v, f_p):
    """Fill f and its derivatives, with da/dy_k = [e_k]x / 2, e_k the edge against corner k, and h = rho C / 2 or 0.

    dF/du = 2 h |g| a a^T / |a|^2 + c (|a| I - a a^T / |a|)
    dF/da = h (2 |g| a u^T + |g| g I - 2 |g| g a a^T / |a|^2) / |a|^2
            + c (u a^T - a u^T - g I + g a a^T / |a|^2) / |a|
    """
    _press(y, y_dot, p, closed, f)
    a, u, edge = np.empty(3), np.empty(3), np.empty(3)
    by_a, by_u = np.empty((3, 3)), np.empty((3, 3))
    for e in range(p.shape[0]):
        area, flow = face_wind(y, y_dot, p, e, a, u)
        if area == 0.0:
            continue
        acts = 0.0 if closed and flow > 0.0 else 1.0
        h, c = 0.5 * acts * p[e, 0] * p[e, 1], p[e, 2]
        square, size = abs(flow) * flow, area**2
        for i in range(3):
            for j in range(3):
                same = 1.0 if i == j else 0.0
                outer = a[i] * a[j]
                by_u[i, j] = 2.0 * h * abs(flow) * outer / size + c * (area * same - outer / area)
                by_a[i, j] = h * (2.0 * abs(flow) * a[i] * u[j] + square * (same - 2.0 * outer / size)) / size
                by_a[i, j] += c * (u[i] * a[j] - a[i] * u[j] - flow * (same - outer / size)) / area
        for k in range(3):
            for i in range(3):
                edge[i] = y[3 * e + (k + 2) % 3, i] - y[3 * e + (k + 1) % 3, i]
            for i in range(3):
                for j in range(3):
                    # Column j of [e]x is e x (unit vector j).
                    m, n = (j + 1) % 3, (j + 2) % 3
                    turned = by_a[i, m] * edge[n] - by_a[i, n] * edge[m]
                    for corner in range(3):
                        f_y[e, 3 * corner + i, 3 * k + j] = turned / 6.0
                        f_v[e, 3 * corner + i, 3 * k + j] = -by_u[i, j] / 9.0
        for i in range(3):
            pressed, rubbed = 0.5 * acts * square * a[i] / size, area * u[i] - flow * a[i] / area
            for corner in range(3):
                row = 3 * corner + i
                f_p[e, row, 0] = p[e, 1] * pressed / 3.0
                f_p[e, row, 1] = p[e, 0] * pressed / 3.0
                f_p[e, row, 2] = rubbed / 3.0
                for j in range(3):
                    f_p[e, row, 3 + j] = by_u[i, j] / 3.0


@njit(**_JIT)
def face_force(y, y_dot, p, imposed, codes, f):
    """Fill f on faces of a sheet, on which both sides press."""
    _press(y, y_dot, p, False, f)
    return p.shape[0]


@njit(**_JIT)
def face_derivatives(y, y_dot, p, codes, f, f_y, f_v, f_p):
    """Fill f on faces of a sheet and its derivatives."""
    _press_derivatives(y, y_dot, p, False, f, f_y, f_v, f_p)


@njit(**_JIT)
def closed_face_force(y, y_dot, p, imposed, codes, f):
    """Fill f on faces of a closed surface."""
    _press(y, y_dot, p, True, f)
    return p.shape[0]


@njit(**_JIT)
def closed_face_derivatives(y, y_dot, p, codes, f, f_y, f_v, f_p):
    """Fill f on faces of a closed surface and its derivatives."""
    _press_derivatives(y, y_dot, p, True, f, f_y, f_v, f_p)
