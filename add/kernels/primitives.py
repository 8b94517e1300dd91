"""Distances of points, triangles and segments, and segments that pass through triangles (Ericson 2005, chapter 5)."""

import math

import numpy as np

from add.kernels.caching import njit

#: Parts of a triangle: its face, the edges 01, 12, 20, the corners 0, 1, 2.
FACE, EDGE_01, EDGE_12, EDGE_20, CORNER_0, CORNER_1, CORNER_2 = 0, 1, 2, 3, 4, 5, 6
#: Pairs that come nearer by more than this share of their distance are looked at closely.
CAREFUL = 0.5


@njit(cache=True, error_model="numpy", inline="always")
def _dot(a0, a1, a2, b0, b1, b2):
    return a0 * b0 + a1 * b1 + a2 * b2


@njit(cache=True, error_model="numpy")
def closest_on_triangle(p0, p1, p2, a, b, c):
    """Return the part of the triangle (a, b, c) nearest to a point, and the weights of b and c there.

    Every test is the sign of a product, so that a degenerate triangle ends in an edge or a corner.
    """
    u0, u1, u2 = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    w0, w1, w2 = c[0] - a[0], c[1] - a[1], c[2] - a[2]
    x0, x1, x2 = p0 - a[0], p1 - a[1], p2 - a[2]
    d1, d2 = _dot(u0, u1, u2, x0, x1, x2), _dot(w0, w1, w2, x0, x1, x2)
    if d1 <= 0.0 and d2 <= 0.0:
        return CORNER_0, 0.0, 0.0
    x0, x1, x2 = p0 - b[0], p1 - b[1], p2 - b[2]
    d3, d4 = _dot(u0, u1, u2, x0, x1, x2), _dot(w0, w1, w2, x0, x1, x2)
    if d3 >= 0.0 and d4 <= d3:
        return CORNER_1, 1.0, 0.0
    vc = d1 * d4 - d3 * d2
    if vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        return EDGE_01, d1 / (d1 - d3), 0.0
    x0, x1, x2 = p0 - c[0], p1 - c[1], p2 - c[2]
    d5, d6 = _dot(u0, u1, u2, x0, x1, x2), _dot(w0, w1, w2, x0, x1, x2)
    if d6 >= 0.0 and d5 <= d6:
        return CORNER_2, 0.0, 1.0
    vb = d5 * d2 - d1 * d6
    if vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        return EDGE_20, 0.0, d2 / (d2 - d6)
    va = d3 * d6 - d5 * d4
    if va <= 0.0 and d4 - d3 >= 0.0 and d5 - d6 >= 0.0:
        t = (d4 - d3) / ((d4 - d3) + (d5 - d6))
        return EDGE_12, 1.0 - t, t
    total = va + vb + vc
    return FACE, vb / total, vc / total


@njit(cache=True, error_model="numpy")
def point_triangle_distance(p, a, b, c):
    """Return the distance of a point from a triangle."""
    _, v, w = closest_on_triangle(p[0], p[1], p[2], a, b, c)
    u, total = 1.0 - v - w, 0.0
    for k in range(3):
        y = p[k] - (u * a[k] + v * b[k] + w * c[k])
        total += y * y
    return math.sqrt(total)


@njit(cache=True, error_model="numpy")
def segment_distance(a, b, c, d):
    """Return the distance of the segments ab and cd."""
    least = math.inf
    # Where no end is nearest, both lines are at their closest points.
    u0, u1, u2 = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    v0, v1, v2 = d[0] - c[0], d[1] - c[1], d[2] - c[2]
    w0, w1, w2 = a[0] - c[0], a[1] - c[1], a[2] - c[2]
    uu, vv, uv = _dot(u0, u1, u2, u0, u1, u2), _dot(v0, v1, v2, v0, v1, v2), _dot(u0, u1, u2, v0, v1, v2)
    uw, vw = _dot(u0, u1, u2, w0, w1, w2), _dot(v0, v1, v2, w0, w1, w2)
    n = uu * vv - uv * uv
    if n > 0.0:
        s, t = (uv * vw - vv * uw) / n, (uu * vw - uv * uw) / n
        if 0.0 < s < 1.0 and 0.0 < t < 1.0:
            y0, y1, y2 = w0 + s * u0 - t * v0, w1 + s * u1 - t * v1, w2 + s * u2 - t * v2
            least = math.sqrt(_dot(y0, y1, y2, y0, y1, y2))
    least = min(least, _point_segment(a, c, d), _point_segment(b, c, d))
    return min(least, _point_segment(c, a, b), _point_segment(d, a, b))


