"""Robots' files in scenes against MuJoCo that loads the same file: masses, poses of all links, mass matrix and bias."""

import importlib.util
import warnings
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from bodies.test_trees_reference import Coordinates
from scipy.spatial.transform import Rotation
from support.places import DATA
from support.robot_files import INERTIAL, joint, link, urdf, written

from add.equations.kinematics import Kinematics
from add.errors import InputError
from add.kernels.rotation import jacobian_coefficients, left_jacobian, turn_derivative
from add.scene import scene_from_dict
from add.scene.spec.links import robot_of
from add.terms import TreeInertia

mujoco = pytest.importorskip("mujoco", reason="mujoco is not installed: pip install 'add-sim[robots]'")
ROBOTS = DATA / "robots"
there = pytest.mark.skipif(not ROBOTS.exists(), reason="shared/data with robots is not there")
_FOUND = importlib.util.find_spec("gymnasium")
ASSETS = Path(_FOUND.origin).parent / "envs" / "mujoco" / "assets" if _FOUND and _FOUND.origin else Path("none")

URDF = (
    "a1_description/urdf/a1", "double_pendulum_description/urdf/double_pendulum", "laikago_description/urdf/laikago",
    "panda_description/urdf/panda", "quadruped_description/urdf/quadruped", "solo_description/robots/solo12",
    "simple_humanoid_description/urdf/simple_humanoid", "ur_description/urdf/ur5_robot",
    "ur_description/urdf/ur10_robot",
)  # fmt: skip
OTHERS = ("pybullet_data_zlib/laikago/laikago_toes_zup.urdf", "pybullet_data_zlib/quadruped/quadruped.urdf",
          "pybullet_data_zlib/mjcf/ant.xml", "roboschool_mit/atlas_v4_with_multisense.urdf",
          "gymnasium_mit/humanoid.xml", "gymnasium_mit/walker2d_v5.xml")  # fmt: skip
GYMNASIUM = ("ant", "half_cheetah", "hopper", "humanoid", "humanoidstandup", "inverted_double_pendulum",
             "inverted_pendulum", "point", "pusher", "pusher_v5", "reacher", "swimmer", "walker2d")  # fmt: skip
SIZES = {0: ("free", 7, 6), 1: ("ball", 4, 3), 2: ("slide", 1, 1), 3: ("hinge", 1, 1)}


def mass_matrix(model, data):
    M = np.zeros((model.nv, model.nv))
    if hasattr(data, "qM"):
        mujoco.mj_fullM(model, M, data.qM)
    else:  # since version 4
        mujoco.mj_fullM(model, data, M)
    return M


