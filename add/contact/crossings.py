"""Surfaces that pass through each other: no start of a run, and no step after it, may have any.

Edges that pass through faces say so, unless everything lies in planes of the other surface: two equal boxes, one
shifted along an edge, have no edge that crosses a face. So points just below the faces of one body are looked for
inside the other one, where that is closed, by its winding number.

The broad phase of contact between meshes: which vertices and faces, and which edges, may be near each other.

They are those whose boxes come within reach, found by a grid of cells (`add.kernels.boxes`), and sorted, so that no
number depends on how they are found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from add.errors import InputError
from add.kernels.boxes import edges_at_faces, near_primitives
from add.kernels.primitives import crossing
from add.typing import BoolArray, FloatArray, IntArray

# --- The broad phase of contact between meshes: which vertices and faces, and which edges, may be near each other -----


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


class Primitives(NamedTuple):
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
    one, two = reach, reach if np.ndim(reach) else 0.0
    wide, other = (np.array(np.broadcast_to(share, primitives.meets.shape[0]), dtype=float) for share in (one, two))
    return Candidates(*near_primitives(primitives, x0, x0 if x1 is None else x1, wide, other))


# ----------------------------------------------------------------------------------------------------------------------

#: So many pairs are named in an error.
MOST_NAMED = 5
#: So far below its face a point is looked for in the other body, in sizes of the face's body.
BELOW = 1e-6
#: So many faces of a body are looked at, evenly spread over those that may be inside.
MOST_LOOKED_AT = 256
#: From this winding number on a point is inside; on the surface it is a half.
INSIDE = 0.9


def crossings(primitives: Primitives, x: FloatArray) -> IntArray:
    """Return the pairs (k, 2) of an edge and a face that pass through each other, sorted.

    Parameters
    ----------
    primitives : Primitives
    x : (n_points, 3) [m]
    """
    body, edges, faces = primitives.body, primitives.edges, primitives.faces
    pairs = edges_at_faces(edges, faces, body, primitives.meets, x)
    return np.asarray(pairs[crossing(pairs, edges, faces, x)])


def refuse_tangled(primitives: Primitives, x: FloatArray, names: Sequence[str]) -> None:
    """Raise if surfaces pass through each other.

    Parameters
    ----------
    primitives : Primitives
    x : (n_points, 3) [m]
    names : of the bodies, by number

    Raises
    ------
    InputError
        With the bodies, the first pairs of edges and faces, and where they are.
    """
    pairs = crossings(primitives, x)
    if not pairs.size:
        _refuse_shared_volume(primitives, x, names)
        return
    ends, corners = primitives.edges[pairs[:, 0]], primitives.faces[pairs[:, 1]]
    one, other = primitives.body[ends[:, 0]], primitives.body[corners[:, 0]]
    bodies = sorted({tuple(sorted((names[a], names[b]))) for a, b in zip(one, other, strict=True)})
    named = []
    for edge, face, a, b in list(zip(ends, corners, one, other, strict=True))[:MOST_NAMED]:
        at = ", ".join(f"{value:.4g}" for value in x[edge].mean(axis=0))
        corners_of = "-".join(str(corner) for corner in face)
        named.append(f"edge {edge[0]}-{edge[1]} of '{names[a]}' and face {corners_of} of '{names[b]}' at ({at}) m")
    more = f", and {len(pairs) - MOST_NAMED} more" if len(pairs) > MOST_NAMED else ""
    raise InputError(
        "surfaces pass through each other at the start: " + " and ".join(f"'{a}' with '{b}'" for a, b in bodies),
        place="bodies",
        found="; ".join(named) + more,
        expected="surfaces that do not cross; move the bodies apart, or switch the pair off",
    )


def _refuse_shared_volume(primitives: Primitives, x: FloatArray, names: Sequence[str]) -> None:
    """Raise if a part of one body is inside another one."""
    shared = shared_volume(primitives, x)
    if shared is None:
        return
    one, other, at = shared
    raise InputError(
        f"bodies overlap at the start: '{names[one]}' and '{names[other]}'",
        place="bodies",
        found=f"matter of '{names[one]}' inside '{names[other]}' at ({', '.join(f'{value:.4g}' for value in at)}) m",
        expected="bodies that do not overlap; move them apart, or switch the pair off",
    )


def shared_volume(primitives: Primitives, x: FloatArray) -> tuple[int, int, FloatArray] | None:
    """Return a body, another one that it is partly inside, and a place (3,) in both; None if there is none.

    Only closed surfaces have an inside. A body that is inside another one as a whole is left alone: that may be a room.

    Parameters
    ----------
    primitives : Primitives
    x : (n_points, 3) [m]
    """
    faces, body = primitives.faces, primitives.body
    body_of = body[faces[:, 0]] if faces.size else np.zeros(0, dtype=np.int64)
    n = primitives.meets.shape[0]
    corners = x[faces]
    low, high = np.full((n, 3), np.inf), np.full((n, 3), -np.inf)
    np.minimum.at(low, body, x)
    np.maximum.at(high, body, x)
    closed = [_is_closed(faces[body_of == k]) for k in range(n)]
    whole: set[tuple[int, int]] = set()
    for a, b in np.argwhere(primitives.meets & ~np.eye(n, dtype=bool)):
        if not (closed[a] and closed[b]) or (low[a] > high[b]).any() or (low[b] > high[a]).any():
            continue
        mine = corners[body_of == a]
        normals = np.cross(mine[:, 1] - mine[:, 0], mine[:, 2] - mine[:, 0])
        normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), np.finfo(float).tiny)
        points = mine.mean(axis=1) - BELOW * float((high[a] - low[a]).max()) * normals
        near = np.flatnonzero(((points > low[b]) & (points < high[b])).all(axis=1))
        looked = near[:: max(1, -(-near.size // MOST_LOOKED_AT))]
        inside = winding_numbers(points[looked], corners[body_of == b]) > INSIDE
        if inside.size and inside.all() and near.size == mine.shape[0]:
            whole.add((int(a), int(b)))
        elif inside.any():
            return int(a), int(b), points[looked[inside][0]]
        if (int(a), int(b)) in whole and (int(b), int(a)) in whole:
            return int(a), int(b), points[0]
    return None


def _is_closed(faces: IntArray) -> bool:
    """Return whether every edge has two faces, once either way round."""
    if not faces.size:
        return False
    sides = faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
    ways, counts = np.unique(sides, axis=0, return_counts=True)
    back = np.unique(sides[:, ::-1], axis=0)
    return bool((counts == 1).all() and np.array_equal(ways, back))


def winding_numbers(points: FloatArray, corners: FloatArray) -> FloatArray:
    """Return how often a closed surface is wound around points (Van Oosterom, Strackee 1983); 1 is inside.

    Parameters
    ----------
    points : (n, 3) [m]
    corners : (m, 3, 3) of triangles, counter-clockwise seen from outside [m]
    """
    out = np.empty(points.shape[0])
    for k, point in enumerate(points):
        a, b, c = np.moveaxis(corners - point, 1, 0)
        one, two, three = (np.linalg.norm(side, axis=1) for side in (a, b, c))
        volume = np.einsum("ij,ij->i", a, np.cross(b, c))
        dots = [np.einsum("ij,ij->i", *sides) for sides in ((a, b), (b, c), (c, a))]
        below = one * two * three + dots[0] * three + dots[1] * one + dots[2] * two
        out[k] = np.arctan2(volume, below).sum() / (2.0 * np.pi)
    return out
