"""Which of two sets of boxes overlap: a uniform grid of cells, sorted by cell; and the pairs of meshes near each other.

A pair is reported in one cell only, the least that both boxes cover. Boxes that would cover very many cells are tested
against all others.
"""

from typing import NamedTuple

import numpy as np

from add.kernels.borrowed import put
from add.kernels.caching import njit
from add.kernels.mesh_arrays import EDGE_EDGE, REST_FACTOR, VERTEX_FACE, reach_share
from add.kernels.mesh_pairs import apart_at_rest, gather
from add.kernels.ordering import first_not_below, order_of
from add.kernels.primitives import box_gap
from add.kernels.stencil import edges_region, face_region, stencil
from add.typing import FloatArray, IntArray

#: A box that covers more cells than this is tested against all.
MOST_CELLS = 64
#: Edges of cells, as a multiple of the mean edge of the boxes.
CELL = 3.0


class Boxes(NamedTuple):
    """Boxes of primitives.

    Attributes
    ----------
    low, high : (n, 3) corners [m]
    corners : (n, k) points of each primitive: those that share one never meet
    body : (n,) number of the body of each
    """

    low: FloatArray
    high: FloatArray
    corners: IntArray
    body: IntArray


@njit(cache=True, inline="always")
def _overlap(a, b, i, j):
    """Whether box i of a and j of b overlap."""
    if a.low[i, 0] > b.high[j, 0] or b.low[j, 0] > a.high[i, 0]:
        return False
    if a.low[i, 1] > b.high[j, 1] or b.low[j, 1] > a.high[i, 1]:
        return False
    return not (a.low[i, 2] > b.high[j, 2] or b.low[j, 2] > a.high[i, 2])


@njit(cache=True, inline="always")
def _may_meet(a, b, i, j, meets):
    """Whether primitive i of a and j of b are of bodies that meet, and share no point."""
    if not meets[a.body[i], b.body[j]]:
        return False
    for k in range(a.corners.shape[1]):
        for m in range(b.corners.shape[1]):
            if a.corners[i, k] == b.corners[j, m]:
                return False
    return True


@njit(cache=True)
def _meet(a, b, i, j, meets, same):
    """Whether primitive i of a and j of b overlap, are of bodies that meet, and share no point."""
    return not (same and j <= i) and _overlap(a, b, i, j) and _may_meet(a, b, i, j, meets)


@njit(cache=True)
def _cells(box, i, origin, edge, count, low, high):
    """Fill the first and last cell (3,) of a box and return how many it covers."""
    n = 1
    for c in range(3):
        low[c] = min(max(int((box.low[i, c] - origin[c]) / edge), 0), count[c] - 1)
        high[c] = min(max(int((box.high[i, c] - origin[c]) / edge), 0), count[c] - 1)
        n *= high[c] - low[c] + 1
    return n


@njit(cache=True)
def _with_pair(pairs, n, i, j):
    if n == pairs.shape[0]:
        more = np.empty((2 * n, 2), dtype=np.int64)
        put(pairs, more)
        pairs = more
    pairs[n, 0], pairs[n, 1] = i, j
    return pairs


@njit(cache=True)
def _grid(boxes):
    """Return the least and the greatest corner of all boxes, the edge of cells, and their number along each axis."""
    n = boxes.body.size
    origin, top, total = np.full(3, np.inf), np.full(3, -np.inf), 0.0
    for j in range(n):
        for c in range(3):
            origin[c], top[c] = min(origin[c], boxes.low[j, c]), max(top[c], boxes.high[j, c])
            total += boxes.high[j, c] - boxes.low[j, c]
    edge, widest = CELL * total / (3 * n), 0.0
    for c in range(3):
        widest = max(widest, top[c] - origin[c])
    edge = max(edge, widest / 2.0**20, 1e-300)
    count = np.empty(3, dtype=np.int64)
    for c in range(3):
        count[c] = int((top[c] - origin[c]) / edge) + 1
    return origin, top, edge, count


