"""Mooney-Rivlin law of rubber, compressible, in the invariants of the isochoric part of the deformation.

    W = c10 (I1b - 3) + c01 (I2b - 3) + kappa/2 (J - 1)^2,   I1b = J^(-2/3) I1,   I2b = J^(-4/3) I2

With C = F^T F, G = F^-T and H = dI2/dF / 2 = I1 F - F C,

    P = 2 c10 J^(-2/3) (F - I1/3 G) + 2 c01 J^(-4/3) (H - 2/3 I2 G) + kappa (J - 1) J G

    d2I1b = J^(-2/3) (2 d_ij d_mn - 4/3 (F (x) G + G (x) F) + 4/9 I1 G (x) G + 2/3 I1 G_in G_jm)
    d2I2b = J^(-4/3) (2 dH - 8/3 (H (x) G + G (x) H) + 16/9 I2 G (x) G + 4/3 I2 G_in G_jm)
    dH_im/dF_jn = 2 F_im F_jn + (I1 d_ij - (F F^T)_ij) d_mn - d_ij C_mn - F_in F_jm.

At rest mu = 2 (c10 + c01) and the bulk modulus is kappa (Mooney 1940; Rivlin 1948).
"""

from add.kernels.caching import njit
from add.materials.base import Material, Modulus
from add.materials.symmetric import add_to, cauchy_green, squares, trace

_JIT = {"nogil": True, "error_model": "numpy"}


@njit(**_JIT)
def invariants(f):
    """Return C, I1 and I2."""
    c = cauchy_green(f)
    i1 = trace(c)
    return c, i1, 0.5 * (i1 * i1 - squares(c))


@njit(**_JIT)
def energy(p, f, cof, jac):
    """Return W."""
    _, i1, i2 = invariants(f)
    scale = jac ** (-2.0 / 3.0)
    return p[0] * (scale * i1 - 3.0) + p[1] * (scale * scale * i2 - 3.0) + 0.5 * p[2] * (jac - 1.0) * (jac - 1.0)


@njit(**_JIT)
def combine(c, by_c, by_f, by_cof, f, cof, out):
    """Write by_f F + by_cof cof F - by_c F C."""
    for i in range(3):
        out[i, 0] = by_f * f[i, 0] + by_cof * cof[i, 0] - by_c * (f[i, 0] * c[0] + f[i, 1] * c[3] + f[i, 2] * c[4])
        out[i, 1] = by_f * f[i, 1] + by_cof * cof[i, 1] - by_c * (f[i, 0] * c[3] + f[i, 1] * c[1] + f[i, 2] * c[5])
        out[i, 2] = by_f * f[i, 2] + by_cof * cof[i, 2] - by_c * (f[i, 0] * c[4] + f[i, 1] * c[5] + f[i, 2] * c[2])


@njit(**_JIT)
def stress(p, f, cof, jac, out):
    """Write P."""
    c, i1, i2 = invariants(f)
    scale = jac ** (-2.0 / 3.0)
    one = 2.0 * p[0] * scale
    two = 2.0 * p[1] * scale * scale
    by_cof = p[2] * (jac - 1.0) - (one * i1 + 2.0 * two * i2) / (3.0 * jac)
    combine(c, two, one + two * i1, by_cof, f, cof, out)


@njit(**_JIT)
def by_parameters(p, f, cof, jac, out):
    """Write the derivatives of P by c10, c01 and kappa."""
    c, i1, i2 = invariants(f)
    scale = jac ** (-2.0 / 3.0)
    one = 2.0 * scale
    two = 2.0 * scale * scale
    combine(c, 0.0, one, -one * i1 / (3.0 * jac), f, cof, out[0])
    combine(c, two, two * i1, -2.0 * two * i2 / (3.0 * jac), f, cof, out[1])
    combine(c, 0.0, 0.0, jac - 1.0, f, cof, out[2])


@njit(**_JIT)
def tangent(p, f, cof, jac, out):
    """Write the derivatives of P, blocks i <= j."""
    c, i1, i2 = invariants(f)
    scale = jac ** (-2.0 / 3.0)
    one = 2.0 * p[0] * scale
    two = 2.0 * p[1] * scale * scale
    outer = (2.0 * one * i1 + 8.0 * two * i2) / (9.0 * jac * jac) + p[2] * (2.0 - 1.0 / jac)
    swapped = (one * i1 + 2.0 * two * i2) / (3.0 * jac * jac) - p[2] * (1.0 - 1.0 / jac)
    # What cof F multiplies from both sides, in a block that callers do not read.
    side = out[1, 0]
    combine(c, -4.0 / 3.0 * two / jac, -(2.0 / 3.0 * one + 4.0 / 3.0 * two * i1) / jac, 0.0, f, cof, side)
    for i in range(3):
        for j in range(i, 3):
            for m in range(3):
                for n in range(3):
                    value = outer * cof[i, m] * cof[j, n] + swapped * cof[i, n] * cof[j, m]
                    value += side[i, m] * cof[j, n] + cof[i, m] * side[j, n]
                    out[i, j, m, n] = value + two * (2.0 * f[i, m] * f[j, n] - f[i, n] * f[j, m])
            diagonal = -two * (f[i, 0] * f[j, 0] + f[i, 1] * f[j, 1] + f[i, 2] * f[j, 2])
            if i == j:
                diagonal += one + two * i1
                add_to(out[i, i], -two, c)
            for m in range(3):
                out[i, j, m, m] += diagonal


@njit(**_JIT)
def linear_moduli(p, slopes):
    """Return mu = 2 (c10 + c01) and lambda = kappa - 2/3 mu."""
    slopes[:] = 0.0
    slopes[0, :2] = 2.0
    slopes[1, :2] = -4.0 / 3.0
    slopes[1, 2] = 1.0
    mu = 2.0 * (p[0] + p[1])
    return mu, p[2] - 2.0 / 3.0 * mu


MOONEY_RIVLIN = Material(
    "mooney-rivlin",
    (
        Modulus("c10", "Pa", "modulus of the first isochoric invariant"),
        Modulus("c01", "Pa", "modulus of the second isochoric invariant"),
        Modulus("kappa", "Pa", "bulk modulus"),
    ),
    energy,
    stress,
    tangent,
    by_parameters,
    linear_moduli,
)
