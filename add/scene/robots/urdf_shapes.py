"""Shapes of a URDF: <visual> and <collision>."""

import numpy as np

from add.errors import InputError
from add.scene.robots.inertia import Place, from_quaternion, from_rpy, here, plane_axes
from add.scene.robots.mesh_files import MeshFiles
from add.scene.robots.model import RobotGeometry
from add.scene.robots.xml_file import Source, XmlNode
from add.ties import unit_vector
from add.typing import FloatArray

_SHAPES = "one of <box>, <cylinder>, <capsule>, <sphere>, <mesh>"


def read_origin(source: Source, node: XmlNode, place: str) -> Place:
    """Return the <origin> of an element: xyz and rpy, or quat_xyzw; without one, the frame itself."""
    found = node.all("origin")
    if not found:
        return here()
    if len(found) > 1:
        source.fail(place, "several <origin>", len(found), "one")
    source.require_known(found[0], place, ("xyz", "rpy", "quat_xyzw"))
    position = source.numbers(found[0], "xyz", place, 3, [0.0, 0.0, 0.0])
    if "quat_xyzw" not in found[0].attributes:
        return position, from_rpy(source.numbers(found[0], "rpy", place, 3, [0.0, 0.0, 0.0]))
    if "rpy" in found[0].attributes:
        source.fail(place, "an <origin> turned twice", "rpy and quat_xyzw", "one of them")
    quaternion = source.numbers(found[0], "quat_xyzw", place, 4, None)
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
    geometry = node.all("geometry")
    shapes = [child for child in geometry[0].children] if len(geometry) == 1 else []
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
    found = joint.all("axis")
    if len(found) > 1:
        source.fail(place, "several <axis>", len(found), "one")
    for node in found:
        if "xyz" not in node.attributes:  # a misspelt one, whose default would be taken
            source.require_known(node, place, ("xyz",))
    axis = source.numbers(found[0], "xyz", place, 3, None) if found else np.array([1.0, 0.0, 0.0])
    if not axis.any():
        source.fail(f"{place}: <axis xyz>", "an axis without direction", axis.tolist(), "a unit vector")
    unit = unit_vector(axis)
    length = float(np.abs(axis).max() / np.abs(unit).max())
    if abs(length - 1.0) > 1e-4:
        source.note(f"{place}: <axis xyz>", f"its length {length:.6g}; only its direction counts")
    return unit