@njit(cache=True)
def overlapping(a, b, meets, same):
    """Return the pairs (k, 2) of primitives that overlap and may meet, sorted.

    Parameters
    ----------
    a, b : Boxes
    meets : (n_bodies, n_bodies) bool
    same : whether b is a: then the first number of a pair is the lesser
    """
    n_a, n_b = a.body.size, b.body.size
    pairs, n = np.empty((64, 2), dtype=np.int64), 0
    if n_a == 0 or n_b == 0:
        return pairs[:0]
    origin, top, edge, count = _grid(b)
    low, high = np.empty(3, dtype=np.int64), np.empty(3, dtype=np.int64)
    n_entries, n_large = 0, 0
    large = np.empty(n_b, dtype=np.int64)
    for j in range(n_b):
        covered = _cells(b, j, origin, edge, count, low, high)
        if covered > MOST_CELLS:
            large[n_large] = j
            n_large += 1
        else:
            n_entries += covered
    keys, members, e = np.empty(n_entries, dtype=np.int64), np.empty(n_entries, dtype=np.int64), 0
    for j in range(n_b):
        if _cells(b, j, origin, edge, count, low, high) > MOST_CELLS:
            continue
        for x in range(low[0], high[0] + 1):
            for y in range(low[1], high[1] + 1):
                for z in range(low[2], high[2] + 1):
                    keys[e], members[e] = (x * count[1] + y) * count[2] + z, j
                    e += 1
    order = order_of(keys)
    keys, members = keys[order], members[order]
    # In the order of cells: what is compared lies side by side.
    lows, highs = b.low[members], b.high[members]
    least, is_large = np.empty((n_b, 3), dtype=np.int64), np.zeros(n_b, dtype=np.bool_)
    for j in range(n_b):
        is_large[j] = _cells(b, j, origin, edge, count, low, high) > MOST_CELLS
        for c in range(3):
            least[j, c] = low[c]
    for i in range(n_a):
        for k in range(n_large):
            if _meet(a, b, i, large[k], meets, same):
                pairs = _with_pair(pairs, n, i, large[k])
                n += 1
        if n_entries == 0:
            continue
        apart = False
        for c in range(3):
            apart = apart or a.low[i, c] > top[c] or a.high[i, c] < origin[c]
        if apart:
            continue
        covered = _cells(a, i, origin, edge, count, low, high)
        if covered > n_entries:
            for j in range(n_b):
                if not is_large[j] and _meet(a, b, i, j, meets, same):
                    pairs = _with_pair(pairs, n, i, j)
                    n += 1
            continue
        l0, l1, l2, h0, h1, h2 = a.low[i, 0], a.low[i, 1], a.low[i, 2], a.high[i, 0], a.high[i, 1], a.high[i, 2]
        for x in range(low[0], high[0] + 1):
            for y in range(low[1], high[1] + 1):
                row = (x * count[1] + y) * count[2]
                stop = first_not_below(keys, row + high[2] + 1)
                for at in range(first_not_below(keys, row + low[2]), stop):
                    # One branch, rarely taken: six would be guessed wrong most of the time.
                    overlap = (l0 <= highs[at, 0]) & (lows[at, 0] <= h0) & (l1 <= highs[at, 1])
                    overlap &= (lows[at, 1] <= h1) & (l2 <= highs[at, 2]) & (lows[at, 2] <= h2)
                    if not overlap:
                        continue
                    j, z = members[at], keys[at] - row
                    if same and j <= i:
                        continue
                    if x != max(low[0], least[j, 0]) or y != max(low[1], least[j, 1]) or z != max(low[2], least[j, 2]):
                        continue
                    if _may_meet(a, b, i, j, meets):
                        pairs = _with_pair(pairs, n, i, j)
                        n += 1
    overlaps = pairs[:n]
    return overlaps[order_of(overlaps[:, 0] * n_b + overlaps[:, 1])]


@njit(cache=True)
def boxes_of(which, corners, body, x0, x1, wide):
    """Return the boxes of the ways from x0 to x1 of some primitives, wider by ``wide`` (n_bodies,) of their body."""
    n, m = which.size, corners.shape[1]
    low, high = np.empty((n, 3)), np.empty((n, 3))
    points, bodies = np.empty((n, m), dtype=np.int64), np.empty(n, dtype=np.int64)
    for i in range(n):
        for k in range(m):
            points[i, k] = corners[which[i], k]
        bodies[i] = body[points[i, 0]]
        for a in range(3):
            least, most = np.inf, -np.inf
            for point in points[i]:
                least, most = min(least, x0[point, a], x1[point, a]), max(most, x0[point, a], x1[point, a])
            low[i, a], high[i, a] = least - wide[bodies[i]], most + wide[bodies[i]]
    return Boxes(low, high, points, bodies)


