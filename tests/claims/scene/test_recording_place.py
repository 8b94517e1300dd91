"""Recordings whose place, scale and clock are found: of each take, shared by takes, and what the data cannot tell."""

import copy
import json

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from add.commands.optimize import optimize_scene
from add.errors import InputError
from add.io.runfolder import FITTED, RunFolder
from add.scene import load_scene, scene_from_dict

POINTS = {"a": [0.1, 0, 0], "b": [0, 0.1, 0], "c": [0, 0, 0.1], "d": [-0.1, 0, 0.05]}
SCALE = 1.02
TAKES = {"one": ([0.2, -0.1, 0.3], [0.03, -0.02, 0.05], 0.013), "two": ([-0.1, 0.3, 0.1], [0.0, 0.04, -0.03], -0.008)}
SCENE = {
    "schema": "add-scene/1",
    "time": {"dt": 0.01, "steps": 20},
    "bodies": {
        "stone": {
            "type": "rigid", "mass": 0.5, "inertia": [1e-3, 1e-3, 1e-3, 0, 0, 0],
            "velocity": [0.5, 0, 1.0], "angular_velocity": [0, 4, 1],
        }
    },
    "markers": {name: {"body": "stone", "point": point} for name, point in POINTS.items()},
    "objective": [{"type": "markers"}],
    "parameters": [],
    "optimizer": {"method": "gauss-newton", "max_evaluations": 15},
}  # fmt: skip


def write_take(folder, name, turn, move, late, noise=1e-5):
    """Write the scene's own motion as a camera at another place sees it, of the start ``late`` on its clock."""
    built = scene_from_dict(SCENE | {"objective": []}).build()
    run = built.run()
    places = np.array([built.markers.points(run.kinematics(k), built.theta)[0] for k in range(run.n_steps + 1)])
    recorded = (places - np.array(move)) @ Rotation.from_rotvec(turn).as_matrix() / SCALE
    recorded += noise * np.random.default_rng(3).normal(size=recorded.shape)
    head = ",".join(f"{point}_{axis}_m" for point in POINTS for axis in "xyz")
    rows = [",".join(f"{x:.17g}" for x in [t + late, *row.ravel()]) for t, row in zip(run.t, recorded, strict=True)]
    (folder / f"{name}.csv").write_text("\n".join([f"time_s,{head}", *rows]) + "\n")
    return {"file": f"{name}.csv", "markers": {key: key for key in POINTS}, "place": {}, "crop": [0.03, 0.17]}


def two_takes(folder):
    raw = copy.deepcopy(SCENE)
    raw["experiments"] = [{"name": name, "recording": write_take(folder, name, *take)} for name, take in TAKES.items()]
    raw["parameters"] = [{"path": "recording.place.scale"}, {"path": "bodies.stone.mass", "bounds": [0.4, 0.6]}]
    for name in TAKES:
        raw["parameters"] += [
            {"path": f"recording.{key}", "experiment": name, "scale": size}
            for key, size in (("place.turn", 0.2), ("place.move", 0.05), ("time_offset", 0.01))
        ]
    return raw


@pytest.mark.slow
def test_each_take_has_its_place_and_all_share_the_scale(tmp_path):
    """A flight, whose gravity and shape say where the camera stood; a mass is not seen; the fitted scene goes on."""
    path = tmp_path / "scene.json"
    path.write_text(json.dumps(two_takes(tmp_path)))
    result = optimize_scene(load_scene(path), RunFolder(tmp_path / "run"))
    found = result["parameters"]
    assert found["recording.place.scale"]["value"] == pytest.approx(SCALE, abs=3e-4)
    for name, (turn, move, late) in TAKES.items():
        for k in range(3):
            assert found[f"recording.place.turn@{name}[{k}]"]["value"] == pytest.approx(turn[k], abs=1e-3)
            assert found[f"recording.place.move@{name}[{k}]"]["value"] == pytest.approx(move[k], abs=1e-4)
        assert found[f"recording.time_offset@{name}"]["value"] == pytest.approx(late, abs=1e-4)
    (weak,) = result["uncertainty"]["weak"]
    assert weak["text"].startswith("The data do not see bodies.stone.mass")
    fitted = scene_from_dict(json.loads((tmp_path / "run" / FITTED).read_text()), folder=tmp_path)
    assert fitted.experiments[1].recording.place.move[1] == pytest.approx(found["recording.place.move@two[1]"]["value"])
    problem = fitted.inverse_problem()
    assert problem.value(problem.x0)[0] == pytest.approx(result["objective"]["end"], rel=1e-6)
    targets = problem.experiments[0].tracking.placed(slice(None), problem.theta(problem.x0, problem.experiments[0]))
    assert np.abs(targets[0, 0]).max() < 0.3 and problem.value(problem.x0)[0] < 1e-8


def test_a_place_that_the_data_cannot_tell_is_named(tmp_path):
    """Body and camera may both move: the sum is seen, and no other marker of the body would tell."""
    raw = copy.deepcopy(SCENE)
    recording = write_take(tmp_path, "one", [0, 0, 0], [0, 0, 0], 0.0)
    recording["markers"].pop("d")
    raw |= {"recording": recording, "uncertainty": {"candidates": True}}
    raw["parameters"] = [{"path": "bodies.stone.position"}, {"path": "recording.place.move"}]
    path = tmp_path / "scene.json"
    path.write_text(json.dumps(raw))
    weak = optimize_scene(load_scene(path), RunFolder(tmp_path / "run"))["uncertainty"]["weak"]
    assert len(weak) == 3
    for item in weak:
        kinds = {label.partition("[")[0] for label in item["parameters"]}
        assert kinds == {"bodies.stone.position", "recording.place.move"}
        (candidate,) = item["candidates"]
        assert candidate["name"].startswith("recording d") and (candidate["spread"] or np.inf) > 1e6


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda raw: raw["experiments"][0]["recording"].update(displacement=True), "displacements do not tell"),
        (lambda raw: raw["experiments"][0]["recording"]["place"].update(scale=1.1), "share this number, but theirs"),
        (lambda raw: raw["experiments"][1]["recording"].pop("place"), "no such path"),
        (lambda raw: raw.update(objective=[{"type": "prior", "parameter": "x", "mean": 0, "sigma": 1}]), "entry of"),
    ],
)
def test_refusals(tmp_path, change, said):
    raw = two_takes(tmp_path)
    change(raw)
    with pytest.raises(InputError, match=said):
        scene_from_dict(raw, folder=tmp_path)


def test_a_start_from_a_placed_recording(tmp_path):
    """`"start": "recording"` counts where `place` puts the frames."""
    turn, move, late = TAKES["one"]
    raw = copy.deepcopy(SCENE)
    recording = write_take(tmp_path, "one", turn, move, late, noise=0.0)
    recording |= {"time_offset": late, "place": {"turn": turn, "move": move, "scale": SCALE}}
    raw["recording"] = recording
    for key in ("velocity", "angular_velocity"):
        raw["bodies"]["stone"].pop(key)
    raw["bodies"]["stone"]["start"] = "recording"
    body = scene_from_dict(raw, folder=tmp_path).bodies["stone"]
    assert body.velocity == pytest.approx([0.5, 0, 1.0], abs=0.05)
    assert body.angular_velocity == pytest.approx([0, 4, 1], abs=0.01)
