"""What every back end must do: solve, transposed too, one and many right-hand sides, and say when it cannot."""

import numpy as np
import pytest
import scipy.sparse as sp
from support.linalg_cases import error, pattern_of, random_blocks, saddle_point, soft_body

from add.errors import SolverError
from add.linalg import DENSE_LIMIT, Cholmod, DenseLU, MultifrontalLU, SparseLU, factorization_for
from add.linalg.cholmod import is_installed

BACK_ENDS = (DenseLU, SparseLU, MultifrontalLU, Cholmod)


@pytest.fixture(params=BACK_ENDS, ids=lambda kind: kind.__name__)
def back_end(request):
    if request.param is Cholmod and not is_installed():
        pytest.skip("scikit-sparse is not installed (extra `cholmod`; it is built against the headers of SuiteSparse)")
    return request.param()


def constrained(rng):
    """A soft body with three nodes held by rows of random weights, each over two nodes."""
    body = soft_body((4, 4, 3), rng)
    rows = sp.lil_array((5, body.shape[0]))
    for row, node in enumerate((3, 11, 20, 20, 40)):
        columns = np.arange(3 * node, 3 * node + 6)
        rows[row, columns] = rng.normal(size=6)
    return saddle_point(body, rows.tocsr())


def definite_unsymmetric(rng):
    return random_blocks(60, rng, 30.0)


def indefinite(rng):
    """Eigenvalues on both sides of zero."""
    return random_blocks(60, rng, 0.5)


def one_sided(rng):
    """A structure that is not symmetric."""
    matrix = random_blocks(50, rng, 25.0).tolil()
    matrix[3, 100:140] = rng.normal(size=40)
    matrix[60:90, 7] = rng.normal(size=(30, 1))
    return matrix.tocsc()


def soft(rng):
    return soft_body((5, 4, 4), rng)


def scattered(rng):
    """Bodies that do not touch, and single unknowns."""
    parts = [soft_body((2, 2, 2), rng), sp.csc_array(np.diag(rng.normal(size=5))), soft_body((3, 2, 2), rng)]
    return sp.csc_array(sp.block_diag(parts))


def full(rng):
    """Every unknown meets every other."""
    return sp.csc_array(rng.normal(size=(70, 70)))


def symmetric_definite(rng):
    body = soft_body((5, 4, 4), rng)
    return sp.csc_array(0.5 * (body + body.T) + 60.0 * sp.eye_array(body.shape[0]))


def symmetric_indefinite(rng):
    """A positive diagonal, and still directions of negative curvature."""
    body = soft_body((5, 4, 4), rng)
    return sp.csc_array(0.5 * (body + body.T) - 5.0 * sp.eye_array(body.shape[0]))


CASES = (
    soft, definite_unsymmetric, indefinite, one_sided, scattered, full, constrained, symmetric_definite,
    symmetric_indefinite,
)  # fmt: skip


