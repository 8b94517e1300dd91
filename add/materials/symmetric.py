"""Symmetric 3 x 3 tensors in compiled laws, as six numbers (xx, yy, zz, xy, xz, yz): nothing is allocated."""

from add.kernels.caching import njit

_JIT = {"nogil": True, "error_model": "numpy"}


@njit(**_JIT)
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


@njit(**_JIT)
def multiply(f, s, out):
    """Write F S."""
    for i in range(3):
        out[i, 0] = f[i, 0] * s[0] + f[i, 1] * s[3] + f[i, 2] * s[4]
        out[i, 1] = f[i, 0] * s[3] + f[i, 1] * s[1] + f[i, 2] * s[5]
        out[i, 2] = f[i, 0] * s[4] + f[i, 1] * s[5] + f[i, 2] * s[2]


@njit(**_JIT)
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
