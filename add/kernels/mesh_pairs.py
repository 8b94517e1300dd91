"""Pairs of vertices, edges and faces that are near, those of them that touch, and how often each counts.

A vertex v within reach of the faces of a sheet feels

    sum over faces phi(d(v, f)) - sum over edges (n_e - 1) phi(d(v, e)) + sum over vertices k_w phi(d(v, w))

where n_e and n_w are the numbers of faces in reach at an edge and at a vertex, and k_w = 1 - n_w + sum (n_e - 1) over
the edges at w: by level sets this is phi of the distance to the sheet, whatever the triangles are, and adds what the
walls of a concave corner do (Li, Ferguson et al. 2023, "improved max approximator"). An edge a within reach of the
edges of a sheet feels sum over edges m phi(d(a, b)) - sum over vertices (sum_b m - 1) phi(d(a, w)), where edges nearly
parallel to a have mollifiers m below one; what these take away are rows of the two edges with counts of their own. As a
primitive is never nearer than the faces and edges that it bounds, the numbers in reach are those of the whole sheet
wherever phi is not zero.

A decision is an int64 array (k, 3), one row a pair that touches, sorted by pair:

    pair      number of two primitives, see `mesh_arrays.py`: vertex and face, edge or vertex; edge and edge or vertex
    feature   region of `stencil.py` + 16 times the count; for two edges 1, or for what an end of one takes away from
              the other: -1 for the area of the first, -2 for that of the second
    bits      those of `contact_pairs.py`, and MOLLIFIED

What a vertex feels of a face whose border is nearest is counted with that border, so that a flat sheet is one pair.

Most primitives that are near those of their own body are so at rest, too, and never meet: they are left out here, once,
and not asked at every iterate.
"""

import numpy as np

from add.kernels.borrowed import put
from add.kernels.caching import njit
from add.kernels.contact_pairs import ACTIVE, BITS, FEATURE, PAIR
from add.kernels.mesh_arrays import (
    EDGE_EDGE,
    EDGE_REACH,
    EDGE_VERTEX,
    EDGE_VERTEX_NEAR,
    MOLLIFIED,
    REST_FACTOR,
    VERTEX_EDGE,
    VERTEX_FACE,
    VERTEX_VERTEX,
    first_pairs,
    reach_share,
)
from add.kernels.ordering import order_of, rows_by
from add.kernels.stencil import (
    EDGE_END,
    END_EDGE,
    ENDS,
    FACE,
    FACE_EDGE,
    FACE_VERTEX,
    MOLLIFIED_BELOW,
    edge_cross_square,
    edges_region,
    end_of_edge,
    face_region,
    stencil,
)


@njit(cache=True)
def _room(rows, n):
    if n < rows.shape[0]:
        return rows
    more = np.empty((2 * n + 16, 3), dtype=np.int64)
    put(rows[:n], more)
    return more


@njit(cache=True)
def gather(x, p, n_points, X):
    """Fill X (4, 3) with the places of the points p of a pair."""
    for k in range(n_points):
        X[k, 0], X[k, 1], X[k, 2] = x[p[k], 0], x[p[k], 1], x[p[k], 2]


@njit(cache=True, error_model="numpy", inline="always")
def _beside(X, reach):
    """Whether two edges are further apart than ``reach`` along the line between their middles.

    Of edges of one mesh whose boxes overlap nearly all are: this is a tenth of the work of their distance.
    """
    m0 = 0.5 * (X[2, 0] + X[3, 0] - X[0, 0] - X[1, 0])
    m1 = 0.5 * (X[2, 1] + X[3, 1] - X[0, 1] - X[1, 1])
    m2 = 0.5 * (X[2, 2] + X[3, 2] - X[0, 2] - X[1, 2])
    one = (X[1, 0] - X[0, 0]) * m0 + (X[1, 1] - X[0, 1]) * m1 + (X[1, 2] - X[0, 2]) * m2
    two = (X[3, 0] - X[2, 0]) * m0 + (X[3, 1] - X[2, 1]) * m1 + (X[3, 2] - X[2, 2]) * m2
    square = m0 * m0 + m1 * m1 + m2 * m2
    return square - 0.5 * (abs(one) + abs(two)) > 1.001 * reach * np.sqrt(square)


@njit(cache=True, error_model="numpy")
def apart_at_rest(kind, p, reach, rest, X, c, g, P):
    """Whether two primitives of one body, four points p, stand at least ``reach`` apart at rest."""
    gather(rest, p, 4, X)
    if kind == EDGE_EDGE and _beside(X, reach):
        return True
    region = edges_region(X) if kind == EDGE_EDGE else face_region(X)
    d, _ = stencil(region, X, 4, 1, c, g, P)
    return d >= reach


