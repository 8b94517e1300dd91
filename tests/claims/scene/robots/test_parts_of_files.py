"""Actuators, tendons, equalities and static shapes of robots' files in scenes, against MuJoCo's own forces."""

import numpy as np
import pytest
from support.robot_files import INERTIAL, joint, link, urdf, written

from add.contact import BodyContact
from add.equations.kinematics import Kinematics
from add.errors import InputError
from add.scene import scene_from_dict
from add.scene.build.file_doubts import robot_doubts
from add.terms import LengthActuator, OnLengths
from add.testing import check_constraint

FILE = """<mujoco>
  <compiler angle="radian" autolimits="true"/>
  <option gravity="0 0 0"><flag contact="disable"/></option>
  <default><joint damping="0.3" armature="0.02"/>
    <default class="rod"><geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.02"/></default>
    <default class="stiff"><joint stiffness="2" springref="0.2"/><position kp="20" kv="1.5"/></default></default>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1" pos="0 0 -2"/>
    <body name="a"><joint name="a" axis="0 1 0"/><geom class="rod"/>
      <body name="b" pos="0 0 -0.3"><joint name="b" axis="0 1 0" class="stiff" ref="0.1"/><geom class="rod"/>
        <body name="c" pos="0 0 -0.3"><joint name="c" type="slide" axis="0 0 1" range="-0.5 0.5"/><geom class="rod"/>
      </body></body></body>
  </worldbody>
  <tendon>
    <fixed name="rope" stiffness="30" springlength="0.05 0.1" damping="0.4"><joint joint="a" coef="0.2"/>
      <joint joint="c" coef="-1.5"/></fixed>
    <fixed name="cord" stiffness="5" springlength="0.02"><joint joint="b" coef="0.3"/></fixed>
  </tendon>
  <actuator>
    <motor name="push" joint="a" gear="3" ctrlrange="-1 1"/>
    <position name="hold" joint="b" class="stiff" ctrlrange="-2 2" forcerange="-4 4"/>
    <velocity name="turn" joint="c" kv="2" gear="0.5"/>
    <general name="odd" tendon="rope" gear="2" gainprm="1 0.3 0.2" gaintype="affine" biastype="affine"
      biasprm="0.1 -3 -0.2" forcerange="-1.5 1.5"/>
  </actuator>
  <equality><joint joint1="b" joint2="a" polycoef="0.05 -1.5 0.2 0 0"/></equality>
</mujoco>"""


@pytest.fixture
def file(tmp_path):
    pytest.importorskip("mujoco", reason="mujoco is not installed: pip install 'add-sim[robots]'")
    return written(tmp_path, FILE, "bot.xml")


def scene(file, **more):
    body = {"type": "articulated", "model": str(file), "actuators": True} | more
    return {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 5}, "gravity": [0, 0, 0], "bodies": {"bot": body},
            "contact": {"between_bodies": False}}  # fmt: skip


@pytest.mark.parametrize("loud", [False, True])
def test_forces_are_those_of_mujoco(file, loud, rng):
    """Springs, damping, tendons and actuators at random states, clipped or not."""
    import mujoco

    controls = {"push": 4.0 if loud else 0.3, "hold": 5.0 if loud else 0.2, "turn": 0.7, "odd": 6.0 if loud else 0.4}
    drives = {name: {"actuator": name, "input": u} for name, u in controls.items()}
    built = scene_from_dict(scene(file, drives=drives)).build()
    model = mujoco.MjModel.from_xml_path(str(file))
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data, clipped = mujoco.MjData(model), 0
    for _ in range(5):
        q, v = rng.normal(size=(2, 3)) * (0.5 if loud else 0.05)
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, list(controls.values())
        mujoco.mj_forward(model, data)
        out = np.zeros(3)
        kin = Kinematics(q, v, np.zeros(3), 0.0, 0)
        bias = np.zeros(3)
        for term in built.model.system.terms:
            term.residual(kin, built.theta, bias if type(term).__name__ == "TreeInertia" else out)
        limited = [t for t in built.model.system.terms if type(t).__name__ == "JointLimits"]
        for term in limited:  # MuJoCo's are constraints, which are off
            term.residual(kin, built.theta, stops := np.zeros(3))
            out -= stops
        assert -out == pytest.approx(data.qfrc_passive + data.qfrc_actuator, rel=1e-10, abs=1e-10)
        assert bias == pytest.approx(data.qfrc_bias, abs=1e-12)
        clipped += np.abs(data.actuator_force[1]) == 4.0 or np.abs(data.actuator_force[3]) == 1.5
    assert clipped if loud else clipped < 5, "clipped, and not"


