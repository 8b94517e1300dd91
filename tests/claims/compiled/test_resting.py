"""Compiled steps in which equations hold what rests, under hybrid friction, against those of the terms."""

import pickle
from typing import Any

import numpy as np
import pytest
from compiled.test_compiled_steps import assert_same, assert_same_tangents
from compiled.test_step_matrices import assert_same_step_jacobians
from support.compiled_runs import by_terms

from add.adjoint import Cotangents, pullback
from add.scene import scene_from_dict
from add.simulation.run import Simulation, Trajectory

SLOPE = {"shape": "plane", "point": [0, 0, 0], "normal": [0.2, 0, 1]}
BOX = {"type": "rigid", "geometry": {"shape": "box", "size": [0.1, 0.08, 0.06]}, "mass": 0.4}
#: Standing on the slope, a little above it.
LEANING = [np.cos(0.5 * np.arctan(0.2)), 0.0, np.sin(0.5 * np.arctan(0.2)), 0.0]


def cube(**more: Any) -> dict[str, Any]:
    return {"cube": BOX | {"position": [0.02, 0, 0.03], "orientation": LEANING} | more}


def rolling() -> dict[str, Any]:
    """A ball with its weight beside the middle, which rolls: what is held need not stand still."""
    ball = {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.05}, "mass": 0.3}
    start = {"position": [0, 0, 0.0499], "velocity": [0.5, 0, 0], "angular_velocity": [0, 10.0, 0]}
    return {"ball": ball | start | {"center_of_mass": [0.004, 0.001, 0.002]}}


def soft() -> dict[str, Any]:
    mesh = {"shape": "box", "size": [0.1, 0.1, 0.05], "divisions": [2, 2, 1]}
    material = {"model": "neo-hookean", "young": 2e5, "poisson": 0.4, "density": 300.0, "viscosity": 200.0}
    place = {"position": [0.03, 0, 0.03], "orientation": LEANING}
    return {"block": {"type": "soft", "element": "hex8", "mesh": mesh, "material": material} | place}


def leg() -> dict[str, Any]:
    """A trunk that swings on a leg, whose foot stands: links, and what rests beside what moves."""
    foot = {"geometry": {"shape": "box", "size": [0.12, 0.1, 0.02]}, "position": [0, 0, -0.19]}
    links = {
        "trunk": {"mass": 1.0, "inertia": [5e-3, 5e-3, 5e-3, 0, 0, 0], "center_of_mass": [0, 0, 0.05]},
        "leg": {"mass": 0.4, "inertia": [1e-3] * 3 + [0] * 3, "center_of_mass": [0, 0, -0.1], "shapes": [foot]},
    }
    hip = {"type": "hinge", "axis": [0, 1, 0], "stiffness": 20.0, "damping": 0.02, "rate": 0.5}
    trunk = {"type": "articulated", "base": "free", "position": [0, 0, 0.2], "links": links}
    return {"walker": trunk | {"joints": {"trunk": {"type": "fixed"}, "leg": hip}}}


def rough(neck: float, **more: Any) -> dict[str, Any]:
    """The leg with a hip whose dry friction holds, and a head on a ball joint that turns until its own does."""
    (walker,) = leg().values()
    head = {"mass": 0.2, "inertia": [2e-4] * 3 + [0] * 3, "center_of_mass": [0, 0, 0.02]}
    hip = {"type": "hinge", "axis": [0, 1, 0], "damping": 0.02, "dry_friction": 2.0} | more
    ball = {"type": "ball", "parent": "trunk", "position": [0, 0, 0.1], "dry_friction": neck, "rate": [0.3, 1.0, -2.0]}
    joints = {"trunk": {"type": "fixed"}, "leg": hip, "head": ball}
    links = walker["links"] | {"head": head}
    return {"walker": walker | {"dry_friction_law": "hybrid", "links": links, "joints": joints}}


