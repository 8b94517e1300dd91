"""Iterative refinement, and whether its outcome will do."""

from __future__ import annotations

import numpy as np

from add.kernels.caching import njit
from add.linalg.base import EPS, SOLVE_TOLERANCE
from add.linalg.substitution import substitute


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
def refine(blas, fronts, factors, swaps, symmetric, matrix, b, x, defect, work, most, steps):
    """Add to x the solutions of as many steps of refinement and leave the residual in ``defect``; all (n, k).

    ``matrix`` holds indptr, indices, data, and whether it is transposed. Returns whether the residual is accepted.
    """
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
