"""Residuals of clouds that hang together over the surface and in time, and how many they count for."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from add.inverse.between_takes import cloud_correlation
from add.inverse.fit_rows import FitRows

FRAMES, POINTS, SHARE, LENGTH, KEPT = 30, 40, 0.7, 0.03, 0.6


def rows_of(residual, places, slopes):
    frame = np.repeat(np.arange(FRAMES), POINTS)
    series = np.tile(np.arange(POINTS), FRAMES)
    return FitRows("take", frame, series, (), residual, slopes, float(residual @ residual), places)


@pytest.fixture(scope="module")
def drawn():
    """Places on half a sphere, slopes of a shift, and six draws with a known covariance."""
    rng = np.random.default_rng(5)
    places = rng.normal(size=(FRAMES * POINTS, 3))
    places *= 0.05 / np.linalg.norm(places, axis=1)[:, None]
    places[:, 1] = np.abs(places[:, 1])
    frame = np.repeat(np.arange(FRAMES), POINTS)
    covariance = SHARE * np.exp(-cdist(places, places) / LENGTH) * KEPT ** np.abs(frame[:, None] - frame)
    covariance += (1.0 - SHARE) * np.eye(len(places))
    draws = np.linalg.cholesky(covariance) @ rng.normal(size=(len(places), 6))
    return places, places / 0.05, covariance, draws.T


def test_share_length_and_time_are_found(drawn):
    places, slopes, covariance, draws = drawn
    found = [cloud_correlation(rows_of(residual, places, slopes)) for residual in draws[:6]]
    assert not any(item.is_white for item in found)
    assert np.median([item.share for item in found]) == pytest.approx(SHARE, abs=0.1)
    assert np.median([item.length for item in found]) == pytest.approx(LENGTH, rel=0.3)
    assert np.median([item.time for item in found]) == pytest.approx((1 + KEPT) / (1 - KEPT), rel=0.3)
    exact = len(places) ** 2 / covariance.sum()
    assert np.median([item.effective for item in found]) == pytest.approx(exact, rel=0.5)


def test_bound_holds_the_covariance_of_what_a_fit_sees(drawn):
    """The bars from the bound are near those of the known covariance."""
    places, slopes, covariance, draws = drawn
    exact = slopes.T @ covariance @ slopes
    bounds = [cloud_correlation(rows).meat(rows) for rows in (rows_of(r, places, slopes) for r in draws[:6])]
    sizes = np.sqrt(np.median([np.diag(bound) for bound in bounds], axis=0) / np.diag(exact))
    assert (sizes > 0.85).all() and (sizes < 2.0).all()
    white = np.sqrt(np.diag(slopes.T @ slopes) / np.diag(exact))
    assert white.max() < 0.5, "as independent points the bar would be less than half"


def test_independent_points_stay_white(drawn):
    places, slopes, *_ = drawn
    rng = np.random.default_rng(8)
    found = [cloud_correlation(rows_of(rng.normal(size=len(places)), places, slopes)) for _ in range(12)]
    assert sum(item.is_white for item in found) >= 9
    assert all(item.effective == len(places) for item in found if item.is_white)


def test_one_point_a_frame_says_nothing(drawn):
    """No two points of a frame are there to be compared."""
    places, slopes, *_ = drawn
    rows = FitRows("take", np.arange(9), np.zeros(9, int), (), np.ones(9), slopes[:9], 9.0, places[:9])
    assert not cloud_correlation(rows).tested


def test_one_place_says_nothing(drawn):
    rng = np.random.default_rng(9)
    rows = rows_of(rng.normal(size=FRAMES * POINTS), np.zeros((FRAMES * POINTS, 3)), np.ones((FRAMES * POINTS, 1)))
    assert not cloud_correlation(rows).tested
