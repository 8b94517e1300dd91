"""The scenes that come with add: they load, run, keep what they promise, and have the gradients they should have."""

import json

import numpy as np
import pytest
from support.places import ROOT, SCENES

from add.commands.check_gradient import check_gradients
from add.commands.optimize import check_optimization, optimize_scene
from add.commands.simulate import simulate_scene
from add.hard_contact import Branch, CarriedContacts
from add.io.runfolder import RunFolder
from add.scene import apply_overrides, experiment_scenes, load_scene
from add.scene.build.doubts import warn

NAMES = sorted(path.stem for path in SCENES.glob("*.json"))
MESHES = ROOT / "data" / "meshes"

ALL = ("touching", "sticking", "slipping")
CYLINDER = {
    "bodies.cylinder.mesh.file": str(MESHES / "cylinder.msh"),
    "bodies.cylinder.position": [0, 0, -0.0405],
    "bodies.cylinder.velocity": [0.05, 0.02, -0.3],
}
#: Scene -> what is changed so that a check takes seconds (coarser mesh, contact at once), steps, decisions seen.
#: A scene that is not here is checked as it is over two steps.
QUICK = {
    "ball_in_ring": (
        {"bodies.ball.position": [0.008, 0.004, 0.072], "bodies.ball.velocity": [0.3, 0, -0.8]},
        3,
        ("touching", "slipping"),
    ),
    "ball_on_floor": (
        {
            "bodies.ball.mesh.file": str(MESHES / "ball_small.msh"),
            "bodies.ball.position": [0, 0, 0.0255],
            "bodies.ball.velocity": [1, 0, -0.3],
        },
        4,
        ("touching", "slipping"),
    ),
    "fig10a_ball_to_point": (
        {
            "bodies.ball.mesh.file": str(MESHES / "ball_small.msh"),
            "bodies.ball.position": [0, 0, -0.0252],
            "bodies.ball.velocity": [0.45, 0, -0.3],
        },
        5,
        ALL,
    ),
    "fig2_cylinder_linear": (CYLINDER | {"bodies.cylinder.velocity": [0.06, 0.02, -0.2]}, 3, ALL),
    "fig2_cylinder_tanh": (CYLINDER, 2, ("touching",)),
    "fig2_cylinder_hybrid": (CYLINDER, 2, ("touching",)),
    "fig5_tori": (
        {
            "bodies.tori.mesh.file": str(MESHES / "torus.msh"),
            "bodies.tori.position": [0.0608, 0, -0.0418],
            "bodies.tori.velocity": [0.2, 0.01, -0.3],
        },
        2,
        ("touching", "slipping"),
    ),
    "fig9_depth_ball": (
        {
            "bodies.ball.mesh.file": str(MESHES / "ball_small.msh"),
            "bodies.ball.scale": 2.0,
            "bodies.ball.position": [0.1, 0, 0.0502],
            "objective.0.time_offset": 0.025,
        },
        12,
        ("touching",),
    ),
    "foam_ball": (
        {
            "bodies.ball.mesh.file": str(MESHES / "ball_small.msh"),
            "bodies.ball.scale": 2.0,
            "bodies.ball.position": [0, 0, 0.0502],
            "recording.time_offset": 0.0005,
            "time.dt": 0.003,  # so that the second picture is seen
        },
        4,
        ("touching",),
    ),
    "rigid_ball_throw": (
        {"bodies.ball.position": [0, 0, 0.0505], "bodies.ball.velocity": [2, 0.3, -1]},
        4,
        ("touching", "slipping"),
    ),
    "sheet_flip": ({}, 4, ALL),
    "two_soft_balls": (
        {
            "bodies.left.mesh.edge": 0.05,
            "bodies.right.mesh.edge": 0.045,
            "bodies.left.position": [-0.0515, 0.002, 0],
            "bodies.right.position": [0.0515, 0, 0],
            "bodies.left.velocity": [2, 0.3, 0.1],
            "contact.mesh.stick_stiffness": 1e4,
            "time.dt": 0.001,
        },
        9,
        ALL,
    ),
    "pressed_ball": (
        {
            "bodies.ball.mesh.edge": 0.05,
            "bodies.slab.mesh.divisions": [2, 2, 1],
            "bodies.slab.position": [0, 0, 0.0165],
            "bodies.ball.position": [-0.03, 0, 0.0845],
            "bodies.ball.velocity": [0.3, 0, -2.0],
            "contact.stick_stiffness": 200.0,
        },
        3,
        ALL,
    ),
    "boned_arm": ({"bodies.tissue.mesh.edge": 0.02, "objective.0.window": [0, 0.6]}, 2, ()),
    "muscle_beam": ({"bodies.beam.mesh.divisions": [4, 2, 3]}, 2, ()),
    "pneumatic_gripper": (
        {
            f"bodies.{side}.mesh.{key}": value
            for side in ("left", "right")
            for key, value in (("divisions", [3, 3, 3]), ("hollows", [[[1, 1, 1], [2, 2, 2]]]))
        },
        2,
        (),
    ),
    "strings_cube": ({}, 3, ("touching", "sticking")),
    "silicone_beam": ({"bodies.beam.mesh.divisions": [2, 1, 1]}, 5, ()),
    "silicone_beam_takes": ({"bodies.beam.mesh.divisions": [2, 1, 1]}, 5, ()),
    "stiff_inclusion": ({"bodies.block.mesh.divisions": [3, 3, 2]}, 2, ()),
    "tissue_on_peg": ({"bodies.tissue.mesh.divisions": [2, 2, 4]}, 3, ()),
    "twisting_muscle": ({"bodies.bar.mesh.edge": 0.02}, 3, ()),
    "yielding_clamp": (
        {"bodies.beam.mesh.divisions": [4, 1, 1], "couplings.clamp.stiffness": 3125.0},
        2,
        (),
    ),  # of 4 nodes
    "curtain_in_wind": ({"bodies.curtain.mesh.cells": [4, 3]}, 2, ()),
    "tennis_ball": ({"bodies.ball.mesh.edge": 0.03}, 2, ()),
    "falling_things": ({"bodies.rubber.mesh.edge": 0.04, "bodies.foam.mesh.divisions": [1, 1, 1]}, 2, ()),
    "cloth_on_block": ({"bodies.cloth.mesh.cells": [6, 6]}, 2, ()),
}
#: Scenes with so many numbers that even two steps take a while.
LARGE = (
    "pile_in_bowl",
    "boned_arm",
    "tennis_throw",
    "three_frictions",
    "three_laws",
    "ball_in_ring",
    "fig11b_bunny",
    "fig2_cylinder_hybrid",
    "fig5_tori",
    "fig7_foam_sphere",
    "fig8_foam_cube",
    "fig9_depth_ball",
    "four_bar",
    "hung_load",
    "loose_camera",
    "pneumatic_gripper",
    "pressed_ball",
    "robot_rigid",
    "robot_soft_feet",
    "sheet_flip",
    "sheet_on_moving_ball",
    "twisting_muscle",
    "two_soft_balls",
)
#: The derivative by the clock has a kink where a frame lies at t = 0 exactly: differences see half of it.
#: Corners of flush piles begin to touch with 1e-4 N and slide by 1e-7 m/s: friction turns round within 1e-9 m, less
#: than differences resolve, whatever its law.
FULL = {"foam_ball": {"recording.time_offset": 0.0005}, "flush_piles": {"contact.friction_law": "none"}}
#: Scenes whose steps have no derivative.
FORWARD = {"fig2_cylinder_exact"}
#: Full runs up to this many coordinates times steps are part of the default suite; these are not.
CHEAP = 5e5
HEAVY = {"falling_things", "fig2_cylinder_exact", "fig5_tori", "pile_in_bowl", "pneumatic_gripper", "twisting_muscle"}
DIFFERENTIABLE = [name for name in NAMES if name not in FORWARD]