@njit(cache=True)
def _near_others(body, meets, x0, x1, wide, other):
    """Return which bodies meet themselves, or have a box that overlaps that of another one that they meet."""
    n = wide.size
    low, high, out = np.full((n, 3), np.inf), np.full((n, 3), -np.inf), np.zeros(n, dtype=np.bool_)
    for i in range(body.size):
        b = body[i]
        for a in range(3):
            low[b, a], high[b, a] = min(low[b, a], x0[i, a], x1[i, a]), max(high[b, a], x0[i, a], x1[i, a])
    for b in range(n):
        out[b] |= meets[b, b] != 0
        for c in range(n):
            apart = meets[b, c] == 0 or b == c
            for a in range(3):
                apart |= low[b, a] - wide[b] > high[c, a] + other[c] or low[c, a] - other[c] > high[b, a] + wide[b]
            if not apart:
                out[b] = out[c] = True
    return out


@njit(cache=True)
def _of_bodies(near, corners, body, wanted):
    """Return the numbers of the primitives that are ``wanted`` (all of them if that is empty) and of near bodies."""
    out, n = np.empty(corners.shape[0], dtype=np.int64), 0
    for i in range(corners.shape[0]):
        if near[body[corners[i, 0]]] and (wanted.size == 0 or wanted[i]):
            out[n] = i
            n += 1
    return out[:n]


@njit(cache=True)
def edges_at_faces(edges, faces, body, meets, x):
    """Return the pairs (k, 2) of an edge and a face whose boxes overlap at places x (n_points, 3), sorted."""
    wide = np.zeros(meets.shape[0])
    of_edges = boxes_of(np.arange(edges.shape[0]), edges, body, x, x, wide)
    of_faces = boxes_of(np.arange(faces.shape[0]), faces, body, x, x, wide)
    return overlapping(of_edges, of_faces, meets, False)


@njit(cache=True)
def near_primitives(primitives, x0, x1, wide, other):
    """Return pairs of vertices and faces (k, 2), and of edges (m, 2), whose boxes of ways overlap, both sorted.

    Parameters
    ----------
    primitives : with ``edges``, ``faces``, ``sharp``, ``body`` and ``meets``, see `add.contact.crossings.Primitives`
    x0, x1 : (n_points, 3) [m]
    wide, other : (n_bodies,) by how much the boxes of the first and of the second of a pair are wider [m]
    """
    edges, faces, body, meets = primitives.edges, primitives.faces, primitives.body, primitives.meets
    near, points = _near_others(body, meets, x0, x1, wide, other), np.arange(body.size).reshape(-1, 1)
    v = _of_bodies(near, points, body, primitives.sharp[:0])
    f, e = _of_bodies(near, faces, body, primitives.sharp[:0]), _of_bodies(near, edges, body, primitives.sharp)
    vf = overlapping(boxes_of(v, points, body, x0, x1, wide), boxes_of(f, faces, body, x0, x1, other), meets, False)
    ee = overlapping(boxes_of(e, edges, body, x0, x1, wide), boxes_of(e, edges, body, x0, x1, other), meets, True)
    for k in range(vf.shape[0]):
        vf[k, 0], vf[k, 1] = v[vf[k, 0]], f[vf[k, 1]]
    for k in range(ee.shape[0]):
        ee[k, 0], ee[k, 1] = e[ee[k, 0]], e[ee[k, 1]]
    return vf, ee


# --- Pairs that may touch before anything has moved far ---------------------------------------------------------------
#
# They are looked for once in many iterates; which of them touch is asked at every one (`mesh_pairs.py`). Most are
# further apart than bodies move meanwhile: each run of pairs has its least gap, and is not looked into by what moves
# less.

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
    """Return the fields of `Near` at places x (n_p, 3), which must be finite, with half-thicknesses (n_bodies,) [m].

    Each body may move by its ``margin`` (n_bodies,) until pairs are looked for again [m].
    """
    skin = greatest_skin(half, meshes)
    wide, least = half + margin, half / THINNER
    vf, ee = near_primitives(meshes, x, x, wide, wide)
    vf, vf_gaps, vf_runs, vf_least = _with_gaps(vf, VERTEX_FACE, x, half, least, skin, meshes)
    ee, ee_gaps, ee_runs, ee_least = _with_gaps(ee, EDGE_EDGE, x, half, least, skin, meshes)
    return x, wide, half, least, vf, ee, vf_gaps, ee_gaps, vf_runs, ee_runs, vf_least, ee_least
