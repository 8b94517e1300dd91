"""Lengths of paths through points: straight between two of them, or the shortest way around a sphere or a cylinder.

With p_0 and p_1 the ends seen from the centre, u the axis (zero for a sphere) and z_i = p_i . u, the way across the
axis is that around a circle of radius r. With A = |p_0|^2 - z_0^2, B = |p_1|^2 - z_1^2, C = p_0 . p_1 - z_0 z_1 it has
the two tangents t_i and an arc,

    P = t_0 + t_1 + r (phi - acos(r / sqrt A) - acos(r / sqrt B)),   t_0 = sqrt(A - r^2),   cos phi = C / sqrt(A B)

on the near side; 2 pi - phi takes the place of phi on the far side, and phi + 2 pi where the tangents of the near side
are too short to meet before they touch. A cylinder unrolled is flat, so that the length is sqrt(P^2 + (z_1 - z_0)^2).
Which side, and whether the path touches at all, is MuJoCo's choice (`engine_util_misc.c`,
mju_wrap): the near side where the straight line meets the circle, or the side on which a given point lies. Length and
slope have no jump where a path lifts off.
"""

import math

import numpy as np

from add.kernels.caching import CALLED, njit
from add.kernels.ordering import add_congruent

#: Kinds of segments.
STRAIGHT, SPHERE, CYLINDER = range(3)
#: Share of the squared distances below which two ends are one, or in line with the centre.
_SMALL = 1e-20


@njit(**CALLED)
def _turned(A, B, C, r, side, s0, s1):
    """Return the angle over which the path runs, phi, 2 pi - phi or phi + 2 pi, and 0 where it touches not.

    ``s0`` and ``s1`` are the products of the point of the side with the ends, across the axis, where ``side``.
    """
    area, apart = A * B - C * C, A + B - 2.0 * C
    if A < r * r or B < r * r or apart <= _SMALL * (A + B) or area <= _SMALL * A * B:
        return 0.0
    t = min(max((A - C) / apart, 0.0), 1.0)
    meets = (1.0 - t) ** 2 * A + 2.0 * t * (1.0 - t) * C + t * t * B <= r * r
    phi = math.atan2(math.sqrt(area), C)
    if not side:
        return phi if meets else 0.0
    if not meets and (1.0 - t) * s0 + t * s1 >= 0.0:
        return 0.0
    a0, a1 = math.acos(r / math.sqrt(A)), math.acos(r / math.sqrt(B))
    # The point in the plane of the ends: x along the first one, y to the other's side.
    x = s0 / math.sqrt(A)
    y = (s1 - s0 * C / A) * math.sqrt(A / area)
    near, far, half = 0.5 * (phi + a0 - a1), 0.5 * (phi - a0 + a1), 0.5 * (phi + a0 + a1)
    good = x * math.cos(near) + y * math.sin(near)
    other = (x * math.cos(far) + y * math.sin(far)) * (1.0 if half < 0.5 * math.pi else -1.0)
    back = a0 + a1 - phi
    if back <= 0.0:
        return phi if good > other else 2.0 * math.pi - phi
    # On the near side the tangents meet before they touch, unless one of them is too short: then it is a whole loop.
    meeting = r * math.tan(0.5 * back)
    crossed = meeting <= math.sqrt(A - r * r) and meeting <= math.sqrt(B - r * r)
    return phi + 2.0 * math.pi if good > other and not crossed else 2.0 * math.pi - phi


@njit(**CALLED)
def _around(A, B, C, r, phi, slope, bend):
    """Return P; fill its slopes (4,) by A, B, C (and nothing), and their slopes (4, 4)."""
    t0, t1, s = math.sqrt(A - r * r), math.sqrt(B - r * r), math.sqrt(A * B - C * C)
    way = -r if math.pi < phi < 2.0 * math.pi else r
    slope[:], bend[:] = 0.0, 0.0
    slope[0] = 0.5 * t0 / A + 0.5 * way * C / (A * s)
    slope[1] = 0.5 * t1 / B + 0.5 * way * C / (B * s)
    slope[2] = -way / s
    cube = s * s * s
    bend[0, 0] = 0.25 / (A * t0) - 0.5 * t0 / (A * A) - way * C * (0.5 / (A * A * s) + 0.25 * B / (A * cube))
    bend[1, 1] = 0.25 / (B * t1) - 0.5 * t1 / (B * B) - way * C * (0.5 / (B * B * s) + 0.25 * A / (B * cube))
    bend[2, 2] = -way * C / cube
    bend[0, 1] = bend[1, 0] = -0.25 * way * C / cube
    bend[0, 2] = bend[2, 0] = 0.5 * way * B / cube
    bend[1, 2] = bend[2, 1] = 0.5 * way * A / cube
    return t0 + t1 + r * (phi - math.acos(r / math.sqrt(A)) - math.acos(r / math.sqrt(B)))


