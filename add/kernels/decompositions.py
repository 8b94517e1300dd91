"""Eigenvalues and singular values, whose functions take seconds to compile: when a problem needs them first."""

import numpy as np
from numba import types

from add.kernels.by_address import when_called
from add.kernels.caching import THREADED, njit


@njit(**THREADED)
def _singular_values(matrix):
    """Return the singular value decomposition; by eigenvalues where LAPACK's divide and conquer does not converge.

    Those of [[0, A], [A^T, 0]] are plus and minus the singular values of A, with the vectors (u, v)/sqrt(2).
    """
    m = matrix.shape[0]
    try:
        return np.linalg.svd(matrix)
    except Exception:
        both = np.zeros((2 * m, 2 * m))
        for r in range(m):
            for c in range(m):
                both[r, m + c] = both[m + c, r] = matrix[r, c]
        values, vectors = np.linalg.eigh(both)
        scale = np.sqrt(2.0)
        left, right = np.empty((m, m)), np.empty((m, m))
        for k in range(m):
            for r in range(m):
                left[r, k] = scale * vectors[r, 2 * m - 1 - k]
                right[k, r] = scale * vectors[m + r, 2 * m - 1 - k]
        return left, np.maximum(values[::-1][:m], 0.0), right


@njit(**THREADED)
def _eigenvalues(A):
    """Return the eigenvalues of a symmetric matrix in ascending order, and its eigenvectors as columns."""
    values, columns = np.linalg.eigh(A)
    return values, np.ascontiguousarray(columns)


_MATRIX, _ANY, _ROW = types.float64[:, ::1], types.float64[:, :], types.float64[::1]
eigenvalues = when_called(_eigenvalues, (_MATRIX,), types.Tuple((_ROW, _MATRIX)))  # type: ignore[attr-defined]
singular_values = when_called(_singular_values, (_MATRIX,), types.Tuple((_ANY, _ROW, _ANY)))  # type: ignore[attr-defined]
