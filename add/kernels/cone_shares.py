"""Redundant contacts: how they share a load, and linear equations that they make singular.

Of k closed contacts the rows J_n (k, n) of the normals may depend on each other: four corners on a plane, sixteen
points of a rim. Their impulses are then not determined by the motion, and where they slide the motion is not
determined either, since friction goes with them. They bear the load as equal springs under rigid bodies would, with
impulses in the range of the rows,

    l_n = J_n beta,    or    N^T l_n = 0 with the kernel N of J_n^T:    the least |l_n|^2 of the same load

and what such springs would pull on bears nothing. The rule depends on geometry alone, not on masses or friction. It
takes the place of the combinations of u_n = 0 that say nothing: with an orthonormal basis Z of the kernel of the scaled
normal rows,

    F_n = (1 - Z Z^T) u_n + Z N^T l_n

The tangential impulses of contacts that stick are shared by what their cones have room for.
"""

import numpy as np

from add.kernels.caching import THREADED, njit
from add.kernels.cones import CONE, HALF_LINE, PYRAMID, block_size, eigenvalues, singular_values

#: Singular values below this share of the largest one are redundant rows.
REDUNDANT = 1e-11

#: So many rows take less time by elimination, and more by LAPACK.
FEW = 48

#: Pivots above this share of the largest one leave no doubt that a row is not redundant, below the other that it is.
_REGULAR, _ROUNDING = 1e-8, 1e-13


@njit(**THREADED)
def max_norm(x):
    """Return the largest size of numbers; one that is not finite where there is one."""
    out = 0.0
    for value in x:
        if not np.isfinite(value):
            return abs(value)
        out = max(out, abs(value))
    return out


@njit(**THREADED)
def norm(x):
    """Return the root of the sum of squares."""
    out = 0.0
    for value in x:
        out += value * value
    return np.sqrt(out)


@njit(**THREADED)
def _eliminate(A, B, column):
    """Make A (m, m) an upper triangle by complete pivoting, and B (m, k) what goes with it; fill the columns' order.

    Returns the rank: where the pivots end there is nothing left but rounding. -1 where that is in doubt. By the largest
    of each column alone, rows that are all but equal can make a matrix look regular that is none.
    """
    m, k = B.shape
    largest = 0.0
    for c in range(m):
        column[c] = c
    for c in range(m):
        row, at = c, c
        for r in range(c, m):
            for j in range(c, m):
                if abs(A[r, j]) > abs(A[row, at]):
                    row, at = r, j
        pivot = A[row, at]
        largest = max(largest, abs(pivot))
        if not abs(pivot) > _REGULAR * largest:
            return c if abs(pivot) < _ROUNDING * largest else -1
        if row != c:
            for j in range(c, m):
                A[c, j], A[row, j] = A[row, j], A[c, j]
            for j in range(k):
                B[c, j], B[row, j] = B[row, j], B[c, j]
        if at != c:
            for r in range(m):
                A[r, c], A[r, at] = A[r, at], A[r, c]
            column[c], column[at] = column[at], column[c]
        for r in range(c + 1, m):
            share = A[r, c] / pivot
            if share != 0.0:
                for j in range(c + 1, m):
                    A[r, j] -= share * A[c, j]
                for j in range(k):
                    B[r, j] -= share * B[c, j]
    return m


@njit(**THREADED)
def _substitute(A, rank, B):
    """Solve with the upper triangle that `_eliminate` has left, for the first rows of B (m, k)."""
    for r in range(rank - 1, -1, -1):
        for c in range(r + 1, rank):
            share = A[r, c]
            if share != 0.0:
                for j in range(B.shape[1]):
                    B[r, j] -= share * B[c, j]
        for j in range(B.shape[1]):
            B[r, j] /= A[r, r]


@njit(**THREADED)
def _orthonormal(A):
    """Return an orthonormal basis of the range of A (k, r), by Gram and Schmidt, twice."""
    out = A.copy()
    for c in range(out.shape[1]):
        for _ in range(2):
            for other in range(c):
                share = 0.0
                for i in range(out.shape[0]):
                    share += out[i, c] * out[i, other]
                for i in range(out.shape[0]):
                    out[i, c] -= share * out[i, other]
        size = 0.0
        for i in range(out.shape[0]):
            size += out[i, c] ** 2
        for i in range(out.shape[0]):
            out[i, c] /= np.sqrt(size)
    return out


@njit(**THREADED)
def _kernel(A, rank, column):
    """Return an orthonormal basis (m, m - rank) of the kernel of a matrix that `_eliminate` has made A of."""
    m = A.shape[0]
    beyond, out = A[:, rank:].copy(), np.zeros((m, m - rank))
    _substitute(A, rank, beyond)
    for c in range(m - rank):
        out[column[rank + c], c] = 1.0
        for r in range(rank):
            out[column[r], c] = -beyond[r, c]
    return _orthonormal(out)


