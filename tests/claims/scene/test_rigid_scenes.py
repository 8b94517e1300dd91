"""Scenes with rigid bodies, sheets, couplings: what they build, and what the errors about wrong ones say."""

import copy

import numpy as np
import pytest
from support.run_checks import check_gradient_of_run
from support.small_models import RoughObjective

from add.errors import InputError
from add.joints.laws import AngleLimit, AngularDamping, Cable, ElasticJoint, JointFriction, Motor, Slider, Spring
from add.kernels.rotation import rotation_matrix, rotation_vector
from add.scene import scene_from_dict
from add.scene.build.sizes import require_room_to_run

CUBE = {
    "type": "rigid",
    "geometry": {"shape": "box", "size": [0.1, 0.2, 0.3]},
    "mass": 0.5,
    "position": [0.0, 0.0, 0.5],
    "orientation": [0.5, 0.5, 0.5, 0.5],
    "velocity": [1.0, 2.0, 3.0],
    "angular_velocity": [0.5, -1.0, 2.0],
}
LINK = {"type": "rigid", "mass": 1.0, "inertia": [0.1, 0.2, 0.25, 0.0, 0.0, 0.0], "position": [0.0, 0.0, 0.2]}
HINGE = {
    "type": "hinge",
    "a": {"body": "cube", "at": [0.05, 0.0, 0.0]},
    "b": {"body": "link"},
    "axis": [0.0, 2.0, 0.0],
    "stiffness": 1e4,
    "angular_stiffness": 1e3,
    "angular_damping": 0.1,
    "motor": {"angle": {"signal": "angle"}, "stiffness": 50.0},
    "limits": {"lower": -0.5, "upper": 0.7, "stiffness": 20.0, "damping": 0.1},
    "friction": {"viscous": 0.01, "coulomb": 0.02},
    "torque": 0.3,
}
GOOD = {
    "schema": "add-scene/1",
    "time": {"dt": 0.005, "steps": 4},
    "bodies": {
        "cube": CUBE,
        "link": LINK,
        "hand": {
            "type": "particles",
            "mesh": {"points": [[0, 0, 0]]},
            "position": [0.4, 0.0, 0.9],
            "pins": [{"where": {"all": True}, "motion": {"signal": "path"}}],
        },
        "net": {"type": "particles", "mesh": {"shape": "sheet", "size": [0.4, 0.3], "divisions": [3, 2]}, "mass": 0.2},
        "pusher": {
            "type": "kinematic",
            "geometry": {"shape": "sphere", "radius": 0.05},
            "position": [1.0, 0.0, 0.1],
            "translation": {"signal": "path"},
        },
    },
    "signals": {
        "path": {"type": "table", "times": [0.0, 1.0], "values": [[0, 0, 0], [1, 0, 0]]},
        "angle": {"type": "table", "times": [0.0, 1.0], "values": [0.0, 1.0]},
    },
    "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
    "couplings": {
        "hinge": HINGE,
        "rope": {"type": "cable", "a": {"body": "cube", "at": [0, 0, 0.15]}, "b": {"body": "hand"}, "stiffness": 9.0},
        "tie": {"type": "spring", "a": {"body": "cube", "at": [0, 0, 0]}, "b": {"at": [0, 0, 2]}, "stiffness": 3.0},
        "glue": {"type": "attachment", "nodes": "net", "where": {"nodes": [0, 1]}, "body": "pusher", "stiffness": 50.0},
        "push": {"type": "force", "on": {"body": "link", "at": [0, 0, 0]}, "force": [0.0, 1.0, 0.0]},
        "spin": {"type": "torque", "body": "link", "torque": [0.0, 0.0, 0.2]},
    },
    "contact": {"stiffness": 1e3, "friction": 0.3, "pairs": [{"body": "cube", "obstacle": "pusher", "friction": 0.1}]},
    "markers": {
        "corner": {"body": "cube", "point": [0.05, 0.1, 0.15]},
        "up": {"body": "cube", "direction": [0, 0, 3]},
        "middle": {"body": "net", "center_of_mass": True},
    },
    "objective": [
        {"type": "pose", "body": "cube", "translation": [0, 0, 0.4], "time": "end"},
        {"type": "point", "marker": "up", "target": [0, 0, 1], "time": "end"},
    ],
    "parameters": [{"path": "bodies.cube.mass", "transform": "log"}, {"path": "couplings.hinge.a.at"}],
}


