"""Solves with the fronts, for one and for many right-hand sides, and of the transposed matrix."""

from __future__ import annotations

import numpy as np

from add.kernels.caching import njit
from add.linalg.blas import L, N, T, U, gemm, gemv, trsm, trsv


@njit(cache=True)
def _exchange(x, low, swaps, forward):
    """Apply the row exchanges of one front to x (k, n), or undo them."""
    p = swaps.size
    for step in range(p):
        k = step if forward else p - 1 - step
        r = swaps[k]
        if r != k:
            for c in range(x.shape[0]):
                x[c, low + k], x[c, low + r] = x[c, low + r], x[c, low + k]


@njit(cache=True)
def substitute(blas, fronts, factors, swaps, symmetric, transposed, x, work):
    """Overwrite x (k, n), in the order of elimination, by the solution; work is flat, k times the largest border.

    With P A = L U for each front and W = U12^T stored by columns, A^T is L' U' with L' = U^T, U' = L^T: the same sweeps
    with the two borders exchanged, and the exchanges of rows at the end. ``symmetric`` factors are those of Cholesky:
    L' = L, U' = L^T without exchanges.
    """
    count, n = x.shape
    flat = x.reshape(-1)
    for s in range(fronts.pivots.size - 1):
        low, at = fronts.pivots[s], fronts.store[s]
        p = fronts.pivots[s + 1] - low
        rows = fronts.rows[fronts.border[s] : fronts.border[s + 1]]
        b = rows.size
        m = p + b
        if symmetric:
            below, stride = at + p, m
            uplo, trans, diag = L, N, N
        elif transposed:
            below, stride = at + m * p, b
            uplo, trans, diag = U, T, N
        else:
            _exchange(x, low, swaps[low : low + p], True)
            below, stride = at + p, m
            uplo, trans, diag = L, N, U
        if count == 1:
            trsv(blas.trsv, (uplo, trans, diag, p, factors, at, m, flat, low, 1))
            if b:
                gemv(blas.gemv, (N, b, p, 1.0, factors, below, stride, flat, low, 1, 0.0, work, 0, 1))
                for i in range(b):
                    flat[rows[i]] -= work[i]
        else:
            trsm(blas.trsm, (L, uplo, trans, diag, p, count, 1.0, factors, at, m, flat, low, n))
            if b:
                gemm(blas.gemm, (N, N, b, count, p, 1.0, factors, below, stride, flat, low, n, 0.0, work, 0, b))
                for c in range(count):
                    column, part = x[c], work[c * b : (c + 1) * b]
                    for i in range(b):
                        column[rows[i]] -= part[i]
    for s in range(fronts.pivots.size - 2, -1, -1):
        low, at = fronts.pivots[s], fronts.store[s]
        p = fronts.pivots[s + 1] - low
        rows = fronts.rows[fronts.border[s] : fronts.border[s + 1]]
        b = rows.size
        m = p + b
        if symmetric:
            below, stride = at + p, m
            uplo, trans, diag = L, T, N
        elif transposed:
            below, stride = at + p, m
            uplo, trans, diag = L, T, U
        else:
            below, stride = at + m * p, b
            uplo, trans, diag = U, N, N
        if count == 1:
            if b:
                for i in range(b):
                    work[i] = flat[rows[i]]
                gemv(blas.gemv, (T, b, p, -1.0, factors, below, stride, work, 0, 1, 1.0, flat, low, 1))
            trsv(blas.trsv, (uplo, trans, diag, p, factors, at, m, flat, low, 1))
        else:
            if b:
                for c in range(count):
                    column, part = x[c], work[c * b : (c + 1) * b]
                    for i in range(b):
                        part[i] = column[rows[i]]
                gemm(blas.gemm, (T, N, p, count, b, -1.0, factors, below, stride, work, 0, b, 1.0, flat, low, n))
            trsm(blas.trsm, (L, uplo, trans, diag, p, count, 1.0, factors, at, m, flat, low, n))
        if transposed and not symmetric:
            _exchange(x, low, swaps[low : low + p], False)


@njit(cache=True, nogil=True)
def substitute_rows(blas, fronts, factors, swaps, symmetric, transposed, b, x, work):
    """Fill x (n, k) with the solution for b (n, k), both in the order of the matrix; work as in `substitute`."""
    n, count = b.shape
    part = np.empty((count, n))
    for i in range(n):
        for c in range(count):
            part[c, i] = b[fronts.order[i], c]
    substitute(blas, fronts, factors, swaps, symmetric, transposed, part, work)
    for i in range(n):
        for c in range(count):
            x[fronts.order[i], c] = part[c, i]
