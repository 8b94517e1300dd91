"""Quality of tetrahedral meshes: shapes, angles, edges."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import final

import numpy as np

from add.geometry.elements import SoftMesh
from add.geometry.quadrature import volume
from add.typing import FloatArray


@final
@dataclass(frozen=True, eq=False)
class MeshQuality:
    """Shape of the elements of a mesh of tetrahedra.

    Attributes
    ----------
    nodes, elements : counts
    volume : of the mesh, in the cube of its unit
    edges : (n_edges of all elements,) lengths
    shapes : (ne,) 3 r_in / r_circum, one for the regular tetrahedron, zero for a flat one [-]
    smallest_angle, largest_angle : between two faces [deg]
    """

    nodes: int
    elements: int
    volume: float
    edges: FloatArray
    shapes: FloatArray
    smallest_angle: float
    largest_angle: float

    def lines(self) -> list[str]:
        """Return it in words."""
        low, middle, high = np.percentile(self.edges, [5, 50, 95])
        poor = int((self.shapes < 0.1).sum())
        return [
            f"{self.nodes} nodes, {self.elements} tetrahedra, volume {self.volume:.5g}",
            f"edges {middle:.3g} (5 to 95 %: {low:.3g} to {high:.3g})",
            f"shape 3 r_in / r_circum: {self.shapes.min():.2f} at worst, {np.median(self.shapes):.2f} in the middle; "
            f"{poor} elements below 0.1",
            f"angles between faces {self.smallest_angle:.0f} to {self.largest_angle:.0f} degrees",
        ]


def mesh_quality(mesh: SoftMesh) -> MeshQuality:
    """Return the quality of the corners of a tetrahedral mesh (Shewchuk 2002)."""
    at = mesh.points[mesh.cells[:, :4]]
    sides = np.stack([at[:, b] - at[:, a] for a, b in combinations(range(4), 2)], axis=1)
    lengths = np.linalg.norm(sides, axis=2)
    a, b, c = (at[:, k] - at[:, 0] for k in (1, 2, 3))
    six = np.abs(np.einsum("ij,ij->i", a, np.cross(b, c)))
    normals = np.stack([np.cross(at[:, j] - at[:, i], at[:, k] - at[:, i]) for i, j, k in _FACES], axis=1)
    areas = 0.5 * np.linalg.norm(normals, axis=2)
    inner = 0.5 * six / np.maximum(areas.sum(axis=1), 1e-300)
    squares = [np.einsum("ij,ij->i", v, v)[:, None] for v in (a, b, c)]
    centre = squares[0] * np.cross(b, c) + squares[1] * np.cross(c, a) + squares[2] * np.cross(a, b)
    outer = np.linalg.norm(centre, axis=1) / np.maximum(2.0 * six, 1e-300)
    unit = normals / np.maximum(np.linalg.norm(normals, axis=2, keepdims=True), 1e-300)
    # Normals point outward all or inward all, so that the angle inside is the supplement of that between them.
    cosines = [-np.einsum("ij,ij->i", unit[:, i], unit[:, j]) for i, j in combinations(range(4), 2)]
    angles = np.degrees(np.arccos(np.clip(np.stack(cosines, axis=1), -1.0, 1.0)))
    shapes = 3.0 * inner / np.maximum(outer, 1e-300)
    return MeshQuality(
        mesh.n_nodes, mesh.n_elements, volume(mesh), lengths.ravel(), shapes, float(angles.min()), float(angles.max())
    )


#: Faces of a tetrahedron, all outward for a positive volume.
_FACES = ((0, 2, 1), (0, 1, 3), (1, 2, 3), (2, 0, 3))