def changed(*edits: tuple[str, object]) -> dict:
    raw = copy.deepcopy(GOOD)
    for path, value in edits:
        *parents, last = path.split(".")
        node = raw
        for key in parents:
            node = node[int(key)] if isinstance(node, list) else node[key]
        if value is None:
            del node[last]
        else:
            node[last] = value
    return raw


@pytest.fixture(scope="module")
def built():
    return scene_from_dict(GOOD).build()


def test_layout_and_terms(built) -> None:
    system = built.model.system
    assert system.n == 3 + 3 * 12 + 3 * 6
    # The handle and the pusher are given, the rest is free.
    assert system.partition.free.size == system.n - 3 - 6
    kinds = {type(term) for term in (*system.terms, *system.deciding)}
    assert {Spring, ElasticJoint, Motor, AngularDamping, JointFriction, Cable, AngleLimit} <= kinds
    assert Slider not in kinds
    springs = sum(term.sites.n for term in built.model.term(Spring))
    assert springs == built.model.bodies[1].edges.shape[0] + 1
    assert list(system.rotations) == [system.dofs[name].start + 3 for name in ("cube", "link")]
    assert system.dofs.describe(system.dofs["cube"].start + 4) == "cube/rotation/y"


def test_mass_follows_from_the_shape(built) -> None:
    layout, theta = built.model.system.parameters, built.theta
    np.testing.assert_allclose(
        layout.view(theta, "bodies.cube.inertia"), 0.5 / 12.0 * np.array([0.13, 0.10, 0.05, 0.0, 0.0, 0.0])
    )
    dense = scene_from_dict(
        changed(("bodies.cube.mass", None), ("bodies.cube.density", 1000.0), ("parameters", []))
    ).build()
    assert dense.model.system.parameters.view(dense.theta, "bodies.cube.mass") == pytest.approx(6.0)
    # A change of the mass takes the inertia along.
    heavy = built.numbers.values.copy()
    heavy[built.numbers.resolve("bodies.cube.mass")[0]] = 1.0
    np.testing.assert_allclose(
        layout.view(built.numbers.ties.forward(heavy), "bodies.cube.inertia"),
        2.0 * layout.view(theta, "bodies.cube.inertia"),
    )


def test_joints_start_without_force(built) -> None:
    """An end that is not given is where the other one starts, and axes coincide whatever the orientations."""
    start = built.run(n_steps=0).kinematics(0)
    (bond,) = built.model.term(ElasticJoint)
    still = type(start)(start.q, np.zeros_like(start.v), start.a, 0.0, 0)
    assert np.abs(bond.forces(still, built.theta)).max() < 1e-10
    (motor,) = built.model.term(Motor)
    assert np.abs(np.cross(*motor.forces(still, built.theta)[0, 1:])).max() < 1e-9
    assert bond.sites.n == 2 + 2  # a point and an axis, and two nodes that are glued on


def test_markers(built) -> None:
    start = built.run(n_steps=0).kinematics(0)
    x, v = built.markers.points(start, built.theta)
    rotation = rotation_matrix(rotation_vector(CUBE["orientation"]))
    arm = rotation @ np.array([0.05, 0.1, 0.15])
    np.testing.assert_allclose(x[0], arm + np.array([0, 0, 0.5]))
    np.testing.assert_allclose(v[0], np.array([1, 2, 3.0]) + np.cross([0.5, -1.0, 2.0], arm))
    np.testing.assert_allclose(x[1], rotation[:, 2], atol=1e-15)
    np.testing.assert_allclose(x[2], 0.0, atol=1e-15)


