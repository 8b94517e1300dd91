"""Laws of joints that mimic another act on it: T^T D T, with q = m q_leader + c."""

import numpy as np
import pytest
from support.robot_files import joint, link, urdf, written

from add.adjoint import Cotangents, pullback
from add.equations.kinematics import Kinematics
from add.errors import InputError
from add.scene import scene_from_dict
from add.scene.robots import read_robot

LINK = {"mass": 0.5, "inertia": [0.01, 0.01, 0.01, 0, 0, 0], "center_of_mass": [0, 0, 0]}
M, C = -2.0, 0.3
LEADER = {"damping": 0.4, "dry_friction": 0.2, "stiffness": 1.5, "rest": 0.1, "armature": 0.02, "slip_speed": 1e-4}
FOLLOWER = {"damping": 0.7, "dry_friction": 0.6, "stiffness": 3.0, "rest": -0.4, "armature": 0.05}


def pair(**more):
    """Two slides side by side, the second mimics the first."""
    joints = {
        "one": {"type": "slide", "axis": [1, 0, 0], "value": 0.2, "rate": 0.5} | LEADER,
        "two": {"type": "slide", "axis": [1, 0, 0], "mimic": {"joint": "one", "factor": M, "offset": C}} | FOLLOWER,
    }
    for name, said in more.items():
        joints[name] |= said
    body = {"type": "articulated", "links": {"one": LINK, "two": LINK}, "joints": joints}
    return {"schema": "add-scene/1", "gravity": [0, 0, 0], "time": {"dt": 0.01, "steps": 2}, "bodies": {"arm": body}}


def force(built, theta, q, v):
    """What the leader's coordinate feels at rest from inertia, and at an acceleration of one."""
    found = []
    for a in (0.0, 1.0):
        out = np.zeros(1)
        for term in built.model.system.terms:
            term.residual(Kinematics(np.array([q]), np.array([v]), np.array([a]), 0.0, 0), theta, out)
        found.append(out[0])
    return found[0], found[1] - found[0]


def expected(q, v, follower=FOLLOWER):
    at, rate = M * q + C, M * v
    own = LEADER["damping"] * v + LEADER["dry_friction"] * np.sign(v) + LEADER["stiffness"] * (q - LEADER["rest"])
    there = follower["damping"] * rate + follower["dry_friction"] * np.sign(rate)
    return own + M * (there + follower["stiffness"] * (at - follower["rest"]))


def test_laws_of_a_follower_act_on_its_leader():
    built = scene_from_dict(pair()).build()
    for q, v in ((0.2, 0.5), (-0.7, -1.1)):
        found, inertia = force(built, built.theta, q, v)
        assert found == pytest.approx(expected(q, v), rel=1e-12)
        moved = LINK["mass"] * (1 + M**2) + LEADER["armature"] + M**2 * FOLLOWER["armature"]
        assert inertia == pytest.approx(moved, rel=1e-12)


def test_numbers_of_a_follower_are_parameters():
    """Each number of the follower moves the force as the formula says, and the leader's own stay its own."""
    built = scene_from_dict(pair()).build()
    numbers = built.numbers
    for key, value in FOLLOWER.items():
        changed = numbers.values.copy()
        changed[numbers.layout[f"bodies.arm.joints.two.{key}"].indices] = value + 0.5
        theta = numbers.ties.forward(changed)
        wanted = expected(0.2, 0.5, FOLLOWER | {key: value + 0.5})
        assert force(built, theta, 0.2, 0.5)[0] == pytest.approx(wanted, rel=1e-12)
    assert numbers.values[numbers.layout["bodies.arm.joints.one.damping"].start] == LEADER["damping"]


@pytest.mark.parametrize(
    ("one", "two", "lower", "upper"),
    [
        ({}, {"lower": -0.5, "upper": 0.9}, -0.3, 0.4),
        ({"lower": -0.1, "upper": 2.0}, {"lower": -0.5, "upper": 0.9}, -0.1, 0.4),
        ({"lower": -1.0, "upper": 0.25}, {"upper": 0.9}, -0.3, 0.25),
    ],
)
@pytest.mark.parametrize("law", ["penalty", "hard"])
def test_limits_are_intersected(one, two, lower, upper, law):
    raw = pair(one=one, two=two)
    raw["bodies"]["arm"]["limits"] = law
    if law == "hard":
        raw["contact"] = {"friction_law": "impulse"}
        raw["time"]["integrator"] = "bdf1"
    built = scene_from_dict(raw).build()
    found = [
        built.theta[built.model.system.parameters[f"bodies.arm.joints.one.{key}"].start] for key in ("lower", "upper")
    ]
    assert found == pytest.approx([lower, upper], abs=1e-14)


def test_a_follower_holds_its_leader():
    """Dry friction of the follower alone, 0.6 N there, holds 1.2 N on the leader by the law that holds."""
    for push, moves in ((1.1, False), (1.3, True)):
        raw = pair(one={"rate": 0.0, "dry_friction": 0.0, "stiffness": 0.0}, two={"stiffness": 0.0})
        raw["bodies"]["arm"]["joints"]["one"].pop("slip_speed")
        raw["bodies"]["arm"] |= {
            "dry_friction_law": "hybrid", "drives": {"push": {"joint": "one", "type": "torque", "input": push}}
        }  # fmt: skip
        q = scene_from_dict(raw).build().run().q[:, 0]
        assert (abs(q[-1] - q[0]) > 1e-8) == moves


def finger(name, more):
    return joint(name, "base", name, "prismatic", more)


