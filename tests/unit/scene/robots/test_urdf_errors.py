"""Every way in which a URDF may be wrong has one error that names file, line, link or joint, found and expected."""

import numpy as np
import pytest
from support.robot_files import INERTIAL, inertial, joint, link, urdf, written

from add.errors import InputError
from add.scene import scene_from_dict
from add.scene.build.file_doubts import robot_doubts
from add.scene.robots import read_robot

BASE, ARM = link("base"), link("arm")
TURN = joint("turn", "base", "arm")
BOX = '<collision><geometry><box size="1 1 1"/></geometry></collision>'


def collision(shape, tag="collision"):
    return f"<{tag}><geometry>{shape}</geometry></{tag}>"


CASES = {
    # pitfall 18
    "lower-equals-upper": (
        urdf(BASE, ARM, joint("turn", "base", "arm", more='<limit lower="1" upper="1" effort="1" velocity="1"/>')),
        "line 4, joint 'turn': <limit>: lower = upper = 1 locks the joint for some readers and frees it for others",
    ),
    "no-limit": (urdf(BASE, ARM, joint("turn", "base", "arm", more="")), "line 4, joint 'turn': has no <limit>"),
    "lower-above-upper": (
        urdf(BASE, ARM, joint("turn", "base", "arm", more='<limit lower="1" upper="-1" effort="1" velocity="1"/>')),
        "line 4, joint 'turn': <limit>: lower = 1 exceeds upper = -1: read as type \"continuous\"",
    ),
    # pitfall 19
    "not-positive-definite": (
        urdf(BASE, link("arm", inertial(moments=(0.1, -0.1, 0.1))), TURN),
        "line 3, link 'arm': line 3, <inertial>: the inertia is not positive definite: "
        "principal moments -0.1, 0.1, 0.1 kg m^2; read as 0.0333333 each",
    ),
    "triangle": (
        urdf(BASE, link("arm", inertial(moments=(0.1, 0.2, 0.31))), TURN),
        "line 3, link 'arm': line 3, <inertial>: the inertia belongs to no body, A + B < C: "
        "principal moments 0.1, 0.2, 0.31 kg m^2; read as it is, `repair` makes them equal",
    ),
    "singular-on-a-moving-link": (
        urdf(BASE, link("arm", inertial(moments=(0.1, 0.1, 0.0))), TURN),
        "line 4, joint 'turn': moves nothing: link 'arm' has too little inertia of its own",
    ),
    "all-entries-equal": (  # the dummy of anymal.urdf
        urdf(BASE, link("arm", inertial(1e-6, (1e-6, 1e-6, 1e-6), (1e-6, 1e-6, 1e-6))), TURN),
        "line 3, link 'arm': line 3, <inertial>: the inertia belongs to no body, A + B < C",
    ),
    "negative-mass": (
        urdf(BASE, link("arm", inertial(mass=-1)), TURN),
        "line 3, link 'arm': line 3, <inertial>: a negative mass (found -1; expected a mass >= 0 [kg])",
    ),
    "inertia-without-mass": (
        urdf(BASE, ARM, link("tip", inertial(mass=0)), TURN, joint("glue", "arm", "tip", "fixed", "")),
        "line 4, link 'tip': line 4, <inertial>: inertia without mass is left out",
    ),
    # pitfall 20
    "massless-chain-that-moves-nothing": (  # two hinges about one line, the link between them has no mass
        urdf(BASE, link("cross", ""), ARM, joint("turn", "base", "cross"), joint("twist", "cross", "arm")),
        "line 5, joint 'turn': moves nothing: link 'cross' has too little inertia of its own",
    ),
    # pitfall 22: nothing becomes a hull in silence, and what is missing is named
    "missing-collision-mesh": (
        urdf(BASE, link("arm", INERTIAL, collision('<mesh filename="package://bot/arm.stl"/>')), TURN),
        "line 3, link 'arm': line 3, <collision>: mesh 'package://bot/arm.stl' is not found; expected a folder 'bot' "
        "above the robot's file or in `packages`",
    ),
    "unreadable-collision-mesh": (
        urdf(BASE, link("arm", INERTIAL, collision('<mesh filename="broken.stl"/>')), TURN),
        "broken.stl: cannot be read as a surface",
    ),
    "unknown-scheme": (
        urdf(BASE, link("arm", INERTIAL, collision('<mesh filename="https://x.org/a.stl"/>')), TURN),
        "mesh 'https://x.org/a.stl' is not found; expected a path, package://, model:// or file://",
    ),
    "unknown-collision-shape": (
        urdf(BASE, link("arm", INERTIAL, collision('<cone radius="1"/>')), TURN),
        "line 3, link 'arm': line 3, <collision>: <cone> is not a shape that is read",
    ),
    "scale-of-zero": (
        urdf(BASE, link("arm", INERTIAL, collision('<mesh filename="a.stl" scale="1 0 1"/>')), TURN),
        "<mesh scale>: a scale of zero",
    ),
    "mesh-without-file": (
        urdf(BASE, link("arm", INERTIAL, collision("<mesh/>")), TURN),
        "line 3, link 'arm': line 3, <collision>: a <mesh> without a file",
    ),
    "no-shape": (
        urdf(BASE, link("arm", INERTIAL, "<collision/>"), TURN),
        "line 3, link 'arm': line 3, <collision>: does not have one shape",
    ),
    "size-of-zero": (
        urdf(BASE, link("arm", INERTIAL, collision('<sphere radius="0"/>')), TURN),
        "<sphere> without extent: {'radius': '0'}",
    ),
    # pitfall 23
    "mimic-of-a-fixed-joint": (
        urdf(
            BASE,
            ARM,
            link("tip"),
            joint("grip", "base", "arm", "fixed", ""),
            joint("turn", "arm", "tip", more='<limit lower="-1" upper="1"/><mimic joint="grip"/>'),
        ),
        "line 6, joint 'turn': <mimic>: mimics a joint that does not move (found 'grip', fixed; expected a joint that "
        "moves)",
    ),
    "mimic-of-nothing": (
        urdf(BASE, ARM, joint("turn", "base", "arm", more='<limit lower="-1" upper="1"/><mimic joint="grip"/>')),
        "line 4, joint 'turn': <mimic>: no such joint (found 'grip'",
    ),
    "mimic-of-itself": (
        urdf(BASE, ARM, joint("turn", "base", "arm", more='<limit lower="-1" upper="1"/><mimic joint="turn"/>')),
        "<mimic>: joints mimic each other in a circle (found turn -> turn",
    ),
    "mimic-circle": (
        urdf(
            BASE,
            ARM,
            link("tip"),
            joint("a", "base", "arm", "continuous", '<mimic joint="b"/>'),
            joint("b", "arm", "tip", "continuous", '<mimic joint="a"/>'),
        ),
        "line 5, joint 'a': <mimic>: joints mimic each other in a circle (found a -> b -> a",
    ),
    "mimic-of-a-floating-joint": (
        urdf(
            BASE,
            ARM,
            link("tip"),
            joint("fly", "base", "arm", "floating", ""),
            joint("b", "arm", "tip", "continuous", '<mimic joint="fly"/>'),
        ),
        "<mimic>: mimics a joint with several coordinates (found 'fly', floating",
    ),
    "mimic-of-a-planar-joint": (
        urdf(
            BASE,
            ARM,
            link("tip"),
            joint("table", "base", "arm", "planar", ""),
            joint("b", "arm", "tip", "continuous", '<mimic joint="table"/>'),
        ),
        "<mimic>: mimics a joint with several coordinates (found 'table', planar",
    ),
    "mimic-on-a-planar-joint": (
        urdf(BASE, ARM, link("tip"), TURN, joint("grip", "arm", "tip", "planar", '<mimic joint="turn"/>')),
        "line 6, joint 'grip': <mimic>: a planar joint mimics no other",
    ),
    "mimic-without-a-way": (
        urdf(
            BASE,
            ARM,
            link("tip"),
            TURN,
            joint("b", "arm", "tip", more='<limit lower="4" upper="5"/><mimic joint="turn" multiplier="-1"/>'),
        ),
        "line 6, joint 'b': its limits leave 'turn', which it mimics, no way to go",
    ),
    "mimic-times-zero": (
        urdf(
            BASE, ARM, link("tip"), TURN, joint("b", "arm", "tip", "continuous", '<mimic joint="turn" multiplier="0"/>')
        ),
        "<mimic>: a multiplier of zero fixes the joint",
    ),
    # the tree
    "two-roots": (
        urdf(BASE, ARM),
        "line 3, link 'arm': several links have no parent (found 'base', 'arm'; expected one root, and joints to all",
    ),
    "circle": (
        urdf(link("a"), link("b"), joint("ab", "a", "b"), joint("ba", "b", "a")),
        "line 2, link 'a': the links do not form a tree: joints lead from this link back to it (found the circle "
        "a -> b -> a",
    ),
    "circle-beside-a-root": (
        urdf(BASE, link("a"), link("b"), joint("ab", "a", "b"), joint("ba", "b", "a")),
        "line 3, link 'a': the links do not form a tree",
    ),
    "two-parents": (
        urdf(BASE, ARM, link("tip"), TURN, joint("b", "base", "tip"), joint("c", "arm", "tip")),
        "line 7, joint 'c': link 'tip' has two parents (found joint 'b' as well; expected one joint)",
    ),
    "no-such-link": (
        urdf(BASE, ARM, joint("turn", "base", "leg")),
        "line 4, joint 'turn': <child>: no such link (found 'leg'; expected the name of a <link>)",
    ),
    "to-itself": (urdf(BASE, joint("turn", "base", "base")), "joint 'turn': joins a link with itself"),
    "no-links": (urdf(), "robot: has no links"),
    "second-link-of-a-name": (
        urdf(BASE, link("base"), TURN),
        "line 3, link 'base': a second link of this name (found another in line 2; expected unique names)",
    ),
    "second-joint-of-a-name": (
        urdf(BASE, ARM, link("tip"), TURN, joint("turn", "arm", "tip")),
        "line 6, joint 'turn': a second joint of this name (found another in line 5; expected unique names)",
    ),
    "slash-twice": (urdf(link("a/b"), link("a/b")), "line 3, link 'a_b': a second link of this name"),
    "empty-name": (urdf(link(" ")), "line 2, link ' ': not a name"),
    "no-name": (urdf("<link/>"), "line 2, link '': not a name"),
    # joints
    "unknown-type": (
        urdf(BASE, ARM, joint("turn", "base", "arm", "universal")),
        "line 4, joint 'turn': unknown type of joint (found 'universal'; expected revolute, continuous, prismatic",
    ),
    "no-type": (
        urdf(BASE, ARM, '<joint name="turn"><parent link="base"/><child link="arm"/></joint>'),
        "line 4, joint 'turn': unknown type of joint (found none",
    ),
    "no-parent": (
        urdf(BASE, ARM, '<joint name="turn" type="fixed"><child link="arm"/></joint>'),
        "line 4, joint 'turn': does not have one <parent link=...>",
    ),
    "no-axis": (
        urdf(BASE, ARM, TURN.replace("0 0 1", "0 0 0")),
        "line 4, joint 'turn': <axis xyz>: an axis without direction (found [0.0, 0.0, 0.0]; expected a unit vector)",
    ),
    "negative-damping": (
        urdf(BASE, ARM, TURN.replace("<limit", '<dynamics damping="-1"/><limit')),
        "line 4, joint 'turn': <dynamics>: damping: a negative number (found -1; expected a number >= 0)",
    ),
    "damping-of-a-floating-joint": (
        urdf(BASE, ARM, joint("fly", "base", "arm", "floating", '<dynamics damping="1"/>')),
        "line 4, joint 'fly': damping or friction of a floating joint have no unit",
    ),
    "no-root": (
        urdf(link("a"), link("b"), joint("ab", "a", "b", "fixed", ""), joint("ba", "b", "a", "fixed", "")),
        "line 2, link 'a': the links do not form a tree",
    ),
    "part-of-a-planar-joint": (
        urdf(BASE, ARM, link("table_x"), joint("table", "base", "arm", "planar", ""), joint("b", "arm", "table_x")),
        "line 5, joint 'table': a planar joint needs names for its parts (found 'table_x' is taken",
    ),
    "two-limits": (
        urdf(BASE, ARM, joint("turn", "base", "arm", more='<limit lower="-1" upper="1"/>' * 2)),
        "line 4, joint 'turn': several <limit>",
    ),
    "mimic-without-joint": (
        urdf(BASE, ARM, joint("turn", "base", "arm", "continuous", "<mimic/>")),
        "line 4, joint 'turn': a <mimic> without a joint",
    ),
    "two-origins": (urdf(BASE, ARM, TURN.replace("<limit", "<origin/><origin/><limit")), "several <origin>"),
    "two-axes": (urdf(BASE, ARM, TURN.replace("<limit", '<axis xyz="1 0 0"/><limit')), "several <axis>"),
    "no-unit-quaternion": (
        urdf(BASE, ARM, TURN.replace("<limit", '<origin quat_xyzw="0 0 0 2"/><limit')),
        "<origin quat_xyzw>: not a unit quaternion",
    ),
    # numbers
    "not-a-number": (
        urdf(BASE, link("arm", inertial(mass="heavy")), TURN),
        "line 3, link 'arm': line 3, <inertial>: <mass value>: not a number (found 'heavy'; expected a finite number)",
    ),
    "nan": (urdf(BASE, link("arm", inertial(mass="nan")), TURN), "<mass value>: not a number (found 'nan'"),
    "infinite": (urdf(BASE, link("arm", inertial(mass="1e999")), TURN), "<mass value>: not a number (found '1e999'"),
    "underscore": (urdf(BASE, link("arm", inertial(mass="1_0")), TURN), "<mass value>: not a number (found '1_0'"),
    "huge": (
        urdf(BASE, link("arm", inertial(mass="1e300")), TURN),
        "<mass value>: an impossible number (found '1e300'; expected numbers below 1e+12)",
    ),
    "missing-number": (
        urdf(BASE, ARM.replace('ixy="0"', ""), TURN),
        "line 3, link 'arm': line 3, <inertial>: <inertia ixy>: missing (expected a number)",
    ),
    "two-numbers-of-three": (
        urdf(BASE, ARM, TURN.replace("0 0 1", "0 1")),
        "line 4, joint 'turn': <axis xyz>: bad numbers (found '0 1'; expected 3 finite numbers, separated by blanks)",
    ),
    "commas": (urdf(BASE, ARM, TURN.replace("0 0 1", "0,1")), "<axis xyz>: bad numbers (found '0,1'"),
    "no-mass": (
        urdf(BASE, link("arm", "<inertial/>"), TURN),
        "line 3, link 'arm': line 3, <inertial>: has no <mass>: read as 0",
    ),
    "two-inertials": (urdf(BASE, link("arm", INERTIAL * 2), TURN), "line 3, link 'arm': 2 <inertial>: the first one"),
    "two-masses": (
        urdf(BASE, link("arm", INERTIAL.replace("<mass", '<mass value="2"/><mass')), TURN),
        "line 3, link 'arm': line 3, <inertial>: several <mass> (found 2; expected one <mass>)",
    ),
    "turned-twice": (
        urdf(BASE, ARM, TURN.replace("<limit", '<origin rpy="0 0 0" quat_xyzw="0 0 0 1"/><limit')),
        "an <origin> turned twice",
    ),
    "misspelt-place": (
        urdf(BASE, ARM, TURN.replace("<limit", '<origin xzy="0 0 1"/><limit')),
        "line 4, joint 'turn': <origin>: unknown attribute (found 'xzy'; expected one of xyz, rpy, quat_xyzw)",
    ),
    "misspelt-factor": (
        urdf(
            BASE, ARM, link("tip"), TURN, joint("b", "arm", "tip", "continuous", '<mimic joint="turn" multiplyer="2"/>')
        ),
        "<mimic>: unknown attribute (found 'multiplyer'; expected one of joint, multiplier, offset)",
    ),
    # other programs
    "gazebo-spring": (
        urdf(BASE, ARM, TURN, '<gazebo reference="turn"><springStiffness>5</springStiffness></gazebo>'),
        "line 5, <gazebo>: <springStiffness> changes the motion in other programs, and is not read",
    ),
    "gazebo-loop": (
        urdf(BASE, ARM, TURN, '<gazebo><joint name="rod" type="revolute"><child>arm</child></joint></gazebo>'),
        "line 5, <gazebo>: <joint> 'rod' joins links in Gazebo, and is not read",
    ),
    "drake-rotor": (
        urdf(BASE, ARM, TURN, '<transmission><actuator><drake:rotor_inertia value="1"/></actuator></transmission>'),
        "line 5, <transmission>: <drake:rotor_inertia> changes the motion in other programs",
    ),
    "mujoco-inertia": (
        urdf(BASE, ARM, TURN, '<mujoco><compiler inertiafromgeom="true"/></mujoco>'),
        'line 5, <mujoco>: inertiafromgeom="true" of <compiler> changes the motion',
    ),
    "bullet-inertia": (
        urdf(BASE, link("arm", INERTIAL, '<contact><inertia_scaling value="3"/></contact>'), TURN),
        "line 3, link 'arm': <inertia_scaling> changes the motion",
    ),
}


