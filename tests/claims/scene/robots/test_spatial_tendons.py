"""Spatial tendons, muscles, filtered actuators and those on places, beside MuJoCo and finite differences."""

import numpy as np
import pytest
from support.robot_files import written

from add.compiled.available import OWN_KINDS
from add.compiled.pack import pack
from add.equations.kinematics import Kinematics
from add.scene import scene_from_dict
from add.scene.build.file_doubts import robot_doubts
from add.scene.robots import read_robot
from add.terms import OnPaths, Wrench
from add.testing import check_term

mujoco = pytest.importorskip("mujoco", reason="mujoco is not installed: pip install 'add-sim[robots]'")

FILE = """<mujoco>
  <compiler angle="radian" autolimits="true"/>
  <option gravity="0 0 -9.81" timestep="2e-5" integrator="RK4"><flag contact="disable"/></option>
  <default><joint damping="0.05" armature="0.01"/><geom type="capsule" size="0.02"/></default>
  <worldbody>
    <site name="w" pos="0.1 0.05 0.1"/><site name="v" pos="-0.1 0.05 0.1"/>
    <geom name="drum" type="cylinder" size="0.05 0.1" pos="0.02 0 -0.02" euler="1.5 0.1 0"/>
    <site name="s" pos="0.2 0 0"/>
    <body name="a"><joint name="a" axis="0 1 0"/><joint name="t" axis="0 0 1" pos="0.01 0 0"/>
      <geom fromto="0 0 0 0 0 -0.3"/><site name="a0" pos="0.06 0.02 -0.12"/><site name="a1" pos="-0.05 0 -0.1"/>
      <geom name="knee" type="sphere" size="0.05" pos="0 0 -0.3"/><site name="back" pos="-0.1 0 -0.3"/>
      <body name="b" pos="0 0 -0.3"><joint name="b" axis="0 1 0"/><joint name="c" type="slide" axis="1 0 0"/>
        <geom fromto="0 0 0 0 0 -0.3"/><site name="b0" pos="0.05 0.01 -0.1" euler="0.3 0.2 -0.5"/>
        <site name="b1" pos="-0.05 -0.02 -0.15"/>
      </body></body>
  </worldbody>
  <tendon>
    <spatial name="front" stiffness="50" damping="0.3" springlength="0.3">
      <site site="w"/><geom geom="drum" sidesite="s"/><site site="a0"/><geom geom="knee"/><site site="b0"/></spatial>
    <spatial name="behind" stiffness="20" springlength="0.1 0.2">
      <site site="v"/><geom geom="drum"/><site site="a1"/><geom geom="knee" sidesite="back"/><site site="b1"/>
      <pulley divisor="2"/><site site="a1"/><site site="b1"/></spatial>
  </tendon>
  <actuator>
    <muscle name="m" tendon="front" ctrlrange="0 1" lengthrange="0.2 0.7" force="30" timeconst="0.02 0.05"/>
    <general name="lag" tendon="behind" gear="2" dyntype="filter" dynprm="0.05" gainprm="-4" ctrlrange="-1 1"/>
    <general name="sum" joint="b" dyntype="integrator" gainprm="5" biastype="affine" biasprm="0 -5 -0.1"
      actlimited="true" actrange="-0.3 0.02"/>
    <general name="exact" joint="a" dyntype="filterexact" dynprm="0.03" gainprm="0.5"/>
    <general name="jet" site="b0" gear="1 -2 0.5 0.1 0.2 -0.3" gainprm="1.5" biastype="affine" biasprm="0.2"/>
  </actuator>
</mujoco>"""
CONTROLS = {"m": 0.6, "lag": -1.5, "sum": 0.8, "exact": 0.4, "jet": 0.7}


def scene(path, dt, steps, **more):
    drives = {name: {"actuator": name, "input": u} for name, u in CONTROLS.items()} | more
    body = {"type": "articulated", "model": str(path), "drives": drives, "joints": {"a": {"value": 0.2}}}
    time = {"dt": dt, "steps": steps, "integrator": "bdf2"}
    return {"schema": "add-scene/1", "time": time, "bodies": {"bot": body}}


@pytest.fixture
def path(tmp_path):
    return written(tmp_path, FILE, "tendons.xml")


def test_accelerations_are_those_of_mujoco(path, rng):
    """At random states, wrapped and lifted off, on both sides, with what the activations are at rest."""
    built = scene_from_dict(scene(path, 0.01, 1)).build()
    model = mujoco.MjModel.from_xml_path(str(path))
    data, wrapped = mujoco.MjData(model), set()
    for _ in range(30):
        q, v = rng.normal(size=(2, 4)) * [[0.6, 0.4, 0.9, 0.03], [1, 1, 1, 0.2]]
        data.qpos[:], data.qvel[:] = q, v
        data.ctrl[:], data.act[:] = list(CONTROLS.values()), [0.6, -1.0, 0.0, 0.4]
        mujoco.mj_forward(model, data)
        wrapped |= {(k, int(n)) for k, n in enumerate(data.ten_wrapnum)}
        force = built.simulation.dynamics(q, v, data.qacc).residual
        assert force == pytest.approx(np.zeros(4), abs=1e-11 * np.abs(data.qfrc_actuator).max())
    assert len(wrapped) >= 5, "each tendon meets none, one or both of its shapes"