@pytest.mark.parametrize("transposed", [False, True], ids=["A", "A^T"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_solutions_are_those_of_numpy(back_end, case, transposed, rng):
    matrix = case(rng)
    condition = np.linalg.cond(matrix.toarray())
    back_end.factor(*pattern_of(matrix))
    for shape in [(), (1,), (7,), (40,)]:
        b = rng.normal(size=(matrix.shape[0], *shape))
        # Round-off that no solver escapes is condition times eps; the bound is 1e-12 for all but the ill-conditioned.
        assert error(back_end, matrix, b, transposed) < max(1e-12, 4.0 * condition * np.finfo(float).eps)


@pytest.mark.parametrize("layout", ["C", "F"])
def test_layout_of_the_right_hand_sides_does_not_matter(back_end, layout, rng):
    matrix = soft(rng)
    back_end.factor(*pattern_of(matrix))
    b = rng.normal(size=(matrix.shape[0], 4))
    kept = b.copy()
    x = back_end.solve(np.asarray(b, order=layout))
    np.testing.assert_allclose(matrix @ x, b, atol=1e-12 * np.abs(b).max())
    np.testing.assert_array_equal(b, kept)
    np.testing.assert_allclose(x[:, 2], back_end.solve(b[:, 2]), rtol=1e-11, atol=1e-13)


def test_values_and_patterns_may_change_at_any_time(back_end, rng):
    """Also back to a pattern seen before; and the values passed in may be overwritten before the solve."""
    matrices = [soft(rng), constrained(rng), definite_unsymmetric(rng)]
    patterns = [pattern_of(matrix) for matrix in matrices]
    for k in (0, 0, 1, 2, 1, 0, 2):
        pattern, data = patterns[k]
        data = data * rng.uniform(0.9, 1.1, size=data.size)
        matrix = pattern.matrix(data).copy()
        back_end.factor(pattern, data)
        if not isinstance(back_end, DenseLU):
            data[:] = np.nan
        b = rng.normal(size=pattern.n)
        assert error(back_end, matrix, b, False) < 1e-11
        assert error(back_end, matrix, b, True) < 1e-11


def test_the_same_matrix_gives_the_same_bits(back_end, rng):
    """A recomputation from a checkpoint must meet the same numbers, whatever was factored between."""
    (pattern, data), (other, more) = pattern_of(soft(rng)), pattern_of(constrained(rng))
    b = rng.normal(size=pattern.n)
    back_end.factor(pattern, data)
    first = back_end.solve(b)
    back_end.factor(other, more)
    back_end.factor(pattern, data)
    np.testing.assert_array_equal(back_end.solve(b), first)
    fresh = type(back_end)()
    fresh.factor(pattern, data)
    np.testing.assert_array_equal(fresh.solve(b), first)


@pytest.mark.parametrize("seed", range(40))
def test_random_structures_of_any_size(back_end, seed):
    """Trees of every shape: from single unknowns to nearly full, symmetric structures and not."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 90))
    matrix = sp.random_array(
        (n, n), density=rng.uniform(0.0, min(1.0, 6.0 / n)), rng=rng, data_sampler=rng.standard_normal
    )
    if seed % 2:
        matrix = matrix + matrix.T
    matrix = sp.csc_array(matrix + sp.diags_array(rng.uniform(4.0, 8.0, n)))
    back_end.factor(*pattern_of(matrix))
    b = rng.normal(size=(n, int(rng.integers(1, 5))))
    condition = np.linalg.cond(matrix.toarray())
    for transposed in (False, True):
        assert error(back_end, matrix, b, transposed) < max(1e-12, 4.0 * condition * np.finfo(float).eps)


@pytest.mark.parametrize("kind", [DenseLU, MultifrontalLU])
def test_nothing_to_solve(kind):
    back_end = kind()
    back_end.factor(*pattern_of(sp.csc_array((0, 0))))
    assert back_end.solve(np.zeros(0)).shape == (0,)
    back_end.factor(*pattern_of(sp.eye_array(5, format="csc")))
    assert back_end.solve(np.zeros((5, 0))).shape == (5, 0)


def singular_exactly(rng):
    matrix = soft(rng).tolil()
    matrix[9:12, :] = 0.0
    matrix[:, 9:12] = 0.0
    return matrix.tocsc() + 0.0 * soft(rng)


def singular_by_two_equal_constraints(rng):
    body = soft_body((3, 3, 3), rng)
    rows = sp.lil_array((2, body.shape[0]))
    rows[:, 10] = 1.0
    return saddle_point(body, rows.tocsr())


def singular_by_free_motion(rng):
    """Springs between nodes, nothing held."""
    n = 40
    i, j = rng.integers(n, size=(2, 150))
    i, j = i[i != j], j[i != j]
    laplacian = sp.coo_array((np.ones(i.size), (i, j)), shape=(n, n))
    laplacian = laplacian + laplacian.T
    laplacian = sp.diags_array(laplacian.sum(axis=0)) - laplacian
    return sp.csc_array(sp.kron(laplacian, sp.csc_array(np.array([[2.0, 0.3, 0], [0.3, 1.5, 0.1], [0, 0.1, 1.0]]))))


@pytest.mark.parametrize(
    "case", [singular_exactly, singular_by_two_equal_constraints, singular_by_free_motion], ids=lambda c: c.__name__
)
def test_singular_matrices_are_refused(back_end, case, rng):
    matrix = case(rng)
    with pytest.raises(SolverError, match="singular"):
        back_end.factor(*pattern_of(matrix))
        back_end.solve(rng.normal(size=matrix.shape[0]))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(back_end, bad, rng):
    pattern, data = pattern_of(soft(rng))
    data[17] = bad
    with pytest.raises(SolverError, match="not finite"):
        back_end.factor(pattern, data)


def test_after_a_refusal_the_next_matrix_is_solved(back_end, rng):
    pattern, data = pattern_of(soft(rng))
    bad = data.copy()
    bad[5] = np.nan
    with pytest.raises(SolverError):
        back_end.factor(pattern, bad)
    back_end.factor(pattern, data)
    b = rng.normal(size=pattern.n)
    np.testing.assert_allclose(pattern.matrix(data) @ back_end.solve(b), b, atol=1e-12)


def test_zero_right_hand_sides_give_zero(back_end, rng):
    pattern, data = pattern_of(soft(rng))
    back_end.factor(pattern, data)
    np.testing.assert_array_equal(back_end.solve(np.zeros(pattern.n)), 0.0)
    np.testing.assert_array_equal(back_end.solve_transposed(np.zeros((pattern.n, 3))), 0.0)


def test_small_systems_are_dense():
    assert isinstance(factorization_for(DENSE_LIMIT), DenseLU)
    assert isinstance(factorization_for(DENSE_LIMIT + 1), MultifrontalLU)
