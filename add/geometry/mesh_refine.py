"""Uniform refinement of volume meshes: every element into eight of half the size."""

from itertools import product

import numpy as np

from add.geometry.elements import HEX8, TET4, TET10, FloatArray, IntArray
from add.geometry.mesh_box import to_tet10
from add.geometry.mesh_check import validate
from add.geometry.volume_mesh import SoftMesh

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
