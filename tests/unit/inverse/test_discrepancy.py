"""The discrepancy of synthetic residuals: size, correlation time and noise of a process that is known."""

import numpy as np
import pytest

from add.inverse.sampling import Discrepancy, discrepancy

STEP, TAU, NOISE = 0.01, 0.08, 0.3


def process(generator, n, series, size):
    """An Ornstein-Uhlenbeck process of size 1 times ``size`` (n,), with white noise."""
    keep = np.exp(-STEP / TAU)
    out = np.zeros((n, series))
    out[0] = generator.normal(size=series)
    for k in range(1, n):
        out[k] = keep * out[k - 1] + np.sqrt(1 - keep**2) * generator.normal(size=series)
    return size[:, None] * out + NOISE * generator.normal(size=(n, series))


def at(found, times):
    """The size beside samples that spread by nothing."""
    times = np.array(times)
    return found.beyond(np.zeros(times.size), times)


def test_size_time_and_noise_of_a_process():
    generator = np.random.default_rng(1)
    times = STEP * np.arange(200)
    takes = [(times, process(generator, 200, 30, np.full(200, 2.0))) for _ in range(4)]
    takes[0][1][40:50, 3] = np.nan
    found = discrepancy(takes)
    assert found.correlation_time == pytest.approx(TAU, rel=0.25)
    assert found.noise == pytest.approx(NOISE, rel=0.35)
    assert found.sizes == pytest.approx(2.0, rel=0.15) and found.takes == 4


def test_a_size_that_grows_and_the_last_one_behind_the_end():
    generator = np.random.default_rng(2)
    times = STEP * np.arange(200)
    found = discrepancy([(times, process(generator, 200, 60, 0.5 + 2.0 * times)) for _ in range(4)])
    assert at(found, times)[[30, 100, 170]] == pytest.approx(0.5 + 2.0 * times[[30, 100, 170]], rel=0.2)
    assert at(found, [9.0]) == pytest.approx(found.sizes[-1])


def test_white_residuals_are_noise():
    generator = np.random.default_rng(3)
    found = discrepancy([(STEP * np.arange(300), generator.normal(size=(300, 20)))])
    assert found.noise == pytest.approx(1.0, rel=0.1) and (found.sizes**2 < 0.4).all()
    assert np.hypot(found.sizes, found.noise) == pytest.approx(1.0, rel=0.1)


def test_a_quiet_beginning_stays_quiet():
    """Noise is there at all times: it is no larger than what is left over where that is least."""
    generator = np.random.default_rng(4)
    times = STEP * np.arange(200)
    rough = process(generator, 200, 60, np.full(200, 2.0))
    found = discrepancy([(times, np.where(times[:, None] < 0.5, 0.01 * generator.normal(size=rough.shape), rough))])
    assert found.noise == pytest.approx(0.01, rel=0.05)
    assert at(found, [0.0, 0.2, 1.5]) == pytest.approx([0.0, 0.0, 2.0], abs=0.3)


def test_what_samples_spread_counts_once():
    """Behind what a start has seen, the misfit of predicted takes holds the errors that samples have, too."""
    spread, times = np.array([2.0, 2.0, 5.0]), np.array([-0.1, 0.5, 0.5])
    for predicted, sizes in ((True, [3.0, np.sqrt(5.0), 0.0]), (False, [3.0, 3.0, 3.0])):
        found = Discrepancy(np.array([0.0]), np.array([3.0]), 0.1, 0.0, 4, predicted)
        assert found.beyond(spread, times) == pytest.approx(sizes)


def test_stretches_begin_where_the_start_has_seen_all():
    """Residuals that are small before and large behind, by the time since then: no stretch has both."""
    times = STEP * np.arange(-83, 217)
    rough = np.random.default_rng(5).normal(size=(times.size, 20)) * np.where(times <= 0.0, 0.1, 2.0)[:, None]
    found = discrepancy([(times, rough)], predicted=True)
    whole = np.hypot(found.sizes, found.noise)
    assert whole[found.times < 0.0] == pytest.approx(0.1, rel=0.1)
    assert whole[found.times > 0.0] == pytest.approx(2.0, rel=0.1)
