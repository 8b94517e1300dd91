"""What is read from a URDF: merging, composites, mimic, meshes, exclusions, orientation."""

import sys
import time

import numpy as np
import pytest
from support.robot_dynamics import exponential, mass_matrix
from support.robot_files import INERTIAL, inertial, joint, link, urdf, written

from add.errors import InputError
from add.scene.robots import inertia, read_robot

ORIGIN = '<origin xyz="0.1 -0.2 0.3" rpy="0.3 -0.4 0.5"/>'
BOX = '<collision><geometry><box size="0.2 0.4 0.6"/></geometry></collision>'
TETRAHEDRON = """solid t
facet normal 0 0 0
outer loop
vertex 0 0 0
vertex 0 1 0
vertex 1 0 0
endloop
endfacet
facet normal 0 0 0
outer loop
vertex 0 0 0
vertex 1 0 0
vertex 0 0 1
endloop
endfacet
facet normal 0 0 0
outer loop
vertex 0 0 0
vertex 0 0 1
vertex 0 1 0
endloop
endfacet
facet normal 0 0 0
outer loop
vertex 1 0 0
vertex 0 1 0
vertex 0 0 1
endloop
endfacet
endsolid t
"""


def volume(shape):
    a, b, c = (shape.vertices[shape.triangles[:, k]] for k in range(3))
    return float(np.einsum("ij,ij->", a, np.cross(b, c))) / 6


def turned(roll, pitch, yaw):
    x, y, z = np.eye(3)
    return exponential(yaw * z) @ exponential(pitch * y) @ exponential(roll * x)


def test_links_on_fixed_joints_are_merged(tmp_path):
    """Mass, centre, inertia (against a sum over points), shapes, frames and the joints below."""
    stated = inertial(
        2.0, (0.05, 0.06, 0.07), (0.003, -0.002, 0.001), '<origin xyz="0.02 0.01 -0.03" rpy="0.2 0 0.1"/>'
    )
    path = written(
        tmp_path,
        urdf(
            link("base"),
            link("arm", inertial(1.0, (0.1, 0.1, 0.1))),
            link("hand", stated, BOX),
            link("tool", ""),
            link("finger"),
            joint("turn", "base", "arm"),
            joint("glue", "arm", "hand", "fixed", ORIGIN),
            joint("mount", "hand", "tool", "fixed", '<origin xyz="0 0 0.5"/>'),
            joint("grip", "hand", "finger", "prismatic", '<origin xyz="0 0.1 0"/><limit lower="0" upper="0.1"/>'),
        ),
    )
    robot = read_robot(path)
    assert [item.name for item in robot.links] == ["arm", "finger"]
    assert [item.child for item in robot.joints] == ["arm", "finger"]
    arm = robot.links[0]
    rotation, position = turned(0.3, -0.4, 0.5), np.array([0.1, -0.2, 0.3])
    own = turned(0.2, 0, 0.1)
    moments, products = np.diag([0.05, 0.06, 0.07]), np.array([[0, 3, -2], [3, 0, 1], [-2, 1, 0]]) * 1e-3
    inertia = rotation @ own @ (moments + products) @ own.T @ rotation.T
    at = position + rotation @ np.array([0.02, 0.01, -0.03])
    centre = 2 * at / 3
    np.testing.assert_allclose(arm.centre, centre, rtol=1e-14)
    total = 0.1 * np.eye(3) + inertia
    for mass, d in ((1.0, -centre), (2.0, at - centre)):
        total = total + mass * (d @ d * np.eye(3) - np.outer(d, d))
    np.testing.assert_allclose(arm.inertia, total, rtol=0, atol=1e-15)
    (box,) = arm.collision
    assert (box.shape, box.size, box.origin) == ("box", (0.1, 0.2, 0.3), "hand")
    np.testing.assert_allclose(box.rotation, rotation, atol=1e-15)
    name, place, turn = robot.place("tool")
    assert name == "arm"
    np.testing.assert_allclose(place, position + rotation @ [0, 0, 0.5], atol=1e-15)
    np.testing.assert_allclose(turn, rotation, atol=1e-15)
    np.testing.assert_allclose(robot.joints[1].position, position + rotation @ [0, 0.1, 0], atol=1e-15)
    assert robot.place("base")[0] == "" and robot.static.mass == 1.0
    assert robot.place("finger")[0] == "finger"
    with pytest.raises(InputError, match="no such link or site"):
        robot.place("elbow")


