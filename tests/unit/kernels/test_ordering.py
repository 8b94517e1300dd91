"""Order of keys: NumPy's own functions are the answer."""

import numpy as np
import pytest

from add.kernels.ordering import distinct, first_not_below, order_of, rows_by


@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 9, 16, 17, 100, 1000])
@pytest.mark.parametrize("most", [3, 10_000])
def test_order_is_that_of_a_stable_sort(n, most):
    keys = np.random.default_rng(n + most).integers(-most, most, n)
    assert np.array_equal(order_of(keys), np.argsort(keys, kind="stable"))
    assert np.array_equal(order_of(np.sort(keys)), np.arange(n))
    assert np.array_equal(order_of(1e-3 * keys), np.argsort(keys, kind="stable"))
    assert np.array_equal(distinct(keys), np.unique(keys))
    rows = np.stack([np.arange(n), keys, -keys], axis=1)
    assert np.array_equal(rows_by(rows, 1), rows[np.argsort(keys, kind="stable")])


def test_places_among_sorted_keys_are_those_of_a_search():
    keys = np.sort(np.random.default_rng(1).integers(0, 50, 40))
    for key in range(-1, 52):
        assert first_not_below(keys, key) == np.searchsorted(keys, key)
        assert first_not_below(keys, key + 1) == np.searchsorted(keys, key, side="right")
    assert first_not_below(keys[:0], 3) == 0
