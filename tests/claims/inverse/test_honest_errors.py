"""Error bars that know of correlated residuals, takes and bounds; free flight, so that the answers are known."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import stdtrit

from add.inverse.fit_rows import FitRows, correlation, of_frames
from add.inverse.intervals import profile
from add.inverse.refit import bootstrap
from add.inverse.uncertainty import uncertainty, uncertainty_of_rows, weak_directions, with_discretisation
from add.mocap import Recording, write_csv
from add.scene import scene_from_dict

TIMES = np.arange(120) / 240.0
VELOCITY = 0.8


def rows_of(values, slopes=None):
    """(frames, series) as the rows of a fit of one parameter."""
    frame, series = (index.ravel() for index in np.indices(values.shape))
    slopes = np.ones((values.size, 1)) if slopes is None else slopes
    return FitRows("take", frame, series, ("a", "b"), values.ravel(), slopes, float((values**2).sum()))


def ar1(rng, n, series, phi):
    """Stationary noise of unit variance whose correlation falls by phi a frame: tau = (1 + phi) / (1 - phi)."""
    out = np.zeros((n, series))
    out[0] = rng.normal(size=series)
    for k in range(1, n):
        out[k] = phi * out[k - 1] + np.sqrt(1 - phi**2) * rng.normal(size=series)
    return out


def scene(folder, takes, **sections):
    """A particle in free flight whose velocity is fitted to takes, one file each: estimate = sum t y / sum t^2."""
    recordings = []
    for k, noise in enumerate(takes):
        places = np.zeros((TIMES.size, 1, 3)) + noise[:, None]
        places[:, 0, 0] += VELOCITY * TIMES
        seen = np.ones((TIMES.size, 1), dtype=bool)
        write_csv(folder / f"r{k}.csv", Recording(("m",), TIMES, places, seen, ""))
        recordings.append({"file": f"r{k}.csv", "markers": {"m": "m"}})
    raw = {
        "schema": "add-scene/1",
        "time": {"dt": 0.05, "duration": 0.5},
        "gravity": [0, 0, 0],
        "bodies": {"p": {"type": "particles", "mesh": {"points": [[0, 0, 0]]}, "mass": 1.0, "velocity": [1, 0, 0]}},
        "markers": {"m": {"body": "p", "nodes": [0]}},
        "recording": recordings[0],
        "objective": [{"type": "markers"}],
        "parameters": [{"path": "bodies.p.velocity", "components": [0]}],
        "optimizer": {"method": "gauss-newton"},
    }
    if len(recordings) > 1:
        raw["experiments"] = [{"name": f"take {k}", "recording": item} for k, item in enumerate(recordings)]
    return scene_from_dict({**raw, **sections}, folder=folder)


def fitted(folder, takes, **sections):
    problem = scene(folder, takes, **sections).inverse_problem()
    return problem, problem.optimize().x


# --- correlated residuals --------------------------------------------------------------------------------------------


def test_white_noise_is_white(rng):
    """Of 200 records of white noise about one in twenty is taken for correlated, and their tau stays near one."""
    found = [correlation(rows_of(rng.normal(size=(100, 6)))) for _ in range(200)]
    assert 0 < sum(not item.is_white for item in found) < 25
    assert max(item.effective for item in found) == 600
    assert np.mean([item.time for item in found]) < 1.2


@pytest.mark.parametrize("phi", [0.6, 0.9])
def test_integrated_time_of_a_known_process(rng, phi):
    """(1 + phi) / (1 - phi) frames count for one."""
    found = [correlation(rows_of(ar1(rng, 1500, 6, phi))) for _ in range(10)]
    assert not any(item.is_white for item in found)
    assert np.mean([item.time for item in found]) == pytest.approx((1 + phi) / (1 - phi), rel=0.2)
    assert np.mean([item.effective for item in found]) == pytest.approx(9000 * (1 - phi) / (1 + phi), rel=0.25)
    assert found[0].per_marker == pytest.approx(np.full(2, (1 + phi) / (1 - phi)), rel=0.5)


def test_series_that_move_together_count_once(rng):
    """Six copies of one correlated series are worth one."""
    found = correlation(rows_of(np.repeat(ar1(rng, 1500, 1, 0.8), 6, axis=1)))
    assert found.effective == pytest.approx(1500 / 9, rel=0.35)


def test_errors_of_correlated_noise_hold_the_scatter(tmp_path):
    """Where noise alone is too sure by a factor of two or more, the estimates scatter as the bars say, or less."""
    rng = np.random.default_rng(3)
    noise, whole, inside = [], [], []
    for _ in range(40):
        problem, x = fitted(tmp_path, [1e-3 * ar1(rng, TIMES.size, 3, 0.85)])
        found = uncertainty(problem, x)
        error = problem.values(x)[0] - VELOCITY
        noise.append(error / found.noise[0])
        whole.append(error / found.standard_errors[0])
        inside.append(abs(error) <= found.half_widths[0])
    assert np.std(noise) > 2.0
    assert 0.5 < np.std(whole) < 1.4
    assert np.mean(inside) >= 0.9


def frames_of_noise(rng, kind):
    """Noise (80, 3) of a frame's coordinates that is not one of equal size in each, and their slopes by one number."""
    times, noise = np.linspace(0.0, 1.0, 80), rng.normal(size=(80, 3))
    slopes = np.zeros((80, 3))
    slopes[:, 0] = times
    if kind == "one axis":
        noise[:, 0] *= 5.0
    elif kind == "shared by markers":
        noise[:], slopes[:] = noise[:, :1], slopes[:, :1]
    elif kind == "an angle":  # of a direction, whose three coordinates are off by one angle
        across = np.stack([np.cos(9.0 * times), np.sin(9.0 * times), 0.0 * times], axis=1)
        noise, slopes = noise[:, :1] * across, times[:, None] * across
    elif kind == "grows":
        noise *= times[:, None] ** 3
    elif kind == "first frame":
        noise -= rng.normal(size=3)
    return noise, slopes


