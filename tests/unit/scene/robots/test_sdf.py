"""SDF files: frames, joints and loops against URDFs of the same robots, closed forms and numbers by hand."""

import numpy as np
import pytest

from add.errors import InputError
from add.scene import scene_from_dict
from add.scene.robots import read_robot
from add.scene.robots.inertia import after, from_rpy, start_poses

MASS = "<inertial><mass>2</mass><inertia><ixx>0.02</ixx><iyy>0.03</iyy><izz>0.04</izz></inertia></inertial>"
SPHERE = "<collision name='c'><geometry><sphere><radius>0.1</radius></sphere></geometry></collision>"


def sdf(tmp_path, inside, *, version="1.9", model="name='m'", around="{}"):
    path = tmp_path / "robot.sdf"
    path.write_text(f"<sdf version='{version}'>" + around.format(f"<model {model}>{inside}</model>") + "</sdf>")
    return path


def link(name, pose="", inside=MASS):
    return f"<link name='{name}'><pose>{pose}</pose>{inside}</link>"


def joint(name, kind, parent, child, inside="<axis><xyz>0 1 0</xyz></axis>"):
    return f"<joint name='{name}' type='{kind}'><parent>{parent}</parent><child>{child}</child>{inside}</joint>"


def equations(path, q, v):
    scene = scene_from_dict({
        "schema": "add-scene/1", "time": {"dt": 0.01, "steps": 1},
        "bodies": {"robot": {"type": "articulated", "model": str(path)}},
    })  # fmt: skip
    return scene.build().simulation.dynamics(q, v)


def test_a_robot_that_a_urdf_has_too(tmp_path):
    """Link frames and joint frames stand anywhere in an SDF; mass matrix and bias are those of the URDF."""
    links = {"one": "0.1 0.2 0.3 0.3 -0.2 0.5", "two": "0.4 0 0.5 -1 0.2 2", "tip": "0.5 0.1 0.4 0 0 1"}
    at = "<inertial><pose>0.02 0 -0.1 0.1 0.2 0.3</pose><mass>2</mass><inertia><ixx>0.02</ixx><iyy>0.03</iyy>"
    at += "<izz>0.04</izz><ixy>0.001</ixy></inertia></inertial>"
    path = sdf(tmp_path, "<pose>0 0 2 0 0 0.4</pose>" + "".join(link(n, p, at) for n, p in links.items())
               + joint("a", "revolute", "world", "one", "<pose>0.1 0 0.2 0.2 0 0.7</pose><axis><xyz>1 2 0</xyz>"
                       "<limit><lower>-1</lower><upper>2</upper><effort>5</effort></limit>"
                       "<dynamics><damping>0.3</damping></dynamics></axis>")
               + joint("b", "prismatic", "one", "two", "<pose relative_to='one'>0.3 0.1 0 0.4 0.5 0.6</pose>"
                       "<axis><xyz expressed_in='__model__'>0 1 1</xyz></axis>")
               + joint("c", "fixed", "two", "tip"))  # fmt: skip
    robot = read_robot(path)
    assert [(j.name, j.kind, j.lower, j.upper, j.effort, j.damping) for j in robot.joints] == [
        ("a", "hinge", -1.0, 2.0, 5.0, 0.3), ("b", "slide", -np.inf, np.inf, np.inf, 0.0),
    ]  # fmt: skip

    def placed(text):
        numbers = np.array(text.split(), dtype=float)
        return numbers[:3], from_rpy(numbers[3:])

    # Where the file poses it, links are where it says; the model itself is moved and turned.
    model, poses = placed("0 0 2 0 0 0.4"), start_poses(robot.joints)
    for name, text in links.items():
        host, *place = robot.place(name)
        found, wanted = after(poses[host], tuple(place)), after(model, placed(text))
        np.testing.assert_allclose(np.column_stack(found), np.column_stack(wanted), atol=1e-12)

    def inverse(place):
        return -place[1].T @ place[0], place[1].T

    def text(place):
        x, y, z = place[1].T  # rpy of R = Rz Ry Rx
        angles = np.arctan2(y[2], z[2]), -np.arcsin(x[2]), np.arctan2(x[1], x[0])
        return (
            f'<origin xyz="{" ".join(map(repr, place[0].tolist()))}" rpy="{" ".join(repr(float(a)) for a in angles)}"/>'
        )

    # By hand as a URDF: the frame of a link is that of its joint, its inertia stands off that.
    one, two, tip = (placed(text) for text in links.values())
    a, b = after(one, placed("0.1 0 0.2 0.2 0 0.7")), after(one, placed("0.3 0.1 0 0.4 0.5 0.6"))
    inertia = placed("0.02 0 -0.1 0.1 0.2 0.3")
    turned = b[1].T @ np.array([0, 1, 1])
    urdf = tmp_path / "robot.urdf"
    numbers = '<mass value="2"/><inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0.001" ixz="0" iyz="0"/>'
    urdf.write_text(
        '<robot name="m"><link name="base"/>'
        + "".join(f'<link name="{n}"><inertial>{text(after(after(inverse(f), at), inertia))}{numbers}</inertial></link>'
                  for n, f, at in (("one", a, one), ("two", b, two), ("tip", tip, tip)))
        + f'<joint name="a" type="revolute"><parent link="base"/><child link="one"/>{text(after(model, a))}'
        '<axis xyz="1 2 0"/><limit lower="-1" upper="2"/><dynamics damping="0.3"/></joint>'
        f'<joint name="b" type="prismatic"><parent link="one"/><child link="two"/>{text(after(inverse(a), b))}'
        f'<axis xyz="{" ".join(map(str, turned))}"/><limit lower="-9" upper="9"/></joint>'
        f'<joint name="c" type="fixed"><parent link="two"/><child link="tip"/>{text(after(inverse(b), tip))}</joint>'
        "</robot>"
    )  # fmt: skip
    q, v = [0.7, -0.3], [1.1, 0.4]
    found, wanted = equations(path, q, v), equations(urdf, q, v)
    np.testing.assert_allclose(found.mass, wanted.mass, atol=1e-12)
    np.testing.assert_allclose(found.bias, wanted.bias, atol=1e-12)


