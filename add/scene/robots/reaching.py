"""Joint values that bring a point of a robot's link to a place: where a search for a motion begins."""

from collections.abc import Mapping

import numpy as np
from scipy.spatial.transform import Rotation

from add.scene.robots.model import Robot, RobotJoint
from add.typing import FloatArray

#: Weight of a joint's way beside the distance of the point [m/rad, m/m], and distance at which a place is reached [m].
_WAY, REACHED = 0.01, 2e-3
#: Share of its way by which a joint stays off its stops; places from which the search begins, beside the start.
_OFF, _STARTS = 0.02, 12


def reaching(
    robot: Robot, link: str, point: FloatArray, target: FloatArray, start: Mapping[str, float]
) -> dict[str, float]:
    """Return the values of the joints that lead to a link, by name, at which its point is next to a target.

    Of several, those that are nearest to the start. Joints that mimic one of them follow; the base stands still.

    Parameters
    ----------
    robot : Robot
    link : name of a link that a joint carries
    point : (3,) in the link's frame [m]
    target : (3,) in the frame that the robot's base stands in [m]
    start : name -> value of the joints [rad, m]
    """
    from scipy.optimize import least_squares

    above = {joint.child: joint for joint in robot.joints}
    chain: list[RobotJoint] = []
    while link in above:
        chain.insert(0, above[link])
        link = above[link].parent
    own = [joint for joint in chain if joint.kind in ("hinge", "slide") and joint.mimic is None]
    if not own:
        return {}
    number = {joint.name: k for k, joint in enumerate(own)}
    first = np.array([np.clip(start[joint.name], joint.lower, joint.upper) for joint in own])

    def place(q: FloatArray) -> FloatArray:
        out = np.asarray(point, dtype=float)
        for joint in reversed(chain):
            name, factor, offset = joint.mimic or (joint.name, 1.0, 0.0)
            value = factor * (q[number[name]] if name in number else start.get(name, 0.0)) + offset
            if joint.kind == "slide":
                out = out + value * joint.axis
            elif joint.kind == "hinge":
                out = Rotation.from_rotvec(value * joint.axis).apply(out) + joint.pitch * value * joint.axis
            out = joint.rotation @ out + joint.position
        return out

    def misses(q: FloatArray) -> FloatArray:
        return np.concatenate([place(q) - target, _WAY * (q - first)])

    # A joint without stops turns by half a turn either way, at the most.
    limits = np.array([(joint.lower, joint.upper) for joint in own]).T
    lower, upper = np.maximum(limits[0], first - np.pi), np.minimum(limits[1], first + np.pi)
    off = _OFF * (upper - lower)
    low, high = lower + off, upper - off
    begin = [np.clip(first, low, high), *np.random.default_rng(0).uniform(low, high, (_STARTS, len(own)))]
    ends = [least_squares(misses, q, bounds=(low - 0.1 * off, high + 0.1 * off)).x for q in begin]
    found = min(ends, key=lambda q: (max(float(np.linalg.norm(place(q) - target)), REACHED), np.abs(q - first).max()))
    return {joint.name: float(value) for joint, value in zip(own, found, strict=True)}
