"""Places of points on bodies; those of rims stand where a disc is lowest over a flat or a round face.

A rim carries n points at equal angles. Fixed to the body they would roll as a prism does, over edges. They turn about
the axis a, all by the same angle psi, so that the first of them, from its direction e, comes where the gap g of the
circle, of radius r, is least: to u, with n = grad g and its Hessian H there, s = a x u, and t = n - (n.a) a,

    n.s = 0,   over a face that is flat, and over a ball from its middle, u = -t/|t|
    c = C + R_a(psi) (X - C),   C on the axis

Material goes on with v + omega x rho: only the place knows of psi. With y = c - C, the turns dphi of both bodies and
the way ds of the first point's material, seen from the shape's,

    dpsi = -((dphi_b - dphi_a).h + w.ds)/(|t| + r s.H s),   h = n x s,   w = H s
    dc = ((dphi_b - dphi_a).h + w.ds) P,                     P = -(a x y)/(|t| + r s.H s)

of what body a does not carry along. The first point has the least gap of the circle, whose gradient is that of the
material there (the envelope theorem). Three points and more bear a cylinder that stands on its end alike however they
are turned: there, at |t| < `UPRIGHT`, where psi has no limit, they stay as the body has them. Where a rim crosses the
core of a round side in full, as a line does (`contact_lines.py`), none of its points touch that side: a wide rim
crosses a rod at two places, between its points. The face under the middle of a rim decides which way it turns; beside
a cylinder that is the end nearer to it, if the place where the rim is lowest is over that.
"""

import math

import numpy as np
from numba import typeof, types

from add.kernels.by_address import when_called
from add.kernels.caching import njit
from add.kernels.contact_arrays import CENTRE, HALF, PLACE, Frames, nothing
from add.kernels.contact_circles import UPRIGHT, crosses_in_full
from add.kernels.contact_pairs import Shapes, to_frame
from add.kernels.distance import (
    BESIDE,
    BOTTOM,
    FLUSH,
    SIDE,
    TOP,
    distance_branch,
    distance_feature,
    facing_feature,
    is_flat,
    is_round,
)
from add.kernels.mesh_distance import mesh_is_near
from add.kernels.shape_codes import BOX, CAPSULE, CYLINDER, MESH

#: Rows of L that a point of a rim fills: P; h less the arm from c to the first point x w; cos psi, sin psi and the gap
#: of the first point, infinite where a point meets another face than the middle; w; and w for a way that grows with
#: the rim, as y, turned to y.
MOVED, BY, ANGLE, BEND, GROWN = 5, 6, 7, 8, 9
#: Bit of a feature over which a point rolls with its rim.
ROLLS = 1 << 40
#: Radii by which a place on an edge of a mesh is looked at beside it.
ASIDE = 1e-6
#: Cosine between normals of faces of one surface that count as one under a rim.
ALIKE = 0.9
#: Newton steps towards the lowest place of a rim over a round face; a ball takes one.
MOST = 20
#: No point of a rim is near; or a point stays fixed, whatever the others of its rim do; or it does not touch, whatever
#: they do.
CLEAR, ALONE, LEFT = -2, -3, -4


@njit(cache=True, error_model="numpy", inline="always")
def point_place(i, q, contacts, B, x, L):
    """Fill the world place x (1, 3) of point i and its arm L[0]; return its body or -1."""
    points, arms = contacts.points, contacts.arms
    a = points[i, 2]
    if a < 0:
        for c in range(3):
            x[0, c], L[0, c] = q[points[i, 0] + c], 0.0
        return a
    X0, X1, X2 = arms[i, 0] - B[a, CENTRE, 0], arms[i, 1] - B[a, CENTRE, 1], arms[i, 2] - B[a, CENTRE, 2]
    for c in range(3):
        L[0, c] = B[a, c, 0] * X0 + B[a, c, 1] * X1 + B[a, c, 2] * X2
        x[0, c] = B[a, PLACE, c] + L[0, c]
    return a