def test_a_pole_on_a_cart_by_hand(tmp_path):
    """A point mass at the end of a rod of 0.5 m: M = [[M + m, m l cos], [m l cos, m l^2]]."""
    point = "<inertial><mass>{}</mass><inertia><ixx>1e-20</ixx><iyy>1e-20</iyy><izz>1e-20</izz></inertia></inertial>"
    path = sdf(tmp_path, link("cart", "", point.format(10)) + link("pole", "0 0 -0.5 0 0 0", point.format(1))
               + joint("rail", "prismatic", "world", "cart", "<axis><xyz>1 0 0</xyz></axis>")
               + joint("pin", "continuous", "cart", "pole",
                       "<pose>0 0 0.5 0 0 0</pose><axis><xyz>0 -1 0</xyz></axis>"))  # fmt: skip
    angle, rate = 0.8, -1.3
    found = equations(path, [0.2, angle], [0.5, rate])
    c, s = 0.5 * np.cos(angle), 0.5 * np.sin(angle)
    np.testing.assert_allclose(found.mass, [[11, c], [c, 0.25]], atol=1e-12)
    np.testing.assert_allclose(found.bias, [-s * rate**2, 9.81 * s], atol=1e-12)


def test_frames_and_how_poses_are_written(tmp_path):
    path = sdf(
        tmp_path,
        "<link name='a'><pose degrees='true'>1 0 0 0 0 90</pose>" + MASS + "</link>"
        "<link name='b'><pose relative_to='f' rotation_format='quat_xyzw'>1 0 0 0 0 1 0</pose>" + MASS + "</link>"
        "<frame name='f' attached_to='a'><pose>0 2 0 0 0 0</pose></frame>"
        "<frame name='g' attached_to='f'><pose relative_to='__model__'>5 5 5 0 0 0</pose></frame>"
        + joint("j", "ball", "f", "b", ""),
    )
    robot = read_robot(path)
    assert [(j.name, j.kind, j.parent) for j in robot.joints] == [("floating_base", "free", ""), ("j", "ball", "a")]
    poses = start_poses(robot.joints)
    where = {name: (after(poses[host], tuple(place))) for name in "abfg" for host, *place in [robot.place(name)]}
    # f is 2 m along y of a, which is turned by 90 degrees: at 1 - 2 = -1; b is 1 m along its x, which is y.
    for name, place in {"a": [1, 0, 0], "f": [-1, 0, 0], "b": [-1, 1, 0], "g": [5, 5, 5]}.items():
        np.testing.assert_allclose(where[name][0], place, atol=1e-12)
    np.testing.assert_allclose(where["b"][1] @ [1, 0, 0], [0, -1, 0], atol=1e-12)
    assert robot.place("g")[0] == "a" and set(robot.frames) == {"f", "g"}
    moved = read_robot(sdf(tmp_path, link("a", "1 2 3 0 0 0"), model="name='m' placement_frame='a'"))
    np.testing.assert_allclose(moved.joints[0].position, [0, 0, 0], atol=1e-12)
    fixed = read_robot(sdf(tmp_path, link("a") + link("b") + joint("j", "continuous", "a", "b")), base="fixed")
    assert [j.kind for j in fixed.joints] == ["hinge"] and fixed.static.mass == 2.0


