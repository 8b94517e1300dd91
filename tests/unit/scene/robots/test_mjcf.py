"""What is read from an MJCF, against MuJoCo's own kinematics, forces, contacts and equations."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import trimesh
from support.robot_dynamics import poses_and_motions
from support.robot_files import written

from add.errors import InputError
from add.scene.robots import read_robot
from add.scene.robots.mjcf_model import refuse_newer
from add.scene.robots.xml_file import MJCF_WORDS, Source

mujoco = pytest.importorskip("mujoco", reason="mujoco is not installed: pip install 'add-sim[robots]'")

# Joints off the body's origin, with `ref`, several on a body; a body without joints between; a tendon; servos.
RICH = """<mujoco model="rich">
  <compiler angle="degree"/>
  <default><joint damping="0.3" armature="0.01"/>
    <default class="soft"><joint stiffness="4" springref="20"/></default></default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1"/>
    <body name="base" pos="0.1 0.2 0.3" euler="10 20 30">
      <joint name="first" axis="0 1 1" pos="0.1 0 0.05" ref="15" range="-60 90" class="soft" frictionloss="0.7"/>
      <joint name="second" type="slide" axis="1 0 1" ref="0.2" range="-1 2"/>
      <joint name="third" axis="1 0 0" pos="0 0.2 -0.1" ref="-40"/>
      <geom type="box" size="0.1 0.2 0.3" pos="0.05 0 0" euler="0 0 20"/>
      <body name="plate" pos="0.3 0 0" euler="0 30 0">
        <geom type="capsule" size="0.05 0.2" mass="0.5"/>
        <site name="tip" pos="0 0 0.2" euler="90 0 0"/>
        <body name="wrist" pos="0 0 0.4">
          <joint name="ball" type="ball" pos="0.02 0 0" range="0 50"/>
          <geom type="ellipsoid" size="0.1 0.05 0.2" contype="0" conaffinity="0"/>
          <geom name="hand" type="sphere" size="0.06" friction="0.4 0 0"/>
        </body>
      </body>
    </body>
    <body name="drone" pos="1 0 1"><freejoint name="fly"/><geom type="cylinder" size="0.1 0.02"/>
      <site name="rotor" pos="0.1 0 0" euler="0 10 0"/></body>
  </worldbody>
  <tendon><fixed name="cable" stiffness="3" springlength="0.1 0.3" damping="0.2" frictionloss="0.1"
    limited="true" range="-2 2">
    <joint joint="first" coef="0.5"/><joint joint="second" coef="-2"/></fixed></tendon>
  <actuator>
    <motor name="motor" joint="first" gear="3" ctrllimited="true" ctrlrange="-1 1"/>
    <position name="servo" joint="third" kp="20" kv="2" gear="2" forcelimited="true" forcerange="-5 5"/>
    <velocity name="rate" joint="second" kv="7"/>
    <general name="affine" joint="third" gainprm="1 2 3" biastype="affine" biasprm="0.1 0.2 0.3" gaintype="affine"/>
    <motor name="pull" tendon="cable" gear="4"/>
    <motor name="lift" site="rotor" gear="0 0 2 0 0 0.1"/>
  </actuator>
  <equality>
    <connect name="pin" body1="wrist" body2="drone" anchor="0.1 0.2 0.3"/>
    <weld name="glue" body1="drone" body2="plate" anchor="0.1 0 0" relpose="0.1 0.2 0.3 0.9 0.1 0.3 0.3"/>
    <connect name="rope" site1="tip" site2="rotor"/>
    <joint name="gear" joint1="first" joint2="third" polycoef="0.1 0.5 0.2 0 0.01"/>
    <joint name="lock" joint1="second" polycoef="0.3 0 0 0 0"/>
    <joint name="off" joint1="second" active="false"/>
  </equality>
  <contact><exclude body1="plate" body2="drone"/></contact>
  <sensor><jointpos joint="first"/></sensor>
