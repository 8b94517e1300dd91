"""Real recordings of rigid bodies, where they are there: with what `docs/studies/rigid-recordings.md` found."""

from __future__ import annotations

import importlib
import json

import numpy as np
import pytest
from support.places import SCENES

import add


@pytest.fixture
def study(data_root, monkeypatch):
    """Return a loader of scripts, for which the recordings are found."""
    monkeypatch.setenv("ADD_DATA", str(data_root))
    if not (data_root / "rigid").is_dir():
        pytest.skip(f"no recordings of rigid bodies at {data_root}")

    return lambda name: importlib.import_module(f"scripts.{name}")


def test_cubes_end_where_they_are_predicted(study, tmp_path, monkeypatch) -> None:
    """Files that are named are predicted, without the folder of the study."""
    cubes = study("cube_tosses")
    files = cubes.tosses()[5::11]
    monkeypatch.delenv("ADD_DATA")
    found = {"contact.friction": 0.184, "contact.damping": 65.3, "contact.stiffness": 15400.0, "fitted": {}}
    result = tmp_path / "found.json"
    result.write_text(json.dumps(found), encoding="utf-8")
    errors = cubes.predict(result, files)
    assert np.median(errors[:, 0]) < 30.0  # % of the edge
    assert np.median(errors[:, 1]) < 15.0  # degrees


def test_first_frames_of_a_toss_fall_freely(study) -> None:
    cubes = study("cube_tosses")
    scale = add.load_scene(SCENES / "cube_toss.json").recording.scale
    for file in cubes.tosses()[::40]:
        pose, frames = cubes.read(file, scale)
        position, _, velocity, _ = cubes.flight(pose, frames)
        t = pose.times[:frames, None]
        fallen = position + velocity * t + 0.5 * cubes.GRAVITY * t**2
        np.testing.assert_allclose(fallen, pose.position[:frames], atol=1.5e-3)


@pytest.mark.parametrize("name", ["double_pendulum", "double_pendulum_tree"])
def test_double_pendulum_follows_a_swing_for_two_seconds(study, name) -> None:
    """With stiff hinges between free bodies, and in joint coordinates."""
    pendulum = study("double_pendulum")
    base = add.load_scene(SCENES / f"{name}.json")
    file = pendulum.swings()[9]
    at = pendulum.start(file, base.recording.time_offset)
    scene = pendulum.scene_of(base, [file], [at], {})
    problem = scene.inverse_problem()
    values, rms = pendulum.minimise(problem, 0.2, 6)
    assert rms < 2e-3
    start = {path: values[f"{path}@{file.stem}"] for path in pendulum.start_of(base)}
    source = {**base.raw["recording"], "file": str(file)}
    ahead = add.apply_overrides(base, {**start, "recording": source}).inverse_problem()
    # Directions are unit vectors: their distance is the error of the angle.
    assert np.sqrt(ahead.residuals(ahead.x0).value) < 0.05


@pytest.mark.parametrize("name", ["cube_toss", "double_pendulum", "elbow_toss"])
def test_gradients_of_the_scenes(study, name) -> None:
    study("cube_tosses")
    problem = add.load_scene(SCENES / f"{name}.json").inverse_problem()
    window = (0.0, 0.06)
    point = problem.residuals(problem.x0, window=window)
    value, gradient = problem.value_and_grad(problem.x0, window=window)
    assert point.value == pytest.approx(value, rel=1e-12)
    forward = 2.0 * problem.jacobian(point).transposed(point.rho)
    np.testing.assert_allclose(forward, gradient, rtol=1e-8, atol=1e-10 * np.abs(gradient).max())
