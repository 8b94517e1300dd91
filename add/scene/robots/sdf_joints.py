"""Frames of an SDF model, its joints as those of a URDF, and joints that close loops."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from scipy.spatial.transform import Rotation

from add.scene.robots.inertia import from_quaternion, from_rpy, inverse, plane_axes
from add.scene.robots.model import LinkPlace, Place, RobotLoop, after, here
from add.scene.robots.xml_file import Source, XmlNode, doubt_motion, numbers_in
from add.ties import unit_vector
from add.typing import FloatArray

# --- Frames of an SDF model: what poses are relative to, and which links carry what -----------------------------------

#: Names of the model's own frame.
MODEL = frozenset({"", "__model__"})


@final
@dataclass
class SdfModel:
    """A model while it is read.

    Attributes
    ----------
    source, node, version : the file, the <model>, and the version of the format
    poses : link, frame, joint (also as "joint NAME") -> what its pose is relative to, and the pose
    hosts : the same -> what carries it
    world : name of what stands still, another one where a link is called "world"
    frames : link of the URDF -> its frame in the model's
    more : joint -> what a URDF does not have
    apart : links that joints of two axes join
    """

    source: Source
    node: XmlNode
    version: tuple[int, ...]
    poses: dict[str, tuple[str, Place]] = field(default_factory=dict)
    hosts: dict[str, str] = field(default_factory=dict)
    world: str = "world"
    frames: dict[str, Place] = field(default_factory=dict)
    more: dict[str, dict[str, Any]] = field(default_factory=dict)
    apart: list[tuple[str, str]] = field(default_factory=list)

    def at(self, name: str, place: str, way: tuple[str, ...] = ()) -> Place:
        """Return the place of a link, joint or frame in the model's frame."""
        if name in MODEL:
            return here()
        if name not in self.poses or name in way:
            found = "the circle " + " -> ".join((*way, name)) if name in way else f"'{name}'"
            self.source.fail(place, "a pose is relative to no frame of the model", found, "a link, joint or <frame>")
        other, pose = self.poses[name]
        return after(self.at(other, place, (*way, name)), pose)

    def link(self, name: str, place: str, way: tuple[str, ...] = ()) -> str:
        """Return the link that carries a link, joint or frame; the world is one."""
        other = self.hosts.get(name, name)
        if other == name:
            if name != self.world and name not in self.poses:
                self.source.fail(place, "no such link", f"'{name}'", "the name of a <link> or <frame> of this model")
            return name
        if name in way:
            self.source.fail(place, "frames are attached in a circle", " -> ".join((*way, name)), "a link")
        return self.link(other, place, (*way, name))


def text_of(node: XmlNode, tag: str) -> str:
    """Return the text of a child of an element, "" without one."""
    return next((child.text for child in node.all(tag)), "")


def numbers_of(source: Source, node: XmlNode | None, tag: str, place: str, count: int) -> FloatArray:
    """Return the numbers of the text of an element's child."""
    nodes = [] if node is None else node.all(tag)
    text = {} if not nodes else {"": nodes[0].text}
    return source.numbers(XmlNode(tag, text, 0), "", place, count, None)


def pose_of(model: SdfModel, node: XmlNode, place: str) -> tuple[str, Place]:
    """Return what the <pose> of an element is relative to, "" by default and before version 1.7, and the pose."""
    poses, source = node.all("pose"), model.source
    if not poses:
        return "", here()
    pose, attributes = poses[0], poses[0].attributes
    source.require_known(pose, place, ("frame", "relative_to", "degrees", "rotation_format"))
    other = attributes.get("relative_to", "") if model.version >= (1, 7) else ""
    if attributes.get("frame"):
        source.note(place, f'frame="{attributes["frame"]}" of <pose>, which no version reads')
    if not pose.text:
        return other, here()
    quaternion = attributes.get("rotation_format", "euler_rpy") == "quat_xyzw"
    numbers = numbers_of(source, node, "pose", place, 7 if quaternion else 6)
    if quaternion:
        return other, (numbers[:3], from_quaternion(numbers[[6, 3, 4, 5]]))
    angles = np.radians(numbers[3:]) if attributes.get("degrees") in ("true", "1") else numbers[3:]
    return other, (numbers[:3], from_rpy(angles))


