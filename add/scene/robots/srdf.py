"""SRDF: pairs of links whose collisions are switched off."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from add.scene.robots.model import RobotLink
from add.scene.robots.xml_file import Source, read_xml


def read_srdf(path: str | PathLike[str], source: Source, links: Mapping[str, RobotLink]) -> frozenset[frozenset[str]]:
    """Return the pairs of <disable_collisions>.

    Raises
    ------
    InputError
        naming the SRDF file and the line: links that the robot does not have, a default that is switched off.
    """
    path = Path(path)
    root = read_xml(path)
    own = Source(path, source.words, source.ignore, source.ignored)
    if root.tag != "robot":
        own.fail(f"line {root.line}", "not an SRDF file", f"<{root.tag}>", "<robot>")
    for tag in ("disable_default_collisions", "enable_collisions"):
        for node in root.all(tag):
            own.refuse("srdf", f"line {node.line}", f"<{tag}> is not read, only <disable_collisions>")
    pairs = set()
    for node in root.all("disable_collisions"):
        given = [node.attributes.get(key, "") for key in ("link1", "link2")]
        ends = [source.renamed.get(("link", name), name) for name in given]
        for name in ends:
            if name not in links:
                own.fail(f"line {node.line}, <disable_collisions>", "no such link", f"'{name}'", "a link of the robot")
        pairs.add(frozenset(ends))
    return frozenset(pairs)
