"""Hooke's law in the small strain eps = sym F - I, which is no function of C: it does not see rotations as such."""

from __future__ import annotations

from add.kernels.caching import njit
from add.materials.base import LAME, LawFunctions, Material

_INLINE = {"nogil": True, "error_model": "numpy", "inline": "always"}


@njit(**_INLINE)
def _stress(mu, lame, f, out):
    """Write 2 mu eps + lambda tr eps I."""
    pressure = lame * (f[0, 0] + f[1, 1] + f[2, 2] - 3.0)
    for i in range(3):
        for m in range(3):
            out[i, m] = mu * (f[i, m] + f[m, i])
        out[i, i] += pressure - 2.0 * mu


@njit(**_INLINE)
def _energy(p, f, cof, jac):
    trace, square = f[0, 0] + f[1, 1] + f[2, 2] - 3.0, 0.0
    for i in range(3):
        for m in range(3):
            strain = 0.5 * (f[i, m] + f[m, i]) - (1.0 if i == m else 0.0)
            square += strain * strain
    return p[0] * square + 0.5 * p[1] * trace * trace


@njit(**_INLINE)
def _law_stress(p, f, cof, jac, out):
    _stress(p[0], p[1], f, out)


@njit(**_INLINE)
def _tangent(p, f, cof, jac, out):
    out[:] = 0.0
    for i in range(3):
        for j in range(i, 3):
            out[i, j, i, j] += p[1]
            out[i, j, j, i] += p[0]
        for m in range(3):
            out[i, i, m, m] += p[0]


@njit(**_INLINE)
def _by_parameters(p, f, cof, jac, out):
    _stress(1.0, 0.0, f, out[0])
    _stress(0.0, 1.0, f, out[1])


@njit(**_INLINE)
def _linear_moduli(p, slopes):
    slopes[:] = 0.0
    slopes[0, 0] = slopes[1, 1] = 1.0
    return p[0], p[1]


#: W = mu eps : eps + lambda/2 (tr eps)^2: for small motions, in which what turns by an angle a stretches by a^2/2.
LINEAR = Material("linear", LAME, lambda: LawFunctions(_energy, _law_stress, _tangent, _by_parameters, _linear_moduli))