def origin_of(place: Place, line: int) -> XmlNode:
    """Return an <origin> with all digits."""
    xyz, turn = (" ".join(map(repr, row.tolist())) for row in (place[0], Rotation.from_matrix(place[1]).as_quat()))
    return XmlNode("origin", {"xyz": xyz, "quat_xyzw": turn}, line)


# ----------------------------------------------------------------------------------------------------------------------

#: Types of joints -> those of a URDF, one for each axis.
TYPES = {
    "revolute": ("revolute",), "continuous": ("continuous",), "prismatic": ("prismatic",), "fixed": ("fixed",),
    "ball": ("spherical",), "universal": ("revolute", "revolute"), "revolute2": ("revolute", "revolute"),
    "screw": ("revolute",),
}  # fmt: skip
#: What a joint that closes a loop is -> kind of `RobotLoop`.
LOOPS = {"ball": "point", "revolute": "hinge", "continuous": "hinge", "fixed": "fixed", "prismatic": "slider"}
#: From here on a limit is none.
NO_LIMIT = 1e16
#: Elements of joints that are read.
_OF_AXES = frozenset({"xyz", "limit", "dynamics", "mimic", "use_parent_model_frame"})
_OF_DYNAMICS = frozenset({"damping", "friction", "spring_stiffness", "spring_reference"})
_OF_JOINTS = frozenset({"pose", "parent", "child", "axis", "axis2", "thread_pitch", "screw_thread_pitch"})


def urdf_joints(model: SdfModel, child: str, node: XmlNode) -> list[XmlNode]:
    """Return the joints of a URDF, one for each axis, and the links between them."""
    name, source = node.attributes.get("name", ""), model.source
    place, types = source.place("joint", name), TYPES[node.attributes["type"]]
    parent, out = model.link(text_of(node, "parent"), place), list[XmlNode]()
    if len(types) == 2:
        out.append(XmlNode("link", {"name": f"{name}_1"}, node.line))
        model.frames[f"{name}_1"] = model.frames[child]
        model.apart.append((parent, child))
    for k, kind in enumerate(types):
        title = name if len(types) == 1 else f"{name}_{k + 1}"
        axis = next(iter(node.all("axis2" if k else "axis")), XmlNode("axis", {}, node.line))
        limits = _limits(model, axis, place)
        if kind in ("revolute", "prismatic") and limits["lower"] == limits["upper"] == "0":
            source.note(f"{place}: <limit>", "lower = upper = 0: it stands still, as in Gazebo")
            kind = "fixed"
        ends = (parent, child) if len(types) == 1 else ((parent, f"{name}_1"), (f"{name}_1", child))[k]
        joint = urdf_joint(title, kind, model, ends, node.line)
        if kind not in ("fixed", "spherical"):
            xyz = " ".join(map(repr, _direction(model, node, axis, child).tolist()))
            joint.children.append(XmlNode("axis", {"xyz": xyz}, axis.line))
        if kind in ("revolute", "prismatic") or axis.all("limit"):
            joint.children.append(XmlNode("limit", limits, axis.line))
        laws = {item.tag: item.text for part in axis.all("dynamics") for item in part.children}
        if laws:
            kept = {key: text for key, text in laws.items() if key in ("damping", "friction")}
            joint.children.append(XmlNode("dynamics", kept, axis.line))
        others = [item for item in axis.children if item.tag not in _OF_AXES]
        for item in others:
            doubt_motion(source, item, place)
        for tag in [item.tag for item in others] + sorted(laws.keys() - _OF_DYNAMICS):
            source.note(f"{place}: <axis>", f"<{tag}>")
        _also(model, node, axis, joint, title)
        out.append(joint)
    out[-1].children.extend(item for item in node.children if item.tag not in _OF_JOINTS)
    return out


def _limits(model: SdfModel, axis: XmlNode, place: str) -> dict[str, str]:
    """Return the attributes of the <limit> of a URDF, and note those that only SDF has."""
    limits = {"lower": repr(-NO_LIMIT), "upper": repr(NO_LIMIT)}
    for limit in axis.all("limit"):
        for item in limit.children:
            if item.tag not in ("lower", "upper", "effort", "velocity"):
                model.source.note(f"{place}: <limit>", f"<{item.tag}>, stops have numbers of the scene")
            elif item.tag not in limits or item.text.lower().lstrip("+-") not in ("inf", "infinity"):
                limits[item.tag] = item.text
    both = numbers_in(f"{limits['lower']} {limits['upper']}")
    return limits if both is None or both.any() else limits | {"lower": "0", "upper": "0"}


