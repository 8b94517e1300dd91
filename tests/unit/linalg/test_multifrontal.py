"""The fronts themselves: structure, fill, pivots that fail, and the way out to SuperLU."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from support.linalg_cases import error, pattern_of, random_blocks, saddle_point, soft_body

from add.linalg import MultifrontalLU, Statistics
from add.linalg.fronts import BLOCK
from add.linalg.multifrontal import MAX_REPLACED
from add.linalg.symbolic import fronts_of
from add.linalg.tree import elimination_tree, nested_dissection, postponed, structure_of, weak_vertices


def analysed(matrix):
    pattern, _ = pattern_of(matrix)
    structure = structure_of(pattern.indptr, pattern.indices)
    return structure, nested_dissection(structure)


def test_the_three_coordinates_of_a_node_are_one_vertex(rng):
    structure, _ = analysed(soft_body((4, 3, 3), rng))
    np.testing.assert_array_equal(structure.first, np.arange(0, 3 * 36 + 1, 3))


def test_vertices_with_equal_columns_and_other_rows_stay_apart():
    matrix = np.eye(4)
    matrix[0, 1] = matrix[1, 0] = matrix[0, 3] = 1.0  # columns 0 and 1 alike, rows 0 and 1 not
    structure, _ = analysed(sp.csc_array(matrix))
    np.testing.assert_array_equal(structure.first, [0, 1, 2, 3, 4])


def test_the_tree_is_that_of_the_filled_matrix(rng):
    """The parent of a column is its first entry below the diagonal in the factor (Liu 1990)."""
    structure, order = analysed(random_blocks(40, rng, 30.0))
    n = order.size
    graph = np.eye(n, dtype=bool)
    for v in range(n):
        graph[v, structure.neighbours[structure.adjacent[v] : structure.adjacent[v + 1]]] = True
    filled = graph[np.ix_(order, order)]
    for k in range(n):
        below = k + 1 + np.flatnonzero(filled[k + 1 :, k])
        filled[np.ix_(below, below)] = True
    wanted = [k + 1 + np.argmax(filled[k + 1 :, k]) if filled[k + 1 :, k].any() else -1 for k in range(n)]
    parent, _ = elimination_tree(structure.adjacent, structure.neighbours, order)
    np.testing.assert_array_equal(parent, wanted)


@pytest.mark.parametrize("shape", [(2, 2, 2), (5, 4, 4), (8, 8, 6)])
def test_fronts_hold_every_unknown_once_and_nest(shape, rng):
    structure, order = analysed(soft_body(shape, rng))
    fronts, sizes = fronts_of(structure, order)
    n = structure.indptr.size - 1
    np.testing.assert_array_equal(np.sort(fronts.order), np.arange(n))
    np.testing.assert_array_equal(np.sort(fronts.source), np.arange(structure.indices.size))
    assert fronts.pivots[-1] == n and np.all(np.diff(fronts.pivots) > 0)
    rows = [fronts.rows[a:b] for a, b in zip(fronts.border[:-1], fronts.border[1:], strict=True)]
    for s, (low, high) in enumerate(zip(fronts.pivots[:-1], fronts.pivots[1:], strict=True)):
        own = np.concatenate([np.arange(low, high), rows[s]])
        assert np.all(np.diff(own) > 0)
        for c in fronts.child[fronts.children[s] : fronts.children[s + 1]]:
            assert c < s
            np.testing.assert_array_equal(own[fronts.local[fronts.border[c] : fronts.border[c + 1]]], rows[c])
    # Nothing is stored twice: the targets within a front differ.
    for s in range(len(rows)):
        target = fronts.target[fronts.entries[s] : fronts.entries[s + 1]]
        assert np.unique(target).size == target.size
        assert target.size == 0 or target.max() < fronts.store[s + 1] - fronts.store[s]
    assert sizes.fill == fronts.store[-1] and sizes.flops > 0.0


def test_fill_is_that_of_a_good_ordering(rng):
    """SuperLU with minimum degree on the same graph stores no less than four fifths."""
    from add.linalg import SparseLU

    pattern, data = pattern_of(soft_body((8, 8, 8), rng))
    multifrontal, superlu = MultifrontalLU(), SparseLU()
    multifrontal.factor(pattern, data)
    superlu.factor(pattern, data)
    assert multifrontal.statistics.fill < 1.25 * (superlu._lu.L.nnz + superlu._lu.U.nnz)


@pytest.mark.parametrize("n", [1, 2, BLOCK, BLOCK + 1, 2 * BLOCK, 5 * BLOCK + 3, 12 * BLOCK - 1])
def test_one_full_front_is_lapack(n, rng):
    """The same pivots as LAPACK's partial pivoting, so the same factors up to round-off."""
    dense = rng.normal(size=(n, n))
    dense[0, 0] = -abs(dense[0, 0])  # no Cholesky, also of a single number
    pattern, data = pattern_of(sp.csc_array(dense))
    back_end = MultifrontalLU()
    back_end.factor(pattern, data)
    lu, pivots = scipy.linalg.lu_factor(dense)
    np.testing.assert_array_equal(back_end._swaps, pivots)
    np.testing.assert_allclose(back_end._factors[: n * n].reshape(n, n).T, lu, rtol=1e-8, atol=1e-10)


