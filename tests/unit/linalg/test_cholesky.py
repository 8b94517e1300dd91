"""Symmetric positive definite matrices, told from all others by their values."""

import numpy as np
import pytest
import scipy.sparse as sp
from support.linalg_cases import error, pattern_of, soft_body

from add.linalg import MultifrontalLU


def symmetric_body(shape, rng):
    body = soft_body(shape, rng)
    return sp.csc_array(0.5 * (body + body.T) + 60.0 * sp.eye_array(body.shape[0]))


def factored(matrix):
    back_end = MultifrontalLU()
    back_end.factor(*pattern_of(matrix))
    return back_end


@pytest.mark.parametrize("columns", [None, 1, 5])
@pytest.mark.parametrize("shape", [(2, 2, 2), (3, 3, 2), (6, 5, 4), (9, 8, 7)])
def test_symmetric_matrices_take_half_the_work(shape, columns, rng):
    """The same solutions, also of the transposed matrix, as SciPy finds; `error` compares with those."""
    matrix = symmetric_body(shape, rng)
    back_end = factored(matrix)
    n = matrix.shape[0]
    for transposed in (False, True):
        b = rng.normal(size=n if columns is None else (n, columns))
        assert error(back_end, matrix, b, transposed) < 1e-11
    assert back_end.statistics.symmetric == 1


def test_round_off_of_assembly_is_no_asymmetry(rng):
    matrix = symmetric_body((5, 4, 4), rng)
    matrix.data *= 1.0 + 1e-16 * rng.integers(-3, 4, matrix.nnz)
    back_end = factored(matrix)
    assert back_end.statistics.symmetric == 1
    assert error(back_end, matrix, rng.normal(size=matrix.shape[0]), False) < 1e-11


@pytest.mark.parametrize("change", ["one entry", "structure", "indefinite", "negative diagonal"])
def test_all_others_are_left_to_the_lu(change, rng):
    matrix = symmetric_body((5, 4, 4), rng).tolil()
    n = matrix.shape[0]
    if change == "one entry":
        matrix[4, 1] *= 1.0 + 1e-9
    elif change == "structure":
        matrix[n - 1, 0], matrix[0, n - 1] = 3.0, 0.0
        matrix = matrix.tocsc()
        matrix.eliminate_zeros()
    elif change == "indefinite":
        # Positive on the diagonal, and still a direction of negative curvature.
        matrix[0, 3] = matrix[3, 0] = 2.0 * np.sqrt(matrix[0, 0] * matrix[3, 3])
    else:
        matrix[7, 7] = -matrix[7, 7]
    matrix = sp.csc_array(matrix)
    back_end = factored(matrix)
    for transposed in (False, True):
        assert error(back_end, matrix, rng.normal(size=n), transposed) < 1e-10
    assert back_end.statistics.symmetric == back_end.statistics.fallbacks == 0


def test_from_matrix_to_matrix_the_choice_is_made_anew(rng):
    """What was factored before leaves nothing behind: the same numbers as from a back end that is new."""
    symmetric = symmetric_body((5, 4, 4), rng)
    pattern, data = pattern_of(symmetric)
    other = data.copy()
    other[np.flatnonzero(pattern.indices != np.repeat(np.arange(pattern.n), np.diff(pattern.indptr)))[3]] *= 1.01
    back_end, b = MultifrontalLU(), rng.normal(size=pattern.n)
    for values in (data, other, data, other):
        back_end.factor(pattern, values)
        new = MultifrontalLU()
        new.factor(pattern, values)
        np.testing.assert_array_equal(back_end.solve(b), new.solve(b))
        np.testing.assert_array_equal(back_end.solve_transposed(b), new.solve_transposed(b))
    assert back_end.statistics.symmetric == 2
