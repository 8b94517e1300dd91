"""Pressure on the triangles of a surface that encloses a gas, and the volume that it encloses.

Triangles (m, 3) of nodes go round outward from the gas. Each puts a third of the force p A on each of its corners,

    A = (x_1 - x_0) x (x_2 - x_0) / 2,      dA/dx_k = [e_k]x / 2,

e_k the edge against corner k. On a closed surface the forces at p = 1 are dV/dx of the enclosed volume and their
derivatives are d2V/dx2, symmetric; those of an open one are not.
"""

import numpy as np

from add.kernels.caching import njit

_JIT = {"cache": True, "error_model": "numpy"}


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