@njit(cache=True, error_model="numpy")
def _counted(v, n, near, rows, n_rows, x, half, meshes, first, X):
    """Add the rows of vertex v and the faces near[:n] (face, region) in reach of it; return rows and their number."""
    faces, face_edges, edges = meshes.faces, meshes.face_edges, meshes.edges
    n_e, n_f, n_p = edges.shape[0], faces.shape[0], x.shape[0]
    if n == 1 and near[0, 1] == FACE:
        rows = _room(rows, n_rows)
        rows[n_rows, PAIR], rows[n_rows, FEATURE], rows[n_rows, BITS] = v * n_f + near[0, 0], FACE + 16, ACTIVE
        return rows, n_rows + 1
    # Edges and vertices of these faces with the numbers of faces at them; what is nearest takes the counts.
    of_edges, of_vertices = np.empty((3 * n, 3), dtype=np.int64), np.empty((3 * n, 3), dtype=np.int64)
    m_e, m_v = 0, 0
    for k in range(n):
        f, region = near[k, 0], near[k, 1]
        for a in range(3):
            e, at = face_edges[f, a], 0
            while at < m_e and of_edges[at, 0] != e:
                at += 1
            if at == m_e:
                of_edges[at, 0], of_edges[at, 1], of_edges[at, 2] = e, 0, 0
                m_e += 1
            of_edges[at, 1] += 1
            if region == FACE_EDGE + a:
                of_edges[at, 2] += 1
            w, at = faces[f, a], 0
            while at < m_v and of_vertices[at, 0] != w:
                at += 1
            if at == m_v:
                of_vertices[at, 0], of_vertices[at, 1], of_vertices[at, 2] = w, 1, 0  # 1 - n_w + ...
                m_v += 1
            of_vertices[at, 1] -= 1
            if region == FACE_VERTEX + a:
                of_vertices[at, 2] += 1
        if region == FACE:
            rows = _room(rows, n_rows)
            rows[n_rows, PAIR], rows[n_rows, FEATURE], rows[n_rows, BITS] = v * n_f + f, FACE + 16, ACTIVE
            n_rows += 1
    for a in range(3):
        X[0, a] = x[v, a]
    for k in range(m_e):
        e, extra = of_edges[k, 0], of_edges[k, 1] - 1
        if extra > 0:
            one, two, begin, end = edges[e, 0], edges[e, 1], 0, 0
            while of_vertices[begin, 0] != one:
                begin += 1
            while of_vertices[end, 0] != two:
                end += 1
            of_vertices[begin, 1] += extra
            of_vertices[end, 1] += extra
            for a in range(3):
                X[1, a], X[2, a] = x[one, a], x[two, a]
            at, square = end_of_edge(X, 0, 1, 2)
            other = meshes.body[one]
            reach = meshes.vertex_reach[meshes.body[v], other] * (half[meshes.body[v]] + half[other])
            if square >= reach * reach:
                continue  # no face of it is nearest there
            if at < 0:
                of_edges[k, 2] -= extra
            else:
                of_vertices[begin if at == 0 else end, 2] -= extra
        if of_edges[k, 2] != 0:
            rows = _room(rows, n_rows)
            rows[n_rows, PAIR] = first[VERTEX_EDGE] + v * n_e + e
            rows[n_rows, FEATURE], rows[n_rows, BITS] = FACE_EDGE + 16 * of_edges[k, 2], ACTIVE
            n_rows += 1
    # An edge whose nearest point is a vertex passed its count on: vertices come last.
    for k in range(m_v):
        w, count = of_vertices[k, 0], of_vertices[k, 1] + of_vertices[k, 2]
        other = meshes.body[w]
        reach = meshes.vertex_reach[meshes.body[v], other] * (half[meshes.body[v]] + half[other])
        away = (x[v, 0] - x[w, 0]) ** 2 + (x[v, 1] - x[w, 1]) ** 2 + (x[v, 2] - x[w, 2]) ** 2
        if count != 0 and away < reach * reach:
            rows = _room(rows, n_rows)
            rows[n_rows, PAIR] = first[VERTEX_VERTEX] + v * n_p + w
            rows[n_rows, FEATURE], rows[n_rows, BITS] = FACE_VERTEX + 16 * count, ACTIVE
            n_rows += 1
    return rows, n_rows