def test_axes_limits_springs_and_what_follows(tmp_path):
    chain = "".join(link(name, f"0 0 {k} 0 0 0") for k, name in enumerate("abcdefgh"))
    limit = "<axis><xyz>0 0 1</xyz><limit><lower>{}</lower><upper>{}</upper>{}</limit>{}</axis>"
    spring = "<dynamics><friction>0.1</friction><spring_stiffness>7</spring_stiffness>"
    spring += "<spring_reference>0.2</spring_reference></dynamics>"
    follows = (
        "<axis><mimic joint='ab'><multiplier>2</multiplier><offset>1</offset><reference>0.5</reference></mimic></axis>"
    )
    robot = read_robot(sdf(
        tmp_path, chain + joint("wa", "fixed", "world", "a")
        + joint("ab", "revolute", "a", "b", limit.format("-1e16", "inf", "<effort>-1</effort>", spring))
        + joint("bc", "revolute", "b", "c", limit.format("0", "0.0", "<stiffness>9</stiffness>", ""))
        + joint("cd", "universal", "c", "d", "<axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 1 0</xyz></axis2>")
        + joint("de", "screw", "d", "e", "<screw_thread_pitch>0.002</screw_thread_pitch><axis><xyz>0 0 1</xyz></axis>")
        + joint("ef", "revolute", "e", "f", follows)
        + joint("fg", "prismatic", "f", "g", limit.format("-2", "1e17", "", ""))
        + joint("gh", "revolute", "g", "h", "<pose>0 0 0 0 0 1.5707963267948966</pose><axis><xyz>1 0 0</xyz></axis>"),
    ))  # fmt: skip
    found = {j.name: j for j in robot.joints}
    assert list(found) == ["ab", "cd_1", "cd_2", "de", "ef", "fg", "gh"]
    ab = found["ab"]
    numbers = (ab.lower, ab.upper, ab.effort, ab.stiffness, ab.reference, ab.dry_friction)
    assert numbers == (-np.inf, np.inf, np.inf, 7.0, 0.2, 0.1)
    assert found["cd_1"].axis.tolist() == [1, 0, 0] and found["cd_2"].axis.tolist() == [0, 1, 0]
    assert ("b", "d") in robot.excluded and robot.place("c")[0] == "b"
    assert found["de"].pitch == pytest.approx(0.002 / (2 * np.pi)) and found["ef"].mimic == ("ab", 2.0, 0.0)
    assert (found["fg"].lower, found["fg"].upper) == (-2.0, np.inf)
    np.testing.assert_allclose(found["gh"].rotation @ found["gh"].axis, [0, 1, 0], atol=1e-12)
    listed = "\n".join(robot.ignored)
    assert "lower = upper = 0: it stands still" in listed and "<stiffness>" in listed and not robot.doubts


def test_axes_before_version_1_5_are_the_model_s(tmp_path):
    turned = link("a", "0 0 0 0 0 1.5707963267948966") + joint(
        "j", "continuous", "world", "a", "<axis><xyz>1 0 0</xyz></axis>"
    )
    for version, axis in (("1.4", [1, 0, 0]), ("1.5", [0, 1, 0])):
        j = read_robot(sdf(tmp_path, turned, version=version)).joints[0]
        np.testing.assert_allclose(j.rotation @ j.axis, axis, atol=1e-12)


