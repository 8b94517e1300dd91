"""What looks wrong in a robot's file and cannot matter is read with a note."""

import numpy as np
import pytest
from support.robot_files import INERTIAL, inertial, joint, link, urdf, written

from add.errors import InputError
from add.scene import scene_from_dict
from add.scene.robots import read_robot

BASE, ARM, TURN = link("base"), link("arm"), joint("turn", "base", "arm")
AXES = [1e-200, 1e-30, 3e-10, 1.0, 2e13, 1e200]


def notes(robot):
    """Return all but that velocities of <limit> act on nothing."""
    return [text for text in robot.ignored if "velocity of <limit>" not in text]


def test_what_no_motion_keeps_to_is_noted(tmp_path):
    more = '<limit lower="-1" upper="1"/><safety_controller k_velocity="1"/>'
    robot = read_robot(written(tmp_path, urdf(BASE, ARM, link("hand"), TURN, joint("grip", "arm", "hand", more=more))))
    assert robot.ignored == (
        "robot: velocity of <limit> of joint 'turn', which no motion keeps to",
        "robot: <safety_controller> of joint 'grip', which no motion keeps to",
    )


def test_attributes_that_a_urdf_does_not_have_are_noted_once(tmp_path):
    """By element, attribute, first line and count; those of other programs' elements and namespaces are not."""
    shape = '<collision group="3"><geometry><sphere radius="0.1" detail="8"/></geometry></collision>'
    more = '<limit lower="-1" upper="1" current="2" ros:unit="A"/>'
    first = joint("turn", "base", "arm", more=more)
    second = joint("grip", "arm", "hand", more=more + '<mimic joint="turn"/>')
    other = '<gazebo reference="arm"><sensor type="imu" rate="9"/></gazebo>'
    robot = read_robot(written(tmp_path, urdf(link("base", shape), ARM, link("hand"), first, second, other)))
    found = [text for text in robot.ignored if "which a URDF does not have" in text]
    assert found == [
        "line 2: group of <collision>, which a URDF does not have",
        "line 2: detail of <sphere>, which a URDF does not have",
        "line 5: current of <limit>, 2 times, which a URDF does not have",
    ]


def test_known_attributes_are_not_noted(tmp_path):
    """Every attribute of the format, with the declarations that xacro leaves."""
    solid = "<visual name='v'><origin xyz='0 0 0' rpy='0 0 0'/><geometry><box size='1 1 1'/></geometry>"
    solid += "<material name='m'><color rgba='1 1 1 1'/><texture filename='t.png'/></material></visual>"
    more = '<limit lower="-1" upper="1" effort="2" velocity="3"/><dynamics damping="1" friction="1"/>'
    text = urdf(link("base", solid), ARM, joint("turn", "base", "arm", more=more))
    text = text.replace("<robot ", '<robot xmlns="urdf" xmlns:xacro="http://ros.org" version="1.0" ', 1)
    assert notes(read_robot(written(tmp_path, text))) == []


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize(
    ("own", "note"),
    [
        (inertial(moments=(-2e-22, 1e-25, 1e-25)), "impossible principal moments -2e-22"),
        (inertial(mass=0), "inertia without mass, of a link that stands still"),
    ],
)
def test_inertia_of_what_stands_still(own, note, held, tmp_path):
    """Of the base or of a link that a fixed joint holds to it; where the base is free it matters."""
    parts = (BASE, link("foot", own), joint("glue", "base", "foot", "fixed", "")) if held else (link("base", own),)
    path = written(tmp_path, urdf(*parts, ARM, TURN))
    robot = read_robot(path)
    (text,) = notes(robot)
    assert note in text and ("link 'foot'" if held else "link 'base'") in text
    assert not robot.static.inertia.any() or held
    if held:
        (doubt,) = read_robot(path, base="free").doubts
        assert "without mass is left out" in doubt or "not positive definite" in doubt
    else:
        with pytest.raises(InputError, match="too little inertia"):
            read_robot(path, base="free")


@pytest.mark.parametrize("limit", ['lower="0" upper="0" ', ""])
def test_limits_of_zero_are_none(limit, tmp_path):
    """As MuJoCo and PyBullet have it; a note says so."""
    more = f'<limit {limit}effort="1" velocity="1"/>'
    robot = read_robot(written(tmp_path, urdf(link("base"), link("arm"), joint("turn", "base", "arm", more=more))))
    assert robot.joints[0].lower == -np.inf and robot.joints[0].upper == np.inf
    assert any("lower = upper = 0" in note for note in robot.ignored)


