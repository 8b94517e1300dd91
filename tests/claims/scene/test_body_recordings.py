"""Recordings of poses and angles as targets of markers on rigid bodies; bodies that start on hinges."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from add.errors import InputError
from add.kernels.rotation import left_jacobian, rotation_matrix
from add.scene import scene_from_dict
from add.scene.build.recordings import load_recording

POSE_HEADER = "time_s,x_m,y_m,z_m,qw,qx,qy,qz,elbow_rad\n"


def arms(**recording) -> dict:
    """Return a scene of two arms on hinges, started askew and spinning."""
    body = {
        "type": "rigid",
        "mass": 0.2,
        "inertia": [2e-4, 3e-4, 4e-4, 1e-5, 0, 2e-5],
        "center_of_mass": [0.02, 0.01, -0.1],
    }
    hinge = {"type": "hinge", "stiffness": 1e5, "angular_stiffness": 500.0}
    scene = {
        "schema": "add-scene/1",
        "name": "arms",
        "time": {"dt": 0.002, "duration": 0.02},
        "bodies": {
            "one": {**body, "position": [0.1, 0.2, 0.3], "orientation": [0.8, 0.0, 0.6, 0.0], "velocity": [1, 2, 0.5],
                    "angular_velocity": [1, -2, 3]},
            "two": {**body, "orientation": [0.6, 0.8, 0.0, 0.0]},
            "three": {**body},
        },
        "couplings": {
            "far": {**hinge, "a": {"body": "two", "at": [0, 0, -0.2]}, "b": {"body": "three", "at": [0, 0, 0.02]},
                    "axis": [0, 1, 1], "start": {"angle": -0.7, "rate": 2.0}},
            "near": {**hinge, "a": {"body": "one", "at": [0, 0.01, -0.2]}, "b": {"body": "two", "at": [0.01, 0, 0]},
                     "axis": [1, 2, 0], "start": {"angle": 0.5, "rate": -3.0}},
        },
        "markers": {
            "tip": {"body": "one", "point": [0.01, 0.02, -0.2]},
            "axis": {"body": "one", "direction": [0, 0, 2]},
            "other": {"body": "two", "point": [0, 0, -0.1]},
        },
        "objective": [{"type": "markers"}],
        "parameters": [{"path": "couplings.near.start.angle"}],
    }  # fmt: skip
    if recording:
        scene["recording"] = recording
    else:
        del scene["objective"], scene["parameters"]
    return scene


def pose_file(path, angle: float = 0.3):
    turn = Rotation.from_rotvec([0.2, 0.1, -0.4])
    x, y, z, w = turn.as_quat()
    path.write_text(
        POSE_HEADER + "".join(f"{0.005 * k},{0.1 * k},0.2,0.3,{w},{x},{y},{z},{angle}\n" for k in range(4)),
        encoding="utf-8",
    )
    return str(path), turn


def test_pose_becomes_markers_of_the_body(tmp_path) -> None:
    file, turn = pose_file(tmp_path / "pose.csv")
    scene = scene_from_dict(arms(file=file, scale=1.1, pose={"body": "one"}))
    recording = load_recording(scene, "recording")
    assert recording.names == ("tip", "axis")
    expected = 1.1 * np.array([0.2, 0.2, 0.3]) + turn.apply([0.01, 0.02, -0.2])
    np.testing.assert_allclose(recording.positions[2, 0], expected, atol=1e-12)
    np.testing.assert_allclose(recording.positions[2, 1], turn.apply([0, 0, 1]), atol=1e-12)
    value, gradient = scene.inverse_problem().value_and_grad(scene.inverse_problem().x0)
    assert value > 0.0 and np.isfinite(gradient).all()


def test_angle_of_a_hinge_gives_the_second_body(tmp_path) -> None:
    file, turn = pose_file(tmp_path / "pose.csv")
    joint = {"body": "two", "angle": "elbow_rad", "at_a": [0.1, 0, 0], "at_b": [-0.1, 0, 0], "axis": [0, 0, 3]}
    scene = scene_from_dict(arms(file=file, pose={"body": "one", "joint": joint}))
    recording = load_recording(scene, "recording")
    swing = Rotation.from_rotvec([0, 0, 0.3])
    on_first = np.array([0.1, 0, 0]) + swing.apply(np.array([0, 0, -0.1]) - np.array([-0.1, 0, 0]))
    expected = np.array([0.0, 0.2, 0.3]) + turn.apply(on_first)
    np.testing.assert_allclose(recording.positions[0, recording.names.index("other")], expected, atol=1e-12)


def test_angles_turn_directions(tmp_path) -> None:
    path = tmp_path / "angles.csv"
    path.write_text("time_s,phi_rad\n0,0.0\n0.01,0.5\n", encoding="utf-8")
    angles = {"phi": {"marker": "axis", "axis": [0, -2, 0], "zero": [0, 0, 1]}}
    recording = load_recording(scene_from_dict(arms(file=str(path), angles=angles)), "recording")
    np.testing.assert_allclose(recording.positions[1, 0], [-np.sin(0.5), 0, np.cos(0.5)], atol=1e-15)


@pytest.mark.parametrize(
    ("recording", "place", "word"),
    [
        ({}, "recording", "exactly one"),
        ({"pose": {"body": "one"}, "markers": {"a": "tip"}}, "recording", "exactly one"),
        ({"pose": {"body": "four"}}, "recording.pose.body", "no body"),
        ({"pose": {"body": "three"}}, "recording.pose.body", "no marker"),
        ({"pose": {"body": "one"}, "unit": "mm"}, "recording.unit", "metres"),
        (
            {"angles": {"phi": {"marker": "tip", "axis": [1, 0, 0], "zero": [0, 0, 1]}}},
            "angles.phi.marker",
            "direction",
        ),
    ],
)
def test_bad_recordings(tmp_path, recording, place, word) -> None:
    file, _ = pose_file(tmp_path / "pose.csv")
    with pytest.raises(InputError) as error:
        scene_from_dict(arms(file=file, **recording))
    assert any(place in line and word in line for line in str(error.value).splitlines()), str(error.value)


def test_unknown_column_of_an_angle(tmp_path) -> None:
    file, _ = pose_file(tmp_path / "pose.csv")
    joint = {"body": "two", "angle": "wrist_rad", "at_a": [0, 0, 0], "axis": [0, 0, 1]}
    scene = scene_from_dict(arms(file=file, pose={"body": "one", "joint": joint}))
    with pytest.raises(InputError, match="elbow_rad"):
        load_recording(scene, "recording")


# --- starts on hinges -------------------------------------------------------------------------------------------------


def frames(scene: dict):
    """Return position of the frame, rotation, velocity of the centre of mass and angular velocity of each body."""
    built = scene_from_dict(scene).build()
    q, v = built.model.initial.evaluate(built.theta)
    out = {}
    for name in ("one", "two", "three"):
        start = built.model.system.dofs[name].start
        R = rotation_matrix(q[start + 3 : start + 6])
        omega = left_jacobian(q[start + 3 : start + 6]) @ v[start + 3 : start + 6]
        out[name] = q[start : start + 3], R, v[start : start + 3], omega
    return out


def test_hinged_bodies_start_on_their_hinges() -> None:
    scene = arms()
    found = frames(scene)
    centre = np.array(scene["bodies"]["one"]["center_of_mass"])
    for name, a, b, first in (("near", "one", "two", [0.8, 0, 0.6, 0]), ("far", "two", "three", [0.6, 0.8, 0, 0])):
        item = scene["couplings"][name]
        (x_a, R_a, v_a, o_a), (x_b, R_b, v_b, o_b) = found[a], found[b]
        arm_a, arm_b = R_a @ (np.array(item["a"]["at"]) - centre), R_b @ (np.array(item["b"]["at"]) - centre)
        np.testing.assert_allclose(x_a + arm_a, x_b + arm_b, atol=1e-14)
        np.testing.assert_allclose(v_a + np.cross(o_a, arm_a), v_b + np.cross(o_b, arm_b), atol=1e-13)
        axis = np.array(item["axis"]) / np.linalg.norm(item["axis"])
        np.testing.assert_allclose(o_b - o_a, item["start"]["rate"] * R_a @ axis, atol=1e-13)
        second = scene["bodies"][b].get("orientation", [1.0, 0, 0, 0])
        zero = Rotation.from_quat(np.roll(first, -1)).inv() * Rotation.from_quat(np.roll(second, -1))
        expected = R_a @ Rotation.from_rotvec(item["start"]["angle"] * axis).as_matrix() @ zero.as_matrix()
        np.testing.assert_allclose(R_b, expected, atol=1e-14)


def test_derivatives_of_a_hinged_start() -> None:
    built = scene_from_dict(arms()).build()
    initial, theta = built.model.initial, built.theta
    rng = np.random.default_rng(0)
    h = 1e-6
    for _ in range(3):
        along = rng.normal(size=theta.size) * (np.abs(theta) < 100.0)
        q_dot, v_dot = initial.jvp(theta, along)
        up, down = initial.evaluate(theta + h * along), initial.evaluate(theta - h * along)
        np.testing.assert_allclose(q_dot, (up[0] - down[0]) / (2 * h), atol=2e-8)
        np.testing.assert_allclose(v_dot, (up[1] - down[1]) / (2 * h), atol=2e-7)
        q_bar, v_bar, out = rng.normal(size=q_dot.size), rng.normal(size=v_dot.size), np.zeros_like(theta)
        initial.vjp(theta, q_bar, v_bar, out)
        assert out @ along == pytest.approx(q_bar @ q_dot + v_bar @ v_dot, rel=1e-12)


def test_hinges_in_a_circle() -> None:
    scene = arms()
    scene["couplings"]["near"]["a"]["body"] = "three"
    with pytest.raises(InputError, match="circle"):
        scene_from_dict(scene).build()


def test_two_starts_of_one_body() -> None:
    scene = arms()
    scene["couplings"]["again"] = {**scene["couplings"]["near"], "a": {"at": [0, 0, 0]}}
    with pytest.raises(InputError, match="already starts") as error:
        scene_from_dict(scene).build()
    assert error.value.place == "couplings.again.start"
