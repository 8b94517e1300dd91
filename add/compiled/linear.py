"""The matrix of a compiled step, dense or sparse: room for its values and factors, and what is asked of it.

Values stand over all coordinates (`Layout.size` says how many), dense ones by columns, sparse ones by the structure of
`add.compiled.structure.Sparse`; factors are of the rows and columns of the free coordinates. Functions of sparse
matrices are called by address: systems without one do not compile them.

Dense matrices are factored by LAPACK, with one refinement and a test of every solution; sparse ones by the multifrontal
factorisation of `add.linalg`, as its Python uses it. What that leaves to another back end, these leave to the terms: a
step that meets it is begun anew.
"""

from typing import NamedTuple

import numpy as np

from add.compiled.structure import fronts_of_system, layout_of, sparse_of
from add.kernels.arena import FAMILY
from add.kernels.borrowed import borrowed, put
from add.kernels.caching import CALLED, njit
from add.linalg.base import sound
from add.linalg.blas import N, T, getrf, getrs
from add.linalg.fronts import factorise, factorise_symmetric, is_symmetric, measure
from add.linalg.multifrontal import EXTRA_REFINEMENTS, MAX_REPLACED, SMALLEST
from add.linalg.substitution import refine
from add.typing import AnyArray, FloatArray

#: How much rows that hold give way, as a share of what the matrix without them does under their forces.
SOFTNESS = 1e-8


@njit(**CALLED)
def _room(linear, sparse):
    """Return the stack, the border, and (3, n) the largest entries of rows, columns, and columns as eliminated."""
    stack, border, n = sparse.sizes[0], sparse.sizes[1], linear.pivots.size
    more = linear.more
    return (
        borrowed(more, 0, (stack,)), borrowed(more, stack, (border,)), borrowed(more, stack + border, (3, n)),
    )  # fmt: skip


@njit(**CALLED)
def factor_sparse(arrays, blas, linear, data):
    """Factor the free block of ``data``; return its largest entry, or -1 where it takes more than this."""
    sparse, fronts = sparse_of(arrays), fronts_of_system(arrays)
    for k in range(sparse.place.size):
        linear.matrix[k] = data[sparse.place[k]]
    stack, _, most = _room(linear, sparse)
    largest, smallest = measure(
        sparse.block_indptr, sparse.block_indices, linear.matrix, fronts.order, most[0], most[1], most[2]
    )
    if not largest < np.inf or not smallest > SMALLEST:
        return -1.0
    linear.info[1] = 0
    if sparse.mirror.size and is_symmetric(
        sparse.block_indptr, sparse.block_indices, sparse.mirror, sparse.diagonal, linear.matrix
    ):
        if factorise_symmetric(blas, fronts, linear.matrix, linear.factors, stack, linear.info):
            linear.info[1] = 1
            return largest
    replaced = factorise(blas, fronts, linear.matrix, most[2], linear.factors, linear.pivots, stack)
    return -1.0 if replaced > MAX_REPLACED else largest


@njit(**CALLED)
def solve_sparse(arrays, blas, linear, largest, transposed, b, x, rest):
    """Fill x with A^-1 b or A^-T b, refined; return whether it is no noise."""
    sparse, fronts, n = sparse_of(arrays), fronts_of_system(arrays), b.size
    x[:] = 0.0
    put(b, rest)
    matrix = sparse.block_indptr, sparse.block_indices, linear.matrix, transposed
    _, border, most = _room(linear, sparse)
    factored, steps = (linear.factors, linear.pivots, linear.info[1] != 0), 2
    right, solution, defect = b.reshape((n, 1)), x.reshape((n, 1)), rest.reshape((n, 1))
    for _ in range(1 + EXTRA_REFINEMENTS):
        if refine(blas, fronts, factored, matrix, right, solution, defect, border, most[1 if transposed else 0], steps):
            return sound(largest, x, b, rest)
        steps = 1
    return False


