"""The scene that a fit leaves starts where the fit ended."""

import json

import numpy as np
import pytest

from add.commands.optimize import optimize_scene
from add.io.runfolder import FITTED, RunFolder
from add.scene import load_scene, scene_from_dict

POINT = {"type": "particles", "mass": 1.0}
SCENE = {
    "schema": "add-scene/1",
    "time": {"dt": 0.01, "duration": 0.1, "integrator": "bdf2"},
    "gravity": [0, 0, 0],
    "signals": {"push": {"type": "control", "rows": 3, "values": [[0, 0, 0], [0.1, 0, 0], [0, 0, 0]]}},
    "bodies": {
        "p": POINT
        | {
            "mesh": {"points": [[0.0, 0, 0]]},
            "loads": [{"where": {"nodes": [0]}, "force": {"signal": "push"}}],
        },
        "q": POINT | {"mesh": {"points": [[0.0, 1.0, 0]]}},
    },
    # The rest length is the initial distance, which the first parameter changes.
    "couplings": {"s": {"type": "spring", "a": {"body": "p", "at": [0, 0, 0]}, "b": {"body": "q", "at": [0, 1, 0]},
                        "stiffness": 300.0}},
    "markers": {"m": {"body": "p", "nodes": [0]}, "n": {"body": "q", "nodes": [0]}},
    "objective": [
        {"type": "point", "marker": "m", "target": [0.2, 0.3, 0], "time": "end"},
        {"type": "point", "marker": "n", "target": [0, 1.1, 0], "time": "end"},
        {"type": "proximity", "signal": "push", "weight": 0.01},
    ],
    "parameters": [
        {"path": "bodies.p.position", "components": [1], "start": 0.05},
        {"path": "signals.push.values"},
        {"path": "bodies.q.velocity", "experiment": "two"},
    ],
    "experiments": [{"name": "one"}, {"name": "two", "overrides": {"bodies.p.velocity": [0.1, 0, 0]}}],
    "optimizer": {"method": "gauss-newton", "max_evaluations": 6},
}  # fmt: skip


def test_fitted_scene(tmp_path):
    path = tmp_path / "scene.json"
    path.write_text(json.dumps(SCENE))
    result = optimize_scene(load_scene(path), RunFolder(tmp_path / "run"))
    fitted = scene_from_dict(json.loads((tmp_path / "run" / FITTED).read_text()))
    problem = fitted.inverse_problem()
    assert result["objective"]["end"] < 0.5 * result["objective"]["start"]
    assert problem.value(problem.x0)[0] == pytest.approx(result["objective"]["end"], rel=1e-9)
    found = {label: entry["value"] for label, entry in result["parameters"].items()}
    assert fitted.bodies["p"].position[1] == pytest.approx(found["bodies.p.position[1]"])
    assert fitted.experiments[1].overrides["bodies.q.velocity"][1] == pytest.approx(found["bodies.q.velocity@two[1]"])


#: A point that flies, whose recording's clock is found.
CLOCKED = SCENE | {
    "bodies": {"p": POINT | {"mesh": {"points": [[0.0, 0, 0]]}, "velocity": [0.1, 0, 0]}},
    "couplings": {},
    "signals": {},
    "markers": {"m": {"body": "p", "nodes": [0]}},
    "objective": [{"type": "markers"}],
    "parameters": [{"path": "recording.time_offset", "bounds": [-0.05, 0.05]}],
    "experiments": [],
}


def test_another_objective_is_said(tmp_path, caplog):
    """A clock that moves a frame beyond the end of the run: the scene with that clock has one frame less."""
    times = [0.0, 0.03, 0.06, 0.09]
    rows = "\n".join(f"{t},{0.1 * t + 0.002},0,0" for t in times)
    (tmp_path / "take.csv").write_text(f"time_s,m_x_m,m_y_m,m_z_m\n{rows}\n")
    raw = CLOCKED | {
        "recording": {"file": "take.csv", "markers": {"m": "m"}},
    }
    path = tmp_path / "scene.json"
    path.write_text(json.dumps(raw))
    result = optimize_scene(load_scene(path), RunFolder(tmp_path / "run"))
    assert result["parameters"]["recording.time_offset"]["value"] == pytest.approx(-0.02, rel=1e-3)
    said = [item.getMessage() for item in caplog.records if "its objective is" in item.getMessage()]
    problem = scene_from_dict(json.loads((tmp_path / "run" / FITTED).read_text())).inverse_problem()
    same = problem.value(problem.x0)[0] == pytest.approx(result["objective"]["end"], rel=1e-6, abs=1e-12)
    assert problem.experiments[0].recording.n_frames == 3 and bool(said) != same


def test_masks_stay_with_their_frames_when_a_clock_is_found(tmp_path):
    """They count on the simulation's clock: where they were, they would let the spoilt frame in."""
    times = np.arange(10) * 0.01
    places = 0.1 * times + 0.002
    places[5] = 3.0
    rows = "\n".join(f"{t},{x},0,0" for t, x in zip(times, places, strict=True))
    (tmp_path / "take.csv").write_text(f"time_s,m_x_m,m_y_m,m_z_m\n{rows}\n")
    raw = CLOCKED | {
        "recording": {
            "file": "take.csv", "markers": {"m": "m"}, "crop": [0.0, 0.06],
            "mask": [{"marker": "m", "from": 0.049, "to": 0.051}],
        },
    }  # fmt: skip
    path = tmp_path / "scene.json"
    path.write_text(json.dumps(raw))
    result = optimize_scene(load_scene(path), RunFolder(tmp_path / "run"))
    found = json.loads((tmp_path / "run" / FITTED).read_text())["recording"]
    assert found["time_offset"] == pytest.approx(-0.02, rel=1e-3)
    assert found["mask"][0]["from"] == pytest.approx(0.069, abs=1e-4)
    problem = load_scene(tmp_path / "run" / FITTED).inverse_problem()
    assert problem.value(problem.x0)[0] == pytest.approx(result["objective"]["end"], rel=1e-6, abs=1e-12)