def simulation(bodies: dict[str, Any], integrator: str = "bdf1", slope: bool = True, **more: Any) -> Simulation:
    ground = SLOPE if slope else SLOPE | {"normal": [0, 0, 1]}
    scene = {
        "schema": "add-scene/1", "time": {"dt": 0.004, "steps": 40, "integrator": integrator}, "bodies": bodies,
        "obstacles": {"floor": ground},
        "contact": {"friction_law": "hybrid", "friction": 0.5, "stiffness": 1e4, "damping": 40.0, "damping_ramp": 1e-3},
    }  # fmt: skip
    return scene_from_dict(scene | more).build().simulation


def held_in_blocks(run: Trajectory) -> int:
    """Return in how many steps of compiled blocks equations hold something."""
    return sum(n for _, block, n in run.records.blocks() if block is not None and block.mu.shape[1])


CASES = {
    "cube, bdf1": lambda: simulation(cube()),
    "cube, bdf2": lambda: simulation(cube(), "bdf2"),
    "two cubes": lambda: simulation(
        cube(orientation=[1, 0, 0, 0], position=[0, 0, 0.0299]) | {"other": BOX | {"position": [0.3, 0, 0.0299]}},
        slope=False,
    ),
    "one that slides": lambda: simulation(
        cube(orientation=[1, 0, 0, 0], position=[0, 0, 0.0299])
        | {"other": BOX | {"position": [0.3, 0, 0.0299], "velocity": [1.0, 0.2, 0]}},
        "bdf2",
        slope=False,
    ),
    "rolling ball": lambda: simulation(rolling(), slope=False),
    "soft": lambda: simulation(soft()),
    "leg": lambda: simulation(leg(), slope=False),
    "leg and joints": lambda: simulation(rough(0.08), slope=False),
}


@pytest.mark.parametrize("case", CASES)
def test_what_rests(case: str) -> None:
    one = CASES[case]()
    found, expected = assert_same(one, one.n_steps, 1e-8)
    assert held_in_blocks(found) > 15
    for k in (7, 21):
        assert np.array_equal(one.run(n_steps=one.n_steps, state=found.state(k)).q, found.q[k:]), "of the state alone"
    for mine, theirs in zip(found.records, expected.records, strict=True):
        assert mine.mu.size == theirs.mu.size
        assert np.allclose(mine.mu, theirs.mu, rtol=1e-6, atol=1e-6)
    assert_same_tangents(one, found)


def test_joints_that_slide_beside_what_is_held() -> None:
    """What slides, and what is let go, is that of the terms: joints stick and slip above a foot that stands."""
    one = simulation(rough(0.008, rate=0.8, dry_friction=0.3), slope=False)
    found, expected = assert_same(one, one.n_steps, 1e-8)
    contact, joints = one.system.deciding
    counts = [(contact.describe(r.decisions[0])["sticking"], joints.describe(r.decisions[1])) for r in found.records]
    assert sum(feet > 0 and here["sticking"] > 0 < here["slipping"] for feet, here in counts) > 5
    mine, theirs = (sum(r.report.iterations for r in run.records) for run in (found, expected))
    assert abs(mine - theirs) <= 0.1 * theirs
    assert held_in_blocks(found) > 10