@njit(**CALLED)
def _wrapped(kind, x, r, side, g, bent):
    """Return the length from x[0] to x[1] around x[2], x[3] a unit further on its axis, x[4] the point of the side.

    -1 where the path touches not. Fill ``g`` (12,) and ``bent`` (12, 12), its slopes by the first four and theirs.
    """
    p, z = np.zeros((3, 3)), np.zeros(2)  # both ends, and the axis
    c, from_side = 0.0, np.zeros(2)
    for i in range(3):
        p[0, i], p[1, i] = x[0, i] - x[2, i], x[1, i] - x[2, i]
        p[2, i] = x[3, i] - x[2, i] if kind == CYLINDER else 0.0
        c += p[0, i] * p[1, i]
    squares, along = np.zeros(2), 0.0
    for k in range(2):
        for i in range(3):
            z[k] += p[k, i] * p[2, i]
            squares[k] += p[k, i] ** 2
            from_side[k] += p[k, i] * (x[4, i] - x[2, i])
    for i in range(3):
        along += p[2, i] * (x[4, i] - x[2, i])
    A, B, C, d = squares[0] - z[0] ** 2, squares[1] - z[1] ** 2, c - z[0] * z[1], z[1] - z[0]
    phi = _turned(A, B, C, r, side, from_side[0] - z[0] * along, from_side[1] - z[1] * along)
    if phi == 0.0:
        return -1.0
    slope, bend = np.empty(4), np.empty((4, 4))
    flat = _around(A, B, C, r, phi, slope, bend)
    length = math.sqrt(flat * flat + d * d)
    down = np.array([0.0, 0.0, 0.0, d])
    for k in range(4):
        for l in range(4):
            bend[k, l] = slope[k] * slope[l] + flat * bend[k, l]
    bend[3, 3] = 1.0
    for k in range(4):
        slope[k] = (flat * slope[k] + down[k]) / length
    for k in range(4):
        for l in range(4):
            bend[k, l] = (bend[k, l] - slope[k] * slope[l]) / length
    # By |p_0|^2, |p_1|^2, p_0 . p_1, z_0 and z_1.
    to = np.zeros((4, 5))
    to[0, 0] = to[1, 1] = to[2, 2] = to[3, 4] = 1.0
    to[0, 3], to[1, 4], to[2, 3], to[2, 4], to[3, 3] = -2.0 * z[0], -2.0 * z[1], -z[1], -z[0], -1.0
    first, second = np.zeros(5), np.zeros((5, 5))
    for k in range(5):
        for l in range(4):
            first[k] += to[l, k] * slope[l]
    add_congruent(to, bend, to, np.empty((4, 5)), second)
    second[3, 3] -= 2.0 * slope[0]
    second[4, 4] -= 2.0 * slope[1]
    second[3, 4] -= slope[2]
    second[4, 3] -= slope[2]
    # By p_0, p_1 and the axis, and by the four points.
    by, on = np.zeros((5, 12)), np.zeros((9, 12))
    for i in range(3):
        on[i, i] = on[3 + i, 3 + i] = 1.0
        on[i, 6 + i] = on[3 + i, 6 + i] = -1.0
        if kind == CYLINDER:
            on[6 + i, 9 + i], on[6 + i, 6 + i] = 1.0, -1.0
    pairs = ((0, 0), (1, 1), (0, 1), (0, 2), (1, 2))
    twice = np.zeros((9, 9))
    for k in range(5):
        one, two = pairs[k]
        for i in range(3):
            for j in range(12):
                by[k, j] += p[two, i] * on[3 * one + i, j] + p[one, i] * on[3 * two + i, j]
            twice[3 * one + i, 3 * two + i] += first[k]
            twice[3 * two + i, 3 * one + i] += first[k]
    bent[:] = 0.0
    for j in range(12):
        g[j] = 0.0
        for k in range(5):
            g[j] += by[k, j] * first[k]
    add_congruent(by, second, by, np.empty((5, 12)), bent)
    add_congruent(on, twice, on, np.empty((9, 12)), bent)
    return length


@njit(**CALLED)
def _straight(x, g, bent):
    """Return the distance of x[0] and x[1]; fill ``g`` (6,) and ``bent`` (6, 6). Where they meet the slope is zero."""
    n, length = np.empty(3), 0.0
    for i in range(3):
        n[i] = x[1, i] - x[0, i]
        length += n[i] * n[i]
    length = math.sqrt(length)
    bent[:] = 0.0
    g[:] = 0.0
    if length == 0.0:
        return 0.0
    for i in range(3):
        n[i] /= length
    for i in range(3):
        g[i], g[3 + i] = -n[i], n[i]
        for j in range(3):
            value = ((1.0 if i == j else 0.0) - n[i] * n[j]) / length
            bent[i, j] = bent[3 + i, 3 + j] = value
            bent[i, 3 + j] = bent[3 + i, j] = -value
    return length


@njit(**CALLED)
def path_length(q, places, segments, sizes, g, bent):
    """Return the length of a path, the weighted sum of its segments' lengths; fill its slopes and theirs.

    Parameters
    ----------
    q : (n,) rows that hold points
    places : (m,) the first row of each point
    segments : (k, 6) kind, and numbers of points in ``places``: both ends, centre, axis, side; -1 for none
    sizes : (k, 2) weight and radius
    g, bent : (3 m,), (3 m, 3 m)
    """
    g[:], bent[:] = 0.0, 0.0
    x, slopes, twice = np.zeros((5, 3)), np.empty(12), np.empty((12, 12))
    total = 0.0
    for s in range(segments.shape[0]):
        kind, weight = segments[s, 0], sizes[s, 0]
        for k in range(5):
            point = segments[s, 1 + k]
            for i in range(3):
                x[k, i] = q[places[point] + i] if point >= 0 else 0.0
        length, count = -1.0, 4
        if kind != STRAIGHT:
            length = _wrapped(kind, x, sizes[s, 1], segments[s, 5] >= 0, slopes, twice)
        if length < 0.0:
            length, count = _straight(x, slopes[:6], twice[:6, :6]), 2
        total += weight * length
        for a in range(count):
            one = segments[s, 1 + a]
            if one < 0:  # the axis of a sphere
                continue
            for i in range(3):
                g[3 * one + i] += weight * slopes[3 * a + i]
                for b in range(count):
                    two = segments[s, 1 + b]
                    if two >= 0:
                        for j in range(3):
                            bent[3 * one + i, 3 * two + j] += weight * twice[3 * a + i, 3 * b + j]
    return total