@njit(**THREADED)
def _leave_out(basis, B):
    """Take from the columns of B (m, k) what they have along an orthonormal basis (m, r)."""
    for c in range(basis.shape[1]):
        for j in range(B.shape[1]):
            share = 0.0
            for i in range(B.shape[0]):
                share += basis[i, c] * B[i, j]
            for i in range(B.shape[0]):
                B[i, j] -= share * basis[i, c]


@njit(**THREADED)
def _scaled_rows(K):
    """Return K with rows of length one, and their lengths (m,): impulses and velocities of one problem stand in it."""
    scaled, sizes = K.copy(), np.empty(K.shape[0])
    for i in range(K.shape[0]):
        size = norm(K[i])
        sizes[i] = size if size > 0.0 else 1.0
        for k in range(K.shape[1]):
            scaled[i, k] /= sizes[i]
    return scaled, sizes


@njit(**THREADED)
def least_norm_inverse(K):
    """Return X with X r the least-norm solution of K x = r, and a basis (m, redundant rows) of the kernel of K.

    It is the pseudo-inverse of K with rows of length one, by elimination: any solution for what r has in the range, its
    part in the kernel left out. Where the rank is in doubt, or of more than `FEW` rows some are redundant, there are
    singular values.
    """
    m = K.shape[0]
    scaled, sizes = _scaled_rows(K)
    if not np.isfinite(max_norm(scaled.ravel())):
        return np.full((m, m), np.nan), np.zeros((m, 0))
    inverse, upper, reduced, column = np.zeros((m, m)), scaled.copy(), np.eye(m), np.empty(m, dtype=np.int64)
    rank = _eliminate(upper, reduced, column)
    if rank == m or (rank >= 0 and m <= FEW):
        unmet = _orthonormal(np.ascontiguousarray(reduced[rank:].T))
        _substitute(upper, rank, reduced)
        for r in range(rank):
            for j in range(m):
                inverse[j, column[r]] = reduced[r, j]
        _leave_out(unmet, inverse)
        inverse = np.ascontiguousarray(inverse.T)
        kernel = _kernel(upper, rank, column)
        _leave_out(kernel, inverse)
        for i in range(m):
            for j in range(m):
                inverse[i, j] /= sizes[j]
        return inverse, kernel
    left, s, right = singular_values((scaled,))
    rank = _rank(s)
    for i in range(m):
        for j in range(m):
            for k in range(rank):
                inverse[i, j] += right[k, i] * left[j, k] / (s[k] * sizes[j])
    return inverse, np.ascontiguousarray(right[rank:].T)


@njit(**THREADED)
def _rank(s):
    """Return how many singular values (m,) are none of redundant rows."""
    rank = 0
    while rank < s.size and s[rank] > REDUNDANT * s[0]:
        rank += 1
    return rank


@njit(**THREADED)
def kernel_of(K):
    """Return an orthonormal basis (m, redundant rows) of the kernel of K."""
    (scaled, _), column = _scaled_rows(K), np.empty(K.shape[0], dtype=np.int64)
    if not np.isfinite(max_norm(scaled.ravel())):
        return np.zeros((K.shape[0], 0))
    if K.shape[0] > FEW:
        _, s, right = singular_values((scaled,))
        return np.ascontiguousarray(right[_rank(s) :].T)
    rank = _eliminate(scaled, np.zeros((K.shape[0], 0)), column)
    return _kernel(scaled, rank, column) if rank >= 0 else least_norm_inverse(K)[1]


@njit(**THREADED)
def least_norm_solution(K, r):
    """Return the least-norm solution (m,) of K x = r."""
    scaled, sizes = _scaled_rows(K)
    if not np.isfinite(max_norm(scaled.ravel())):
        return np.full(r.size, np.nan)
    flat, column, out = np.empty(r.size), np.empty(r.size, dtype=np.int64), np.zeros(r.size)
    for i in range(r.size):
        flat[i] = r[i] / sizes[i]
    if r.size > FEW:
        left, s, right = singular_values((scaled,))
        for k in range(_rank(s)):
            share = 0.0
            for i in range(r.size):
                share += left[i, k] * flat[i]
            for i in range(r.size):
                out[i] += right[k, i] * share / s[k]
        return out
    x, size = flat.reshape((r.size, 1)), max_norm(flat)
    rank = _eliminate(scaled, x, column)
    if rank >= 0 and max_norm(flat[rank:]) <= _ROUNDING * size:
        _substitute(scaled, rank, x)
        for i in range(rank):
            out[column[i]] = flat[i]
        if rank < r.size:
            _leave_out(_kernel(scaled, rank, column), out.reshape((r.size, 1)))
        return out
    inverse, _ = least_norm_inverse(K)
    for i in range(r.size):
        for k in range(r.size):
            out[i] += inverse[i, k] * r[k]
    return out