def test_multipliers_come_after_the_coordinates_they_hold(rng):
    body = soft_body((4, 4, 3), rng)
    rows = sp.lil_array((4, body.shape[0]))
    for k, node in enumerate((0, 7, 30, 41)):
        rows[k, 3 * node + np.arange(3)] = rng.normal(size=3)
    pattern, data = pattern_of(saddle_point(body, rows.tocsr()))
    structure = structure_of(pattern.indptr, pattern.indices)
    weak = weak_vertices(structure, data[pattern.diagonal])
    assert np.flatnonzero(weak).tolist() == list(range(48, 52))
    order = postponed(structure, nested_dissection(structure), weak)
    place = np.argsort(order)
    for v in np.flatnonzero(weak):
        around = structure.neighbours[structure.adjacent[v] : structure.adjacent[v + 1]]
        assert place[v] > place[around[~weak[around]]].max()


@pytest.mark.parametrize("n_rows", [1, 6, 40])
def test_saddle_points_need_no_fallback(n_rows, rng):
    body = soft_body((6, 5, 4), rng, unsymmetric=0.02)
    body = body + 40.0 * sp.eye_array(body.shape[0])
    rows = sp.random_array((n_rows, body.shape[0]), density=0.02, rng=rng, data_sampler=rng.standard_normal)
    matrix = saddle_point(
        body, rows + sp.csr_array((np.ones(n_rows), (np.arange(n_rows), 5 * np.arange(n_rows))), rows.shape)
    )
    back_end = MultifrontalLU()
    back_end.factor(*pattern_of(matrix))
    for transposed in (False, True):
        assert error(back_end, matrix, rng.normal(size=matrix.shape[0]), transposed) < 1e-11
    assert back_end.statistics.fallbacks == 0


def blocked_pivots(rng, n_pairs=60):
    """Zero diagonals everywhere, the large entries between far places: no pivots within small fronts."""
    n = 2 * n_pairs
    far = sp.coo_array((rng.uniform(1.0, 2.0, n), (np.arange(n), (np.arange(n) + n_pairs) % n)), shape=(n, n))
    near = sp.diags_array([1e-3 * rng.normal(size=n - 1), 1e-3 * rng.normal(size=n - 1)], offsets=[1, -1])
    return sp.csc_array(far + near)


def test_pivots_outside_the_fronts_are_found_all_the_same(rng):
    """Every diagonal is zero, so nothing is postponed; right answers come from SuperLU if not from the fronts."""
    matrix = blocked_pivots(rng)
    back_end = MultifrontalLU()
    back_end.factor(*pattern_of(matrix))
    for transposed in (False, True):
        b = rng.normal(size=(matrix.shape[0], 3))
        assert error(back_end, matrix, b, transposed) < 1e-11