#: Cases that are read, and what their words are.
DOUBTS = {
    "limit": ("lower-equals-upper", "no-limit", "lower-above-upper", "mimic-without-a-way"),
    "inertia": (
        "triangle",
        "all-entries-equal",
        "inertia-without-mass",
        "not-positive-definite",
        "no-mass",
        "two-inertials",
    ),
    "mesh": ("missing-collision-mesh", "unreadable-collision-mesh", "unknown-scheme"),
    "shape": ("unknown-collision-shape", "size-of-zero"),
    "dynamics": ("damping-of-a-floating-joint",),
    "extension": ("gazebo-spring", "gazebo-loop", "drake-rotor", "mujoco-inertia", "bullet-inertia"),
}
DOUBTED = [(word, name) for word, names in DOUBTS.items() for name in names]


@pytest.mark.parametrize("name", sorted(set(CASES) - {name for _, name in DOUBTED}))
def test_error(name, tmp_path):
    text, message = CASES[name]
    (tmp_path / "broken.stl").write_bytes(b"no surface")
    path = written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_robot(path)
    said = str(caught.value)
    assert said.startswith(f"{path}: ") and message in said and len(said) < 900
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(("word", "name"), DOUBTED)
def test_doubts(word, name, tmp_path):
    """What a file says and no motion here has is noted, and a doubt of scenes unless its word is said."""
    text, message = CASES[name]
    (tmp_path / "broken.stl").write_bytes(b"no surface")
    path = written(tmp_path, text)
    robot, said = read_robot(path, ignore=set(DOUBTS) - {word}), read_robot(path, ignore=[word])
    assert message in robot.doubts[0] and set(robot.doubts) <= set(robot.ignored)
    assert said.ignored == robot.ignored and not said.doubts
    assert word != "limit" or not np.isfinite([robot.joints[-1].lower, robot.joints[-1].upper]).any()


