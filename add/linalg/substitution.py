"""Solves with the fronts, for one and many right-hand sides, also of the transposed matrix, and their refinement."""

import numpy as np

from add.kernels.caching import njit
from add.linalg.base import EPS, SOLVE_TOLERANCE
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


@njit(cache=True)
def _residuals(indptr, indices, data, transposed, x, defect, size):
    """Subtract A x (or A^T x) from ``defect`` and add |A| |x| to ``size``; all (n, k)."""
    for j in range(indptr.size - 1):
        for e in range(indptr[j], indptr[j + 1]):
            value = data[e]
            if transposed:
                source, target = indices[e], j
            else:
                source, target = j, indices[e]
            y, d, z = x[source], defect[target], size[target]
            for c in range(y.size):
                product = value * y[c]
                d[c] -= product
                z[c] += abs(product)


@njit(cache=True)
def _residual(indptr, indices, data, transposed, x, defect, size):
    """Do the same for (n,)."""
    for j in range(indptr.size - 1):
        if transposed:
            total = largest = 0.0
            for e in range(indptr[j], indptr[j + 1]):
                product = data[e] * x[indices[e]]
                total += product
                largest += abs(product)
            defect[j] -= total
            size[j] += largest
        else:
            factor = x[j]
            for e in range(indptr[j], indptr[j + 1]):
                product = data[e] * factor
                i = indices[e]
                defect[i] -= product
                size[i] += abs(product)


@njit(cache=True)
def _accepted(x, defect, size, most, tolerance):
    """Whether the residuals are small row by row, whatever the units of a row.

    |b - A x|_i <= tolerance (|A| |x| + |b|)_i + eps max_j |A_ij| max_j |x_j|: the componentwise backward error, with
    round-off of the largest product allowed for rows where all is small (after Arioli, Demmel and Duff 1989).
    """
    for c in range(x.shape[1]):
        reach = 0.0
        for i in range(x.shape[0]):
            reach = max(reach, abs(x[i, c]))
        for i in range(x.shape[0]):
            # Written so that NaN counts as bad.
            if not abs(defect[i, c]) <= tolerance * size[i, c] + EPS * most[i] * reach:
                return False
    return True


@njit(cache=True, nogil=True)
def refine(blas, fronts, factored, matrix, b, x, defect, work, most, steps):
    """Add to x the solutions of as many steps of refinement and leave the residual in ``defect``; all (n, k).

    ``factored`` are factors, swaps and whether the matrix is symmetric; ``matrix`` holds indptr, indices, data, and
    whether it is transposed. Returns whether the residual is accepted.
    """
    factors, swaps, symmetric = factored
    indptr, indices, data, transposed = matrix
    n, count = b.shape
    part = np.empty((count, n))
    size = np.empty((n, count))
    for _ in range(steps):
        for i in range(n):
            for c in range(count):
                part[c, i] = defect[fronts.order[i], c]
        substitute(blas, fronts, factors, swaps, symmetric, transposed, part, work)
        for i in range(n):
            for c in range(count):
                x[fronts.order[i], c] += part[c, i]
                defect[i, c] = b[i, c]
                size[i, c] = abs(b[i, c])
        if count == 1:
            _residual(indptr, indices, data, transposed, x.reshape(-1), defect.reshape(-1), size.reshape(-1))
        else:
            _residuals(indptr, indices, data, transposed, x, defect, size)
    return _accepted(x, defect, size, most, SOLVE_TOLERANCE)