@njit(cache=True, error_model="numpy")
def _vertices_and_faces(pairs, used, x, half, meshes, rows, n_rows, first):
    """Add the rows of vertices; ``pairs`` are those of `Near` (k, 2), their gaps, runs and least gaps.

    Runs and pairs with greater gaps are left out first: of those that are kept for many iterates nearly all have. What
    bodies have ``used`` are their moves, what they have grown by, and the greatest sum of both of two bodies.
    """
    X, P, c, g = np.zeros((4, 3)), np.zeros((9, 3)), np.zeros(4), np.zeros((4, 4))
    p, near, n = np.zeros(4, dtype=np.int64), np.empty((16, 2), dtype=np.int64), 0
    faces, body, rest, factor = meshes.faces, meshes.body, meshes.rest, meshes.numbers[REST_FACTOR]
    (vf, gaps, runs, least), (moved, grown, most) = pairs, used
    for run in range(least.size):
        if least[run] > most and n == 0:
            continue
        begin, stop = runs[run], runs[run + 1]
        v, other = vf[begin, 0], body[faces[vf[begin, 1], 0]]
        share, whole = meshes.vertex_reach[body[v], other], half[body[v]] + half[other]
        reach = share * whole
        closer = moved[body[v]] + moved[other] + share * (grown[body[v]] + grown[other])
        if least[run] > closer:
            stop = begin
        for k in range(begin, stop):
            if gaps[k] > closer:
                continue
            f, near_enough = vf[k, 1], True
            p[0], p[1], p[2], p[3] = v, faces[f, 0], faces[f, 1], faces[f, 2]
            for a in range(3):  # boxes first
                low = min(x[p[1], a], x[p[2], a], x[p[3], a])
                high = max(x[p[1], a], x[p[2], a], x[p[3], a])
                if x[v, a] < low - reach or x[v, a] > high + reach:
                    near_enough = False
            if not near_enough:
                continue
            gather(x, p, 4, X)
            region = face_region(X)
            d, _ = stencil(region, X, 4, 1, c, g, P)
            if d < reach and (body[v] != other or apart_at_rest(VERTEX_FACE, p, factor * whole, rest, X, c, g, P)):
                if n == near.shape[0]:
                    more = np.empty((2 * n, 2), dtype=np.int64)
                    put(near, more)
                    near = more
                near[n, 0], near[n, 1] = f, region
                n += 1
        if n > 0 and (run + 1 == least.size or vf[runs[run + 1], 0] != v):
            rows, n_rows = _counted(v, n, near, rows, n_rows, x, half, meshes, first, X)
            n = 0
    return rows, n_rows


@njit(cache=True, error_model="numpy")
def _edges_and_edges(pairs, used, x, half, meshes, rows, n_rows, first):
    """Add the rows of edges; see `_vertices_and_faces`."""
    X, P, c, g = np.zeros((4, 3)), np.zeros((9, 3)), np.zeros(4), np.zeros((4, 4))
    p, edges, body, squares = np.zeros(4, dtype=np.int64), meshes.edges, meshes.body, meshes.squares
    n_e, begin, rest, factor = edges.shape[0], n_rows, meshes.rest, meshes.numbers[REST_FACTOR]
    (ee, gaps, runs, least), (moved, grown, most) = pairs, used
    for run in range(least.size):
        if least[run] > most:
            continue
        one, two = body[edges[ee[runs[run], 0], 0]], body[edges[ee[runs[run], 1], 0]]
        more, whole = grown[one] + grown[two], half[one] + half[two]
        closer = moved[one] + moved[two] + (more if more > 0.0 else meshes.numbers[EDGE_REACH] * more)
        if least[run] > closer:
            continue
        for k in range(runs[run], runs[run + 1]):
            if gaps[k] > closer:
                continue
            i, j, away = ee[k, 0], ee[k, 1], False
            p[0], p[1], p[2], p[3] = edges[i, 0], edges[i, 1], edges[j, 0], edges[j, 1]
            reach = reach_share(EDGE_EDGE, i, j, meshes) * whole
            for a in range(3):
                gap = max(
                    min(x[p[0], a], x[p[1], a]) - max(x[p[2], a], x[p[3], a]),
                    min(x[p[2], a], x[p[3], a]) - max(x[p[0], a], x[p[1], a]),
                )
                away |= gap > reach
            if away:
                continue
            gather(x, p, 4, X)
            if _beside(X, reach):
                continue
            region = edges_region(X)
            d, _ = stencil(region, X, 4, 1, c, g, P)
            if d >= reach:
                continue
            bits = ACTIVE
            if edge_cross_square(X) < MOLLIFIED_BELOW * squares[i] * squares[j]:
                bits |= MOLLIFIED
            if one == two and not apart_at_rest(EDGE_EDGE, p, factor * whole, rest, X, c, g, P):
                continue
            rows = _room(rows, n_rows)
            rows[n_rows, PAIR], rows[n_rows, FEATURE] = first[EDGE_EDGE] + i * n_e + j, region + 16
            rows[n_rows, BITS] = bits
            n_rows += 1
    return _ends_of_edges(x, half, meshes, rows, begin, n_rows, first)


