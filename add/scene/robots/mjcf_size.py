"""Size of what an MJCF multiplies: refused before MuJoCo makes it, which may not end."""

from __future__ import annotations

import math
from pathlib import Path

from add.scene.robots.source import Source
from add.scene.robots.xml_file import XmlNode, numbers_in, read_xml

#: Copies that <replicate> and <flexcomp> of a file may make.
COPIES = 10_000
_MULTIPLY = ("replicate", "flexcomp", "composite")


def refuse_too_many(source: Source, root: XmlNode) -> None:
    """Refuse a file, with those that it includes, in which nested counts exceed `COPIES`.

    Raises
    ------
    InputError
        naming the file and the line; also of an included file that is no XML.
    """
    seen = {source.file.resolve()}
    waiting: list[tuple[Path, XmlNode, float]] = [(source.file, root, 1.0)]
    total = 0.0
    while waiting:
        file, node, copies = waiting.pop()
        if node.tag in _MULTIPLY:
            counts = numbers_in(node.attributes.get("count", "1"))
            copies *= math.prod(max(float(count), 1.0) for count in counts) if counts is not None else 1.0
            total += copies
            if total > COPIES:
                here = Source(file, source.words, source.ignore)
                here.fail(f"line {node.line}, <{node.tag}>", "too many copies", f"{total:g}", f"at most {COPIES}")
        if node.tag == "include":
            other = source.file.parent / node.attributes.get("file", "")
            if other.is_file() and other.resolve() not in seen:
                seen.add(other.resolve())
                waiting.append((other, read_xml(other), copies))
        waiting += [(file, child, copies) for child in node.children]