def test_control_is_zero_where_nothing_drives(file):
    built = scene_from_dict(scene(file)).build()
    lengths = [term for term in built.model.system.terms if isinstance(term, OnLengths)]
    drives = [term for term in lengths if isinstance(term.law, LengthActuator)]
    assert len(drives) == 4
    without = scene_from_dict(scene(file, actuators=False)).build()
    assert not [t for t in without.model.system.terms if type(getattr(t, "law", None)).__name__ == "LengthActuator"]
    (found,) = [text for text in robot_doubts(without) if "actuators" in text]
    assert "'hold', 'turn', 'odd'" in found or "'hold', 'odd'" in found


def test_equality_of_joints(file):
    """Of the file's polynomial, which counts from where joints start: b - 0.1 = 0.05 - 1.5 a + 0.2 a^2."""
    raw = scene(file)
    raw["bodies"]["bot"]["joints"] = {"a": {"value": 0.3, "rate": 1.0}}
    run = scene_from_dict(raw).build().run()
    a, b = run.q[:, 0], run.q[:, 1]
    assert np.abs(b - 0.1 - (0.05 - 1.5 * a + 0.2 * a**2)).max() < 1e-12 < np.ptp(a)


def test_equality_of_tendons(file, rng):
    """l - l_0 = 0.05 - 1.5 (k - k_0) + 0.2 (k - k_0)^2 of two fixed tendons, at every step; alone a length is kept."""
    file.write_text(
        FILE.replace(
            '<joint joint1="b" joint2="a" polycoef="0.05 -1.5 0.2 0 0"/>',
            '<tendon name="e" tendon1="rope" tendon2="cord" polycoef="0.05 -1.5 0.2 0 0"/>',
        )
    )
    raw = scene(file)
    raw["bodies"]["bot"]["joints"] = {"a": {"value": 0.3, "rate": 1.0}, "b": {"value": 0.5}}
    built = scene_from_dict(raw).build()
    run = built.run()
    rope, cord = 0.2 * run.q[:, 0] - 1.5 * run.q[:, 2], 0.3 * run.q[:, 1]
    bent = 0.05 - 1.5 * (cord - 0.03) + 0.2 * (cord - 0.03) ** 2
    assert np.abs(rope - bent).max() < 1e-12 < np.ptp(rope)
    (constraint,) = built.model.system.constraints
    kin = Kinematics(*rng.normal(size=(3, 3)), 0.0, 0)
    layout = built.model.system.parameters
    found = check_constraint(constraint, kin, rng.normal(size=1), built.theta, rng=rng, layout=layout)
    names = {layout.describe(i).split(".", 2)[2] for i in found.parameters}
    assert names >= {"tendons.rope.factors[0]", "tendons.rope.factors[1]", "tendons.cord.factors"}
    assert names >= {f"loops.e.coefficients[{k}]" for k in range(5)}
    file.write_text(file.read_text().replace('tendon2="cord" polycoef="0.05 -1.5 0.2 0 0"', 'polycoef="0.02 0 0 0 0"'))
    run = scene_from_dict(raw).build().run()
    assert np.abs(0.2 * run.q[:, 0] - 1.5 * run.q[:, 2] - 0.02).max() < 1e-12 < np.ptp(run.q[:, 0])


def test_a_scenes_polynomial_counts_from_zero(file):
    file.write_text(FILE.replace('<joint joint1="b" joint2="a" polycoef="0.05 -1.5 0.2 0 0"/>', ""))
    loops = {"geared": {"type": "joints", "joint": "b", "other": "a", "coefficients": [0.05, -1.5, 0.2]}}
    raw = scene(file, loops=loops, joints={"a": {"value": 0.3, "rate": 1.0}})
    run = scene_from_dict(raw).build().run()
    a, b = run.q[:, 0], run.q[:, 1]
    assert np.abs(b - (0.05 - 1.5 * a + 0.2 * a**2)).max() < 1e-12 < np.ptp(a)


