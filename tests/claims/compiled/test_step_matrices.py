"""Derivatives of steps in one compiled call against those of the terms, by states, controls and numbers."""

from typing import Any

import numpy as np
import pytest
from derivatives.test_trees import scene
from support.compiled_runs import by_terms
from support.places import SCENES
from support.rigid_models import linkage

from add.scene import load_scene, scene_from_dict
from add.simulation import BDF, Step
from add.simulation.run import Simulation
from add.simulation.step_jacobians import InputJacobian
from add.simulation.stepper import TakenStep
from add.typing import FloatArray
from benchmarks.articulated import MODELS, ROBOTS, robot

#: Scenes that take compiled steps, with how far into a run their controls and contacts act.
STEPS = {
    "strings_cube": 20, "bands_cubes": 20, "robot_rigid": 10, "sheet_flip": 20, "cartpole_swing_up": 20,
    "double_pendulum_swing_up": 20, "reaching_arm": 20,
}  # fmt: skip

#: Scenes some of whose coordinates follow a given motion: one call gives the matrices, and Python the tangents.
MOVED = ("strings_cube", "bands_cubes", "sheet_flip", "linkage")


def controls_of(simulation: Simulation) -> list[str]:
    """Return the blocks of theta that hold coefficients of signals, those of given motions included."""
    system = simulation.system
    own = [*system.inputs, *(move.rows.ravel() for move in system.motion.moves)]
    read = np.zeros(system.parameters.n, dtype=bool)
    for rows in own:
        read[rows[rows >= 0]] = True
    return sorted(entry.name for entry in system.parameters.entries if read[entry.slice].any())


def of_entries(column: InputJacobian, width: int) -> list[FloatArray]:
    """Return the derivatives of q and v by all entries: columns of zeros may be kept or not."""
    out = np.zeros((2, len(column.q), width))
    out[:, :, column.index] = column.q, column.v
    return list(out)


