"""XML of robot files with line numbers: own nodes on expat, which refuse what an XML bomb needs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, final
from xml.parsers import expat

import numpy as np

from add.errors import InputError
from add.machine.files import read_regular
from add.typing import FloatArray

#: Far above what any robot has: bytes of a file, elements, levels of them.
LARGEST, ELEMENTS, DEPTH = 6.4e7, 400_000, 100

_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_NO_BLANK = re.compile(rb'"(?=[A-Za-z_][\w.:-]*=")')
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@final
@dataclass(frozen=True)
class XmlNode:
    """An element: tag, attributes, children, the line where it begins."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[XmlNode] = field(default_factory=list)

    def all(self, tag: str) -> list[XmlNode]:
        """Return the children with this tag."""
        return [child for child in self.children if child.tag == tag]

    def nodes(self) -> list[XmlNode]:
        """Return this element and all below it."""
        found, k = [self], 0
        while k < len(found):
            found.extend(found[k].children)
            k += 1
        return found


def read_xml(path: str | PathLike[str]) -> XmlNode:
    """Read the root element of an XML file.

    A document type is refused, since entities are defined there, and none of the formats has one; so are files beyond
    `LARGEST` bytes, `ELEMENTS` elements and `DEPTH` levels.

    Raises
    ------
    InputError
        naming the file and the line.
    """
    path = Path(path)
    try:
        content = read_regular(path, most=LARGEST)
    except FileNotFoundError:
        raise InputError("no such file", file=path) from None
    except IsADirectoryError:
        raise InputError("is a folder", file=path, expected="a robot's file, URDF or MJCF") from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", file=path) from error
    return parse_xml(content, path)


def parse_xml(content: bytes, path: str | PathLike[str]) -> XmlNode:
    """Parse what `read_xml` has read.

    What is not XML is tried again without what the readers of robots' files put up with: blanks before the declaration,
    zeros behind the end, "--" in comments, attributes without a blank between them.
    """
    try:
        return _parsed(content, path)
    except InputError as error:
        mended = _COMMENT.sub(lambda found: b"\n" * found[0].count(b"\n"), content.strip(b"\0 \t\r\n"))
        try:
            return _parsed(_NO_BLANK.sub(b'" ', mended), path)
        except InputError:
            raise error from None


def _parsed(content: bytes, path: str | PathLike[str]) -> XmlNode:
    parser = expat.ParserCreate()
    top = XmlNode("", {}, 0)
    open_nodes, count = [top], 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if count > ELEMENTS or len(open_nodes) > DEPTH:
            most = f"at most {ELEMENTS} elements, {DEPTH} within each other"
            raise InputError("too many elements", file=path, place=f"line {parser.CurrentLineNumber}", expected=most)
        node = XmlNode(tag, attributes, parser.CurrentLineNumber)
        open_nodes[-1].children.append(node)
        open_nodes.append(node)

    def refuse(*_: Any) -> None:
        raise InputError(
            "has a document type (<!DOCTYPE ...>), in which entities can be defined",
            file=path,
            place=f"line {parser.CurrentLineNumber}",
            expected="a file without one",
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: open_nodes.pop()
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise InputError(f"not XML: {reason}", file=path, place=f"line {error.lineno}") from None
    except (ValueError, LookupError) as error:  # encodings that Python does not have
        raise InputError(f"not XML: {error}", file=path) from None
    return top.children[0]


def numbers_in(text: str) -> FloatArray | None:
    """Return the numbers of a text between blanks; None where a word is none, or is not finite."""
    words = text.split()
    if not all(_NUMBER.fullmatch(word) for word in words):
        return None
    found = np.array([float(word) for word in words])
    return found if np.isfinite(found).all() else None
