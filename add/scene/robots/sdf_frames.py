"""Frames of an SDF model: what poses are relative to, and which links carry what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from scipy.spatial.transform import Rotation

from add.scene.robots.turns import Place, after, from_quaternion, from_rpy, here
from add.scene.robots.xml_file import Source, XmlNode
from add.typing import FloatArray

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
    found = [] if node is None else node.all(tag)
    text = {} if not found else {"": found[0].text}
    return source.numbers(XmlNode(tag, text, 0), "", place, count, None)


def pose_of(model: SdfModel, node: XmlNode, place: str) -> tuple[str, Place]:
    """Return what the <pose> of an element is relative to, "" by default and before version 1.7, and the pose."""
    found, source = node.all("pose"), model.source
    if not found:
        return "", here()
    pose, attributes = found[0], found[0].attributes
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
