"""Surfaces of links for pictures: triangles of their shapes, in the link's frame."""

from __future__ import annotations

import numpy as np

from add.scene.robots.model import RobotGeometry, RobotLink
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
    import trimesh  # half a second, and few scenes need it

    if shape.shape == "box":
        made = trimesh.creation.box(2.0 * np.array(shape.size))
    elif shape.shape == "sphere":
        made = trimesh.creation.icosphere(2, shape.size[0])
    elif shape.shape == "capsule":
        made = trimesh.creation.capsule(2.0 * shape.size[1], shape.size[0], count=(_SIDES, _SIDES))
        made.vertices[:, 2] -= 0.5 * (made.vertices[:, 2].min() + made.vertices[:, 2].max())
    else:
        made = trimesh.creation.cylinder(shape.size[0], 2.0 * shape.size[1], sections=_SIDES)
    return np.asarray(made.vertices), np.asarray(made.faces, dtype=np.int64)