def test_it_runs(built) -> None:
    run = built.run()
    hand = built.model.system.dofs["hand"].slice
    np.testing.assert_allclose(run.q[-1, hand], [0.42, 0.0, 0.9])
    assert np.isfinite(run.q).all()


def test_connected_bodies_pass_through_each_other() -> None:
    near = {"bodies.link.geometry": {"shape": "box", "size": [0.1, 0.1, 0.1]}, "bodies.link.mass": 1.0}

    def meets(raw: dict) -> bool:
        from add.contact import BodyContact

        model = scene_from_dict(raw).build().model
        (contact,) = model.term(BodyContact)
        owners = [b.name for b in model.bodies]
        shapes = ["floor", *(b.name for b in model.bodies if b.shapes)]
        return shapes.index("link") in contact.met_shapes()[owners.index("cube")]

    assert not meets(changed(*near.items()))
    assert meets(changed(*near.items(), ("couplings.hinge.collide", True)))
    asked = [{"body": "cube", "obstacle": "link"}]
    assert meets(changed(*near.items(), ("contact.pairs", asked)))
    assert not meets(changed(*near.items(), ("couplings", {}), ("contact.between_bodies", False), ("parameters", [])))


def test_reactions() -> None:
    """A lamp on a hinge: at rest the joint carries the weight, and its torque about the lamp's centre."""
    scene = {
        "schema": "add-scene/1",
        "time": {"dt": 0.01, "steps": 1, "initial": "equilibrium"},
        "bodies": {"lamp": LINK | {"position": [0.3, 0.0, 0.0]}},
        "couplings": {
            "joint": {
                "type": "hinge",
                "a": {"at": [0, 0, 0]},
                "b": {"body": "lamp"},
                "axis": [0, 1, 0],
                "stiffness": 1e6,
                "angular_stiffness": 1e4,
                "motor": {"angle": 0.0, "stiffness": 1e6},
            },
            "pull": {"type": "force", "on": {"body": "lamp", "at": [0, 0, 0]}, "force": [0, 2.0, 0]},
        },
    }
    built = scene_from_dict(scene).build()
    found = built.reactions(built.run().kinematics(0))
    np.testing.assert_allclose(found["pull"]["lamp"].force, [0, 2, 0])
    np.testing.assert_allclose(found["joint"]["lamp"].force, [0, -2, 9.81], atol=1e-6)
    # The weight's lever is 0.3 m: a force through the joint, and the motor's couple against it.
    np.testing.assert_allclose(found["joint"]["lamp"].torque, 0.0, atol=1e-6)


def test_a_clamp_that_yields() -> None:
    """A stiff block hung by springs at nine nodes sinks by its weight over their sum; slopes by stiffness and size."""
    block = {
        "type": "soft", "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "divisions": [2, 2, 2]}, "element": "hex8",
        "enhanced": True, "material": {"young": 1e8, "poisson": 0.3, "density": 1000}, "position": [0, 0, 1],
    }  # fmt: skip
    top = {"box": {"min": [None, None, 0.0499]}}
    built = scene_from_dict(
        {
            "schema": "add-scene/1",
            "time": {"dt": 0.002, "steps": 20, "initial": "equilibrium"},
            "bodies": {"block": block},
            "couplings": {"clamp": {"type": "attachment", "nodes": "block", "where": top, "stiffness": 500}},
        }
    ).build()
    run = built.run()
    sunk = run.q[-1].reshape(-1, 3)[:27, 2] - built.model.bodies[0].mesh.points[:, 2]
    assert sunk.mean() - 1.0 == pytest.approx(-9.81 / (9 * 500), rel=2e-3)
    require_room_to_run(built.simulation)
    objective = RoughObjective(np.random.default_rng(0).normal(size=built.model.system.n))
    moving = scene_from_dict(
        {
            "schema": "add-scene/1",
            "time": {"dt": 0.002, "steps": 6, "newton": {"atol": 1e-11, "rtol": 1e-13}},
            "bodies": {"block": block | {"angular_velocity": [1, 2, 0]}},
            "couplings": {
                "clamp": {"type": "attachment", "nodes": "block", "where": top, "stiffness": 500, "damping": 2}
            },
        }
    ).build()
    check_gradient_of_run(moving.simulation, objective)


