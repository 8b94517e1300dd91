"""Signals: controls against SciPy's B-splines, rates against differences, rows that act against the weights."""

import numpy as np
import pytest
from scipy.interpolate import BSpline

from add.equations.signals import BSplineSignal, Constant, Ramp, Sine, Spline, Table

TIMES = np.array([0.1, 0.35, 0.4, 1.0])
SIGNALS = {
    "constant": Constant(),
    "table": Table(TIMES),
    "spline": Spline(TIMES),
    "ramp": Ramp(),
    "sine": Sine(2.0, 0.3),
    "steps": BSplineSignal(0, 7, 0.1, 0.8),
    "hats": BSplineSignal(1, 7, 0.1, 0.8),
    "hats-few": BSplineSignal(1, 2, 0.1, 0.8),
    "cubic": BSplineSignal(3, 9, 0.1, 0.8),
    "cubic-few": BSplineSignal(3, 4, 0.1, 0.8),
}
CONTROLS = {key: signal for key, signal in SIGNALS.items() if isinstance(signal, BSplineSignal)}


def times(rng, n=50):
    return np.concatenate([rng.uniform(-0.2, 1.2, n), [0.1, 0.8, 0.45, 0.0, 2.0]])


@pytest.mark.parametrize("name", SIGNALS)
def test_acting_rows_and_rates(name, rng):
    signal = SIGNALS[name]
    for t in times(rng):
        weights = signal.weights(t)
        assert weights.shape == signal.rates(t).shape == (signal.n_rows,)
        rows, acting = signal.acting(t)
        inside = np.zeros(signal.n_rows, dtype=bool)
        inside[rows] = True
        assert np.array_equal(weights[inside], acting)
        outside = np.flatnonzero(~inside)
        assert not weights[outside].any()
        if isinstance(signal, BSplineSignal):
            assert not signal.rates(t)[outside].any()
    for t in rng.uniform(-0.2, 1.2, 50):
        slope = (signal.weights(t + 1e-6) - signal.weights(t - 1e-6)) / 2e-6
        assert signal.rates(t) == pytest.approx(slope, abs=1e-4)


@pytest.mark.parametrize("name", CONTROLS)
def test_control_is_the_b_spline(name, rng):
    signal = CONTROLS[name]
    p = signal.degree
    inner = np.linspace(signal.start, signal.end, signal.n_intervals + 1)
    knots = np.concatenate([np.full(p, signal.start), inner, np.full(p, signal.end)])
    basis = BSpline(knots, np.eye(signal.n), p)
    for t in rng.uniform(signal.start, signal.end, 60):
        assert signal.weights(t) == pytest.approx(basis(t), abs=1e-13)
        assert signal.rates(t) == pytest.approx(basis.derivative()(t) if p else 0.0, abs=1e-10)
        assert signal.acting(t)[1].size == p + 1
    for t in times(rng):
        assert signal.weights(t).sum() == pytest.approx(1.0, rel=1e-14)
        assert (signal.weights(t) >= 0.0).all()
    # Held outside, at the first and the last row.
    for t, row in ((-3.0, 0), (signal.start, 0), (signal.end, -1), (9.0, -1)):
        assert signal.weights(t)[row] == pytest.approx(1.0, rel=1e-14)
    assert not signal.rates(-3.0).any() and not signal.rates(9.0).any()


def test_constant_intervals_hold_their_end():
    """One row a step: the step that ends at (k + 1) dt is driven by row k, whatever the rounding of k dt."""
    dt, n = 0.01, 300
    signal = BSplineSignal(0, n, 0.0, n * dt)
    assert [signal.acting((k + 1) * dt)[0].start for k in range(n)] == list(range(n))


@pytest.mark.parametrize("arguments", [(2, 5, 0, 1), (3, 3, 0, 1), (1, 1, 0, 1), (0, 3, 1, 1)])
def test_impossible_controls(arguments):
    with pytest.raises(ValueError, match="control"):
        BSplineSignal(*arguments)
