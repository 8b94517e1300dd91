"""Xacro files, expanded by the package of that name."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from add.errors import InputError
from add.scene.robots.mesh_files import MeshFiles
from add.scene.robots.xml_file import XmlNode, parse_xml

_ADVICE = "pip install xacro, or the expanded file: xacro robot.urdf.xacro > robot.urdf"


def is_xacro(root: XmlNode) -> bool:
    """Whether a URDF has macros or values in it that are not expanded."""
    return any(
        node.tag.startswith("xacro:") or any("${" in text or "$(" in text for text in node.attributes.values())
        for node in root.nodes()
    )


def expanded(path: Path, packages: Mapping[str, str | PathLike[str]]) -> XmlNode:
    """Return the root of a xacro file that is expanded, with the arguments that it has itself.

    ``$(find name)`` is the folder in ``packages``, one above the file, or one of ROS_PACKAGE_PATH.

    Raises
    ------
    InputError
        If the package is not installed, or refuses the file.
    """
    try:
        import xacro
        from xacro import substitution_args
    except ImportError:
        raise InputError(
            "is a xacro file, which the package xacro expands, and it is not installed", file=path, expected=_ADVICE
        ) from None
    files = MeshFiles(path, packages)

    def find(name: str) -> str:
        folder = files.folder(name)
        if folder is None:
            raise LookupError(f"package '{name}' is not found, neither above the file nor in `packages`")
        return str(folder)

    before = substitution_args._eval_find
    substitution_args._eval_find = substitution_args._eval_dict["find"] = find
    try:
        text = xacro.process_file(str(path)).toxml(encoding="utf-8")
    except Exception as error:
        reason = " ".join(str(error).split())[:400] or type(error).__name__
        raise InputError(f"xacro refuses the file: {reason}", file=path) from None
    finally:
        substitution_args._eval_find = substitution_args._eval_dict["find"] = before
    return parse_xml(text, path)