def test_a_four_bar_closes(tmp_path):
    links = link("crank", "0 0 0.5 0 0 0") + link("rod", "0.5 0 1 0 0.3 0") + link("rocker", "1 0 0.5 0 0 0")
    at = "<pose relative_to='__model__'>{} 0 {} 0 0 0</pose><axis><xyz expressed_in='__model__'>0 1 0</xyz></axis>"
    robot = read_robot(sdf(
        tmp_path, links + joint("one", "continuous", "world", "crank", at.format(0, 0))
        + joint("two", "continuous", "crank", "rod", at.format(0, 1))
        + joint("three", "continuous", "world", "rocker", at.format(1, 0))
        + joint("four", "continuous", "rod", "rocker", at.format(1, 1)),
    ))  # fmt: skip
    (loop,) = robot.loops
    assert (loop.name, loop.kind, loop.links) == ("four", "hinge", ("rod", "rocker"))
    poses = start_poses(robot.joints)
    for name, position, rotation in zip(loop.links, loop.positions, loop.rotations, strict=True):
        place = after(poses[name], (position, rotation))
        np.testing.assert_allclose(place[0], [1, 0, 1], atol=1e-12)
        np.testing.assert_allclose(place[1][:, 2], [0, 1, 0], atol=1e-12)


def test_shapes_worlds_and_what_is_noted(tmp_path):
    shapes = "<collision name='b'><pose>0 0 1 0 0 0</pose><geometry><box><size>1 2 4</size></box></geometry>"
    shapes += "<surface/></collision>"
    shapes += "<visual name='v'><geometry><empty/></geometry></visual><gravity>0</gravity><sensor name='s' type='imu'/>"
    world = "<world name='w'><gravity>0 0 -1.6</gravity><model name='floor'><static>1</static></model>{}</world>"
    inside = link("a", "", MASS + SPHERE + shapes) + "<plugin name='p' filename='x'/>"
    robot = read_robot(sdf(tmp_path, inside, around=world), up="y")
    assert [(s.shape, s.size, s.position.tolist()) for s in robot.links[0].collision] == [
        ("sphere", (0.1,), [0, 0, 0]), ("box", (0.5, 1.0, 2.0), [0, 0, 1]),
    ]  # fmt: skip
    np.testing.assert_allclose(robot.gravity, [0, 1.6, 0])
    listed = "\n".join(robot.ignored)
    assert all(word in listed for word in ("<surface>", "<sensor>", "<plugin>", "model 'floor'"))
    assert [doubt for doubt in robot.doubts if "<gravity> false" in doubt] == list(robot.doubts)
    bare = read_robot(sdf(tmp_path, "<link name='a'/>"))
    assert bare.mass == 1.0 and bare.links[0].inertia.tolist() == np.eye(3).tolist()
    assert "mass 1 kg" in "\n".join(bare.ignored)
    still = read_robot(
        sdf(tmp_path, link("a", "", MASS.replace("2", "0", 1)) + link("b") + joint("j", "continuous", "a", "b"))
    )
    assert [j.kind for j in still.joints] == ["hinge"] and "it stands still" in "\n".join(still.ignored)


TWO = link("a") + link("b")


def test_a_model_stands_where_the_frames_of_its_world_say(tmp_path):
    """Its pose counts from a frame of the world, or from another model, with `placement_frame` too."""
    around = "<world name='w'><frame name='f' attached_to='g'><pose>0 1 0 0 0 0</pose></frame><frame name='g'>"
    around += "<pose>5 0 0 0 0 1.5707963267948966</pose></frame><model name='table'><static>1</static>"
    around += "<pose>0 0 3 0 0 0</pose></model>{}</world>"
    for other, where in (("f", [4, 2, 0]), ("table", [2, 0, 3]), ("world", [2, 0, 0])):
        inside = f"<pose relative_to='{other}'>2 0 0 0 0 0</pose>" + link("a", "0 7 0 0 0 0")
        robot = read_robot(sdf(tmp_path, inside, around=around, model="name='m' placement_frame='a'"))
        np.testing.assert_allclose(robot.joints[0].position, where, atol=1e-12)
    with pytest.raises(InputError, match=r"<pose> of the model: a pose is relative to no frame.*found 'nowhere'"):
        read_robot(sdf(tmp_path, "<pose relative_to='nowhere'/>" + link("a"), around=around))


def test_what_is_attached_to_the_model_moves_with_its_canonical_link(tmp_path):
    inside = link("a") + link("b") + joint("j", "continuous", "a", "b") + "<frame name='f'/>"
    inside += "<frame name='g' attached_to='__model__'/>"
    for title, carrier in (("name='m'", "a"), ("name='m' canonical_link='b'", "b")):
        robot = read_robot(sdf(tmp_path, inside, model=title))
        assert [robot.place(name)[0] for name in "fg"] == [carrier, carrier]
    with pytest.raises(InputError, match=r"no such link .found 'c'"):
        read_robot(sdf(tmp_path, inside, model="name='m' canonical_link='c'"))


