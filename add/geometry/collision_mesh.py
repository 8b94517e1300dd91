"""Closed meshes that points are tested against: pseudonormals and a tree of boxes, in one row of floats."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from add.errors import InputError
from add.geometry.triangle_surface import check_surface
from add.kernels.mesh_distance import HEAD, box_tree, layout, mesh_branch, mesh_feature
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True, eq=False)
class CollisionMesh:
    """A closed mesh as a collision shape; see `add.kernels.mesh_distance`.

    Attributes
    ----------
    vertices : (nv, 3) in the frame of the shape [m]
    triangles : (nt, 3), counter-clockwise seen from outside

    Raises
    ------
    InputError
        If the surface is open, is wound inside out or has triangles without an area.
    """

    vertices: FloatArray
    triangles: IntArray

    def __post_init__(self) -> None:
        vertices, triangles = check_surface(self.vertices, self.triangles)
        object.__setattr__(self, "vertices", vertices)
        object.__setattr__(self, "triangles", triangles)
        a, b, c = (vertices[triangles[:, k]] for k in range(3))
        normal = np.cross(b - a, c - a)
        volume = float(np.einsum("ij,ij->", a, normal)) / 6.0
        if volume <= 0.0:
            raise InputError(
                "the triangles of a collision shape are wound inside out",
                found=f"a volume of {volume:.6g} m^3",
                expected="every triangle counter-clockwise seen from outside",
            )
        flat = np.linalg.norm(normal, axis=1) == 0.0
        if flat.any():
            raise InputError(
                "a triangle of a collision shape has no area",
                found=f"{int(flat.sum())} of {len(triangles)}; the first is number {int(np.flatnonzero(flat)[0])}",
                expected="triangles with three corners that are not in a line",
            )
        uses = np.unique(np.sort(_directed(triangles), axis=1), axis=0, return_counts=True)[1]
        if (uses != 2).any():
            raise InputError(
                "more than two triangles of a collision shape share an edge",
                found=f"{int((uses != 2).sum())} of {uses.size} edges",
                expected="two triangles at every edge: split vertices where parts touch",
            )

    @property
    def half_extent(self) -> tuple[float, float, float]:
        """Half the edges of the least box about the origin of the frame that holds the mesh [m]."""
        x, y, z = (float(value) for value in np.abs(self.vertices).max(axis=0))
        return x, y, z

    @cached_property
    def row(self) -> FloatArray:
        """The mesh as the kernels take it."""
        vertices, triangles = self.vertices, self.triangles
        edges, which = np.unique(np.sort(_directed(triangles), axis=1), axis=0, return_inverse=True)
        sides = which.reshape(-1, 3)
        a, b, c = (vertices[triangles[:, k]] for k in range(3))
        of_faces = _unit(np.cross(b - a, c - a))
        of_edges = np.zeros((len(edges), 3))
        np.add.at(of_edges, sides.ravel(), np.repeat(of_faces, 3, axis=0))
        of_vertices = np.zeros_like(vertices)
        for k, (p, q, r) in enumerate(((a, b, c), (b, c, a), (c, a, b))):
            angle = np.arccos(np.clip(np.einsum("ij,ij->i", _unit(q - p), _unit(r - p)), -1.0, 1.0))
            np.add.at(of_vertices, triangles[:, k], angle[:, None] * of_faces)
        order, boxes, below = box_tree(vertices[triangles])
        counts = len(vertices), len(triangles), len(edges), len(boxes)
        at = layout(*counts)
        out = np.empty(at.size)
        out[:HEAD] = *self.half_extent, *counts
        parts = (
            vertices, triangles[order], sides[order], order, edges, of_faces, _unit(of_edges), _unit(of_vertices),
            triangles, boxes, below,
        )  # fmt: skip
        for first, part in zip(at, parts, strict=False):
            out[first : first + part.size] = part.ravel()
        return out

    def gaps(self, points: FloatArray) -> FloatArray:
        """Return the signed distances of points (n, 3) of its frame [m]."""
        return mesh_gaps(self.row, points)


def mesh_gaps(row: FloatArray, points: FloatArray) -> FloatArray:
    """Return the signed distances (n,) of points (n, 3) from the mesh of a row [m]."""
    n, H = np.zeros(3), np.zeros((3, 3))
    return np.array([mesh_branch(row, *x, mesh_feature(row, *x), 0, n, H) for x in points], dtype=float)


def row_vertices(row: FloatArray) -> FloatArray:
    """Return the vertices (nv, 3) of the mesh of a row [m]."""
    return row[HEAD : HEAD + 3 * int(row[3])].reshape(-1, 3)


def _directed(triangles: IntArray) -> IntArray:
    """Return the sides 01, 12, 20 of all triangles (3 nt, 2)."""
    return triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)


def _unit(vectors: FloatArray) -> FloatArray:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0.0, lengths, 1.0)
