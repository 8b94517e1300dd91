"""A scene says what it does not take from a robot's file."""

import pytest
from support.robot_files import joint, link, urdf, written

from add.scene import scene_from_dict
from add.scene.build.doubts import doubts

MJCF = """<mujoco><option gravity="0 -9.81 0"/><worldbody><geom name="floor" type="plane" size="1 1 1"/>
  <body name="arm"><joint name="turn"/><geom size="0.1"/></body></worldbody>
  <actuator><motor name="push" joint="turn"/><position name="hold" joint="turn" kp="5"/></actuator></mujoco>"""


def of(path, **more):
    body = {"type": "articulated", "model": str(path)}
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 20}, "bodies": {"bot": body}, **more}
    return [text for text in doubts(scene_from_dict(raw).build()) if text.startswith("bodies.bot.model")]


def test_of_an_mjcf(tmp_path):
    pytest.importorskip("mujoco", reason="mujoco is not installed: pip install 'add-sim[robots]'")
    path = written(tmp_path, MJCF, "bot.xml")
    found = of(path)
    assert len(found) == 3
    assert "gravity is (0, -9.81, 0) there and (0, 0, -9.81) m/s^2 in the scene" in found[0]
    assert "'floor' of the file stand still and touch nothing" in found[1]
    assert "not simulated: 'push', 'hold'; 'hold' would act without control, too; write `drives`" in found[2]
    assert len(of(path, gravity=[0, -9.81, 0])) == 2


def test_of_a_urdf(tmp_path):
    """Nothing is in doubt: no gravity, no actuators, no shapes."""
    assert not of(written(tmp_path, urdf(link("base"), link("arm"), joint("turn", "base", "arm"))))