</mujoco>"""


@pytest.fixture(scope="module")
def rich(tmp_path_factory):
    path = written(tmp_path_factory.mktemp("rich"), RICH, "rich.xml")
    return read_robot(path), mujoco.MjModel.from_xml_path(str(path))


def state(model, seed):
    rng = np.random.default_rng(seed)
    data = mujoco.MjData(model)
    data.qpos[:] = model.qpos0 + rng.normal(size=model.nq) * 0.4
    mujoco.mj_normalizeQuat(model, data.qpos)
    data.qvel[:] = rng.normal(size=model.nv)
    data.ctrl[:] = rng.uniform(-0.5, 0.5, size=model.nu)
    mujoco.mj_forward(model, data)
    sizes = {0: 7, 1: 4, 2: 1, 3: 1}
    coordinates = {
        model.joint(j).name: data.qpos[model.jnt_qposadr[j] : model.jnt_qposadr[j] + sizes[int(model.jnt_type[j])]]
        for j in range(model.njnt)
    }
    return data, coordinates


def placed(robot, poses, name):
    link, position, rotation = robot.place(name)
    return poses[link][0] + poses[link][1] @ position, poses[link][1] @ rotation


@pytest.mark.parametrize("seed", range(3))
def test_poses(rich, seed):
    """Bodies, sites and shapes stand where MuJoCo has them, in coordinates of the file."""
    robot, model = rich
    data, coordinates = state(model, seed)
    poses, _ = poses_and_motions(robot, coordinates)
    for body in range(1, model.nbody):
        position, rotation = placed(robot, poses, model.body(body).name)
        np.testing.assert_allclose(position, data.xpos[body], atol=1e-12)
        np.testing.assert_allclose(rotation, data.xmat[body].reshape(3, 3), atol=1e-12)
    for site in range(model.nsite):
        position, rotation = placed(robot, poses, model.site(site).name)
        np.testing.assert_allclose(position, data.site_xpos[site], atol=1e-12)
        np.testing.assert_allclose(rotation, data.site_xmat[site].reshape(3, 3), atol=1e-12)
    seen = 0
    for link in (robot.static, *robot.links):
        for shape in link.collision:
            number = model.geom(shape.name).id if shape.name in ("floor", "hand") else int(shape.name[4:])
            p, r = poses[link.name]
            np.testing.assert_allclose(p + r @ shape.position, data.geom_xpos[number], atol=1e-12)
            np.testing.assert_allclose(r @ shape.rotation, data.geom_xmat[number].reshape(3, 3), atol=1e-12)
            seen += 1
    assert seen == model.ngeom - 1  # the ellipsoid is visual


def test_numbers(rich):
    robot, _ = rich
    joints = {joint.name: joint for joint in robot.joints}
    first = joints["first"]
    assert (first.kind, first.stiffness, first.damping, first.armature, first.dry_friction) == (
        "hinge",
        4,
        0.3,
        0.01,
        0.7,
    )
    np.testing.assert_allclose(np.degrees([first.reference, first.start, first.lower, first.upper]), [20, 15, -60, 90])
    np.testing.assert_allclose(np.linalg.norm([joint.axis for joint in robot.joints], axis=1), 1)
    ball = joints["ball"]
    assert (ball.kind, ball.damping, ball.armature, ball.lower) == ("ball", 0.3, 0.01, -np.inf)
    assert np.degrees(ball.upper) == pytest.approx(50)
    assert [link.name for link in robot.links] == ["base_1", "base_2", "base", "wrist", "drone"]
    assert robot.links[3].collision[0].friction == 0.4
    np.testing.assert_allclose(robot.gravity, [0, 0, -9.81])
    (cable,) = robot.tendons
    assert cable.joints == (("first", 0.5), ("second", -2.0)) and cable.rest == (0.1, 0.3)
    assert (cable.stiffness, cable.damping, cable.dry_friction, cable.lower, cable.upper) == (3, 0.2, 0.1, -2, 2)
    said = "\n".join(robot.ignored)
    for word in ("1 sensor", "equality 'off': not active", "ellipsoid", "timestep"):
        assert word in said


@pytest.mark.parametrize("seed", range(3))
def test_actuators(rich, seed):
    """Forces by the neutral records are MuJoCo's, also where they are clamped."""
    robot, model = rich
    data, coordinates = state(model, seed)
    rates = {model.joint(j).name: data.qvel[model.jnt_dofadr[j]] for j in range(model.njnt)}
    tendons = {item.name: item for item in robot.tendons}
    kinds = []
    for number, item in enumerate(robot.actuators):
        length = rate = 0.0
        if item.transmission == "joint":
            length, rate = item.gear[0] * coordinates[item.target][0], item.gear[0] * rates[item.target]
        elif item.transmission == "tendon":
            for name, factor in tendons[item.target].joints:
                length += item.gear[0] * factor * coordinates[name][0]
                rate += item.gear[0] * factor * rates[name]
        control = np.clip(data.ctrl[number], *item.control)
        line = np.array([1.0, length, rate])
        force = np.clip(line @ item.gain * control + line @ item.bias, *item.force)
        assert force == pytest.approx(data.actuator_force[number], rel=1e-12, abs=1e-13)
        kinds.append(item.transmission)
    assert kinds == ["joint"] * 4 + ["tendon", "place"]
    lift = robot.actuators[-1]
    poses, motions = poses_and_motions(robot, coordinates)
    position, rotation = placed(robot, poses, lift.target)
    push, torque = rotation @ lift.gear[:3], rotation @ lift.gear[3:]
    wrench = np.concatenate([torque + np.cross(position, push), push]) * data.actuator_force[-1]
    moment = np.zeros((model.nu, model.nv))
    mujoco.mju_sparse2dense(moment, data.actuator_moment, data.moment_rownnz, data.moment_rowadr, data.moment_colind)
    theirs = moment[-1] * data.actuator_force[-1]
    dof = model.jnt_dofadr[model.joint("fly").id]
    np.testing.assert_allclose(motions["fly"].T @ wrench, theirs[dof : dof + 6], atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_loops(rich, seed):
    """What is apart in a loop is what MuJoCo's equality rows say."""
    robot, model = rich
    data, coordinates = state(model, seed)
    poses, _ = poses_and_motions(robot, coordinates)
    loops = {loop.name: loop for loop in robot.loops}
    assert [loop.kind for loop in loops.values()] == ["point", "fixed", "point", "joints", "joints"]
    rows = {name: data.efc_pos[: data.ne][data.efc_id[: data.ne] == model.equality(name).id] for name in loops}
    joints = {joint.name: joint for joint in robot.joints}
    for name, loop in loops.items():
        if loop.kind == "joints":
            shift = [coordinates[j][0] - joints[j].start for j in loop.joints]
            powers = [1.0] if len(shift) == 1 else shift[1] ** np.arange(5)
            assert shift[0] - np.dot(powers, loop.coefficients) == pytest.approx(rows[name][0], abs=1e-13)
            continue
        ends = [poses[link][0] + poses[link][1] @ at for link, at in zip(loop.links, loop.positions, strict=True)]
        np.testing.assert_allclose(ends[0] - ends[1], rows[name][:3], atol=1e-12)
        if loop.kind == "fixed":
            one, two = (poses[link][1] @ turn for link, turn in zip(loop.links, loop.rotations, strict=True))
            turn = one.T @ two
            axial = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]]) / 2
            scale = 2 * np.sqrt(1 + np.trace(turn)) / 2  # sin(a/2) of the axis, against sin(a)
            sines = np.linalg.norm(axial) / scale
            assert sines == pytest.approx(np.linalg.norm(rows[name][3:]), rel=1e-9)


