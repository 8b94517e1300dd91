"""St. Venant-Kirchhoff law: Hooke's law in Green's strain E = (F^T F - I)/2.

    W = mu E : E + lambda/2 (tr E)^2,   S = 2 mu E + lambda tr E I,   P = F S
    dP_im/dF_jn = d_ij S_mn + mu ((F F^T)_ij d_mn + F_in F_jm) + lambda F_im F_jn

It softens in compression (a bar along its axis from a stretch of 1/sqrt(3) on) and does not resist a collapse to no
volume: for moderate strains.
"""

from add.kernels.caching import njit
from add.materials.base import LAME, Material, lame_moduli
from add.materials.symmetric import add_to, cauchy_green, multiply, squares, trace

_JIT = {"nogil": True, "error_model": "numpy"}


@njit(**_JIT)
def second_piola(mu, lame, f):
    """Return S = 2 mu E + lambda tr E I as six numbers."""
    c = cauchy_green(f)
    volumetric = 0.5 * lame * (trace(c) - 3.0) - mu
    return (
        mu * c[0] + volumetric, mu * c[1] + volumetric, mu * c[2] + volumetric, mu * c[3], mu * c[4], mu * c[5],
    )  # fmt: skip


@njit(**_JIT)
def energy(p, f, cof, jac):
    """Return W."""
    strain = second_piola(0.5, 0.0, f)
    dilation = trace(strain)
    return p[0] * squares(strain) + 0.5 * p[1] * dilation * dilation


@njit(**_JIT)
def stress(p, f, cof, jac, out):
    """Write P = F S."""
    multiply(f, second_piola(p[0], p[1], f), out)


@njit(**_JIT)
def tangent(p, f, cof, jac, out):
    """Write the derivatives of P, blocks i <= j."""
    s = second_piola(p[0], p[1], f)
    for i in range(3):
        for j in range(i, 3):
            for m in range(3):
                for n in range(3):
                    out[i, j, m, n] = p[0] * f[i, n] * f[j, m] + p[1] * f[i, m] * f[j, n]
            diagonal = p[0] * (f[i, 0] * f[j, 0] + f[i, 1] * f[j, 1] + f[i, 2] * f[j, 2])
            for m in range(3):
                out[i, j, m, m] += diagonal
        add_to(out[i, i], 1.0, s)


@njit(**_JIT)
def by_parameters(p, f, cof, jac, out):
    """Write the derivatives of P by mu and lambda."""
    multiply(f, second_piola(1.0, 0.0, f), out[0])
    multiply(f, second_piola(0.0, 1.0, f), out[1])


ST_VENANT_KIRCHHOFF = Material("stvk", LAME, energy, stress, tangent, by_parameters, lame_moduli)
