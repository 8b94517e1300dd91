"""Robot files: URDF, SDF and MJCF read into one neutral description. Words of the formats end here."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from os import PathLike
from pathlib import Path
from typing import ClassVar, NoReturn

import numpy as np

from add.errors import InputError
from add.machine.foreign import load_installed
from add.scene.robots.mjcf import robot_of_mjcf
from add.scene.robots.model import Robot, RobotActuator, RobotGeometry, RobotJoint, RobotLink, RobotLoop, RobotTendon
from add.scene.robots.sdf import robot_of_sdf
from add.scene.robots.shapes import MeshFiles
from add.scene.robots.urdf import UrdfOptions, robot_of_urdf
from add.scene.robots.xml_file import XmlNode, parse_xml, read_xml
from add.typing import FloatArray

# --- Xacro files, expanded by the package of that name ----------------------------------------------------------------

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


# ----------------------------------------------------------------------------------------------------------------------

_EXPECTED = "<robot> (URDF), <mujoco> (MJCF) or <sdf>"


class RobotFormat(ABC):
    """A format of robot files that a file or a package outside `add` brings; its subclasses are asked first.

    Attributes
    ----------
    name : as people call it
    """

    name: ClassVar[str]

    @abstractmethod
    def recognises(self, path: Path) -> bool:
        """Whether a file, which is there, is of this format."""

    @abstractmethod
    def read(self, path: Path, base: str | None, turn: FloatArray, ignore: Collection[str]) -> Robot:
        """Read it; the arguments are those of `read_robot`, ``turn`` (3, 3) from the file's axes to the world's.

        Raises
        ------
        InputError
            Naming file, line and link or joint.
        """


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
    """Read a robot from a URDF, xacro, SDF or MJCF file, or one of a `RobotFormat`.

    Parameters
    ----------
    path : of the file; its root element says which format it has
    base : "fixed" stands in the world, "free" moves by a free joint; default: fixed in a URDF, as it says in an MJCF,
        in an SDF fixed where a joint leads from the world to it
    up : axis of the file that points up, "x", "y" or "z"; the robot is turned so that it is z
    ignore : things to leave out that change the motion, and are an error otherwise: words of `URDF_WORDS`,
        `SDF_WORDS` or `MJCF_WORDS` in `add.scene.robots.xml_file`; what is left out is listed in `Robot.ignored`
    repair : URDF, SDF: make the principal moments of an inertia that no body has equal, and note it
    visual : URDF, SDF: whether to read the meshes of pictures, instead of only looking for their files
    packages : URDF, SDF: folders of packages, or of models, by name
    srdf : URDF: file whose `disable_collisions` are read

    Raises
    ------
    InputError
        naming file, line and link or joint.
    """
    path = Path(path)
    load_installed()
    formats = [kind() for kind in RobotFormat.__subclasses__()] if path.is_file() else []
    if own := next((kind for kind in formats if kind.recognises(path)), None):
        _only(path, "URDF and SDF", f"a {own.name}", repair=repair, visual=visual, packages=bool(packages),
              srdf=srdf is not None)  # fmt: skip
        return own.read(path, base, _turn(path, base, up), ignore)
    root = read_xml(path)
    if root.tag == "robot":
        macros = is_xacro(root)
        if macros:
            root = expanded(path, packages or {})
        options = UrdfOptions(base or "fixed", repair, visual, packages, srdf, macros)
        return robot_of_urdf(path, root, ignore, _turn(path, base, up), options)
    if root.tag == "sdf":
        _only(path, "URDF", "an SDF", srdf=srdf is not None)
        return robot_of_sdf(path, root, ignore, _turn(path, base, up), UrdfOptions("", repair, visual, packages), base)
    if root.tag == "mujoco":
        _only(path, "URDF and SDF", "an MJCF", repair=repair, packages=bool(packages))
        _only(path, "URDF", "an MJCF", srdf=srdf is not None)
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


def _only(path: Path, meant: str, found: str, **given: bool) -> None:
    wrong = [name for name, is_given in given.items() if is_given]
    if wrong:
        raise InputError(f"option `{wrong[0]}` is for {meant} files", file=path, found=f"{found} file")


def _fail(path: Path, root: XmlNode) -> NoReturn:
    found = f"<{root.tag[:80]}>"
    if root.tag == "skel":
        found += ", a SKEL file, which is not read"
    raise InputError("not a robot's file", file=path, place=f"line {root.line}", found=found, expected=_EXPECTED)