CLUSTER = """<mujoco>
  <option><flag {flag}/></option>
  <default><geom type="sphere" size="0.2"/></default>
  <worldbody>
    <geom name="ground" pos="0.01 0 0"/>
    <body name="post"><geom name="post"/></body>
    <body name="a" pos="0 0.01 0"><joint type="hinge"/><geom name="a" contype="2" conaffinity="1"/>
      <geom name="a2" pos="0.02 0 0" contype="4" conaffinity="4"/>
      <body name="weld" pos="0 0.03 0"><geom name="weld" contype="1" conaffinity="3"/>
        <body name="b" pos="0 0 0.01"><joint type="hinge" axis="1 0 0"/><geom name="b"/>
          <geom name="b2" pos="0 0 0.02" contype="0" conaffinity="6"/>
          <body name="c" pos="0.01 0 0.01"><joint name="s1" type="slide"/><joint name="s2" type="hinge"/>
            <geom name="c"/></body>
        </body></body></body>
    <body name="free" pos="0.02 0.02 0"><freejoint/><geom name="free" contype="1" conaffinity="2"/></body>
  </worldbody>
  <contact><exclude body1="weld" body2="c"/><exclude body1="free" body2="b"/></contact>
</mujoco>"""


@pytest.mark.parametrize("flag", ['gravity="enable"', 'filterparent="disable"', 'contact="disable"'])
def test_pairs_that_touch_are_those_of_mujoco(tmp_path, flag):
    """All spheres overlap: the contacts that MuJoCo makes are the pairs that are left."""
    path = written(tmp_path, CLUSTER.format(flag=flag), "cluster.xml")
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    theirs = {frozenset(model.geom(int(k)).name for k in contact.geom) for contact in data.contact}
    robot = read_robot(path)
    ours = set()
    links = (robot.static, *robot.links)
    for i, one in enumerate(links):
        for two in links[i + 1 :]:
            if (one.name, two.name) in robot.excluded:
                continue
            for k, a in enumerate(one.collision):
                for m, b in enumerate(two.collision):
                    if ((one.name, k), (two.name, m)) not in robot.excluded_shapes:
                        ours.add(frozenset((a.name, b.name)))
    assert ours == theirs
    assert (len(theirs) > 5) is ("contact" not in flag)


def test_sites_named_like_bodies(tmp_path):
    """Two places cannot have one name: the site's changes, also as the target of its actuator."""
    text = model_of(
        inner="<site name='t' pos='0 0 1'/><site name='t_1' pos='0 0 2'/>",
        joint="<joint name='a'/><joint name='b' axis='1 0 0'/>",
        rest='<actuator><motor name="m" site="t" gear="1 0 0 0 0 0"/></actuator>',
    )
    robot = read_robot(written(tmp_path, text))
    assert robot.place("t")[1][2] == 0 and robot.actuators[0].target == "t_site"
    assert robot.place("t_site")[1][2] == 1 and robot.place("t_1")[1][2] == 2
    assert [link.name for link in robot.links] == ["t_1_", "t"]


