"""Deformation gradients of finite elements, and symmetric tensors of laws as six numbers (xx, yy, zz, xy, xz, yz)."""

from add.kernels.caching import njit

_JIT = {"cache": True, "error_model": "numpy", "nogil": True}


@njit(**_JIT)
def gradient_of(x, cell, grad, out):
    """Write out = sum_a x_a (x) G_a for one quadrature point; x is flat, three entries a node."""
    for i in range(3):
        for j in range(3):
            out[i, j] = 0.0
    for a in range(cell.size):
        base = 3 * cell[a]
        for i in range(3):
            xi = x[base + i]
            for j in range(3):
                out[i, j] += xi * grad[a, j]


@njit(**_JIT)
def determinant_and_cofactor(f, cof):
    """Return det F and write cof F = J F^-T."""
    cof[0, 0] = f[1, 1] * f[2, 2] - f[1, 2] * f[2, 1]
    cof[0, 1] = f[1, 2] * f[2, 0] - f[1, 0] * f[2, 2]
    cof[0, 2] = f[1, 0] * f[2, 1] - f[1, 1] * f[2, 0]
    cof[1, 0] = f[0, 2] * f[2, 1] - f[0, 1] * f[2, 2]
    cof[1, 1] = f[0, 0] * f[2, 2] - f[0, 2] * f[2, 0]
    cof[1, 2] = f[0, 1] * f[2, 0] - f[0, 0] * f[2, 1]
    cof[2, 0] = f[0, 1] * f[1, 2] - f[0, 2] * f[1, 1]
    cof[2, 1] = f[0, 2] * f[1, 0] - f[0, 0] * f[1, 2]
    cof[2, 2] = f[0, 0] * f[1, 1] - f[0, 1] * f[1, 0]
    return f[0, 0] * cof[0, 0] + f[0, 1] * cof[0, 1] + f[0, 2] * cof[0, 2]


@njit(**_JIT)
def add_scaled(weight, a, out):
    """Add weight A, without a matrix between."""
    for i in range(3):
        for m in range(3):
            out[i, m] += weight * a[i, m]


#: Of what laws call, which are kept with them.
_WITHIN = {"nogil": True, "error_model": "numpy"}


@njit(**_WITHIN)
def cauchy_green(f):
    """Return C = F^T F."""
    return (
        f[0, 0] * f[0, 0] + f[1, 0] * f[1, 0] + f[2, 0] * f[2, 0],
        f[0, 1] * f[0, 1] + f[1, 1] * f[1, 1] + f[2, 1] * f[2, 1],
        f[0, 2] * f[0, 2] + f[1, 2] * f[1, 2] + f[2, 2] * f[2, 2],
        f[0, 0] * f[0, 1] + f[1, 0] * f[1, 1] + f[2, 0] * f[2, 1],
        f[0, 0] * f[0, 2] + f[1, 0] * f[1, 2] + f[2, 0] * f[2, 2],
        f[0, 1] * f[0, 2] + f[1, 1] * f[1, 2] + f[2, 1] * f[2, 2],
    )


@njit(**_WITHIN)
def multiply(f, s, out):
    """Write F S."""
    for i in range(3):
        out[i, 0] = f[i, 0] * s[0] + f[i, 1] * s[3] + f[i, 2] * s[4]
        out[i, 1] = f[i, 0] * s[3] + f[i, 1] * s[1] + f[i, 2] * s[5]
        out[i, 2] = f[i, 0] * s[4] + f[i, 1] * s[5] + f[i, 2] * s[2]


@njit(**_WITHIN)
def add_to(block, weight, s):
    """Add weight S to ``block`` (3, 3)."""
    block[0, 0] += weight * s[0]
    block[1, 1] += weight * s[1]
    block[2, 2] += weight * s[2]
    block[0, 1] += weight * s[3]
    block[1, 0] += weight * s[3]
    block[0, 2] += weight * s[4]
    block[2, 0] += weight * s[4]
    block[1, 2] += weight * s[5]
    block[2, 1] += weight * s[5]