def test_numbers_of_tendons_are_parameters(file):
    raw = scene(file, tendons={"rope": {"damping": 0.7}, "mine": {"joints": {"a": 1.0, "b": 2.0}, "stiffness": 3}})
    built = scene_from_dict(raw).build()
    layout, theta = built.model.system.parameters, built.theta
    assert layout.view(theta, "bodies.bot.tendons.rope.damping") == 0.7
    assert layout.view(theta, "bodies.bot.tendons.rope.factors").tolist() == [0.2, -1.5]
    assert built.numbers.layout["bodies.bot.tendons.mine.joints.b"].size == 1


ERRORS = {
    "no-actuator": ({"drives": {"x": {"actuator": "pull", "input": 1}}}, "drives.x.actuator", "no actuator of this"),
    "both": ({"drives": {"x": {"actuator": "push", "joint": "a", "input": 1}}}, "drives.x.joint", "exactly one of"),
    "limit": ({"drives": {"x": {"actuator": "push", "limit": 3, "input": 1}}}, "drives.x.limit", "the robot's file"),
    "tendon": ({"drives": {"x": {"tendon": "thread", "input": 1}}}, "drives.x.tendon", "no tendon of this name"),
    "no-joints": ({"tendons": {"thread": {"stiffness": 1}}}, "tendons.thread", "give its joints"),
    "no-joint": ({"tendons": {"thread": {"joints": {"z": 1}}}}, "tendons.thread.joints", "no joint of this name"),
    "taken": ({"drives": {"push": {"joint": "a", "input": 1}}}, "drives.push", "the name of an actuator that acts"),
    "effort": ({"drives": {"x": {"joint": "a", "input": 1, "limit": "file"}}}, "drives.x.limit", "no effort"),
    "loop": ({"loops": {"equality0": {"type": "point", "a": {}, "b": {}}}}, "loops.equality0", "a loop of this name"),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case, file):
    more, place, text = ERRORS[case]
    with pytest.raises(InputError) as caught:
        scene_from_dict(scene(file, **more)).build()
    assert f"bodies.bot.{place}" in str(caught.value) and text in str(caught.value)


def test_effort_of_a_urdf_limits_a_drive(tmp_path):
    path = written(tmp_path, urdf(link("base"), link("arm"), joint("turn", "base", "arm")))
    body = {
        "type": "articulated",
        "model": str(path),
        "drives": {"m": {"joint": "turn", "input": 9.0, "limit": "file"}},
    }
    built = scene_from_dict(
        {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 2}, "bodies": {"bot": body}}
    ).build()
    (drive,) = [term for term in built.model.system.terms if isinstance(term, OnLengths)]
    assert drive.law.force == (-5.0, 5.0)


def test_options_of_the_reader(tmp_path):
    """Repair, packages, pictures and an SRDF are said in the scene, from its folder."""
    singular = INERTIAL.replace('izz="0.1"', 'izz="0.5"')
    mesh = '<collision><geometry><mesh filename="package://shapes/box.obj"/></geometry></collision>'
    (tmp_path / "own").mkdir()
    vertices = [(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)]
    quads = [(1, 2, 4, 3), (5, 7, 8, 6), (1, 5, 6, 2), (3, 4, 8, 7), (1, 3, 7, 5), (2, 6, 8, 4)]
    faces = [(a, b, c) for a, b, c, _ in quads] + [(a, c, d) for a, _, c, d in quads]
    lines = ["v " + " ".join(map(str, v)) for v in vertices] + ["f " + " ".join(map(str, f)) for f in faces]
    (tmp_path / "own" / "box.obj").write_text("\n".join(lines), encoding="ascii")
    path = written(tmp_path, urdf(link("base"), link("arm", singular, mesh), joint("turn", "base", "arm")))
    srdf = '<robot name="small"><disable_collisions link1="base" link2="arm"/></robot>'
    (tmp_path / "small.srdf").write_text(srdf, encoding="ascii")
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 2}, "bodies": {"bot": {
        "type": "articulated", "model": path.name, "repair": True, "packages": {"shapes": "own"},
        "srdf": "small.srdf", "visual": True}}}  # fmt: skip
    built = scene_from_dict(raw, folder=tmp_path).build()
    inertia = built.model.system.parameters.view(built.theta, "bodies.bot.links.arm.inertia")
    assert inertia[:3] == pytest.approx([0.7 / 3] * 3) and len(built.model.body("bot/arm").carried) == 1
    for key, text in (("repair", "belongs to no body"), ("packages", "is not found")):
        other = {**raw, "bodies": {"bot": {k: v for k, v in raw["bodies"]["bot"].items() if k != key}}}
        assert any(text in doubt for doubt in robot_doubts(scene_from_dict(other, folder=tmp_path).build()))


