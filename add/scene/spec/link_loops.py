"""Loops and tendons that a scene gives to an articulated body, as parts of a robot."""

from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

from add.errors import InputError
from add.scene.read.paths import require_known
from add.scene.robots.model import WORLD, Robot, RobotLoop, RobotTendon
from add.scene.spec.articulated import ArticulatedBodySpec
from add.scene.spec.tree_parts import JointLoopSpec, LinkLoopSpec, LoopEndSpec, TendonSpec
from add.typing import FloatArray


def with_parts(robot: Robot, body: ArticulatedBodySpec, at: str) -> Robot:
    """Return a robot with the loops and tendons that the scene gives it; those of its file come first.

    Raises
    ------
    InputError
        For names that are not there, or there already.
    """
    loops = list(robot.loops)
    for name, item in body.loops.items():
        place = f"{at}.loops.{name}"
        if any(loop.name == name for loop in robot.loops):
            raise InputError("the robot's file has a loop of this name", place=place)
        loops.append(_joint_loop(robot, name, item, place) if isinstance(item, JointLoopSpec) else _link_loop(
            robot, name, item, place
        ))  # fmt: skip
    tendons = {tendon.name: tendon for tendon in robot.tendons}
    for name, said in body.tendons.items():
        tendons[name] = _tendon(robot, name, said, tendons.get(name), f"{at}.tendons.{name}")
    return replace(robot, loops=tuple(loops), tendons=tuple(tendons.values()))


def _link_loop(robot: Robot, name: str, item: LinkLoopSpec, place: str) -> RobotLoop:
    ends = [_end(robot, end, f"{place}.{key}.link") for key, end in (("a", item.a), ("b", item.b))]
    return RobotLoop(
        name,
        item.type,
        tuple(link for link, _, _ in ends),
        np.stack([position for _, position, _ in ends]),
        np.stack([rotation for _, _, rotation in ends]),
        length=item.length or 0.0,
    )


def _end(robot: Robot, end: LoopEndSpec, place: str) -> tuple[str, FloatArray, FloatArray]:
    w, x, y, z = end.orientation
    position, rotation = np.array(end.position), Rotation.from_quat([x, y, z, w]).as_matrix()
    if end.link is None:
        return WORLD, position, rotation
    require_known("link", end.link, [link.name for link in robot.links] + list(robot.frames), place)
    link, origin, turn = robot.place(end.link)
    return link, origin + turn @ position, turn @ rotation


def _joint_loop(robot: Robot, name: str, item: JointLoopSpec, place: str) -> RobotLoop:
    known = [joint.name for joint in robot.joints]
    names = [item.joint] if item.other is None else [item.joint, item.other]
    for key, joint in zip(("joint", "other"), names, strict=False):
        require_known("joint", joint, known, f"{place}.{key}")
    # A robot's polynomials count from where its joints start, those of a scene from zero.
    start = {joint.name: joint.start for joint in robot.joints}
    polynomial = np.polynomial.Polynomial(item.coefficients)
    if item.other is not None:
        polynomial = polynomial(np.polynomial.Polynomial([start[item.other], 1.0]))
    coefficients = np.zeros(5)
    coefficients[: polynomial.coef.size] = polynomial.coef
    coefficients[0] -= start[item.joint]
    return RobotLoop(name, "joints", joints=tuple(names), coefficients=tuple(coefficients.tolist()))


def _tendon(robot: Robot, name: str, said: TendonSpec, own: RobotTendon | None, place: str) -> RobotTendon:
    """Return the file's tendon with what the scene says otherwise, or the scene's."""
    made = own or RobotTendon(name, ())
    if said.joints is not None:
        for joint in said.joints:
            require_known("joint", joint, [item.name for item in robot.joints], f"{place}.joints")
        made = replace(made, joints=tuple(said.joints.items()), segments=())
    elif own is None:
        raise InputError("the robot's file has no tendon of this name: give its joints", place=place)
    if said.rest is not None:
        made = replace(made, rest=(said.rest, said.rest))
    for key in ("stiffness", "damping", "dry_friction", "lower", "upper"):
        value = getattr(said, key)
        if value is not None:
            made = replace(made, **{key: value})
    return made