def test_mimic_chains(tmp_path):
    """c = 2 b + 0.1, b = -3 a + 0.5: c = -6 a + 1.1. A continuous joint may mimic and be mimicked."""
    path = written(
        tmp_path,
        urdf(
            *(link(name) for name in ("base", "one", "two", "three")),
            joint("c", "two", "three", "continuous", '<mimic joint="b" multiplier="2" offset="0.1"/>'),
            joint("b", "one", "two", "continuous", '<mimic joint="a" multiplier="-3" offset="0.5"/>'),
            joint("a", "base", "one", "continuous", ""),
        ),
    )
    robot = read_robot(path)
    mimics = {item.name: item.mimic for item in robot.joints}
    assert mimics == {"a": None, "b": ("a", -3.0, 0.5), "c": ("a", -6.0, pytest.approx(1.1))}
    assert robot.n == 1 and [item.n for item in robot.joints] == [1, 1, 1]
    full, columns = mass_matrix(robot, {name: [0.0] for name in "abc"})
    chosen = np.zeros(3)
    for name, factor in (("a", 1.0), ("b", -3.0), ("c", -6.0)):
        chosen[columns[name]] = factor
    found, _ = inertia.start_mass_matrix(robot.links, robot.joints)
    assert found[0, 0] == pytest.approx(chosen @ full @ chosen, rel=1e-13)


def test_what_joints_move_is_the_pivots_of_the_mass_matrix(tmp_path, monkeypatch):
    """Link by link, without the matrix: a floating base with a branch, a hinge, a slide, a ball's neighbour."""
    names = ("base", "trunk", "a", "b", "c")
    path = written(
        tmp_path,
        urdf(
            *(link(name) for name in names),
            joint("fly", "base", "trunk", "floating", ORIGIN),
            joint("hip", "trunk", "a", "continuous", '<origin xyz="0.3 -2 1" rpy="0.3 1 -0.4"/>'),
            joint("out", "a", "b", "prismatic", '<origin xyz="4 0 1"/><limit lower="-1" upper="1"/>'),
            joint("arm", "trunk", "c", "continuous", '<origin xyz="0 5 0" rpy="1 0 0"/>'),
        ),
    )
    seen = []

    def eliminate(source, mass, locked, owners):
        mass = mass.copy()
        for k in range(len(mass) - 1, -1, -1):
            seen.append((mass[k, k], locked[k]))
            mass[:k, :k] -= np.outer(mass[:k, k], mass[k, :k]) / mass[k, k]

    monkeypatch.setattr(inertia, "_eliminate", eliminate)
    robot = read_robot(path)
    ours = np.array(seen)
    seen.clear()
    matrix, _ = inertia.start_mass_matrix(robot.links, robot.joints)
    eliminate(None, matrix, matrix.diagonal(), None)
    assert len(ours) == robot.n == 9
    pivots, locked = np.array(seen).T
    np.testing.assert_allclose(ours[:, 0], pivots, rtol=1e-10)
    assert np.all(ours[:, 1] >= 0.999 * pivots) and np.all(ours[:, 1] <= 1.001 * locked)


def test_long_chains_are_read_in_a_time_that_grows_with_their_number(tmp_path):
    """Eight times the links take eight times as long, not sixty-four times; none carries too much for its own."""
    took = []
    for n in (50, 400, 3200):
        links = [link(f"l{k}") for k in range(n + 1)]
        joints = [joint(f"j{k}", f"l{k}", f"l{k + 1}", "continuous", ORIGIN) for k in range(n)]
        path = written(tmp_path, urdf(*links, *joints))
        begin = time.process_time()
        assert read_robot(path).n == n
        took.append(time.process_time() - begin)
    assert took[2] < 16.0 * took[1]


