"""Shapes of robots: meshes found by package or path, simple solids, <visual> and <collision> of a URDF."""

import contextlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, final
from urllib.parse import unquote

import numpy as np

from add import geometry
from add.errors import InputError
from add.geometry.triangle_surface import TriangleSurface
from add.io.surfaces import read_surfaces
from add.kernels import shape_codes
from add.scene.robots.inertia import from_quaternion, from_rpy, plane_axes
from add.scene.robots.model import Place, RobotGeometry, here
from add.scene.robots.xml_file import Source, XmlNode, numbers_in
from add.ties import unit_vector
from add.typing import FloatArray

# --- Meshes that a robot's file names, found by package or path, read and scaled; simple solids -----------------------


@final
@dataclass(frozen=True)
class MeshFiles:
    """Files beside a robot's file.

    Parameters
    ----------
    file : the robot's
    packages : folders by the name of their package; others are looked for in the folders above the file, by each folder
        of their path that is one of these, and in the folders of the environment variable ROS_PACKAGE_PATH
    """

    file: Path
    packages: Mapping[str, str | os.PathLike[str]] = field(default_factory=dict)
    _read: dict[Path, TriangleSurface | InputError] = field(default_factory=dict, init=False, repr=False, compare=False)

    def read_ahead(self, names: Iterable[str]) -> None:
        """Read files that `read` will be asked for together: each alone may take a process of its own."""
        paths = {path for name in names if (path := self.find(name)) is not None}
        self._read.update(read_surfaces(paths - self._read.keys()))

    def find(self, name: str) -> Path | None:
        """Return the file of package://name/path, model://name/path, file:///path or a path; None if there is none."""
        for path in self._candidates(name):
            with contextlib.suppress(OSError, ValueError):  # such as a name that is too long
                if path.is_file():
                    return path
        return None

    def folder(self, package: str) -> Path | None:
        """Return the folder of a package; None if there is none."""
        above = self.file.resolve().parents
        folders = [Path(self.packages[package])] if package in self.packages else []
        folders += [place for folder in above for place in (folder / package, folder) if place.name == package]
        folders += [Path(root) / package for root in os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep) if root]
        return next((place for place in folders if place.is_dir()), None)

    def _candidates(self, name: str) -> list[Path]:
        scheme, mark, rest = name.partition("://")
        if not mark:
            return [self.file.parent / name]
        if scheme == "file":
            return [Path(unquote(rest))]
        if scheme not in ("package", "model"):
            return []
        package, _, path = rest.partition("/")
        if package in self.packages:
            return [Path(self.packages[package]) / path]
        above = self.file.resolve().parents
        paths = [folder / package / path for folder in above]
        parts = Path(rest).parts  # a folder of the path may be one above the file, whatever the package is called now
        paths += [
            folder.joinpath(*parts[k + 1 :]) for k, part in enumerate(parts) for folder in above if folder.name == part
        ]
        roots = os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep)
        return paths + [Path(root) / package / path for root in roots if root]

    def read(self, name: str, scale: FloatArray) -> tuple[Path, TriangleSurface]:
        """Return the file and its surface [m], scaled; a scale that mirrors turns the triangles.

        Raises
        ------
        InputError
            If it is not found or cannot be read.
        """
        path = self.find(name)
        if path is None:
            raise InputError(f"mesh '{name}' is not found", expected=self._expected(name))
        self.read_ahead([name])
        surface = self._read[path]
        if isinstance(surface, InputError):
            raise surface
        triangles = surface.triangles[:, ::-1] if scale.prod() < 0.0 else surface.triangles
        return path, TriangleSurface(surface.vertices * scale * _unit(path), triangles)

    def _expected(self, name: str) -> str:
        scheme, mark, rest = name.partition("://")
        if not mark or scheme == "file":
            return f"a file {self._candidates(name)[0]}"
        if scheme not in ("package", "model"):
            return "a path, package://, model:// or file://"
        package = rest.partition("/")[0]
        return f"a folder '{package}' above the robot's file or in `packages`"


#: Beginning of a COLLADA file, which says its unit and what is up before anything else, and where [bytes].
_BEGINNING, _METER = 2**16, re.compile(rb"<unit\b[^>]*?\bmeter\s*=\s*[\"']([^\"']*)[\"']")
_UP = re.compile(rb"<up_axis>\s*([XY]_UP)\s*</up_axis>")


def _unit(path: Path) -> float:
    """Return the unit of a mesh file in metres: what a COLLADA file says, which its reader leaves out; else one."""
    found = _said(path, _METER)
    said = numbers_in(found[1].decode("ascii", "replace")) if found else None
    return said[0] if said is not None and len(said) == 1 and said[0] > 0.0 else 1.0


