"""Points and shapes by which links touch."""

from collections.abc import Sequence

import numpy as np

from add.bodies import CarriedShape, LinkBody
from add.errors import InputError
from add.geometry.boundary import triangle_areas
from add.geometry.triangle_surface import CollisionMesh, box_surface, cylinder_surface
from add.kernels import shape_codes
from add.scene.robots.model import Robot, RobotGeometry, RobotLink
from add.scene.robots.shapes import kernel_shape, simple_touching
from add.scene.spec.articulated import ArticulatedBodySpec
from add.typing import FloatArray, IntArray

#: Sides of round shapes.
_SIDES = 16


def surface_of(link: RobotLink) -> tuple[FloatArray, IntArray]:
    """Return vertices (n, 3) and triangles (m, 3) of the shapes that are seen, or of those that touch."""
    vertices, triangles, first = [np.zeros((0, 3))], [np.zeros((0, 3), dtype=np.int64)], 0
    for shape in _seen(link):
        if shape.shape == "plane":
            continue
        points, faces = _triangles(shape)
        vertices.append(points @ shape.rotation.T + shape.position)
        triangles.append(faces + first)
        first += points.shape[0]
    return np.concatenate(vertices), np.concatenate(triangles)


def _seen(link: RobotLink) -> list[RobotGeometry]:
    """Return the visual shapes of each link of the file that was merged into this one, or those that touch."""
    shown: list[RobotGeometry] = []
    for origin in dict.fromkeys(shape.origin for shape in (*link.visual, *link.collision)):
        visual = [shape for shape in link.visual if shape.origin == origin]
        read = [shape for shape in visual if shape.shape != "mesh" or shape.vertices is not None]
        solid = [shape for shape in link.collision if shape.origin == origin]
        shown += read if (read and len(read) == len(visual)) or not solid else solid
    return shown


def _triangles(shape: RobotGeometry) -> tuple[FloatArray, IntArray]:
    if shape.shape == "mesh":
        assert shape.vertices is not None and shape.triangles is not None
        return shape.vertices, np.asarray(shape.triangles, dtype=np.int64)
    if shape.shape == "box":
        return box_surface(2.0 * np.array(shape.size))
    if shape.shape == "cylinder":
        return cylinder_surface(*shape.size)
    radius, half = shape.size[0], 0.0 if shape.shape == "sphere" else shape.size[1]
    rise = np.linspace(-0.5 * np.pi, 0.5 * np.pi, _SIDES + 2)[1:-1]
    return _revolved(radius * np.cos(rise), radius * np.sin(rise) + half * np.sign(rise), radius + half)


def _revolved(radii: FloatArray, heights: FloatArray, end: float) -> tuple[FloatArray, IntArray]:
    """Return the closed surface of rings (k,) about z, from below up, with poles at -+ ``end``."""
    around = 2.0 * np.pi * np.arange(_SIDES) / _SIDES
    rings = np.stack([np.outer(radii, np.cos(around)), np.outer(radii, np.sin(around)),
                      np.repeat(heights[:, None], _SIDES, axis=1)], axis=2)  # fmt: skip
    vertices = np.concatenate([rings.reshape(-1, 3), [[0.0, 0.0, -end], [0.0, 0.0, end]]])
    here = np.arange(rings[..., 0].size, dtype=np.int64).reshape(-1, _SIDES)
    after = np.roll(here, -1, axis=1)
    a, b, c, d = (part.ravel() for part in (here[:-1], after[:-1], after[1:], here[1:]))
    lowest, highest = np.full(_SIDES, len(vertices) - 2), np.full(_SIDES, len(vertices) - 1)
    faces = [(a, b, c), (a, c, d), (after[0], here[0], lowest), (here[-1], after[-1], highest)]
    return vertices, np.concatenate([np.stack(face, axis=1) for face in faces])


#: Of a bone: half its width, and where it is widest, in lengths.
_WIDTH, _WIDEST = 0.08, 0.2
_FACES = np.array([[0, 2, 1], [0, 3, 2], [0, 4, 3], [0, 1, 4], [5, 1, 2], [5, 2, 3], [5, 3, 4], [5, 4, 1]])
_X, _Y, _Z = np.eye(3)


