"""Pose and angle recordings: what they keep, what they refuse, and their readers."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from add.errors import InputError
from add.mocap import AngleRecording, PoseRecording, read_angle_csv, read_pose_csv, write_pose_csv

HEADER = "time_s,x_m,y_m,z_m,qw,qx,qy,qz"
ROWS = "0,1,2,3,1,0,0,0\n0.1,1,2,4,0,0,0,1\n"


def spinning(n=21, spin=(1.0, 2.0, 3.0), rate=10.0):
    """A body that turns evenly about a fixed world axis, several times, and falls."""
    t = np.arange(n) / rate
    q = Rotation.from_rotvec(t[:, None] * np.array(spin)).as_quat()[:, [3, 0, 1, 2]]
    q[1::2] *= -1.0  # a tracker may give either sign
    x = np.column_stack([t, 0.0 * t, 1.0 - 4.9 * t**2])
    v = np.column_stack([1.0 + 0.0 * t, 0.0 * t, -9.8 * t])
    return PoseRecording(t, x, q, v, np.tile(spin, (n, 1)), {"joint_rad": 0.1 * t})


def write(tmp_path, text):
    path = tmp_path / "take.csv"
    path.write_text(text)
    return path


def test_signs_continue():
    q = spinning().quaternion
    assert (np.einsum("fi,fi->f", q[1:], q[:-1]) > 0.0).all()
    np.testing.assert_allclose(np.linalg.norm(q, axis=1), 1.0, rtol=1e-15)


def test_normalises_what_was_rounded():
    recording = PoseRecording([0.0], [[0.0, 0.0, 0.0]], [[0.70711, 0.70711, 0.0, 0.0]])
    assert np.linalg.norm(recording.quaternion) == pytest.approx(1.0, abs=1e-15)
    assert recording.velocity is None
    np.testing.assert_allclose(recording.rotation_vectors, [[np.pi / 2.0, 0.0, 0.0]])


def test_arrays_are_private():
    times = np.arange(3.0)
    recording = PoseRecording(times, np.zeros((3, 3)), np.tile([1.0, 0.0, 0.0, 0.0], (3, 1)), extra={"a": times})
    times[0] = -1.0
    assert recording.times[0] == recording.extra["a"][0] == 0.0
    for array in (recording.times, recording.position, recording.quaternion, recording.extra["a"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    with pytest.raises(TypeError):
        recording.extra["b"] = times


def test_markers_move_with_the_body():
    recording = spinning(2001, rate=1000.0)
    points = np.array([[0.1, 0.0, 0.0], [0.0, -0.2, 0.3]])
    markers = recording.markers(points, ["a", "b"])
    assert markers.names == ("a", "b")
    assert recording.markers(points).names == ("point_0", "point_1")
    arms = np.einsum("fij,mj->fmi", recording.rotations, points)
    np.testing.assert_allclose(markers.positions - recording.position[:, None], arms, atol=1e-15)
    velocity = recording.velocity[:, None] + np.cross(recording.angular_velocity[:, None], arms)
    np.testing.assert_allclose(np.gradient(markers.positions, 1e-3, axis=0)[1:-1], velocity[1:-1], atol=1e-5)


def test_crop_and_origin():
    part = spinning().crop(0.45, 1.05).with_origin(0.5)
    np.testing.assert_allclose(part.times, np.arange(6) / 10.0 + 0.0, atol=1e-15)
    assert part.n_frames == len(part.velocity) == len(part.angular_velocity) == len(part.extra["joint_rad"]) == 6
    with pytest.raises(InputError, match="no frame in the window"):
        part.crop(7.0)


def test_transformed():
    recording = spinning()
    turn, shift = Rotation.from_rotvec([0.3, -0.2, 1.0]).as_matrix(), np.array([1.0, 2.0, 3.0])
    moved = recording.transformed(turn, shift)
    points = np.array([[0.1, 0.2, 0.3]])
    np.testing.assert_allclose(
        moved.markers(points).positions, recording.markers(points).transformed(turn, shift).positions, atol=1e-14
    )
    np.testing.assert_allclose(moved.velocity, recording.velocity @ turn.T)
    np.testing.assert_allclose(moved.angular_velocity, recording.angular_velocity @ turn.T)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"times": [0.0, 0.0]}, "time does not increase"),
        ({"times": [0.0]}, "wrong shape"),
        ({"position": np.zeros((2, 2))}, "position has the wrong shape"),
        ({"position": [[0.0, 0.0, 0.0], [0.0, np.nan, 0.0]]}, r"frame 1 .*position is not finite"),
        (
            {"quaternion": [[1.0, 0.0, 0.0, 0.0], [0.9, 0.0, 0.0, 0.0]]},
            r"frame 1: not a unit quaternion .found norm 0.9",
        ),
        ({"quaternion": [[0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]]}, "frame 0: not a unit"),
        ({"velocity": np.zeros((3, 3))}, "velocity has the wrong shape"),
        ({"angular_velocity": np.full((2, 3), np.inf)}, "angular_velocity is not finite"),
        ({"position": np.full((2, 3), 1e200)}, r"position is not finite, or beyond 1e\+60"),
        ({"extra": {"a": [1.0]}}, "a has the wrong shape"),
    ],
)
def test_refuses(change, message):
    good = {"times": [0.0, 1.0], "position": np.zeros((2, 3)), "quaternion": [[1.0, 0.0, 0.0, 0.0]] * 2}
    with pytest.raises(InputError, match=message):
        PoseRecording(**(good | change))


@pytest.mark.parametrize("points", [np.zeros(3), np.zeros((2, 2)), [[0.0, 0.0, np.nan]]])
def test_bad_points(points):
    with pytest.raises(InputError, match="bad points"):
        spinning().markers(points)


# --- readers ----------------------------------------------------------------------------------------------------------


def test_reads_poses(tmp_path):
    path = write(tmp_path, f"# made by hand\n{HEADER}\n{ROWS}")
    recording = read_pose_csv(path)
    np.testing.assert_array_equal(recording.position, [[1.0, 2.0, 3.0], [1.0, 2.0, 4.0]])
    np.testing.assert_array_equal(recording.quaternion[1], [0.0, 0.0, 0.0, 1.0])
    assert recording.velocity is None
    assert recording.angular_velocity is None
    assert not recording.extra
    assert recording.source == str(path)


@pytest.mark.parametrize(("frame", "second"), [("", [1.0, 2.0, 3.0]), ("body_", [-1.0, -2.0, 3.0])])
def test_spin_becomes_world(tmp_path, frame, second):
    header = HEADER + "".join(f",w{axis}_{frame}rad_s" for axis in "xyz") + ",joint_rad"
    text = header + "\n0,0,0,0,1,0,0,0,1,2,3,7\n1,0,0,0,0,0,0,1,1,2,3,8\n"  # then half a turn about z
    recording = read_pose_csv(write(tmp_path, text))
    np.testing.assert_allclose(recording.angular_velocity, [[1.0, 2.0, 3.0], second], atol=1e-15)
    np.testing.assert_array_equal(recording.extra["joint_rad"], [7.0, 8.0])


def test_other_headings(tmp_path):
    text = "t,x_m,y_m,z_m,W,qx,qy,qz\n" + ROWS
    recording = read_pose_csv(write(tmp_path, text), columns={"t": "time_s", "W": "qw"})
    np.testing.assert_array_equal(recording.times, [0.0, 0.1])


@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        (HEADER, ROWS.replace("3,1,0", "3,,0"), r"line 2, column 5 .qw.: a value is missing"),
        (HEADER, ROWS.replace("2,4", "2,nan"), r"line 3, column 4 .z_m.: a value is missing"),
        (HEADER, ROWS.replace("2,4", "2,abc"), r"line 3, column 4 .z_m.: not a number .found 'abc'"),
        (HEADER, ROWS.replace("0.1,", "0.0,"), r"line 3, column 1 .time_s.: the time repeats"),
        (HEADER, ROWS.replace("0,0,0,1", "0,0,0,2"), r"line 3, columns qw, qx, qy, qz: not a unit quaternion"),
        (HEADER, ROWS.replace("0,0,0,1", "0,0,0,1e200"), r"not a unit quaternion .found norm 1e\+200"),
        (HEADER, ROWS.replace("1,2,4,", "1,2,"), "line 3: wrong number of cells .found 7; expected 8"),
        (HEADER, "", "no frames after the header"),
        (HEADER.replace("y_m", "why_m"), ROWS, "line 1: a vector lacks components .found only 'x_m', 'z_m'"),
        (HEADER.replace("x_m,y_m,z_m", "a,b,c"), ROWS, "line 1: the position is missing .expected 'x_m'"),
        (HEADER.replace("time_s", "time"), ROWS, "the first column is not the time"),
        (HEADER.replace("qx", "qw"), ROWS, "line 1, column 6: two columns have the same name"),
    ],
)
def test_bad_files(tmp_path, header, rows, message):
    with pytest.raises(InputError, match=message) as caught:
        read_pose_csv(write(tmp_path, f"{header}\n{rows}"))
    assert "take.csv" in str(caught.value)


def test_two_kinds_of_spin(tmp_path):
    both = "".join(f",w{axis}_{frame}rad_s" for frame in ("", "body_") for axis in "xyz")
    with pytest.raises(InputError, match="in world axes and in those of the body"):
        read_pose_csv(write(tmp_path, HEADER + both + "\n"))


def test_no_such_column_to_rename(tmp_path):
    with pytest.raises(InputError, match="no such column to rename"):
        read_pose_csv(write(tmp_path, f"{HEADER}\n{ROWS}"), columns={"W": "qw"})


def test_angles(tmp_path):
    text = "time_s,a_rad,b_rad,da_rad_s,b_rad_s\n0,1,2,3,4\n0.5,5,6,7,8\n1,9,10,11,12\n"
    recording = read_angle_csv(write(tmp_path, text))
    assert recording.names == ("a", "b")
    np.testing.assert_array_equal(recording.angles, [[1.0, 2.0], [5.0, 6.0], [9.0, 10.0]])
    np.testing.assert_array_equal(recording.rates, [[3.0, 4.0], [7.0, 8.0], [11.0, 12.0]])
    part = recording.crop(0.5).with_origin(0.5)
    assert part.n_frames == 2
    np.testing.assert_array_equal(part.times, [0.0, 0.5])
    np.testing.assert_array_equal(part.rates, recording.rates[1:])
    with pytest.raises(InputError, match="no frame in the window"):
        part.crop(3.0)
    assert read_angle_csv(write(tmp_path, "time_s,a_rad\n0,1\n")).rates is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time_s,a_deg\n0,1\n", "no angles in the header"),
        ("time_s,a_rad,x_m\n0,1,2\n", "line 1, column 3: not an angle or its rate .found 'x_m'"),
        ("time_s,a_rad,b_rad,da_rad_s,a_rad_s\n0,1,2,3,4\n", "not one rate for every angle"),
        ("time_s,a_rad\n0,\n", r"line 2, column 2 .a_rad.: a value is missing"),
    ],
)
def test_bad_angles(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_angle_csv(write(tmp_path, text))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"names": ("a", "a")}, "bad names"),
        ({"times": [1.0, 0.0]}, "time does not increase"),
        ({"angles": np.zeros((2, 1))}, "angles have the wrong shape"),
        ({"rates": np.full((2, 2), np.nan)}, "'a', frame 0 .*rates are not finite"),
        ({"rates": np.full((2, 2), 1e200)}, r"rates are not finite, or beyond 1e\+60"),
    ],
)
def test_angles_refuse(change, message):
    good = {"names": ("a", "b"), "times": [0.0, 1.0], "angles": np.zeros((2, 2))}
    with pytest.raises(InputError, match=message):
        AngleRecording(**(good | change))


def test_a_pose_is_written_with_all_that_it_has(tmp_path):
    """Rates, covariances, by which a fit weighs its frames, and other columns such as the angle of a joint."""
    rng, times = np.random.default_rng(0), 0.1 * np.arange(5)
    roots, quaternion = rng.normal(size=(5, 6, 6)), rng.normal(size=(5, 4))
    quaternion /= np.linalg.norm(quaternion, axis=1)[:, None]
    covariance = roots @ roots.transpose(0, 2, 1) + np.eye(6)
    rates, extra = rng.normal(size=(3, 5, 3)), {"elbow, left": rng.normal(size=5)}
    for optional in ((rates[1], rates[2], extra, "", covariance), (None, None, {}, "", None)):
        pose = PoseRecording(times, rates[0], quaternion, *optional)
        write_pose_csv(tmp_path / "pose.csv", pose)
        found = read_pose_csv(tmp_path / "pose.csv")
        np.testing.assert_allclose(found.quaternion, pose.quaternion, rtol=0, atol=1e-15)
        for name in ("times", "position", "velocity", "angular_velocity", "covariance"):
            np.testing.assert_array_equal(getattr(found, name), getattr(pose, name))
        assert found.extra.keys() == pose.extra.keys()
        np.testing.assert_array_equal(list(found.extra.values()), list(pose.extra.values()))
