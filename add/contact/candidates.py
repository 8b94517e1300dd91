"""The broad phase of contact between meshes: which vertices and faces, and which edges, may be near each other.

They are those whose boxes come within reach, found by a grid of cells (`add.kernels.boxes`), and sorted, so that no
number depends on how they are found.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from add.kernels.boxes import near_primitives
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