def _direction(model: SdfModel, node: XmlNode, axis: XmlNode, child: str) -> FloatArray:
    """Return the direction of an axis in the frame of the child of a joint."""
    name = node.attributes.get("name", "")
    place = model.source.place("joint", name)
    vector = numbers_of(model.source, axis, "xyz", place, 3) if axis.all("xyz") else np.array([0.0, 0.0, 1.0])
    if not vector.any():
        model.source.fail(f"{place}: <xyz>", "an axis without direction", vector.tolist(), "a unit vector")
    within = next((item.attributes.get("expressed_in", "") for item in axis.all("xyz")), "") or f"joint {name}"
    if model.version < (1, 5) or (text_of(axis, "use_parent_model_frame") or "0").lower() in ("1", "true"):
        within = "__model__"
    return model.frames[child][1].T @ model.at(within, place)[1] @ unit_vector(vector)


def _also(model: SdfModel, node: XmlNode, axis: XmlNode, joint: XmlNode, name: str) -> None:
    """Note what a URDF does not have of a joint: its spring, its pitch; write what it mimics."""
    place, more = model.source.place("joint", node.attributes.get("name", "")), model.more.setdefault(name, {})
    for item in axis.all("dynamics"):
        for key, to in (("spring_stiffness", "stiffness"), ("spring_reference", "reference")):
            if item.all(key):
                more[to] = float(numbers_of(model.source, item, key, place, 1)[0])
        model.source.not_negative(f"{place}: <dynamics>", spring_stiffness=more.get("stiffness", 0.0))
    if node.attributes["type"] == "screw":
        if not node.all("screw_thread_pitch"):
            model.source.fail(place, "a screw without <screw_thread_pitch>", expected="the way of one turn [m]")
        more["pitch"] = float(numbers_of(model.source, node, "screw_thread_pitch", place, 1)[0]) / (2.0 * np.pi)
    for item in axis.all("mimic"):
        if more.pop("stiffness", 0.0):
            model.source.doubt("dynamics", place, "the spring of a joint that mimics another is left out")
        factor, offset, reference = (
            float(numbers_of(model.source, item, key, place, 1)[0]) if item.all(key) else default
            for key, default in (("multiplier", 1.0), ("offset", 0.0), ("reference", 0.0))
        )
        given = {"joint": item.attributes.get("joint", ""), "multiplier": repr(factor)}
        joint.children.append(XmlNode("mimic", given | {"offset": repr(offset - factor * reference)}, item.line))


def urdf_joint(name: str, kind: str, model: SdfModel, ends: tuple[str, str], line: int) -> XmlNode:
    """Return a <joint> of a URDF between two of its links, without axis, limits and laws."""
    parent, child = (model.frames[end] for end in ends)
    inside = [origin_of(after(inverse(parent), child), line)]
    inside += [XmlNode(tag, {"link": end}, line) for tag, end in zip(("parent", "child"), ends, strict=True)]
    return XmlNode("joint", {"name": name, "type": kind}, line, inside)


def loop_of(model: SdfModel, node: XmlNode, place_of: Callable[[str], LinkPlace]) -> RobotLoop:
    """Return the joint that closes a loop, between the links of the robot."""
    name = node.attributes.get("name", "")
    place, kind = model.source.place("joint", name), LOOPS[node.attributes["type"]]
    joint, child = model.at(f"joint {name}", place), model.link(text_of(node, "child"), place)
    if kind in ("hinge", "slider"):
        axis = next(iter(node.all("axis")), XmlNode("axis", {}, node.line))
        unit = model.frames[child][1] @ _direction(model, node, axis, child)
        joint = joint[0], np.column_stack([*plane_axes(unit), unit])
        if axis.all("limit") or axis.all("dynamics"):
            model.source.doubt("joint", place, "limits and laws of a joint that closes a loop are left out")
    ends = (model.link(text_of(node, "parent"), place), child)
    places = (place_of(end).then(after(inverse(model.frames[end]), joint)) for end in ends)
    links, positions, rotations = zip(*places, strict=True)
    return RobotLoop(name, kind, links, np.stack(positions), np.stack(rotations))
