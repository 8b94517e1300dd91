"""Dense LU inside compiled steps: LAPACK by address, one refinement, and the test of a solution."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from add.kernels.caching import CALLED, njit
from add.linalg.base import sound
from add.linalg.blas import N, T, getrf, getrs
from add.typing import FloatArray, IntArray


class Dense(NamedTuple):
    """Room for a matrix (n n,) by columns, its factors and their pivots; n the number of unknowns."""

    matrix: FloatArray
    factors: FloatArray
    pivots: IntArray
    info: IntArray


@njit(**CALLED)
def new_dense(n):
    """Return room for n unknowns."""
    return Dense(np.empty(n * n), np.empty(n * n), np.empty(n, dtype=np.int32), np.zeros(1, dtype=np.int32))


@njit(**CALLED)
def take_block(data, n_all, free, out):
    """Copy the rows and columns ``free`` of a matrix (n_all n_all,) to ``out``, both by columns."""
    n = free.size
    if n == n_all:
        out[:] = data[: n * n]
        return
    for c in range(n):
        column = free[c] * n_all
        for r in range(n):
            out[c * n + r] = data[column + free[r]]


@njit(**CALLED)
def factor(dense, routines):
    """Factor the matrix; return its largest entry, or -1 if it is singular or not finite."""
    n, largest = dense.pivots.size, 0.0
    for k in range(n * n):
        x = dense.matrix[k]
        if not np.isfinite(x):
            return -1.0
        largest = max(largest, abs(x))
        dense.factors[k] = x
    getrf(routines.getrf, (n, n, dense.factors, 0, n, dense.pivots, 0, dense.info, 0))
    return -1.0 if dense.info[0] > 0 else largest


@njit(**CALLED)
def solve(dense, largest, transposed, b, x, rest, routines):
    """Fill x with A^-1 b or A^-T b, refined once; return whether it is no noise. ``rest`` (n,) is scratch."""
    n = dense.pivots.size
    kind = T if transposed else N
    x[:] = b
    getrs(routines.getrs, (kind, n, 1, dense.factors, 0, n, dense.pivots, 0, x, 0, n, dense.info, 0))
    _defect(dense.matrix, n, transposed, b, x, rest)
    getrs(routines.getrs, (kind, n, 1, dense.factors, 0, n, dense.pivots, 0, rest, 0, n, dense.info, 0))
    for k in range(n):
        x[k] += rest[k]
    _defect(dense.matrix, n, transposed, b, x, rest)
    return sound(largest, x, b, rest)


@njit(**CALLED)
def solve_all(dense, largest, b, x, routines):
    """Fill the rows of x (k, n) with A^-1 times those of b, refined once; return whether none is noise."""
    n, k, rest = dense.pivots.size, b.shape[0], np.empty(b.shape)
    x[:] = b
    getrs(routines.getrs, (N, n, k, dense.factors, 0, n, dense.pivots, 0, x, 0, n, dense.info, 0))
    for i in range(k):
        _defect(dense.matrix, n, False, b[i], x[i], rest[i])
    getrs(routines.getrs, (N, n, k, dense.factors, 0, n, dense.pivots, 0, rest, 0, n, dense.info, 0))
    for i in range(k):
        x[i] += rest[i]
        _defect(dense.matrix, n, False, b[i], x[i], rest[i])
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
    out[:] = b
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
