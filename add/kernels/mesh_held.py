"""Vertices and edges of one mesh that are held on another: which may be, and which go on being so while places change.

Vertices that carry are held (`add.contact.surfaces`), and edges that meet within the whole reach where they cross; what
else touches creeps. Edge a that meets an end of edge b meets the other edges there, too: as many of these pairs are
held as `mesh_pairs.py` leaves after what the end takes away. Nearly parallel edges are not held: where they touch is
anywhere along them. What is held keeps its feature during a step, also where its coefficients leave it by round-off:
between two meshes of one grid each vertex is over an edge.
"""

import numpy as np

from add.kernels.borrowed import put
from add.kernels.caching import njit
from add.kernels.contact_pairs import ACTIVE, BITS, FEATURE, GIVEN, PAIR, STICKS
from add.kernels.mesh_arrays import (
    EDGE_EDGE,
    EDGE_VERTEX,
    MOLLIFIED,
    REGION_BITS,
    REGION_MASK,
    first_pairs,
    other_body,
    points_of,
    reach_share,
    unnumbered,
)
from add.kernels.ordering import first_not_below, order_of, rows_by
from add.kernels.stencil import EDGE_END, EDGES, END_EDGE, ENDS, NORMAL, stencil

#: Cosine of two normals, and share of the reach that depths differ by, within which two rows are one contact.
SAME_NORMAL, SAME_DEPTH = 0.999, 1e-3


@njit(cache=True)
def holdable_rows(rows, meshes):
    """Return which rows (k,) may be held: vertices that carry and edges that cross, counted positively."""
    n_p, n_e, n_f = meshes.points.shape[0], meshes.edges.shape[0], meshes.faces.shape[0]
    edges, out, n = meshes.edges, np.zeros(rows.shape[0], dtype=np.bool_), 0
    # Rows of edges that meet ends of others, and the numbers of edge and end.
    at_ends, keys = np.empty(rows.shape[0], dtype=np.int64), np.empty(rows.shape[0], dtype=np.int64)
    for row in range(rows.shape[0]):
        kind, i, j = unnumbered(rows[row, PAIR], n_p, n_e, n_f)
        if rows[row, FEATURE] >> REGION_BITS <= 0:
            continue
        if kind < EDGE_EDGE:
            out[row] = meshes.vertex_reach[meshes.body[i], other_body(kind, j, meshes)] >= 1.0
        if kind != EDGE_EDGE or rows[row, BITS] & MOLLIFIED or not (meshes.keen[i] and meshes.keen[j]):
            continue
        region = rows[row, FEATURE] & REGION_MASK
        out[row] = region == EDGES
        if region != EDGES and region < ENDS:
            first = region < EDGE_END  # an end of edge i
            one, two = (j, edges[i, region - END_EDGE]) if first else (i, edges[j, region - EDGE_END])
            at_ends[n], keys[n] = row, one * n_p + two
            n += 1
    begin = first_pairs(n_p, n_e, n_f)[EDGE_VERTEX]
    order = order_of(keys[:n])
    ordered, left, last = keys[order], 0, -1
    pairs = rows[:, PAIR].copy()
    for k in order:
        if keys[k] != last:
            last = keys[k]
            left = first_not_below(ordered, last + 1) - first_not_below(ordered, last)
            at = first_not_below(pairs, begin + last)
            if at < pairs.size and pairs[at] == begin + last:
                left += rows[at, FEATURE] >> REGION_BITS
        out[at_ends[k]] = left > 0
        left -= 1
    return out


@njit(cache=True, error_model="numpy")
def _normal_and_distance(row, rows, x, meshes, p, X, c, g, P):
    """Return d and the reach's share of a row, whose normal is then in P; its points are in p."""
    n_p, n_e, n_f = x.shape[0], meshes.edges.shape[0], meshes.faces.shape[0]
    kind, i, j = unnumbered(rows[row, PAIR], n_p, n_e, n_f)
    n = points_of(kind, i, j, meshes, p)
    for k in range(n):
        for a in range(3):
            X[k, a] = x[p[k], a]
    d, _ = stencil(rows[row, FEATURE] & REGION_MASK, X, n, 1, c, g, P)
    return d, reach_share(kind, i, j, meshes)


@njit(cache=True, error_model="numpy")
def with_given_rows(rows, given, x, half, meshes):
    """Return the rows with the bits STICKS and RELEASED of ``given``; what sticks replaces what it has become.

    Rows that stick and do not touch come back without ACTIVE. All are sorted by pair.
    """
    n, n_more = rows.shape[0], 0
    keep, more = np.ones(n, dtype=np.bool_), np.empty((given.shape[0], 3), dtype=np.int64)
    p, X, c, g, P = np.zeros(4, dtype=np.int64), np.zeros((4, 3)), np.zeros(4), np.zeros((4, 4)), np.zeros((9, 3))
    pairs, normal, stop = (
        rows[:, PAIR].copy(),
        np.zeros(3),
        first_pairs(x.shape[0], meshes.edges.shape[0], meshes.faces.shape[0])[EDGE_EDGE],
    )
    for k in range(given.shape[0]):
        if given[k, BITS] & GIVEN == 0:
            continue
        at = first_not_below(pairs, given[k, PAIR])
        if at < n and pairs[at] == given[k, PAIR]:
            rows[at, BITS] |= given[k, BITS] & GIVEN
            continue
        if given[k, BITS] & STICKS == 0:
            continue
        d, share = _normal_and_distance(k, given, x, meshes, p, X, c, g, P)
        crossing = given[k, PAIR] >= stop
        v, other = p[0], meshes.body[p[2 if crossing else 1]]
        reach = share * (half[meshes.body[v]] + half[other])
        normal[0], normal[1], normal[2] = P[NORMAL, 0], P[NORMAL, 1], P[NORMAL, 2]
        put(given[k], more[n_more])
        more[n_more, BITS] = given[k, BITS] & GIVEN | (ACTIVE if d < reach else 0)
        n_more += 1
        for row in range(n):
            if crossing or rows[row, PAIR] >= stop:
                break
            away, _ = _normal_and_distance(row, rows, x, meshes, p, X, c, g, P)
            if p[0] != v or meshes.body[p[1]] != other or abs(away - d) > SAME_DEPTH * reach:
                continue
            if normal[0] * P[NORMAL, 0] + normal[1] * P[NORMAL, 1] + normal[2] * P[NORMAL, 2] > SAME_NORMAL:
                keep[row] = False
    if n_more == 0:
        return rows
    out = np.concatenate((rows[keep], more[:n_more]))
    return rows_by(out, PAIR)
