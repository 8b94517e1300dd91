"""Trees of links: their own terms, and every force, contact and marker on their links, against differences."""

import numpy as np
import pytest

from add.equations.kinematics import Kinematics
from add.equations.lifted import LiftedDecidingTerm, LiftedTerm
from add.equations.points import Along
from add.kernels.rotation import rotation_matrix
from add.kernels.tree_pullback import add_placement_work
from add.kernels.trees import tree_motion
from add.scene import scene_from_dict
from add.terms import BallLaws, JointLimits, JointResistance, JointSprings, OnLengths, TreeInertia
from add.testing import check_deciding_term, check_pullback, check_term

BOX = {"geometry": {"shape": "box", "size": [0.1, 0.14, 0.2]}, "position": [0.01, 0.02, -0.1]}
BALL = {"geometry": {"shape": "sphere", "radius": 0.08}, "position": [0.0, 0.01, 0.02]}
LINK = {
    "mass": 0.7, "center_of_mass": [0.02, -0.03, -0.1], "inertia": [0.02, 0.03, 0.025, 0.001, -0.002, 0.003],
    "shapes": [BOX],
}  # fmt: skip
TURNED = [0.8, 0.0, 0.48, 0.36]


def scene(law="tanh"):
    """A placed tree with every kind of joint, one that follows another, and a free one, in contact with each other."""
    arm = {
        "type": "articulated",
        "position": [0.1, -0.2, 0.9],
        "orientation": TURNED,
        "links": {name: LINK for name in ("trunk", "rail", "hand", "finger", "thumb")},
        "joints": {
            "trunk": {"axis": [1, 2, -1], "value": 0.4, "stiffness": 3.0, "rest": 0.2, "damping": 0.3, "armature": 0.05,
                      "lower": -0.3, "upper": 0.35, "dry_friction": 0.2, "slip_speed": 0.5},
            "rail": {"parent": "trunk", "type": "slide", "axis": [0, 1, 1], "position": [0.1, 0, -0.2], "value": -0.1,
                     "orientation": TURNED, "lower": -0.05, "upper": 0.3, "damping": 0.2},
            "hand": {"parent": "rail", "type": "ball", "position": [0, 0.1, -0.2], "value": [0.9, -1.6, 2.2],
                     "damping": 0.02, "armature": 0.01, "stiffness": 0.4, "rest": [0.1, 0.2, 0.3]},
            "finger": {"parent": "hand", "position": [0.05, 0, -0.2], "axis": [0, 1, 0], "value": 0.5},
            "thumb": {"parent": "hand", "position": [-0.05, 0, -0.2], "axis": [0, 1, 0],
                      "mimic": {"joint": "finger", "factor": -0.7, "offset": 0.2}},
        },
        "drives": {
            "turn": {"joint": "trunk", "type": "position", "input": {"signal": "wanted"}, "stiffness": 20,
                     "damping": 1},
            "push": {"joint": "rail", "type": "torque", "input": {"signal": "wanted"}},
            "grip": {"joint": "finger", "type": "velocity", "input": 0.3, "damping": 0.4, "limit": 0.01},
        },
    }  # fmt: skip
    loose = {
        "type": "articulated", "base": "free", "position": [0.0, 0.1, 0.02], "orientation": [0.2, 0.8, 0.4, 0.4],
        "velocity": [0.3, 0.2, -0.4], "angular_velocity": [1, 2, -1],
        "links": {"body": LINK | {"shapes": [BALL]}, "tail": LINK | {"shapes": [BALL]}},
        "joints": {"body": {}, "tail": {"parent": "body", "axis": [1, 0, 0], "position": [0, 0.1, 0.1]}},
    }  # fmt: skip
    return {
        "schema": "add-scene/1",
        "time": {"dt": 0.01, "steps": 3},
        "bodies": {
            "arm": arm, "loose": loose,
            "block": {"type": "rigid", "mass": 1.0, "geometry": {"shape": "box", "size": [0.3, 0.3, 0.3]},
                      "position": [0.1, 0.1, 0.1], "angular_velocity": [0.3, 0.1, 0.2]},
        },
        "signals": {"wanted": {"type": "spline", "times": [0, 0.05, 0.1], "values": [0.1, 0.4, -0.2]}},
        "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
        "contact": {"friction": 0.5, "friction_law": law, "stiffness": 300, "damping": 4, "damping_ramp": 0.01,
                    "onset": 0.01, "stick_stiffness": 30},
        "couplings": {
            "spring": {"type": "spring", "a": {"body": "arm/hand", "at": [0, 0.1, 0]},
                       "b": {"body": "loose/tail", "at": [0.1, 0.05, 0]}, "stiffness": 40, "damping": 2},
            "within": {"type": "ball", "a": {"body": "arm/finger", "at": [0, 0, -0.2]},
                       "b": {"body": "arm/trunk", "at": [0.1, 0, 0]}, "stiffness": 50},
            "held": {"type": "ball", "a": {"body": "arm/thumb", "at": [0.03, 0.1, 0.02]}, "b": {}, "stiffness": 30},
        },
        "markers": {"tip": {"body": "arm/thumb", "point": [0, 0, -0.2]},
                    "along": {"body": "loose/tail", "direction": [0, 0.6, 0.8]}},
    }  # fmt: skip


