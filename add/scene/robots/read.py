"""Reading of robot files, the format known by the content."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from os import PathLike
from pathlib import Path
from typing import NoReturn

import numpy as np

from add.errors import InputError
from add.scene.robots.mjcf import robot_of_mjcf
from add.scene.robots.model import Robot
from add.scene.robots.urdf import UrdfOptions, robot_of_urdf
from add.scene.robots.xacro_file import expanded, is_xacro
from add.scene.robots.xml_file import XmlNode, read_xml
from add.typing import FloatArray

_EXPECTED = "<robot> (URDF) or <mujoco> (MJCF)"


def read_robot(
    path: str | PathLike[str],
    *,
    base: str | None = None,
    up: str = "z",
    ignore: Collection[str] = (),
    repair: bool = False,
    visual: bool = False,
    packages: Mapping[str, str | PathLike[str]] | None = None,
    srdf: str | PathLike[str] | None = None,
) -> Robot:
    """Read a robot from a URDF, xacro or MJCF file.

    Parameters
    ----------
    path : of the file; its root element says which format it has
    base : "fixed" stands in the world, "free" moves by a free joint; default: fixed in a URDF, as it says in an MJCF
    up : axis of the file that points up, "x", "y" or "z"; the robot is turned so that it is z
    ignore : things to leave out that change the motion, and are an error otherwise: words of `URDF_WORDS` or
        `MJCF_WORDS` in `add.scene.robots.source`; what is left out is listed in `Robot.ignored`
    repair : URDF: make the principal moments of an inertia that no body has equal, and note it
    visual : URDF: whether to read the meshes of pictures, instead of only looking for their files
    packages : URDF: folders of packages by name
    srdf : URDF: file whose `disable_collisions` are read

    Raises
    ------
    InputError
        naming file, line and link or joint.
    """
    path = Path(path)
    root = read_xml(path)
    if root.tag == "robot":
        macros = is_xacro(root)
        if macros:
            root = expanded(path, packages or {})
        options = UrdfOptions(base or "fixed", repair, visual, packages, srdf, macros)
        return robot_of_urdf(path, root, ignore, _turn(path, base, up), options)
    if root.tag == "mujoco":
        _only_urdf(path, repair=repair, packages=packages is not None, srdf=srdf is not None)
        return robot_of_mjcf(path, root, ignore, _turn(path, base, up), base)
    _fail(path, root)


def _turn(path: Path, base: str | None, up: str) -> FloatArray:
    """Return the rotation from the file's axes to the world's; check the options."""
    if base not in (None, "fixed", "free"):
        raise InputError("unknown base", file=path, found=f"'{base}'", expected="'fixed' or 'free'")
    x, y, z = np.eye(3)
    turns = {"z": np.eye(3), "y": np.array([x, -z, y]), "x": np.array([y, z, x])}
    if up not in turns:
        raise InputError("unknown axis `up`", file=path, found=f"'{up}'", expected="'x', 'y' or 'z'")
    return turns[up]


def _only_urdf(path: Path, **given: bool) -> None:
    wrong = [name for name, is_given in given.items() if is_given]
    if wrong:
        raise InputError(f"option `{wrong[0]}` is for URDF files", file=path, found="an MJCF file")


def _fail(path: Path, root: XmlNode) -> NoReturn:
    found = f"<{root.tag[:80]}>"
    if root.tag == "sdf":
        found += ", an SDF file, which is not read"
    if root.tag == "skel":
        found += ", a SKEL file, which is not read"
    raise InputError("not a robot's file", file=path, place=f"line {root.line}", found=found, expected=_EXPECTED)