#: Eigenvalues of scaled normal rows below this share of the largest one are redundant.
_REDUNDANT = 1e-11


@njit(**THREADED)
def closed_normals(blocks, modes):
    """Return the normal rows of the contacts that are closed."""
    rows, n = np.empty(blocks.kind.size, dtype=np.int64), 0
    for b in range(blocks.kind.size):
        kind = blocks.kind[b]
        if modes[b] != 0 and (kind == CONE or kind == PYRAMID or kind == HALF_LINE):
            rows[n] = blocks.first[b] + block_size(kind) - 1
            n += 1
    return rows[:n]


@njit(**THREADED)
def redundant_normals(G, blocks, modes, scale):
    """Return the closed normal rows (k,), the basis Z (k, r) and, for scaled impulses, N (k, r); see the module.

    G and the blocks are scaled.
    """
    rows = closed_normals(blocks, modes)
    k = rows.size
    nothing = np.zeros((k, 0))
    if k < 2:
        return rows, nothing, nothing
    normal = np.empty((k, k))
    for i in range(k):
        for j in range(k):
            normal[i, j] = 0.5 * (G[rows[i], rows[j]] + G[rows[j], rows[i]])
    upper, column = normal.copy(), np.empty(k, dtype=np.int64)
    rank = _eliminate(upper, nothing, column)
    if rank >= 0:
        Z = _kernel(upper, rank, column)
    else:
        values, vectors = eigenvalues((normal,))
        r = 0
        while r < k and values[r] <= _REDUNDANT * values[k - 1]:
            r += 1
        Z = vectors[:, :r].copy()
    r = Z.shape[1]
    if r == 0 or r == k:
        return rows, nothing, nothing
    N = np.empty((k, r))
    for i in range(k):
        for c in range(r):
            # Scaled kernel vectors z' are z/scale, and scaled impulses are l/scale.
            N[i, c] = scale[rows[i]] * Z[i, c]
    N = _orthonormal(N)
    for i in range(k):
        for c in range(r):
            N[i, c] *= scale[rows[i]]
    return rows, Z, N


@njit(**THREADED)
def share_normals(rows, Z, N, l, u, F, by_l, by_u):
    """Put the rule into the equations F (m,) of the modes and their derivatives by l and u (m, m)."""
    k, r = Z.shape
    idle, uneven = np.zeros(r), np.zeros(r)
    for c in range(r):
        for i in range(k):
            idle[c] += Z[i, c] * u[rows[i]]
            uneven[c] += N[i, c] * l[rows[i]]
    for i in range(k):
        for c in range(r):
            F[rows[i]] += Z[i, c] * (uneven[c] - idle[c])
            for j in range(k):
                by_u[rows[i], rows[j]] -= Z[i, c] * Z[j, c]
                by_l[rows[i], rows[j]] += Z[i, c] * N[j, c]


@njit(**THREADED)
def follows_rule(rows, N, l, tolerance):
    """Whether impulses (m,) follow the rule, to a share of the largest of them."""
    largest, uneven = 0.0, 0.0
    for i in range(rows.size):
        largest = max(largest, abs(l[rows[i]]))
    for c in range(N.shape[1]):
        share, size = 0.0, 0.0
        for i in range(rows.size):
            share += N[i, c] * l[rows[i]]
            size = max(size, abs(N[i, c]))
        uneven = max(uneven, abs(share) / max(size, 1e-300))
    return uneven <= tolerance * largest


@njit(**THREADED)
def spread_sticking(blocks, modes, stick, basis, l):
    """Pass tangential impulses among contacts that stick, to those whose cones have room; ``basis`` is the kernel.

    The least sum of |l_t|^2/(mu l_n) over the impulses l + basis y.
    """
    m, r = basis.shape
    weight = np.zeros(m)
    for b in range(blocks.kind.size):
        if blocks.kind[b] == CONE and modes[b] == stick:
            i = blocks.first[b]
            room = blocks.bound[b] * l[i + 2]
            if room > 0.0:
                weight[i], weight[i + 1] = 1.0 / room, 1.0 / room
    A, rhs = np.zeros((r, r)), np.zeros(r)
    for i in range(m):
        if weight[i] > 0.0:
            for c in range(r):
                rhs[c] += basis[i, c] * weight[i] * l[i]
                for d in range(r):
                    A[c, d] += basis[i, c] * weight[i] * basis[i, d]
    trace = 0.0
    for c in range(r):
        trace += A[c, c]
    if trace > 0.0:
        for c in range(r):
            A[c, c] += 1e-14 * trace
        values, vectors = eigenvalues((A,))
        for k in range(r):
            share = 0.0
            for c in range(r):
                share += vectors[c, k] * rhs[c]
            for i in range(m):
                for c in range(r):
                    l[i] -= basis[i, c] * vectors[c, k] * share / values[k]
