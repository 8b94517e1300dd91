"""Names of links and joints."""

from __future__ import annotations

from add.scene.robots.source import Source
from add.scene.robots.xml_file import XmlNode


def usable(name: str) -> bool:
    """Whether a scene can name it: not empty, no "/", which divides a body's name from a link's."""
    return bool(name.strip()) and "/" not in name and name.isprintable() and len(name) <= 200


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
