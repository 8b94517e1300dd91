"""A refit with slopes of another discretisation, on residuals that are known in closed form."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from add.inverse import refit as module
from add.inverse.fit_rows import FitRows
from add.inverse.refit import NEAR, refit

GENERATOR = np.random.default_rng(4)
TRUE = GENERATOR.normal(size=(40, 3))
#: Slopes of the coarser discretisation: some of them off by a half, with numbers of very different units.
UNITS = np.array([1.0, 1e-3, 30.0])
COARSE = TRUE * np.array([0.5, 1.3, 0.8]) + 0.1 * GENERATOR.normal(size=(40, 3))
NOISE = 1e-3 * GENERATOR.normal(size=40)
LIMIT = np.array([0.4, -0.3, 0.2])


def residuals(x):
    """Return residuals that are slightly curved, with their minimum near ``LIMIT``."""
    away = x / UNITS - LIMIT
    return TRUE @ away + 0.05 * (TRUE @ away) ** 2 + NOISE


@pytest.fixture
def counted(monkeypatch):
    points = []
    monkeypatch.setattr(module, "_residuals", lambda _, x, __: points.append(x) or residuals(x))
    return points


def problem():
    bounds = (np.full(3, -np.inf), np.full(3, np.inf))
    none = np.zeros(0), sp.csr_array((0, 3))
    return SimpleNamespace(n=3, bounds=bounds, physical_bounds=bounds, prior_rows=lambda _: none, values=lambda x: x)


def rows():
    number = np.arange(40)
    return [FitRows("a", number, np.zeros(40, int), (), residuals(np.zeros(3)), COARSE / UNITS, 0.0)]


def test_a_refit_comes_near_its_minimum_in_a_few_runs(counted):
    """Slopes that are off by a half would not arrive in twelve runs: each run corrects them."""
    found = refit(problem(), np.zeros(3), rows())
    assert found.converged and found.runs == len(counted) <= 5
    off = np.linalg.norm(TRUE @ (found.x / UNITS - LIMIT)) / np.linalg.norm(TRUE @ LIMIT)
    assert off < NEAR


def test_a_step_that_is_refused_corrects_the_slopes(counted):
    """Slopes a third of the true ones make a step thrice too long, which is refused; the next one is not."""
    short = [FitRows("a", np.arange(40), np.zeros(40, int), (), NOISE, 0.3 * TRUE / UNITS, 0.0)]
    found = refit(problem(), np.zeros(3), short)
    assert np.sum(residuals(counted[1]) ** 2) > np.sum(residuals(counted[0]) ** 2)
    assert found.converged and np.linalg.norm(found.x / UNITS - LIMIT) < NEAR * np.linalg.norm(LIMIT)


def test_corrected_slopes_explain_the_step_and_nothing_else():
    step = np.array([0.2, -1e-3, 3.0])
    change = residuals(step) - residuals(np.zeros(3))
    before = COARSE / UNITS
    after = module._corrected(before, step, change)
    np.testing.assert_allclose(after @ step, change, rtol=1e-12)
    across = np.linalg.svd((before.T @ before @ step)[None])[2][1:].T
    np.testing.assert_allclose(after @ across, before @ across, atol=1e-9)
    np.testing.assert_array_equal(module._corrected(before, 0.0 * step, change), before)