def test_weight_and_fluid_where_joints_stand_off(tmp_path):
    """Weight that is taken away and the fluid act at the bodies, wherever the anchors of their joints are."""
    mujoco = pytest.importorskip("mujoco", reason="mujoco is not installed: pip install 'add-sim[robots]'")
    text = """<mujoco><option density="50" viscosity="0.5"/><worldbody><body name="a" gravcomp="0.7">
      <joint name="j" axis="0 1 0" pos="0.1 0 0.3"/><geom type="box" size="0.1 0.1 0.2" pos="0.2 0 0" mass="2"/></body>
      </worldbody></mujoco>"""
    path = written(tmp_path, text, "off.xml")
    data = mujoco.MjData(model := mujoco.MjModel.from_xml_path(str(path)))
    data.qpos[:], data.qvel[:] = 0.4, 2.0
    mujoco.mj_forward(model, data)
    built = scene_from_dict(scene(path, actuators=False) | {"gravity": [0, 0, -9.81]}).build()
    force = built.simulation.dynamics(data.qpos, data.qvel, data.qacc).residual
    assert force == pytest.approx([0.0], abs=1e-12) and abs(data.qfrc_passive[0]) > 0.1


MASKS = """<mujoco>
  <worldbody><body name="a"><joint axis="0 1 0"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
      <geom name="a0" size="0.1"/><geom name="a1" size="0.1" pos="0.02 0 0" contype="2" conaffinity="2"/>
      <geom name="a2" size="0.1" pos="0 0.03 0" contype="4" conaffinity="1"/>
    <body name="b" pos="0 0 0.05"><joint axis="0 1 0"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
      <body name="c" pos="0 0 0.05"><joint axis="0 1 0"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
        <geom name="c0" size="0.1"/><geom name="c1" size="0.1" pos="0.02 0 0.01" contype="2" conaffinity="6"/>
      </body></body></body></worldbody></mujoco>"""


def test_single_shapes_that_are_kept_apart(tmp_path):
    """Which shapes of two links touch is what MuJoCo's masks say."""
    mujoco = pytest.importorskip("mujoco", reason="mujoco is not installed: pip install 'add-sim[robots]'")
    path = written(tmp_path, MASKS, "masks.xml")
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    theirs = {frozenset(model.geom(int(number)).name for number in contact.geom) for contact in data.contact}
    body = {"type": "articulated", "model": str(path), "self_collision": True}
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 2}, "bodies": {"bot": body}}
    built = scene_from_dict(raw).build()
    (term,) = built.model.term(BodyContact)
    assert np.unique(term.part).size == 5
    q, v = built.model.initial.evaluate(built.theta)
    kin = built.model.lift.kinematics(Kinematics(q, v, q * 0.0, 0.0, 0), built.theta)
    names, ours = [f"a{k}" for k in range(3)] + ["c0", "c1"], set()
    for number in term.decide(kin, built.theta)[:, 0]:
        point, shape = divmod(int(number), term.n_shapes)
        ours.add(frozenset((names[point], names[shape])))  # one point a sphere
    assert ours == theirs and 0 < len(ours) < 6
    everywhere = {k: v for k, v in body.items() if k != "self_collision"}
    raw["bodies"]["bot"] = everywhere
    (term,) = scene_from_dict(raw).build().model.term(BodyContact)
    assert np.unique(term.part).size == 1 and not term.met_shapes()