def test_doubts_are_told_of(tmp_path):
    """By `add check` and `add simulate`."""
    path = written(tmp_path, CASES["missing-collision-mesh"][0])
    body = {"type": "articulated", "model": str(path)}
    for more, count in (({}, 1), ({"ignore": ["mesh"]}, 0)):
        raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 1}, "bodies": {"bot": body | more}}
        found = [text for text in robot_doubts(scene_from_dict(raw).build()) if "is not found" in text]
        assert len(found) == count and all(text.startswith("bodies.bot.model: ") for text in found)


def test_unknown_word(tmp_path):
    path = written(tmp_path, urdf(BASE, ARM, TURN))
    with pytest.raises(InputError, match="'meshes' is nothing to ignore"):
        read_robot(path, ignore=["meshes"])


def test_repair(tmp_path):
    """On request alone, and listed: the mean of the principal moments; nothing repairs negative ones."""
    path = written(tmp_path, CASES["triangle"][0])
    robot = read_robot(path, repair=True)
    np.testing.assert_allclose(robot.links[0].inertia, np.eye(3) * (0.61 / 3), rtol=1e-14)
    assert any("repaired: principal moments 0.1, 0.2, 0.31" in line for line in robot.ignored)
    path = written(tmp_path, urdf(BASE, link("arm", inertial(moments=(-0.1, -0.1, -0.1))), TURN))
    with pytest.raises(InputError, match="too little inertia"):
        read_robot(path, repair=True)


