"""Meshes made without a mesher: structured boxes, and quadratic tetrahedra from linear ones."""

from collections.abc import Callable
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike

from add.errors import InputError
from add.geometry.boundary import boundary_faces
from add.geometry.elements import HEX8, TET4, TET10, ElementFamily, FloatArray, IntArray
from add.geometry.mesh_check import DEGENERATE_RATIO, relative_determinants
from add.geometry.volume_mesh import SoftMesh


def box_mesh(size: ArrayLike, divisions: ArrayLike, family: ElementFamily) -> SoftMesh:
    """Structured mesh of a box centred at the origin.

    Parameters
    ----------
    size : (3,) edge lengths [m]
    divisions : (3,) number of cells along each edge
    family : HEX8: one element a cell. TET4, TET10: six tetrahedra a cell round the same diagonal (Kuhn), which
        conform for any division.
    """
    lengths, counts = box_lengths(size), _numbers(divisions)
    if counts is None or not (counts == np.round(counts)).all() or not (counts >= 1).all():
        raise InputError("impossible divisions of a box", found=divisions, expected="three whole numbers >= 1")
    counts = counts.astype(np.int64)
    grids = [length * (np.arange(k + 1) / k - 0.5) for length, k in zip(lengths, counts, strict=True)]
    points = np.stack([g.ravel() for g in np.meshgrid(*grids, indexing="ij")], axis=-1)
    number = np.arange(len(points)).reshape(*(counts + 1))
    corner = {
        (i, j, k): number[i : i + counts[0], j : j + counts[1], k : k + counts[2]].ravel()
        for i in (0, 1)
        for j in (0, 1)
        for k in (0, 1)
    }
    if family is HEX8:
        order = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)]
        return SoftMesh(points, np.stack([corner[key] for key in order], axis=-1), HEX8)
    tets = []
    for axes in permutations(range(3)):
        path = np.cumsum(np.concatenate([np.zeros((1, 3), dtype=int), np.eye(3, dtype=int)[list(axes)]]), axis=0)
        if np.linalg.det(np.diff(path, axis=0).astype(float)) < 0:
            path[[1, 2]] = path[[2, 1]]
        tets.append(np.stack([corner[tuple(p)] for p in path.tolist()], axis=-1))
    mesh = SoftMesh(points, np.stack(tets, axis=1).reshape(-1, 4), TET4)
    return to_tet10(mesh) if family is TET10 else mesh


def box_lengths(size: ArrayLike) -> FloatArray:
    """Three positive edge lengths, (3,) [m], or an InputError."""
    lengths = _numbers(size)
    if lengths is None or not (lengths > 0).all():
        raise InputError("impossible size of a box", found=size, expected="three positive lengths [m]")
    return lengths


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


def move_without_folding(mesh: SoftMesh, target: FloatArray, least: float = 10 * DEGENERATE_RATIO) -> FloatArray:
    """Move nodes to `target` (n, 3), except those of elements that this would fold; returns the new points.

    An element counts as folded where its least det(dX/dxi) (see `relative_determinants`) falls below `least` and
    below what it was.
    """
    points = target.copy()
    limit = np.minimum(least, relative_determinants(mesh))
    while True:
        folded = relative_determinants(SoftMesh(points, mesh.cells, mesh.family)) < limit
        nodes: IntArray = np.unique(mesh.cells[folded])
        if (points[nodes] == mesh.points[nodes]).all():
            return points
        points[nodes] = mesh.points[nodes]
