"""The boundary of a volume mesh."""

from typing import NamedTuple

import numpy as np

from add.geometry.elements import FloatArray, IntArray
from add.geometry.volume_mesh import SoftMesh


class Surface(NamedTuple):
    """Boundary of a mesh as flat triangles over its nodes.

    `triangles` (nt, 3): outward oriented (right-hand rule); a tet10 face gives four, a hex8 face two. `nodes` (ns,):
    the sorted nodes on the boundary. `areas` (ns,): rest area of each of `nodes` [m^2], a third of the area of every
    sub-triangle round it (for quadrilaterals the mean over both ways to cut them); they sum to the total area.
    """

    triangles: IntArray
    nodes: IntArray
    areas: FloatArray


class BoundaryFaces(NamedTuple):
    """Faces that belong to exactly one element: `elements` (nb,), and `faces` (nb, nodes of a face), mesh nodes."""

    elements: IntArray
    faces: IntArray


def face_multiplicity(mesh: SoftMesh) -> IntArray:
    """Count the elements that have each face of each element, (ne, nf): 1 on the boundary, 2 inside."""
    family = mesh.family
    n_corners = 4 if family.faces.shape[1] == 4 else 3
    corners = np.sort(mesh.cells[:, family.faces[:, :n_corners]].reshape(-1, n_corners), axis=1)
    _, slot, count = np.unique(corners, axis=0, return_inverse=True, return_counts=True)
    return count[slot.ravel()].reshape(len(mesh.cells), -1)


def folded_faces(mesh: SoftMesh) -> tuple[IntArray, IntArray]:
    """Inner faces that have both of their elements on the same side, as two arrays (k,) of elements.

    Two elements of positive volume on either side of a face go round its corners in opposite directions.
    """
    family = mesh.family
    n_corners = 4 if family.faces.shape[1] == 4 else 3
    corners = mesh.cells[:, family.faces[:, :n_corners]].reshape(-1, n_corners)
    first = corners.argmin(axis=1)[:, None]
    after = np.take_along_axis(corners, (first + 1) % n_corners, axis=1)
    before = np.take_along_axis(corners, (first - 1) % n_corners, axis=1)
    forwards = (after < before).ravel()
    _, slot, count = np.unique(np.sort(corners, axis=1), axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(slot.ravel(), kind="stable")
    a, b = order[count[slot.ravel()][order] == 2].reshape(-1, 2).T
    wrong = forwards[a] == forwards[b]
    return a[wrong] // len(family.faces), b[wrong] // len(family.faces)


def boundary_faces(mesh: SoftMesh) -> BoundaryFaces:
    """Faces that belong to exactly one element, oriented outward."""
    element, face = np.nonzero(face_multiplicity(mesh) == 1)
    return BoundaryFaces(element, mesh.cells[element[:, None], mesh.family.faces[face]])


def triangle_areas(points: FloatArray, triangles: IntArray) -> FloatArray:
    """Areas of flat triangles, (nt,) [m^2]."""
    a, b, c = points[triangles.T]
    return 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1)


def surface(mesh: SoftMesh) -> Surface:
    """Boundary triangles, nodes and nodal rest areas of a mesh.

    The mesh must be oriented (see `validate`), or the triangles point inward.
    """
    family = mesh.family
    faces = boundary_faces(mesh).faces
    triangles = faces[:, family.face_triangles].reshape(-1, 3)
    cuts = faces[:, family.face_area_triangles].reshape(-1, 3)
    thirds = np.repeat(triangle_areas(mesh.points, cuts) * (family.face_area_factor / 3.0), 3)
    areas = np.bincount(cuts.ravel(), thirds, minlength=mesh.n_nodes)
    nodes = np.unique(faces)
    return Surface(triangles, nodes, areas[nodes].astype(np.float64))