def test_inertia_at_the_border(tmp_path):
    """A flat body has A + B = C; 1e-9 of the largest is round-off, 1e-8 is not. A point on a fixed link is allowed."""
    flat = urdf(BASE, link("arm", inertial(moments=(0.1, 0.2, 0.3 + 2e-10))), TURN)
    assert read_robot(written(tmp_path, flat)).mass == 1.0
    robot = read_robot(written(tmp_path, urdf(BASE, link("arm", inertial(moments=(0.1, 0.2, 0.3 + 3e-9))), TURN)))
    assert "belongs to no body" in robot.doubts[0] and robot.links[0].inertia[2, 2] == 0.3 + 3e-9
    point = link("tip", inertial(moments=(0, 0, 0)))
    robot = read_robot(written(tmp_path, urdf(BASE, ARM, point, TURN, joint("glue", "arm", "tip", "fixed", ""))))
    assert robot.mass == 2.0


def test_options(tmp_path):
    path = written(tmp_path, urdf(BASE, ARM, TURN))
    with pytest.raises(InputError, match="unknown base"):
        read_robot(path, base="flying")
    with pytest.raises(InputError, match="unknown axis `up`"):
        read_robot(path, up="-z")
    path = written(tmp_path, urdf(link("world", ""), ARM, joint("turn", "world", "arm")))
    with pytest.raises(InputError, match="this link is the world by its name"):
        read_robot(path, base="free")