@pytest.mark.parametrize("kind", ["white", "one axis", "shared by markers", "an angle", "grows", "first frame"])
def test_errors_of_noise_that_is_not_of_one_size(tmp_path, rng, kind):
    """Estimates scatter as the bars say, where those of equal, independent coordinates are too small by half."""
    problem, x = fitted(tmp_path, [1e-3 * rng.normal(size=(TIMES.size, 3))])
    errors, bars, inside = [], [], []
    for _ in range(150):
        noise, slopes = frames_of_noise(rng, kind)
        errors.append(float((slopes * noise).sum() / (slopes**2).sum()))
        rows = replace(rows_of(noise - errors[-1] * slopes, slopes.reshape(-1, 1)), from_first=kind == "first frame")
        found = uncertainty_of_rows(problem, x, [rows], 1.0)
        bars.append(found.standard_errors[0])
        inside.append(abs(errors[-1]) <= found.half_widths[0])
    assert 0.75 < np.std(np.divide(errors, bars)) < 1.2
    assert np.mean(inside) >= 0.91
    if kind == "white":
        assert np.mean(bars) == pytest.approx((slopes**2).sum() ** -0.5, rel=0.08)


@pytest.mark.parametrize("loss", ["huber", "cauchy"])
def test_errors_of_robust_losses(tmp_path, loss):
    """Of samples of which a seventh is far off; bars from the bent residuals are 1.8 to 4 times as wide."""
    rng, objective = np.random.default_rng(6), [{"type": "markers", "loss": loss, "loss_scale": 3e-3}]
    errors, inside = [], []
    for _ in range(12):
        noise = 1e-3 * rng.normal(size=(TIMES.size, 3))
        noise += (rng.random((TIMES.size, 1)) < 0.15) * rng.uniform(-0.1, 0.1, (TIMES.size, 3))
        numbers = [{"path": "bodies.p.velocity"}]
        problem, x = fitted(tmp_path, [noise], objective=objective, parameters=numbers)
        found = uncertainty(problem, x)
        off = problem.values(x) - [VELOCITY, 0.0, 0.0]
        errors.append(off / found.standard_errors)
        inside.append(np.abs(off) <= found.half_widths)
    assert 0.75 < np.std(errors) < 1.3
    assert np.mean(inside) >= 0.9


@pytest.mark.parametrize("frames", [80, 6])
def test_errors_of_a_number_that_a_noisy_axis_does_not_concern(tmp_path, rng, frames):
    """Two numbers, one seen along x with five times the noise: each bar is that of its own axis, also of few frames."""
    one = {"path": "bodies.p.velocity", "components": [0, 1]}
    problem, x = fitted(tmp_path, [1e-3 * rng.normal(size=(TIMES.size, 3))], parameters=[one])
    slopes = np.zeros((frames, 3, 2))
    slopes[:, 0, 0] = slopes[:, 1, 1] = np.linspace(0.1, 1.0, frames)
    slopes = slopes.reshape(-1, 2)
    errors, bars, inside = [], [], []
    for _ in range(200):
        noise = rng.normal(size=(frames, 3)) * np.array([5.0, 1.0, 1.0])
        errors.append(np.linalg.lstsq(slopes, noise.ravel())[0])
        rows = rows_of(noise - (slopes @ errors[-1]).reshape(frames, 3), slopes)
        found = uncertainty_of_rows(problem, x, [rows], 1.0)
        bars.append(found.standard_errors)
        inside.append(np.abs(errors[-1]) <= found.half_widths)
    assert np.sqrt(np.mean(np.square(bars), axis=0)) == pytest.approx(np.std(errors, axis=0), rel=0.25)
    assert (np.mean(inside, axis=0) >= 0.91).all()