def test_base(tmp_path):
    text = '<mujoco><worldbody><body name="t" pos="0 0 1">{}<geom size="0.1"/></body></worldbody></mujoco>'
    bare, free = text.format(""), text.format('<freejoint name="root"/>')
    assert [item.kind for item in read_robot(written(tmp_path, free)).joints] == ["free"]
    assert not read_robot(written(tmp_path, free), base="fixed").joints
    assert not read_robot(written(tmp_path, bare)).joints
    (joint,) = read_robot(written(tmp_path, bare), base="free").joints
    assert (joint.kind, joint.name, joint.child) == ("free", "floating_base", "t")
    np.testing.assert_allclose(joint.position, [0, 0, 1])
    (joint,) = read_robot(written(tmp_path, free), base="free", up="y").joints
    assert joint.name == "root"
    np.testing.assert_allclose(joint.position, [0, -1, 0])
    np.testing.assert_allclose(read_robot(written(tmp_path, free), up="y").gravity, [0, 9.81, 0])
    hinge = text.format("<joint/>")
    with pytest.raises(InputError, match="does not have one first body without joints"):
        read_robot(written(tmp_path, hinge), base="free")


BODY = '<body name="t" {}>{}<geom name="g" {}/>{}</body>'


def model_of(body="", joint="<joint name='j'/>", geom="size='0.1'", inner="", rest="", option=""):
    attributes = BODY.format(body, joint, geom, inner)
    return f"<mujoco>{option}<worldbody>{attributes}</worldbody>{rest}</mujoco>"


REFUSED = {
    "actuatorfrcrange": (
        model_of(joint='<joint name="j" actuatorfrclimited="true" actuatorfrcrange="-1 2"/>'),
        "joint 'j': actuatorfrcrange -1 2 differs by direction",
    ),
    "pair": (
        model_of(inner="<body name='c'><joint/><geom name='h' size='0.1'/></body>",
                 rest='<contact><pair geom1="g" geom2="h"/></contact>'),
        "<contact><pair> of 'g' and 'h': a contact of neighbours",
    ),
    "equality": (
        model_of(inner="<site name='a'/><site name='b' pos='1 0 0'/>",
                 rest='<tendon><spatial name="f"><site site="a"/><site site="b"/></spatial></tendon>'
                      '<equality><tendon name="e" tendon1="f"/></equality>'),
        "line 1, equality 'e': an equality of tendons that are spatial",
    ),
}  # fmt: skip


def test_ellipsoids_and_height_fields_are_closed_meshes(tmp_path):
    """The ellipsoid by its points, the field by the heights that rays of MuJoCo meet."""
    mujoco = pytest.importorskip("mujoco")
    heights = np.random.default_rng(0).random((5, 6))
    heights[0, 0], heights[0, 1] = 0.0, 1.0  # MuJoCo takes the range from lowest to highest as one
    rows = " ".join(map(str, heights[::-1].ravel()))
    field = f'<hfield name="h" nrow="5" ncol="6" size="1 0.8 0.2 0.1" elevation="{rows}"/>'
    ground = '<geom name="ground" type="hfield" hfield="h"/>'
    body = '<body name="t" pos="0 0 5"><joint name="j"/><geom name="g" type="ellipsoid" size="0.1 0.2 0.3"/></body>'
    file = tmp_path / "field.xml"
    file.write_text(f"<mujoco><asset>{field}</asset><worldbody>{ground}{body}</worldbody></mujoco>")
    robot = read_robot(file)
    (egg,) = robot.links[0].collision
    assert np.sum((egg.vertices / [0.1, 0.2, 0.3]) ** 2, axis=1) == pytest.approx(1.0)
    (field,) = robot.static.collision
    assert any("height field" in note for note in robot.ignored) and any("ellipsoid" in note for note in robot.ignored)
    for shape, least in ((egg, 0.96 * 4.0 / 3.0 * np.pi * 0.006), (field, 3.2 * 0.1)):
        mesh = trimesh.Trimesh(shape.vertices, shape.triangles, process=False)
        assert mesh.is_watertight and mesh.is_winding_consistent and mesh.volume > least
    model = mujoco.MjModel.from_xml_path(str(file))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    hit, groups = np.zeros(1, dtype=np.int32), np.ones(6, dtype=np.uint8)
    corners = field.vertices[field.triangles]
    for triangle in corners[(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])[:, 2] > 1e-9)]:
        x, y, z = triangle.mean(axis=0)
        above = np.array([x, y, 3.0])
        away = mujoco.mj_ray(model, data, above, np.array([0.0, 0.0, -1.0]), groups, 1, 1, hit)
        assert 3.0 - away == pytest.approx(z, abs=1e-6)