def _said(path: Path, what: re.Pattern[bytes]) -> re.Match[bytes] | None:
    """Return what the beginning of a COLLADA file says; None for other files."""
    if path.suffix.lower() != ".dae":
        return None
    with path.open("rb") as file:
        return what.search(file.read(_BEGINNING))


def _note_up(path: Path, source: Source, place: str) -> None:
    """Note, once for a robot, that nothing turns a mesh by what its file calls up.

    RViz, MoveIt, Gazebo and DART take the points as they are, too, and robots' files are written for them: of many
    meshes `<up_axis>` says what the program that wrote them calls up, or stands there against one that turned them.
    """
    if (up := _said(path, _UP)) and not any("<up_axis>" in text for text in source.ignored):
        source.note(place, f"mesh {path}: <up_axis> {up[1].decode()} turns no points, nor does it in RViz and Gazebo")


# --- Boxes, balls, capsules, cylinders by their sizes [m]: half the edges of a box; radius and half-length of others


#: Codes of the kernels.
KINDS = {
    "box": shape_codes.BOX,
    "sphere": shape_codes.SPHERE,
    "capsule": shape_codes.CAPSULE,
    "cylinder": shape_codes.CYLINDER,
}


def kernel_shape(shape: str, size: Sequence[float]) -> tuple[int, tuple[float, float, float]]:
    """Return the code of a shape in the kernels, and its sizes there."""
    x, y, z = (*size, 0.0, 0.0)[:3]
    return KINDS[shape], (x, y, z)


class Touching(NamedTuple):
    """Points (n, 3) by which a shape touches others, their radius, and the area of the surface."""

    points: FloatArray
    radius: float
    area: float


def simple_solid(shape: str, size: Sequence[float]) -> geometry.MassProperties:
    """Return the mass properties of a shape at density 1."""
    if shape == "box":
        return geometry.box_solid(2.0 * np.array(size))
    if shape == "sphere":
        return geometry.sphere_solid(*size)
    return geometry.capsule_solid(*size) if shape == "capsule" else geometry.cylinder_solid(size[0], 2.0 * size[1])


def simple_touching(shape: str, size: Sequence[float], spacing: float, on_rims: float) -> Touching:
    """Return the points of a shape, ``spacing`` [m] apart at most, of a cylinder ``on_rims``."""
    if shape == "box":
        a, b, c = (2.0 * half for half in size)
        return Touching(geometry.box_points((a, b, c), spacing), 0.0, 2.0 * (a * b + b * c + c * a))
    r = size[0]
    if shape == "sphere":
        return Touching(geometry.sphere_points(r), r, 4.0 * np.pi * r**2)
    if shape == "capsule":
        return Touching(geometry.capsule_points(r, size[1], spacing), r, 4.0 * np.pi * r * (r + size[1]))
    return Touching(geometry.cylinder_points(r, 2.0 * size[1], on_rims), 0.0, 2.0 * np.pi * r * (r + 2.0 * size[1]))


# ----------------------------------------------------------------------------------------------------------------------

_SHAPES = "one of <box>, <cylinder>, <capsule>, <sphere>, <mesh>"


def read_origin(source: Source, node: XmlNode, place: str) -> Place:
    """Return the <origin> of an element: xyz and rpy, or quat_xyzw; without one, the frame itself."""
    origins = node.all("origin")
    if not origins:
        return here()
    if len(origins) > 1:
        source.fail(place, "several <origin>", len(origins), "one")
    source.require_known(origins[0], place, ("xyz", "rpy", "quat_xyzw"))
    position = source.numbers(origins[0], "xyz", place, 3, [0.0, 0.0, 0.0])
    if "quat_xyzw" not in origins[0].attributes:
        return position, from_rpy(source.numbers(origins[0], "rpy", place, 3, [0.0, 0.0, 0.0]))
    if "rpy" in origins[0].attributes:
        source.fail(place, "an <origin> turned twice", "rpy and quat_xyzw", "one of them")
    quaternion = source.numbers(origins[0], "quat_xyzw", place, 4, None)
    if not abs(float(quaternion @ quaternion) - 1.0) < 1e-3:
        source.fail(f"{place}: <origin quat_xyzw>", "not a unit quaternion", quaternion.tolist(), "length 1")
    return position, from_quaternion(quaternion[[3, 0, 1, 2]])


