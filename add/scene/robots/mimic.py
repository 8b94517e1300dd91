"""Mimic joints: chains resolved to joints that mimic none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from add.scene.robots.model import RobotJoint
from add.scene.robots.xml_file import Source


def resolved(source: Source, joints: Sequence[RobotJoint], types: Mapping[str, str]) -> tuple[RobotJoint, ...]:
    """Return the joints with q = factor q_i + offset of a joint i that mimics none.

    A torque on q is factor times as large on q_i, and q moves factor times as fast: joint i has the narrowest of its
    own effort and velocity and of |factor| effort and velocity / |factor| of the joints that mimic it. Laws and limits
    of those are carried over where a scene is built, since it may say them otherwise.

    Parameters
    ----------
    source : of the errors
    joints : those that move
    types : of all joints of the file, as it says them
    """
    moving = {joint.name: joint for joint in joints}
    found = {joint.name: joint if joint.mimic is None else _resolved(source, joint, moving, types) for joint in joints}
    for joint in tuple(found.values()):
        if joint.mimic is None:
            continue
        leader, factor = found[joint.mimic[0]], abs(joint.mimic[1])
        ends = sorted((limit - joint.mimic[2]) / joint.mimic[1] for limit in (joint.lower, joint.upper))
        if leader.lower < leader.upper and not max(leader.lower, ends[0]) < min(leader.upper, ends[1]):
            text = f"its limits leave '{leader.name}', which it mimics, no way to go: they are left out"
            source.doubt("limit", source.place("joint", joint.name), text)
            found[joint.name] = replace(joint, lower=-np.inf, upper=np.inf)
        effort = factor * joint.effort
        if joint.effort == 0.0:
            effort = np.inf
            source.note(source.place("joint", joint.name), "effort 0 of a mimic joint, which has no drive of its own")
        found[leader.name] = replace(
            leader, effort=min(leader.effort, effort), velocity=min(leader.velocity, joint.velocity / factor)
        )
    return tuple(found.values())


def _resolved(
    source: Source, joint: RobotJoint, moving: Mapping[str, RobotJoint], types: Mapping[str, str]
) -> RobotJoint:
    place = f"{source.place('joint', joint.name)}: <mimic>"
    factor, offset = 1.0, 0.0
    way, at = [joint.name], joint
    while at.mimic is not None:
        name, step, shift = at.mimic
        if name in way:
            source.fail(place, "joints mimic each other in a circle", " -> ".join([*way, name]), "a joint of its own")
        if name not in types:
            source.fail(place, "no such joint", f"'{name}'", "the name of a joint that moves")
        found = f"'{name}', {types[name]}"
        if types[name] == "fixed":
            source.fail(place, "mimics a joint that does not move", found, "a joint that moves")
        if name not in moving or moving[name].kind not in ("hinge", "slide"):
            several = "mimics a joint with several coordinates"
            source.fail(place, several, found, "a revolute, continuous or prismatic joint")
        if step == 0.0:
            source.fail(place, "a multiplier of zero fixes the joint", 0, 'another number, or type "fixed"')
        factor, offset = factor * step, offset + factor * shift
        way.append(name)
        at = moving[name]
    return replace(joint, mimic=(at.name, factor, offset))