def test_planar_and_floating_joints(tmp_path):
    path = written(
        tmp_path,
        urdf(
            *(link(name) for name in ("base", "plate", "bird")),
            joint("table", "base", "plate", "planar", ORIGIN).replace("0 0 1", "0 2 0"),
            joint("fly", "plate", "bird", "floating", ""),
        ),
    )
    robot = read_robot(path)
    kinds = [(item.name, item.kind, item.parent, item.child) for item in robot.joints]
    assert kinds == [
        ("table_x", "slide", "", "table_x"),
        ("table_y", "slide", "table_x", "table_y"),
        ("table_turn", "hinge", "table_y", "plate"),
        ("fly", "free", "plate", "bird"),
    ]
    axes = [item.axis for item in robot.joints[:3]]
    np.testing.assert_allclose(np.cross(axes[0], axes[1]), axes[2], atol=1e-15)
    np.testing.assert_allclose(axes[2], [0, 1, 0])
    np.testing.assert_allclose(robot.joints[0].rotation, turned(0.3, -0.4, 0.5), atol=1e-15)
    assert [item.mass for item in robot.links] == [0, 0, 1, 1] and robot.n == 9
    assert any("its length 2" in line for line in robot.ignored)
    assert robot.excluded == (("", "plate"),)  # what floats may touch all


def test_numbers_of_joints(tmp_path):
    more = (
        '<limit lower="-1" upper="2" effort="5" velocity="3"/><dynamics damping="0.1" friction="0.2" spring="7"/>'
        '<safety_controller soft_lower_limit="-0.9" soft_upper_limit="1.9" k_position="10" k_velocity="4"/>'
        '<calibration rising="0"/>'
    )
    robot = read_robot(written(tmp_path, urdf(link("base"), link("arm"), joint("turn", "base", "arm", more=more))))
    (found,) = robot.joints
    numbers = (found.lower, found.upper, found.effort, found.velocity, found.damping, found.dry_friction)
    assert numbers == (-1, 2, 5, 3, 0.1, 0.2) and found.safety == (-0.9, 1.9, 10, 4)
    said = "\n".join(robot.ignored)
    turning = joint("turn", "base", "arm", "continuous", '<limit lower="-1" upper="1"/>')
    robot = read_robot(written(tmp_path, urdf(link("base"), link("arm"), turning)))
    assert robot.joints[0].upper == np.inf and "a continuous joint does not have" in robot.ignored[0]
    assert "spring of <dynamics>, which a URDF does not have" in said and "<calibration>" in said


def test_meshes(tmp_path):
    """Relative, by package above the file, by `packages`, by file://; scaled, and turned where it mirrors."""
    folder = tmp_path / "my bot" / "urdf"
    meshes = tmp_path / "my bot" / "meshes"
    folder.mkdir(parents=True)
    meshes.mkdir()
    (meshes / "t.stl").write_text(TETRAHEDRON, encoding="ascii")
    names = ["../meshes/t.stl", "package://my bot/meshes/t.stl", "package://other/t.stl", (meshes / "t.stl").as_uri()]
    for name in names:
        mesh = f'<geometry><mesh filename="{name}" scale="1 -2 3"/></geometry>'
        text = urdf(link("base"), link("arm", INERTIAL, f"<collision>{mesh}</collision>"), joint("turn", "base", "arm"))
        robot = read_robot(written(folder, text), packages={"other": meshes})
        (shape,) = robot.links[0].collision
        assert shape.shape == "mesh" and shape.file.endswith("t.stl")
        np.testing.assert_allclose(np.ptp(shape.vertices, axis=0), [1, 2, 3])
        assert shape.vertices[:, 1].min() == -2
        assert volume(shape) == pytest.approx(1.0)  # 6 times 1/6, outside kept outside
    visual = urdf(link("base"), link("arm", INERTIAL, f"<visual>{mesh}</visual>"), joint("turn", "base", "arm"))
    path = written(folder, visual)
    assert read_robot(path, visual=True).links[0].visual[0].vertices is not None
    (seen,) = read_robot(path).links[0].visual
    assert seen.vertices is None and seen.file.endswith("t.stl")
    (meshes / "t.stl").unlink()
    robot = read_robot(path)
    (seen,) = robot.links[0].visual
    assert seen.vertices is None and any("is not found" in line for line in robot.ignored)


