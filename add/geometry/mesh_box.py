"""Meshes made without a mesher: structured boxes, and quadratic tetrahedra from linear ones."""

from collections.abc import Callable, Mapping, Sequence
from itertools import permutations, product

import numpy as np
from numpy.typing import ArrayLike

from add.errors import InputError
from add.geometry.boundary import DEGENERATE_RATIO, boundary_faces, relative_determinants, validate
from add.geometry.elements import HEX8, TET4, TET10, ElementFamily, SoftMesh
from add.geometry.shapes import box_size
from add.typing import FloatArray, IntArray


def box_mesh(
    size: ArrayLike, divisions: ArrayLike, family: ElementFamily, hollows: Sequence[ArrayLike] = ()
) -> SoftMesh:
    """Structured mesh of a box centred at the origin.

    Parameters
    ----------
    size : (3,) edge lengths [m]
    divisions : (3,) number of cells along each edge
    family : HEX8: one element a cell. TET4, TET10: six tetrahedra a cell round the same diagonal (Kuhn), which
        conform for any division.
    hollows : (2, 3) each: the cells from the first of these corners of the grid to the second are left out
    """
    lengths, counts = box_size(size), _numbers(divisions)
    if counts is None or not (counts == np.round(counts)).all() or not (counts >= 1).all():
        raise InputError("impossible divisions of a box", found=divisions, expected="three whole numbers >= 1")
    counts = counts.astype(np.int64)
    grids = [length * (np.arange(k + 1) / k - 0.5) for length, k in zip(lengths, counts, strict=True)]
    points = np.stack([g.ravel() for g in np.meshgrid(*grids, indexing="ij")], axis=-1)
    number, kept = np.arange(len(points)).reshape(*(counts + 1)), np.ones(counts, dtype=bool)
    for first, last in (np.asarray(hollow, dtype=np.int64) for hollow in hollows):
        if (first < 0).any() or (last > counts).any() or (first >= last).any():
            raise InputError("impossible hollow of a box", found=f"cells from {first.tolist()} to {last.tolist()}",
                             expected=f"two corners of the grid, within [0, 0, 0] and {counts.tolist()}")  # fmt: skip
        kept[tuple(slice(a, b) for a, b in zip(first, last, strict=True))] = False
    if not kept.any():
        raise InputError("nothing is left of a box", found="hollows that are the whole of it")
    corner = {
        (i, j, k): number[i : i + counts[0], j : j + counts[1], k : k + counts[2]][kept]
        for i, j, k in product((0, 1), repeat=3)
    }
    if family is HEX8:
        order = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)]
        return _used(points, np.stack([corner[key] for key in order], axis=-1), HEX8)
    mesh = _used(points, kuhn_tetrahedra(corner), TET4)
    return to_tet10(mesh) if family is TET10 else mesh


def kuhn_tetrahedra(corner: Mapping[tuple[int, int, int], IntArray]) -> IntArray:
    """Return six tetrahedra a cell (6 n, 4), by the corners of the cells: (0 or 1 along each axis) -> (n,) nodes."""
    tets = []
    for axes in permutations(range(3)):
        path = np.cumsum(np.concatenate([np.zeros((1, 3), dtype=int), np.eye(3, dtype=int)[list(axes)]]), axis=0)
        if np.linalg.det(np.diff(path, axis=0).astype(float)) < 0:
            path[[1, 2]] = path[[2, 1]]
        tets.append(np.stack([corner[a, b, c] for a, b, c in path.tolist()], axis=-1))
    return np.stack(tets, axis=1).reshape(-1, 4)


def _used(points: FloatArray, cells: IntArray, family: ElementFamily) -> SoftMesh:
    """Return the mesh without the nodes that no cell has."""
    nodes, number = np.unique(cells, return_inverse=True)
    return SoftMesh(points[nodes], number.reshape(cells.shape).astype(np.int64), family)


