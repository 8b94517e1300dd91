"""Refuse meshes that cannot be simulated; mend those that can be mended."""

from typing import NamedTuple

import numpy as np

from add.errors import InputError
from add.geometry.boundary import face_multiplicity, folded_faces
from add.geometry.elements import SoftMesh
from add.geometry.quadrature import determinants, element_volumes
from add.typing import BoolArray, FloatArray, IntArray

DEGENERATE_RATIO = 1e-9
"""An element is degenerate where its volume density falls below this times its longest edge cubed [-]."""


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