def test_weights_that_actuators_take_away(tmp_path):
    """They are errors where actuators are switched off or limited, which nothing here could know."""
    text = """<mujoco>{}<worldbody><body name="b" gravcomp="0.5">
      <joint name="j" axis="0 1 0" actuatorgravcomp="true" {}/>
      <geom size="0.1" pos="0.3 0 0"/></body></worldbody></mujoco>"""
    off, limit = '<option><flag actuation="disable"/></option>', 'actuatorfrclimited="true" actuatorfrcrange="-1 1"'
    for option, key, word, message in (
        (off, "", "gravcomp", "joint 'j': actuatorgravcomp, and actuation is switched off"),
        ("", limit, "actuatorfrcrange", "joint 'j': actuatorfrcrange limits what actuatorgravcomp takes away, too"),
    ):
        path = written(tmp_path, text.format(option, key))
        with pytest.raises(InputError, match=message):
            read_robot(path)
        assert len(read_robot(path, ignore=[word]).compensated) == (word != "gravcomp")
    robot = read_robot(written(tmp_path, text.format("", "")))
    assert len(robot.compensated) == 1 and any("actuatorgravcomp" in line for line in robot.ignored)


def test_a_pair_of_geoms_that_touch_anyway_is_a_note(tmp_path):
    file = tmp_path / "pair.xml"
    file.write_text(
        model_of(inner="<geom name='h' size='0.1'/>", rest='<contact><pair geom1="g" geom2="h"/></contact>')
    )
    assert any("<pair> of 'g' and 'h'" in note for note in read_robot(file).ignored)


def test_what_flags_switch_off_does_not_act(tmp_path):
    """Each flag alone, all else as it is; with the word "flag" in `ignore` everything acts."""
    pytest.importorskip("mujoco")
    joint = '<joint name="{}" stiffness="2" damping="3" frictionloss="4" limited="true" range="-10 20"/>'
    text = """<mujoco><option density="5" viscosity="1"><flag {}="disable"/></option><worldbody>
    <body name="a" gravcomp="0.5">{}<geom size="0.1"/></body><body name="b">{}<geom size="0.1"/></body></worldbody>
    <equality><joint name="e" joint1="j" joint2="k"/></equality>
    <actuator><motor name="m" joint="j" ctrllimited="true" ctrlrange="-1 1"/></actuator></mujoco>"""

    def acting(flag, ignore=()):
        path = written(tmp_path, text.format(flag, joint.format("j"), joint.format("k")), "flags.xml")
        robot = read_robot(path, ignore=ignore)
        assert any(f"{flag} is switched off" in line for line in robot.ignored)
        first = robot.joints[0]
        control = robot.actuators[0].control[1] if robot.actuators else None
        numbers = first.stiffness, first.damping, first.dry_friction, first.upper, control
        return *numbers, len(robot.loops), robot.fluid is not None, len(robot.compensated)

    upper = np.deg2rad(20)
    everything = 2, 3, 4, pytest.approx(upper), 1, 1, True, 1
    assert acting("limit", ["flag"]) == everything and acting("passive", ["flag"]) == everything
    assert acting("limit") == (2, 3, 4, np.inf, 1, 1, True, 1)
    assert acting("frictionloss") == (2, 3, 0, pytest.approx(upper), 1, 1, True, 1)
    assert acting("equality") == (2, 3, 4, pytest.approx(upper), 1, 0, True, 1)
    assert acting("passive") == (0, 0, 4, pytest.approx(upper), 1, 1, False, 0)
    assert acting("clampctrl") == (2, 3, 4, pytest.approx(upper), np.inf, 1, True, 1)
    assert acting("actuation") == (2, 3, 4, pytest.approx(upper), None, 1, True, 1)
    assert acting("constraint") == (2, 3, 0, np.inf, 1, 0, True, 1)


def test_pairs_touch_whatever_their_masks_say(tmp_path):
    """Of three bodies whose geoms touch nothing by their masks two meet, and one of them the floor."""
    bodies = "".join(
        f'<body name="{name}" pos="{k} 0 1"><freejoint/><geom name="g{name}" size="0.1" contype="0" conaffinity="0"/>'
        "</body>"
        for k, name in enumerate("abc")
    )
    path = written(tmp_path, f"""<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>{bodies}</worldbody>
    <contact><exclude body1="a" body2="b"/><pair geom1="ga" geom2="gb"/><pair geom1="ga" geom2="floor"/></contact>
    </mujoco>""", "pairs.xml")  # fmt: skip
    robot = read_robot(path)
    assert {link.name for link in robot.links if link.collision} == {"a", "b"}
    assert set(map(frozenset, robot.excluded)) >= {frozenset(("", "b"))} and not robot.excluded_shapes
    kept = {frozenset(pair) for pair in robot.excluded}
    assert frozenset(("a", "b")) not in kept and frozenset(("", "a")) not in kept
    assert not any(link.collision for link in read_robot(path, ignore=["pair"]).links)


