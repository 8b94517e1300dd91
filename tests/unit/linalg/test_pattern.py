"""Patterns: built from all entries, and extended by more."""

import numpy as np
import pytest
import scipy.sparse as sp

from add.linalg.pattern import Pattern


def cliques(rng, count, size, n):
    """Return the entries of dense blocks over random unknowns."""
    dofs = rng.integers(0, n, (count, size))
    return np.repeat(dofs, size, axis=1).ravel(), np.tile(dofs, (1, size)).ravel()


def summed(pattern, entries, compressed, values):
    """Return the matrix that the slots make of values."""
    data = pattern.new_data()
    for slots, value in zip(pattern.slots, values, strict=True):
        np.add.at(data, slots, value)
    return pattern.matrix(data)


def oracle(n, entries, compressed, values):
    """Return the sum of the entries by SciPy, explicit zeros on the diagonal."""
    rows, cols = (compressed[np.concatenate([entry[k] for entry in entries])] for k in (0, 1))
    kept = (rows >= 0) & (cols >= 0)
    ones = np.arange(n)
    value = np.concatenate([np.concatenate(values)[kept], np.zeros(n)])
    return sp.csc_array((value, (np.append(rows[kept], ones), np.append(cols[kept], ones))), shape=(n, n))


@pytest.fixture
def case():
    rng = np.random.default_rng(3)
    full = 60
    compressed = np.full(full, -1)
    free = rng.permutation(full)[:47]
    compressed[np.sort(free)] = np.arange(47)
    entries = [cliques(rng, 12, 4, full), cliques(rng, 3, 6, full), (np.zeros(0, np.int64),) * 2]
    return rng, compressed, [*entries, entries[0]]


def test_slots_add_up_to_the_matrix(case):
    rng, compressed, entries = case
    pattern = Pattern.build(47, entries, compressed)
    values = [rng.normal(size=rows.size) for rows, _ in entries]
    expected = oracle(47, entries, compressed, values)
    expected.sum_duplicates()
    got = summed(pattern, entries, compressed, values)
    np.testing.assert_array_equal(got.indptr, expected.indptr)
    np.testing.assert_array_equal(got.indices, expected.indices)
    np.testing.assert_allclose(got.toarray(), expected.toarray(), atol=1e-14)
    assert (pattern.indices[pattern.diagonal] == np.arange(47)).all()
    assert pattern.slots[-1] is pattern.slots[0], "the same entries have their slots once"


def test_extended_is_the_pattern_of_both(case):
    rng, compressed, entries = case
    more = [cliques(rng, 7, 5, 60), cliques(rng, 1, 2, 60)]
    base = Pattern.build(47, entries, compressed)
    both, whole = base.extended(more, compressed), Pattern.build(47, [*entries, *more], compressed)
    assert both.nnz > base.nnz and both.base is base and len({base.id, both.id, whole.id}) == 3
    np.testing.assert_array_equal(both.indptr, whole.indptr)
    np.testing.assert_array_equal(both.indices, whole.indices)
    for mine, other in zip(both.slots, whole.slots[len(entries) :], strict=True):
        np.testing.assert_array_equal(mine, other)
    for slots, other in zip(base.slots, whole.slots, strict=False):
        np.testing.assert_array_equal(np.append(both.place, both.nnz)[slots], other)


@pytest.mark.parametrize("n", [0, 1])
def test_nothing(n):
    pattern = Pattern.build(n, [])
    assert pattern.nnz == n and pattern.extended([]).nnz == n
