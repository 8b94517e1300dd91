"""Meshes by which simple shapes, and what carries them, meet the surfaces of others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from add.bodies.base import CarriedShape, ContactMesh
from add.geometry import box_surface, capsule_points, cylinder_surface
from add.geometry.collision_mesh import CollisionMesh
from add.kernels.distance import BOX, CAPSULE, CYLINDER, SPHERE

_NO_EDGES = np.zeros((0, 2), dtype=np.int64)


def shape_mesh(kind: int, size: tuple[float, float, float], mesh: CollisionMesh | None = None) -> ContactMesh | None:
    """Return the mesh of a shape in its frame, of a ball or capsule points and edges with a radius; None of a plane."""
    if kind in (SPHERE, CAPSULE):
        return round_mesh(size[0], size[1] if kind == CAPSULE else 0.0)
    if kind == BOX:
        surface = box_surface(2.0 * np.array(size))
    elif kind == CYLINDER:
        surface = cylinder_surface(size[0], size[1])
    elif mesh is not None:
        return ContactMesh(mesh.vertices, None, mesh.triangles, _NO_EDGES)
    else:
        return None
    return ContactMesh(surface.vertices, None, surface.triangles, _NO_EDGES)


def round_mesh(radius: float, half_length: float) -> ContactMesh:
    """Return a ball, or a capsule along z whose points are so near that between them it is thinner by 3 %."""
    points = capsule_points(radius, half_length, 0.5 * radius) if half_length else np.zeros((1, 3))
    n = points.shape[0]
    edges = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    areas = np.full(n, 4.0 * np.pi * radius * (radius + half_length) / n)
    return ContactMesh(points, None, np.zeros((0, 3), dtype=np.int64), edges, radius, areas)


def carried_mesh(shapes: Sequence[CarriedShape]) -> ContactMesh | None:
    """Return the mesh of what a body carries, in its frame.

    None without shapes, with a plane, and where a ball or a capsule is not the only one: a mesh has one radius.
    """
    parts = []
    for shape in shapes:
        mesh = shape_mesh(shape.kind, shape.size, shape.mesh)
        if mesh is None:
            return None
        parts.append(mesh._replace(points=mesh.points @ shape.rotation.T + shape.position))
    if len(parts) < 2 or any(part.radius for part in parts):
        return parts[0] if len(parts) == 1 else None
    first = np.cumsum([0, *(part.points.shape[0] for part in parts)])
    faces = [part.faces + k for part, k in zip(parts, first, strict=False)]
    return ContactMesh(np.concatenate([part.points for part in parts]), None, np.concatenate(faces), _NO_EDGES)