@pytest.mark.parametrize("word", REFUSED)
def test_what_changes_the_motion_is_refused(word, tmp_path):
    """One error each, and the word that leaves it out."""
    text, message = REFUSED[word]
    path = written(tmp_path, text, "bad.xml")
    with pytest.raises(InputError) as caught:
        read_robot(path)
    said = str(caught.value)
    assert message in said and f"'{word}' among `ignore`" in said and said.startswith(str(path))
    robot = read_robot(path, ignore=[word])
    assert any(message.split(": ")[-1][:10] in line for line in robot.ignored)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<mujoco><worldbody><bdy/></worldbody></mujoco>", "MuJoCo refuses the file: .*line 1"),
        (model_of(geom="type='mesh' mesh='none'"), "MuJoCo refuses the file"),
        ('<mujoco><asset><mesh name="m" file="none.stl"/></asset></mujoco>', "MuJoCo refuses the file: .*none.stl"),
        ('<mujoco><include file="none.xml"/></mujoco>', "MuJoCo refuses the file"),
        (model_of(joint=f"<joint name='{201 * 'a'}'/>"), "joint 'a+': not a name"),
        (model_of(geom="size='0.1' mass='0'"), "MuJoCo refuses the file: .*mass and inertia of moving bodies"),
        (
            '<mujoco><worldbody><body name="t"><joint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 3"/></body>'
            "</worldbody></mujoco>",
            "MuJoCo refuses the file: .*inertia must satisfy A . B >= C",
        ),
        ('<!DOCTYPE m [<!ENTITY x "y">]><mujoco model="&x;"/>', "has a document type"),
        ("<mujoco><worldbody>", "not XML"),
        (
            model_of(body='pos="nan 0 0"'),
            "MuJoCo refuses the file: Nan, Inf or huge|an impossible number .found position = nan",
        ),
        (
            model_of(joint="<joint name='j' damping='1e300'/>"),
            "joint 'j': an impossible number .found damping = 1e.300",
        ),
        *(
            (model_of(joint=f"<joint name='j' {key}='-1'/>"), f"joint 'j': {key}: a negative number .found -1")
            for key in ("damping", "stiffness", "frictionloss")
        ),
        (
            model_of(
                joint="<joint name='j'/>",
                rest="<tendon><fixed name='t' damping='-2'><joint joint='j' coef='1'/></fixed></tendon>",
            ),
            "tendon 't': damping: a negative number .found -2",
        ),
        (model_of(rest="<option viscosity='-1'/>"), "<option>: viscosity: a negative number .found -1"),
        (
            model_of(
                joint="<joint name='j'/>",
                rest="<actuator><general name='a' joint='j' dyntype='filter' dynprm='-1'/></actuator>",
            ),
            "actuator 'a': dynprm: a negative number .found -1",
        ),
        (model_of(joint="<joint name='j' range='nan 2' limited='true'/>"), "MuJoCo refuses|an impossible number"),
    ],
)
def test_errors(text, message, tmp_path):
    path = written(tmp_path, text, "bad.xml")
    with pytest.raises(InputError, match=message) as caught:
        read_robot(path)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


IDLE = """<mujoco>
  <option impratio="3" cone="elliptic" noslip_iterations="2"><flag warmstart="disable" multiccd="enable"/></option>
  <size nuser_jnt="1"/>
  <worldbody><geom type="plane" size="1 1 1" condim="1" priority="2"/>
    <body name="a"><joint name="j" axis="0 1 0" range="-1 1" limited="false" solimplimit="0.8 0.9 0.01"
        solreffriction="0.1 1"
        user="4"/><geom size="0.1" solmix="2"/>
      <body name="b" pos="0 0 0.3"><joint name="k" axis="0 1 0" actuatorfrcrange="-2 2" actuatorfrclimited="true"/>
        <geom size="0.1"/></body></body></worldbody>
  <tendon><fixed name="t" margin="0.1" range="0 2" limited="false" solreffriction="0.1 1">
    <joint joint="k" coef="2"/></fixed></tendon>
  <actuator><general name="m" joint="j" gainprm="2 7" biasprm="1 2 3" ctrlrange="-1 1" ctrllimited="false"/>
    <general name="n" tendon="t" gear="1 0 3" dynprm="5"/>
    <general name="o" joint="j" dyntype="integrator" actearly="true"/></actuator>
  <equality><joint name="e" joint1="j" polycoef="0 1 4 0 0" solref="0.1 1"/>
    <weld name="w" body1="a" body2="b" torquescale="3"/></equality>
  <keyframe><key name="home" qpos="0 0" qvel="1 2" ctrl="3 4 0"/></keyframe></mujoco>"""

