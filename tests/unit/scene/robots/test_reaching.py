"""Joint values that bring a point of a link to a place, beside where the built robot has it."""

import numpy as np
import pytest

from add import scene_from_dict
from add.commands.template_scenes import reaching
from add.scene.robots import read_robot

POINT, START = np.array([0.02, 0.05, 0.1]), {"turn": 0.3, "lift": 0.0, "bend": 1.0, "tip": 0.2}


def link(name: str) -> str:
    inertia = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    return f'<link name="{name}"><inertial><mass value="1"/>{inertia}</inertial></link>'


def joint(name: str, kind: str, parent: str, child: str, origin: str, axis: str, more: str = "") -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/><origin {origin}/><axis xyz="{axis}"/>'
    limit = '<limit lower="-0.4" upper="2.5" effort="9" velocity="9"/>' if kind in ("revolute", "prismatic") else ""
    return f'<joint name="{name}" type="{kind}">{ends}{limit}{more}</joint>'


ARM = "".join([
    '<robot name="arm">', *map(link, ("base", "a", "b", "c", "d", "hand")),
    joint("turn", "continuous", "base", "a", 'xyz="0.1 0 0.2" rpy="0.3 -0.2 1"', "0 0.6 0.8"),
    joint("lift", "prismatic", "a", "b", 'xyz="0 0.1 0.3" rpy="0 0.5 0"', "0 0 1"),
    joint("bend", "revolute", "b", "c", 'xyz="0.4 0 0"', "0 1 0"),
    joint("follows", "revolute", "c", "d", 'xyz="0.3 0 0" rpy="1 0 0"', "1 0 0",
          '<mimic joint="bend" multiplier="-0.5" offset="0.1"/>'),
    joint("tip", "revolute", "d", "hand", 'xyz="0.2 0 0"', "0 0 1"),
    "</robot>",
])  # fmt: skip


def hand_at(file: str, values: dict[str, float], link: str = "hand") -> np.ndarray:
    """The point of a link of the built robot."""
    body = {"type": "articulated", "model": file, "joints": {name: {"value": x} for name, x in values.items()}}
    built = scene_from_dict({
        "schema": "add-scene/1", "time": {"dt": 0.01, "steps": 1}, "gravity": [0, 0, 0], "bodies": {"arm": body},
        "markers": {"tip": {"body": f"arm/{link}", "point": POINT.tolist()}},
    }).build()  # fmt: skip
    return built.markers.points(built.simulation.run(n_steps=0).kinematics(0), built.theta)[0][0]


@pytest.mark.parametrize("seed", range(3))
def test_the_point_is_where_it_was_wanted(seed, tmp_path):
    file = tmp_path / "arm.urdf"
    file.write_text(ARM)
    drawn = dict(zip(START, np.random.default_rng(seed).uniform(-0.3, 2.0, 4).tolist(), strict=True))
    target = hand_at(str(file), drawn)
    found = reaching(read_robot(str(file)), "hand", POINT, target, START)
    assert all(-0.4 <= found[name] <= 2.5 for name in ("lift", "bend", "tip"))
    assert np.abs(hand_at(str(file), found) - target).max() < 2e-3


def test_a_finger_follows_a_joint_that_does_not_lead_to_it(tmp_path):
    """The leader keeps its start, and a start beyond the stops is none to begin from."""
    file = tmp_path / "arm.urdf"
    mimic = '<mimic joint="open" multiplier="-1" offset="0.5"/>'
    fingers = joint("open", "prismatic", "hand", "f", 'xyz="0 0.1 0"', "0 1 0")
    fingers += joint("close", "prismatic", "hand", "g", 'xyz="0 -0.1 0"', "0 1 0", mimic)
    file.write_text(ARM.replace("</robot>", f"{link('f')}{link('g')}{fingers}</robot>"))
    start = START | {"open": 0.2, "bend": -5.0}
    target = hand_at(str(file), dict(zip(START, (0.4, 0.5, 0.6, 0.7), strict=True)) | {"open": 0.2}, "g")
    found = reaching(read_robot(str(file)), "g", POINT, target, start)
    assert "open" not in found
    assert np.abs(hand_at(str(file), found | {"open": 0.2}, "g") - target).max() < 2e-3


def test_what_is_out_of_reach_is_approached(tmp_path):
    file = tmp_path / "arm.urdf"
    file.write_text(ARM)
    found = reaching(read_robot(str(file)), "hand", POINT, np.array([50.0, 0.0, 0.0]), START)
    assert found["lift"] == pytest.approx(2.5, abs=0.2)
