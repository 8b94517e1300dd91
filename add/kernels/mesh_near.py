"""Pairs of vertices and faces, and of edges, that may touch before anything has moved far: `Near` of `mesh_arrays.py`.

They are looked for once in many iterates; which of them touch is asked at every one (`mesh_pairs.py`). Most are further
apart than bodies move meanwhile: each run of pairs has its least gap, and is not looked into by what moves less.
"""

import numpy as np

from add.kernels.boxes import near_primitives
from add.kernels.caching import njit
from add.kernels.mesh_arrays import EDGE_EDGE, REST_FACTOR, VERTEX_FACE, Near, reach_share
from add.kernels.mesh_pairs import apart_at_rest, gather
from add.kernels.primitives import box_gap
from add.kernels.stencil import edges_region, face_region, stencil

#: Pairs are looked for again when points have moved by this share of the reach at which primitives touch.
MARGIN = 1.0
#: Half-thicknesses of a search may shrink by this factor until pairs are looked for again; see `Near.least`.
THINNER = 1.6
#: Distances of a search are good to far less than what this leaves.
ROUNDED = 1.0 - 1e-9


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
def _with_gaps(pairs, kind, x, half, least, most, meshes):
    """Return the pairs (k, 2) without those of one body that are near at rest, and gaps, runs, least gaps of `Near`.

    Gaps are those of boxes; where these are less than ``most``, those of the primitives themselves [m].
    """
    kept, gaps, n = np.empty_like(pairs), np.empty(pairs.shape[0]), 0
    runs, of_runs, m, last = np.empty(pairs.shape[0] + 1, dtype=np.int64), np.empty(pairs.shape[0]), 0, -1
    size, i_last = 1 if kind == VERTEX_FACE else 2, -1
    p, X, c, g, P = np.zeros(4, dtype=np.int64), np.zeros((4, 3)), np.zeros(4), np.zeros((4, 4)), np.zeros((9, 3))
    edges, faces, body, rest, factor = meshes.edges, meshes.faces, meshes.body, meshes.rest, meshes.numbers[REST_FACTOR]
    for k in range(pairs.shape[0]):
        i, j = pairs[k]
        if kind == VERTEX_FACE:
            p[0], p[1], p[2], p[3] = i, faces[j, 0], faces[j, 1], faces[j, 2]
        else:
            p[0], p[1], p[2], p[3] = edges[i, 0], edges[i, 1], edges[j, 0], edges[j, 1]
        one, two = body[p[0]], body[p[3]]
        if one == two and not apart_at_rest(kind, p, 2.0 * factor * least[one], rest, X, c, g, P):
            continue
        share = meshes.vertex_reach[one, two] if kind == VERTEX_FACE else reach_share(EDGE_EDGE, i, j, meshes)
        reach = share * (half[one] + half[two])
        gap = box_gap(x, p, size) - reach
        if gap < most:
            gather(x, p, 4, X)
            d, _ = stencil(face_region(X) if kind == VERTEX_FACE else edges_region(X), X, 4, 1, c, g, P)
            gap = max(gap, ROUNDED * d - reach)
        kept[n, 0], kept[n, 1], gaps[n] = i, j, gap
        if i != i_last or two != last:
            runs[m], of_runs[m], i_last, last = n, gap, i, two
            m += 1
        of_runs[m - 1] = min(of_runs[m - 1], gap)
        n += 1
    runs[m] = n
    return kept[:n].copy(), gaps[:n].copy(), runs[: m + 1].copy(), of_runs[:m].copy()


@njit(cache=True)
def near_pairs(x, half, meshes, margin):
    """Return the `Near` at places x (n_p, 3), which must be finite, with half-thicknesses (n_bodies,) [m].

    Bodies may move by ``margin`` of the greatest of these until pairs are looked for again.
    """
    skin = greatest_skin(half, meshes)
    wide, least = half + margin * skin, half / THINNER
    vf, ee = near_primitives(meshes, x, x, wide, wide)
    vf, vf_gaps, vf_runs, vf_least = _with_gaps(vf, VERTEX_FACE, x, half, least, skin, meshes)
    ee, ee_gaps, ee_runs, ee_least = _with_gaps(ee, EDGE_EDGE, x, half, least, skin, meshes)
    return Near(x, wide, half, least, vf, ee, vf_gaps, ee_gaps, vf_runs, ee_runs, vf_least, ee_least)