def theirs(path, free):
    """Return MuJoCo's model; of a URDF without shapes, with a floating joint at its root if it is free."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if path.suffix == ".xml":
            return mujoco.MjModel.from_xml_path(str(path))
        root = ElementTree.parse(path).getroot()
        for part in root.iter("link"):
            for tag in ("collision", "visual"):
                for node in part.findall(tag):
                    part.remove(node)
        for node in root.findall("mujoco"):
            root.remove(node)
        if free:
            children = {node.find("child").get("link") for node in root.findall("joint")}
            (top,) = [node.get("name") for node in root.findall("link") if node.get("name") not in children]
            ElementTree.SubElement(root, "link", name="the_world")
            node = ElementTree.SubElement(root, "joint", name="floating_base", type="floating")
            ElementTree.SubElement(node, "parent", link="the_world")
            ElementTree.SubElement(node, "child", link=top)
        options = {"fusestatic": "true", "discardvisual": "true", "balanceinertia": "false"}
        ElementTree.SubElement(ElementTree.SubElement(root, "mujoco"), "compiler", options)
        return mujoco.MjModel.from_xml_string(ElementTree.tostring(root, encoding="unicode"))


def compare(path, free=False, ignore=()):
    """Compare in three random states; MuJoCo keeps an inertia of six numbers to 1e-6 only."""
    model = theirs(path, free)
    body = {"type": "articulated", "model": str(path), "ignore": list(ignore)} | ({"base": "free"} if free else {})
    gravity = model.opt.gravity.tolist()
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 1}, "gravity": gravity, "bodies": {"r": body},
           "contact": {"between_bodies": False}}  # fmt: skip
    spec = scene_from_dict(raw)
    built, robot = spec.build(), robot_of("r", spec.bodies["r"])
    tree, ours = built.model.body("r"), {item.name: item for item in robot.joints}
    first = dict(zip((item.name for item in tree.joints), tree.first, strict=True))
    assert robot.mass + robot.static.mass == pytest.approx(model.body_mass.sum() + robot.static.mass, rel=1e-9) or (
        robot.mass + robot.static.mass == pytest.approx(model.body_mass.sum(), rel=1e-9)
    )
    entries, follow, names = [], [], {}
    for k in range(model.njnt):
        name = mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_JOINT, k) or f"joint{k}"
        kind, _, width = SIZES[int(model.jnt_type[k])]
        q, v = int(model.jnt_qposadr[k]), int(model.jnt_dofadr[k])
        names[name] = (q, v)
        assert ours[name].kind == kind
        if ours[name].mimic is not None:
            follow.append((name, q, v))
            continue
        entries.append((first[name], width, q, v))
        if kind in ("hinge", "slide"):
            limits = model.jnt_range[k] if model.jnt_limited[k] else (-np.inf, np.inf)
            assert (ours[name].lower, ours[name].upper) == pytest.approx(tuple(limits), rel=1e-9)
            numbers = (model.dof_damping[v], model.dof_armature[v], model.dof_frictionloss[v], model.jnt_stiffness[k])
            found = ours[name]
            said = (found.damping, found.armature, found.dry_friction, found.stiffness)
            assert said == pytest.approx(tuple(numbers), rel=1e-12)
    (term,) = built.model.term(TreeInertia)
    system = Coordinates.__new__(Coordinates)
    system.entries, system.n = entries, tree.coordinates()[0]
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data, rng = mujoco.MjData(model), np.random.default_rng(1)
    allowed = 1e-6 if path.suffix == ".urdf" else 1e-8
    for _ in range(3):
        q, v = model.qpos0.copy(), rng.normal(size=model.nv)
        for _, width, place, _ in entries:
            if width == 1:
                q[place] += rng.normal()
            else:
                offset = width - 3
                q[place : place + offset] += rng.normal(size=offset)
                turn = rng.normal(size=4)
                q[place + offset : place + offset + 4] = turn / np.linalg.norm(turn)
        T = np.zeros((model.nv, system.n))
        for name, place, at in follow:
            other, factor, shift = ours[name].mimic
            q[place], v[at] = factor * q[names[other][0]] + shift, factor * v[names[other][1]]
            T[at, first[name]] = factor
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(model, data)
        own, change = system.q(q), np.zeros(model.nv)
        for at, width, _, row in entries:
            T[row : row + width, at : at + width] = np.eye(width)
            if width > 1:
                w = own[at + width - 3 : at + width]
                T[row + width - 3 : row + width, at + width - 3 : at + width] = left_jacobian(w).T
        rate = np.linalg.lstsq(T, v, rcond=None)[0]
        for at, width, _, row in entries:
            if width > 1:
                part, k, D = slice(at + width - 3, at + width), np.empty(6), np.empty((3, 3))
                jacobian_coefficients(float(own[part] @ own[part]), k)
                turn_derivative(-1.0, own[part], rate[part], k, D)
                change[row + width - 3 : row + width] = D @ rate[part]

        def residual(a, own=own, rate=rate):
            out = np.zeros(system.n)
            term.residual(Kinematics(own, rate, a, 0.0, 0), built.theta, out)
            return out

        bias = residual(-np.linalg.lstsq(T, change, rcond=None)[0])
        scale = max(np.abs(data.qfrc_bias).max(), 1.0)
        assert np.abs(bias - T.T @ data.qfrc_bias).max() <= allowed * scale
        M = mass_matrix(model, data)
        none = residual(np.zeros(system.n))
        mass = np.stack([residual(unit) - none for unit in np.eye(system.n)], axis=1)
        # A free joint's and a ball's armature is MuJoCo's alone here: it is a term of its own.
        wide = [row + k for _, width, _, row in entries for k in range(width) if width > 1]
        M[wide, wide] -= model.dof_armature[wide]
        assert np.abs(mass - T.T @ M @ T).max() <= allowed * np.abs(M).max()
        at = built.model.lift.kinematics(Kinematics(own, rate, rate, 0.0, 0), built.theta)
        rows, checked = {entry.name: entry for entry in built.model.lift.rows.entries}, 0
        for number in range(1, model.nbody):
            name = mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_BODY, number)
            if f"r/{name}" in rows:  # a link has the frame of the file's body
                x = at.q[rows[f"r/{name}"].slice]
                assert np.abs(x[:3] - data.xpos[number]).max() < 1e-12
                turn = Rotation.from_rotvec(x[3:]).as_matrix()
                assert np.abs(turn - data.xmat[number].reshape(3, 3)).max() < 1e-12
                checked += 1
        assert checked


@there
@pytest.mark.slow
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("name", URDF)
def test_urdf(name, free):
    if free and name.startswith("ur_"):
        pytest.skip("its root is the world by its name")
    compare(ROBOTS / "example_robot_data_bsd3" / f"{name}.urdf", free, ("mesh", "limit"))


@there
@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_others(name):
    compare(ROBOTS / name, ignore=("mesh", "limit") if name.endswith(".urdf") else ())


@pytest.mark.slow
@pytest.mark.skipif(not ASSETS.exists(), reason="gymnasium is not installed")
@pytest.mark.parametrize("name", GYMNASIUM)
def test_gymnasium(name):
    compare(ASSETS / f"{name}.xml")


HARD = """<mujoco model="hard">
  <compiler angle="degree" eulerseq="zyx" inertiafromgeom="auto" autolimits="true" balanceinertia="true"/>
  <default><joint armature="0.01"/><geom density="700"/>
    <default class="arm"><joint damping="0.2" type="hinge" axis="0 1 1" range="-40 50"/></default></default>
  <worldbody>
    <frame pos="0.1 0.2 0.3" euler="20 -30 40">
      <body name="base" childclass="arm" euler="10 20 30">
        <inertial pos="0.01 0.02 0.03" mass="2" diaginertia="0.1 0.02 0.05" euler="30 10 20"/>
        <joint name="x" type="slide" axis="1 0 0" pos="0.3 0.1 0" range="-1 1"/>
        <joint name="turn" pos="0.1 -0.2 0.05" ref="15" springref="30" stiffness="3"/>
        <joint name="ball" type="ball" pos="0.05 0.05 0" stiffness="0.5" range="0 60" armature="0"/>
        <body name="arm" pos="0.2 0 -0.1" axisangle="1 2 3 70">
          <joint name="one" axis="0 0 2" pos="0 0 0.1" frictionloss="0.1"/>
          <joint name="two" axis="1 0 0" pos="0.1 0 0"/>
          <geom type="box" size="0.05 0.06 0.2" pos="0 0.02 -0.2" euler="5 6 7"/><geom size="0.07" pos="0 0 -0.4"/>
          <body name="welded" pos="0 0 -0.4" quat="0.5 0.5 -0.5 0.5"><geom type="ellipsoid" size="0.1 0.05 0.07"
            contype="0" conaffinity="0"/>
            <body name="tip" pos="0.1 0 0"><joint name="wrist" type="ball" armature="0" range="0 90"/>
              <geom type="cylinder" size="0.03 0.1"/></body>
          </body>
        </body>
      </body>
    </frame>
    <body name="loose" pos="1 0 1"><freejoint name="fly"/><geom type="capsule" size="0.05 0.2" euler="0 90 0"/>
      <body name="tail" pos="0 0.1 0"><joint name="wag" pos="0 -0.05 0"/><geom size="0.05" mass="0.3"/></body></body>
  </worldbody>
  <keyframe><key name="home" qpos="0 0 1 0 0 0 0 0 1 0 0 0 1 0 1 1 0 0 0 0"/></keyframe>
