"""Runs of scenes in which meshes meet meshes: momentum, gradients, what passes through and what does not."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.run_checks import check_gradient_of_run, events
from support.small_models import RoughObjective

import add
from add.contact import MeshContact
from add.equations.kinematics import Kinematics
from add.scene import apply_overrides
from add.scene.build.built import BuiltScene
from add.scene.build.scene import build
from add.simulation.run import Trajectory
from add.terms import Inertia

SCENE = Path(__file__).resolve().parents[2] / "scenes" / "two_soft_balls.json"


def built(**overrides: Any) -> BuiltScene:
    return build(apply_overrides(add.load_scene(SCENE), overrides))


def momentum(scene: BuiltScene, trajectory: Trajectory, k: int) -> np.ndarray:
    """Return the linear momentum after k steps [kg m/s]."""
    v, r = trajectory.state(k).v[0], np.zeros(scene.model.system.n)
    none = np.zeros_like(v)
    for term in scene.model.term(Inertia):
        term.residual(Kinematics(none, none, v, 0.0, 0), scene.theta, r)
    return r.reshape(-1, 3).sum(axis=0)


def velocity(scene: BuiltScene, trajectory: Trajectory, body: str, k: int) -> np.ndarray:
    return scene.model.system.dofs.view(trajectory.state(k).v[0], body).mean(axis=0)


def test_two_soft_balls_bounce_and_keep_their_momentum() -> None:
    scene = built()
    trajectory = scene.simulation.run()
    (term,) = scene.model.term(MeshContact)
    touching = [term.describe(record.decisions[0])["touching"] for record in trajectory.records]
    assert max(touching) > 50 and touching[0] == 0 and touching[-1] == 0
    assert velocity(scene, trajectory, "left", 60)[0] < -0.5 < 0.5 < velocity(scene, trajectory, "right", 60)[0]
    start = momentum(scene, trajectory, 0)
    size = 0.5 * 1000.0 * 4.0 / 3.0 * np.pi * 0.05**3 * 4.0
    for k in range(10, 61, 10):
        assert np.abs(momentum(scene, trajectory, k) - start).max() < 1e-12 * size


#: A window of the scene with coarse meshes, in which the balls touch, press and begin to part.
QUICK = {
    "bodies.left.mesh.edge": 0.05,
    "bodies.right.mesh.edge": 0.045,
    "bodies.left.position": [-0.0515, 0.002, 0.0],
    "bodies.right.position": [0.0515, 0.0, 0.0],
    "bodies.left.velocity": [2.0, 0.3, 0.1],
    "contact.damping": 1e3,
    "contact.stiffness_per": "area",
    "time.dt": 0.001,
}


@pytest.mark.parametrize(("law", "integrator"), [("linear", "bdf2"), ("tanh", "bdf1")])
def test_gradient_of_two_balls(law: str, integrator: str) -> None:
    """Of all numbers: velocities, moduli, stiffness, damping, friction, depths and skins among them."""
    changed = QUICK | {"contact.friction_law": law, "time.integrator": integrator, "time.steps": 14}
    scene = built(**changed | ({"contact.mesh.stick_stiffness": 2e4} if law == "linear" else {}))
    newton = replace(scene.simulation.stepper.newton, atol=1e-12, rtol=1e-13)
    simulation = replace(scene.simulation, stepper=replace(scene.simulation.stepper, newton=newton))
    trajectory = check_gradient_of_run(
        simulation, RoughObjective(np.random.default_rng(0).normal(size=scene.model.system.n))
    )
    counts = events(simulation, trajectory)
    assert counts["touching"] > 100
    if law == "linear":
        assert counts["sticking"] > 10 and counts["slipping"] > 10