def assert_same_step_jacobians(simulation: Simulation, steps: int, contacts: int, moved: bool = False) -> None:
    """All derivatives of the last of the steps with most contacts are those of the terms to 1e-9."""
    terms = by_terms(simulation)
    assert simulation.packed is not None and terms.packed is None
    run, controls = terms.run(n_steps=steps), controls_of(simulation)
    assert controls
    numbers = [e.name for e in simulation.system.parameters.entries if 0 < e.size < 10 and e.name not in controls]
    touching = [sum(d.shape[0] for d in record.decisions if d.ndim == 2) for record in run.records]
    assert max(touching) >= contacts, "contacts have to act"
    step, acted = run.step(max(range(steps), key=lambda k: (touching[k], k))), 0.0
    for parameters in ([], numbers[:: max(1, len(numbers) // 8)]):
        inner = simulation.step_derivatives(controls=controls, parameters=parameters)
        taken = TakenStep(inner.assembler, step.record, inner.theta)
        one_call = inner.stepper.step_matrices(taken, inner.directions(0))
        assert (one_call is None) == (moved or step.record.unchanged is not None)
        found = inner.jacobians(step)
        wanted = terms.step_derivatives(controls=controls, parameters=parameters).jacobians(step)
        assert found.n_read == wanted.n_read
        assert np.abs(found.transition - wanted.transition).max() <= 1e-9 * np.abs(wanted.transition).max()
        mine, theirs = (x.controls | x.parameters for x in (found, wanted))
        assert list(mine) == [*controls, *parameters]
        for name, column in theirs.items():
            width = 1 + max(item.index.max(initial=0) for item in (mine[name], column))
            for a, b in zip(of_entries(mine[name], width), of_entries(column, width), strict=True):
                assert np.abs(a - b).max(initial=0.0) <= 1e-9 * np.abs(b).max(initial=1e-20), name
        acted = max(acted, *(float(np.abs(wanted.controls[name].v).max(initial=0.0)) for name in controls))
    assert acted > 0.0, "controls have to act"


@pytest.mark.parametrize("name", STEPS)
def test_scenes_with_controls(name: str) -> None:
    simulation = load_scene(SCENES / f"{name}.json").build().simulation
    touches = name in ("strings_cube", "bands_cubes", "robot_rigid", "sheet_flip")
    assert_same_step_jacobians(simulation, STEPS[name], int(touches), name in MOVED)


@pytest.mark.parametrize("integrator", ["bdf1", "bdf2"])
def test_a_tree_with_every_drive(integrator: str) -> None:
    """A servo, a torque, a velocity servo at its limit, two of them by signals that change in time."""
    raw = scene("tanh")
    raw["time"] = {"dt": 0.005, "steps": 12, "integrator": integrator}
    assert_same_step_jacobians(scene_from_dict(raw).build().simulation, 12, 4)


@pytest.mark.parametrize("name", ["half-cheetah", "jump-worm", "catapult"])
@pytest.mark.skipif(not MODELS.is_dir(), reason="the models of robots are not there")
def test_robots_on_the_ground(name: str) -> None:
    how = next(how for key, *how in ROBOTS if key == name)
    simulation = robot(*how, steps=30).simulation
    assert_same_step_jacobians(simulation, 30, 0 if name == "half-cheetah" else 16)
    differences(simulation, simulation.run(n_steps=30).step(29))


def test_every_coupling() -> None:
    """Motor, torque and force by signals; the hand is dragged by a given motion."""
    _, simulation = linkage(BDF(2e-3, 2))
    assert_same_step_jacobians(simulation, 30, 0, moved=True)


def driven() -> dict[str, Any]:
    """One signal pushes two nodes of a net and both blocks, another turns one of the blocks; all slide on a floor."""
    box = {"type": "rigid", "mass": 0.5, "geometry": {"shape": "box", "size": [0.1, 0.1, 0.1]}}
    return {
        "schema": "add-scene/1",
        "time": {"dt": 0.005, "steps": 30, "integrator": "bdf2"},
        "bodies": {
            "first": box | {"position": [0, 0, 0.049]},
            "second": box | {"position": [0.3, 0, 0.049]},
            "net": {"type": "particles", "mass": 0.03, "stiffness": 80.0, "damping": 0.02, "position": [0, 0.4, 0.1],
                    "mesh": {"points": [[0, 0, 0], [0.05, 0, 0], [0, 0.06, 0]], "edges": [[0, 1], [1, 2], [0, 2]]},
                    "loads": [{"where": {"nodes": [0, 2]}, "force": {"signal": "push"}}]},
        },
        "signals": {
            "push": {"type": "control", "basis": "cubic", "rows": 6, "values": [[0.4, 0.1, 0]] * 6},
            "turn": {"type": "control", "basis": "constant", "rows": 5, "values": [[0, 0, 0.02]] * 5},
        },
        "couplings": {
            "a": {"type": "force", "on": {"body": "first", "at": [0.02, 0, 0.05]}, "force": {"signal": "push"}},
            "b": {"type": "force", "on": {"body": "second"}, "force": {"signal": "push"}},
            "c": {"type": "torque", "body": "second", "torque": {"signal": "turn"}},
        },
        "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
        "contact": {"friction": 0.3, "friction_law": "tanh", "stiffness": 2000, "damping": 5, "damping_ramp": 0.01},
    }  # fmt: skip


def test_one_signal_that_drives_several() -> None:
    simulation = scene_from_dict(driven()).build().simulation
    assert_same_step_jacobians(simulation, 30, 4)
    step = simulation.run().step(14)
    found = simulation.step_derivatives(controls=controls_of(simulation)).jacobians(step)
    push = next(item for name, item in found.controls.items() if "push" in name)
    assert push.index.size == 12, "four rows of a cubic act, with three directions each"
    assert (np.abs(push.v).max(axis=1) > 0.0).sum() >= 15
    differences(simulation, step)


def differences(simulation: Simulation, step: Step) -> None:
    """Columns of controls are replayed differences of the step."""
    assembler, layout = simulation.assembler(), simulation.system.parameters
    for name, column in simulation.step_derivatives(controls=controls_of(simulation)).jacobians(step).controls.items():
        for k in (0, column.index.size // 2, column.index.size - 1) if column.index.size else ():
            errors = []
            for h in (1e-3, 1e-4, 1e-5):
                ends = []
                for sign in (1.0, -1.0):
                    theta = simulation.theta.copy()
                    theta[layout[name].start + column.index[k]] += sign * h
                    ends.append(simulation.differentiable.step(assembler, step.before, theta, step.record)[0].v[0])
                found = (ends[0] - ends[1]) / (2.0 * h)
                errors.append(np.abs(column.v[:, k] - found).max() / np.abs(found).max())
            assert min(errors) <= 1e-6, (name, k, errors)