@njit(cache=True, error_model="numpy", inline="always")
def _turned(B, X0, X1, X2):
    """Return R X."""
    return (
        B[0, 0] * X0 + B[0, 1] * X1 + B[0, 2] * X2,
        B[1, 0] * X0 + B[1, 1] * X1 + B[1, 2] * X2,
        B[2, 0] * X0 + B[2, 1] * X1 + B[2, 2] * X2,
    )


@njit(cache=True, error_model="numpy", inline="always")
def has_corner(i, contacts):
    """Whether point i is a corner that faces meet in."""
    arms = contacts.arms
    return arms[i, 5] != 0.0 or arms[i, 6] != 0.0 or arms[i, 7] != 0.0


@njit(cache=True, error_model="numpy")
def feature_at(i, o, contacts, frames, x, L, turned):
    """Return the feature of shape o that point i meets at x: the nearest that a corner looks at.

    ``turned``: with its rim, as `roll` left L, of which the row of l_b is used.
    """
    shapes, arms, a = frames.shapes, contacts.arms, contacts.points[i, 2]
    kind, size, R = shapes.kind[o], shapes.size[o], shapes.R[o]
    X0, X1, X2 = to_frame(0, o, x, shapes.R, shapes.p)
    if a < 0 or not (kind == BOX or kind == CYLINDER) or not has_corner(i, contacts):
        return distance_feature(kind, size, X0, X1, X2)
    L[4, 0], L[4, 1], L[4, 2] = _turned(frames.B[a], arms[i, 5], arms[i, 6], arms[i, 7])
    if turned:
        roll_way(i, contacts, frames.B, L, L[4])
    M0, M1, M2 = _turned_back(R, L[4, 0], L[4, 1], L[4, 2])
    feature = facing_feature(kind, size, X0, X1, X2, M0, M1, M2, arms[i, 8])
    # Laws with a reach act before anything touches: there faces end at their edges.
    if feature >= BESIDE and contacts.tables[contacts.points[i, 1], contacts.columns[o, 0], 5] >= 0:
        return distance_feature(kind, size, X0, X1, X2)
    return feature


@njit(cache=True, error_model="numpy", inline="always")
def _turned_back(R, x0, x1, x2):
    """Return R^T x."""
    return (
        R[0, 0] * x0 + R[1, 0] * x1 + R[2, 0] * x2,
        R[0, 1] * x0 + R[1, 1] * x1 + R[2, 1] * x2,
        R[0, 2] * x0 + R[1, 2] * x1 + R[2, 2] * x2,
    )


@njit(cache=True, error_model="numpy")
def _lowest(o, feature, radius, middle, a, u, shapes, n, H):
    """Turn u to where the circle about a place with axis a is lowest over a feature of shape o.

    Return |t| + r s.H s, zero where there is no such place, the gap and u. n is the normal there, H[0] is w, in world
    axes.
    """
    last = math.inf
    kind, size, R, p = shapes.kind[o], shapes.size[o], shapes.R[o], shapes.p[o]
    X0, X1, X2 = _turned_back(R, middle[0] - p[0], middle[1] - p[1], middle[2] - p[2])
    for _ in range(MOST):
        s = (a[1] * u[2] - a[2] * u[1], a[2] * u[0] - a[0] * u[2], a[0] * u[1] - a[1] * u[0])
        S0, S1, S2 = _turned_back(R, s[0], s[1], s[2])
        U0, U1, U2 = _turned_back(R, u[0], u[1], u[2])
        gap = distance_branch(kind, size, X0 + radius * U0, X1 + radius * U1, X2 + radius * U2, feature, 2, n, H)
        w0, w1, w2 = _turned(H, S0, S1, S2)
        slope = radius * (S0 * w0 + S1 * w1 + S2 * w2) - (n[0] * U0 + n[1] * U1 + n[2] * U2)
        along = n[0] * S0 + n[1] * S1 + n[2] * S2
        if not slope > 0.0:
            break
        if abs(along) <= 1e-14 or 1e-9 > abs(along) >= 0.5 * last:
            n[0], n[1], n[2] = _turned(R, n[0], n[1], n[2])
            H[0, 0], H[0, 1], H[0, 2] = _turned(R, w0, w1, w2)
            return slope, gap, u
        # Along the tangent, by 45 degrees at most.
        way = max(-1.0, min(1.0, -along / slope))
        length, last = math.sqrt(1.0 + way * way), abs(along)
        u = ((u[0] + way * s[0]) / length, (u[1] + way * s[1]) / length, (u[2] + way * s[2]) / length)
    return 0.0, math.inf, u