@pytest.fixture(scope="module")
def built():
    return scene_from_dict(scene()).build()


def state(built, rng, scale=0.1):
    q, v = built.model.initial.evaluate(built.theta)
    n = q.size
    return Kinematics(q + scale * rng.normal(size=n), v + rng.normal(size=n), rng.normal(size=n), 0.03, 3)


def is_clipped(drive, kin, theta):
    out = np.zeros(kin.q.size)
    drive.residual(kin, theta, out)
    return abs(out[drive.dof[0]]) == drive.law.force[1]


@pytest.mark.parametrize("kind", [TreeInertia, JointSprings, JointResistance, BallLaws, JointLimits, OnLengths])
def test_own_terms(built, rng, kind):
    terms = built.model.term(kind)
    assert (
        len(terms)
        == {TreeInertia: 2, JointSprings: 2, JointResistance: 2, BallLaws: 1, JointLimits: 1, OnLengths: 3}[kind]
    )
    kin = state(built, rng, 0.02)
    potential = kind in (JointSprings,)
    for term in terms:
        found = check_term(term, kin, built.theta, rng=rng, energy=potential, layout=built.model.system.parameters)
        active = {TreeInertia: "qva", JointSprings: "q", JointResistance: "v", BallLaws: "qva", JointLimits: "qv"}
        clipped = kind is OnLengths and is_clipped(term, kin, built.theta)
        if term is terms[0]:  # the other tree's joint has neither spring nor damping
            assert all(getattr(found, name) > 0.0 for name in active.get(kind, ""))
        assert bool(found.parameters) != clipped
    if kind is JointLimits:
        depths = np.zeros(kin.q.size)  # dr/dk
        terms[0].parameter_jvp(kin, built.theta, np.isin(np.arange(built.theta.size), terms[0].stiffness) * 1.0, depths)
        first, second, *_ = depths[terms[0].dof]
        assert first > 0.0 > second, "one limit above, one below"
    if kind is OnLengths:
        assert sum(is_clipped(term, kin, built.theta) for term in terms) == 1


def test_work_of_placements_is_that_of_the_columns(built, rng):
    """The contracted derivatives by placements against those written out."""
    kin, theta = state(built, rng), built.theta
    for embedding, block in zip(built.model.lift.embeddings, built.model.lift.blocks, strict=True):
        q, v = kin.q[block[1]], kin.v[block[1]]
        x_bar, u_bar = rng.normal(size=(2, embedding.n_rows))
        by_place, by_rate = embedding.by_parameters(q, v, theta)
        own = np.zeros(embedding.tree.placement.shape)
        motion = tree_motion(embedding.tree, theta, q, v, np.zeros(q.size))
        add_placement_work(embedding.tree, theta, motion, embedding.links, x_bar, u_bar, own)
        expected = x_bar @ by_place + u_bar @ by_rate
        assert np.allclose(own[embedding.tree.placement >= 0], expected, rtol=0, atol=1e-12 * abs(expected).max())


def test_forces_on_links(built, rng):
    """Springs and stiff joints between links of two trees and of one."""
    kin = state(built, rng)
    terms = [term for term in built.model.system.terms if isinstance(term, LiftedTerm)]
    assert len(terms) >= 2
    moved, layout = 0, built.model.system.parameters
    for term in terms:
        found = check_term(term, kin, built.theta, rng=rng, layout=layout)
        names = {built.model.system.parameters.describe(i) for i in found.parameters}
        moved += any(".joints.rail.position" in name for name in names)
    assert moved >= 2, "where a joint lies counts"


@pytest.mark.parametrize("law", ["none", "linear", "tanh"])
def test_contact_of_links(rng, law):
    built = scene_from_dict(scene(law)).build()
    (term,) = (term for term in built.model.system.deciding if isinstance(term, LiftedDecidingTerm))
    kin = state(built, rng, 0.02)
    decision = term.decide(kin, built.theta)
    assert len(decision) >= 2, "links touch the floor and a body"
    _, found = check_deciding_term(term, kin, built.theta, rng=rng, layout=built.model.system.parameters)
    assert found.q > 0.0 and found.v > 0.0
    names = {built.model.system.parameters.describe(i) for i in found.parameters}
    assert any(".joints.tail.position" in name for name in names)


