"""Gauss-Seidel's method for convex cone problems: block by block, each solved exactly. It finds modes, not digits."""

import numpy as np

from add.kernels.caching import njit
from add.kernels.cones import FREE, HALF_LINE

_JIT = {"cache": True, "nogil": True, "error_model": "numpy"}

#: A change of impulses, scaled, that ends the sweeps.
_STILL = 1e-13


@njit(**_JIT)
def disc_minimum(a, b, d, p, q, radius):
    """Return the minimum of (a x^2 + 2 b x y + d y^2)/2 + p x + q y over the disc of this radius.

    On its edge -grad = gamma (x, y), gamma > 0: Newton's method on 1/|x(gamma)| = 1/radius, whose iterates rise to the
    root from the bound |(p, q)|/radius - (largest eigenvalue).
    """
    if radius <= 0.0:
        return 0.0, 0.0
    angle = 0.5 * np.arctan2(2.0 * b, a - d)
    cos, sin = np.cos(angle), np.sin(angle)
    large = 0.5 * (a + d) + np.sqrt((0.5 * (a - d)) ** 2 + b * b)
    small = max((a * d - b * b) / large, 0.0) if large > 0.0 else 0.0
    along, across = cos * p + sin * q, cos * q - sin * p
    size = np.sqrt(p * p + q * q)
    if size == 0.0:
        return 0.0, 0.0
    x, y = 0.0, 0.0
    if small > 0.0:
        x, y = -along / large, -across / small
    if not (small > 0.0 and x * x + y * y <= radius * radius):
        gamma = max(size / radius - large, 0.0)
        for _ in range(60):
            if small + gamma <= 0.0:
                gamma = 1e-300
            x, y = -along / (large + gamma), -across / (small + gamma)
            square = x * x + y * y
            length = np.sqrt(square)
            if length <= radius * (1.0 + 1e-15):
                break
            gamma += (length - radius) / radius * square / (x * x / (large + gamma) + y * y / (small + gamma))
        share = radius / length
        x, y = share * x, share * y
    return cos * x - sin * y, sin * x + cos * y


@njit(**_JIT)
def sweeps(G, g, blocks, l, most):
    """Improve ``l`` (m,) by at most so many sweeps over blocks of free rows, half-lines and discs; return how many."""
    u = G @ l + g
    for sweep in range(most):
        change, largest = 0.0, 1.0
        for k in range(blocks.kind.size):
            i, kind = blocks.first[k], blocks.kind[k]
            if kind in (FREE, HALF_LINE):
                if G[i, i] <= 0.0:
                    continue
                x = l[i] - u[i] / G[i, i]
                if kind == HALF_LINE:
                    x = max(x, 0.0)
                step, second = x - l[i], 0.0
            else:
                a, b, d = G[i, i], 0.5 * (G[i, i + 1] + G[i + 1, i]), G[i + 1, i + 1]
                p, q = u[i] - a * l[i] - b * l[i + 1], u[i + 1] - b * l[i] - d * l[i + 1]
                x, y = disc_minimum(a, b, d, p, q, blocks.bound[k])
                step, second = x - l[i], y - l[i + 1]
                l[i + 1] = y
                for r in range(l.size):
                    u[r] += G[r, i + 1] * second
            l[i] = x
            for r in range(l.size):
                u[r] += G[r, i] * step
            change, largest = max(change, abs(step), abs(second)), max(largest, abs(x))
        if change <= _STILL * largest:
            return sweep + 1
    return most
