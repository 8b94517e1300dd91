"""From a run to the arrays and numbers of its folder: rigid bodies, particles, links and contacts."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from add.commands.run_summary import summary
from add.io.trajectory_file import read_run, write_run
from add.joints.law_term import JointLaw
from add.kernels.shape_codes import BOX, CYLINDER
from add.scene import scene_from_dict
from add.scene.build.run_data import run_data
from add.terms import Gravity, RigidInertia

TILT = [np.cos(0.3), 0.0, np.sin(0.3), 0.0]
SCENE = {
    "schema": "add-scene/1",
    "time": {"dt": 0.002, "steps": 60},
    "bodies": {
        "crate": {
            "type": "rigid", "geometry": {"shape": "box", "size": [0.2, 0.1, 0.06]}, "mass": 0.5,
            "center_of_mass": [0.02, 0.0, 0.01], "position": [0, 0, 0.05], "velocity": [0.3, 0, 0],
            "angular_velocity": [0, 0, 2],
        },
        "flap": {
            "type": "rigid", "geometry": {"shape": "cylinder", "radius": 0.05, "half_length": 0.1}, "mass": 0.2,
            "position": [-0.4, 0, 0.4], "orientation": TILT, "collision": {"shape": False, "points": False},
        },
        "pusher": {
            "type": "kinematic", "geometry": {"shape": "box", "size": [0.1, 0.1, 0.1]}, "position": [0.6, 0, 0.05],
            "translation": [0, 0, 0.1],
        },
        "cloth": {
            "type": "particles", "mesh": {"shape": "sheet", "size": [0.2, 0.1], "divisions": [3, 2]}, "mass": 0.05,
            "stiffness": 40, "position": [0.3, 0.4, 0.5], "velocity": [0.1, 0, 0],
        },
        "handle": {
            "type": "particles", "mesh": {"points": [[0, 0, 0]]}, "position": [0, 0, 0.5],
            "pins": [{"where": {"all": True}}],
        },
    },
    "obstacles": {"floor": {"shape": "plane", "normal": [0, 0, 1], "point": [0, 0, 0]}},
    "couplings": {
        "hinge": {
            "type": "hinge", "a": {"at": [-0.4, 0, 0.5]}, "b": {"body": "flap"}, "axis": [0, 2, 0],
            "stiffness": 2000, "angular_stiffness": 20,
        },
        "rope": {
            "type": "cable", "a": {"body": "handle"}, "b": {"body": "crate", "at": [-0.1, 0, 0.03]},
            "stiffness": 5, "damping": 0.1, "length": 0.3,
        },
        "loose": {
            "type": "cable", "a": {"body": "handle"}, "b": {"body": "flap", "at": [0, 0, 0]}, "stiffness": 5,
            "length": 3.0,
        },
        "push": {"type": "force", "on": {"body": "crate", "at": [0.1, 0, 0]}, "force": {"signal": "ramp"}},
        "twist": {"type": "torque", "body": "flap", "torque": {"signal": "ramp"}},
    },
    "signals": {"ramp": {"type": "table", "times": [0, 1], "values": [[0, 0, 0], [0, 2, 0]]}},
    "contact": {"stiffness": 500, "damping": 1, "friction": 0.2, "stick_stiffness": 5, "onset": 1e-3},
    "markers": {
        "corner": {"body": "crate", "point": [0.1, 0.05, 0.03]},
        "up": {"body": "flap", "direction": [0, 0, 1]},
    },
    "objective": [
        {"type": "pose", "body": "crate", "translation": [0.3, 0, 0.03], "orientation": TILT, "time": "end"},
        {"type": "point", "marker": "corner", "target": [1, 2, 3], "time": "end"},
        {"type": "point", "marker": "corner", "target": [1, 2, 3], "axes": "z", "time": "end"},
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def case():
    built = scene_from_dict(SCENE).build()
    trajectory = built.run()
    return built, trajectory, run_data(built, trajectory, built.theta, every=7)


def test_bodies(case):
    data = case[2]
    crate, flap, pusher = data.solids
    assert (crate.kind, flap.kind, pusher.kind) == (BOX, CYLINDER, BOX), "also where it meets nothing"
    np.testing.assert_allclose(crate.size, [0.1, 0.05, 0.03])
    np.testing.assert_allclose(crate.centre, [0.02, 0.0, 0.01])
    assert pusher.kinematic and not crate.kinematic
    np.testing.assert_allclose(data.pose(crate, 0)[1], [0, 0, 0.05], atol=1e-15)
    np.testing.assert_allclose(data.pose(pusher, 0)[1], [0.6, 0, 0.15])
    np.testing.assert_allclose(data.pose(flap, 0)[0], Rotation.from_quat(TILT, scalar_first=True).as_matrix())
    for k in (0, -1):
        rotation, position = data.pose(crate, k)
        np.testing.assert_allclose(rotation @ [0.1, 0.05, 0.03] + position, data.markers["corner"][k])
    assert "up" not in data.markers, "a direction is no place"
    assert [sheet.name for sheet in data.sheets] == ["cloth", "handle"]
    np.testing.assert_allclose(data.positions(data.sheets[1], -1), [[0, 0, 0.5]])


def test_links(case):
    data = case[2]
    assert {name: line.kind for name, line in data.lines.items()} == {
        "rope": "cable", "loose": "cable", "push": "load",
    }  # fmt: skip
    rope, push = data.lines["rope"], data.lines["push"]
    np.testing.assert_allclose(rope.ends[:, 0], np.tile([0, 0, 0.5], (data.n_states, 1)), atol=1e-15)
    rotation, position = data.pose(data.solids[0], -1)
    np.testing.assert_allclose(rope.ends[-1, 1], rotation @ [-0.1, 0, 0.03] + position)
    for k in range(data.n_states):
        velocity, spin = data.twist(data.solids[0], k)
        arm = rope.ends[k, 1] - data.q[k, data.solids[0].entries][:3]
        away = rope.ends[k, 1] - rope.ends[k, 0]
        length = np.linalg.norm(away)
        rate = (velocity + np.cross(spin, arm)) @ away / length
        assert rope.tension[k] == pytest.approx(5 * (length - 0.3) + 0.1 * rate)
    assert not data.lines["loose"].tension.any()
    np.testing.assert_allclose(push.tension, 2 * data.t)
    np.testing.assert_allclose(push.ends[1:, 1] - push.ends[1:, 0], np.tile([0, 1.0, 0], (data.n_states - 1, 1)))
    hinge = data.joints["hinge"]
    np.testing.assert_allclose(hinge.place, np.tile([-0.4, 0, 0.5], (data.n_states, 1)))
    np.testing.assert_allclose(hinge.axis, np.tile([0, 1.0, 0], (data.n_states, 1)), atol=1e-12)


def test_contacts(case):
    data = case[2]
    assert data.contacts.offsets[-1] > 0, "nothing touches"
    start = data.solids[0].start
    for k in range(data.n_states):
        places, forces = data.contacts.at(k)
        np.testing.assert_allclose(forces.sum(axis=0), data.contact_force[k, start : start + 3], atol=1e-10)
        assert (places[:, 2] < 1e-3).all()
    assert not data.contact_force[:, data.solids[1].entries].any(), "cables are no contacts"


def test_energies(case):
    built, trajectory, data = case
    kin, model = trajectory.kinematics(trajectory.n_steps), built.model
    (rigid,) = model.term(RigidInertia)
    assert data.energy["kinetic"][-1] > rigid.kinetic_energy(kin, built.theta) > 0.0
    assert list(data.energy) == ["kinetic", "elastic", "gravity", "coupling", "contact"]
    smooth = sum(term.energy(kin, built.theta) for term in model.term(JointLaw))
    rope = data.lines["rope"].ends[-1]
    stored = 2.5 * max(0.0, np.linalg.norm(rope[0] - rope[1]) - 0.3) ** 2
    assert data.energy["coupling"][-1] == pytest.approx(smooth + stored)
    assert data.energy["gravity"][-1] == pytest.approx(sum(t.energy(kin, built.theta) for t in model.term(Gravity)))


def test_goals(case):
    data = case[2]
    assert list(data.goals) == ["crate", "corner"], "a target along one axis is no place"
    np.testing.assert_allclose(data.goals["crate"].position, [0.3, 0, 0.03])
    np.testing.assert_allclose(data.goals["corner"].points, [[1, 2, 3]])


def test_file(tmp_path, case):
    data = case[2]
    write_run(tmp_path / "a.h5", data)
    again = read_run(tmp_path / "a.h5")
    np.testing.assert_array_equal(again.contacts.places, data.contacts.places)
    np.testing.assert_array_equal(again.lines["rope"].tension, data.lines["rope"].tension)


def test_summary(case):
    built, trajectory, data = case
    found = summary(built, trajectory, built.theta)
    crate, pusher, cloth, handle = (found["bodies"][name] for name in ("crate", "pusher", "cloth", "handle"))
    assert crate["mass"] == pytest.approx(0.5)
    np.testing.assert_allclose(crate["centre"], data.q[-1, data.solids[0].entries][:3])
    rotation, _ = data.pose(data.solids[0], data.n_states - 1)
    np.testing.assert_allclose(Rotation.from_quat(crate["orientation"], scalar_first=True).as_matrix(), rotation)
    np.testing.assert_allclose(crate["angular_velocity"], data.twist(data.solids[0], data.n_states - 1)[1])
    assert crate["speed"] == pytest.approx(np.linalg.norm(crate["velocity"]))
    assert "mass" not in pusher
    np.testing.assert_allclose(pusher["centre"], [0.6, 0, 0.15])
    assert cloth["mass"] == pytest.approx(0.05) and cloth["nodes"] == 12 and "elements" not in cloth
    np.testing.assert_allclose(cloth["velocity"][0], 0.1)
    assert handle["mass"] == 0.0
    np.testing.assert_allclose(handle["centre"], [0, 0, 0.5])
    assert found["contact"]["touching"] > 0 and "slack" not in found["contact"]
    assert found["couplings"]["slack"] >= trajectory.n_steps
    assert found["energy"]["coupling"] == pytest.approx(data.energy["coupling"][-1])
    np.testing.assert_allclose(found["markers"]["corner"]["final"], data.markers["corner"][-1])