def test_balls_meet_once() -> None:
    """Each of two balls is one point with a radius and a shape: one of the two pairs says it all."""
    from add.contact import BodyContact

    ball = {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.1}, "mass": 1.0}
    box = {"type": "rigid", "geometry": {"shape": "box", "size": [1, 1, 1]}, "mass": 1.0, "position": [0, 0, 3]}
    raw = {
        "schema": "add-scene/1",
        "time": {"dt": 0.01, "steps": 1},
        "bodies": {"one": ball, "two": ball | {"position": [0, 0, 1]}, "box": box},
    }
    (contact,) = scene_from_dict(raw).build().model.term(BodyContact)
    meet = [[o in contact.met_shapes().get(i, ()) for o in range(3)] for i in range(3)]
    assert meet == [[False, False, True], [True, False, True], [False, False, False]]


def test_track_objective() -> None:
    """The mean squared distance from places at given times, whatever the steps."""
    track = {
        "type": "track",
        "marker": "corner",
        "times": [0.004, 0.013],
        "values": [[0, 0, 1], [1, 0, 1]],
        "axes": "xz",
        "weight": 2.0,
    }
    scene = scene_from_dict(changed(("objective", [track])))
    problem = scene.inverse_problem()
    value, _ = problem.value_and_grad(problem.x0)
    built = scene.build()
    run = built.run()

    def place(t: float) -> np.ndarray:
        from add.objectives.frames_over import hermite

        k = int(t / 0.005)
        x0, v0, x1, v1 = hermite(t / 0.005 - k, 0.005)
        before, after = (built.markers.points(run.kinematics(j), built.theta) for j in (k, k + 1))
        return x0 * before[0][0] + v0 * before[1][0] + x1 * after[0][0] + v1 * after[1][0]

    away = np.array([place(0.004) - [0, 0, 1], place(0.013) - [1, 0, 1]])[:, [0, 2]]
    assert value == pytest.approx(2.0 * (away**2).sum() / 2, rel=1e-9)
    with pytest.raises(InputError, match="outside the simulated time"):
        scene_from_dict(changed(("objective", [track | {"times": [0.0, 0.1]}])))
    with pytest.raises(InputError, match="as many values"):
        scene_from_dict(changed(("objective", [track | {"times": [0.0]}])))