</mujoco>"""


def test_everything_that_mujoco_resolves(tmp_path):
    """Classes, frames, Euler sequences, several joints on a body, references, a second tree that flies."""
    compare(written(tmp_path, HARD, "hard.xml"))


def test_keyframes(tmp_path):
    """Joints start in the pose that the scene names: positions of all bodies are MuJoCo's."""
    path = written(tmp_path, HARD, "hard.xml")
    model = theirs(path, False)
    q = model.qpos0 + 0.1 * np.arange(model.nq)
    key = f'<key name="home" qpos="{" ".join(map(str, q))}"/>'
    path = written(tmp_path, HARD[: HARD.index("<key ")] + key + "</keyframe></mujoco>", "hard.xml")
    body = {"type": "articulated", "model": str(path), "keyframe": "home"}
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 1}, "bodies": {"r": body},
           "contact": {"between_bodies": False}}  # fmt: skip
    built = scene_from_dict(raw).build()
    own = built.model.initial.evaluate(built.theta)[0]
    at = built.model.lift.kinematics(Kinematics(own, own, own, 0.0, 0), built.theta)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(theirs(path, False), data, 0)
    mujoco.mj_forward(model, data)
    for name in ("base", "arm", "tip", "loose", "tail"):
        x = at.q[built.model.lift.rows[f"r/{name}"].slice]
        assert x[:3] == pytest.approx(data.body(name).xpos, abs=1e-12)
    body["keyframe"] = "away"
    with pytest.raises(InputError, match=r"no keyframe of this name .found 'away'; expected one of 'home'"):
        scene_from_dict(raw).build()


def test_what_a_urdf_may_say(tmp_path):
    """A chain of mimics, a continuous joint, turned inertials and merged links."""
    inertial = INERTIAL.replace("<mass", '<origin xyz="0.1 -0.2 0.3" rpy="0.3 0.2 -0.4"/><mass')
    turned = '<origin xyz="0.2 0.1 -0.3" rpy="0.5 -0.4 0.3"/>'
    wide = '<limit lower="-9" upper="9" effort="1" velocity="1"/>'
    path = written(
        tmp_path,
        urdf(
            link("base"), link("a", inertial), link("b", inertial), link("c", inertial), link("d", inertial), link("e"),
            joint("one", "base", "a", more=turned + wide.replace('"-9"', '"-2"').replace('"9"', '"2"')),
            joint("weld", "a", "b", "fixed", turned),
            joint("two", "b", "c", more=turned + wide + '<mimic joint="one" multiplier="-2" offset="0.3"/>'),
            joint("three", "c", "d", "prismatic", turned + wide + '<mimic joint="two" multiplier="0.5" offset="0.1"/>'),
            joint("four", "d", "e", "continuous", turned),
        ),
    )  # fmt: skip
    model = theirs(path, False)
    assert model.njnt == 4
    compare(path)