SAID = (
    "geoms: priority, solmix: the scene's contact has numbers of its own",
    "geoms: condim 1: contact without friction; the scene's has its own coefficients",
    "joints: solimplimit, solreffriction: the scene's limits and dry friction have numbers of their own",
    "tendons: margin, solreffriction: the scene's limits and dry friction have numbers of their own",
    "equalities: solref: loops are exact",
    "<option>: cone, impratio, noslip_iterations: of MuJoCo's solver",
    "<option><flag>: warmstart, multiccd: how MuJoCo computes",
    "joints: 'j': range without a limit (`limited` is false): nothing is limited",
    "tendons: 't': range without a limit (`limited` is false): nothing is limited",
    "actuators: 'm': ctrlrange without a limit (`limited` is false): nothing is limited",
    "equalities: 'e': polycoef beyond the first, without a second joint",
    "equalities: 'w': torquescale: loops are exact",
    "joints: 'k': actuatorfrcrange, to which actuators on tendons and sites do not keep",
    "actuators: 'm': gainprm, which an actuator of this type does not read",
    "actuators: 'm': biasprm, which an actuator of this type does not read",
    "actuators: 'n': gear beyond the first number, which an actuator of this type does not read",
    "actuators: 'n': actrange or dynprm, which an actuator of this type does not read",
    "actuators: 'o': actearly: steps are implicit",
    "keyframes: qvel, ctrl: poses alone are read",
    "file: user numbers of joint",
)


def test_numbers_that_nothing_reads_are_noted(tmp_path):
    """What a file gives and no part of the motion takes notice of is said once, and nothing else is."""
    said = [text for text in read_robot(written(tmp_path, IDLE, "idle.xml")).ignored if "timestep" not in text]
    assert sorted(said) == sorted(SAID)
    plain = read_robot(written(tmp_path, model_of(), "plain.xml")).ignored
    assert [text for text in plain if "timestep" not in text] == []


@pytest.mark.parametrize("z", [0.05, 0.15])
def test_points_of_a_side_on_other_bodies(tmp_path, z):
    """A tendon runs on the inside of a geom where the point of its side is within it, whichever body carries that."""
    text = model_of(
        inner=f"<site name='a' pos='0.3 0 0'/><body name='c' pos='0 0 {z}'><joint name='k'/>"
        "<geom size='0.1'/><site name='s'/></body>",
        rest='<tendon><spatial name="b"><site site="a"/><geom geom="g" sidesite="s"/><site site="w"/></spatial>'
        "</tendon>",
    ).replace("<worldbody>", "<worldbody><site name='w' pos='-0.3 0 0'/>")
    doubts = read_robot(written(tmp_path, text)).doubts
    assert len(doubts) == (z < 0.1) and all("it runs on the inside of a sphere" in doubt for doubt in doubts)


@pytest.mark.parametrize("target", ["site", "tendon"])
def test_limits_on_joints_that_others_than_their_actuators_load(tmp_path, target):
    """A force on a site or along a spatial tendon is no less for a limit on a joint above it: a doubt."""
    text = model_of(
        joint='<joint name="j" actuatorfrclimited="true" actuatorfrcrange="-1 1"/>',
        inner="<site name='a'/>",
        rest=f'<tendon><spatial name="b"><site site="a"/><site site="w"/></spatial></tendon><actuator><motor {target}='
        f'"{"a" if target == "site" else "b"}"/></actuator>',
    ).replace("<worldbody>", "<worldbody><site name='w'/>")
    robot = read_robot(written(tmp_path, text))
    assert robot.doubts == ("joints: 'j': actuatorfrcrange, to which actuators on tendons and sites do not keep",)


def test_flags_that_are_read(tmp_path):
    """Gravity may be off, and groups of actuators."""
    option = '<option actuatorgroupdisable="2"><flag gravity="disable"/></option>'
    rest = '<actuator><motor name="m" joint="j" group="2"/><motor name="n" joint="j" group="1"/></actuator>'
    robot = read_robot(written(tmp_path, model_of(option=option, rest=rest)))
    assert not robot.gravity.any() and [item.name for item in robot.actuators] == ["n"]
    assert "line 1, actuator 'm': its group is switched off" in robot.ignored


def test_groups_that_no_option_switches_off(tmp_path):
    """A file may give any whole number; the option has those from 0 to 30."""
    rest = '<actuator><motor name="m" joint="j" group="-1"/><motor name="n" joint="j" group="34"/></actuator>'
    robot = read_robot(written(tmp_path, model_of(option='<option actuatorgroupdisable="2"/>', rest=rest)))
    assert [item.name for item in robot.actuators] == ["m", "n"]


def test_a_weld_without_torquescale_holds_points(tmp_path):
    """As MuJoCo says: "setting this value to 0 makes the weld behave like a connect constraint"."""
    weld = '<equality><weld name="w" body1="t" torquescale="{}" anchor="0.1 0 0"/></equality>'
    for scale, kind in ((0, "point"), (1, "fixed"), (0.5, "fixed")):
        robot = read_robot(written(tmp_path, model_of(rest=weld.format(scale)), "weld.xml"))
        (loop,) = robot.loops
        assert loop.kind == kind and any("torquescale" in text for text in robot.ignored) == (scale == 0.5)


