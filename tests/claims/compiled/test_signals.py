"""Signals at many times at once."""

import numpy as np
import pytest

from add.compiled.structure import windows
from add.equations.signals import BSplineSignal, Constant, Signal, Sine, Spline, Table

TIMES = np.array([-0.1, 0.0, 0.013, 0.1, 0.1 + 1e-12, 0.25, 0.3, 0.4, 0.999, 1.0, 1.2])

SIGNALS = {
    "constant": Constant(),
    "table": Table(np.array([0.0, 0.1, 0.3, 1.0])),
    "one time": Table(np.array([0.2])),
    "spline": Spline(np.array([0.0, 0.1, 0.3, 1.0])),
    "sine": Sine(3.0, 0.2),
    **{f"control {degree}": BSplineSignal(degree, 9, 0.0, 1.0) for degree in (0, 1, 3)},
}


@pytest.mark.parametrize("name", SIGNALS)
def test_windows_are_the_weights(name: str) -> None:
    signal: Signal = SIGNALS[name]
    first, weights = signal.windows(TIMES)
    for k, t in enumerate(TIMES):
        whole = np.zeros(signal.n_rows)
        whole[first[k] : first[k] + weights.shape[1]] = weights[k]
        assert np.allclose(whole, signal.weights(float(t)), rtol=0.0, atol=1e-15), t


def test_all_signals_lie_side_by_side() -> None:
    found = windows(list(SIGNALS.values()), TIMES)
    assert found.table.shape == (TIMES.size, len(SIGNALS), 3)
    assert found.weights.shape[1] == found.table[0, -1, 1] + found.table[0, -1, 2]