def test_a_negative_limit_is_none(tmp_path):
    more = '<limit lower="-1" upper="1" effort="-1" velocity="-2"/>'
    robot = read_robot(written(tmp_path, urdf(BASE, ARM, joint("turn", "base", "arm", more=more))))
    assert robot.joints[0].effort == robot.joints[0].velocity == np.inf
    said = "line 4, joint 'turn': <limit>: {}: a negative one is none"
    assert notes(robot) == [said.format("effort -1"), said.format("velocity -2")]


@pytest.mark.parametrize("word", ["inf", "Infinity", "+inf"])
def test_a_limit_without_end_is_none(tmp_path, word):
    more = f'<limit lower="-1" upper="1" effort="{word}" velocity="{word}"/>'
    robot = read_robot(written(tmp_path, urdf(BASE, ARM, joint("turn", "base", "arm", more=more))))
    assert robot.joints[0].effort == robot.joints[0].velocity == np.inf
    said = "line 4, joint 'turn': <limit>: {} without end: read as none"
    assert notes(robot) == [said.format("effort"), said.format("velocity")]


def test_slashes_in_names(tmp_path):
    """Links and joints get other names, new ones, and are found by all that names them."""
    mimic = '<limit lower="-1" upper="1"/><mimic joint="l/turn"/>'
    path = written(
        tmp_path,
        urdf(
            *(link(name) for name in ("r/base", "r/arm", "r_arm", "r/hand")),
            joint("l/turn", "r/base", "r/arm"),
            joint("other", "r/base", "r_arm"),
            joint("grip", "r/arm", "r/hand", more=mimic),
        ),
    )
    srdf = tmp_path / "r.srdf"
    srdf.write_text('<robot name="r"><disable_collisions link1="r/arm" link2="r_arm"/></robot>', encoding="utf-8")
    robot = read_robot(path, srdf=srdf)
    assert {(item.name, item.child, item.mimic) for item in robot.joints} == {
        ("l_turn", "r_arm_", None), ("other", "r_arm", None), ("grip", "r_hand", ("l_turn", 1.0, 0.0))
    }  # fmt: skip
    assert len(notes(robot)) == 4
    assert "line 3, link 'r/arm': is called 'r_arm_' here, since '/' and '.' divide names" in robot.ignored
    body = {"type": "articulated", "model": str(path)}
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 1}, "bodies": {"bot": body}}
    raw["markers"] = {"tip": {"body": "bot/r_hand", "point": [0, 0, 0]}}
    assert scene_from_dict(raw).build().model.body("bot/r_arm_").link == "r_arm_"


def test_slashes_in_an_mjcf(tmp_path):
    pytest.importorskip("mujoco", reason="mujoco is not installed: pip install 'add-sim[robots]'")
    text = """<mujoco><worldbody><body name="w/arm"><joint name="w/turn"/><geom size="0.1"/>
      <body name="w_arm" pos="1 0 0"><joint name="w_turn"/><joint axis="1 0 0"/>
      <geom size="0.1"/></body></body></worldbody>
      <actuator><motor name="w/m" joint="w/turn"/></actuator></mujoco>"""
    robot = read_robot(written(tmp_path, text, "w.xml"))
    assert [item.child for item in robot.joints] == ["w_arm_", "w_arm_1", "w_arm"]
    assert robot.actuators[0].name == "w_m" and robot.actuators[0].target == "w_turn_"
    assert len([text for text in robot.ignored if "is called" in text]) == 3


@pytest.mark.parametrize("length", AXES)
def test_axes_of_any_length(length, tmp_path):
    """In a URDF, an MJCF and a scene."""
    unit = np.array([0.48, -0.6, 0.64])
    numbers = " ".join(f"{x:.17g}" for x in length * unit)
    robots = [read_robot(written(tmp_path, urdf(BASE, ARM, TURN.replace("0 0 1", numbers))))]
    own = {"mass": 1.0, "inertia": [1, 1, 1, 0, 0, 0]}
    body = {"type": "articulated", "links": {"a": own}, "joints": {"a": {"axis": (length * unit).tolist()}}}
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 1}, "bodies": {"bot": body}}
    (axis,) = [item.axis for item in scene_from_dict(raw).build().model.bodies[0].joints]
    assert axis == pytest.approx(unit, rel=1e-14)
    assert robots[0].joints[0].axis == pytest.approx(unit, rel=1e-14)
    assert len(notes(robots[0])) == (length != 1.0)


