"""Standard errors of fits: against the closed form of a linear problem, and against the spread over noise."""

import numpy as np
import pytest

from add.inverse.fit_rows import fit_rows
from add.inverse.uncertainty import uncertainty, uncertainty_of_rows
from add.mocap import Recording, write_csv
from add.scene import scene_from_dict

DT, STEPS = 0.02, 10
#: Frames between the steps; the last is masked for marker B.
TIMES = np.array([0.01, 0.035, 0.07, 0.11, 0.15, 0.2])
VELOCITY = np.array([0.3, -0.1, 0.5])
NOISE = 1e-3
#: Sum of t^2 of each marker: both see every frame but the last, which only A sees.
INFORMATION = np.array([(TIMES**2).sum(), (TIMES[:-1] ** 2).sum()])


def scene(folder, **sections):
    """A box in free flight: its markers are linear in the initial velocity."""
    return scene_from_dict(
        {
            "schema": "add-scene/1",
            "time": {"dt": DT, "steps": STEPS, "newton": {"atol": 1e-12}},
            "gravity": [0, 0, 0],
            "bodies": {
                "box": {
                    "type": "soft",
                    "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "divisions": [1, 1, 1]},
                    "material": {"model": "neo-hookean", "young": 2e4, "poisson": 0.3, "density": 200},
                    "velocity": VELOCITY.tolist(),
                }
            },
            "contact": {"stiffness": 1e3},
            "obstacles": {"floor": {"shape": "plane", "point": [0, 0, -10], "normal": [0, 0, 1]}},
            "markers": {"a": {"body": "box", "point": [0, 0, 0.05]}, "b": {"body": "box", "point": [0.05, 0, 0]}},
            "recording": {
                "file": "recording.csv",
                "markers": {"A": "a", "B": "b"},
                "mask": [{"marker": "B", "from": 0.19, "to": 0.21}],
            },
            "objective": [{"type": "markers"}],
            "parameters": [{"path": "bodies.box.velocity"}],
            **sections,
        },
        folder=folder,
    )


def record(folder, rng):
    """Free flight of the two markers, without gravity, with white noise."""
    positions = np.zeros((TIMES.size, 2, 3))
    positions[:, 0, 2], positions[:, 1, 0] = 0.05, 0.05
    positions += (TIMES[:, None] * VELOCITY)[:, None]
    positions += NOISE * rng.normal(size=positions.shape)
    write_csv(folder / "recording.csv", Recording(("A", "B"), TIMES, positions, np.ones((TIMES.size, 2), bool), ""))


def by_marker(residuals):
    """Sum of the squares of residuals (11, 3) over the frames of each marker (2, 3)."""
    of_a = np.array([0, 2, 4, 6, 8, 10])
    return np.array([(residuals[of_a] ** 2).sum(axis=0), (np.delete(residuals, of_a, axis=0) ** 2).sum(axis=0)])


def test_linear_problem(tmp_path, rng):
    """cov = sum_m s_m^2 A_m^T A_m / (A^T A)^2 with A = t over the markers m: the three components do not mix."""
    record(tmp_path, rng)
    problem = scene(tmp_path).inverse_problem()
    found = uncertainty(problem, problem.x0)
    (experiment,) = problem.experiments
    _, runs = problem.value(problem.x0)
    tracking = experiment.objective.objectives[0]
    residuals = []
    for state in runs["scene"].states():
        for frame, difference in tracking.differences(state, experiment.simulation.theta):
            residuals.append(difference[tracking.weights[frame] > 0])
    residuals = np.concatenate(residuals)
    assert residuals.shape == (11, 3)
    squares = INFORMATION.sum()
    freedom = np.array([6, 5]) - INFORMATION / squares
    sizes = by_marker(residuals) / freedom[:, None]
    variance = INFORMATION @ sizes / squares**2
    assert found.standard_errors == pytest.approx(np.sqrt(variance), rel=1e-9)
    scale = problem.design.scale
    assert found.covariance == pytest.approx(np.diag(variance) / scale**2, rel=1e-9, abs=1e-16)
    parts = INFORMATION[:, None] * sizes
    assert found.freedom == pytest.approx(parts.sum(axis=0) ** 2 / (parts**2 / freedom[:, None]).sum(axis=0), rel=1e-9)
    assert found.rise == pytest.approx(variance * squares / 11, rel=1e-9)  # the objective is a mean over 11 samples
    assert found.rms == pytest.approx(np.sqrt((residuals**2).mean()), rel=1e-12)
    assert found.rms == pytest.approx(NOISE, rel=0.5)


