"""Laws of fluids and gases: drag of a body, along an axis or of an ellipsoid, pressure and friction on faces.

Shapes and signs are those of `add.kernels.springs`: derivatives are added to zeros. The air moves with the wind w; the
pressure is one half rho C s^2, s the speed against the face, and the friction c times the speed along it (the law of
Narain, Samii, O'Brien 2012 with C = 2). All forces are continuously differentiable.

A gas is enclosed by triangles (m, 3) of nodes that go round outward from it. Each puts a third of the force p A on each
of its corners,

    A = (x_1 - x_0) x (x_2 - x_0) / 2,      dA/dx_k = [e_k]x / 2,

e_k the edge against corner k. On a closed surface the forces at p = 1 are dV/dx of the enclosed volume and their
derivatives are d2V/dx2, symmetric; those of an open one are not.
"""

import math
from typing import Any

import numpy as np

from add.kernels.caching import njit
from add.kernels.sites import cross

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
    """Fill f = -(c + b |s|) s u, s = u . (y_dot - w), on the first of two sites, u the second, p = (c, b, w)."""
    for e in range(p.shape[0]):
        u, s = y[2 * e + 1], 0.0
        for i in range(3):
            s += u[i] * (y_dot[2 * e, i] - p[e, 2 + i])
        for i in range(3):
            f[2 * e, i] = -(p[e, 0] + p[e, 1] * abs(s)) * s * u[i]
            f[2 * e + 1, i] = 0.0
    return p.shape[0]


@njit(**_JIT)
def axial_drag_derivatives(y, y_dot, p, codes, f, f_y, f_v, f_p):
    """Fill f and, with v = y_dot - w, df/dv = -(c + 2 b |s|) u u^T, df/du = -(c + 2 b |s|) u v^T + f . u I."""
    axial_drag_force(y, y_dot, p, True, codes, f)
    v = np.empty(3)
    for e in range(p.shape[0]):
        u, s = y[2 * e + 1], 0.0
        for i in range(3):
            v[i] = y_dot[2 * e, i] - p[e, 2 + i]
            s += u[i] * v[i]
        slope = p[e, 0] + 2.0 * p[e, 1] * abs(s)
        for i in range(3):
            f_p[e, i, 0] = -s * u[i]
            f_p[e, i, 1] = -abs(s) * s * u[i]
            f_y[e, i, 3 + i] -= (p[e, 0] + p[e, 1] * abs(s)) * s
            for j in range(3):
                f_v[e, i, j] = -slope * u[i] * u[j]
                f_p[e, i, 2 + j] = slope * u[i] * u[j]
                f_y[e, i, 3 + j] -= slope * u[i] * v[j]


@njit(**_JIT)
def ellipsoid_wrench(z, out):
    """Fill force and torque (6,) of a fluid on an ellipsoid, in any numbers, real or complex.

    z = (v less the wind, omega, u_1, u_2; rho, beta, semi-axes d, C_blunt, C_slender, C_angular, C_Kutta, C_Magnus,
    added mass m and inertia k over rho). In the axes u_1, u_2, u_1 x u_2, with n = (d_2 d_3, d_3 d_1, d_1 d_2)^2 v,
    A = pi |n| / sqrt(n . v), D = 2/3 sum d, V its volume (the model of MuJoCo, "Fluid forces"):

    F = -(3 pi beta D + rho |v| (C_blunt A + C_slender (A_max - A))) v + C_Magnus rho V omega x v
        + C_Kutta rho (n . v) A / (|v| |n|^2) (n x v) x v + rho (m v) x omega
    T = -(pi beta D^3 + rho |I omega|) omega + rho (m v) x v + rho (k omega) x omega
    I_i = C_angular J_i + C_slender (J_max - J_i),  J_i = 8/15 pi d_i max(d_j, d_k)^4
    """
    room = np.zeros((14, 3), z.dtype)
    axes, v, w, n, p, l = room[:3], room[3], room[4], room[5], room[6], room[7]
    held, up, side, turned, spun, about = room[8], room[9], room[10], room[11], room[12], room[13]
    rho, beta, d = z[12], z[13], z[14:17]
    axes[0], axes[1] = z[6:9], z[9:12]
    cross(axes[0], axes[1], axes[2])
    for i in range(3):
        for j in range(3):
            v[i] += axes[i, j] * z[j]
            w[i] += axes[i, j] * z[3 + j]
    most, least = d[0], d[0]
    for i in range(1, 3):
        most, least = (d[i] if d[i].real > most.real else most), (d[i] if d[i].real < least.real else least)
    middle = d[0] + d[1] + d[2] - most - least
    square, through, size, spin = 0.0 * rho, 0.0 * rho, 0.0 * rho, 0.0 * rho
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        n[i] = (d[j] * d[k]) ** 2 * v[i]
        square += v[i] ** 2
        through += n[i] * v[i]
        size += n[i] ** 2
        slender = 8.0 / 15.0 * math.pi * d[i] * (d[j] if d[j].real > d[k].real else d[k]) ** 4
        whole = 8.0 / 15.0 * math.pi * middle * most**4
        spin += (w[i] * (z[19] * slender + z[18] * (whole - slender))) ** 2
        p[i], l[i] = rho * z[22 + i] * v[i], rho * z[25 + i] * w[i]
    wide = 2.0 / 3.0 * (d[0] + d[1] + d[2])
    drag, lift, brake = 3.0 * math.pi * beta * wide, 0.0 * rho, math.pi * beta * wide**3
    if square.real > 0.0:
        speed, area = np.sqrt(square), math.pi * np.sqrt(size / through)
        drag += rho * speed * (z[17] * area + z[18] * (math.pi * most * middle - area))
        lift = z[20] * rho * through * area / (speed * size)
    if spin.real > 0.0:
        brake += rho * np.sqrt(spin)
    cross(n, v, held)
    cross(held, v, up)
    cross(w, v, side)
    cross(p, w, turned)
    cross(p, v, spun)
    cross(l, w, about)
    magnus = 4.0 / 3.0 * math.pi * z[21] * rho * d[0] * d[1] * d[2]
    out[:] = 0.0
    for i in range(3):
        force = -drag * v[i] + magnus * side[i] + lift * up[i] + turned[i]
        torque = -brake * w[i] + spun[i] + about[i]
        for j in range(3):
            out[j] += axes[i, j] * force
            out[3 + j] += axes[i, j] * torque