def test_packages_by_environment_and_by_folders_above(tmp_path, monkeypatch):
    """ROS_PACKAGE_PATH; and a folder of the path that is one above the file, whatever the package is called now."""
    here = tmp_path / "robots" / "arm_description" / "urdf"
    here.mkdir(parents=True)
    text = urdf(
        link("base"),
        link(
            "arm",
            INERTIAL,
            '<collision><geometry><mesh filename="package://old/arm_description/t.stl"/></geometry></collision>',
        ),
        joint("turn", "base", "arm"),
    )
    path = written(here, text)
    assert "is not found" in read_robot(path).doubts[0]
    (here.parent / "t.stl").write_text(TETRAHEDRON, encoding="ascii")
    assert read_robot(path).links[0].collision[0].file == str(here.parent / "t.stl")
    (here.parent / "t.stl").unlink()
    other = tmp_path / "share" / "old" / "arm_description"
    other.mkdir(parents=True)
    (other / "t.stl").write_text(TETRAHEDRON, encoding="ascii")
    monkeypatch.setenv("ROS_PACKAGE_PATH", f"/nowhere:{tmp_path / 'share'}")
    assert read_robot(path).links[0].collision[0].file == str(other / "t.stl")


def test_exclusions(tmp_path):
    """Joined links do not touch, also across merged ones; an SRDF adds pairs, by links of the file."""
    path = written(
        tmp_path,
        urdf(
            *(link(name, INERTIAL, BOX) for name in ("base", "one", "tip", "two", "three")),
            joint("a", "base", "one"),
            joint("glue", "one", "tip", "fixed", ""),
            joint("b", "tip", "two"),
            joint("c", "two", "three"),
        ),
    )
    robot = read_robot(path)
    assert set(robot.excluded) == {("", "one"), ("one", "two"), ("two", "three")} and not robot.excluded_shapes
    free = read_robot(path, base="free")
    assert set(free.excluded) == {("base", "one"), ("one", "two"), ("two", "three")}
    srdf = written(
        tmp_path,
        '<robot name="x">\n<disable_collisions link1="three" link2="tip" reason="Never"/>\n'
        '<disable_collisions link1="base" link2="two"/>\n<group name="arm"/>\n</robot>',
        "x.srdf",
    )
    robot = read_robot(path, srdf=srdf)
    assert ("", "two") in robot.excluded and ("", "three") not in robot.excluded
    assert [line for line in robot.ignored if "x.srdf" in line] == ["x.srdf: <group>"]
    assert robot.excluded_shapes == (
        (("one", 1), ("three", 0)),
    )  # the tip's box, not that of the link it is merged with
    for text, message in (
        (
            '<robot name="x"><disable_collisions link1="leg" link2="tip"/></robot>',
            "x.srdf: line 1, <disable_collisions>: no",
        ),
        ("<sdf/>", "x.srdf: line 1: not an SRDF file"),
        ('<robot><disable_default_collisions link="tip"/></robot>', "<disable_default_collisions> is not read"),
    ):
        with pytest.raises(InputError, match=message):
            read_robot(path, srdf=written(tmp_path, text, "x.srdf"))


@pytest.mark.parametrize(("up", "axis"), [("x", [1, 0, 0]), ("y", [0, 1, 0]), ("z", [0, 0, 1])])
def test_up(up, axis, tmp_path):
    """The file's axis becomes z of the world, for joints, shapes and places that stand still, and a free base."""
    text = urdf(
        link("base", INERTIAL, BOX),
        link("arm"),
        joint("turn", "base", "arm", more='<origin xyz="1 2 3"/><limit lower="-1" upper="1"/>'),
    )
    path = written(tmp_path, text)
    robot = read_robot(path, up=up)
    turn = robot.static.collision[0].rotation
    np.testing.assert_allclose(turn @ axis, [0, 0, 1], atol=0)
    assert np.linalg.det(turn) == pytest.approx(1)
    np.testing.assert_allclose(robot.joints[0].position, turn @ [1, 2, 3])
    np.testing.assert_allclose(robot.joints[0].rotation, turn)
    np.testing.assert_allclose(read_robot(path, up=up, base="free").joints[0].rotation, turn)


