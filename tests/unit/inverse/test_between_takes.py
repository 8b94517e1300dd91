"""Error bars from takes: each take counts by what it sees of a number; takes of a pendulum, whose truth is known."""

import numpy as np
import pytest
from scipy.special import stdtrit

from add.inverse.between_takes import between_takes
from add.inverse.fit_rows import FitRows
from scripts.takes_coverage import DAMPING, Takes


def fits(takes, spread, repetitions, seed=0):
    rng = np.random.default_rng(seed)
    return [takes.fit(rng, spread) for _ in range(repetitions)]


def rows_of(slopes, own, noise=1e-3, seed=0):
    """Takes whose own numbers are ``own`` (K, n), at the minimum of all together."""
    rng = np.random.default_rng(seed)
    recorded = [j @ b + noise * rng.normal(size=len(j)) for j, b in zip(slopes, own, strict=True)]
    x = np.linalg.lstsq(np.concatenate(slopes), np.concatenate(recorded), rcond=None)[0]
    rows = [FitRows(f"take {k}", np.arange(len(j)), np.zeros(len(j), int), ("m",), j @ x - y, j, 0.0)
            for k, (j, y) in enumerate(zip(slopes, recorded, strict=True))]  # fmt: skip
    return x, rows, [noise**2 * j.T @ j for j in slopes]


@pytest.mark.parametrize(("n_takes", "blind"), [(2, 1), (6, 5)])
def test_takes_that_do_not_see_a_number_say_nothing_of_it(n_takes, blind):
    """Before, leaving out the one take that sees the damping gave it a bar 90 to 500 times too wide."""
    for errors, found in fits(Takes(n_takes, blind), (0.0, 0.0), 10):
        assert np.isnan(found.takes[1]) and not found.between.told[1]
        assert found.half_widths[1] < 3 * found.noise[1]
        assert found.half_widths[1] < DAMPING and abs(errors[1]) < DAMPING


def test_equal_takes_have_the_error_of_their_mean():
    """K takes of one number, all alike: s / sqrt(K), Student's t of K - 1; of fewer than four half the range."""
    for count in (2, 3, 4, 7):
        offsets = np.random.default_rng(count).normal(size=(count, 1))
        slopes = [np.ones((50, 1))] * count
        x, rows, meats = rows_of(slopes, offsets)
        between = between_takes(rows, meats, np.zeros(1, bool))
        assert between.variance[0] == pytest.approx(offsets.var(ddof=1), rel=1e-3)
        assert 2.0 * between.variance[0] ** 2 * between.precision[0, 0] == pytest.approx(count - 1, rel=1e-3)
        assert between.own[:, 0] + x[0] == pytest.approx(offsets[:, 0], abs=1e-3)
        assert between.half_range[0] == pytest.approx(0.5 * np.ptp(offsets), rel=1e-3)
        assert between.by_range[0] == (count < 4) and between.told[0]


def test_takes_count_by_what_they_see():
    """Four good takes and four that see a hundredth of it, which scatter by their noise: the good ones decide."""
    offsets = np.array([[0.1], [-0.1], [0.05], [-0.05], [3.0], [-3.0], [2.0], [-2.0]])
    slopes = [np.ones((50, 1))] * 4 + [0.01 * np.ones((50, 1))] * 4
    _, rows, meats = rows_of(slopes, offsets, noise=0.1)
    between = between_takes(rows, meats, np.zeros(1, bool))
    assert between.number[0] == 4
    assert 0.003 < between.variance[0] < 0.02  # theirs is 0.0083
    slopes = [np.ones((50, 2)) * [1.0, sign] for sign in (1.0, -1.0)]  # a + b, and a - b
    _, rows, meats = rows_of(slopes, np.array([[0.1, 0.0], [-0.1, 0.0]]))
    assert not between_takes(rows, meats, np.zeros(2, bool)).told.any()


def test_intervals_hold_the_truth():
    """Six takes of a pendulum whose damping differs by 10 %: `python -m scripts.takes_coverage` has more."""
    found = fits(Takes(6), (0.01, 0.1), 80)
    inside = np.array([np.abs(errors) <= item.half_widths[:2] for errors, item in found])
    assert (inside.mean(axis=0) >= 0.88).all()
    freedom = np.array([item.freedom[:2] for _, item in found])
    assert (freedom >= 2.0).all() and np.median(freedom) == pytest.approx(5.0, abs=1.0)
    few = fits(Takes(2), (0.01, 0.1), 20)
    widest = [item.half_widths[0] / item.standard_errors[0] for _, item in few]
    assert max(widest) < 2.1 < stdtrit(1.0, 0.975)


def test_a_number_that_changes_from_take_to_take_is_known():
    """Ten bars apart: that is no number that one take cannot tell, but one that takes disagree about."""
    slopes = [np.ones((100, 1))] * 2
    _, rows, meats = rows_of(slopes, np.array([[-0.6], [0.4]]), noise=0.7)
    between = between_takes(rows, meats, np.zeros(1, bool))
    assert between.bars_apart[0] == pytest.approx(1.0 / (0.07 * np.sqrt(2)), rel=0.3)
