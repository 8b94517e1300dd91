"""The boundary of a volume mesh."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from add.geometry.elements import TET10, SoftMesh
from add.typing import FloatArray, IntArray


class Surface(NamedTuple):
    """Boundary of a mesh as flat triangles over its nodes.

    `triangles` (nt, 3): outward oriented (right-hand rule); a tet10 face gives four, a hex8 face two. `nodes` (ns,):
    the sorted nodes on the boundary. `areas` (ns,): rest area of each of `nodes` [m^2], a third of the area of every
    sub-triangle round it (for quadrilaterals the mean over both ways to cut them); they sum to the total area.
    """

    triangles: IntArray
    nodes: IntArray
    areas: FloatArray


class Facets(NamedTuple):
    """Boundary of a mesh as flat triangles that follow its curved faces.

    `triangles` (nt, 3): outward oriented, indices into the corners. `corners` (nc, ns), sparse: weights of the nodes in
    each corner, that are the shape functions there. `nodes` (ns,): the sorted nodes on the boundary.
    """

    triangles: IntArray
    corners: sparse.csr_array
    nodes: IntArray


#: Parts into which an edge of a curved face is cut: its triangles leave 1/16 of the gap that those of its nodes leave.
_CUTS = 8


class BoundaryFaces(NamedTuple):
    """Faces that belong to exactly one element: `elements` (nb,), and `faces` (nb, nodes of a face), mesh nodes."""

    elements: IntArray
    faces: IntArray


def face_multiplicity(mesh: SoftMesh) -> IntArray:
    """Count the elements that have each face of each element, (ne, nf): 1 on the boundary, 2 inside."""
    return _pairs(_corners(mesh))[1].reshape(len(mesh.cells), -1)


def _corners(mesh: SoftMesh) -> IntArray:
    """Corners of each face of each element, one face after the other, (ne nf, 3 or 4)."""
    n_corners = 4 if mesh.family.faces.shape[1] == 4 else 3
    return np.asarray(mesh.cells[:, mesh.family.faces[:, :n_corners]].reshape(-1, n_corners))


def _pairs(corners: IntArray) -> tuple[IntArray, IntArray]:
    """Faces that two elements share, as two numbers each (2, k), and how many elements have each face."""
    _, slot, count = np.unique(np.sort(corners, axis=1), axis=0, return_inverse=True, return_counts=True)
    order, often = np.argsort(slot.ravel(), kind="stable"), count[slot.ravel()]
    return order[often[order] == 2].reshape(-1, 2).T, often


def folded_faces(mesh: SoftMesh) -> tuple[IntArray, IntArray]:
    """Inner faces that have both of their elements on the same side, as two arrays (k,) of elements.

    Two elements of positive volume on either side of a face go round its corners in opposite directions.
    """
    corners, n_faces = _corners(mesh), len(mesh.family.faces)
    first = corners.argmin(axis=1)[:, None]
    after, before = (np.take_along_axis(corners, (first + k) % corners.shape[1], axis=1) for k in (1, -1))
    forwards = (after < before).ravel()
    a, b = _pairs(corners)[0]
    wrong = forwards[a] == forwards[b]
    return a[wrong] // n_faces, b[wrong] // n_faces


class Neighbours(NamedTuple):
    """Inner faces: the two `elements` of each (nf, 2), its area [m^2], how far apart their middles are [m]."""

    elements: IntArray
    areas: FloatArray
    distances: FloatArray


def neighbours(mesh: SoftMesh) -> Neighbours:
    """Pairs of elements that share a face, curved ones taken as flat."""
    family = mesh.family
    one, other = _pairs(_corners(mesh))[0]
    faces = mesh.cells[one // len(family.faces)][np.arange(one.size)[:, None], family.faces[one % len(family.faces)]]
    cuts = faces[:, family.face_area_triangles]
    areas = triangle_areas(mesh.points, cuts.reshape(-1, 3)).reshape(cuts.shape[:2]).sum(axis=1)
    elements = np.stack([one, other], axis=1) // len(family.faces)
    middles = mesh.points[mesh.cells].mean(axis=1)[elements]
    return Neighbours(elements, areas * family.face_area_factor, np.linalg.norm(np.ptp(middles, axis=1), axis=1))


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


def facets(mesh: SoftMesh) -> Facets:
    """Flat triangles close to the boundary of a mesh, oriented as those of `surface`.

    A face of a quadratic tetrahedron, x = sum_a N_a(l) x_a with N_a = l_a (2 l_a - 1) at corners and 4 l_a l_b between
    two of them (Zienkiewicz and Taylor 2000, sec. 8.8), gives 64; others give those of `surface`. Neighbours have
    corners of their own on the edge that they share, at the same places.
    """
    outline = surface(mesh)
    count = len(outline.nodes)
    if mesh.family is not TET10:
        identity = sparse.csr_array(sparse.identity(count, format="csr"))
        return Facets(np.searchsorted(outline.nodes, outline.triangles), identity, outline.nodes)
    faces = np.searchsorted(outline.nodes, boundary_faces(mesh).faces)
    places, cut = _lattice(_CUTS)
    a, b, c = places.T
    shape = np.stack([a * (2 * a - 1), b * (2 * b - 1), c * (2 * c - 1), 4 * a * b, 4 * b * c, 4 * c * a], axis=1)
    where = np.broadcast_to(faces[:, None, :], (len(faces), *shape.shape))
    ends = np.arange(0, where.size + 1, shape.shape[1])
    values = np.broadcast_to(shape, where.shape).ravel()
    corners = sparse.csr_array((values, where.ravel(), ends), shape=(len(ends) - 1, count))
    first = len(shape) * np.arange(len(faces))
    return Facets((first[:, None, None] + cut).reshape(-1, 3), corners, outline.nodes)


def _lattice(cuts: int) -> tuple[FloatArray, IntArray]:
    """Return barycentric places (m, 3) of a triangle with its edges cut, and the triangles (cuts^2, 3) between them."""
    number: dict[tuple[int, int], int] = {}
    for j in range(cuts + 1):
        for i in range(cuts + 1 - j):
            number[i, j] = len(number)
    at = np.array(list(number)) / cuts
    up = [(number[i, j], number[i + 1, j], number[i, j + 1]) for i, j in number if i + j < cuts]
    down = [(number[i + 1, j], number[i + 1, j + 1], number[i, j + 1]) for i, j in number if i + j < cuts - 1]
    return np.column_stack([1.0 - at.sum(axis=1), at]), np.array(up + down)
