"""Changes of chart of rotation vectors; the equations stand in `add.equations.charts`."""

import math

import numpy as np

from add.kernels.caching import njit

_JIT = {"cache": True, "error_model": "numpy"}


@njit(**_JIT)
def beyond_pi(q, rotations):
    """Return which (k,) of the rotation vectors, given by their first coordinates, are longer than pi."""
    out = np.zeros(rotations.size, dtype=np.bool_)
    for k in range(rotations.size):
        i = rotations[k]
        out[k] = q[i] * q[i] + q[i + 1] * q[i + 1] + q[i + 2] * q[i + 2] > math.pi * math.pi
    return out


@njit(**_JIT)
def _derivative(w, D):
    """Fill D (3, 3), and return |w|."""
    t = math.sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
    for i in range(3):
        for j in range(3):
            D[i, j] = 2.0 * math.pi / (t * t * t) * w[i] * w[j]
        D[i, i] += 1.0 - 2.0 * math.pi / t
    return t


@njit(**_JIT)
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


@njit(**_JIT)
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