def read_shape(
    source: Source, meshes: MeshFiles, node: XmlNode, link: str, place: str, *, collision: bool, read: bool, still: bool
) -> RobotGeometry | None:
    """Return the shape of a <visual> or <collision>; None if it is left out, which is noted.

    Parameters
    ----------
    source, meshes : of the file
    node : the element
    link, place : for shapes and errors
    collision : whether it matters to the motion
    read : whether to read a mesh, instead of only looking for its file
    still : whether the link stands still, as what has a plane does
    """
    place = f"{place}: line {node.line}, <{node.tag}>"
    given = node.all("geometry")
    shapes = [child for child in given[0].children] if len(given) == 1 else []
    if len(shapes) != 1:
        source.fail(place, "does not have one shape", len(shapes), f"<geometry> with {_SHAPES}")
    for child in node.children:
        if child.tag not in ("origin", "geometry", "material"):
            source.note(place, f"<{child.tag}>")
    shape, (position, rotation) = shapes[0], read_origin(source, node, place)
    if shape.tag == "mesh":
        return _mesh(source, meshes, node, shape, (position, rotation), link, place, collision, read)
    size: tuple[float, ...]
    if shape.tag == "box":
        size = tuple(source.numbers(shape, "size", place, 3, None) / 2.0)
    elif shape.tag in ("cylinder", "capsule"):
        size = (source.number(shape, "radius", place), source.number(shape, "length", place) / 2.0)
    elif shape.tag == "sphere":
        size = (source.number(shape, "radius", place),)
    elif shape.tag == "plane" and still:  # of PyBullet
        normal = unit_vector(source.numbers(shape, "normal", place, 3, [0.0, 0.0, 1.0]))
        size, rotation = (), rotation @ np.column_stack([*plane_axes(normal), normal])
    else:
        _left(source, place, f"<{shape.tag}> is not a shape that is read, which are {_SHAPES}", collision)
        return None
    if size and min(size) <= 0.0:
        _left(source, place, f"<{shape.tag}> without extent: {dict(shape.attributes)}", collision)
        return None
    size = tuple(float(number) for number in size)
    return RobotGeometry(shape.tag, size, position, rotation, name=node.attributes.get("name", ""), origin=link)


def _left(source: Source, place: str, text: str, collision: bool) -> None:
    """Note a shape that is left out."""
    if collision:
        source.doubt("shape", place, text)
    else:
        source.note(place, text)


def _mesh(
    source: Source,
    meshes: MeshFiles,
    node: XmlNode,
    shape: XmlNode,
    at: Place,
    link: str,
    place: str,
    collision: bool,
    read: bool,
) -> RobotGeometry | None:
    name = shape.attributes.get("filename", "")
    if not name:
        source.fail(place, "a <mesh> without a file", expected="<mesh filename=...>")
    scale: FloatArray = source.numbers(shape, "scale", place, 3, [1.0, 1.0, 1.0])
    if not scale.all():
        source.fail(f"{place}: <mesh scale>", "a scale of zero", scale.tolist(), "three numbers, none zero")
    vertices = triangles = None
    file = name
    try:
        if read:
            path, surface = meshes.read(name, scale)
            file, vertices, triangles = str(path), surface.vertices, surface.triangles
            _note_up(path, source, place)
        elif (found := meshes.find(name)) is None:
            raise InputError(f"mesh '{name}' is not found")
        else:
            file = str(found)
    except InputError as error:
        reason = error.message if error.file is None else f"mesh {error.file}: {error.message}"
        if collision:
            if error.expected is not None:
                reason += f"; expected {error.expected}"
            source.doubt("mesh", place, reason)
            return None
        source.note(place, reason)
    title = node.attributes.get("name", "")
    return RobotGeometry("mesh", (), *at, vertices, triangles, name=title, file=file, origin=link)


def unit_axis(source: Source, joint: XmlNode, place: str) -> FloatArray:
    """Return the direction of the <axis> of a joint, x without one; another length than 1 is noted."""
    axes = joint.all("axis")
    if len(axes) > 1:
        source.fail(place, "several <axis>", len(axes), "one")
    for node in axes:
        if "xyz" not in node.attributes:  # a misspelt one, whose default would be taken
            source.require_known(node, place, ("xyz",))
    axis = source.numbers(axes[0], "xyz", place, 3, None) if axes else np.array([1.0, 0.0, 0.0])
    if not axis.any():
        source.fail(f"{place}: <axis xyz>", "an axis without direction", axis.tolist(), "a unit vector")
    unit = unit_vector(axis)
    length = float(np.abs(axis).max() / np.abs(unit).max())
    if abs(length - 1.0) > 1e-4:
        source.note(f"{place}: <axis xyz>", f"its length {length:.6g}; only its direction counts")
    return unit
