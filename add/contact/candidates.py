"""The broad phase of contact between meshes: which vertices and faces, and which edges, may be near each other.

Two ways find the same pairs, those whose boxes come within reach: a grid of cells (`add.kernels.boxes`) and the tree of
`ipctk` (Li, Ferguson et al. 2020, IPC Toolkit), whose pairs, rounded outwards, are tested by the same comparison. The
grid is what runs use. Pairs are sorted, so that no number depends on threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol, final

import numpy as np

from add.contact.toolkit import collision_mesh, toolkit
from add.kernels.boxes import Boxes, chosen, overlapping
from add.typing import BoolArray, FloatArray, IntArray


class Candidates(NamedTuple):
    """Pairs that may be near each other, sorted.

    Attributes
    ----------
    vf : (k, 2) vertex and face
    ee : (k, 2) edges, the lesser first
    """

    vf: IntArray
    ee: IntArray


class Meshes(Protocol):
    """Surfaces of all bodies in one numbering of points.

    Attributes
    ----------
    edges, faces : (n_edges, 2), (n_faces, 3) of points
    sharp : (n_edges,)
        Whether an edge meets others: not the diagonals of flat parts of rigid meshes.
    body : (n_points,) number of the body of each point
    meets : (n_bodies, n_bodies) which bodies meet, symmetric; on the diagonal, which meet themselves
    """

    @property
    def edges(self) -> IntArray: ...
    @property
    def faces(self) -> IntArray: ...
    @property
    def sharp(self) -> BoolArray: ...
    @property
    def body(self) -> IntArray: ...
    @property
    def meets(self) -> BoolArray: ...


@final
@dataclass(frozen=True)
class Primitives:
    """Vertices, edges and faces that meet each other: `Meshes` as values."""

    edges: IntArray
    faces: IntArray
    sharp: BoolArray
    body: IntArray
    meets: BoolArray

    @classmethod
    def of(cls, meshes: Meshes) -> Primitives:
        """Take what detection asks of surfaces."""
        return cls(meshes.edges, meshes.faces, meshes.sharp, meshes.body, meshes.meets)

    @cached_property
    def mesh(self) -> Any:
        """The surfaces as `ipctk` takes them."""
        return collision_mesh(self.edges, self.faces, self.body, self.meets)

    @cached_property
    def meeting_edges(self) -> IntArray:
        """The edges that meet others."""
        return np.flatnonzero(self.sharp)


def candidates(
    primitives: Primitives, x0: FloatArray, x1: FloatArray | None = None, reach: float | FloatArray = 0.0
) -> Candidates:
    """Return the pairs whose boxes come within reach of each other, by a grid.

    Bodies that are far from all others are left out first.

    Parameters
    ----------
    primitives : Primitives
    x0 : (n_points, 3)
        Places [m].
    x1 : (n_points, 3), optional
        Places at the end of straight ways: boxes are those of the ways.
    reach : float or (n_bodies,)
        Of each pair, or a share of each body, of which a pair's reach is the sum [m].
    """
    x1 = x0 if x1 is None else x1
    other: float | FloatArray = 0.0 if np.ndim(reach) == 0 else reach
    near = _near_others(primitives, x0, x1, reach, other)
    if not near.any():
        none = np.zeros((0, 2), dtype=np.int64)
        return Candidates(none, none)
    body, meets = primitives.body, primitives.meets
    vertices = np.flatnonzero(near[body])
    faces = np.flatnonzero(near[body[primitives.faces[:, 0]]])
    edges = primitives.meeting_edges
    edges = edges[near[body[primitives.edges[edges, 0]]]]
    ways = x0, x1
    of_vertices = boxes_of(vertices[:, None], body, *ways, reach)
    vf = overlapping(of_vertices, boxes_of(primitives.faces[faces], body, *ways, other), meets, False)
    ends = primitives.edges[edges]
    ee = overlapping(boxes_of(ends, body, *ways, reach), boxes_of(ends, body, *ways, other), meets, True)
    return Candidates(np.column_stack([vertices[vf[:, 0]], faces[vf[:, 1]]]), edges[ee])


def candidates_by_toolkit(
    primitives: Primitives, x0: FloatArray, x1: FloatArray | None = None, reach: float = 0.0
) -> Candidates:
    """Return the same pairs as `candidates`, by the broad phase of `ipctk`."""
    kit, x1 = toolkit(), x0 if x1 is None else x1
    found = kit.Candidates()
    # Both boxes are inflated; a little more, since the test below rounds otherwise.
    inflation = 0.5 * reach * (1.0 + 1e-6) + 1e-12 * float(np.abs(x0).max(initial=0.0))
    found.build(primitives.mesh, np.asfortranarray(x0), np.asfortranarray(x1), inflation, kit.LBVH())
    vf = _array([(pair.vertex_id, pair.face_id) for pair in found.fv_candidates])
    ee = np.sort(_array([(pair.edge0_id, pair.edge1_id) for pair in found.ee_candidates]), axis=1)
    ee = ee[primitives.sharp[ee].all(axis=1)]
    body, meets, ways = primitives.body, primitives.meets, (x0, x1)
    vertices = np.arange(body.size)[:, None]
    of_faces, of_edges = boxes_of(primitives.faces, body, *ways), boxes_of(primitives.edges, body, *ways)
    vf = vf[chosen(vf, boxes_of(vertices, body, *ways, reach), of_faces, meets, False)]
    ee = ee[chosen(ee, boxes_of(primitives.edges, body, *ways, reach), of_edges, meets, True)]
    return Candidates(vf[np.lexsort(vf.T[::-1])], ee[np.lexsort(ee.T[::-1])])


def _array(pairs: list[tuple[int, int]]) -> IntArray:
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def boxes_of(
    corners: IntArray, body: IntArray, x0: FloatArray, x1: FloatArray, reach: float | FloatArray = 0.0
) -> Boxes:
    """Return the boxes of the ways of primitives (n, k) of points, wider by ``reach`` on all sides, or by bodies'."""
    begin, end, own = x0[corners], x1[corners], body[corners[:, 0]]
    wide = reach if np.ndim(reach) == 0 else np.asarray(reach)[own][:, None]
    low = np.minimum(begin.min(axis=1), end.min(axis=1)) - wide
    high = np.maximum(begin.max(axis=1), end.max(axis=1)) + wide
    return Boxes(low, high, np.ascontiguousarray(corners), np.ascontiguousarray(own))


def _near_others(
    primitives: Primitives, x0: FloatArray, x1: FloatArray, reach: float | FloatArray, other: float | FloatArray
) -> BoolArray:
    """Return which bodies have a box that comes within reach of another one's, or meet themselves."""
    meets, body = primitives.meets, primitives.body
    n = meets.shape[0]
    low, high = np.full((n, 3), np.inf), np.full((n, 3), -np.inf)
    np.minimum.at(low, body, np.minimum(x0, x1))
    np.maximum.at(high, body, np.maximum(x0, x1))
    present = np.flatnonzero(np.isfinite(low[:, 0]))
    own = np.arange(n)
    whole = Boxes(low[present], high[present], own[present][:, None], own[present])
    one, two = (
        whole._replace(low=whole.low - wide[:, None], high=whole.high + wide[:, None])
        for wide in (np.broadcast_to(share, n)[present] for share in (reach, other))
    )
    near = np.diagonal(meets).copy()
    near[present[overlapping(one, two, meets, True)].ravel()] = True
    return near
