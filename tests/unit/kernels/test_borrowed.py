"""Views that count no references."""

import sys

import numpy as np

from add.kernels.borrowed import uncounted
from add.kernels.caching import njit


@njit
def _doubled(values):
    """Double a vector and a part of a matrix of nested tuples by a number among them."""
    (vector, (matrix, factor)), n = uncounted(values), 2
    for i in range(vector.size):
        vector[i] *= factor
    for i in range(n):
        matrix[0, i] *= factor
    return matrix.shape, vector.sum()


def test_views_of_nested_tuples_are_the_arrays_and_own_nothing() -> None:
    vector, matrix = np.arange(3.0), np.ones((2, 4))
    part = matrix[:, 1:3]
    counts = sys.getrefcount(vector), sys.getrefcount(part)
    shape, total = _doubled((vector, (part, 2.0)))
    assert (shape, total) == ((2, 2), 6.0)
    assert vector.tolist() == [0.0, 2.0, 4.0]
    assert matrix.tolist() == [[1.0, 2.0, 2.0, 1.0], [1.0] * 4]
    assert (sys.getrefcount(vector), sys.getrefcount(part)) == counts
