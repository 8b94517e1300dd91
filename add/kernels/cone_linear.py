"""Linear equations of the modes of cone problems, which redundant contacts make singular."""

import numpy as np

from add.kernels.caching import njit

_JIT = {"cache": True, "nogil": True, "error_model": "numpy"}

#: Singular values below this share of the largest one are redundant rows.
REDUNDANT = 1e-11

#: Pivots above this share of the largest one leave no doubt that there is no redundant row.
_REGULAR = 1e-8


@njit(**_JIT)
def max_norm(x):
    """Return the largest size of numbers; one that is not finite where there is one."""
    out = 0.0
    for value in x:
        if not np.isfinite(value):
            return abs(value)
        out = max(out, abs(value))
    return out


@njit(**_JIT)
def norm(x):
    """Return the root of the sum of squares."""
    out = 0.0
    for value in x:
        out += value * value
    return np.sqrt(out)


@njit(**_JIT)
def _eliminate(A, B):
    """Replace B (m, k) by A^-1 B with partial pivoting, A (m, m) lost; return whether A is regular beyond doubt."""
    m, k = B.shape
    largest = 0.0
    for c in range(m):
        at = c
        for r in range(c + 1, m):
            if abs(A[r, c]) > abs(A[at, c]):
                at = r
        pivot = A[at, c]
        largest = max(largest, abs(pivot))
        if not abs(pivot) > _REGULAR * largest:
            return False
        if at != c:
            for j in range(c, m):
                A[c, j], A[at, j] = A[at, j], A[c, j]
            for j in range(k):
                B[c, j], B[at, j] = B[at, j], B[c, j]
        for r in range(c + 1, m):
            share = A[r, c] / pivot
            if share != 0.0:
                for j in range(c + 1, m):
                    A[r, j] -= share * A[c, j]
                for j in range(k):
                    B[r, j] -= share * B[c, j]
    smallest = largest
    for c in range(m):
        smallest = min(smallest, abs(A[c, c]))
    if not smallest > _REGULAR * largest:
        return False
    for r in range(m - 1, -1, -1):
        for c in range(r + 1, m):
            share = A[r, c]
            if share != 0.0:
                for j in range(k):
                    B[r, j] -= share * B[c, j]
        for j in range(k):
            B[r, j] /= A[r, r]
    return True


@njit(**_JIT)
def _scaled_rows(K):
    """Return K with rows of length one, and their lengths (m,): impulses and velocities of one problem stand in it."""
    scaled, sizes = K.copy(), np.ones(K.shape[0])
    for i in range(K.shape[0]):
        size = norm(K[i])
        if size > 0.0:
            sizes[i] = size
        for k in range(K.shape[1]):
            scaled[i, k] /= sizes[i]
    return scaled, sizes


@njit(**_JIT)
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


@njit(**_JIT)
def least_norm_inverse(K):
    """Return X with X r the least-norm solution of K x = r, and a basis (m, redundant rows) of the kernel of K.

    A matrix that elimination finds regular needs no singular values.
    """
    m = K.shape[0]
    scaled, sizes = _scaled_rows(K)
    if not np.isfinite(max_norm(scaled.ravel())):
        return np.full((m, m), np.nan), np.zeros((m, 0))
    inverse = np.zeros((m, m))
    for i in range(m):
        inverse[i, i] = 1.0 / sizes[i]
    if _eliminate(scaled.copy(), inverse):
        return inverse, np.zeros((m, 0))
    left, s, right = _singular_values(scaled)
    rank = 0
    while rank < m and s[rank] > REDUNDANT * s[0]:
        rank += 1
    kernel = np.empty((m, m - rank))
    for i in range(m):
        for j in range(m):
            inverse[i, j] = 0.0
            for k in range(rank):
                inverse[i, j] += right[k, i] * left[j, k] / (s[k] * sizes[j])
        for k in range(rank, m):
            kernel[i, k - rank] = right[k, i]
    return inverse, kernel


@njit(**_JIT)
def least_norm_solution(K, r):
    """Return the least-norm solution (m,) of K x = r."""
    scaled, sizes = _scaled_rows(K)
    if not np.isfinite(max_norm(scaled.ravel())):
        return np.full(r.size, np.nan)
    x = np.empty((r.size, 1))
    for i in range(r.size):
        x[i, 0] = r[i] / sizes[i]
    if _eliminate(scaled, x):
        return x[:, 0].copy()
    inverse, _ = least_norm_inverse(K)
    out = np.zeros(r.size)
    for i in range(r.size):
        for k in range(r.size):
            out[i] += inverse[i, k] * r[k]
    return out