def _numbers(values: ArrayLike) -> FloatArray | None:
    """Three finite numbers, or None."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return array if array.shape == (3,) and np.isfinite(array).all() else None


def to_tet10(mesh: SoftMesh, project: Callable[[FloatArray], FloatArray] | None = None) -> SoftMesh:
    """Raise linear tetrahedra to quadratic ones with a node in the middle of each edge.

    Parameters
    ----------
    mesh : TET4 mesh; its nodes keep their numbers, mid-edge nodes follow. A TET10 mesh is returned as it is.
    project : optional, (m, 3) -> (m, 3): moves the new nodes on the boundary, for instance onto the true surface.
        Nodes of elements that this would fold stay where they were.
    """
    if mesh.family is TET10:
        return mesh
    if mesh.family is not TET4:
        raise InputError("only tetrahedra can be made quadratic", found=mesh.family.name, expected="tet4")
    ends = np.sort(mesh.cells[:, TET4.edges], axis=2)
    pairs, slot = np.unique(ends.reshape(-1, 2), axis=0, return_inverse=True)
    cells = np.concatenate([mesh.cells, mesh.n_nodes + slot.reshape(mesh.n_elements, 6)], axis=1)
    points = np.concatenate([mesh.points, mesh.points[pairs].mean(axis=1)])
    raised = SoftMesh(points, cells, TET10)
    if project is None:
        return raised
    moved = np.unique(boundary_faces(raised).faces[:, 3:])
    target = points.copy()
    target[moved] = project(points[moved])
    return SoftMesh(move_without_folding(raised, target), cells, TET10)


def move_without_folding(mesh: SoftMesh, target: FloatArray) -> FloatArray:
    """Move nodes to `target` (n, 3), except those of elements that this would fold; returns the new points.

    An element counts as folded where its least det(dX/dxi) (see `relative_determinants`) falls below ten
    times `DEGENERATE_RATIO` and below what it was.
    """
    points = target.copy()
    limit = np.minimum(10 * DEGENERATE_RATIO, relative_determinants(mesh))
    while True:
        folded = relative_determinants(SoftMesh(points, mesh.cells, mesh.family)) < limit
        nodes: IntArray = np.unique(mesh.cells[folded])
        if (points[nodes] == mesh.points[nodes]).all():
            return points
        points[nodes] = mesh.points[nodes]


#: Corners of a quadratic tetrahedron with the middles of their edges.
_CORNERS = ((0, 4, 6, 7), (1, 5, 4, 8), (2, 6, 5, 9), (3, 7, 9, 8))
#: The octahedron that is left, cut along each of its diagonals.
_INSIDE = tuple(
    tuple((a, b, ring[k], ring[(k + 1) % 4]) for k in range(4))
    for a, b, ring in ((4, 9, (5, 6, 7, 8)), (5, 7, (4, 6, 9, 8)), (6, 8, (4, 5, 9, 7)))
)


def refined(mesh: SoftMesh) -> SoftMesh:
    """Return the mesh with each element cut into eight; nodes keep their numbers, new ones follow.

    A straight side stays straight: the boundary of a mesh of flat faces is the same polyhedron. Quadratic tetrahedra
    are cut along their curved edges, whose middles become corners.

    Raises
    ------
    InputError
        If an element of the finer mesh is inverted.
    """
    return _hexahedra(mesh) if mesh.family is HEX8 else _tetrahedra(mesh)


def _tetrahedra(mesh: SoftMesh) -> SoftMesh:
    raised = to_tet10(mesh)
    at = raised.points[raised.cells]
    lengths = np.stack([np.linalg.norm(at[:, a] - at[:, b], axis=1) for a, b in ((4, 9), (5, 7), (6, 8))], axis=1)
    # The shortest diagonal makes the roundest elements.
    inside = np.array(_INSIDE)[lengths.argmin(axis=1)]
    corners = np.broadcast_to(np.array(_CORNERS), (mesh.n_elements, 4, 4))
    local = np.concatenate([corners, inside], axis=1)
    if mesh.family is TET4:
        cells = np.take_along_axis(raised.cells, local.reshape(mesh.n_elements, -1), axis=1)
        return validate(SoftMesh(raised.points, cells.reshape(-1, 4), TET4)).mesh
    places = TET10.nodes[local]
    middles = places[:, :, TET4.edges].mean(axis=3)
    weights = TET10.shape(np.concatenate([places, middles], axis=2))
    nodes: FloatArray = np.einsum("ecjn,enk->ecjk", weights, at).reshape(-1, 3)
    points, number = _joined(mesh.points, nodes)
    return validate(SoftMesh(points, number.reshape(-1, 10), TET10)).mesh


def _joined(known: FloatArray, nodes: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the points, known ones first, with the new nodes that lie at none of them, and the number of each node."""
    both = np.concatenate([known, nodes])
    # No round fraction of the size: places on a grid are not to lie between two keys.
    keys = np.round(both / (0.987654321e-9 * float(np.ptp(known, axis=0).max()))).astype(np.int64)
    _, first, slot = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))
    return both[np.sort(first)], order[slot.reshape(-1)][len(known) :]


def _hexahedra(mesh: SoftMesh) -> SoftMesh:
    grid = np.array(list(product((-1.0, 0.0, 1.0), repeat=3)))
    lattice: FloatArray = np.einsum("gn,enk->egk", HEX8.shape(grid), mesh.points[mesh.cells]).reshape(-1, 3)
    points, number = _joined(mesh.points, lattice)
    offsets = np.array(list(product((0, 1), repeat=3)))
    corner = ((HEX8.nodes + 1.0) / 2.0).round().astype(np.int64)
    local: IntArray = np.array(
        [[(9 * (o[0] + c[0]) + 3 * (o[1] + c[1]) + o[2] + c[2]) for c in corner] for o in offsets]
    )
    return validate(SoftMesh(points, number.reshape(-1, 27)[:, local].reshape(-1, 8), HEX8)).mesh
