"""Compiled steps of trees of links against those of the terms."""

import json
from pathlib import Path

import numpy as np
import pytest
from bodies.test_tree_loops import ROD, four_bar
from compiled.test_compiled_steps import assert_same, assert_same_from_states, assert_same_tangents
from compiled.test_step_matrices import assert_same_step_jacobians
from derivatives.test_tree_parts import scene as lengths_scene
from derivatives.test_trees import scene
from support.places import SCENES

from add.adjoint import Checkpoints, Cotangents, States, pullback, rollout_batch, value_and_gradient
from add.commands.check_gradient import probe
from add.compiled.structure import FIRST, STRUCTURE, Moves
from add.scene import load_scene, scene_from_dict
from add.scene.build.built import BuiltScene
from add.scene.build.step_batch import step_batch


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
    assert np.allclose([r.tolerance for r in mine], [r.tolerance for r in theirs], rtol=1e-9, atol=0.0)


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


def held(loop: str, integrator: str, law: str, moved: bool) -> BuiltScene:
    """A four-bar that meets the floor, two geared joints, and an element of which one point stays and one is led."""
    raw = four_bar(loop)
    bar, turned = raw["bodies"]["bar"], {"axis": [0, 1, 0]}
    ball = {"geometry": {"shape": "sphere", "radius": 0.03}, "position": [0.15, 0, -0.03]}
    bar["links"] |= {"rocker": ROD | {"shapes": [ball]}, "upper": ROD, "lower": ROD}
    bar["joints"]["crank"] |= {"rate": 9.0} if not moved else {"motion": {"signal": "turn"}}
    if moved:
        del bar["joints"]["crank"]["rate"]
    bar["joints"] |= {
        "upper": turned | {"position": [0, 0.3, 0], "value": 0.3, "rate": 1.0},
        "lower": turned | {"parent": "upper", "position": [0.25, 0, 0], "value": 0.4},
    }
    bar["loops"]["geared"] = {"type": "joints", "joint": "lower", "other": "upper", "coefficients": [0.1, -2.0, 0.3]}
    bar["drives"] = {"motor": {"joint": "upper", "input": {"signal": "torque"}}}
    raw["bodies"]["cube"] = {
        "type": "soft", "element": "hex8", "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "divisions": [1, 1, 1]},
        "material": {"model": "neo-hookean", "young": 2e4, "poisson": 0.4, "density": 300.0, "viscosity": 10.0},
        "anchors": [{"at": [0.03, 0.02, 0.05]}, {"at": [-0.03, 0.0, 0.05], "place": {"signal": "led"}}],
        "position": [1.0, 0, 0.3],
    }  # fmt: skip
    raw["signals"] = {
        "led": {"type": "table", "times": [0, 0.1], "values": [[0.97, 0, 0.35], [0.975, 0.01, 0.36]]},
        "torque": {"type": "constant", "value": 0.2},
    } | ({"turn": {"type": "table", "times": [0, 1], "values": [0, 9]}} if moved else {})
    raw["obstacles"] = {"floor": {"shape": "plane", "point": [0, 0, 0.045], "normal": [0, 0, 1]}}
    raw["contact"] |= {"friction": 0.4, "friction_law": law, "stiffness": 2000, "damping": 5, "damping_ramp": 0.002}
    raw["time"] = {"dt": 2e-3, "steps": 90, "integrator": integrator}
    if law == "linear":
        raw["time"]["newton"] = {"norm": "l1", "reuse": 0.3}
    return scene_from_dict(raw).build()


@pytest.mark.parametrize(
    ("loop", "integrator", "law", "moved"),
    [("hinge", "bdf2", "tanh", False), ("point", "bdf1", "linear", True), ("hinge", "bdf1", "hybrid", False)],
)
def test_loops_couplings_and_held_points(loop: str, integrator: str, law: str, moved: bool) -> None:
    """By multipliers, under both norms, on coordinates, links and nodes; what touches slides, or is held, too."""
    simulation = held(loop, integrator, law, moved).simulation
    kinds = [kind.name for kind in simulation.packed.kinds]
    assert kinds[-4:] == ["points", "points", "loops", "couplings"]
    found, expected = assert_same(simulation, 90)
    touching = [sum(d.shape[0] for d in record.decisions) for record in found.records]
    assert touching[30] == 0 and sum(touching) > 5, "first without, then with contact"
    assert_same_from_states(simulation, simulation.run(n_steps=40))
    if law == "tanh":
        assert_same_tangents(simulation, found)
        mine, theirs = ([r.report for r in run.records] for run in (found, expected))
        assert [r.iterations for r in mine] == [r.iterations for r in theirs]
        assert np.allclose([r.tolerance for r in mine], [r.tolerance for r in theirs], rtol=1e-9, atol=0.0)
    if law != "hybrid":
        assert_same_step_jacobians(simulation, 90, 1, moved)


def test_loops_in_parts_and_batches() -> None:
    """What is recomputed, made again from states, or taken beside others has the multipliers of the run, to the bit."""
    built = held("hinge", "bdf2", "tanh", False)
    simulation, objective, theta = built.simulation, probe(built, 40, 0), built.theta
    whole = value_and_gradient(simulation, objective, n_steps=40)
    for schedule in (Checkpoints(9), States()):
        parts = value_and_gradient(simulation, objective, n_steps=40, schedule=schedule)
        assert whole.value == parts.value and np.array_equal(whole.gradient, parts.gradient)
    run = simulation.run(n_steps=40)
    bars = Cotangents(*np.random.default_rng(2).normal(size=(2, *run.q.shape)))
    batch = rollout_batch(simulation, np.stack([theta, theta]), n_steps=40, workers=1)
    assert np.array_equal(batch.q[1], run.q)
    pulled = batch.pullback(np.stack([bars.q] * 2), np.stack([bars.v] * 2)).theta
    assert np.array_equal(pulled[1], pullback(simulation, run, theta, bars))
    function, ks = built.step_function(("torque",), ()), np.array([3, 30])
    q, v = (np.stack([getattr(run.state(k), name) for k in ks]) for name in "qv")
    torque, step_bars = np.array([0.1, -0.2]), np.random.default_rng(4).normal(size=(2, *q.shape))
    many = step_batch(function, q, v, ks, {"torque": torque}, {})
    pulled_steps = many.pullback(*step_bars)
    assert many._members is not None and many._members.found.all(), "all steps are compiled"
    for i, k in enumerate(ks):
        alone = function(run.state(k), {"torque": torque[i]})
        assert np.array_equal(many.q[i], alone.state.q)
        assert np.array_equal(many.step(i).record.mu, alone.record.mu) and alone.record.mu.size == 9
        back = alone.vjp(*step_bars[:, i])
        assert np.array_equal(pulled_steps[0][i], back.q)
        assert np.array_equal(pulled_steps[2]["torque"][i], back.control["torque"]) and back.control["torque"].any()