@njit(cache=True, error_model="numpy")
def _ends_of_edges(x, half, meshes, rows, begin, n_rows, first):
    """Add what each edge of the pairs of edges rows[begin:n_rows] feels of the other's ends less, or more, often."""
    edges, body, X, stop = meshes.edges, meshes.body, np.zeros((4, 3)), n_rows
    n_e, n_p = edges.shape[0], x.shape[0]
    # (edge, end of the other), whether both are keen, 0 if the two are mollified: those count by themselves.
    ends, n = np.empty(4 * (stop - begin), dtype=np.int64), 0
    for row in range(begin, stop):
        pair = rows[row, PAIR] - first[EDGE_EDGE]
        counts = 0 if rows[row, BITS] & MOLLIFIED else 1
        keen = 1 if meshes.keen[pair // n_e] and meshes.keen[pair % n_e] else 0
        share = 1.0 if keen else meshes.numbers[EDGE_REACH]
        for side in range(2):
            i, j = (pair // n_e, pair % n_e) if side == 0 else (pair % n_e, pair // n_e)
            for k in range(2):
                w = edges[j, k]
                ends[n] = 4 * (i * n_p + w) + 2 * keen + counts
                n += 1
                if counts:
                    continue
                at, square = _nearest_on_edge(w, i, x, edges, X)
                reach = share * (half[body[w]] + half[body[edges[i, 0]]])
                if square < reach * reach:
                    if side == 0:
                        region = EDGE_END + k if at < 0 else ENDS + 2 * at + k
                    else:
                        region = END_EDGE + k if at < 0 else ENDS + 2 * k + at
                    rows = _room(rows, n_rows)
                    rows[n_rows, PAIR], rows[n_rows, BITS] = rows[row, PAIR], ACTIVE | MOLLIFIED
                    rows[n_rows, FEATURE] = region - 16 * (1 + side)
                    n_rows += 1
    ends = ends[order_of(ends)]
    k = 0
    while k < n:
        key, count = ends[k] // 2, -1
        while k < n and ends[k] // 2 == key:
            count += ends[k] % 2
            k += 1
        if count == 0:
            continue
        keen, i, w = key % 2, key // 2 // n_p, key // 2 % n_p
        at, square = _nearest_on_edge(w, i, x, edges, X)
        reach = (1.0 if keen else meshes.numbers[EDGE_REACH]) * (half[body[w]] + half[body[edges[i, 0]]])
        if square < reach * reach:
            rows = _room(rows, n_rows)
            begins = first[EDGE_VERTEX if keen else EDGE_VERTEX_NEAR]
            rows[n_rows, PAIR], rows[n_rows, BITS] = begins + i * n_p + w, ACTIVE
            rows[n_rows, FEATURE] = (FACE_EDGE if at < 0 else FACE_VERTEX + at) - 16 * count
            n_rows += 1
    return rows, n_rows


@njit(cache=True, error_model="numpy")
def _nearest_on_edge(w, e, x, edges, X):
    """Return where vertex w is nearest on edge e, and the squared distance."""
    for a in range(3):
        X[0, a], X[1, a], X[2, a] = x[w, a], x[edges[e, 0], a], x[edges[e, 1], a]
    return end_of_edge(X, 0, 1, 2)


@njit(cache=True, error_model="numpy")
def touching_rows(near, used, x, half, meshes):
    """Return the rows (k, 3) of all pairs nearer than their reach, without bits of the law, sorted.

    ``near`` has all that may touch, ``used`` are moves and growth of bodies since (`add.kernels.mesh_arrays.nearer`).
    ``half`` are the half-thicknesses of the bodies [m].
    """
    (moved, grown), most = used, 0.0
    for b in range(half.size):
        most = max(most, 2.0 * (moved[b] + max(grown[b], 0.0)))
    used = moved, grown, most
    first = first_pairs(x.shape[0], meshes.edges.shape[0], meshes.faces.shape[0])
    rows = np.empty((16, 3), dtype=np.int64)
    vf, ee = (near.vf, near.vf_gaps, near.vf_runs, near.vf_least), (near.ee, near.ee_gaps, near.ee_runs, near.ee_least)
    rows, n = _vertices_and_faces(vf, used, x, half, meshes, rows, 0, first)
    rows, n = _edges_and_edges(ee, used, x, half, meshes, rows, n, first)
    return rows_by(rows[:n], PAIR)