def test_markers_on_links(built, rng):
    """Places and velocities of points and directions by coordinates, rates and all numbers."""
    kin = state(built, rng)
    n, m = kin.q.size, 3 * built.markers.n_points

    def split(x):
        return Kinematics(x[:n], x[n : 2 * n], kin.a, kin.t, kin.step), x[2 * n :]

    def points(x):
        return np.concatenate([part.ravel() for part in built.markers.points(*split(x))])

    def jvp(x, dot):
        at, along = (np.split(part, [n, 2 * n], axis=-1) for part in (x, dot[None]))
        parts = built.markers.jvp_over(
            Along(at[0][None], at[1][None], at[2]), Along(along[0][None], along[1][None], along[2])
        )
        return np.concatenate([part.ravel() for part in parts])

    def vjp(x, bar):
        at, theta = split(x)
        q_bar, v_bar, theta_bar = np.zeros(n), np.zeros(n), np.zeros(theta.size)
        built.markers.vjp(at, theta, bar[:m].reshape(-1, 3), bar[m:].reshape(-1, 3), Along(q_bar, v_bar, theta_bar))
        return np.concatenate([q_bar, v_bar, theta_bar])

    slopes = check_pullback(points, jvp, vjp, np.concatenate([kin.q, kin.v, built.theta]), rng=rng, scale=1.0)
    rail = built.model.system.parameters["bodies.arm.joints.rail.position"].indices
    assert np.abs(slopes[:m, 2 * n + rail]).max() > 0.0 and np.abs(slopes[m:, 2 * n + rail]).max() > 0.0


def test_free_link_is_a_rigid_body(rng):
    """A tree of one free link has the residual and the matrix of the plain rigid body."""
    pose = {"position": [0.1, 0.2, 0.3], "orientation": TURNED, "velocity": [1, 2, 3], "angular_velocity": [3, -2, 1]}
    mass = {"mass": 2.0, "inertia": [0.02, 0.03, 0.025, 0.001, -0.002, 0.003]}
    base = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 1}}
    rigid = {"type": "rigid", "center_of_mass": [0, 0, 0], **mass, **pose}
    tree = {"type": "articulated", "base": "free", "links": {"a": mass}, "joints": {"a": {}}, **pose}
    one, other = (scene_from_dict(base | {"bodies": {"b": body}}).build() for body in (rigid, tree))
    starts = [item.model.initial.evaluate(item.theta) for item in (one, other)]
    assert np.allclose(starts[0], starts[1], rtol=0, atol=1e-15)
    kin = Kinematics(*(starts[0][0] + rng.normal(size=6) for _ in range(3)), 0.0, 0)
    found = []
    for item in (one, other):
        out = np.zeros(6)
        for term in item.model.system.terms:
            term.residual(kin, item.theta, out)
        found.append(out)
    assert np.abs(found[0] - found[1]).max() <= 1e-13 * np.abs(found[0]).max()


def test_momentum_of_a_free_tree_that_tumbles():
    """No forces: momentum and angular momentum stay, through changes of chart."""
    raw = scene()
    raw["bodies"] = {"loose": raw["bodies"]["loose"]}
    raw["bodies"]["loose"]["angular_velocity"] = [9.0, 4.0, -3.0]
    raw |= {"gravity": [0, 0, 0], "couplings": {}, "markers": {}, "obstacles": {}, "signals": {}}
    values = []
    for steps in (200, 400):
        built = scene_from_dict(raw | {"time": {"dt": 1.0 / steps, "steps": steps}}).build()
        (term,) = built.model.term(TreeInertia)
        run = built.run()
        assert any(record.charts.size for record in run.records), "it turned beyond pi"
        first, last = (term.momentum(run.kinematics(k), built.theta) for k in (0, steps))
        values.append(np.abs(last - first).max() / np.abs(first).max())
    assert values[0] / values[1] == pytest.approx(4.0, rel=0.2), "of the order of the formula"


def test_ends_that_follow_where_links_start(rng):
    """The place in the world of a joint whose other end alone is given, by all numbers of the scene."""
    built = scene_from_dict(scene()).build()
    numbers, layout = built.numbers, built.model.system.parameters
    target = layout["couplings.held.b.at"].indices
    q, _ = built.model.initial.evaluate(built.theta)
    rows = built.model.lift.rows["arm/thumb"]
    x = built.model.lift.kinematics(Kinematics(q, q * 0, q * 0, 0.0, 0), built.theta).q[rows.slice]
    point = x[:3] + rotation_matrix(x[3:]) @ [0.03, 0.1, 0.02]
    assert np.allclose(built.theta[target], point, atol=1e-14)
    by_numbers = numbers.ties.jacobian(numbers.values).toarray()[target]
    h = 1e-6
    for path in ("bodies.arm.joints.rail.value", "bodies.arm.joints.hand.position", "bodies.arm.orientation",
                 "bodies.arm.joints.finger.value"):  # fmt: skip
        for index in numbers.layout[path].indices.ravel():
            there, back = numbers.values.copy(), numbers.values.copy()
            there[index] += h
            back[index] -= h
            slope = (numbers.ties.forward(there)[target] - numbers.ties.forward(back)[target]) / (2 * h)
            assert np.allclose(by_numbers[:, index], slope, atol=1e-8), path
            assert np.abs(slope).max() > 0.0
