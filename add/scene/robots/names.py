"""Names of links and joints."""

from __future__ import annotations

from add.scene.robots.xml_file import Source, XmlNode


def usable(name: str) -> bool:
    """Whether a scene can name it: not empty, no "/", which divides a body's name from a link's."""
    return bool(name.strip()) and "/" not in name and name.isprintable() and len(name) <= 200


def without_slashes(source: Source, root: XmlNode) -> None:
    """Give links and joints of a URDF names without "/" and ".", also where joints name them."""
    for kind, inside in (("link", (("parent", "link"), ("child", "link"))), ("joint", (("mimic", "joint"),))):
        named = root.all(kind)
        taken = {node.attributes.get("name", "") for node in named}
        for node in named:
            source.lines.setdefault((kind, node.attributes.get("name", "")), node.line)
        places = [(node, "name") for node in named]
        places += [(item, key) for joint in root.all("joint") for tag, key in inside for item in joint.all(tag)]
        for node, key in places:
            if key in node.attributes:
                node.attributes[key] = source.without_slash(kind, node.attributes[key], taken.__contains__)
    source.lines.clear()  # `read_name` notes them again, and that none comes twice


def read_name(source: Source, node: XmlNode, kind: str) -> str:
    """Return the name of a link or joint, new among its kind, and remember its line."""
    name = node.attributes.get("name", "")
    place = f"line {node.line}, {kind} '{name[:80]}'"
    if not usable(name):
        source.fail(place, "not a name", f"'{name[:80]}'", "a name without '/', of at most 200 letters")
    if (kind, name) in source.lines:
        line = source.lines[kind, name]
        source.fail(place, f"a second {kind} of this name", f"another in line {line}", "unique names")
    source.lines[kind, name] = node.line
    return name