def test_one_of_two_that_could_not_hold_both_does() -> None:
    """Two level rods of 1 kg and 1 m, whose hinges bear less than both weigh: the elbow holds while they fall as one.

    They begin so slowly that under the linear law both seem to hold.
    With alpha = (2 m g l - 1 N m) / (8 m l^2 / 3) the elbow bears m l^2 (1/12 + 3/4) alpha - m g l / 2 = 0.914 N m.
    """
    rod = {"mass": 1.0, "inertia": [1e-4, 1 / 12, 1 / 12, 0, 0, 0], "center_of_mass": [0.5, 0, 0]}
    hinge = {"type": "hinge", "axis": [0, 1, 0]}
    joints = {"upper": hinge | {"dry_friction": 1.0}, "fore": hinge | {"parent": "upper", "dry_friction": 3.0}}
    joints["fore"]["position"] = [1.0, 0, 0]
    arm = {"type": "articulated", "base": "fixed", "links": {"upper": rod, "fore": rod}, "joints": joints}
    bodies, time = {"arm": arm | {"dry_friction_law": "hybrid"}}, {"dt": 1e-5, "steps": 10, "integrator": "bdf1"}
    run = scene_from_dict({"schema": "add-scene/1", "time": time, "bodies": bodies}).build().run()
    assert held_in_blocks(run) == 9
    alpha = (2.0 * 9.81 - 1.0) / (8.0 / 3.0)
    assert np.allclose(run.v[-1], [alpha * 1e-4, 0.0], rtol=1e-6, atol=1e-15)
    torque = alpha * (1 / 12 + 0.75) - 0.5 * 9.81
    for record in run.records:
        assert np.isclose(np.linalg.norm(record.mu), abs(torque), rtol=1e-6)


def test_only_what_may_be_held_is_asked() -> None:
    """Feet creep under the linear law, while joints slip whose friction would hold: nothing is to be held."""
    contact = {"friction_law": "linear", "friction": 0.5, "stiffness": 1e4, "damping": 40.0, "damping_ramp": 1e-3}
    one = simulation(rough(1e-3, rate=0.8, dry_friction=1e-3), slope=False, contact=contact)
    run = one.run()
    feet, joints = one.system.deciding
    said = [(feet.describe(r.decisions[0]), joints.describe(r.decisions[1])) for r in run.records]
    assert sum(foot["sticking"] > 0 and joint["slipping"] == 2 for foot, joint in said) > 30
    assert sum(n for _, block, n in run.records.blocks() if block is not None) > 30


def pulled() -> Simulation:
    """A cube on the floor, tied by a spring to a hand that moves away."""
    signals = {"pull": {"type": "table", "times": [0, 0.3], "values": [[0, 0, 0], [0.06, 0.005, 0]]}}
    hand = {"type": "kinematic", "geometry": {"shape": "sphere", "radius": 0.01}, "position": [0.2, 0, 0.05]}
    bodies = cube(orientation=[1, 0, 0, 0]) | {"hand": hand | {"translation": {"signal": "pull"}}}
    ends = {"a": {"body": "cube", "at": [0.07, 0, 0.02]}, "b": {"body": "hand", "at": [0.2, 0, 0.05]}}
    tie = {"tie": ends | {"type": "spring", "stiffness": 60.0, "damping": 0.5}}
    return simulation(bodies, slope=False, signals=signals, couplings=tie, time={"dt": 0.004, "steps": 75})


def test_what_is_pulled_until_it_slides() -> None:
    """Held as long as reactions bear it; the step in which they do not is that of the terms."""
    one = pulled()
    found, _ = assert_same(one, 75, 1e-8)
    held = [record.mu.size > 0 for record in found.records]
    assert held_in_blocks(found) > 15
    assert held[20] and not held[-1] and np.abs(found.v[-1][:3]).max() > 0.05


def test_matrices_of_single_steps() -> None:
    """Forward and back from one state, by the given motion and by numbers."""
    one = pulled()
    run = one.run(n_steps=20)
    assert run.records[-1].mu.size == 12
    again = pickle.loads(pickle.dumps(run))
    assert np.array_equal(again.records[-1].mu, run.records[-1].mu)
    bars = Cotangents(*np.random.default_rng(1).normal(size=(2, *run.q.shape)))
    assert np.array_equal(pullback(one, again, one.theta, bars), pullback(one, run, one.theta, bars))
    mine, theirs = (pullback(s, run, one.theta, bars) for s in (one, by_terms(one)))
    assert np.abs(mine - theirs).max() <= 1e-9 * np.abs(theirs).max()
    assert_same_step_jacobians(one, 20, 2, True)
