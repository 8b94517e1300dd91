"""Keyframes of a compiled MuJoCo model as poses of joints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from add.scene.robots.mjcf_joints import parts_of_free
from add.scene.robots.mjcf_model import Names
from add.scene.robots.model import RobotJoint
from add.scene.robots.turns import from_quaternion
from add.typing import FloatArray


def read_keyframes(
    mujoco: Any, model: Any, names: Names, joints: Sequence[RobotJoint], turn: FloatArray
) -> dict[str, dict[str, FloatArray]]:
    """Return keyframe -> joint -> coordinates; joints that were replaced by a base of another kind are left out.

    Parameters
    ----------
    mujoco, model, names : of the file
    joints : of the robot
    turn : (3, 3) from the file's axes to the world's
    """
    kinds = {joint.name: joint.kind for joint in joints}
    out: dict[str, dict[str, FloatArray]] = {}
    for number in range(model.nkey):
        q = np.array(model.key_qpos[number], dtype=np.float64)
        pose: dict[str, FloatArray] = {}
        for joint in range(model.njnt):
            name, at = names.of("joint", joint), int(model.jnt_qposadr[joint])
            kind = kinds.get(name)
            if kind in ("hinge", "slide"):
                pose[name] = q[at : at + 1]
            elif kind == "ball":
                pose[name] = Rotation.from_matrix(from_quaternion(q[at : at + 4])).as_rotvec()
            elif kind is None and model.jnt_type[joint] == 0 and (parts := parts_of_free(names, name))[3] in kinds:
                back = from_quaternion(np.array(model.body_quat[model.jnt_bodyid[joint]])).T
                turned = Rotation.from_matrix(back @ from_quaternion(q[at + 3 : at + 7])).as_rotvec()
                pose |= dict(zip(parts, [*q[at : at + 3, None], turned], strict=True))
            elif kind == "free":
                rotation = turn @ from_quaternion(q[at + 3 : at + 7])
                pose[name] = np.concatenate([turn @ q[at : at + 3], Rotation.from_matrix(rotation).as_rotvec()])
        label = mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_KEY, number) or f"key{number}"
        out[str(label)] = pose
    return out