@pytest.mark.parametrize("length", AXES)
def test_axes_of_any_length_in_an_mjcf(length, tmp_path):
    pytest.importorskip("mujoco", reason="mujoco is not installed: pip install 'add-sim[robots]'")
    unit = np.array([0.48, -0.6, 0.64])
    numbers = " ".join(f"{x:.17g}" for x in length * unit)
    text = f'<mujoco><worldbody><body><joint axis="{numbers}"/><geom size="0.1"/></body></worldbody></mujoco>'
    assert read_robot(written(tmp_path, text, "a.xml")).joints[0].axis == pytest.approx(unit, rel=1e-14)


def test_dots_in_names(tmp_path):
    """A path of a scene can say the names that links and joints get."""
    robot = read_robot(written(tmp_path, urdf(BASE, link("arm.1"), joint("turn.1", "base", "arm.1"))))
    assert robot.links[0].name == "arm_1" and robot.joints[0].name == "turn_1"


def test_what_some_readers_add(tmp_path):
    """Balls of PyBullet, the world of Drake, more numbers than needed, fixed joints that mimic."""
    parts = joint("ball", "world", "arm", "spherical", '<origin xyz="1 2 3 4"/>'), ARM, link("tip")
    grip = joint("grip", "arm", "tip", "fixed", '<mimic joint="ball"/>')
    robot = read_robot(written(tmp_path, urdf(*parts, grip)))
    (ball,) = robot.joints
    assert (ball.kind, robot.n, ball.position.tolist()) == ("ball", 3, [1, 2, 3]) and not robot.doubts
    assert len([text for text in robot.ignored if "stands still" in text or "count" in text or "not move" in text]) == 3


def test_joints_that_move_no_mass_stand_still(tmp_path):
    """Nor do those that mimic them; one that leads others with a mass goes on, and so does one that follows such."""
    mimic = '<limit lower="-1" upper="1"/><mimic joint="{}"/>'
    path = written(
        tmp_path,
        urdf(
            BASE, ARM, link("tip", ""), link("tool", ""), link("left", ""), link("right", ""), TURN,
            joint("bend", "arm", "tip"), joint("twist", "tip", "tool"),
            joint("open", "arm", "left"), joint("shut", "arm", "right", more=mimic.format("turn")),
            link("end", ""), joint("too", "arm", "end", more=mimic.format("open")),
        ),
    )  # fmt: skip
    robot = read_robot(path)
    assert [item.name for item in robot.joints] == ["turn", "shut"] and robot.n == 1
    assert sum("moves no mass: it stands still" in text for text in robot.ignored) == 4
    assert robot.place("tool")[0] == "arm" and not robot.doubts
    robot = read_robot(written(tmp_path, urdf(link("base", ""), link("arm", ""), TURN)))
    assert not robot.joints and robot.doubts == ("robot: no link has a mass: nothing moves",)


def test_what_other_readers_read(tmp_path):
    """Blanks before the declaration, "--" in comments, what stands behind the end; commas; pictures that are none."""
    text = urdf(link("base", "<visual/>"), ARM, "<!-- a -- b\n -->", TURN.replace("0 0 1", "0, 0, 1"))
    path = tmp_path / "robot.urdf"
    text = text.replace(' type="revolute"', 'type="revolute"')
    assert "a -- b" in text and '"turn"type=' in text
    path.write_text('\n <?xml version="1.0"?>' + text + "\0\n", encoding="utf-8")
    robot = read_robot(path)
    assert robot.joints[0].axis.tolist() == [0, 0, 1] and not robot.doubts
    assert any("commas between numbers are blanks" in text for text in robot.ignored)
    assert any("no picture of it: does not have one shape" in text for text in robot.ignored)


def test_a_plane_of_pybullet(tmp_path):
    """Of what stands still; elsewhere it is a doubt."""
    plane = '<collision><geometry><plane normal="0 0.6 0.8"/></geometry></collision>'
    robot = read_robot(written(tmp_path, urdf(link("base", plane), ARM, TURN)))
    (shape,) = robot.static.collision
    assert shape.shape == "plane" and shape.rotation[:, 2] == pytest.approx([0, 0.6, 0.8])
    assert np.linalg.det(shape.rotation) == pytest.approx(1.0) and not robot.doubts
    robot = read_robot(written(tmp_path, urdf(link("base", INERTIAL + plane))), base="free")
    assert "<plane> is not a shape" in robot.doubts[0]
