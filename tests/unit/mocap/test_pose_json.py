"""JSON of poses: the same as its CSV twin, gaps, orders, units; damaged files say where."""

import copy
import json

import numpy as np
import pytest

from add.commands.cli import main
from add.errors import InputError
from add.mocap import read_pose_csv, read_take

TURN = [0.5, 0.5, -0.5, 0.5]
WHOLE = np.diag([4.0, 4.0, 9.0, 1e-4, 1e-4, 4e-4])
TAKE = {
    "unit": "mm",
    "quaternion_order": "xyzw",
    "frames": [
        {"time": 0.0, "position": [100, 0, 50], "quaternion": [0, 0, 0, 1], "covariance": WHOLE.tolist(), "score": 0.9},
        {"time": 0.1, "position": None, "quaternion": None, "score": 0.0},
        {"time": 0.2, "position": {"z": 60, "x": 120, "y": 5}, "quaternion": dict(zip("xyzw", TURN, strict=True)),
         "covariance": WHOLE.ravel().tolist(), "score": 0.8},
    ],
}  # fmt: skip


@pytest.fixture
def written(tmp_path):
    def write(take):
        path = tmp_path / "take.json"
        path.write_text(take if isinstance(take, str) else json.dumps(take, indent=1))
        return path

    return write


def changed(path, value):
    take = copy.deepcopy(TAKE)
    *keys, last = path
    node = take
    for key in keys:
        node = node[key]
    if value is KeyError:
        del node[last]
    else:
        node[last] = value
    return take


def test_poses_in_metres_without_the_gaps(written):
    take = read_take(written(TAKE))
    pose = take.body(None)
    np.testing.assert_allclose(pose.times, [0.0, 0.2])
    np.testing.assert_allclose(pose.position, [[0.1, 0, 0.05], [0.12, 0.005, 0.06]])
    np.testing.assert_allclose(pose.quaternion, [[1, 0, 0, 0], [0.5, 0.5, 0.5, -0.5]])
    np.testing.assert_allclose(pose.covariance[1], np.diag([4e-6, 4e-6, 9e-6, 1e-4, 1e-4, 4e-4]))
    np.testing.assert_allclose(pose.extra["score"], [0.9, 0.8])
    assert take.unit == "mm" and take.notes[0] == "1 of 3 frames are gaps"
    turned = read_take(written(TAKE), up="y").body(None)
    np.testing.assert_allclose(turned.position[1], [0.12, -0.06, 0.005])


def test_same_as_its_csv_twin(written, pytestconfig):
    twin = read_pose_csv(pytestconfig.rootpath / "data" / "recordings" / "tagged_slide.csv")
    frames = [
        {"time": t, "position": x.tolist(), "quaternion": q.tolist(), "covariance": c.tolist()}
        for t, x, q, c in zip(twin.times, twin.position, twin.quaternion, twin.covariance, strict=True)
    ]
    pose = read_take(written({"unit": "m", "quaternion_order": "wxyz", "frames": frames})).body("body")
    for name in ("times", "position", "quaternion", "covariance"):
        np.testing.assert_allclose(getattr(pose, name), getattr(twin, name), atol=1e-15)


def test_several_bodies_and_what_info_says(written, capsys):
    take = changed(("frames", 0, "body"), "lid")
    path = written(take)
    assert code_of(["recording", "info", str(path)]) == 0
    said = capsys.readouterr().out
    assert "JSON of poses" in said and "body lid: pose in 1 frames" in said and "1 of 3 frames are gaps" in said
    with pytest.raises(InputError, match="several bodies"):
        read_take(path).body(None)


def code_of(arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code


DAMAGES = {
    "cut": (json.dumps(TAKE)[:200], "not JSON"),
    "NaN": (json.dumps(TAKE).replace("120", "NaN"), "JSON has no NaN"),
    "too deep": ('{"frames": ' + "[" * 5000 + "]" * 5000 + "}", "nested too deeply"),
    "frames is a number": (changed(("frames",), 3), "no list of frames"),
    "no frames": (changed(("frames",), []), "no body is seen"),
    "gaps alone": (changed(("frames",), [TAKE["frames"][1]]), "no body is seen"),
    "a frame is a list": (changed(("frames", 2), [0.2, 1, 2]), "frames.2: not an object"),
    "unknown key": (changed(("frames", 2, "pose"), []), "frames.2: unknown key (found 'pose'"),
    "unknown key above": (changed(("units",), "m"), "the file: unknown key (found 'units'"),
    "no unit": (changed(("unit",), KeyError), "does not say its unit"),
    "unit is a number": (changed(("unit",), 1000), "unit: not a text"),
    "unknown unit": (changed(("unit",), "ell"), "unknown unit of length"),
    "no order": (changed(("quaternion_order",), KeyError), "order of its quaternions"),
    "unknown order": (changed(("quaternion_order",), "zyxw"), "order of its quaternions"),
    "no time": (changed(("frames", 1, "time"), KeyError), "frames.1.time: no such number (found None"),
    "time is text": (changed(("frames", 2, "time"), "0.2"), "frames.2.time: no such number"),
    "time falls": (changed(("frames", 2, "time"), -0.1), "frames.2.time: times do not increase"),
    "half a pose": (changed(("frames", 0, "position"), None), "frames.0.position: no such numbers (found None"),
    "two coordinates": (changed(("frames", 0, "position"), [1, 2]), "frames.0.position: no such numbers"),
    "a coordinate too many": (changed(("frames", 2, "position", "w"), 1), "frames.2.position: a vector lacks"),
    "a truth for a number": (changed(("frames", 0, "position", 1), True), "frames.0.position: no such numbers"),
    "no unit quaternion": (changed(("frames", 0, "quaternion"), [0, 0, 1, 1]), "frames.0.quaternion: not a unit"),
    "one covariance": (changed(("frames", 2, "covariance"), KeyError), "frames.2: a frame has no covariance"),
    "a short covariance": (changed(("frames", 2, "covariance"), [1.0] * 21), "frames.2.covariance: no such numbers"),
    "not positive": (changed(("frames", 2, "covariance"), (-WHOLE).tolist()), "no covariance of a pose"),
    "one score": (changed(("frames", 2, "score"), KeyError), "frames.2: a frame has no score"),
    "no name": (changed(("frames", 0, "body"), " "), "frames.0.body: no name of a body"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_say_where(written, capsys, damage):
    take, message = DAMAGES[damage]
    path = written(take)
    assert code_of(["recording", "info", str(path)]) == 2
    said = capsys.readouterr().err
    assert "JSON of poses: " in said and str(path) in said and said.count("\n") == 1
    assert message in said.replace("JSON of poses: ", "")