@njit(cache=True, error_model="numpy")
def _point_segment(p, a, b):
    u0, u1, u2 = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    x0, x1, x2 = p[0] - a[0], p[1] - a[1], p[2] - a[2]
    uu = _dot(u0, u1, u2, u0, u1, u2)
    t = min(max(_dot(u0, u1, u2, x0, x1, x2) / uu, 0.0), 1.0) if uu > 0.0 else 0.0
    x0, x1, x2 = x0 - t * u0, x1 - t * u1, x2 - t * u2
    return math.sqrt(_dot(x0, x1, x2, x0, x1, x2))


@njit(cache=True, error_model="numpy")
def _volume(a, b, c, d):
    """Six times the signed volume of a tetrahedron."""
    u0, u1, u2 = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    v0, v1, v2 = c[0] - a[0], c[1] - a[1], c[2] - a[2]
    w0, w1, w2 = d[0] - a[0], d[1] - a[1], d[2] - a[2]
    return u0 * (v1 * w2 - v2 * w1) + u1 * (v2 * w0 - v0 * w2) + u2 * (v0 * w1 - v1 * w0)


@njit(cache=True, error_model="numpy")
def crossing(pairs, edges, faces, x):
    """Return which pairs (k, 2) of an edge and a face pass through each other; to touch is not to cross."""
    out = np.zeros(pairs.shape[0], dtype=np.bool_)
    for k in range(pairs.shape[0]):
        p, q = x[edges[pairs[k, 0], 0]], x[edges[pairs[k, 0], 1]]
        a, b, c = x[faces[pairs[k, 1], 0]], x[faces[pairs[k, 1], 1]], x[faces[pairs[k, 1], 2]]
        if _volume(a, b, c, p) * _volume(a, b, c, q) >= 0.0:
            continue
        s, t, u = _volume(p, q, a, b), _volume(p, q, b, c), _volume(p, q, c, a)
        out[k] = (s > 0.0 and t > 0.0 and u > 0.0) or (s < 0.0 and t < 0.0 and u < 0.0)
    return out


@njit(cache=True, error_model="numpy")
def _common(points, x0, x1):
    """Return the mean way of four points."""
    mean0, mean1, mean2 = 0.0, 0.0, 0.0
    for i in points:
        mean0 += 0.25 * (x1[i, 0] - x0[i, 0])
        mean1 += 0.25 * (x1[i, 1] - x0[i, 1])
        mean2 += 0.25 * (x1[i, 2] - x0[i, 2])
    return mean0, mean1, mean2


@njit(cache=True, error_model="numpy")
def _moves(points, first, stop, mean, x0, x1):
    """Return the longest way of some of the points, their common way left out."""
    most = 0.0
    for k in range(first, stop):
        i = points[k]
        y0 = x1[i, 0] - x0[i, 0] - mean[0]
        y1 = x1[i, 1] - x0[i, 1] - mean[1]
        y2 = x1[i, 2] - x0[i, 2] - mean[2]
        most = max(most, y0 * y0 + y1 * y1 + y2 * y2)
    return math.sqrt(most)


@njit(cache=True, error_model="numpy")
def _ways_apart(points, first, stop, last, x0, x1, least):
    """Whether the boxes of the ways of points[first:stop] and points[stop:last] are more than ``least`` apart."""
    for a in range(3):
        low, high = math.inf, -math.inf
        for k in range(first, stop):
            i = points[k]
            low, high = min(low, x0[i, a], x1[i, a]), max(high, x0[i, a], x1[i, a])
        other_low, other_high = math.inf, -math.inf
        for k in range(stop, last):
            i = points[k]
            other_low, other_high = min(other_low, x0[i, a], x1[i, a]), max(other_high, x0[i, a], x1[i, a])
        if low - least > other_high or other_low > high + least:
            return True
    return False


