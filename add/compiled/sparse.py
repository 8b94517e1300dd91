"""Sparse matrices inside compiled steps: the multifrontal factorisation of `add.linalg`, as its Python uses it.

What that leaves to another back end, these leave to the terms: a step that meets it is begun anew.
"""

from __future__ import annotations

import numpy as np

from add.compiled.structure import fronts_of_system, sparse_of
from add.kernels.borrowed import borrowed
from add.kernels.caching import CALLED, njit
from add.linalg.base import sound
from add.linalg.cholesky import factorise_symmetric, is_symmetric
from add.linalg.fronts import factorise, measure
from add.linalg.multifrontal import EXTRA_REFINEMENTS, MAX_REPLACED, SMALLEST
from add.linalg.refinement import refine


@njit(**CALLED)
def _room(linear, sparse):
    """Return the stack, the border, and (3, n) the largest entries of rows, columns, and columns as eliminated."""
    stack, border, n = sparse.sizes[0], sparse.sizes[1], linear.pivots.size
    more = linear.more
    return (
        borrowed(more, 0, (stack,)), borrowed(more, stack, (border,)), borrowed(more, stack + border, (3, n)),
    )  # fmt: skip


@njit(**CALLED)
def factor(arrays, blas, linear, data):
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
def solve(arrays, blas, linear, largest, transposed, b, x, rest):
    """Fill x with A^-1 b or A^-T b, refined; return whether it is no noise."""
    sparse, fronts, n = sparse_of(arrays), fronts_of_system(arrays), b.size
    x[:], rest[:] = 0.0, b
    matrix = sparse.block_indptr, sparse.block_indices, linear.matrix, transposed
    _, border, most = _room(linear, sparse)
    steps = 2
    right, found, defect = b.reshape((n, 1)), x.reshape((n, 1)), rest.reshape((n, 1))
    for _ in range(1 + EXTRA_REFINEMENTS):
        if refine(
            blas, fronts, linear.factors, linear.pivots, linear.info[1] != 0, matrix, right, found, defect,
            border, most[1 if transposed else 0], steps,
        ):  # fmt: skip
            return sound(largest, x, b, rest)
        steps = 1
    return False


@njit(**CALLED)
def add_product(arrays, data, x, transposed, out):
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
