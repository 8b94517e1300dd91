"""Dense LU inside compiled steps: LAPACK by address, one refinement, and the test of a solution.

``linear`` is a `add.compiled.linear.Linear`, ``blas`` a `add.linalg.blas.Blas`.
"""

from __future__ import annotations

import numpy as np

from add.kernels.borrowed import put
from add.kernels.caching import CALLED, njit
from add.linalg.base import sound
from add.linalg.blas import N, T, getrf, getrs


@njit(**CALLED)
def take_block(data, n_all, free, out):
    """Copy the rows and columns ``free`` of a matrix (n_all n_all,) to ``out``, both by columns."""
    n = free.size
    if n == n_all:
        put(data[: n * n], out)
        return
    for c in range(n):
        column = free[c] * n_all
        for r in range(n):
            out[c * n + r] = data[column + free[r]]


@njit(**CALLED)
def factor(linear, blas):
    """Factor the matrix; return its largest entry, or -1 if it is singular or not finite."""
    n, largest = linear.pivots.size, 0.0
    for k in range(n * n):
        x = linear.matrix[k]
        if not np.isfinite(x):
            return -1.0
        largest = max(largest, abs(x))
        linear.factors[k] = x
    getrf(blas.getrf, (n, n, linear.factors, 0, n, linear.pivots, 0, linear.info, 0))
    return -1.0 if linear.info[0] > 0 else largest


@njit(**CALLED)
def solve(linear, largest, transposed, b, x, rest, blas):
    """Fill x with A^-1 b or A^-T b, refined once; return whether it is no noise. ``rest`` (n,) is scratch."""
    n = linear.pivots.size
    kind = T if transposed else N
    put(b, x)
    getrs(blas.getrs, (kind, n, 1, linear.factors, 0, n, linear.pivots, 0, x, 0, n, linear.info, 0))
    _defect(linear.matrix, n, transposed, b, x, rest)
    getrs(blas.getrs, (kind, n, 1, linear.factors, 0, n, linear.pivots, 0, rest, 0, n, linear.info, 0))
    for k in range(n):
        x[k] += rest[k]
    _defect(linear.matrix, n, transposed, b, x, rest)
    return sound(largest, x, b, rest)


@njit(**CALLED)
def solve_all(linear, largest, b, x, blas):
    """Fill the rows of x (k, n) with A^-1 times those of b, refined once; return whether none is noise."""
    n, k, rest = linear.pivots.size, b.shape[0], np.empty(b.shape)
    put(b, x)
    getrs(blas.getrs, (N, n, k, linear.factors, 0, n, linear.pivots, 0, x, 0, n, linear.info, 0))
    for i in range(k):
        _defect(linear.matrix, n, False, b[i], x[i], rest[i])
    getrs(blas.getrs, (N, n, k, linear.factors, 0, n, linear.pivots, 0, rest, 0, n, linear.info, 0))
    for i in range(k):
        x[i] += rest[i]
        _defect(linear.matrix, n, False, b[i], x[i], rest[i])
        if not sound(largest, x[i], b[i], rest[i]):
            return False
    return True


@njit(**CALLED)
def _defect(matrix, n, transposed, b, x, out):
    """Fill out with b - A x or b - A^T x."""
    if transposed:
        for c in range(n):
            total = 0.0
            for r in range(n):
                total += matrix[c * n + r] * x[r]
            out[c] = b[c] - total
        return
    put(b, out)
    for c in range(n):
        for r in range(n):
            out[r] -= matrix[c * n + r] * x[c]


@njit(**CALLED)
def add_transposed(data, n, lam, out):
    """Add A^T lam to ``out`` (n,), A (n n,) by columns."""
    for c in range(n):
        total = 0.0
        for r in range(n):
            total += data[c * n + r] * lam[r]
        out[c] += total


@njit(**CALLED)
def add_sizes(data, n, x, out):
    """Add |A| x to ``out`` (n,), A (n n,) by columns."""
    for c in range(n):
        if x[c] != 0.0:
            for r in range(n):
                out[r] += abs(data[c * n + r]) * x[c]
