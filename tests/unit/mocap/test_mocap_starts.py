"""Releases and first touches: of motions whose moments are known, and of the public recordings."""

import json

import numpy as np
import pytest
from support.places import DATA

from add.errors import InputError
from add.mocap import Recording, first_touch, read_pose_csv, read_take, release_time, write_csv
from add.scene import load_scene, scene_from_dict
from add.scene.build.doubts import doubts

real = pytest.mark.skipif(not (DATA / "mocap").is_dir(), reason=f"no recordings at {DATA} (set ADD_DATA)")


def released(t0: float, noise: float = 1e-4, rate: float = 100.0) -> Recording:
    """Two markers that swing from t0 on: z = -A (1 - cos w t)."""
    times = np.arange(0.0, 2.0, 1.0 / rate)
    after = np.maximum(times - t0, 0.0)
    fall = -0.02 * (1.0 - np.cos(20.0 * after)) * np.exp(-after)
    positions = np.zeros((times.size, 2, 3))
    positions[:, :, 2] = fall[:, None] * [1.0, 0.7]
    positions += noise * np.random.default_rng(1).normal(size=positions.shape)
    valid = np.ones(positions.shape[:2], dtype=bool)
    valid[20:25, 1] = False
    return Recording(("a", "b"), times, positions, valid)


@pytest.mark.parametrize("t0", [0.5, 0.503, 0.5079])
@pytest.mark.parametrize("noise", [0.0, 1e-4, 3e-4])
def test_release_to_a_fraction_of_a_frame(t0, noise):
    assert release_time(released(t0, noise)) == pytest.approx(t0, abs=0.004 + 5 * noise)


def test_what_does_not_rest_or_move():
    moving = released(0.5)
    with pytest.raises(InputError, match="no rest before"):
        release_time(moving.crop(0.52, 2.0))
    with pytest.raises(InputError, match="too few frames"):
        release_time(moving.crop(0.0, 0.1))
    still = Recording(
        ("a",), moving.times, 1e-4 * np.random.default_rng(0).normal(size=(200, 1, 3)), np.ones((200, 1), bool)
    )
    with pytest.raises(InputError, match=r"nothing moves|no rest"):
        release_time(still)


@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_first_touch_of_a_bounce(noise):
    times = np.arange(0.0, 1.0, 0.01)
    touch = 0.4525
    v = -9.81 * touch + 2.0
    height = np.where(times < touch, 1.0 + 2.0 * times - 4.905 * times**2, 0.0)
    ground = 1.0 + 2.0 * touch - 4.905 * touch**2
    after = times - touch
    height = np.where(times < touch, height, ground - 0.6 * v * after - 4.905 * after**2)
    positions = np.stack([1.5 * times, 0.0 * times, height], axis=1)
    positions += noise * np.random.default_rng(2).normal(size=positions.shape)
    found = first_touch(times, positions)
    assert touch - 0.02 <= found <= touch + 0.01
    assert first_touch(times[:40], positions[:40]) is None


@real
@pytest.mark.parametrize(("take", "release"), [("gravity", 0.7099), ("load52", 0.435)])
def test_release_of_the_silicone_beam(take, release):
    """Within a frame of the release that the fit of the whole motion finds."""
    markers = read_take(DATA / f"soft/srl_mit/beam_c3d/beam_{take}_V2_a.c3d").markers
    assert release_time(markers) == pytest.approx(release, abs=0.01)


@real
@pytest.mark.parametrize("toss", ["003", "010", "044", "092", "117"])
def test_first_touch_of_tossed_cubes(toss):
    """Within two frames of when a corner of the recorded pose comes within 4 mm of the table."""
    pose = read_pose_csv(DATA / f"rigid/csv/cube_contactnets/toss_{toss}.csv")
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * 0.0524
    lowest = pose.markers(corners).positions[:, :, 2].min(axis=1)
    near = pose.times[np.argmax(lowest < 0.004)]
    assert first_touch(pose.times, pose.position) == pytest.approx(near, abs=2.1 / 148)


SCENE = {
    "schema": "add-scene/1",
    "time": {"dt": 0.01, "duration": 1.0},
    "bodies": {"p": {"type": "mass-spring", "mesh": {"points": [[0, 0, 0]]}, "mass": 1.0}},
    "markers": {"m": {"body": "p", "nodes": [0]}},
}


def test_a_scene_finds_its_release(tmp_path):
    """Where no offset is given; what was found stands in the scene, so that it is not looked for again."""
    write_csv(tmp_path / "r.csv", released(0.503))
    section = {"file": "r.csv", "markers": {"a": "m"}, "start": "release"}
    (tmp_path / "scene.json").write_text(json.dumps({**SCENE, "recording": section}))
    scene = load_scene(tmp_path / "scene.json")
    assert scene.recording.time_offset == pytest.approx(0.503, abs=0.004)
    again = scene_from_dict(scene.raw)
    assert again.recording.time_offset == scene.recording.time_offset == scene.raw["recording"]["time_offset"]
    given = scene_from_dict({**SCENE, "recording": {**section, "file": str(tmp_path / "r.csv"), "time_offset": 0.1}})
    assert given.recording.time_offset == 0.1


def test_a_release_that_nothing_looks_for(tmp_path):
    """Beside an offset of one's own it is not read, which is said; beside the one that was found, and a start, it is.

    An offset that is a parameter is where the fit starts.
    """
    write_csv(tmp_path / "r.csv", released(0.503))
    section = {"file": str(tmp_path / "r.csv"), "markers": {"a": "m"}, "start": "release"}
    found = scene_from_dict({**SCENE, "recording": section}).raw
    searched = {"parameters": [{"path": "recording.time_offset"}], "objective": [{"type": "markers"}]}
    beside = found["recording"] | {"time_offset": 0.1}
    for raw, said in (
        (found, False),
        ({**SCENE, "recording": beside}, True),
        (found | searched | {"recording": beside}, False),
    ):
        texts = [text for text in doubts(scene_from_dict(raw).build()) if text.startswith("recording.start")]
        assert len(texts) == said
    (text,) = [
        text for text in doubts(scene_from_dict({**SCENE, "recording": beside}).build()) if "recording.start" in text
    ]
    assert "time_offset, 0.1 s, counts in place of the release, which is at 0.50" in text


def test_every_experiment_finds_its_own(tmp_path):
    experiments = []
    for k, t0 in enumerate((0.4, 0.6)):
        write_csv(tmp_path / f"{k}.csv", released(t0))
        section = {"file": str(tmp_path / f"{k}.csv"), "markers": {"a": "m"}, "start": "release"}
        experiments.append({"name": f"take {k}", "recording": section})
    raw = {**SCENE, "experiments": experiments, "objective": [{"type": "markers"}]}
    raw["parameters"] = [{"path": "recording.time_offset", "experiment": f"take {k}"} for k in (0, 1)]
    problem = scene_from_dict(raw).inverse_problem()
    np.testing.assert_allclose(problem.values(problem.x0), [0.4, 0.6], atol=0.004)


def test_a_release_that_cannot_be_found(tmp_path):
    write_csv(tmp_path / "r.csv", released(0.5).crop(0.52, 2.0))
    section = {"file": str(tmp_path / "r.csv"), "markers": {"a": "m"}, "start": "release"}
    with pytest.raises(InputError, match=r"recording\.start: .*r\.csv: no rest before the motion"):
        scene_from_dict({**SCENE, "recording": section})
