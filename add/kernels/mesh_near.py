"""Primitives of meshes that are near each other: the broad phase of their contact, with room to move.

Most primitives that are near those of their own body are so at rest, too, and never meet: they are left out here, once,
and not asked at every iterate.
"""

import numpy as np

from add.kernels.boxes import near_primitives
from add.kernels.caching import njit
from add.kernels.mesh_arrays import EDGE_EDGE, REST_FACTOR, VERTEX_FACE, Near
from add.kernels.mesh_pairs import apart_at_rest

#: Pairs are looked for again when points have moved by this share of the reach at which primitives touch.
MARGIN = 1.0
#: Half-thicknesses of a search may shrink by this factor until pairs are looked for again; see `Near.least`.
THINNER = 1.6


@njit(cache=True)
def greatest_skin(half, meshes):
    """Return the greatest half-thickness (n_bodies,) of what is not round; of all if that is zero [m]."""
    flat, most = 0.0, 0.0
    for b in range(half.size):
        most = max(most, half[b])
        if not meshes.round[b]:
            flat = max(flat, half[b])
    return flat if flat > 0.0 else most


@njit(cache=True, error_model="numpy")
def _not_near_at_rest(pairs, kind, least, meshes):
    """Return the pairs (k, 2) without those of one body that are near at rest."""
    keep = np.ones(pairs.shape[0], dtype=np.bool_)
    p, X, c, g, P = np.zeros(4, dtype=np.int64), np.zeros((4, 3)), np.zeros(4), np.zeros((4, 4)), np.zeros((9, 3))
    edges, faces, body, rest, factor = meshes.edges, meshes.faces, meshes.body, meshes.rest, meshes.numbers[REST_FACTOR]
    for k in range(pairs.shape[0]):
        i, j = pairs[k]
        if kind == VERTEX_FACE:
            p[0], p[1], p[2], p[3] = i, faces[j, 0], faces[j, 1], faces[j, 2]
        else:
            p[0], p[1], p[2], p[3] = edges[i, 0], edges[i, 1], edges[j, 0], edges[j, 1]
        if body[p[0]] == body[p[3]]:
            keep[k] = apart_at_rest(kind, p, 2.0 * factor * least[body[p[0]]], rest, X, c, g, P)
    return pairs[keep]


@njit(cache=True)
def near_pairs(x, half, meshes):
    """Return the `Near` at places x (n_p, 3), which must be finite, with half-thicknesses (n_bodies,) [m]."""
    wide, least = half + MARGIN * greatest_skin(half, meshes), half / THINNER
    vf, ee = near_primitives(meshes, x, x, wide, wide)
    return Near(
        x, wide, least,
        _not_near_at_rest(vf, VERTEX_FACE, least, meshes), _not_near_at_rest(ee, EDGE_EDGE, least, meshes),
    )  # fmt: skip
