"""Signals: weights, rates, and the values at their times."""

import numpy as np
import pytest
from support.concrete import concrete

from add.equations.signals import BSplineSignal, Constant, Ramp, Signal, Sine, Spline, Table

TIMES = np.array([0.1, 0.25, 0.3, 0.7])
SIGNALS: dict[str, tuple[Signal, int]] = {  # with the rows whose weights sum to one
    "constant": (Constant(), 1),
    "table": (Table(TIMES), 4),
    "table of one": (Table(TIMES[:1]), 1),
    "spline": (Spline(TIMES), 4),
    "spline of two": (Spline(TIMES[:2]), 2),
    "sine": (Sine(1.7, 0.4), 1),
    "ramp": (Ramp(), 0),
    "control of degree 0": (BSplineSignal(0, 2, 0.1, 0.7), 2),
    "control of degree 1": (BSplineSignal(1, 3, 0.1, 0.7), 3),
    "control of degree 3": (BSplineSignal(3, 7, 0.1, 0.7), 7),
}


def test_every_signal_has_a_case() -> None:
    assert concrete(Signal) == {type(signal) for signal, _ in SIGNALS.values()}


@pytest.mark.parametrize("name", SIGNALS)
def test_signal(name: str) -> None:
    signal, n_sum = SIGNALS[name]
    for t in (-1.0, 0.0, 0.12, 0.2501, 0.28, 0.5, 0.69, 0.71, 2.0):
        weights, rates = signal.weights(t), signal.rates(t)
        assert weights.shape == rates.shape == (signal.n_rows,)
        h = 1e-5
        np.testing.assert_allclose(rates, (signal.weights(t + h) - signal.weights(t - h)) / (2 * h), atol=1e-6)
        assert weights[:n_sum].sum() == pytest.approx(float(n_sum > 0), abs=1e-14)
        assert rates[:n_sum].sum() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("name", SIGNALS)
def test_signal_at_its_times(name: str) -> None:
    """Rows are the values at their times; at a kink the rate is that from the right; ends are held."""
    signal, _ = SIGNALS[name]
    times = getattr(signal, "times", TIMES)
    for k, t in enumerate(times):
        if hasattr(signal, "times"):
            np.testing.assert_allclose(signal.weights(t), np.eye(times.size)[k], atol=1e-14)
        h = 1e-7
        right = (signal.weights(t + h) - signal.weights(t)) / h
        np.testing.assert_allclose(signal.rates(t), right, atol=1e-4)
    if hasattr(signal, "times"):
        assert np.array_equal(signal.weights(-9.0), signal.weights(times[0]))
        assert np.array_equal(signal.weights(9.0), signal.weights(times[-1]))
        assert not signal.rates(times[-1]).any() and not signal.rates(times[0] - 1e-9).any()


def test_spline_keeps_cubics_smooth() -> None:
    """Value, slope and curvature are continuous at inner times, curvature zero at the ends."""
    spline, h = Spline(TIMES), 1e-4

    def curvature(t: float) -> np.ndarray:
        return (spline.rates(t + h) - spline.rates(t - h)) / (2 * h)

    for t in TIMES[1:-1]:
        np.testing.assert_allclose(curvature(t - 2 * h), curvature(t + 2 * h), atol=5.0)
    assert np.abs(curvature(TIMES[0] + 1.1 * h)).max() < 1.0 < np.abs(curvature(0.2)).max()
