"""Displacements that count from where markers rest before the release, whose noise a mean takes away."""

import copy

import numpy as np
import pytest

from add.errors import InputError
from add.inverse.fit_rows import fit_rows
from add.inverse.refit import first_step
from add.mocap import Recording, write_csv
from add.scene import scene_from_dict
from add.scene.build.recordings import load_recording
from add.scene.build.unread import unread

RELEASE, NOISE, DT = 0.503, 2e-3, 0.005
TIMES = np.arange(120) / 100.0


def take(seed=0):
    """Return a ball that falls from rest, which is held until the release, by cameras with noise."""
    fallen = 0.5 * 9.81 * np.maximum(TIMES - RELEASE, 0.0) ** 2
    places = np.tile([0.3, -0.2, 5.0], (TIMES.size, 1, 1))
    places[:, 0, 2] -= fallen
    return places + NOISE * np.random.default_rng(seed).normal(size=places.shape)


def scene(folder, hidden=(), seed=0, **recording):
    seen = np.ones((TIMES.size, 1), bool)
    seen[list(hidden)] = False
    write_csv(folder / "r.csv", Recording(("m",), TIMES, take(seed), seen))
    return scene_from_dict(
        {
            "schema": "add-scene/1",
            "time": {"dt": DT, "duration": 0.8, "integrator": "bdf2"},
            "bodies": {"p": {"type": "particles", "mesh": {"points": [[0, 0, 0]]}, "mass": 1.0}},
            "markers": {"m": {"body": "p", "nodes": [0]}},
            "recording": {"file": "r.csv", "time_offset": 0.5, "crop": [0, 0.6], "displacement": True}
            | {"markers": {"m": "m"}, "rest": [0.1, 0.45]}
            | recording,
            "objective": [{"type": "markers"}],
            "parameters": [{"path": "recording.time_offset", "scale": 0.01}],
            "optimizer": {"method": "gauss-newton"},
        },
        folder=folder,
    )


def test_displacements_count_from_the_mean_at_rest(tmp_path):
    (experiment,) = scene(tmp_path).inverse_problem().experiments
    tracking = experiment.tracking
    assert tracking.reference == tracking.times[0] == -DT
    mean = take()[10:46].mean(axis=0)
    np.testing.assert_allclose(tracking.targets[0], 0.0)
    np.testing.assert_allclose(tracking.targets[1:, 0], (take()[50:111] - mean)[:, 0], atol=1e-12)


def test_only_a_frame_at_rest_has_no_noise_that_all_others_share(tmp_path):
    """It lies a step before t = 0, where no recorded frame does: a crop that begins there is refused."""
    for rest in ([0.1, 0.45], None):
        problem = scene(tmp_path, rest=rest).inverse_problem()
        rows = fit_rows(problem, problem.x0, problem.experiments[0])
        assert rows.from_first == (rest is None)
        assert first_step(problem, problem.x0, [rows]).size == 1  # of as many residuals as rows
        with pytest.raises(InputError, match="outside the simulated time") as error:
            scene(tmp_path, rest=rest, crop=[-DT, 0.6], time_offset=0.495)
        assert error.value.place == "recording.crop"


@pytest.mark.parametrize("offset", [0.47, 0.5, 0.53])
def test_the_start_is_what_the_frame_at_rest_sees(tmp_path, offset):
    """Wherever the clock is, the run counts from its first state; and its gradient is that of differences."""
    problem = scene(tmp_path, time_offset=offset, rest=[0.1, 0.4]).inverse_problem()
    (experiment,) = problem.experiments
    x = problem.x0 + 0.3
    theta = problem.theta(x, experiment)
    run = experiment.simulation.run(theta)
    np.testing.assert_allclose(experiment.tracking.origin_of(run.states(), theta), [[0.0, 0.0, 0.0]], atol=1e-12)
    step = 1e-4
    expected = (problem.value(x + step)[0] - problem.value(x - step)[0]) / (2 * step)
    assert problem.value_and_grad(x)[1][0] == pytest.approx(expected, rel=1e-4)


def test_the_noise_of_one_frame_no_longer_moves_all_others(tmp_path):
    """What is left over is the noise; with one frame as the origin its own comes on top."""
    left = {True: [], False: []}
    for seed in range(5):
        for rest in ([0.1, 0.45], None):
            problem = scene(tmp_path, seed=seed, rest=rest).inverse_problem()
            result = problem.optimize()
            left[rest is None].append(result.value)
            assert abs(problem.values(result.x)[0] - RELEASE) < 2e-3
    assert np.mean(left[False]) == pytest.approx(3 * NOISE**2, rel=0.1)
    assert np.mean(left[True]) > 1.2 * np.mean(left[False])


def test_the_first_frame_may_be_hidden(tmp_path):
    scene(tmp_path, hidden=(50, 51)).inverse_problem()
    with pytest.raises(InputError, match="in the first frame that counts"):
        scene(tmp_path, hidden=(50, 51), rest=None).inverse_problem()


def test_what_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"recording.rest: markers rest before they are let go .*0.5 s"):
        scene(tmp_path, rest=[0.1, 0.6])
    with pytest.raises(InputError, match=r"recording.rest: these markers are not seen at rest .found m"):
        load_recording(scene(tmp_path, hidden=range(10, 46)), "recording")
    assert any("recording.rest" in text for text in unread(scene(tmp_path, displacement=False).build()))


@pytest.mark.parametrize("offset", [0.47, 0.5, 0.53])
def test_a_body_that_is_struck_counts_from_where_it_rests(tmp_path, offset):
    """It starts with a velocity, and the clock may be wrong by several steps: no displacement is off at the truth."""
    after = np.maximum(TIMES - 0.5, 0.0)
    places = np.tile([0.3, -0.2, 5.0], (TIMES.size, 1, 1))
    places[:, 0] += np.outer(after, [1.5, 0.0, 2.0])
    raw = copy.deepcopy(scene(tmp_path, time_offset=offset, rest=[0.1, 0.45], crop=[0.04, 0.6]).raw) | {
        "gravity": [0, 0, 0]
    }
    write_csv(tmp_path / "r.csv", Recording(("m",), TIMES, places, np.ones((TIMES.size, 1), bool)))
    raw["bodies"]["p"]["velocity"] = [1.5, 0.0, 2.0]
    problem = scene_from_dict(raw, folder=tmp_path).inverse_problem()
    x = problem.x0 + (0.5 - offset) / 0.01
    assert problem.value(x)[0] < 1e-24
    x = problem.x0 + (0.507 - offset) / 0.01
    step = 1e-4
    expected = (problem.value(x + step)[0] - problem.value(x - step)[0]) / (2 * step)
    assert problem.value_and_grad(x)[1][0] == pytest.approx(expected, rel=1e-4)