@pytest.mark.parametrize(
    ("joint", "actuator", "message"),
    [
        ('<joint name="j" type="ball"/>', '<motor name="m" joint="j"/>', "acts on a ball or free joint"),
        ('<joint name="j"/>', '<motor name="m" site="s" refsite="s"/>', "acts between two sites"),
        ('<joint name="j"/>', '<adhesion name="m" body="t" ctrlrange="0 1" gain="1"/>', "its transmission body is not"),
        ('<joint name="j"/>', '<general name="m" joint="j" dyntype="user"/>', "its dyntype is not read"),
        ('<joint name="j"/>', '<general name="m" joint="j" gaintype="user"/>', "its gain is neither"),
    ],
)
def test_actuators_that_are_not_read(tmp_path, joint, actuator, message):
    text = model_of(joint=joint, inner="<site name='s'/>", rest=f"<actuator>{actuator}</actuator>")
    path = written(tmp_path, text)
    robot = read_robot(path)
    assert f"actuator 'm': {message}" in robot.doubts[0] and not robot.actuators
    assert not read_robot(path, ignore=["actuator"]).doubts


def test_limits_of_balls(tmp_path):
    """One that leaves no angle is a doubt, and none."""
    for numbers, upper, count in (("0 50", np.deg2rad(50), 0), ("0 0", np.inf, 1)):
        joint = f'<joint name="j" type="ball" limited="true" range="{numbers}"/>'
        path = written(tmp_path, model_of(joint=joint), "ball.xml")
        robot = read_robot(path)
        assert robot.joints[0].upper == pytest.approx(upper) and len(robot.doubts) == count
        assert not read_robot(path, ignore=["limit"]).doubts


REPLICATE = '<mujoco><worldbody><replicate count="{}"><replicate count="{}"><geom size="1"/></replicate></replicate>'
REPLICATE += "</worldbody></mujoco>"


def test_too_many_copies(tmp_path):
    """A count in a line would take all memory: refused before MuJoCo sees it, also in an included file."""
    path = written(tmp_path, REPLICATE.format(1000, 1_000_000), "bomb.xml")
    with pytest.raises(InputError, match=r"bomb.xml: line 1, <replicate>: too many copies .found 1e.09"):
        read_robot(path)
    path = written(tmp_path, '<mujoco><include file="bomb.xml"/></mujoco>')
    with pytest.raises(InputError, match=r"bomb.xml: line 1, <replicate>: too many copies"):
        read_robot(path)
    assert len(read_robot(written(tmp_path, REPLICATE.format(3, 4))).static.collision) == 12


def test_warnings_of_mujoco_are_noted(tmp_path, monkeypatch):
    """They are listed; nothing is written where the user works."""
    monkeypatch.chdir(tmp_path)
    robot = read_robot(
        written(tmp_path, model_of(rest='<custom><numeric name="x" data="nan"/></custom>'), "warned.xml")
    )
    assert any(line.startswith("MuJoCo warns: XML contains a 'NaN'") for line in robot.ignored)
    assert [path.name for path in tmp_path.iterdir()] == ["warned.xml"]


def test_without_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(
        InputError, match=r"mujoco, which is not installed \(expected pip install 'add-sim\[robots\]'\)"
    ):
        read_robot(written(tmp_path, RICH))


def test_chain_that_moves_nothing(tmp_path):
    """Two hinges of a body about one line; with armature they are two."""
    text = model_of(joint='<joint name="one" armature="{}"/><joint name="two"/>')
    with pytest.raises(InputError, match=r"joint 'one': moves nothing|MuJoCo refuses the file: .*unstable"):
        read_robot(written(tmp_path, text.format(0)))
    assert read_robot(written(tmp_path, text.format(0.01))).n == 2


def test_what_newer_versions_have(tmp_path):
    """Arrays that the installed version may lack: a stand-in has them."""

    class Named:
        def of(self, kind, number):
            return f"{kind}{number}"

    def model(**arrays):
        return SimpleNamespace(dof_jntid=np.array([0, 1]), **{k: np.array(v) for k, v in arrays.items()})

    def source(*ignore):
        return Source(tmp_path / "new.xml", MJCF_WORDS, frozenset(ignore))

    refuse_newer(source(), model(jnt_stiffnesspoly=[[0, 0]], dof_dampingpoly=[[0, 0], [0, 0]]), Named())
    for arrays, found in (
        ({"jnt_stiffnesspoly": [[0, 0], [0, 2]]}, "joint 'joint1': a spring that is not linear"),
        ({"dof_dampingpoly": [[0, 0], [1, 0]]}, "joint 'joint1': damping that is not linear"),
        ({"actuator_damping": [0, 3]}, "actuator 'actuator1': damping of its own"),
    ):
        with pytest.raises(InputError, match=found):
            refuse_newer(source(), model(**arrays), Named())
        told = source("polynomial")
        refuse_newer(told, model(**arrays), Named())
        assert told.ignored == [found]
