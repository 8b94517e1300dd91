"""The boundary of a volume mesh, and quality of meshes: what cannot be simulated is refused, what can be mended is."""

from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy import sparse

from add.errors import InputError
from add.geometry.elements import TET10, SoftMesh, determinants, element_volumes, volume
from add.typing import BoolArray, FloatArray, IntArray


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


def surface(mesh: SoftMesh, within: BoolArray | None = None) -> Surface:
    """Boundary triangles, nodes and nodal rest areas of a mesh, or of its faces whose nodes are all ``within`` (n,).

    The mesh must be oriented (see `validate`), or the triangles point inward.
    """
    family = mesh.family
    faces = boundary_faces(mesh).faces
    if within is not None:
        faces = faces[within[faces].all(axis=1)]
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
    pairs = [(i, j) for j in range(cuts + 1) for i in range(cuts + 1 - j)]
    number, at = {pair: k for k, pair in enumerate(pairs)}, np.array(pairs) / cuts
    up = [(number[i, j], number[i + 1, j], number[i, j + 1]) for i, j in number if i + j < cuts]
    down = [(number[i + 1, j], number[i + 1, j + 1], number[i, j + 1]) for i, j in number if i + j < cuts - 1]
    return np.column_stack([1.0 - at.sum(axis=1), at]), np.array(up + down)


#: An element is degenerate where its volume density falls below this times its longest edge cubed [-].
DEGENERATE_RATIO = 1e-9


class Validated(NamedTuple):
    """A mesh that may be simulated.

    `mesh`; `n_dropped`: nodes that no element used; `n_flipped`: elements whose node order was reversed; `kept`
    (n,): the old number of every node of `mesh`.
    """

    mesh: SoftMesh
    n_dropped: int
    n_flipped: int
    kept: IntArray


def numbers(indices: IntArray, limit: int = 8) -> str:
    """Write a list of numbers for a message: all of them, or the first few and how many there are."""
    listed = ", ".join(str(int(i)) for i in indices[:limit])
    return listed if len(indices) <= limit else f"{listed}, ... ({len(indices)} in all)"


def edge_lengths(mesh: SoftMesh) -> FloatArray:
    """Lengths of the straight edges of every element, (ne, n_edges) [m]."""
    ends = mesh.points[mesh.cells[:, mesh.family.edges]]
    return np.linalg.norm(ends[:, :, 1] - ends[:, :, 0], axis=-1)


def relative_determinants(mesh: SoftMesh) -> FloatArray:
    """Least det(dX/dxi) over all quadrature points, times the reference volume, over longest edge^3, (ne,) [-]."""
    family = mesh.family
    least = np.minimum(
        determinants(mesh, family.quadrature).min(axis=1), determinants(mesh, family.mass_quadrature).min(axis=1)
    )
    longest = edge_lengths(mesh).max(axis=1)
    return least * family.quadrature.weights.sum() / np.maximum(longest, np.finfo(np.float64).tiny ** 0.25) ** 3


def _check_numbers(mesh: SoftMesh) -> None:
    if mesh.n_elements == 0:
        raise InputError("the mesh has no elements", expected="at least one")
    outside = np.flatnonzero(((mesh.cells < 0) | (mesh.cells >= mesh.n_nodes)).any(axis=1))
    if len(outside):
        worst = mesh.cells[outside[0]]
        raise InputError(
            f"element {numbers(outside)} (counted from 0) names a node that is not there",
            found=int(worst[(worst < 0) | (worst >= mesh.n_nodes)][0]),
            expected=f"0 to {mesh.n_nodes - 1}",
        )


