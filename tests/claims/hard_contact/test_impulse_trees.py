"""Contact in velocities on links of trees: gradients of whole runs, stops of joints, known answers."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from fuzz.default_drops import drop
from support.impulse_scenes import CUBE, end_and_slopes, scene
from support.places import ROOT, SPECS
from support.run_checks import check_gradient_of_run
from support.small_models import RoughObjective
from support.walker import TURNED, walker

import add
from add.adjoint import evaluate, pushforward, value_and_gradient
from add.errors import InputError
from add.hard_contact import ImpulseContact, ImpulseOptions, with_impulse_contact
from add.hard_contact.impulse_coupling import CarriedImpulses
from add.kernels.cone_modes import SEPARATE, SLIDE, STICK
from add.scene.build.built import BuiltScene
from add.scene.build.run_data import Energies
from add.simulation.run import Trajectory
from scripts.reproduction.robot_jacobians import WORM
from scripts.reproduction.robot_scenes import robot_scene

#: Turns z into y: the axis of a hinge that closes a loop.
AXIS_Y = [0.7071067811865476, -0.7071067811865476, 0, 0]


def tree_scene(body: dict, *, dt: float, steps: int, **more) -> dict:
    """A tree over a plane."""
    raw = scene({}, dt=dt, steps=steps, **more)
    raw["bodies"] = {"body": {"type": "articulated", **body}}
    return raw


def seen(built: BuiltScene, run: Trajectory) -> tuple[Counter, Counter]:
    """Return how often contacts and stops are in each mode."""
    contacts, stops = Counter(), Counter()
    for record in run.records:
        kept = CarriedImpulses.of(record.carry)
        k = kept.near.pair.size
        contacts.update(kept.modes[:k].tolist())
        stops.update(kept.modes[k:].tolist())
    return contacts, stops


SLOW = pytest.mark.slow


@pytest.mark.parametrize("steps", [22, pytest.param(70, marks=SLOW)])
def test_gradient_of_a_walker(steps: int) -> None:
    """Every number, through contacts that stick, slide and part, and through stops of joints."""
    low = {"position": [0, 0, 0.4], "velocity": [0.3, 0.1, -0.2], "angular_velocity": [0.3, 0.2, -0.7]}
    body = walker() | (low if steps < 70 else {})
    built = add.scene_from_dict(tree_scene(body, dt=0.005, steps=steps, friction=0.5 if steps < 70 else 0.35)).build()
    contacts, stops = seen(built, built.run())
    assert contacts[STICK] and contacts[SLIDE] and (contacts[SEPARATE] or steps < 70)
    assert stops[STICK] and stops[SEPARATE]
    n = built.model.system.n
    check_gradient_of_run(built.simulation, RoughObjective(np.random.default_rng(1).normal(size=n)))


@pytest.mark.slow
@pytest.mark.parametrize("e", [0.0, 0.5])
def test_gradient_between_trees_and_bodies(e: float) -> None:
    """An arm that stands on a turned base sweeps a box over the floor, and its hand is folded onto its first link."""
    slim = {"geometry": {"shape": "box", "size": [0.05, 0.05, 0.3]}, "position": [0.01, 0.02, -0.15]}
    tip = {"geometry": {"shape": "sphere", "radius": 0.04}, "position": [0, 0, -0.1]}
    arm = {
        "position": [0, 0, 0.62], "orientation": [0.9950041652780258, 0, 0, 0.09983341664682815],
        "self_collision": True,
        "links": {"upper": {"mass": 0.8, "shapes": [slim]}, "lower": {"mass": 0.5, "shapes": [slim]},
                  "hand": {"mass": 0.2, "shapes": [tip]}},
        "joints": {
            "upper": {"axis": [0.1, 1, 0], "value": 0.3, "rate": -2.4},
            "lower": {"parent": "upper", "type": "slide", "axis": [0, 0, -1], "position": [0, 0, -0.1], "value": 0.05,
                      "lower": -0.1, "upper": 0.12, "rate": 1.5},
            "hand": {"parent": "lower", "type": "ball", "position": [0, 0, -0.3], "damping": 0.02,
                     "stiffness": 0.5, "value": [0.1, 2.0, 0.3]},
        }, "limits": "hard",
    }  # fmt: skip
    pairs = [{"between": ["body", "box"], "restitution": e}] if e else []
    raw = tree_scene(arm, dt=0.004, steps=26 if e else 40, friction=0.3, pairs=pairs)
    raw["contact"]["between_bodies"] = True
    raw["bodies"]["box"] = {
        "type": "rigid", "mass": 0.4, "geometry": {"shape": "box", "size": [0.12, 0.2, 0.2]},
        "position": [-0.28, 0, 0.101],
    }  # fmt: skip
    built = add.scene_from_dict(raw).build()
    run = built.run()
    contacts, stops = seen(built, run)
    assert contacts[STICK] and contacts[SLIDE] and stops[STICK]
    impacts = sum(CarriedImpulses.of(record.carry).near.impact.sum() for record in run.records)
    assert bool(impacts) is (e > 0.0)
    n = built.model.system.n
    check_gradient_of_run(built.simulation, RoughObjective(np.random.default_rng(2).normal(size=n)))


@pytest.mark.parametrize(("e", "impact_time"), [(0.0, "step"), (0.5, "step"), (0.5, "linear")])
def test_a_free_link_is_a_rigid_body(e: float, impact_time: str) -> None:
    """A cube that tumbles over the floor, in both forms: the same states to round-off."""
    pose = {
        "position": [0, 0, 0.25], "orientation": TURNED, "velocity": [0.8, 0.1, -0.5], "angular_velocity": [1, 5, 2],
    }  # fmt: skip
    pairs = [{"body": "body", "obstacle": "floor", "restitution": e}] if e else []
    geometry = {"shape": "box", "size": [0.2, 0.15, 0.1]}
    runs = []
    for body in (
        {"type": "rigid", "mass": 1.0, "geometry": geometry, **pose},
        {"type": "articulated", "base": "free", "links": {"a": {"mass": 1.0, "shapes": [{"geometry": geometry}]}},
         "joints": {"a": {}}, **pose},
    ):  # fmt: skip
        raw = scene(CUBE, dt=0.004, steps=120, friction=0.3, pairs=pairs)
        raw["contact"]["impact_time"] = impact_time
        raw["bodies"]["body"] = body
        runs.append(add.scene_from_dict(raw).build().run())
    assert sum(CarriedImpulses.of(record.carry).modes.size for record in runs[0].records) > (2 if e else 30)
    # The rigid body flies by compiled steps, another way to the same tolerance.
    assert np.abs(runs[1].q - runs[0].q).max() < 1e-9
    assert np.abs(runs[1].v - runs[0].v).max() < 1e-8


def pendulum(**joint) -> dict:
    """A rod that swings about y against a hard stop."""
    return {
        "position": [0, 0, 1], "limits": "hard",
        "links": {"rod": {"mass": 0.5, "center_of_mass": [0, 0, -0.2], "inertia": [0.01, 0.01, 0.001, 0, 0, 0]}},
        "joints": {"rod": {"axis": [0, 1, 0], **joint}},
    }  # fmt: skip


def test_a_stop_gives_not_at_all() -> None:
    """The pendulum comes to rest on its stop, to round-off, and where it rests moves with the stop, as 1 to 1."""
    raw = tree_scene(pendulum(value=0.8, lower=0.3), dt=0.005, steps=200)
    raw["obstacles"] = {}
    x, slopes = end_and_slopes(raw, 0, "bodies.body.joints.rod.lower", "bodies.body.joints.rod.value", "gravity.2")
    assert x == pytest.approx(0.3, abs=1e-14)
    assert slopes == pytest.approx([1.0, 0.0, 0.0], abs=1e-12)
    built = add.scene_from_dict(raw).build()
    run = built.run()
    assert np.diff(run.q[:, 0]).max() <= 1e-15, "no rebound"
    torque = CarriedImpulses.of(run.records[-1].carry).force
    assert torque == pytest.approx([0.5 * 9.81 * 0.2 * np.sin(0.3)], rel=1e-10)
    names = [entry.name for entry in built.numbers.layout.entries]
    assert "bodies.body.joints.rod.lower" in names and "bodies.body.joints.rod.limit_stiffness" not in names
    found = built.simulation.stepper
    assert isinstance(found, ImpulseContact)
    assert found.contact_forces(run.records[-1], built.theta).counts["at_stops"] == 1
    assert found.contact_forces(run.records[0], built.theta).counts["at_stops"] == 0


def test_a_start_beyond_a_stop_comes_back_slowly() -> None:
    raw = tree_scene(pendulum(value=0.1, lower=0.3), dt=0.005, steps=100)
    run = add.scene_from_dict(raw).build().run()
    assert run.v[1, 0] == pytest.approx(1.0, abs=1e-12)
    assert run.q[-1, 0] == pytest.approx(0.3, abs=1e-14)


def two_balls(x, v, m, e, *, steps: int, end: float, radius: float) -> dict:
    """Balls on two slides along one line, without gravity."""
    raw = scene({}, dt=end / steps, steps=steps, friction=0.0, gravity=(0, 0, 0))
    ball = {"geometry": {"shape": "sphere", "radius": radius}}
    raw["bodies"] = {
        name: {
            "type": "articulated", "links": {"ball": {"mass": m[k], "shapes": [ball]}},
            "joints": {"ball": {"type": "slide", "axis": [1, 0, 0], "value": x[k], "rate": v[k]}},
        } for k, name in enumerate("ab")
    }  # fmt: skip
    raw["obstacles"] = {}
    raw["contact"] |= {
        "between_bodies": True, "impact_time": "linear", "pairs": [{"between": ["a", "b"], "restitution": e}]
    }  # fmt: skip
    return raw


def test_reference_impacts_in_joint_coordinates() -> None:
    """Two balls of other masses, speeds and restitutions on slides: places and gradients of both."""
    path = SPECS / "articulated" / "reference" / "contact" / "impacts.json"
    if not path.exists():
        pytest.skip(f"no reference at {path}")
    cases = [case for case in json.loads(path.read_text()) if case["kind"].startswith("two balls")]
    starts = [f"bodies.{name}.joints.ball.{key}" for key in ("value", "rate") for name in "ab"]
    assert len(cases) == 10
    for case in cases:
        raw = two_balls(
            (case["x1"], case["x2"]), (case["v0"], case["u0"]), (case["m1"], case["m2"]), case["restitution"],
            steps=29, end=case["T"], radius=case["radius"],
        )  # fmt: skip
        for row, key in ((0, "x1_end"), (1, "x2_end")):
            x, slopes = end_and_slopes(raw, row, *starts)
            assert x == pytest.approx(case[key], abs=1e-11)
            assert slopes == pytest.approx(list(case[f"gradient_{key}"].values()), abs=1e-11)


@pytest.mark.slow
def test_gradient_with_impacts_within_the_step() -> None:
    """A two-link tree bounces: an impact of one link moves the other, and lengths of links count."""
    rod = {"mass": 0.4, "shapes": [{"geometry": {"shape": "sphere", "radius": 0.06}}]}
    body = {
        "base": "free", "position": [0, 0, 0.3], "velocity": [0.4, 0.1, -1.0], "angular_velocity": [0.5, 1.0, 0.3],
        "links": {"a": rod, "b": rod},
        "joints": {"a": {}, "b": {"parent": "a", "axis": [0, 1, 0], "position": [0.12, 0.02, 0.12], "stiffness": 0.3,
                                  "damping": 0.01, "rate": 1.0}},
    }  # fmt: skip
    pairs = [{"body": "body", "obstacle": "floor", "restitution": 0.6}]
    raw = tree_scene(body, dt=0.005, steps=50, friction=0.2, pairs=pairs)
    raw["contact"]["impact_time"] = "linear"
    built = add.scene_from_dict(raw).build()
    run = built.run()
    assert sum(int(CarriedImpulses.of(record.carry).near.timed.sum()) for record in run.records) >= 2
    n = built.model.system.n
    check_gradient_of_run(built.simulation, RoughObjective(np.random.default_rng(4).normal(size=n)))


ERRORS = {
    "law": ({"limits": "hard"}, {"friction_law": "tanh"}, "bodies.body.limits", "'tanh' has no hard limits"),
    "exact": ({}, {"friction_law": "exact"}, "contact.friction_law", "do not know this law"),
    "stiffness": ({"limits": "hard", "joints": {"rod": {"lower": 0, "limit_stiffness": 5.0}}}, {},
                  "bodies.body.joints.rod.limit_stiffness", "hard limits have none"),
    "onset": ({"limits": "hard", "limit_onset": 0.1}, {}, "bodies.body.limit_onset", "hard limits have none"),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_refused_by_name(case: str) -> None:
    body, contact, place, text = ERRORS[case]
    raw = tree_scene(pendulum() | {"limits": "penalty"} | body, dt=0.005, steps=3)
    raw["contact"] |= contact
    with pytest.raises(InputError) as caught:
        add.scene_from_dict(raw)
    assert place in str(caught.value) and text in str(caught.value)


def test_hard_limits_of_balls_are_refused() -> None:
    body = pendulum()
    body["joints"]["rod"] = {"type": "ball", "upper": 1.0}
    with pytest.raises(InputError, match="none is hard") as caught:
        add.scene_from_dict(tree_scene(body, dt=0.005, steps=3))
    assert caught.value.place == "bodies.body.joints.rod.upper"


def test_swings_that_give_energy_are_halved() -> None:
    """Links that turn by a third of a radian in a step: whole steps gain energy, and derivatives go through halves."""
    built = add.scene_from_dict(drop(91296)).build()
    whole = built.simulation.stepper.whole
    options = replace(whole.options, halvings=0)
    gains = {}
    for stepper in (built.simulation.stepper, ImpulseContact(replace(whole, options=options))):
        run = replace(built.simulation, stepper=stepper).run(n_steps=62)
        energies = [sum(Energies(built, built.theta).at(run.kinematics(k)).values()) for k in range(run.n_steps + 1)]
        gains[len(gains)] = max(energies) / energies[0] - 1.0
    assert gains[0] < 1e-2 and gains[1] > 0.1
    assert any(len(record.inner) > 1 for record in built.run(n_steps=57).records)
    objective = RoughObjective(np.random.default_rng(0).normal(size=built.model.system.n))
    _, trajectory = evaluate(built.simulation, objective, n_steps=57)
    reverse = value_and_gradient(built.simulation, objective, n_steps=57)
    direction = np.random.default_rng(1).normal(size=built.theta.size) * np.abs(built.theta)
    (slope,) = pushforward(built.simulation, trajectory, built.theta, [direction]).derivative(
        objective, trajectory, built.theta
    )
    assert reverse.gradient @ direction == pytest.approx(slope, rel=1e-8)
    ends = [
        evaluate(built.simulation, objective, built.theta + h * direction, replay=trajectory.replay, n_steps=57)[0]
        for h in (1e-7, -1e-7)
    ]
    assert (ends[0] - ends[1]) / 2e-7 == pytest.approx(slope, rel=1e-4)


def test_links_that_an_impact_sets_going_gain_no_energy() -> None:
    """Joints that turn by 0.07 rad in a step but stood before it: a whole step gave 2 % of the energy."""
    built = add.scene_from_dict(drop(4000078)).build()
    run = built.run(n_steps=66)
    energies = [sum(Energies(built, built.theta).at(run.kinematics(k)).values()) for k in range(run.n_steps + 1)]
    assert max(energies) < 1.002 * energies[0]
    assert len(run.records[62].inner) > 1


def test_a_loop_over_the_ground() -> None:
    """A four-bar closed exactly swings down onto the ground: closed at every step, reverse = forward."""

    def bar(radius: float) -> dict:
        shape = {"geometry": {"shape": "capsule", "radius": radius, "half_length": 0.1}, "position": [0, 0, -0.1]}
        return {"mass": 0.4, "shapes": [shape]}

    ends = {"position": [0, 0, -0.2], "orientation": AXIS_Y}
    body = {
        "position": [0, 0, 0.24], "links": {"crank": bar(0.02), "coupler": bar(0.05), "rocker": bar(0.02)},
        "joints": {"crank": {"axis": [0, 1, 0], "value": 0.9},
                   "coupler": {"parent": "crank", "axis": [0, 1, 0], "position": [0, 0, -0.2], "value": -2.45},
                   "rocker": {"axis": [0, 1, 0], "position": [0.22, 0, 0], "value": 0.9}},
        "loops": {"pin": {"type": "hinge", "a": {"link": "coupler", **ends}, "b": {"link": "rocker", **ends}}},
    }  # fmt: skip
    built = add.scene_from_dict(tree_scene(body, dt=0.005, steps=50, friction=0.0)).build()
    run = built.run()
    contacts, _ = seen(built, run)
    assert contacts.total() - contacts[SEPARATE] > 10
    rows = built.model.lift.rows
    for k in range(run.n_steps + 1):
        x = built.model.lift.kinematics(run.kinematics(k), built.theta).q
        places = [x[rows[f"body/pin_{end}"].start :][:3] for end in "ab"]
        assert np.linalg.norm(places[0] - places[1]) < 1e-10
    objective = RoughObjective(np.random.default_rng(5).normal(size=built.model.system.n))
    reverse = value_and_gradient(built.simulation, objective).gradient
    along = np.random.default_rng(6).normal(size=reverse.size) * np.abs(built.theta)
    slope = pushforward(built.simulation, run, built.theta, [along]).derivative(objective, run, built.theta)[0]
    assert reverse @ along == pytest.approx(slope, rel=1e-9)
    h, sides = 1e-6, []
    for sign in (h, -h):
        sides.append(evaluate(built.simulation, objective, built.theta + sign * along, replay=run.replay)[0])
    assert slope == pytest.approx((sides[0] - sides[1]) / (2.0 * h), rel=1e-5)


def test_meshes_of_links_are_refused() -> None:
    file = ROOT / "data" / "meshes" / "ring.obj"
    ring = {"geometry": {"file": str(file)}}
    body = pendulum()
    body["links"]["rod"]["shapes"] = [ring]
    with pytest.raises(InputError, match="knows no closed meshes") as caught:
        add.scene_from_dict(tree_scene(body, dt=0.005, steps=3))
    assert caught.value.place == "bodies.body.links.rod"


def steps_of_another_engine() -> list[dict]:
    """Return single steps of the worm and the catapult by Nimble, with their derivatives, or skip."""
    path = SPECS / "articulated" / "reference" / "steps" / "nimble_steps.json"
    if not path.exists():
        pytest.skip(f"no reference at {path}")
    return [case for case in json.loads(path.read_text()) if case["model"] in ("jump_worm", "catapult")]


def test_steps_of_another_engine() -> None:
    """In the air, resting and sliding: velocities and their derivatives agree but for terms of order dt^2.

    There forces are those of the beginning of the step, and nothing is taken back of a penetration.
    """
    names, modes = ("x", "y", *WORM), set()
    cases = steps_of_another_engine()
    assert len(cases) == 6
    for case in cases:
        at = dict(zip(names, case["q"], strict=True))
        raw = robot_scene(f"{case['model']}.xml", at, dt=case["dt"], steps=1, up="y", floor=-0.575, torques=WORM)
        robot = raw["bodies"]["robot"] | {"limits": "penalty"}
        for name, rate in zip(names, case["v"], strict=True):
            robot["joints"][name]["rate"] = rate
        for name, torque in zip(WORM, case["u"][2:], strict=True):
            robot["drives"][name]["input"] = torque
        raw["bodies"]["robot"], raw["contact"]["friction_law"] = robot, "linear"
        linear = add.scene_from_dict(raw).build().simulation
        simulation = with_impulse_contact(linear, ImpulseOptions(stabilisation=0.0))
        run = simulation.run()
        kept = CarriedImpulses.of(run.records[0].carry)
        assert kept.near.pair.size == case["contacts"] and not (kept.modes == SEPARATE).any()
        modes |= set(kept.modes.tolist())
        assert np.abs(run.v[1] - case["next_v"]).max() < 5e-6
        found, there = simulation.step_derivatives().jacobians(run.step(0)), np.array(case["A"])
        own = max(case["finite_difference_disagreement"].values())  # how far its derivatives are from its steps
        assert np.abs(found.v_v[0] - there[5:, 5:]).max() < (1e-5 if own < 1e-6 else 1e-3)
        assert np.abs(found.v_q[0] - there[5:, :5]).max() < 1e-3 * np.abs(there[5:, :5]).max()
    assert modes == {STICK, SLIDE}
