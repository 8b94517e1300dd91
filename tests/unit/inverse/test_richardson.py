"""Richardson's extrapolation of sequences whose limit is known."""

import numpy as np
import pytest

from add.inverse.refit import extrapolated


@pytest.mark.parametrize("order", [1.0, 2.0, 3.0])
def test_limit_of_a_power(order):
    """v(h) = 5 + 3 h^p: limit 5, order p, error of the first 3."""
    values = [5 + 3 * h**order for h in (1.0, 0.5, 0.25)]
    found = extrapolated(values, 2.0, 1.0)
    assert found.converges
    assert found.order == pytest.approx(order, rel=1e-9)
    assert found.limit == pytest.approx(5.0, rel=1e-9)
    assert found.error == pytest.approx(3.0, rel=1e-9)


def test_other_ratio():
    values = [5 - h**2 for h in (1.0, 1 / 1.5, 1 / 1.5**2)]
    assert extrapolated(values, 1.5, 1.0).error == pytest.approx(1.0, rel=1e-9)


def test_two_values_take_the_order_for_granted():
    found = extrapolated([4.0, 4.5], 2.0, 1.0)
    assert (found.order, found.limit, found.error) == (1.0, 5.0, 1.0)
    assert extrapolated([4.0, 4.5], 2.0, 2.0).error == pytest.approx(4 / 3 * 0.5)


@pytest.mark.parametrize("values", [[1.0, 1.1, 1.3], [1.0, 1.1, 1.05], [1.0, 1.1, 1.0]])
def test_changes_that_do_not_fall_or_swing_have_no_limit(values):
    """The error is then the largest change and the last one, and no order is claimed."""
    found = extrapolated(values, 2.0, 1.0)
    assert not found.converges
    assert found.order is None and found.limit is None
    assert found.error == pytest.approx(max(np.abs(np.array(values) - values[0])) + abs(values[-1] - values[-2]))


def test_round_off_of_fits_is_no_divergence():
    assert extrapolated([1.0, 1.1, 1.1001, 1.0999], 2.0, 1.0, smallest=1e-3).converges


def test_one_value_has_no_change():
    with pytest.raises(ValueError, match="two values"):
        extrapolated([1.0], 2.0, 1.0)
