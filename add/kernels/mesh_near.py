"""Primitives of meshes that are near each other: the broad phase of their contact, with room to move.

Most primitives that are near those of their own body are so at rest, too, and never meet: they are left out here, once,
and not asked at every iterate.
"""

import numpy as np

from add.kernels.boxes import Boxes, overlapping
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


@njit(cache=True)
def _boxes(which, corners, x, body, wide):
    """Return the boxes of some primitives, wider by that of their body on all sides."""
    n, m = which.size, corners.shape[1]
    low, high = np.empty((n, 3)), np.empty((n, 3))
    points, own = np.empty((n, m), dtype=np.int64), np.empty(n, dtype=np.int64)
    for i in range(n):
        for k in range(m):
            points[i, k] = corners[which[i], k]
        own[i] = body[points[i, 0]]
        for a in range(3):
            least, most = x[points[i, 0], a], x[points[i, 0], a]
            for k in range(1, m):
                least, most = min(least, x[points[i, k], a]), max(most, x[points[i, k], a])
            low[i, a], high[i, a] = least - wide[own[i]], most + wide[own[i]]
    return Boxes(low, high, points, own)


@njit(cache=True)
def _near_others(x, wide, meshes):
    """Return which bodies meet themselves, or have a box that overlaps that of another one that they meet."""
    n, body = wide.size, meshes.body
    low, high, out = np.full((n, 3), np.inf), np.full((n, 3), -np.inf), np.zeros(n, dtype=np.bool_)
    for i in range(body.size):
        b = body[i]
        for a in range(3):
            low[b, a], high[b, a] = min(low[b, a], x[i, a] - wide[b]), max(high[b, a], x[i, a] + wide[b])
    for b in range(n):
        for other in range(n):
            apart = False
            for a in range(3):
                apart |= low[b, a] > high[other, a] or low[other, a] > high[b, a]
            out[b] |= meshes.meets[b, other] != 0 and not apart
    return out


@njit(cache=True)
def _of_bodies(chosen, corners, body, wanted):
    """Return the numbers of the primitives that are ``wanted`` (all of them if that is empty) and of chosen bodies."""
    out, n = np.empty(corners.shape[0], dtype=np.int64), 0
    for i in range(corners.shape[0]):
        if chosen[body[corners[i, 0]]] and (wanted.size == 0 or wanted[i]):
            out[n] = i
            n += 1
    return out[:n]


@njit(cache=True, error_model="numpy")
def _numbered(found, one, two, kind, least, meshes):
    """Return pairs (k, 2) by the numbers of their primitives, without those of one body that are near at rest."""
    out, n = np.empty((found.shape[0], 2), dtype=np.int64), 0
    p, X, c, g, P = np.zeros(4, dtype=np.int64), np.zeros((4, 3)), np.zeros(4), np.zeros((4, 4)), np.zeros((9, 3))
    edges, faces, body, rest, factor = meshes.edges, meshes.faces, meshes.body, meshes.rest, meshes.numbers[REST_FACTOR]
    for k in range(found.shape[0]):
        i, j = one[found[k, 0]], two[found[k, 1]]
        if kind == VERTEX_FACE:
            p[0], p[1], p[2], p[3] = i, faces[j, 0], faces[j, 1], faces[j, 2]
        else:
            p[0], p[1], p[2], p[3] = edges[i, 0], edges[i, 1], edges[j, 0], edges[j, 1]
        same = body[p[0]] == body[p[3]]
        if same and not apart_at_rest(kind, p, 2.0 * factor * least[body[p[0]]], rest, X, c, g, P):
            continue
        out[n, 0], out[n, 1] = i, j
        n += 1
    return out[:n]


@njit(cache=True)
def near_pairs(x, half, meshes):
    """Return the `Near` at places x (n_p, 3), which must be finite, with half-thicknesses (n_bodies,) [m]."""
    wide, least = half + MARGIN * greatest_skin(half, meshes), half / THINNER
    chosen, all_of = _near_others(x, wide, meshes), np.zeros(0, dtype=np.int64)
    points = np.arange(x.shape[0]).reshape(-1, 1)
    v = _of_bodies(chosen, points, meshes.body, all_of)
    f, e = (
        _of_bodies(chosen, meshes.faces, meshes.body, all_of),
        _of_bodies(chosen, meshes.edges, meshes.body, meshes.sharp),
    )
    of_edges = _boxes(e, meshes.edges, x, meshes.body, wide)
    vf = overlapping(
        _boxes(v, points, x, meshes.body, wide), _boxes(f, meshes.faces, x, meshes.body, wide), meshes.meets, False
    )
    ee = overlapping(of_edges, of_edges, meshes.meets, True)
    return Near(
        x, wide, least,
        _numbered(vf, v, f, VERTEX_FACE, least, meshes), _numbered(ee, e, e, EDGE_EDGE, least, meshes),
    )  # fmt: skip
