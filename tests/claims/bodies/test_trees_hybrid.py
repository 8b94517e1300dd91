"""Trees of links under hybrid friction: what sticks is held by equations over the joints' coordinates."""

import numpy as np
import pytest
from support.run_checks import check_gradient_of_run
from support.small_models import RoughObjective
from support.walker import TURNED, walker

import add
from add.scene.build.built import BuiltScene
from add.simulation.run import Trajectory


def scene(body: dict, steps: int, friction: float, integrator: str = "bdf1") -> dict:
    """A body over a plane, with a penalty."""
    return {
        "schema": "add-scene/1",
        "time": {"dt": 0.005, "steps": steps, "integrator": integrator, "newton": {"atol": 1e-12, "rtol": 1e-13}},
        "bodies": {"body": body},
        "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
        "contact": {"friction_law": "hybrid", "friction": friction, "stiffness": 5000, "damping": 20,
                    "stick_stiffness": 100, "onset": 1e-4, "damping_ramp": 1e-4},
    }  # fmt: skip


def counts(built: BuiltScene, run: Trajectory) -> list[dict[str, int]]:
    """Return what touches, sticks and slips after each step."""
    (term,) = built.simulation.system.deciding
    return [term.describe(record.decisions[0]) for record in run.records]


def test_a_free_link_is_a_rigid_body() -> None:
    """A cube that slides, turns and stops, in both forms: the same states and the same who sticks."""
    pose = {"position": [0, 0, 0.0999], "velocity": [0.5, 0.2, 0], "angular_velocity": [0, 0, 1.0]}
    geometry, seen, runs = {"shape": "box", "size": [0.2, 0.2, 0.2]}, [], []
    for body in (
        {"type": "rigid", "mass": 1.0, "geometry": geometry, **pose},
        {"type": "articulated", "base": "free", "links": {"a": {"mass": 1.0, "shapes": [{"geometry": geometry}]}},
         "joints": {"a": {}}, **pose},
    ):  # fmt: skip
        built = add.scene_from_dict(scene(body, 80, 0.4)).build()
        runs.append(built.run())
        seen.append(counts(built, runs[-1]))
    assert seen[0] == seen[1] and seen[0][2]["slipping"] == 4 and seen[0][-1]["sticking"] == 4
    assert np.abs(runs[1].q - runs[0].q).max() < 1e-12
    assert np.abs(runs[1].v - runs[0].v).max() < 1e-11


@pytest.mark.parametrize("integrator", ["bdf1", pytest.param("bdf2", marks=pytest.mark.slow)])
def test_gradient_of_a_walker(integrator: str) -> None:
    """Every number of theta through a foot that slips, sticks, slips and leaves the ground."""
    body = walker() | {
        "type": "articulated", "limits": "penalty", "position": [0, 0, 0.415], "orientation": TURNED,
        "velocity": [0.3, 0.1, -0.2], "angular_velocity": [0.3, 0.2, -0.7],
    }  # fmt: skip
    built = add.scene_from_dict(scene(body, 28, 0.5, integrator)).build()
    run = built.run()
    seen = counts(built, run)
    assert sum(count["sticking"] for count in seen) >= 3 and sum(count["slipping"] for count in seen) >= 5
    assert seen[-1]["touching"] == 0
    n = built.model.system.n
    check_gradient_of_run(built.simulation, RoughObjective(np.random.default_rng(1).normal(size=n)))