@njit(cache=True, error_model="numpy")
def roll(i, o, feature, least, contacts, frames, x, L, S):
    """Turn point i with its rim over a flat or round feature of shape o: x and L as `point_place` leaves them, (10, 3).

    Return whether it did: not at |t| <= ``least``. S (4, 3) is used; S[0] is then the normal at the first point.
    """
    a, rim, shapes, n = contacts.points[i, 2], contacts.rims[contacts.points[i, 3]], frames.shapes, S[0]
    B, R = frames.B[a], shapes.R[o]
    a0, a1, a2 = _turned(B, rim[3], rim[4], rim[5])
    e0, e1, e2 = _turned(B, rim[6], rim[7], rim[8])
    f0, f1, f2 = a1 * e2 - a2 * e1, a2 * e0 - a0 * e2, a0 * e1 - a1 * e0
    c0, c1, c2 = _turned(B, rim[0] - B[CENTRE, 0], rim[1] - B[CENTRE, 1], rim[2] - B[CENTRE, 2])
    y0, y1, y2 = L[0, 0] - c0, L[0, 1] - c1, L[0, 2] - c2
    z, p, r = y0 * a0 + y1 * a1 + y2 * a2, y0 * e0 + y1 * e1 + y2 * e2, y0 * f0 + y1 * f1 + y2 * f2
    c0, c1, c2 = c0 + z * a0, c1 + z * a1, c2 + z * a2
    middle = (B[PLACE, 0] + c0, B[PLACE, 1] + c1, B[PLACE, 2] + c2)
    X0, X1, X2 = _turned_back(R, middle[0] - shapes.p[o, 0], middle[1] - shapes.p[o, 1], middle[2] - shapes.p[o, 2])
    distance_branch(shapes.kind[o], shapes.size[o], X0, X1, X2, feature, 1, n, S[1:4])
    n0, n1, n2 = _turned(R, n[0], n[1], n[2])
    along = n0 * a0 + n1 * a1 + n2 * a2
    u0, u1, u2 = along * a0 - n0, along * a1 - n1, along * a2 - n2
    length = math.sqrt(u0 * u0 + u1 * u1 + u2 * u2)
    if length <= least:
        return False
    radius, start = math.sqrt(p * p + r * r), (u0 / length, u1 / length, u2 / length)
    slope, gap, (u0, u1, u2) = _lowest(o, feature, radius, middle, (a0, a1, a2), start, shapes, n, S[1:4])
    if slope == 0.0 or -(n[0] * u0 + n[1] * u1 + n[2] * u2) <= least:
        return False
    cos, sin = u0 * e0 + u1 * e1 + u2 * e2, u0 * f0 + u1 * f1 + u2 * f2
    p, r = cos * p - sin * r, sin * p + cos * r
    y0, y1, y2 = p * e0 + r * f0, p * e1 + r * f1, p * e2 + r * f2
    L[0, 0], L[0, 1], L[0, 2] = c0 + y0, c1 + y1, c2 + y2
    for c in range(3):
        x[0, c] = B[PLACE, c] + L[0, c]
    s0, s1, s2 = a1 * u2 - a2 * u1, a2 * u0 - a0 * u2, a0 * u1 - a1 * u0
    n0, n1, n2, w0, w1, w2 = n[0], n[1], n[2], S[1, 0], S[1, 1], S[1, 2]
    v0, v1, v2 = radius * u0 - y0, radius * u1 - y1, radius * u2 - y2
    L[BY, 0], L[BY, 1], L[BY, 2] = n1 * s2 - n2 * s1, n2 * s0 - n0 * s2, n0 * s1 - n1 * s0
    L[BY, 0] -= v1 * w2 - v2 * w1
    L[BY, 1] -= v2 * w0 - v0 * w2
    L[BY, 2] -= v0 * w1 - v1 * w0
    p, r = p / slope, r / slope
    L[MOVED, 0], L[MOVED, 1], L[MOVED, 2] = r * e0 - p * f0, r * e1 - p * f1, r * e2 - p * f2
    L[ANGLE, 0], L[ANGLE, 1], L[ANGLE, 2] = cos, sin, gap
    along, outwards = w0 * a0 + w1 * a1 + w2 * a2, (w0 * u0 + w1 * u1 + w2 * u2) / radius
    L[BEND, 0], L[BEND, 1], L[BEND, 2] = w0, w1, w2
    L[GROWN, 0] = along * a0 + outwards * y0
    L[GROWN, 1] = along * a1 + outwards * y1
    L[GROWN, 2] = along * a2 + outwards * y2
    return True