def _check_topology(mesh: SoftMesh) -> None:
    order = np.sort(mesh.cells, axis=1)
    repeated = np.flatnonzero((np.diff(order, axis=1) == 0).any(axis=1))
    if len(repeated):
        raise InputError(f"element {numbers(repeated)} (counted from 0) is degenerate: it has one node twice")
    _, first, slot = np.unique(order, axis=0, return_index=True, return_inverse=True)
    original = first[slot.ravel()]
    copies = np.flatnonzero(original != np.arange(mesh.n_elements))
    if len(copies):
        raise InputError(
            f"element {numbers(copies)} (counted from 0) is a duplicate: "
            f"it has the same nodes as element {numbers(original[copies])}"
        )
    crowded = np.flatnonzero((face_multiplicity(mesh) > 2).any(axis=1))
    if len(crowded):
        raise InputError(f"element {numbers(crowded)} (counted from 0) has a face that three or more elements share")


def _check_tangles(mesh: SoftMesh, inverted: BoolArray) -> None:
    """Refuse elements that overlap their neighbours; `mesh` has positive volumes only, `inverted` those it had not."""
    a, b = folded_faces(mesh)
    if not len(a):
        return
    # Of two neighbours on one side of a face, one went round it against the other before: the rarer kind is to blame.
    touched = np.unique(np.concatenate([a, b]))
    rarer = inverted if inverted.mean() <= 0.5 else ~inverted
    named = touched[rarer[touched]] if rarer[touched].any() else touched
    what = "1 element overlaps a neighbour" if len(named) == 1 else f"{len(named)} elements overlap their neighbours"
    raise InputError(
        f"the mesh is tangled: {what}, {numbers(named)} (counted from 0); a node is probably misplaced",
        found=f"{len(a)} faces with both of their elements on one side of them",
        expected="none",
    )


def validate(mesh: SoftMesh) -> Validated:
    """Check a mesh, drop its unused nodes and reverse inverted elements.

    An element of negative volume is given the opposite node order (tet10: mid-edge nodes along with the corners): there
    are programs that count the other way round, and files joined from both. An element that a misplaced node has turned
    inside out is not mended like this, though its volume would be positive then: it would overlap its neighbours, and
    the body would be heavier than its shape. So that is an error.

    Raises
    ------
    InputError
        naming elements (counted from 0) or nodes: no elements; node numbers out of range; coordinates that are not
        finite; a node twice in one element; duplicate elements; a face shared by more than two elements; two elements
        on the same side of a face; degenerate
        elements (det(dX/dxi) at some quadrature point below `DEGENERATE_RATIO` of the longest edge cubed, which
        includes hexahedra and curved tetrahedra that fold over).
    """
    _check_numbers(mesh)
    kept, slot = np.unique(mesh.cells, return_inverse=True)
    cells = slot.reshape(mesh.cells.shape)
    n_dropped = mesh.n_nodes - len(kept)
    mesh = SoftMesh(mesh.points[kept], cells, mesh.family)
    broken = kept[~np.isfinite(mesh.points).all(axis=1)]
    if len(broken):
        raise InputError(f"the position of node {numbers(broken)} (counted from 0) is not finite")
    _check_topology(mesh)
    inverted = element_volumes(mesh) < 0.0
    if inverted.any():
        cells = np.where(inverted[:, None], mesh.cells[:, mesh.family.flip], mesh.cells)
        mesh = SoftMesh(mesh.points, cells, mesh.family)
    _check_tangles(mesh, inverted)
    ratio = relative_determinants(mesh)
    degenerate = np.flatnonzero(~(ratio > DEGENERATE_RATIO))
    if len(degenerate):
        raise InputError(
            f"element {numbers(degenerate)} (counted from 0) is degenerate: flat, folded or empty",
            found=f"volume / edge^3 = {ratio[degenerate].min():.2e}",
            expected=f"more than {DEGENERATE_RATIO:g}",
        )
    return Validated(mesh, n_dropped, int(inverted.sum()), kept)


class MeshQuality(NamedTuple):
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
            f"{self.nodes} nodes, {self.elements} tetrahedra, volume {self.volume:.5g} m^3",
            f"edges {middle:.3g} m (5 to 95 %: {low:.3g} to {high:.3g} m)",
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
