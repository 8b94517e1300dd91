"""Free joints of MJCF files that have laws, and what is welded to mocap bodies."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.robot_files import written

from add.scene import scene_from_dict
from add.scene.robots import read_robot

mujoco = pytest.importorskip("mujoco", reason="mujoco is not installed: pip install 'add-sim[robots]'")

LAWS = """<mujoco><option timestep="1e-4" integrator="RK4" gravity="0 0 -2"/><worldbody>
  <body name="b" pos="0.1 0.2 0.3" quat="0.8 0.6 0 0">
    <joint name="f" type="free" damping="0.3" armature="0.2" stiffness="0.5"/>
    <geom type="box" size="0.1 0.2 0.3" mass="1.3" pos="0.05 0.02 0"/></body></worldbody>
  <keyframe><key name="k" qpos="0.3 0.1 0.2 0.36 0.48 0.8 0"/></keyframe></mujoco>"""
HANDLE = """<mujoco><worldbody><body name="hand"><joint name="j"/><geom size="0.1" pos="0.3 0 0"/></body>
  <body name="grip" mocap="true"/></worldbody>
  <equality><weld name="w" body1="hand" body2="grip"/></equality></mujoco>"""


def test_a_free_joint_with_laws_moves_as_in_mujoco(tmp_path):
    """Spring, damping and armature, from a keyframe: differences fall with the square of the step."""
    path = written(tmp_path, LAWS, "laws.xml")
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    while data.time < 0.2 - 1e-9:
        mujoco.mj_step(model, data)
    off = []
    for dt in (2e-3, 1e-3):
        body = {"type": "articulated", "model": str(path), "keyframe": "k"}
        raw = {"schema": "add-scene/1", "time": {"dt": dt, "duration": 0.2, "integrator": "bdf2"}}
        q = scene_from_dict(raw | {"gravity": [0, 0, -2], "bodies": {"bot": body}}).build().run().q[-1]
        turn = Rotation.from_quat([0.6, 0, 0, 0.8]) * Rotation.from_rotvec(q[3:6])
        away = turn * Rotation.from_quat(data.qpos[[4, 5, 6, 3]]).inv()
        off.append(np.linalg.norm([*(q[:3] - data.qpos[:3]), *away.as_rotvec()]))
    assert off[0] < 2e-5 and off[0] / off[1] == pytest.approx(4.0, abs=0.2)
    robot = read_robot(path, ignore=["free"])
    assert [joint.kind for joint in robot.joints] == ["free"] and any("laws of" in text for text in robot.ignored)


def test_a_weld_to_a_mocap_body_is_a_handle(tmp_path):
    """Nobody moves it here: it is left out, which scenes warn of."""
    robot = read_robot(written(tmp_path, HANDLE, "handle.xml"))
    assert not robot.loops and "to a mocap body" in robot.doubts[0]
    assert not read_robot(written(tmp_path, HANDLE, "handle.xml"), ignore=["mocap"]).doubts
