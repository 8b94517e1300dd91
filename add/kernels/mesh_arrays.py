"""The arrays of a term of contact between meshes, the numbers of its pairs, and which of them hold.

Vertices that carry are held (`add.contact.surfaces`), and edges that meet within the whole reach where they cross; what
else touches creeps. Edge a that meets an end of edge b meets the other edges there, too: as many of these pairs are
held as `mesh_pairs.py` leaves after what the end takes away. Nearly parallel edges are not held: where they touch is
anywhere along them. What is held keeps its feature during a step, also where its coefficients leave it by round-off:
between two meshes of one grid each vertex is over an edge.
"""

from typing import NamedTuple

import numpy as np

from add.kernels.arena import Floats, Floats2, Floats3, Ints, Ints2, Ints3
from add.kernels.borrowed import put
from add.kernels.caching import njit
from add.kernels.contact_pairs import ACTIVE, BITS, FEATURE, GIVEN, PAIR, STICKS
from add.kernels.ordering import first_not_below, order_of, rows_by
from add.kernels.rotation import rotation_matrix
from add.kernels.stencil import EDGE_END, EDGES, END_EDGE, ENDS, NORMAL, stencil

#: Bit of edges that are nearly parallel.
MOLLIFIED = 128
#: Region and count of a feature.
REGION_BITS = 4
REGION_MASK = 15
#: What stands in `Meshes.numbers`.
REST_FACTOR, EDGE_REACH = 0, 1
#: Kinds of pairs; the last two are an edge and the end of another, both keen or not.
VERTEX_FACE, VERTEX_EDGE, VERTEX_VERTEX, EDGE_EDGE, EDGE_VERTEX, EDGE_VERTEX_NEAR = 0, 1, 2, 3, 4, 5


class Meshes(NamedTuple):
    """The primitives of a `ContactSurface`, as the kernels take them; flags are integers.

    Attributes
    ----------
    edges, faces : (n_e, 2), (n_f, 3) points
    face_edges : (n_f, 3)
    sharp : (n_e,)
    rest : (n_p, 3) [m]
    areas, edge_areas : (n_p,), (n_e,) [m^2]
    squares : (n_e,) squared rest lengths [m^2]
    edge_normals : (n_e, 2, 3) of the rest faces of each edge, zero where there are not two
    body : (n_p,)
    meets : (n_bodies, n_bodies)
    round : (n_bodies,) whether it turns, and half-thicknesses are its radius; see `mesh_contact.py`
    vertex_shares, vertex_reach, keen : as in `add.contact.surfaces.Sides`
    points : (n_p, 3) int64: number of the carrier, row of `bodies` (-1: none), class; carrier -1 stands still
    carriers : (n_c, 2) int64: first coordinate, number of coordinates
    bodies : (n_b, 4) int64: first coordinate, indices in theta of X_c (-1: zero)
    tables : (C, C, 8) indices in theta of k_n, k_d, k_t, c_f, onset, ramp, and of the curve of friction, -1 for none
    thickness : (n_bodies,) indices in theta of the half-thicknesses; -1 is zero
    numbers : (2,) rest_factor of the surface, edge_reach of the sides
    """

    edges: Ints2
    faces: Ints2
    face_edges: Ints2
    sharp: Ints
    rest: Floats2
    areas: Floats
    edge_areas: Floats
    squares: Floats
    edge_normals: Floats3
    body: Ints
    meets: Ints2
    round: Ints
    vertex_shares: Floats2
    vertex_reach: Floats2
    keen: Ints
    points: Ints2
    carriers: Ints2
    bodies: Ints2
    tables: Ints3
    thickness: Ints
    numbers: Floats


class Near(NamedTuple):
    """Vertices and faces (k, 2), sorted by vertex, and edges (m, 2) that are near each other at places ``x``.

    They are all of which the distance is at most the sum of ``wide`` (n_bodies,) of both bodies, pairs of one body left
    out that stand too near each other at rest to meet even with half-thicknesses ``least`` (n_bodies,) [m]. Of each
    pair ``vf_gaps`` (k,) and ``ee_gaps`` (m,) say by how much at least it is further apart than the reach at which it
    touches with ``half`` (n_bodies,) [m]. Pairs of one vertex, or of one edge, with one body are a run: ``vf_runs`` and
    ``ee_runs`` say where each begins, and where the last one ends, ``vf_least`` and ``ee_least`` the least gap of each.
    """

    x: Floats2
    wide: Floats
    half: Floats
    least: Floats
    vf: Ints2
    ee: Ints2
    vf_gaps: Floats
    ee_gaps: Floats
    vf_runs: Ints
    ee_runs: Ints
    vf_least: Floats
    ee_least: Floats


@njit(cache=True, error_model="numpy")
def nearer(near, x, half, meshes):
    """Return how far each body (n_bodies,) has moved since pairs were looked for, and how much thicker it is [m].

    A pair has used of its gap the ways of both bodies, and of what they have grown by the share that its reach has of
    both half-thicknesses. Last, whether all that may touch by now is among the pairs.
    """
    moved, grown = np.zeros(half.size), np.zeros(half.size)
    if near.x.shape[0] != x.shape[0]:
        return moved, grown, False
    for i in range(x.shape[0]):
        b = meshes.body[i]
        square = (x[i, 0] - near.x[i, 0]) ** 2 + (x[i, 1] - near.x[i, 1]) ** 2 + (x[i, 2] - near.x[i, 2]) ** 2
        if not square < np.inf:
            return moved, grown, False
        moved[b] = max(moved[b], square)
    for b in range(half.size):
        moved[b], grown[b] = np.sqrt(moved[b]), half[b] - near.half[b]
        if half[b] < near.least[b]:
            return moved, grown, False
    for b in range(half.size):  # what one moves less, another one may move more
        over = half[b] + moved[b] - near.wide[b]
        if over > 0.0:
            for c in range(half.size):
                if meshes.meets[b, c] and over + half[c] + moved[c] - near.wide[c] > 0.0:
                    return moved, grown, False
    return moved, grown, True


