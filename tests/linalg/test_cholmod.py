"""CHOLMOD: which matrices it takes, that indefinite ones never pass, and a whole run by it."""

import numpy as np
import pytest
import scipy.sparse as sp
from linalg.linalg_cases import error, pattern_of, soft_body

from add.linalg import Cholmod, MultifrontalLU
from add.linalg.cholmod import is_installed

pytestmark = pytest.mark.skipif(
    not is_installed(), reason="scikit-sparse is not installed (extra `cholmod`, built against SuiteSparse's headers)"
)


def symmetric(shape, rng, shift):
    body = soft_body(shape, rng)
    return sp.csc_array(0.5 * (body + body.T) + shift * sp.eye_array(body.shape[0]))


@pytest.mark.parametrize("columns", [None, 1, 5])
@pytest.mark.parametrize("shape", [(2, 2, 2), (3, 3, 2), (6, 5, 4), (9, 8, 7)])
def test_symmetric_definite_matrices_are_its_own(shape, columns, rng):
    matrix = symmetric(shape, rng, 60.0)
    back_end = Cholmod()
    back_end.factor(*pattern_of(matrix))
    n = matrix.shape[0]
    for transposed in (False, True):
        b = rng.normal(size=n if columns is None else (n, columns))
        assert error(back_end, matrix, b, transposed) < 1e-11
    assert (back_end.symmetric, back_end.others) == (1, 0)


@pytest.mark.parametrize("shape", [(3, 2, 2), (6, 5, 4)], ids=["simplicial", "supernodal"])
def test_indefinite_matrices_are_left(shape, rng):
    """Small matrices are factored in the simplicial mode, which accepts them: D > 0 is what refuses."""
    matrix = symmetric(shape, rng, 60.0).tolil()
    matrix[0, 3] = matrix[3, 0] = 2.0 * np.sqrt(matrix[0, 0] * matrix[3, 3])
    matrix = sp.csc_array(matrix)
    assert np.linalg.eigvalsh(matrix.toarray()).min() < 0.0 < matrix.diagonal().min()
    back_end = Cholmod()
    back_end.factor(*pattern_of(matrix))
    assert (back_end.symmetric, back_end.others) == (0, 1)
    assert error(back_end, matrix, rng.normal(size=matrix.shape[0]), False) < 1e-10


def test_library_accepts_an_indefinite_matrix(rng):
    """Why D is looked at: the library's own answer to a small indefinite matrix is a factor, not an error."""
    from sksparse.cholmod import cholesky

    factor = cholesky(sp.csc_matrix(np.array([[1.0, 2.0], [2.0, 1.0]])))
    assert factor.D().min() < 0.0


@pytest.mark.parametrize("change", [1e-9, 1e-16])
def test_symmetry_is_judged_as_by_default(change, rng):
    matrix = symmetric((5, 4, 4), rng, 60.0).tolil()
    matrix[4, 1] *= 1.0 + change
    matrix = sp.csc_array(matrix)
    ours, other = Cholmod(), MultifrontalLU()
    for back_end in (ours, other):
        back_end.factor(*pattern_of(matrix))
        assert error(back_end, matrix, rng.normal(size=matrix.shape[0]), False) < 1e-11
    assert ours.symmetric == other.statistics.symmetric == (change < 1e-12)


def test_analyses_are_bounded(rng):
    from add.linalg.cholmod import MOST_ANALYSES

    back_end = Cholmod()
    matrix = symmetric((2, 2, 2), rng, 60.0)
    for _ in range(3 * MOST_ANALYSES):
        back_end.factor(*pattern_of(matrix))
    assert len(back_end._analyses) == MOST_ANALYSES
