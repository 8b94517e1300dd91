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

from add.kernels.caching import CALLED, njit
from add.kernels.joints import by_imaginary_steps
from add.kernels.sites import cross


@njit(**CALLED)
def drag(y, y_dot, p, f):
    """Fill f = rho C A |u| u / 2, u = w - y_dot, p = (rho, C, A, w)."""
    square = 0.0 * p[0]
    for i in range(3):
        square += (p[3 + i] - y_dot[0, i]) * (p[3 + i] - y_dot[0, i])
    speed = math.sqrt(max(square.real, 0.0))  # a step along the imaginary axis from rest makes it negative
    scale = 0.5 * p[0] * p[1] * p[2] * (speed + (0.5 * (square - square.real) / speed if speed > 0.0 else square))
    for i in range(3):
        f[0, i] = scale * (p[3 + i] - y_dot[0, i])


@njit(**CALLED)
def axial_drag(y, y_dot, p, f):
    """Fill f = -(c + b |s|) s u, s = u . (y_dot - w), on the first of two sites, u the second, p = (c, b, w)."""
    u, s = y[1], 0.0 * p[0]
    for i in range(3):
        s += u[i] * (y_dot[0, i] - p[2 + i])
    for i in range(3):
        f[0, i] = -(p[0] + p[1] * (s if s.real > 0.0 else -s)) * s * u[i]
        f[1, i] = 0.0


@njit(**CALLED)
def ellipsoid(y, y_dot, p, f):
    """Fill force on a place and torque on a spin of a fluid on an ellipsoid; two directions u_1, u_2 feel nothing.

    p = (rho, beta, semi-axes d, C_blunt, C_slender, C_angular, C_Kutta, C_Magnus, added mass m and inertia k over rho,
    wind), v that of the place less the wind. In the axes u_1, u_2, u_1 x u_2, with n = (d_2 d_3, d_3 d_1, d_1 d_2)^2 v,
    A = pi |n| / sqrt(n . v), D = 2/3 sum d, V its volume (the model of MuJoCo, "Fluid forces"):

    F = -(3 pi beta D + rho |v| (C_blunt A + C_slender (A_max - A))) v + C_Magnus rho V omega x v
        + C_Kutta rho (n . v) A / (|v| |n|^2) (n x v) x v + rho (m v) x omega
    T = -(pi beta D^3 + rho |I omega|) omega + rho (m v) x v + rho (k omega) x omega
    I_i = C_angular J_i + C_slender (J_max - J_i),  J_i = 8/15 pi d_i max(d_j, d_k)^4
    """
    room = np.zeros((14, 3), p.dtype)
    axes, v, w, n, m, l = room[:3], room[3], room[4], room[5], room[6], room[7]
    held, up, side, turned, spun, about = room[8], room[9], room[10], room[11], room[12], room[13]
    rho, beta, d = p[0], p[1], p[2:5]
    axes[0], axes[1] = y[2], y[3]
    cross(axes[0], axes[1], axes[2])
    for i in range(3):
        for j in range(3):
            v[i] += axes[i, j] * (y_dot[0, j] - p[16 + j])
            w[i] += axes[i, j] * y_dot[1, j]
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
        spin += (w[i] * (p[7] * slender + p[6] * (whole - slender))) ** 2
        m[i], l[i] = rho * p[10 + i] * v[i], rho * p[13 + i] * w[i]
    wide = 2.0 / 3.0 * (d[0] + d[1] + d[2])
    drag, lift, brake = 3.0 * math.pi * beta * wide, 0.0 * rho, math.pi * beta * wide**3
    if square.real > 0.0:
        speed, area = np.sqrt(square), math.pi * np.sqrt(size / through)
        drag += rho * speed * (p[5] * area + p[6] * (math.pi * most * middle - area))
        lift = p[8] * rho * through * area / (speed * size)
    if spin.real > 0.0:
        brake += rho * np.sqrt(spin)
    cross(n, v, held)
    cross(held, v, up)
    cross(w, v, side)
    cross(m, w, turned)
    cross(m, v, spun)
    cross(l, w, about)
    magnus = 4.0 / 3.0 * math.pi * p[9] * rho * d[0] * d[1] * d[2]
    f[:] = 0.0
    for i in range(3):
        force = -drag * v[i] + magnus * side[i] + lift * up[i] + turned[i]
        torque = -brake * w[i] + spun[i] + about[i]
        for j in range(3):
            f[0, j] += axes[i, j] * force
            f[1, j] += axes[i, j] * torque


DRAG = by_imaginary_steps("drag", drag, range(3, 12))
AXIAL_DRAG = by_imaginary_steps("axial_drag", axial_drag, (*range(3, 9), *range(12, 17)))
ELLIPSOID = by_imaginary_steps("ellipsoid", ellipsoid, (*range(6, 18), *range(24, 43)))


@njit(**CALLED)
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


@njit(**CALLED)
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


@njit(**CALLED)
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

    @njit(variant=f"closed_{closed}", **CALLED)
    def force(y, y_dot, p, imposed, codes, f):
        _press(y, y_dot, p, closed, f)
        return p.shape[0]

    @njit(variant=f"closed_{closed}", **CALLED)
    def derivatives(y, y_dot, p, codes, f, f_y, f_v, f_p):
        _press_derivatives(y, y_dot, p, closed, f, f_y, f_v, f_p)

    return force, derivatives


FACES: tuple[Any, Any] = faces(False)
CLOSED_FACES: tuple[Any, Any] = faces(True)


@njit(**CALLED)
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


@njit(**CALLED)
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


@njit(**CALLED)
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