@njit(cache=True, error_model="numpy")
def _nearest_face(kind, size, X0, X1, X2, aside):
    """Return the flat or round feature nearest to a place, or, on an edge of a mesh, to one ``aside`` [m]; -1: none."""
    feature = distance_feature(kind, size, X0, X1, X2)
    if kind == MESH and not is_flat(kind, size, feature):
        feature = distance_feature(kind, size, X0 + 0.6 * aside, X1 + 0.3 * aside, X2 + 0.7 * aside)
    return feature if is_flat(kind, size, feature) or is_round(kind, feature) else -1


@njit(cache=True, error_model="numpy")
def rolled(i, o, q, reach, least, contacts, frames, x, L, S):
    """Return the feature over which point i rolls with its rim, and move it there.

    Its rim does not, -1, where |t| <= ``least``: `UPRIGHT`, or what a step decided, and x is as it was. `CLEAR` where
    none of it is as near as ``reach`` [m]. The face under the middle of the rim decides, the face under the point is
    what it meets, or x is as it was, `ALONE`.
    """
    shapes = frames.shapes
    kind, size, a, rim = shapes.kind[o], shapes.size[o], contacts.points[i, 2], contacts.rims[contacts.points[i, 3]]
    B, p = frames.B[a], shapes.p[o]
    a0, a1, a2 = _turned(B, rim[3], rim[4], rim[5])
    c0, c1, c2 = _turned(B, rim[0] - B[CENTRE, 0], rim[1] - B[CENTRE, 1], rim[2] - B[CENTRE, 2])
    # A rim that is flush with an end is within it.
    z = (1.0 - FLUSH) * ((L[0, 0] - c0) * a0 + (L[0, 1] - c1) * a1 + (L[0, 2] - c2) * a2)
    fall = contacts.arms[i, 8]
    y0, y1, y2 = L[0, 0] - c0 - z * a0, L[0, 1] - c1 - z * a1, L[0, 2] - c2 - z * a2
    radius = math.sqrt(y0 * y0 + y1 * y1 + y2 * y2)
    y0, y1, y2 = x[0, 0] - y0 - p[0], x[0, 1] - y1 - p[1], x[0, 2] - y2 - p[2]
    X0, X1, X2 = _turned_back(shapes.R[o], y0, y1, y2)
    if kind == MESH:
        if not mesh_is_near(size, X0, X1, X2, radius + reach):
            return CLEAR
    else:
        reach += 1.5 * fall
        below = distance_feature(kind, size, X0, X1, X2)
        if distance_branch(kind, size, X0, X1, X2, below, 0, S[0], S[1:4]) - radius >= reach:
            return CLEAR
    below = _nearest_face(kind, size, X0, X1, X2, ASIDE * radius)
    if below < 0 and fall > 0.0:
        # Where the face goes on beyond its edge, it is below what is further in.
        z = -math.copysign(min(fall, abs(z)), z)
        X0, X1, X2 = _turned_back(shapes.R[o], y0 + z * a0, y1 + z * a1, y2 + z * a2)
        below = _nearest_face(kind, size, X0, X1, X2, ASIDE * radius)
    is_core = below == SIDE and (kind == CAPSULE or kind == CYLINDER)
    if is_core and rim[HALF] < 0.0 and least < math.inf:
        middle, axis = (X0, X1, X2), _turned_back(shapes.R[o], a0, a1, a2)
        if crosses_in_full(middle, axis, radius, fall / radius, kind, size):
            return CLEAR
    beyond = below < 0 and kind == CYLINDER
    if beyond:
        # The end that a rim is beside: where the rim is lowest over it may be above it.
        X0, X1, X2 = _turned_back(shapes.R[o], y0, y1, y2)
        below = TOP if X2 > 0.0 else BOTTOM
    if below < 0 or not roll(i, o, below, least, contacts, frames, x, L, S):
        return -1
    if beyond and L[ANGLE, 2] < reach:
        e0, e1, e2 = _turned(B, rim[6], rim[7], rim[8])
        p, r = radius * L[ANGLE, 0], radius * L[ANGLE, 1]
        z0, z1, z2 = y0 + p * e0, y1 + p * e1, y2 + p * e2
        z0, z1, z2 = z0 + r * (a1 * e2 - a2 * e1), z1 + r * (a2 * e0 - a0 * e2), z2 + r * (a0 * e1 - a1 * e0)
        X0, X1, X2 = _turned_back(shapes.R[o], z0, z1, z2)
        if distance_feature(kind, size, X0, X1, X2) != below:
            point_place(i, q, contacts, frames.B, x, L)
            return -1
    # What is convex is on one side of its faces and within its sides and balls.
    if L[ANGLE, 2] >= reach and (kind < CAPSULE or kind == CYLINDER or (kind == CAPSULE and below == SIDE)):
        return CLEAR
    X0, X1, X2 = to_frame(0, o, x, shapes.R, shapes.p)
    if kind == MESH:
        feature = _nearest_face(kind, size, X0, X1, X2, ASIDE * radius)
    else:
        feature = feature_at(i, o, contacts, frames, x, L, True)
    if feature == below:
        return feature
    n0, n1, n2 = S[0, 0], S[0, 1], S[0, 2]
    point_place(i, q, contacts, frames.B, x, L)
    if feature >= 0 and (is_flat(kind, size, feature) or is_round(kind, feature)):
        distance_branch(kind, size, X0, X1, X2, feature, 1, S[0], S[1:4])
        m0, m1, m2 = _turned(shapes.R[o], S[0, 0], S[0, 1], S[0, 2])
        if m0 * n0 + m1 * n1 + m2 * n2 > ALIKE and roll(i, o, feature, least, contacts, frames, x, L, S):
            L[ANGLE, 2] = math.inf
            X0, X1, X2 = to_frame(0, o, x, shapes.R, shapes.p)
            # Beyond the end of a capsule's side, where it may have turned to, that side is too low.
            low = distance_branch(kind, size, X0, X1, X2, feature, 0, S[0], S[1:4]) + ASIDE * radius
            below = distance_feature(kind, size, X0, X1, X2)
            if kind != CAPSULE or distance_branch(kind, size, X0, X1, X2, below, 0, S[0], S[1:4]) <= low:
                return feature
            point_place(i, q, contacts, frames.B, x, L)
    # What has turned away from a face that others of its rim turn over does not touch it where it has left.
    return LEFT if kind != MESH and feature_at(i, o, contacts, frames, x, L, False) == below else ALONE