def test_motion_is_that_of_mujoco(path):
    """Activations, which start at what excites them, beside it: differences fall with nearly the square of the step."""
    model = mujoco.MjModel.from_xml_path(str(path))
    data, off = mujoco.MjData(model), []
    data.qpos[0] = 0.2
    data.ctrl[:], data.act[:] = list(CONTROLS.values()), [0.6, -1.0, 0.0, 0.4]
    data.ctrl[[0, 3]] = 0.2, -0.3
    while data.time < 0.15 - 1e-9:
        mujoco.mj_step(model, data)
    table = {"type": "table", "times": [0, 1e-9, 0.2]}
    for dt in (2e-3, 1e-3):
        raw = scene(path, dt, round(0.15 / dt), m={"actuator": "m", "input": {"signal": "m"}},
                    exact={"actuator": "exact", "input": {"signal": "e"}})  # fmt: skip
        raw["signals"] = {"m": table | {"values": [0.6, 0.2, 0.2]}, "e": table | {"values": [0.4, -0.3, -0.3]}}
        off.append(np.abs(scene_from_dict(raw).build().run().q[-1] - data.qpos).max())
    assert off[0] < 2e-4 and off[0] / off[1] > 3.0


def test_derivatives_of_paths(path, rng):
    """Springs, resistance and actuators over paths, by coordinates, rates and every number."""
    built = scene_from_dict(scene(path, 0.01, 1)).build()
    layout, kinds, names = built.model.system.parameters, set(), set()
    for term in built.model.system.terms:
        inner = getattr(term, "inner", term)
        if not isinstance(inner, OnPaths | Wrench):
            continue
        q, v = rng.normal(size=(2, 4)) * [[0.6, 0.4, 0.9, 0.03], [1, 1, 1, 0.2]]
        found = check_term(term, Kinematics(q, v, np.zeros(4), 0.0, 0), built.theta, rng=rng, layout=layout)
        names |= {layout.describe(i).split(".")[-1].split("[")[0] for i in found.parameters}
        kinds |= {type(inner).__name__, type(inner.law).__name__}
    assert kinds == {"JointSprings", "JointResistance", "JointLimits", "LengthActuator", "OnPaths", "Wrench"}
    assert names >= {"stiffness", "rest", "damping", "activation", "optimal", "slack", "g0", "position"}


def test_gradient_of_a_run(path):
    """By controls behind every kind of activation, and by numbers of tendons; one is at a limit of its activation."""
    raw = scene(path, 0.01, 12)
    raw["markers"] = {"tip": {"body": "bot/b", "point": [0, 0, -0.3]}}
    raw["objective"] = [{"type": "point", "marker": "tip", "target": [0.1, 0.1, -0.5], "time": "end"}]
    raw["parameters"] = [
        *({"path": f"bodies.bot.drives.{name}.input"} for name in ("m", "sum", "exact", "jet")),
        *({"path": f"bodies.bot.tendons.front.{key}"} for key in ("stiffness", "damping", "rest")),
    ]
    problem = scene_from_dict(raw).inverse_problem()
    _, gradient = problem.value_and_grad(problem.x0)
    h, differences = 1e-5, []
    for unit in np.eye(problem.x0.size):
        ends = [problem.value_and_grad(problem.x0 + sign * h * unit)[0] for sign in (1, -1)]
        differences.append((ends[0] - ends[1]) / (2 * h))
    assert gradient == pytest.approx(differences, rel=1e-6, abs=1e-6 * np.abs(gradient).max())
    assert np.abs(gradient).min() > 0.0


def test_compiled_steps_know_paths_and_places(path):
    """`add warm` compiles their families with all others of this package."""
    found = {kind.name for kind in pack(scene_from_dict(scene(path, 0.01, 1)).build().model.system).kinds}
    assert {"laws_of_paths", "drive_of_path", "wrench", "drive_of_length"} <= found
    assert found <= {kind.name for kind in OWN_KINDS}


def test_what_is_told_of(tmp_path):
    """A tendon on the inside of a geom, and actuators that are not read, are doubts."""
    text = FILE.replace('site name="back" pos="-0.1 0 -0.3"', 'site name="back" pos="-0.01 0 -0.3"')
    text = text.replace("</actuator>", '<adhesion name="glue" body="b" ctrlrange="0 1"/></actuator>')
    robot = read_robot(written(tmp_path, text, "inside.xml"))
    assert "on the inside of a sphere" in robot.doubts[0] and "'glue': its transmission body" in robot.doubts[1]
    raw = scene(tmp_path / "inside.xml", 0.01, 1)
    (found,) = [line for line in robot_doubts(scene_from_dict(raw).build()) if "inside" in line]
    assert "glue" in found
    assert not read_robot(tmp_path / "inside.xml", ignore=["tendon"]).tendons