def test_growth_that_spoils_the_residual_is_left_to_superlu(rng):
    """Tiny diagonals (not zero) below large couplings: a front without exchange grows its numbers by 1e12."""
    n = 120
    matrix = random_blocks(n // 3, rng, 0.0).tolil()
    matrix.setdiag(0.0)
    ring = (np.arange(n) + 1) % n
    coupling = sp.coo_array((np.full(n, 5.0), (np.arange(n), ring)), shape=(n, n))
    matrix = sp.csc_array(1e-13 * abs(matrix.tocsc()) + coupling + 1e-12 * sp.eye_array(n))
    pattern, data = pattern_of(matrix)
    back_end = MultifrontalLU()
    back_end.factor(pattern, data)
    b = rng.normal(size=n)
    assert error(back_end, matrix, b, False) < 1e-11
    assert error(back_end, matrix, b, True) < 1e-11
    assert back_end.statistics.fallbacks == 1, "this matrix was made to need SuperLU"
    # The next one, harmless, is not left to SuperLU.
    data[pattern.diagonal] += 50.0
    back_end.factor(pattern, data)
    np.testing.assert_allclose(pattern.matrix(data) @ back_end.solve(b), b, atol=1e-12 * np.abs(b).max())
    assert back_end.statistics.fallbacks == 1


def test_a_replaced_pivot_is_repaired_by_refinement(rng):
    """A pivot that is round-off, and would be replaced only from outside its front."""
    body = soft_body((6, 5, 5), rng).tolil()
    pattern, _ = pattern_of(body.tocsc())
    structure = structure_of(pattern.indptr, pattern.indices)
    fronts, _ = fronts_of(structure, nested_dissection(structure))
    # The first front's own block becomes singular; the couplings to its border keep the matrix regular.
    own = fronts.order[: fronts.pivots[1]]
    row = rng.normal(size=own.size)
    body[own[0], own], body[own[1], own] = row, 3.1 * row
    matrix = sp.csc_array(pattern_zeros(pattern) + body.tocsc())
    back_end = MultifrontalLU()
    b = rng.normal(size=pattern.n)
    back_end.factor(*pattern_of(matrix))
    assert back_end.statistics.replaced == 1
    assert error(back_end, matrix, b, False) < 1e-12
    assert error(back_end, matrix, b, True) < 1e-12
    assert back_end.statistics.fallbacks == 0


def held(n_held, rng, corner):
    """A body with single coordinates held: at least a few multipliers have fronts of their own if eliminated early."""
    body = 1e5 * soft_body((8, 8, 6), rng, unsymmetric=0.02)
    count = body.shape[0]
    columns = 3 * rng.choice(count // 3, n_held, replace=False) + 2
    rows = sp.csr_array((np.ones(n_held), (np.arange(n_held), columns)), shape=(n_held, count))
    matrix = saddle_point(body, rows).tolil()
    at = count + np.arange(n_held)
    matrix[at, at] = corner
    return matrix.tocsc()


def forces_and_places(matrix, rng):
    """A right-hand side for `held`: forces of the size of the stiffness, and where things are held."""
    b = rng.normal(size=matrix.shape[0])
    b[: 3 * 8 * 8 * 6] *= 1e5
    return b


def test_multipliers_with_a_zero_diagonal_lose_no_pivots(rng):
    matrix = held(100, rng, 0.0)
    back_end = MultifrontalLU()
    back_end.factor(*pattern_of(matrix))
    assert back_end.statistics.replaced == 0
    assert error(back_end, matrix, forces_and_places(matrix, rng), False) < 1e-10
    assert back_end.statistics.fallbacks == 0


def test_many_lost_pivots_go_to_superlu_at_once(rng):
    """A diagonal that is not quite zero hides the multipliers from the ordering."""
    matrix = held(250, rng, 1e-30)
    back_end = MultifrontalLU()
    back_end.factor(*pattern_of(matrix))
    assert back_end.statistics.replaced > MAX_REPLACED
    assert back_end.statistics.fallbacks == 1
    assert error(back_end, matrix, forces_and_places(matrix, rng), False) < 1e-10


@pytest.mark.parametrize("n_held", range(4, 60, 8))
@pytest.mark.parametrize("transposed", [False, True])
def test_a_few_lost_pivots_spoil_nothing(n_held, transposed, rng):
    """Rows of 1 beside rows of 1e5: a residual that is small beside |b| would still be far too large for some rows."""
    matrix = held(n_held, rng, 1e-30)
    back_end = MultifrontalLU()
    back_end.factor(*pattern_of(matrix))
    assert error(back_end, matrix, forces_and_places(matrix, rng), transposed) < 1e-10


def pattern_zeros(pattern):
    """Return a matrix of stored zeros."""
    return sp.csc_array((np.zeros(pattern.nnz), pattern.indices, pattern.indptr), shape=(pattern.n, pattern.n))


def test_statistics_count(rng):
    (pattern, data), (other, more) = pattern_of(soft_body((4, 4, 3), rng)), pattern_of(random_blocks(40, rng, 30.0))
    back_end = MultifrontalLU()
    assert back_end.statistics == Statistics()
    for p, d in ((pattern, data), (pattern, 1.1 * data), (other, more), (pattern, data)):
        back_end.factor(p, d)
        back_end.solve(rng.normal(size=p.n))
        back_end.solve_transposed(rng.normal(size=(p.n, 3)))
    done = back_end.statistics
    assert (done.analyses, done.factorizations, done.solves, done.fallbacks) == (2, 4, 8, 0)
    assert done.fill >= pattern.nnz


def test_old_analyses_make_room_for_new_ones(monkeypatch, rng):
    first, second = pattern_of(soft_body((4, 4, 3), rng)), pattern_of(soft_body((4, 4, 3), rng))
    monkeypatch.setattr("add.linalg.multifrontal.KEPT_ENTRIES", int(1.5 * first[0].nnz))
    back_end = MultifrontalLU()
    for pattern, data in (first, second, second, first):
        back_end.factor(pattern, data)
        b = rng.normal(size=pattern.n)
        np.testing.assert_allclose(pattern.matrix(data) @ back_end.solve(b), b, atol=1e-11)
    assert back_end.statistics.analyses == 3
