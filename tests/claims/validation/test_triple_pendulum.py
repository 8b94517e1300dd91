"""The scene of the double pendulum with one more arm: what made the angles is found again from them."""

import json
from pathlib import Path

import numpy as np
from support.places import SCENES

from add.inverse import LevenbergMarquardt, Phase
from add.scene import scene_from_dict

SCENE = SCENES / "double_pendulum_tree.json"
#: Of the made recording: the mass of the upper arm [kg], the inertia of the last one [kg m^2], its start [rad].
TRUTH = {"links.upper.mass": 0.11, "links.last.inertia": 0.0011, "joints.wrist.value": 0.35}


def triple() -> dict:
    """Return the scene with a third arm like the second."""
    raw = json.loads(SCENE.read_text(encoding="utf-8"))
    arms, angles = raw["bodies"]["pendulum"], raw["recording"]["angles"]
    arms["links"]["last"] = json.loads(json.dumps(arms["links"]["lower"]))
    arms["joints"]["wrist"] = arms["joints"]["elbow"] | {
        "parent": "lower", "child": "last", "position": [0, 0, -0.22], "value": 0.5, "rate": 2.0,
    }  # fmt: skip
    raw["markers"]["last arm"] = {"body": "pendulum/last", "direction": [0, 0, -1]}
    angles["theta3"] = angles["theta2"] | {"marker": "last arm"}
    kind = {"mass": {"transform": "log", "scale": 0.05}, "inertia": {"transform": "log", "scale": 0.1}}
    raw["parameters"] = [
        {"path": f"bodies.pendulum.{path}", **kind.get(path.rpartition(".")[2], {"scale": 0.01})} for path in TRUTH
    ]
    raw["parameters"][1]["components"] = [1]
    raw["time"] = {"dt": 0.002, "steps": 150, "integrator": "bdf2"}
    return raw


def test_a_third_arm(tmp_path: Path) -> None:
    raw = triple()
    recording = {key: raw.pop(key) for key in ("recording", "objective", "parameters")}
    arms = raw["bodies"]["pendulum"]
    arms["links"]["upper"]["mass"] = TRUTH["links.upper.mass"]
    arms["links"]["last"]["inertia"][1] = TRUTH["links.last.inertia"]
    arms["joints"]["wrist"]["value"] = TRUTH["joints.wrist.value"]
    built = scene_from_dict(raw).build()
    run = built.run()
    assert built.simulation.system.n == 3
    # The file counts angles from upright, the arms hang at pi; turns about -y add up along the chain.
    table = np.column_stack([run.t, np.cumsum(run.q, axis=1) + np.pi])
    file = tmp_path / "swing.csv"
    np.savetxt(file, table, fmt="%.9f", delimiter=",", header="time_s,theta1_rad,theta2_rad,theta3_rad", comments="")
    raw = triple() | recording
    raw["recording"] = recording["recording"] | {"file": str(file), "time_offset": 0.0}
    problem = scene_from_dict(raw).inverse_problem()
    found = LevenbergMarquardt((Phase("all", None, None, 12),), objective_tolerance=1e-16).run(problem)
    assert found.value < 1e-12 and problem.value(problem.x0)[0] > 1e-3
    np.testing.assert_allclose(problem.values(found.x), list(TRUTH.values()), rtol=1e-5)