@njit(**_JIT)
def _state_of_ellipsoid(y, y_dot, p, e, z):
    for i in range(3):
        z[i], z[3 + i] = y_dot[4 * e, i] - p[e, 16 + i], y_dot[4 * e + 1, i]
        z[6 + i], z[9 + i] = y[4 * e + 2, i], y[4 * e + 3, i]
    for i in range(16):
        z[12 + i] = p[e, i]


@njit(**_JIT)
def ellipsoid_force(y, y_dot, p, imposed, codes, f):
    """Fill the force on a place and the torque on a spin of `ellipsoid_wrench`; two directions feel nothing."""
    z, out = np.empty(28), np.empty(6)
    f[:] = 0.0
    for e in range(p.shape[0]):
        _state_of_ellipsoid(y, y_dot, p, e, z)
        ellipsoid_wrench(z, out)
        f[4 * e], f[4 * e + 1] = out[:3], out[3:]
    return p.shape[0]


@njit(**_JIT)
def ellipsoid_derivatives(y, y_dot, p, codes, f, f_y, f_v, f_p):
    """Fill f and its derivatives, by steps along the imaginary axis: exact to round-off (Squire & Trapp 1998)."""
    ellipsoid_force(y, y_dot, p, True, codes, f)
    z, out, step = np.empty(28, dtype=np.complex128), np.empty(6, dtype=np.complex128), 1e-30
    for e in range(p.shape[0]):
        _state_of_ellipsoid(y, y_dot, p, e, z)
        for c in range(28):
            z[c] += 1j * step
            ellipsoid_wrench(z, out)
            z[c] = z[c].real
            for i in range(6):
                slope = out[i].imag / step
                if c < 6:
                    f_v[e, i, c] = slope
                elif c < 12:
                    f_y[e, i, c] = slope
                else:
                    f_p[e, i, c - 12] = slope
                if c < 3:
                    f_p[e, i, 16 + c] = -slope


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


def faces(closed):
    """Return force and derivatives on faces of a sheet, on which both sides press, or of a ``closed`` surface."""

    @njit(variant=f"closed_{closed}", **_JIT)
    def force(y, y_dot, p, imposed, codes, f):
        _press(y, y_dot, p, closed, f)
        return p.shape[0]

    @njit(variant=f"closed_{closed}", **_JIT)
    def derivatives(y, y_dot, p, codes, f, f_y, f_v, f_p):
        _press_derivatives(y, y_dot, p, closed, f, f_y, f_v, f_p)

    return force, derivatives


FACES: tuple[Any, Any] = faces(False)
CLOSED_FACES: tuple[Any, Any] = faces(True)


@njit(**_JIT)
def add_pressed(x, triangles, factor, out):
    """Add ``factor`` times the forces at p = 1 [m^2] to ``out`` (3 n,); x (3 n,) places [m]."""
    for e in range(triangles.shape[0]):
        a, b, c = 3 * triangles[e, 0], 3 * triangles[e, 1], 3 * triangles[e, 2]
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            normal = (x[b + j] - x[a + j]) * (x[c + k] - x[a + k]) - (x[b + k] - x[a + k]) * (x[c + j] - x[a + j])
            value = factor * normal / 6.0
            out[a + i] += value
            out[b + i] += value
            out[c + i] += value


@njit(**_JIT)
def add_pressed_blocks(x, triangles, factor, data, slots):
    """Add ``factor`` times the derivatives of the forces at p = 1, 81 a triangle: corner, axis, corner, axis."""
    edge = np.empty(3)
    for e in range(triangles.shape[0]):
        for corner in range(3):
            after, before = 3 * triangles[e, (corner + 1) % 3], 3 * triangles[e, (corner + 2) % 3]
            for i in range(3):
                edge[i] = factor * (x[before + i] - x[after + i]) / 6.0
            for j in range(3):
                # Column j of [e]x is e x (unit vector j).
                m, n = (j + 1) % 3, (j + 2) % 3
                for row in range(3):
                    at = 81 * e + 27 * row + 3 * corner + j
                    data[slots[at + 9 * m]] += edge[n]
                    data[slots[at + 9 * n]] -= edge[m]


@njit(**_JIT)
def enclosed_volume(x, triangles):
    """Return V = sum x_0 . (x_1 x x_2) / 6 [m^3], from the first corner on: far from the origin nothing is lost."""
    o = 3 * triangles[0, 0]
    total = 0.0
    for e in range(triangles.shape[0]):
        a, b, c = 3 * triangles[e, 0], 3 * triangles[e, 1], 3 * triangles[e, 2]
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            normal = (x[b + j] - x[o + j]) * (x[c + k] - x[o + k]) - (x[b + k] - x[o + k]) * (x[c + j] - x[o + j])
            total += (x[a + i] - x[o + i]) * normal
    return total / 6.0