@njit(cache=True, error_model="numpy")
def carried_places(q, theta, rest, carrier, rigid, centre):
    """Return the places (n_p, 3) of the points of a `add.contact.surfaces.ContactSurface` [m]."""
    out, R, frame = rest.copy(), np.eye(3), -1
    for i in range(rest.shape[0]):
        first = carrier[i]
        if first < 0:
            continue
        if not rigid[i]:
            for a in range(3):
                out[i, a] = q[first + a]
            continue
        if first != frame:
            R, frame = rotation_matrix(q[first + 3 : first + 6]), first
        for a in range(3):
            out[i, a] = q[first + a]
            for b in range(3):
                arm = rest[i, b] - (theta[centre[i, b]] if centre[i, b] >= 0 else 0.0)
                out[i, a] += R[a, b] * arm
    return out


@njit(cache=True)
def first_pairs(n_points, n_edges, n_faces):
    """Return where the pairs of each kind begin: v n_f + f; v n_e + e; v n_p + w; a n_e + b; a n_p + w, twice."""
    one = n_points * n_faces
    two = one + n_points * n_edges
    three = two + n_points * n_points
    four = three + n_edges * n_edges
    return 0, one, two, three, four, four + n_edges * n_points


@njit(cache=True)
def unnumbered(pair, n_points, n_edges, n_faces):
    """Return kind and the two primitives of a pair."""
    first = first_pairs(n_points, n_edges, n_faces)
    if pair < first[1]:
        return VERTEX_FACE, pair // n_faces, pair % n_faces
    if pair < first[2]:
        return VERTEX_EDGE, (pair - first[1]) // n_edges, (pair - first[1]) % n_edges
    if pair < first[3]:
        return VERTEX_VERTEX, (pair - first[2]) // n_points, (pair - first[2]) % n_points
    if pair < first[4]:
        return EDGE_EDGE, (pair - first[3]) // n_edges, (pair - first[3]) % n_edges
    if pair < first[5]:
        return EDGE_VERTEX, (pair - first[4]) // n_points, (pair - first[4]) % n_points
    return EDGE_VERTEX_NEAR, (pair - first[5]) // n_points, (pair - first[5]) % n_points


# Inlined: to count the references of the arrays of `Meshes` takes 200 ns a call, as much as the distance of a pair.
@njit(cache=True, inline="always")
def points_of(kind, i, j, meshes, p):
    """Fill the points p (4,) of a pair, -1 for none; return how many they are."""
    edges = meshes.edges
    p[3] = -1
    if kind == EDGE_EDGE:
        p[0], p[1], p[2], p[3] = edges[i, 0], edges[i, 1], edges[j, 0], edges[j, 1]
        return 4
    if kind == VERTEX_FACE:
        p[0], p[1], p[2], p[3] = i, meshes.faces[j, 0], meshes.faces[j, 1], meshes.faces[j, 2]
        return 4
    if kind == VERTEX_VERTEX:
        p[0], p[1], p[2] = i, j, -1
        return 2
    if kind == VERTEX_EDGE:
        p[0], p[1], p[2] = i, edges[j, 0], edges[j, 1]
    else:
        p[0], p[1], p[2] = j, edges[i, 0], edges[i, 1]
    return 3


@njit(cache=True, inline="always")
def other_body(kind, j, meshes):
    """Return the body that vertex i of a pair meets: that of its face, edge or vertex j."""
    if kind == VERTEX_FACE:
        return meshes.body[meshes.faces[j, 0]]
    return meshes.body[meshes.edges[j, 0]] if kind == VERTEX_EDGE else meshes.body[j]


@njit(cache=True, inline="always")
def weight_of(kind, i, j, feature, meshes):
    """Return the area of a pair, its count included [m^2]."""
    edge_areas, count = meshes.edge_areas, feature >> REGION_BITS
    if kind == EDGE_EDGE:
        if count == 1:
            return 0.25 * (edge_areas[i] + edge_areas[j])
        return -0.25 * (edge_areas[i] if count == -1 else edge_areas[j])
    if kind > EDGE_EDGE:
        return 0.25 * count * edge_areas[i]
    return meshes.vertex_shares[meshes.body[i], other_body(kind, j, meshes)] * count * meshes.areas[i]


@njit(cache=True, inline="always")
def reach_share(kind, i, j, meshes):
    """Return the share of the sum of half-thicknesses within which a pair touches."""
    if kind < EDGE_EDGE:
        return meshes.vertex_reach[meshes.body[i], other_body(kind, j, meshes)]
    if kind == EDGE_EDGE:
        return 1.0 if meshes.keen[i] and meshes.keen[j] else meshes.numbers[EDGE_REACH]
    return 1.0 if kind == EDGE_VERTEX else meshes.numbers[EDGE_REACH]


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
