"""Joints of a URDF; a planar joint becomes two slides and a hinge, chains of mimics end at joints that mimic none."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from add.scene.robots.inertia import plane_axes
from add.scene.robots.model import RobotJoint, RobotLink
from add.scene.robots.shapes import read_origin, unit_axis
from add.scene.robots.xml_file import Source, XmlNode, doubt_motion, read_name

_KINDS = {
    "revolute": "hinge",
    "continuous": "hinge",
    "prismatic": "slide",
    "fixed": "fixed",
    "floating": "free",
    "spherical": "ball",
    "planar": "planar",
}
_TAGS = {"origin", "parent", "child", "axis", "limit", "dynamics", "mimic", "safety_controller"}


def read_joints(source: Source, root: XmlNode, links: dict[str, RobotLink]) -> tuple[list[RobotJoint], dict[str, str]]:
    """Return the joints in the order of the file, and the types that it says by name.

    Composite ones add their massless links to `links`.
    """
    joints: list[RobotJoint] = []
    parents: dict[str, str] = {}
    types: dict[str, str] = {}
    for node in root.all("joint"):
        joint = _joint(source, node, links)
        place = source.place("joint", joint.name)
        if joint.child in parents:
            source.fail(
                place, f"link '{joint.child}' has two parents", f"joint '{parents[joint.child]}' as well", "one joint"
            )
        parents[joint.child] = joint.name
        types[joint.name] = node.attributes["type"]
        joints.append(joint)
    split: list[RobotJoint] = []
    for joint in joints:
        split += _planar(source, joint, links, types) if joint.kind == "planar" else [joint]
    return split, types


def standing(root: XmlNode) -> frozenset[str]:
    """Return the links that stand still where the base does: roots, and what fixed joints carry from them on."""
    ends: list[tuple[str, str, str]] = []
    for node in root.all("joint"):
        above, below_it = ([item.attributes.get("link", "") for item in node.all(tag)] for tag in ("parent", "child"))
        if above and below_it:
            ends.append((node.attributes.get("type", ""), above[0], below_it[0]))
    carried = {child for _, _, child in ends}
    links = {node.attributes.get("name", "") for node in root.all("link")} - carried
    below: dict[str, list[str]] = {}
    for kind, parent, child in ends:
        if kind == "fixed":
            below.setdefault(parent, []).append(child)
    waiting = list(links)
    while waiting:
        more = set(below.get(waiting.pop(), [])) - links
        links |= more
        waiting += more
    return frozenset(links)


def _joint(source: Source, node: XmlNode, links: Mapping[str, RobotLink]) -> RobotJoint:
    name = read_name(source, node, "joint")
    place = source.place("joint", name)
    kind = _KINDS.get(node.attributes.get("type", ""))
    if kind is None:
        found = node.attributes.get("type")
        source.fail(
            place,
            "unknown type of joint",
            f"'{found}'" if found is not None else "none",
            ", ".join(_KINDS) + "; others are chains of these through links without <inertial>",
        )
    ends = {tag: _end(source, node, tag, place, links) for tag in ("parent", "child")}
    if ends["parent"] == ends["child"]:
        source.fail(place, "joins a link with itself", f"'{ends['child']}'", "two links")
    position, rotation = read_origin(source, node, place)
    has_axis = node.attributes["type"] in ("revolute", "continuous", "prismatic", "planar")
    axis = unit_axis(source, node, place) if has_axis else np.array([1.0, 0.0, 0.0])
    joint = RobotJoint(name, kind, ends["parent"], ends["child"], position, rotation, axis)
    for child in node.children:
        if child.tag not in _TAGS:
            doubt_motion(source, child, place)
            source.note(place, f"<{child.tag}>")
    for tag in ("limit", "dynamics", "mimic", "safety_controller"):
        if len(node.all(tag)) > 1:
            source.fail(place, f"several <{tag}>", len(node.all(tag)), "one")
    joint = _with_limits(source, node, joint, place)
    joint = _with_dynamics(source, node, joint, place)
    return _with_mimic(source, node, joint, place)


def _end(source: Source, node: XmlNode, tag: str, place: str, links: Mapping[str, RobotLink]) -> str:
    ends = node.all(tag)
    if len(ends) != 1 or "link" not in ends[0].attributes:
        source.fail(place, f"does not have one <{tag} link=...>", len(ends), "the name of a link")
    name = ends[0].attributes["link"]
    if name not in links:
        source.fail(f"{place}: <{tag}>", "no such link", f"'{name}'", "the name of a <link>")
    return name


def _with_limits(source: Source, node: XmlNode, joint: RobotJoint, place: str) -> RobotJoint:
    """Read <limit> and <safety_controller>; of continuous joints only effort and velocity count."""
    limits = node.all("limit")
    if limits:
        most = {}
        for name in ("effort", "velocity"):
            if limits[0].attributes.get(name, "").strip().lower() in ("inf", "+inf", "infinity", "+infinity"):
                source.note(f"{place}: <limit>", f"{name} without end: read as none")
                most[name] = np.inf
                continue
            most[name] = source.number(limits[0], name, place, np.inf)
            if most[name] < 0.0:  # -1 stands for none in some files
                source.note(f"{place}: <limit>", f"{name} {most[name]:g}: a negative one is none")
                most[name] = np.inf
        joint = replace(joint, effort=most["effort"], velocity=most["velocity"])
    kind = node.attributes["type"]
    if kind in ("revolute", "prismatic"):
        joint = _with_range(source, limits, joint, place)
    elif limits and any(source.number(limits[0], name, place, 0.0) for name in ("lower", "upper")):
        source.note(f"{place}: <limit>", f"lower and upper, which a {kind} joint does not have")
    safety = node.all("safety_controller")
    if not safety:
        return joint
    names = ("soft_lower_limit", "soft_upper_limit", "k_position", "k_velocity")
    numbers = [source.number(safety[0], name, place, None if name == "k_velocity" else 0.0) for name in names]
    return replace(joint, safety=(numbers[0], numbers[1], numbers[2], numbers[3]))


def _with_range(source: Source, limits: list[XmlNode], joint: RobotJoint, place: str) -> RobotJoint:
    free = 'type "continuous"' if joint.kind == "hinge" else "limits far away"
    if not limits:
        source.doubt("limit", place, f"has no <limit>: read as {free}")
        return joint
    lower, upper = (source.number(limits[0], name, place, 0.0) for name in ("lower", "upper"))
    if lower > upper:
        # PyBullet's own way to say that a joint has none.
        source.doubt("limit", f"{place}: <limit>", f"lower = {lower:g} exceeds upper = {upper:g}: read as {free}")
        return joint
    if lower == upper == 0.0:
        # MuJoCo and PyBullet take zeros for none; a joint that is to stand still has a type of its own.
        source.note(f"{place}: <limit>", f"lower = upper = 0: read as {free}, as most programs do")
        return joint
    if lower == upper:
        text = f"lower = upper = {lower:g} locks the joint for some readers and frees it for others: read as {free}"
        source.doubt("limit", f"{place}: <limit>", text)
        return joint
    return replace(joint, lower=lower, upper=upper)


def _with_dynamics(source: Source, node: XmlNode, joint: RobotJoint, place: str) -> RobotJoint:
    dynamics = node.all("dynamics")
    if not dynamics:
        return joint
    damping, friction = (source.number(dynamics[0], name, place, 0.0) for name in ("damping", "friction"))
    source.not_negative(f"{place}: <dynamics>", damping=damping, friction=friction)
    if joint.kind in ("free", "planar") and (damping or friction):
        text = f"damping or friction of a {node.attributes['type']} joint have no unit, and are left out"
        source.doubt("dynamics", place, text)
        return joint
    return replace(joint, damping=damping, dry_friction=friction)


def _with_mimic(source: Source, node: XmlNode, joint: RobotJoint, place: str) -> RobotJoint:
    mimics = node.all("mimic")
    if not mimics:
        return joint
    source.require_known(mimics[0], place, ("joint", "multiplier", "offset"))
    other = mimics[0].attributes.get("joint")
    if not other:
        source.fail(place, "a <mimic> without a joint", expected="<mimic joint=...>")
    factor = source.number(mimics[0], "multiplier", place, 1.0)
    if joint.kind == "fixed":
        source.note(f"{place}: <mimic>", "a fixed joint does not move")
        return joint
    if joint.kind not in ("hinge", "slide"):
        kind = node.attributes["type"]
        source.fail(
            f"{place}: <mimic>", f"a {kind} joint mimics no other", expected="a revolute, continuous or prismatic joint"
        )
    return replace(joint, mimic=(other, factor, source.number(mimics[0], "offset", place, 0.0)))


def _planar(source: Source, joint: RobotJoint, links: dict[str, RobotLink], names: Collection[str]) -> list[RobotJoint]:
    """Return two slides in the plane and a hinge about its normal, through two massless links."""
    place = source.place("joint", joint.name)
    u, w = plane_axes(joint.axis)
    parts, parent = [], joint.parent
    for part, axis in (("x", u), ("y", w), ("turn", joint.axis)):
        name = f"{joint.name}_{part}"
        child = joint.child if part == "turn" else name
        if name in names or (part != "turn" and name in links):
            source.fail(place, "a planar joint needs names for its parts", f"'{name}' is taken", "other names")
        if part != "turn":
            links[name] = RobotLink(name)
        first = part == "x"
        parts.append(
            replace(
                joint,
                name=name,
                kind="hinge" if part == "turn" else "slide",
                parent=parent,
                child=child,
                position=joint.position if first else np.zeros(3),
                rotation=joint.rotation if first else np.eye(3),
                axis=axis,
            )
        )
        parent = child
    return parts


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
    named = {joint.name: joint if joint.mimic is None else _resolved(source, joint, moving, types) for joint in joints}
    for joint in tuple(named.values()):
        if joint.mimic is None:
            continue
        leader, factor = named[joint.mimic[0]], abs(joint.mimic[1])
        ends = sorted((limit - joint.mimic[2]) / joint.mimic[1] for limit in (joint.lower, joint.upper))
        if leader.lower < leader.upper and not max(leader.lower, ends[0]) < min(leader.upper, ends[1]):
            text = f"its limits leave '{leader.name}', which it mimics, no way to go: they are left out"
            source.doubt("limit", source.place("joint", joint.name), text)
            named[joint.name] = replace(joint, lower=-np.inf, upper=np.inf)
        effort = factor * joint.effort
        if joint.effort == 0.0:
            effort = np.inf
            source.note(source.place("joint", joint.name), "effort 0 of a mimic joint, which has no drive of its own")
        named[leader.name] = replace(
            leader, effort=min(leader.effort, effort), velocity=min(leader.velocity, joint.velocity / factor)
        )
    return tuple(named.values())


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