def test_a_robot_file_loses_nothing(tmp_path):
    """Damping 5 and friction 7 of the follower at speed 1; efforts as forces, m E; velocities v / m."""
    follower = '<limit lower="-1" upper="1" effort="3" velocity="8"/><dynamics damping="5" friction="7"/>'
    path = written(
        tmp_path,
        urdf(
            *(link(name) for name in ("base", "a", "b", "c")),
            finger("a", '<limit lower="-1" upper="1" effort="10" velocity="10"/>'),
            finger("b", follower + '<mimic joint="a" multiplier="2" offset="0.5"/>'),
            finger("c", '<limit lower="-9" upper="9" effort="0" velocity="90"/><mimic joint="b" multiplier="-1"/>'),
        ),
    )
    robot = read_robot(path)
    assert (robot.joints[0].effort, robot.joints[0].velocity) == (6.0, 4.0)
    assert "line 8, joint 'c': effort 0 of a mimic joint, which has no drive of its own" in robot.ignored
    raw = pair()
    raw["bodies"] = {"hand": {"type": "articulated", "model": str(path)}}
    built = scene_from_dict(raw).build()
    assert force(built, built.theta, 0.0, 1.0)[0] == pytest.approx(2.0 * (5.0 * 2.0 + 7.0), rel=1e-9)
    at = built.model.system.parameters
    assert built.theta[at["bodies.hand.joints.a.lower"].start] == pytest.approx(-0.75)
    assert built.theta[at["bodies.hand.joints.a.upper"].start] == pytest.approx(0.25)
    raw["bodies"]["hand"]["joints"] = {"b": {"damping": 1.0, "dry_friction": 0.0}}
    built = scene_from_dict(raw).build()
    assert force(built, built.theta, 0.0, 1.0)[0] == pytest.approx(4.0, rel=1e-9)


def test_a_chain_of_followers_in_a_scene():
    raw = pair()
    arm = raw["bodies"]["arm"]
    arm["links"]["three"] = LINK
    mimic = {"joint": "two", "factor": 0.5, "offset": 0.1}
    arm["joints"]["three"] = {"type": "slide", "axis": [1, 0, 0], "mimic": mimic, "damping": 8.0}
    built = scene_from_dict(raw).build()
    assert force(built, built.theta, 0.2, 0.5)[0] == pytest.approx(expected(0.2, 0.5) + 8.0 * 0.5, rel=1e-12)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"rate": 1.0}, "a mimic joint has none of its own"),
        ({"limit_damping": 1.0}, "a mimic joint has none of its own"),
        ({"lower": -9.0, "upper": -8.0}, "of 'two', which mimics it"),
        ({"type": "ball"}, "only hinges and slides mimic"),
        ({"mimic": {"joint": "one", "factor": 0.0}}, "a factor of zero"),
    ],
)
def test_what_a_follower_cannot_have(said, text):
    raw = pair(one={"lower": -1.0, "upper": 1.0}, two=said)
    with pytest.raises(InputError) as caught:
        scene_from_dict(raw).build()
    assert text in str(caught.value)


def test_gradients_by_numbers_of_followers(rng):
    """Of a whole run, by every number of the scene: reverse mode against central differences."""
    raw = pair(one={"slip_speed": 0.5}, two={"lower": -0.102, "upper": 0.9})
    raw["time"] = {"dt": 0.005, "steps": 12}
    built = scene_from_dict(raw).build()
    simulation, numbers = built.simulation, built.numbers
    run = simulation.run(built.theta)
    q_bar, v_bar = rng.normal(size=(2, *run.q.shape))
    gradient = pullback(simulation, run, built.theta, Cotangents(q_bar, v_bar))
    for key in (*FOLLOWER, "lower"):
        along = np.zeros_like(numbers.values)
        along[numbers.layout[f"bodies.arm.joints.two.{key}"].indices] = 1.0
        sides = []
        for sign in (1.0, -1.0):
            there = simulation.run(numbers.ties.forward(numbers.values + sign * 1e-5 * along), replay=run.replay)
            sides.append((q_bar * there.q).sum() + (v_bar * there.v).sum())
        found = gradient @ numbers.ties.pushforward(numbers.values, along)
        assert found == pytest.approx((sides[0] - sides[1]) / 2e-5, rel=1e-5, abs=1e-9)
        assert abs(found) > 1e-6, "it acts"


@pytest.mark.parametrize(
    ("of_follower", "of_leader"),
    [
        ('damping="2"', 'damping="18"'),
        ('frictionloss="0.1"', 'frictionloss="0.3"'),
        ('stiffness="2" springref="0.3"', 'stiffness="18" springref="0.1"'),
        ('armature="0.1"', 'armature="0.9"'),
    ],
)
def test_followers_of_an_equality_in_an_mjcf(tmp_path, of_follower, of_leader):
    """With q_follower = 3 q_leader a law of the follower is that of the leader, times 9, 3 or at a third."""
    pytest.importorskip("mujoco")

    def end(leader="", follower=""):
        box = '<geom type="box" size=".1 .02 .02" pos=".1 0 0" mass="1"/>'
        path = tmp_path / "pair.xml"
        path.write_text(
            '<mujoco><compiler angle="radian"/><worldbody>'
            f'<body><joint name="lead" axis="0 1 0" {leader}/>{box}</body>'
            f'<body pos="0 1 0"><joint name="follow" axis="0 1 0" {follower}/>{box}</body></worldbody>'
            '<equality><joint joint1="follow" joint2="lead" polycoef="0 3 0 0 0"/></equality></mujoco>'
        )
        raw = {"schema": "add-scene/1", "time": {"dt": 0.005, "steps": 40}}
        raw["bodies"] = {"pair": {"type": "articulated", "model": str(path)}}
        return scene_from_dict(raw).build().run().q[-1]

    np.testing.assert_allclose(end(follower=of_follower), end(leader=of_leader), rtol=1e-9)
    assert abs(end(follower=of_follower)[0] / end()[0] - 1.0) > 0.05
