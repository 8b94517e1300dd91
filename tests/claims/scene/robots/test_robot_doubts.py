"""A scene says what it does not take from a robot's file."""

import pytest
from support.robot_files import joint, link, urdf, written

from add.scene import scene_from_dict
from add.scene.build.doubts import doubts

MJCF = """<mujoco><option gravity="0 -9.81 0"/><worldbody><geom name="floor" type="plane" size="1 1 1"/>
  <body name="arm"><joint name="turn"/><geom size="0.1"/></body></worldbody>
  <actuator><motor name="push" joint="turn"/><position name="hold" joint="turn" kp="5"/></actuator></mujoco>"""


def of(path, static_shapes=False, **more):
    body = {"type": "articulated", "model": str(path), "static_shapes": static_shapes}
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 20}, "bodies": {"bot": body}, **more}
    return [text for text in doubts(scene_from_dict(raw).build()) if text.startswith("bodies.bot.model")]


def test_of_an_mjcf(tmp_path):
    pytest.importorskip("mujoco", reason="mujoco is not installed: pip install 'add-sim[robots]'")
    path = written(tmp_path, MJCF, "bot.xml")
    found = of(path)
    assert len(found) == 3
    assert "gravity is (0, -9.81, 0) there and (0, 0, -9.81) m/s^2 in the scene" in found[0]
    assert "'floor' of the file stands still and touches nothing" in found[1]
    assert "not simulated: 'push', 'hold'; 'hold' would act without control, too; write \"actuators\": true" in found[2]
    rubbing = "shapes of the file have friction 1, contact in the scene 0.4, which counts"
    assert rubbing in of(path, static_shapes=True)[-1] and rubbing not in found[2]  # nothing can touch there
    assert len(of(path, gravity=[0, -9.81, 0], contact={"friction": 1.0})) == 2


def test_of_meshes_that_stand_still(tmp_path):
    """`static_shapes` does not take them: only obstacles are named as the way."""
    pytest.importorskip("mujoco", reason="mujoco is not installed: pip install 'add-sim[robots]'")
    asset = '<asset><mesh name="rock" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset><worldbody>'
    rock = MJCF.replace("<worldbody>", asset).replace('type="plane" size="1 1 1"', 'type="mesh" mesh="rock"')
    found = of(written(tmp_path, rock, "bot.xml"))
    assert "stands still and touches nothing: write meshes as `obstacles`" in found[1]


def test_of_what_a_scene_takes(tmp_path):
    """Actuators act and the floor is an obstacle when asked for: nothing is left in doubt."""
    pytest.importorskip("mujoco", reason="mujoco is not installed: pip install 'add-sim[robots]'")
    path = written(tmp_path, MJCF, "bot.xml")
    body = {"type": "articulated", "model": str(path), "actuators": True, "static_shapes": True}
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 20}, "bodies": {"bot": body},
           "gravity": [0, -9.81, 0], "contact": {"friction": 1.0}}  # fmt: skip
    scene = scene_from_dict(raw)
    assert list(scene.obstacles) == ["bot floor"] and scene.obstacles["bot floor"].normal == (0.0, 0.0, 1.0)
    assert not [text for text in doubts(scene.build()) if text.startswith("bodies.bot.model")]


def test_starts_that_loops_move(tmp_path):
    link = {"mass": 1.0, "inertia": [0.1, 0.1, 0.1, 0, 0, 0]}
    body = {"type": "articulated", "links": {"a": link, "b": link},
            "joints": {"a": {"value": 0.3}, "b": {"parent": "a"}},
            "loops": {"geared": {"type": "joints", "joint": "b", "other": "a", "coefficients": [0, 2]}}}  # fmt: skip
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 20}, "bodies": {"bot": body}}
    (found,) = doubts(scene_from_dict(raw).build())
    assert "bodies.bot.loops: joints start where loops close: 'a' at 0.06, 'b' at 0.12" in found


def test_of_a_urdf(tmp_path):
    """Nothing is in doubt: no gravity, no actuators, no shapes."""
    assert not of(written(tmp_path, urdf(link("base"), link("arm"), joint("turn", "base", "arm"))))