@pytest.fixture
def load(request, monkeypatch):
    """Load a scene by name; skip one that needs recordings which are not there."""

    def load(name):
        path = SCENES / f"{name}.json"
        if "${ADD_DATA}" in path.read_text(encoding="utf-8"):
            monkeypatch.setenv("ADD_DATA", str(request.getfixturevalue("data_root")))
        return load_scene(path)

    return load


def expecting(command):
    raws = {name: json.loads((SCENES / f"{name}.json").read_text(encoding="utf-8")) for name in NAMES}
    return [name for name, raw in raws.items() if command in raw.get("expect", {})]


def test_there_are_scenes():
    assert len(NAMES) >= 7
    assert set(QUICK) <= set(NAMES) and set(FULL) <= set(NAMES) and FORWARD < set(NAMES)
    assert expecting("simulate") and expecting("optimize")


@pytest.mark.parametrize("name", NAMES)
def test_loads_builds_and_begins(load, name):
    """A scene says what it is, all of it fits, nobody is warned of it, and the first steps need no help."""
    scene = load(name)
    spec = scene
    assert spec.name and spec.description
    built = scene.build()
    assert built.simulation.n_steps == spec.time.n_steps
    assert set(spec.expect) <= {"simulate", "optimize"}
    size = built.model.system.n * built.simulation.n_steps
    assert name in HEAVY or "simulate" not in spec.expect or size <= CHEAP
    if spec.objective:
        problem, optimizer = check_optimization(scene)
        lower, upper = problem.bounds
        assert (lower <= problem.x0).all() and (problem.x0 <= upper).all()
        assert optimizer.phases
    if spec.check:
        assert spec.check.steps <= spec.time.n_steps
    for item in experiment_scenes(scene).values():
        assert warn({"scene": built if item is scene else item.build()}) == []
    trajectory = built.run(n_steps=min(8 if name in HEAVY else 15, built.simulation.n_steps))
    assert np.isfinite(trajectory.q).all() and np.isfinite(trajectory.v).all()
    assert [record.report.attempt for record in trajectory.records] == [0] * trajectory.n_steps


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in HEAVY else []) for name in expecting("simulate")]
)
def test_full_run_keeps_its_promise(load, tmp_path, name):
    result = simulate_scene(load(name), RunFolder(tmp_path / "run"))
    assert result["status"] == "done" and result["checks"]
    assert [f"{key}: {check}" for key, check in result["checks"].items() if not check["passed"]] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", expecting("optimize"))
