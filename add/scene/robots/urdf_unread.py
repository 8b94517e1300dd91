"""Attributes and parts of a URDF's own elements that it does not have: noted once for each kind, never dropped."""

from __future__ import annotations

from add.scene.robots.source import Source
from add.scene.robots.xml_file import XmlNode

#: Attributes of the elements of a URDF.
_ATTRIBUTES = {
    tag: frozenset(names.split())
    for tag, names in {
        "robot": "name version", "link": "name", "joint": "name type", "inertial": "", "mass": "value",
        "inertia": "ixx ixy ixz iyy iyz izz", "visual": "name", "collision": "name", "geometry": "", "box": "size",
        "cylinder": "radius length", "capsule": "radius length", "sphere": "radius", "mesh": "filename scale",
        "material": "name", "color": "rgba", "texture": "filename", "origin": "xyz rpy quat_xyzw", "axis": "xyz",
        "parent": "link", "child": "link", "limit": "lower upper effort velocity", "dynamics": "damping friction",
        "mimic": "joint multiplier offset",
        "safety_controller": "soft_lower_limit soft_upper_limit k_position k_velocity",
    }.items()
}  # fmt: skip
#: Elements whose other parts the readers of links, joints and shapes say, or refuse.
_SAID = frozenset({"robot", "link", "joint", "visual", "collision", "geometry"})


def note_unread(source: Source, root: XmlNode) -> None:
    """Note what elements of a URDF have and nothing reads: the element, the attribute, its first line, how often.

    Names with a colon, as of XML namespaces, belong to other programs, and what is within their elements, too.
    """
    lines: dict[tuple[str, str], list[int]] = {}
    nodes = [root]
    while nodes:
        node = nodes.pop()
        nodes += [child for child in reversed(node.children) if child.tag in _ATTRIBUTES]
        unread = [name for name in node.attributes if name not in _ATTRIBUTES[node.tag] and ":" not in name]
        if node.tag not in _SAID:
            unread += [f"<{child.tag}>" for child in node.children if child.tag not in _ATTRIBUTES]
        for name in unread:
            if name != "xmlns":
                lines.setdefault((node.tag, name), []).append(node.line)
    for (tag, name), found in lines.items():
        times = f", {len(found)} times" if len(found) > 1 else ""
        source.note(f"line {found[0]}", f"{name[:80]} of <{tag}>{times}, which a URDF does not have")