def test_what_is_harmless_is_listed(tmp_path):
    text = urdf(
        link("base", INERTIAL, "<sensor/>"),
        link("arm", INERTIAL, "<visual><geometry><teapot/></geometry></visual><self_collision_checking/>"),
        joint("turn", "base", "arm"),
        '<transmission name="t"><type>x</type></transmission>',
        '<gazebo reference="arm"><mu1>0.2</mu1></gazebo>',
        "<gazebo/>",
    )
    robot = read_robot(written(tmp_path, text))
    said = "\n".join(robot.ignored)
    for word in ("<transmission>", "<gazebo>, 2 times", "<sensor>", "<teapot>", "<self_collision_checking>"):
        assert word in said
    assert robot.name == "small"


def test_quaternions(tmp_path):
    """quat_xyzw of an origin, of 120 degrees about (1, 1, 1): x to y to z."""
    more = '<origin quat_xyzw="0.5 0.5 0.5 0.5" xyz="1 2 3"/>'
    robot = read_robot(
        written(tmp_path, urdf(link("base"), link("arm"), joint("turn", "base", "arm", "continuous", more)))
    )
    np.testing.assert_allclose(robot.joints[0].rotation, [[0, 0, 1], [1, 0, 0], [0, 1, 0]], atol=1e-15)
    np.testing.assert_allclose(robot.joints[0].position, [1, 2, 3])


def test_name_of_the_base_joint(tmp_path):
    """A joint that moves keeps its name; that of the base gives way."""
    path = written(tmp_path, urdf(link("base"), link("arm"), joint("floating_base", "base", "arm")))
    assert [item.name for item in read_robot(path, base="free").joints] == ["floating_base_", "floating_base"]


def test_universal_joint_through_a_massless_link(tmp_path):
    """Two hinges across each other need nothing between them; about one line they would."""
    cross = joint("b", "cross", "arm").replace("0 0 1", "1 0 0")
    path = written(tmp_path, urdf(link("base"), link("cross", ""), link("arm"), joint("a", "base", "cross"), cross))
    robot = read_robot(path)
    assert [item.mass for item in robot.links] == [0, 1]


XACRO = """<robot name="small" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:property name="mass" value="${2 * 0.6}"/><xacro:arg name="more" default="0.3"/>
  <xacro:include filename="$(find parts)/rod.xacro"/>
  <link name="base"/><xacro:rod name="arm"/>
  <joint name="turn" type="continuous"><parent link="base"/><child link="arm"/><dynamics damping="$(arg more)"/></joint>
</robot>"""
ROD = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:macro name="rod" params="name"><link name="${name}">
  <inertial><mass value="${mass}"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  </xacro:macro></robot>"""


def test_xacro(tmp_path, monkeypatch):
    """Macros, properties, arguments and includes, by the package xacro; without it an error says so."""
    folder = tmp_path / "parts"
    folder.mkdir()
    path = written(tmp_path, XACRO, "small.urdf.xacro")
    monkeypatch.setitem(sys.modules, "xacro", None)
    with pytest.raises(InputError, match="which the package xacro expands"):
        read_robot(path)
    monkeypatch.undo()
    pytest.importorskip("xacro", reason="xacro is not installed: pip install 'add-sim[robots]'")
    with pytest.raises(InputError, match="xacro refuses the file"):
        read_robot(path)
    written(folder, ROD, "rod.xacro")
    robot = read_robot(path)
    assert robot.mass == 1.2 and robot.joints[0].damping == 0.3
    assert robot.ignored[0].startswith("file: xacro has expanded it")
    other = tmp_path / "elsewhere" / "parts"
    other.parent.mkdir()
    folder.rename(other)
    with pytest.raises(InputError, match="package 'parts' is not found"):
        read_robot(path)
    assert read_robot(path, packages={"parts": other}).mass == 1.2