def test_optimisation_keeps_its_promise(load, tmp_path, name):
    result = optimize_scene(load(name), RunFolder(tmp_path / "run"))
    assert result["status"] == "done" and result["checks"]
    assert [f"{key}: {check}" for key, check in result["checks"].items() if not check["passed"]] == []


def assert_confirmed(found):
    for item in found:
        errors = {p.name: p.replayed_error for p in item.parameters if p.replayed_error > 1e-6}
        assert item.passed, f"{errors}, Taylor rates {item.taylor_rates}, forward mode {item.forward_error:.1e}"
        assert any(p.adjoint != 0.0 for p in item.parameters)


def test_quick_checks_see_every_decision():
    """Over all scenes together, points that touch, stick and slip are differentiated."""
    assert {key for _, _, seen in QUICK.values() for key in seen} == set(ALL)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in LARGE else []) for name in DIFFERENTIABLE]
)
def test_gradient(load, name, monkeypatch):
    """Adjoint, held differences, Taylor rates and forward mode agree, with the decisions that the table promises.

    Of blocks of many numbers a few are differenced one by one, and all of them along the directions of the others.
    """
    monkeypatch.setattr("add.commands.check_gradient.SAMPLE", 6)
    changes, steps, expected = QUICK.get(name, ({}, 2, ()))
    found = check_gradients(apply_overrides(load(name), changes), n_steps=steps, free=False)
    assert_confirmed(found)
    for item in found:
        for key in expected:
            assert item.decisions.get(key, 0) > 0, f"nothing is {key}"


#: Scenes whose window ends before anything touches: the throw without a bounce.
FLIGHTS = {"fig10a_ball_to_point"}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FORWARD))
def test_gradients_of_exact_contact(load, name):
    """The cylinder touches in the fifth step from a lower start; 74 pairs stick and slip."""
    scene = apply_overrides(load(name), {"bodies.cylinder.position.2": -0.0375})
    found = check_gradients(scene, n_steps=6)
    assert_confirmed(found)
    last = scene.build().run(n_steps=6).records[-1]
    assert {Branch.STICK, Branch.SLIP} <= set(CarriedContacts.of(last.carry).branch.tolist())


@pytest.mark.slow
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradient_over_the_scene_s_own_window(load, name):
    scene = apply_overrides(load(name), FULL.get(name, {}))
    found = check_gradients(scene, free=False)
    assert_confirmed(found)
    if scene.obstacles and scene.check:
        for item in found:
            assert (item.decisions["touching"] > 0) is (name not in FLIGHTS)