def test_errors_by_frames_of_a_number_near_zero(rng):
    """A logarithm near zero has slopes of 1e-9: errors go with the unit, for those of all numbers."""
    slopes, units = rng.normal([0.0, 3.0], size=(240, 2)), np.array([1.0, 1e-9])
    rows = rows_of(rng.normal(size=(80, 3)), slopes)
    found = []
    for unit in (np.ones(2), units):
        scaled = replace(rows, slopes=slopes * unit)
        _, size, vt = np.linalg.svd(scaled.slopes, full_matrices=False)
        found.append(of_frames(scaled, vt.T / size))
    assert found[1] * np.outer(units, units) == pytest.approx(found[0], rel=1e-5)


# --- takes -----------------------------------------------------------------------------------------------------------


def test_spread_between_takes(tmp_path, rng):
    """Takes of equal length and one offset in velocity each: the jackknife is the standard error of their mean."""
    offsets = np.array([0.02, -0.03, 0.05, 0.01, -0.04])
    takes = [1e-4 * rng.normal(size=(TIMES.size, 3)) + np.outer(TIMES, [dv, 0, 0]) for dv in offsets]
    problem, x = fitted(tmp_path, takes)
    found = uncertainty(problem, x)
    expected = offsets.std(ddof=1) / np.sqrt(offsets.size)
    assert found.takes[0] == pytest.approx(expected, rel=0.01)
    assert found.standard_errors[0] >= found.takes[0] > 5 * found.noise[0] * 0.5
    drawn = bootstrap(problem, x, found, 400)
    assert drawn.over == "takes"
    half = 0.5 * np.diff(np.percentile(drawn.values[:, 0], [5, 95]))[0]  # four blocks too few: as wide as the bar
    assert half == pytest.approx(found.statistical[0] * stdtrit(found.freedom[0], 0.95), rel=0.01)
    assert drawn.lower[0] < VELOCITY + offsets.mean() < drawn.upper[0]


def test_draws_scatter_about_where_a_fit_ended(tmp_path, rng):
    """A fit that ends short of its minimum by ten errors: no draw carries on what it left undone."""
    offsets = np.array([0.02, -0.03, 0.05, 0.01, -0.04])
    takes = [1e-4 * rng.normal(size=(TIMES.size, 3)) + np.outer(TIMES, [dv, 0, 0]) for dv in offsets]
    problem, x = fitted(tmp_path, takes)
    there = bootstrap(problem, x, uncertainty(problem, x), 400)
    short = x + 10.0 * there.standard_errors
    drawn = bootstrap(problem, short, uncertainty(problem, short), 400)
    assert drawn.values.mean() == pytest.approx(problem.values(short)[0], abs=0.2 * there.standard_errors[0])
    assert drawn.standard_errors[0] >= there.standard_errors[0]


def test_a_single_take_has_no_spread(tmp_path, rng):
    problem, x = fitted(tmp_path, [1e-3 * rng.normal(size=(TIMES.size, 3))])
    found = uncertainty(problem, x)
    assert np.isnan(found.takes).all()
    drawn = bootstrap(problem, x, found, 400)
    assert drawn.over == "stretches of time"
    assert drawn.standard_errors[0] == pytest.approx(found.standard_errors[0], rel=0.35)


def test_discretisation_adds_in_squares(tmp_path, rng):
    problem, x = fitted(tmp_path, [1e-3 * rng.normal(size=(TIMES.size, 3))])
    found = uncertainty(problem, x)
    wider = with_discretisation(found, np.array([0.01]))
    assert wider.standard_errors[0] == pytest.approx(np.hypot(found.standard_errors[0], 0.01), rel=1e-12)
    assert wider.half_widths[0] == pytest.approx(np.hypot(found.half_widths[0], 0.02), rel=1e-12)


# --- bounds, profiles ------------------------------------------------------------------------------------------------