def test_what_else_a_world_says(tmp_path):
    """Joints of the world are refused, poses of a saved state a doubt; all else is listed."""
    world = "<world name='w'>{{}}{}</world>"
    path = sdf(tmp_path, link("a"), around=world.format("<state world_name='w'/><physics type='ode'/>"))
    robot = read_robot(path)
    assert len(robot.doubts) == 1 and "<state>: where its models are then is not read" in robot.doubts[0]
    assert not read_robot(path, ignore=["extension"]).doubts
    assert "line 1, <world>: <physics>" in robot.ignored
    path = sdf(tmp_path, link("a"), around=world.format(joint("j", "fixed", "world", "m::a")))
    with pytest.raises(InputError, match=r"a joint of the world is not read.*'joint' among"):
        read_robot(path)
    assert read_robot(path, ignore=["joint"]).joints[0].kind == "free"


@pytest.mark.parametrize(
    ("inside", "word"),
    [
        (TWO + joint("j", "revolute", "a", "b", "<axis><drake:rotor_inertia>1</drake:rotor_inertia></axis>"),
         "drake:rotor_inertia"),
        (TWO + joint("j", "revolute", "a", "b", "<drake:mimic joint='k'/>"), "drake:mimic"),
        (link("a", "", MASS + "<velocity_decay><linear>0.2</linear></velocity_decay>"), "velocity_decay"),
        (link("a") + "<drake:linear_spring_damper/>", "drake:linear_spring_damper"),
    ],
)  # fmt: skip
def test_elements_of_other_programs_that_change_the_motion(tmp_path, inside, word):
    robot = read_robot(sdf(tmp_path, inside))
    assert [f"<{word}> changes the motion in other programs" in doubt for doubt in robot.doubts] == [True]
    assert not read_robot(sdf(tmp_path, inside), ignore=["extension"]).doubts
    idle = link("a", "", MASS + "<velocity_decay><linear>0</linear></velocity_decay><self_collide>1</self_collide>")
    robot = read_robot(sdf(tmp_path, idle))
    assert not robot.doubts and "line 1, link 'a': <self_collide>" in robot.ignored


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        ("", "has no links"),
        ("<static>true</static>" + TWO, "has 0 models that move"),
        (TWO + joint("j", "gearbox", "a", "b"), "joint 'j': a joint of type 'gearbox' is not read.*'joint' among"),
        (TWO + joint("j", "revolute", "a", "c"), "joint 'j': no such link .found 'c'"),
        (TWO + joint("j", "revolute", "a", "world"), "the world is no child"),
        (TWO + joint("j", "revolute", "a", "b", "<axis><xyz>0 0 0</xyz></axis>"), "an axis without direction"),
        (TWO + joint("j", "revolute", "a", "b", "<axis><xyz>0 1</xyz></axis>"), "xyz.*bad numbers.*3 finite numbers"),
        (TWO + joint("j", "screw", "a", "b"), "a screw without <screw_thread_pitch>"),
        (TWO + joint("j", "revolute", "a", "b", "<pose relative_to='q'>0 0 0 0 0 0</pose>"), "found 'q'"),
        (link("a", "0 0 0 0 0"), "pose.*bad numbers.*6 finite numbers"),
        ("<frame name='f' attached_to='g'/><frame name='g' attached_to='f'/>" + TWO, "in a circle|the circle"),
        ("<model name='n'/>" + TWO, "a model within the model is not read.*'include' among"),
        ("<link name='a'><inertial auto='true'/></link>", "auto=.true.. is not computed"),
        (TWO + "<drake:joint name='j' type='planar'/>", "<drake:joint>: a joint of Drake's own.*'joint' among"),
        (TWO + joint("j", "revolute", "a", "b", "<axis><dynamics><damping>-1</damping></dynamics></axis>"), "a neg"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path, inside, words):
    with pytest.raises(InputError, match=words):
        read_robot(sdf(tmp_path, inside))


def test_options_that_do_not_fit(tmp_path):
    path = sdf(tmp_path, link("a") + joint("j", "revolute", "world", "a"))
    with pytest.raises(InputError, match='base "free": a joint leads from the world to it'):
        read_robot(path, base="free")
    with pytest.raises(InputError, match=r"option `srdf` is for URDF files .found an SDF file"):
        read_robot(path, srdf="x.srdf")
    with pytest.raises(InputError, match="'fluid' is nothing to ignore"):
        read_robot(path, ignore=["fluid"])