_ROW, _ROWS, _CUBE, _NONE = types.float64[::1], types.float64[:, ::1], np.zeros((0, 0, 0)), np.zeros((0, 0))
_AT = typeof(Frames(_CUBE, _NONE, Shapes(nothing().kind, _NONE, _CUBE, _NONE, _NONE, _NONE)))
_REST = types.float64, typeof(nothing()), _AT, _ROWS, _ROWS, _ROWS
call_roll = when_called(roll, (*[types.int64] * 3, *_REST), types.boolean)
call_rolled = when_called(rolled, (types.int64, types.int64, _ROW, types.float64, *_REST), types.int64)


@njit(cache=True, error_model="numpy", inline="always")
def _turned_feature(i, o, contacts, frames, x, L):
    """Turn point i, at x and L[0] as `point_place` leaves them, as `roll` left its rim; return what is nearest."""
    rim, B = contacts.rims[contacts.points[i, 3]], frames.B[contacts.points[i, 2]]
    c = _turned(B, rim[0] - B[CENTRE, 0], rim[1] - B[CENTRE, 1], rim[2] - B[CENTRE, 2])
    for r in range(3):
        L[0, r] -= c[r]
    roll_way(i, contacts, frames.B, L, L[0])
    for r in range(3):
        L[0, r] += c[r]
        x[0, r] = B[PLACE, r] + L[0, r]
    return feature_at(i, o, contacts, frames, x, L, True)