def test_profile_of_a_linear_problem(tmp_path):
    """The objective is a parabola: the profile's interval is Student's."""
    rng = np.random.default_rng(1)
    problem, x = fitted(tmp_path, [1e-3 * rng.normal(size=(TIMES.size, 3))])
    found = uncertainty(problem, x)
    assert found.correlations[0].is_white
    interval = profile(problem, x, 0, step=2 * found.standard_errors[0] / problem.design.scale[0],
                       freedom=found.freedom[0],
                       rise=found.rise[0])  # fmt: skip
    half = found.half_widths[0]
    value = problem.values(x)[0]
    assert interval.lower == pytest.approx(value - half, abs=0.05 * half)
    assert interval.upper == pytest.approx(value + half, abs=0.05 * half)
    assert not interval.lower_open and not interval.upper_open


def test_a_number_on_its_bound(tmp_path, rng):
    """It has no standard error; its interval ends at the bound on one side, and says so."""
    limited = [{"path": "bodies.p.velocity", "components": [0], "bounds": [VELOCITY + 2e-5, 2.0]}]
    problem, x = fitted(tmp_path, [1e-3 * rng.normal(size=(TIMES.size, 3))], parameters=limited)
    found = uncertainty(problem, x)
    assert found.at_bound.all()
    assert np.isnan(found.standard_errors).all()
    interval = profile(problem, x, 0, step=1e-3, freedom=300.0, rise=problem.value(x)[0] / 359)
    assert interval.lower == pytest.approx(VELOCITY + 2e-5, rel=1e-12)
    assert interval.lower_open and not interval.upper_open
    assert VELOCITY < interval.upper < VELOCITY + 2e-3


def test_profile_knows_of_curvature(tmp_path):
    """A softplus far below zero: the physical interval is lopsided, as the data, which see the value itself, say."""
    rng = np.random.default_rng(8)
    own = [{"path": "bodies.p.velocity", "components": [0], "transform": "log"}]
    noise = 0.4 * rng.normal(size=(TIMES.size, 3))
    problem, x = fitted(tmp_path, [noise], parameters=own)
    linear, y = fitted(tmp_path, [noise])
    found = uncertainty(linear, y)
    assert found.half_widths[0] > 0.1 * VELOCITY
    interval = profile(problem, x, 0, step=0.2, freedom=found.freedom[0], rise=found.rise[0])
    value = linear.values(y)[0]
    assert problem.values(x)[0] == pytest.approx(value, rel=1e-4)
    assert interval.lower == pytest.approx(value - found.half_widths[0], abs=0.06 * found.half_widths[0])
    assert interval.upper == pytest.approx(value + found.half_widths[0], abs=0.06 * found.half_widths[0])


# --- what the data do not see ----------------------------------------------------------------------------------------


def test_a_number_that_nothing_depends_on(tmp_path, rng):
    """The mass of a body in free flight: a direction of its own, with no spread at all."""
    blind = [{"path": "bodies.p.velocity", "components": [0]}, {"path": "bodies.p.mass"}]
    problem, x = fitted(tmp_path, [1e-3 * rng.normal(size=(TIMES.size, 3))], parameters=blind)
    (weak,) = weak_directions(uncertainty(problem, x))
    assert weak.members() == [1]
    assert np.isinf(weak.spread)
    assert abs(weak.direction[1]) == pytest.approx(1.0)


def test_a_number_that_nothing_depends_on_alone(tmp_path, rng):
    """What is seen counts by the best seen number: where that is not seen, either, it is named all the same."""
    takes = [1e-3 * rng.normal(size=(TIMES.size, 3))]
    problem, x = fitted(tmp_path, takes, parameters=[{"path": "bodies.p.mass"}])
    (weak,) = weak_directions(uncertainty(problem, x))
    assert weak.members() == [0] and np.isinf(weak.spread) and weak.singular_value == 0.0


def test_a_trade_off_between_two_numbers(tmp_path):
    """Place and velocity along x from a short, noisy stretch of the end: v t up, place down by as much."""
    rng = np.random.default_rng(4)
    both = [{"path": "bodies.p.velocity", "components": [0], "scale": 1.0},
            {"path": "bodies.p.position", "components": [0], "scale": 1.0}]  # fmt: skip
    late = {"file": "r0.csv", "markers": {"m": "m"}, "crop": [0.4, 0.5]}
    problem, x = fitted(tmp_path, [0.1 * rng.normal(size=(TIMES.size, 3))], parameters=both, recording=late)
    (weak,) = weak_directions(uncertainty(problem, x))
    assert weak.members() == [0, 1]
    assert weak.direction[1] / weak.direction[0] == pytest.approx(-0.45, abs=0.02)
    assert 0.5 < weak.spread < 10.0