@njit(**CALLED)
def add_sparse_product(arrays, data, x, transposed, out):
    """Add |A| x, or A^T x if ``transposed``, to ``out`` (n,), A over all coordinates."""
    sparse = sparse_of(arrays)
    indptr, indices = sparse.indptr, sparse.indices
    for c in range(x.size):
        total = 0.0
        for e in range(indptr[c], indptr[c + 1]):
            if transposed:
                total += data[e] * x[indices[e]]
            else:
                out[indices[e]] += abs(data[e]) * x[c]
        if transposed:
            out[c] += total


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
def _soften(factors, n, held):
    """Let the last rows, which hold what sticks, give way a little: they depend on each other, and refinement mends it.

    Reactions that do nothing, along normals or against each other, are left as they were (method of multipliers, see
    `add.linalg.augmented_lagrangian`).
    """
    size, rows, columns = 0.0, 0.0, 0.0
    for c in range(n - held):
        size += abs(factors[c * n + c]) / (n - held)
        for r in range(n - held, n):
            rows, columns = max(rows, abs(factors[c * n + r])), max(columns, abs(factors[r * n + c]))
    for r in range(n - held, n):
        factors[r * n + r] -= SOFTNESS * rows * columns / size


@njit(**CALLED)
def factor_dense(linear, blas):
    """Factor the matrix; return its largest entry, or -1 if it is singular or not finite."""
    n, largest = linear.pivots.size, 0.0
    for k in range(n * n):
        x = linear.matrix[k]
        if not np.isfinite(x):
            return -1.0
        largest = max(largest, abs(x))
        linear.factors[k] = x
    if linear.info[2]:
        _soften(linear.factors, n, linear.info[2])
    getrf(blas.getrf, (n, n, linear.factors, 0, n, linear.pivots, 0, linear.info, 0))
    return -1.0 if linear.info[0] > 0 else largest


@njit(**CALLED)
def solve_dense(linear, largest, transposed, b, x, rest, blas):
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


class Linear(NamedTuple):
    """Room for the free block of a matrix and its factors; few arrays, since every call counts their references.

    Attributes
    ----------
    matrix : values of the block
    factors : of it
    pivots : (n,) int32 exchanges of rows
    info : (3,) int32, what LAPACK says, whether the factors are those of Cholesky, and how many of the last rows hold
        what sticks
    more : of sparse matrices: contributions that wait, the rows of the largest border, and three largest entries of
        each unknown, see `add.compiled.linear`
    """

    matrix: FloatArray
    factors: FloatArray
    pivots: AnyArray
    info: AnyArray
    more: FloatArray


@njit(**CALLED)
def new_linear(arrays):
    """Return room for the matrices of a system."""
    n, sizes = layout_of(arrays).free.size, sparse_of(arrays).sizes
    more, fill, nnz = 0, n * n, n * n
    if sizes.size:
        more, fill, nnz = sizes[0] + sizes[1] + 3 * n, sizes[2], sizes[3]
    info = np.zeros(3, dtype=np.int32)
    info[2] = layout_of(arrays).size[4]
    return Linear(np.empty(nnz), np.empty(fill), np.empty(n, dtype=np.int32), info, np.empty(more))


def no_linear() -> Linear:
    """Return room for nothing, for its type."""
    one, small = np.zeros(0), np.zeros(0, dtype=np.int32)
    return Linear(one, one, small, small, one)


def make(call_factor, call_solve, call_product):
    """Return `factor`, `solve` and `add_product` over dense matrices and, by address, sparse ones."""

    @njit(**FAMILY)
    def factor(arrays, routines, free, n, linear, data):
        """Factor the free block of ``data``; return its largest entry, or -1 if it is singular or not finite."""
        if routines.factor:
            largest = call_factor(routines.factor, (arrays, routines.blas, linear, data))
        else:
            take_block(data, n, free, linear.matrix)
            largest = factor_dense(linear, routines.blas)
        return largest

    @njit(**FAMILY)
    def solve(arrays, routines, linear, largest, transposed, b, x, rest):
        """Fill x with A^-1 b or A^-T b, refined; return whether it is no noise. ``rest`` (n,) is scratch."""
        if routines.factor:
            sound = call_solve(routines.solve, (arrays, routines.blas, linear, largest, transposed, b, x, rest))
        else:
            sound = solve_dense(linear, largest, transposed, b, x, rest, routines.blas)
        return sound

    @njit(**FAMILY)
    def add_product(arrays, routines, data, x, transposed, out):
        """Add |A| x, or A^T x if ``transposed``, to ``out`` (n,), A over all coordinates."""
        if routines.factor:
            call_product(routines.product, (arrays, data, x, transposed, out))
        elif transposed:
            add_transposed(data, x.size, x, out)
        else:
            add_sizes(data, x.size, x, out)

    return factor, solve, add_product