@njit(cache=True, error_model="numpy", inline="always")
def with_rim(i, o, q, reach, known, contacts, frames, x, L, S):
    """Place point i, with its rim where that rolls over shape o; return what `rolled` does, and what is known next.

    ``known`` are the rim of the point before and what that does: all do the same that meet the same face.
    """
    rim, (last, below) = contacts.points[i, 3], known
    if rim >= 0 and rim == last and below == CLEAR:
        return CLEAR, known
    point_place(i, q, contacts, frames.B, x, L)
    if rim < 0 or (rim == last and below == -1):
        return -1, known
    if rim == last and below >= 0:
        if _turned_feature(i, o, contacts, frames, x, L) == below:
            return below, known
        point_place(i, q, contacts, frames.B, x, L)
    feature = call_rolled((i, o, q, reach, UPRIGHT, contacts, frames, x, L, S))
    return feature, (rim, ALONE if feature >= 0 and L[ANGLE, 2] == math.inf else feature)


@njit(cache=True, error_model="numpy")
def is_beside(moved, n):
    """Whether a point that moves by P (3,) with its rim, as `roll` leaves it, is not below or above the axis."""
    along = moved[0] * n[0] + moved[1] * n[1] + moved[2] * n[2]
    return along * along > 1e-12 * (moved[0] * moved[0] + moved[1] * moved[1] + moved[2] * moved[2])


@njit(cache=True, error_model="numpy")
def roll_way(i, contacts, B, L, way):
    """Turn a way (3,) of point i, in world axes, with its rim: by the angle that `roll` left in L."""
    rim, cos, sin = contacts.rims[contacts.points[i, 3]], L[ANGLE, 0], L[ANGLE, 1]
    a0, a1, a2 = _turned(B[contacts.points[i, 2]], rim[3], rim[4], rim[5])
    w0, w1, w2 = way[0], way[1], way[2]
    z = (1.0 - cos) * (a0 * w0 + a1 * w1 + a2 * w2)
    way[0] = cos * w0 + sin * (a1 * w2 - a2 * w1) + z * a0
    way[1] = cos * w1 + sin * (a2 * w0 - a0 * w2) + z * a1
    way[2] = cos * w2 + sin * (a0 * w1 - a1 * w0) + z * a2