@njit(cache=True, error_model="numpy")
def ways_from(x, x0, x1, body, n_bodies):
    """Return the greatest change of a coordinate of each body's points (n_points, 3) from x to x0 or x1 [m].

    Infinite where one is not a number.
    """
    out = np.zeros(n_bodies)
    for i in range(x.shape[0]):
        for a in range(3):
            way, other = abs(x0[i, a] - x[i, a]), abs(x1[i, a] - x[i, a])
            if not (way < np.inf and other < np.inf):
                way = np.inf
            out[body[i]] = max(out[body[i]], way, other)
    return out


@njit(cache=True, error_model="numpy")
def greatest_sum(ways, meets):
    """Return the greatest sum of the ways (n_bodies,) of two bodies that meet, zero if none do [m]."""
    most = 0.0
    for b in range(ways.size):
        if 2.0 * ways[b] > most:  # the longer one of a pair that counts
            for c in range(ways.size):
                if meets[b, c] and ways[c] <= ways[b]:
                    most = max(most, ways[b] + ways[c])
    return most


@njit(cache=True, error_model="numpy")
def pairs_within(pairs, gaps, bodies, ways, most, more):
    """Return the pairs (k, 2) whose gaps, sorted, are at most ``more`` beyond the ways of both ``bodies`` (k, 2) [m].

    No sum of ways of two bodies that meet is greater than ``most``.
    """
    stop, n = 0, 0
    while stop < pairs.shape[0] and gaps[stop] <= most + more:
        n += gaps[stop] <= ways[bodies[stop, 0]] + ways[bodies[stop, 1]] + more
        stop += 1
    out, n = np.empty((n, 2), dtype=np.int64), 0
    for k in range(stop):
        if gaps[k] <= ways[bodies[k, 0]] + ways[bodies[k, 1]] + more:
            out[n, 0], out[n, 1] = pairs[k, 0], pairs[k, 1]
            n += 1
    return out


@njit(cache=True, error_model="numpy")
def box_gap(x, points, stop):
    """Return the greatest gap along an axis between the boxes of points[:stop] and of those behind [m]."""
    gap = -math.inf
    for a in range(3):
        low, high, other_low, other_high = math.inf, -math.inf, math.inf, -math.inf
        for i in points[:stop]:
            low, high = min(low, x[i, a]), max(high, x[i, a])
        for i in points[stop:]:
            other_low, other_high = min(other_low, x[i, a]), max(other_high, x[i, a])
        gap = max(gap, low - other_high, other_low - high)
    return gap


@njit(cache=True, error_model="numpy")
def box_gaps(x, pairs, stop):
    """Return `box_gap` of pairs of primitives, points (k, m)."""
    out = np.empty(pairs.shape[0])
    for k in range(out.size):
        out[k] = box_gap(x, pairs[k], stop)
    return out


@njit(cache=True, error_model="numpy")
def may_collide(vf, ee, edges, faces, x0, x1, least):
    """Return which pairs of each kind come together on straight ways by more than half their distance beyond ``least``.

    Pairs of which the boxes of the ways are further apart do not count: more pairs do no harm. Lengths are in [m].
    """
    of_vf, of_ee = np.zeros(vf.shape[0], dtype=np.bool_), np.zeros(ee.shape[0], dtype=np.bool_)
    points = np.empty(4, dtype=np.int64)
    for k in range(vf.shape[0]):
        points[0], face = vf[k, 0], vf[k, 1]
        points[1], points[2], points[3] = faces[face, 0], faces[face, 1], faces[face, 2]
        if _ways_apart(points, 0, 1, 4, x0, x1, least):
            continue
        mean = _common(points, x0, x1)
        way = _moves(points, 0, 1, mean, x0, x1) + _moves(points, 1, 4, mean, x0, x1)
        far = point_triangle_distance(x0[points[0]], x0[points[1]], x0[points[2]], x0[points[3]])
        of_vf[k] = way > CAREFUL * max(far - least, 0.0)
    for k in range(ee.shape[0]):
        one, two = ee[k, 0], ee[k, 1]
        points[0], points[1], points[2], points[3] = edges[one, 0], edges[one, 1], edges[two, 0], edges[two, 1]
        if _ways_apart(points, 0, 2, 4, x0, x1, least):
            continue
        mean = _common(points, x0, x1)
        way = _moves(points, 0, 2, mean, x0, x1) + _moves(points, 2, 4, mean, x0, x1)
        far = segment_distance(x0[points[0]], x0[points[1]], x0[points[2]], x0[points[3]])
        of_ee[k] = way > CAREFUL * max(far - least, 0.0)
    return of_vf, of_ee