FIXED = {"type": "fixed", "stiffness": 1e3, "angular_stiffness": 10.0}
BAD = [
    # joints
    ([("couplings.hinge.axis", [0, 0, 0])], "couplings.hinge.axis", "zero"),
    ([("couplings.hinge.b", {"body": "cube"})], "couplings.hinge.b.body", "two different bodies"),
    ([("couplings.tie.a", {"at": [0, 0, 0]})], "couplings.tie.b.body", "the world"),
    ([("couplings.hinge.a", {"body": "cube"})], "couplings.hinge.a.at", "needs its place"),
    ([("couplings.hinge.b", {"body": "lnk"})], "couplings.hinge.b.body", "'link'"),
    ([("couplings.hinge.b", {"body": "hand"})], "couplings.hinge.b.body", "rigid or kinematic"),
    ([("couplings.hinge.limits.lower", 0.9)], "couplings.hinge.limits.lower", "below 0.7"),
    ([("couplings.hinge.limits.upper", 4.0)], "couplings.hinge.limits.upper", "3.14"),
    ([("couplings.hinge.stiffness", -1.0)], "couplings.hinge.stiffness", "-1"),
    ([("couplings.hinge.motor.angle", {"signal": "angel"})], "couplings.hinge.motor.angle.signal", "'angle'"),
    ([("couplings.hinge.motor.angle", {"signal": "path"})], "couplings.hinge.motor.angle", "number"),
    ([("couplings.rope.type", "string")], "couplings.rope.type", "cable"),
    ([("couplings.rope.length", -0.1)], "couplings.rope.length", "-0.1"),
    ([("couplings.glue.body", "net")], "couplings.glue.body", "rigid"),
    ([("couplings.glue.nodes", "cube")], "couplings.glue.nodes", "nodes"),
    ([("couplings.glue.where", {"nodes": [99]})], "couplings.glue.where.nodes", "0..11"),
    ([("couplings.push.on", {"at": [0, 0, 0]})], "couplings.push.on.body", "null"),
    ([("couplings.spin.body", "net")], "couplings.spin.body", "rigid"),
    (
        [
            ("couplings.one", {**FIXED, "a": {"body": "cube", "at": [0, 0, 0]}, "b": {"body": "link"}}),
            ("couplings.two", {**FIXED, "a": {"body": "link", "at": [0, 0, 0]}, "b": {}}),
            ("couplings.three", {**FIXED, "a": {"body": "cube", "at": [0, 0, 0]}, "b": {}}),
        ],
        "couplings.three",
        "close a loop",
    ),
    # masses
    ([("bodies.link.inertia", [0.1, 0.2, -0.25, 0, 0, 0])], "bodies.link.inertia", "positive definite"),
    ([("bodies.link.inertia", [0.1, 0.1, 0.5, 0, 0, 0])], "bodies.link.inertia", "moments"),
    ([("bodies.link.inertia", None)], "bodies.link.inertia", "geometry"),
    ([("bodies.cube.density", 10.0)], "bodies.cube", "density"),
    ([("bodies.cube.mass", 0.0)], "bodies.cube.mass", "above 0"),
    ([("bodies.net.mass", None)], "bodies.net.mass", "pinned"),
    # shapes
    ([("bodies.cube.geometry.size", [0.1, 0.0, 0.1])], "bodies.cube.geometry.size", "above 0"),
    ([("bodies.cube.geometry", {"shape": "cone"})], "bodies.cube.geometry.shape", "capsule"),
    ([("bodies.hand.mesh", {"points": [[0, 0, 0]], "edges": [[0, 1]]})], "bodies.hand.mesh.edges.0", "0..0"),
    ([("bodies.pusher.velocity", [1, 0, 0])], "bodies.pusher.velocity", "unknown key"),
    ([("bodies.floor", LINK)], "bodies.floor", "same name"),
    # contact and markers
    ([("contact.pairs", [{"body": "cube", "obstacle": "cube"}])], "contact.pairs.0.obstacle", "'floor'"),
    (
        [("contact.pairs", [{"body": "cube", "obstacle": "floor", "restitution": 1.2}])],
        "contact.pairs.0.restitution",
        "1",
    ),
    (
        [("contact.pairs", [{"body": "cube", "obstacle": "floor", "restitution": 0.5, "damping": 1.0}])],
        "contact.pairs.0.restitution",
        "one of them",
    ),
    ([("markers.up.body", "net")], "markers.up", "orientation"),
    ([("markers.corner", {"body": "cube", "nodes": [0]})], "markers.corner", "no nodes"),
]


@pytest.mark.parametrize(("edits", "place", "word"), BAD, ids=[f"{k}-{case[1]}" for k, case in enumerate(BAD)])
def test_bad_scene(edits, place, word) -> None:
    with pytest.raises(InputError) as error:
        scene_from_dict(changed(*edits)).build()
    text = str(error.value)
    assert any(place in line and word in line for line in text.splitlines()), text


def test_open_mesh_has_no_mass(tmp_path) -> None:
    path = tmp_path / "open.obj"
    path.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\n")
    with pytest.raises(InputError, match="not closed") as error:
        scene_from_dict(changed(("bodies.cube.geometry", {"file": str(path)}))).build()
    assert error.value.place == "bodies.cube.geometry.file"
