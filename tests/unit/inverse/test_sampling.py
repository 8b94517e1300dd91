"""Draws of uncertain numbers: moments on the scales of a fit, bounds, profiles, replicates."""

import numpy as np
import pytest
from scipy.special import ndtri

from add.inverse.maps import Linear, Log, Softplus
from add.inverse.sampling import Uncertain, draw, scale_for

N = 20000


def uncertain(values, transforms, covariance, **given):
    n = len(values)
    rest = {
        "lower": np.full(n, -np.inf), "upper": np.full(n, np.inf), "shifts": np.zeros((0, n)),
        "ends": np.full((n, 2), np.nan), "replicates": np.zeros((0, n)),
    } | given  # fmt: skip
    return Uncertain(np.array(values, dtype=float), transforms, covariance=np.array(covariance, dtype=float), **rest)


def test_moments_on_the_scale_of_each_number():
    """ln p and softplus^-1(p) are normal with sd_p / slope, and their correlation is the covariance's."""
    sizes, rho = np.array([0.3, 0.5, 0.8]), 0.6
    covariance = np.outer(sizes, sizes) * (np.eye(3) + rho * (1 - np.eye(3)))
    part = uncertain([5.0, 1.0, 2.0], (Linear(), Log(), Softplus()), covariance)
    found = draw([part], N, 3)
    y = part.scale(found.values)
    slope = np.array([1.0, 1.0, 1 - np.exp(-2.0)])  # p for log; logistic(y) = 1 - exp(-p) for softplus
    assert y.mean(axis=0) == pytest.approx(part.scale(part.values), abs=0.02)
    assert y.std(axis=0) == pytest.approx(sizes / slope, rel=0.02)
    assert np.corrcoef(y.T)[np.triu_indices(3, 1)] == pytest.approx(rho, abs=0.02)
    assert (found.values[:, 1:] > 0.0).all() and not found.outside.any()
    assert found.moves.std(axis=0) == pytest.approx(sizes, rel=0.02)


def test_shifts_move_all_numbers_by_one_factor():
    part = uncertain([1.0, 2.0], (Linear(), Linear()), np.zeros((2, 2)), shifts=np.array([[0.1, -0.3]]))
    moved = draw([part], 500, 0).values - [1.0, 2.0]
    assert moved[:, 1] == pytest.approx(-3.0 * moved[:, 0])
    assert part.linear == pytest.approx(np.array([[0.01, -0.03], [-0.03, 0.09]]))


def test_what_leaves_the_bounds_is_held_at_them():
    """A normal about 0.1, and zero where it is below: its mean is 0.1 cdf(1/2) + 0.2 pdf(1/2)."""
    found = draw([uncertain([0.1], (Linear(),), [[0.04]], lower=np.zeros(1))], 2000, 1)
    assert found.values.min() >= 0.0
    assert found.outside[0] == pytest.approx(0.3085, abs=0.03)  # P(z < -1/2)
    assert (found.values == 0.0).mean() == pytest.approx(found.outside[0])
    assert found.values.mean() == pytest.approx(0.1 * 0.69146 + 0.2 * 0.35207, rel=0.05)


@pytest.mark.parametrize("together", [0.01, 0.5])
def test_numbers_that_balance_each_other_stay_balanced(together):
    """p_1 + p_2 = 1 of positive numbers that are +- 3 each. Of draws in the quadrant alone the sum would be 1.25."""
    along, across = np.array([1.0, -1.0]) / np.sqrt(2), np.array([1.0, 1.0]) / np.sqrt(2)
    covariance = 18.0 * np.outer(along, along) + 0.5 * together**2 * np.outer(across, across)
    found = draw([uncertain([0.5, 0.5], (Linear(), Linear()), covariance, lower=np.zeros(2))], 400, 1)
    total = found.values.sum(axis=1)
    assert (found.values >= 0.0).all() and 0.5 < (found.values < 1e-9).any(axis=1).mean() < 1.0
    assert total.mean() == pytest.approx(1.0, abs=0.2 * together + 1e-3)
    assert total.std() == pytest.approx(together, rel=0.25)


def test_bounds_hold_what_never_lies_within_them():
    found = draw([uncertain([0.0], (Linear(),), [[0.0]], lower=np.array([0.5]))], 3, 1)
    assert (found.values == 0.5).all()


def test_a_profile_has_its_own_size_on_each_side():
    """95 % ends at 1 and 9 about 3, also of a number without a standard error."""
    for variance in (0.25, 0.0):
        part = uncertain([3.0], (Log(),), [[variance]], ends=np.array([[1.0, 9.0]]))
        values = draw([part], N, 2).values[:, 0]
        assert np.quantile(values, [0.025, 0.5, 0.975]) == pytest.approx([1.0, 3.0, 9.0], rel=0.06)
    skew = uncertain([0.0], (Linear(),), [[1.0]], ends=np.array([[0.0, 1.96]]))
    values = draw([skew], N, 2).values[:, 0]
    assert values.min() == 0.0 and np.quantile(values, 0.975) == pytest.approx(float(ndtri(0.975)), rel=0.05)


def test_replicates_are_drawn_together():
    kept = np.array([[1.0, 10.0, np.nan], [2.0, 20.0, np.nan]])
    part = uncertain([1.5, 15.0, 7.0], (Linear(),) * 3, np.zeros((3, 3)), replicates=kept)
    values = draw([part], 300, 5).values
    assert values[:, 1] == pytest.approx(10.0 * values[:, 0]) and set(values[:, 0]) == {1.0, 2.0}
    assert (values[:, 2] == 7.0).all()


def test_fits_are_independent_and_a_seed_repeats():
    parts = [uncertain([0.0], (Linear(),), [[1.0]]), uncertain(np.zeros(0), (), np.zeros((0, 0))),
             uncertain([0.0, 1.0], (Linear(), Linear()), np.eye(2))]  # fmt: skip
    found = draw(parts, N, 9)
    assert found.values.shape == (N, 3) and abs(np.corrcoef(found.values.T)[0, 1]) < 0.03
    assert (draw(parts, N, 9).values == found.values).all() and (draw(parts, N, 8).values != found.values).any()


def test_a_number_smaller_than_its_error_is_drawn_in_its_own_unit():
    """As a logarithm 1 +- 5 would be drawn up to e^10."""
    assert isinstance(scale_for(Log(), 1.0, 5.0), Linear) and isinstance(scale_for(Log(), 1.0, 0.5), Log)
