"""Compressible Neo-Hookean laws: W = mu/2 (I1 - 3) + U(J), I1 = tr F^T F, J = det F.

    P = mu F + U'(J) cof F
    dP_im/dF_jn = mu d_ij d_mn + U'' cof_im cof_jn + U'/J (cof_im cof_jn - cof_in cof_jm)

with one of two volumetric parts (both include -mu ln J, which makes the rest state free of stress):

    neo-hookean           U = -mu ln J + lambda/2 (ln J)^2
    neo-hookean-ciarlet   U = -mu ln J + lambda/2 ((J^2 - 1)/2 - ln J)      (Ciarlet 1988; Geilinger et al. 2020)
"""

import numpy as np

from add.kernels.caching import njit
from add.materials.base import LAME, Material, lame_moduli

_JIT = {"nogil": True, "error_model": "numpy", "inline": "always"}


@njit(**_JIT)
def logarithmic(mu, lame, jac):
    """Return U, U' and U'' of the form with (ln J)^2."""
    log = np.log(jac)
    return (
        -mu * log + 0.5 * lame * log * log,
        (lame * log - mu) / jac,
        (mu - lame * log + lame) / (jac * jac),
    )


@njit(**_JIT)
def ciarlet(mu, lame, jac):
    """Return U, U' and U'' of Ciarlet's form."""
    log = np.log(jac)
    return (
        -mu * log + 0.5 * lame * (0.5 * (jac * jac - 1.0) - log),
        -mu / jac + 0.5 * lame * (jac - 1.0 / jac),
        mu / (jac * jac) + 0.5 * lame * (1.0 + 1.0 / (jac * jac)),
    )


def _law(name, volumetric):
    """Return the law of one volumetric part."""

    @njit(**_JIT)
    def energy(p, f, cof, jac):
        squares = 0.0
        for i in range(3):
            for m in range(3):
                squares += f[i, m] * f[i, m]
        return 0.5 * p[0] * (squares - 3.0) + volumetric(p[0], p[1], jac)[0]

    @njit(**_JIT)
    def stress(p, f, cof, jac, out):
        _, u1, _ = volumetric(p[0], p[1], jac)
        for i in range(3):
            for m in range(3):
                out[i, m] = p[0] * f[i, m] + u1 * cof[i, m]

    @njit(**_JIT)
    def tangent(p, f, cof, jac, out):
        _, u1, u2 = volumetric(p[0], p[1], jac)
        swapped = u1 / jac
        outer = u2 + swapped
        for i in range(3):
            for j in range(i, 3):
                for m in range(3):
                    for n in range(3):
                        out[i, j, m, n] = outer * cof[i, m] * cof[j, n] - swapped * cof[i, n] * cof[j, m]
            for m in range(3):
                out[i, i, m, m] += p[0]

    @njit(**_JIT)
    def by_parameters(p, f, cof, jac, out):
        _, by_mu, _ = volumetric(1.0, 0.0, jac)
        _, by_lambda, _ = volumetric(0.0, 1.0, jac)
        for i in range(3):
            for m in range(3):
                out[0, i, m] = f[i, m] + by_mu * cof[i, m]
                out[1, i, m] = by_lambda * cof[i, m]

    return Material(name, LAME, energy, stress, tangent, by_parameters, lame_moduli)


NEO_HOOKEAN = _law("neo-hookean", logarithmic)
NEO_HOOKEAN_CIARLET = _law("neo-hookean-ciarlet", ciarlet)
