"""The matrix of a compiled step, dense or sparse: room for its values and factors, and what is asked of it.

Values stand over all coordinates (`Layout.size` says how many), dense ones by columns, sparse ones by the structure of
`add.compiled.structure.Sparse`; factors are of the rows and columns of the free coordinates. Functions of sparse
matrices are called by address: systems without one do not compile them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from add.compiled.dense import add_sizes, add_transposed, factor as factor_dense, solve as solve_dense, take_block
from add.compiled.structure import layout_of, sparse_of
from add.kernels.arena import FAMILY
from add.kernels.caching import CALLED, njit
from add.typing import AnyArray, FloatArray


class Linear(NamedTuple):
    """Room for the free block of a matrix and its factors; few arrays, since every call counts their references.

    Attributes
    ----------
    matrix : values of the block
    factors : of it
    pivots : (n,) int32 exchanges of rows
    info : (2,) int32, what LAPACK says, and whether the factors are those of Cholesky
    more : of sparse matrices: contributions that wait, the rows of the largest border, and three largest entries of
        each unknown, see `add.compiled.sparse`
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
    return Linear(
        np.empty(nnz), np.empty(fill), np.empty(n, dtype=np.int32), np.zeros(2, dtype=np.int32), np.empty(more)
    )


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
