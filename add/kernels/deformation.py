"""Deformation gradients of finite elements."""

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
