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
from add.kernels.caching import CALLED, njit
from add.typing import AnyArray, FloatArray, IntArray


class Linear(NamedTuple):
    """Room for the free block of a matrix and its factors.

    Attributes
    ----------
    matrix : values of the block
    factors : of it
    pivots : (n,) int32 exchanges of rows
    info : (1,) int32
    stack, border : of sparse factors: contributions that wait, the rows of the largest border
    largest : (3, n) of sparse matrices: largest entry of every row, column, and column in the order of elimination
    state : (1,) int64, whether the factors are those of Cholesky
    """

    matrix: FloatArray
    factors: FloatArray
    pivots: AnyArray
    info: AnyArray
    stack: FloatArray
    border: FloatArray
    largest: FloatArray
    state: IntArray


@njit(**CALLED)
def new_linear(arrays):
    """Return room for the matrices of a system."""
    n, sizes = layout_of(arrays).free.size, sparse_of(arrays).sizes
    stack, border, fill, nnz = 0, 0, n * n, n * n
    if sizes.size:
        stack, border, fill, nnz = sizes
    return Linear(
        np.empty(nnz), np.empty(fill), np.empty(n, dtype=np.int32), np.zeros(1, dtype=np.int32), np.empty(stack),
        np.empty(border), np.empty((3, n if sizes.size else 0)), np.zeros(1, dtype=np.int64),
    )  # fmt: skip


def no_linear() -> Linear:
    """Return room for nothing, for its type."""
    one, small = np.zeros(0), np.zeros(0, dtype=np.int32)
    return Linear(one, one, small, small, one, one, np.zeros((0, 0)), np.zeros(0, dtype=np.int64))


def make(call_factor, call_solve, call_product):
    """Return `factor`, `solve` and `add_product` over dense matrices and, by address, sparse ones."""

    @njit(**CALLED)
    def factor(arrays, routines, linear, data):
        """Factor the free block of ``data``; return its largest entry, or -1 if it is singular or not finite."""
        if routines.factor:
            return call_factor(routines.factor, (arrays, routines.blas, linear, data))
        layout = layout_of(arrays)
        take_block(data, layout.size[0], layout.free, linear.matrix)
        return factor_dense(linear, routines.blas)

    @njit(**CALLED)
    def solve(arrays, routines, linear, largest, transposed, b, x, rest):
        """Fill x with A^-1 b or A^-T b, refined; return whether it is no noise. ``rest`` (n,) is scratch."""
        if routines.factor:
            return call_solve(routines.solve, (arrays, routines.blas, linear, largest, transposed, b, x, rest))
        return solve_dense(linear, largest, transposed, b, x, rest, routines.blas)

    @njit(**CALLED)
    def add_product(arrays, routines, data, x, transposed, out):
        """Add |A| x, or A^T x if ``transposed``, to ``out`` (n,), A over all coordinates."""
        if routines.factor:
            call_product(routines.product, (arrays, data, x, transposed, out))
        elif transposed:
            add_transposed(data, x.size, x, out)
        else:
            add_sizes(data, x.size, x, out)

    return factor, solve, add_product
