"""Stops of joints that nobody gave a stiffness bear what presses them, and a run says which give way."""

import numpy as np
import pytest

from add import scene_from_dict
from add.commands.pair_logs import StopLog
from add.commands.run_summary import summary

LENGTH, ANGLE, WAY = 1.5, 0.2, 0.5


def arm(mass: float, **stop: float):
    """A rod that falls onto the stop of its hinge, level at the start."""
    rod = mass * LENGTH**2 / 12
    link = {"mass": mass, "inertia": [0.1 * rod, rod, rod, 0, 0, 0], "center_of_mass": [LENGTH / 2, 0, 0]}
    joint = {"child": "rod", "axis": [0, 1, 0], "lower": -ANGLE, "upper": ANGLE, **stop}
    return falling({"type": "articulated", "links": {"rod": link}, "joints": {"first": joint}})


def slide(mass: float, **stop: float | None):
    """A mass that slides down onto its stop."""
    link = {"mass": mass, "inertia": [mass, mass, mass, 0, 0, 0]}
    joint = {"type": "slide", "child": "cart", "axis": [0, 0, -1], "lower": 0.0, "upper": WAY, **stop}
    return falling({"type": "articulated", "links": {"cart": link}, "joints": {"rail": joint}})


def falling(body: dict):
    """Two seconds of a body named "arm"."""
    time, gravity = {"dt": 0.005, "steps": 400}, [0, 0, -9.81]
    scene = {"schema": "add-scene/1", "time": time, "gravity": gravity, "bodies": {"arm": body}}
    return scene_from_dict(scene).build()


@pytest.mark.parametrize("mass", [0.05, 2.0, 60.0, 2000.0])
@pytest.mark.parametrize(("of", "allowed"), [(arm, 0.01), (slide, 0.01 * WAY)])
def test_weight_hardly_presses_into_a_stop(of, allowed, mass):
    """In equilibrium m g l cos(q)/2 of the rod, or m g, over the stiffness, and half of the onset."""
    built = of(mass)
    run = built.simulation.run()
    beyond = run.q[-1, 0] - (ANGLE if of is arm else WAY)
    assert 0.0 < beyond < allowed + 5e-4
    assert np.abs(run.v[-1]).max() < 0.01 * np.abs(run.v).max()
    assert "beyond_stops" not in summary(built, run, built.theta)


def test_light_ones_have_the_numbers_of_before_and_given_ones_stay():
    numbers = arm(0.001).numbers
    for key, value in (("limit_stiffness", 1e3), ("limit_damping", 1.0)):
        assert numbers.layout.view(numbers.values, f"bodies.arm.joints.first.{key}") == value
    built = arm(60.0, limit_stiffness=500.0)
    run = built.simulation.run()
    (said,) = summary(built, run, built.theta)["beyond_stops"]
    assert said["beyond"] == pytest.approx(run.q.max() - ANGLE)
    assert said["warning"]
    assert "arm/first goes 1." in said["text"]


def test_a_slide_with_one_stop_bears_its_weight():
    """A way without an end counts as a metre."""
    for mass in (0.05, 100.0, 2000.0):
        built = slide(mass, lower=None)
        run = built.simulation.run()
        assert 0.0 < run.q[-1, 0] - WAY < 0.0105
        assert "beyond_stops" not in summary(built, run, built.theta)
    built = slide(100.0, lower=None, limit_stiffness=1000.0)
    (said,) = summary(built, built.simulation.run(), built.theta)["beyond_stops"]
    assert said["beyond"] > 0.9


def test_a_leader_bears_what_follows_it():
    """A small link leads a heavy one, which turns twice as far."""
    inertia = [1e-4, 1e-4, 1e-4, 0, 0, 0]
    links = {"small": {"mass": 0.01, "inertia": inertia},
             "large": {"mass": 60.0, "inertia": inertia, "center_of_mass": [0.75, 0, 0]}}  # fmt: skip
    lead = {"child": "small", "axis": [0, 1, 0], "lower": -ANGLE, "upper": ANGLE}
    follow = {"child": "large", "axis": [0, 1, 0], "mimic": {"joint": "lead", "factor": 2.0}}
    built = falling({"type": "articulated", "links": links, "joints": {"lead": lead, "follow": follow}})
    run = built.simulation.run()
    assert 0.0 < run.q[-1, 0] - ANGLE < 0.0105


def test_a_ball_beyond_its_stop_is_said():
    link = {"mass": 2.0, "inertia": [0.1, 0.1, 0.1, 0, 0, 0], "center_of_mass": [0.75, 0, 0]}
    joint = {"type": "ball", "child": "rod", "upper": ANGLE, "limit_stiffness": 10.0}
    built = falling({"type": "articulated", "links": {"rod": link}, "joints": {"socket": joint}})
    run = built.simulation.run(n_steps=150)
    (said,) = summary(built, run, built.theta)["beyond_stops"]
    assert said["beyond"] == pytest.approx(np.linalg.norm(run.q, axis=1).max() - ANGLE)


def test_of_a_start_beyond_its_stop_what_goes_further_is_said_however_a_run_is_cut():
    """`add check` says it of the start, and a stiffer stop would not help."""
    built = arm(2.0, value=ANGLE + 0.2)
    assert "beyond_stops" not in summary(built, built.simulation.run(n_steps=20), built.theta)
    built = arm(60.0, value=ANGLE + 0.06, limit_stiffness=500.0)
    assert "beyond_stops" not in summary(built, built.simulation.run(n_steps=10), built.theta)
    run = built.simulation.run()
    whole = StopLog()
    whole.add(built, run, built.theta)
    parts = StopLog()
    first = built.simulation.run(n_steps=200)
    for part in (first, built.simulation.run(state=first.state(200))):
        parts.add(built, part, built.theta)
    assert whole.described() == parts.described() != []


def test_legs_bear_their_robot():
    """A hip of a robot that stands free, and the same of one that hangs."""
    leg = {"mass": 1.0, "inertia": [0.01, 0.01, 0.01, 0, 0, 0], "center_of_mass": [0, 0, -0.3]}
    links = {"trunk": {"mass": 30.0, "inertia": [1, 1, 1, 0, 0, 0]}, "leg": leg}
    hip = {"parent": "trunk", "child": "leg", "axis": [0, 1, 0], "lower": -0.5, "upper": 0.5}
    for base, bears in (("free", 31 * 9.81 * 0.3), ("fixed", 1.0 * 9.81 * 0.3)):
        joints = {"trunk": {"type": "fixed" if base == "free" else "ball"}, "hip": hip}
        numbers = falling({"type": "articulated", "base": base, "links": links, "joints": joints}).numbers
        stiffness = numbers.layout.view(numbers.values, "bodies.arm.joints.hip.limit_stiffness")
        assert stiffness == pytest.approx(max(1e3, bears * 0.6 / 0.05**2), rel=5e-3), base