def test_noise_of_two_takes(tmp_path, rng):
    """Each of two equal takes brings its information and its noise: the error of their mean."""
    record(tmp_path, rng)
    problem = scene(tmp_path).inverse_problem()
    (experiment,) = problem.experiments
    row = fit_rows(problem, problem.x0, experiment)
    one, two = (uncertainty_of_rows(problem, problem.x0, [row] * k, 11.0 * k) for k in (1, 2))
    # a take is charged for its share of the numbers
    sums, share = by_marker(row.residual.reshape(-1, 3)), INFORMATION / INFORMATION.sum()
    variances = [INFORMATION @ (sums / (np.array([6, 5]) - share / k)[:, None]) / k for k in (1, 2)]
    assert two.noise == pytest.approx(one.noise * np.sqrt(variances[1] / variances[0]), rel=1e-9)


@pytest.mark.parametrize("transform", ["log", "softplus"])
def test_errors_are_of_the_physical_values(tmp_path, rng, transform):
    """The transform and its scale do not change the error of the physical value."""
    record(tmp_path, rng)
    linear = {"path": "bodies.box.velocity", "components": [0]}
    errors = []
    for parameter in (linear, {**linear, "transform": transform, "scale": 3.0}):
        problem = scene(tmp_path, parameters=[parameter]).inverse_problem()
        errors.append(uncertainty(problem, problem.x0).standard_errors)
    assert errors[1] == pytest.approx(errors[0], rel=1e-9)


def test_spread_over_noise(tmp_path):
    """Standard errors say how far estimates scatter: normalised errors have unit variance (Student's t)."""
    rng = np.random.default_rng(5)
    normalised = []
    record(tmp_path, rng)
    base = scene(tmp_path).inverse_problem()
    value0 = base.x0
    for _ in range(30):
        record(tmp_path, rng)
        problem = scene(tmp_path).inverse_problem()
        # one Gauss-Newton step solves a linear problem: H = 2 A^T W A is known
        _, gradient = problem.value_and_grad(value0)
        weight = problem.experiments[0].objective.objectives[0].weights.max()
        hessian = 2 * weight * (2 * (TIMES[:-1] ** 2).sum() + TIMES[-1] ** 2) * problem.design.scale**2
        x = value0 - gradient / hessian
        assert np.abs(problem.value_and_grad(x)[1]).max() < 1e-10 * np.abs(gradient).max() + 1e-14
        found = uncertainty(problem, x)
        normalised.append((problem.values(x) - VELOCITY) / found.standard_errors)
    scatter = np.array(normalised)
    assert abs(scatter.mean()) < 3 / np.sqrt(90)
    assert 0.7 < scatter.std() < 1.35


def test_what_the_data_do_not_see_has_no_error(tmp_path, rng):
    """A number without influence gets NaN and leaves the others' errors as they are."""
    record(tmp_path, rng)
    seen = [{"path": "bodies.box.velocity"}]
    problem = scene(tmp_path, parameters=seen).inverse_problem()
    expected = uncertainty(problem, problem.x0)
    blind = [*seen, {"path": "contact.friction", "scale": 0.1}, {"path": "contact.stiffness", "transform": "log"}]
    problem = scene(tmp_path, parameters=blind).inverse_problem()
    errors = uncertainty(problem, problem.x0).standard_errors
    assert errors[:3] == pytest.approx(expected.standard_errors, rel=1e-6)
    assert np.isnan(errors[3:]).all()


def test_two_numbers_that_do_the_same(tmp_path, rng):
    """Only a sum of two parameters is seen: neither has an error, the third has."""
    record(tmp_path, rng)
    # without gravity a later clock is a shift along the velocity
    both = [
        {"path": "bodies.box.velocity", "components": [0]},
        {"path": "bodies.box.position", "components": [1]},
        {"path": "recording.time_offset", "scale": 0.01},
    ]
    raw = scene(tmp_path).full()
    raw["bodies"]["box"]["velocity"] = [0.0, 0.5, 0.0]
    raw["recording"]["time_offset"] = 0.005
    raw["parameters"] = both
    problem = scene_from_dict(raw, folder=tmp_path).inverse_problem()
    errors = uncertainty(problem, problem.x0).standard_errors
    assert np.isfinite(errors[0])
    assert np.isnan(errors[1:]).all()


def test_nothing_to_say(tmp_path, rng):
    """None without a recording, and where there are not more numbers than parameters."""
    point = {"type": "point", "marker": "a", "target": [0, 0, 0], "time": "end"}
    record(tmp_path, rng)
    problem = scene(tmp_path, objective=[point]).inverse_problem()
    assert uncertainty(problem, problem.x0) is None
    few = {"file": "recording.csv", "markers": {"A": "a"}, "crop": [0.0, 0.011]}
    problem = scene(tmp_path, recording=few).inverse_problem()
    assert problem.experiments[0].recording.times.size == 1
    assert uncertainty(problem, problem.x0) is None
