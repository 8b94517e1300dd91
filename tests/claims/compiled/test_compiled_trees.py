"""Compiled steps of trees of links against those of the terms."""

import json
from pathlib import Path

import numpy as np
import pytest
from compiled.test_compiled_steps import assert_same, assert_same_tangents
from derivatives.test_tree_parts import scene as lengths_scene
from derivatives.test_trees import scene
from support.places import SCENES

from add.compiled.structure import FIRST, STRUCTURE, Moves
from add.scene import load_scene, scene_from_dict
from add.scene.build.built import BuiltScene


def built(law: str, integrator: str) -> BuiltScene:
    raw = scene(law)
    raw["time"] = {"dt": 0.005, "steps": 25, "integrator": integrator}
    return scene_from_dict(raw).build()


@pytest.mark.parametrize("law", ["none", "linear", "tanh"])
@pytest.mark.parametrize("integrator", ["bdf1", "bdf2"])
def test_every_joint_and_law(integrator: str, law: str) -> None:
    """Two trees and a rigid body with all kinds of joints, drives, limits, springs between links, and contact."""
    simulation = built(law, integrator).simulation
    found, expected = assert_same(simulation, 25)
    if integrator == "bdf2":
        assert_same_tangents(simulation, found)
    assert sum(len(d) for record in found.records for d in record.decisions) > 20, "links touch"
    mine, theirs = ([r.report for r in run.records] for run in (found, expected))
    assert [r.iterations for r in mine] == [r.iterations for r in theirs]
    assert np.allclose([r.tolerance for r in mine], [r.tolerance for r in theirs], rtol=1e-9)


@pytest.mark.parametrize("integrator", ["bdf1", "bdf2"])
def test_tendons_actuators_and_balls(integrator: str) -> None:
    """Friction and stops of balls, tendons with all their laws, drives on them, one of them at its limit."""
    raw = lengths_scene() | {"time": {"dt": 0.004, "steps": 40, "integrator": integrator}}
    simulation = scene_from_dict(raw).build().simulation
    kinds = [kind.name for kind in simulation.packed.kinds]
    assert kinds.count("ball_law") == 3 and "laws_of_lengths" in kinds and kinds.count("drive_of_length") == 4
    found, _ = assert_same(simulation, 40)
    if integrator == "bdf2":
        assert_same_tangents(simulation, found)


@pytest.mark.parametrize("name", ["double_pendulum_tree", "reaching_arm"])
def test_scenes(name: str, data_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADD_DATA", str(data_root))
    simulation = load_scene(SCENES / f"{name}.json").build().simulation
    assert_same(simulation, min(simulation.n_steps, 80))


@pytest.mark.parametrize("shaken", [False, True])
def test_joints_that_follow_signals(shaken: bool) -> None:
    """Signals of one number, for joints, alone and beside one of three, for a body."""
    raw = json.loads((SCENES / "swimmer.json").read_text(encoding="utf-8"))
    if shaken:
        raw["signals"]["shake"] = {"type": "sine", "amplitude": [0.1, 0.02, 0.05], "frequency": 2.0}
        raw["bodies"]["block"] = {
            "type": "kinematic", "geometry": {"shape": "box", "size": [0.1, 0.1, 0.1]}, "position": [0.0, 0.0, 1.0],
            "translation": {"signal": "shake"},
        }  # fmt: skip
    simulation = scene_from_dict(raw).build().simulation
    _, _, fields = simulation.packed.arrays
    assert fields[FIRST[STRUCTURE.index(Moves)] + Moves._fields.index("rows"), 2] == 3, "as many are read of each row"
    assert_same(simulation, 20)


def test_numbers_that_are_changed_in_place() -> None:
    """Steps by hand: a given motion begins where theta says when a step is taken, not at the first one."""
    raw = lengths_scene() | {"time": {"dt": 0.004, "steps": 9}}
    raw["bodies"]["arm"]["joints"]["trunk"]["motion"] = {"signal": "wanted"}
    simulation = scene_from_dict(raw).build().simulation
    assert simulation.packed is not None
    place = simulation.system.parameters["bodies.arm.joints.trunk.value"].start
    ends = []
    for fresh in (False, True):
        theta, assembler = simulation.theta.copy(), simulation.assembler()
        state, _ = simulation.begin(assembler, theta)
        for k in range(6):
            theta[place] += 0.002 * k
            state, _ = simulation.step(state, theta.copy() if fresh else theta, assembler=assembler)
        ends.append(state.q)
    assert np.array_equal(*ends) and np.abs(ends[0][0] - ends[0][1]).max() > 1e-4