def bones_of(robot: Robot) -> dict[str, tuple[FloatArray, IntArray]]:
    """Return vertices (n, 3) and triangles (m, 3) in the frame of each link with a mass or a joint further out.

    A bone leads from the link's own joint to each joint that it carries elsewhere, and to the centre of mass of a link
    that carries none. Where all coincide, an octahedron as wide as the link's gyration stands for it.
    """
    carried = {link.name: [j.position for j in robot.joints if j.parent == link.name] for link in robot.links}
    return {link.name: _bones(link, carried[link.name]) for link in robot.links}


def _bones(link: RobotLink, ends: Sequence[FloatArray]) -> tuple[FloatArray, IntArray]:
    ends = [end for end in ends if np.linalg.norm(end) > 0.0] or [link.centre]
    ends = [end for end in ends if np.linalg.norm(end) > 0.0]
    if ends:
        parts = [_bone(end) for end in ends]
    elif link.mass > 0.0:
        radius = np.sqrt(0.5 * np.trace(link.inertia) / link.mass)
        parts = [link.centre + radius * np.array([-_Z, _X, _Y, -_X, -_Y, _Z])] if radius > 0.0 else []
    else:
        parts = []
    faces = [_FACES + 6 * k for k in range(len(parts))]
    return np.concatenate([np.zeros((0, 3)), *parts]), np.concatenate([np.zeros((0, 3), dtype=np.int64), *faces])


def _bone(end: FloatArray) -> FloatArray:
    """Return the corners (6, 3) of an octahedron from the origin to ``end``: a corner, a ring of four, a corner."""
    length = np.linalg.norm(end)
    axis = end / length
    side = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    side *= _WIDTH * length / np.linalg.norm(side)
    other = np.cross(axis, side)
    middle = _WIDEST * end
    return np.array([np.zeros(3), middle + side, middle + other, middle - side, middle - other, end])


def link_body(tree: str, link: RobotLink, body: ArticulatedBodySpec, at: str) -> LinkBody:
    """Return a link with the points and shapes of its geometry.

    Raises
    ------
    InputError
        For a plane on a link, and meshes that enclose nothing.
    """
    points, shapes = [np.zeros((0, 3))], []
    columns = [np.zeros((0, 3))]  # radius, area and shape of each point
    for k, shape in enumerate(link.collision):
        if shape.shape == "plane":
            raise InputError("a link has no plane", place=f"{at}.shapes.{k}")
        try:
            if shape.shape == "mesh" and (
                body.meshes == "hull" or (body.meshes is None and no_solid(shape) is not None)
            ):
                shape = shape.hull
            places, radius, area, carried = _touching(shape, body.spacing or np.inf)
        except InputError as error:
            error.place = error.place or f"{at}.shapes.{k}"
            raise
        points.append(places @ shape.rotation.T + shape.position)
        columns.append(np.tile([radius, area / max(len(places), 1), k], (len(places), 1)))
        shapes.append(carried)
    radii, areas, numbers = np.concatenate(columns).T.copy()
    return LinkBody(
        tree,
        link.name,
        np.concatenate(points),
        radii,
        areas,
        tuple(shapes),
        *surface_of(link),
        shape_of=numbers.astype(np.int64),
    )


def no_solid(shape: RobotGeometry) -> InputError | None:
    """Return why a mesh cannot touch by itself; None of one that can."""
    try:
        _solid(shape)
    except InputError as error:
        return error
    return None


def _solid(shape: RobotGeometry) -> CollisionMesh:
    try:
        return shape.solid
    except InputError as error:
        error.file = shape.file or shape.name
        error.expected = f'{error.expected}, or "meshes": "hull"'
        raise


def _touching(shape: RobotGeometry, spacing: float) -> tuple[FloatArray, float, float, CarriedShape]:
    """Return points and their radius in the shape's frame, the area of the surface, and what points of others meet."""
    if shape.shape == "mesh":
        assert shape.vertices is not None and shape.triangles is not None
        mesh, area = _solid(shape), float(triangle_areas(shape.vertices, shape.triangles).sum())
        carried = CarriedShape(shape_codes.MESH, mesh.half_extent, shape.rotation, shape.position, mesh)
        return shape.vertices, 0.0, area, carried
    code = kernel_shape(shape.shape, shape.size)
    carried = CarriedShape(*code, shape.rotation, shape.position, in_theta=shape.in_theta)
    return *simple_touching(shape.shape, shape.size, spacing, min(spacing, 0.5 * shape.size[0])), carried
