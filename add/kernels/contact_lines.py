"""Lines of bodies that cross: edges of boxes, and the axes of capsules and cylinders, as cores of round sides.

Two long bodies laid across each other touch where no corner is near: there a line of one crosses a line of the other.
With a line through C along d, of a point's body, and one through E along e, of a shape's, they are nearest along

    n = sigma d x e / m,   m = |d x e|,   f = e x n,   g = n . (C - E) - r_b,   sigma = +-1
    s = -f . (C - E) / (sigma m),   c = C + s d,   t = e . (c - E)

sigma turns n away from the shape's body: outside of the wedge of an edge, or to where the other axis is. The place c is
one where the gap of the line is least, so that the gradient of g is that of material there (the envelope theorem), as
`contact_places.py` has it for rims. Of the way ds of material at c and the turn dphi, both of a's against b's,

    dn = T dphi,   T = sigma/m (d e^T - (d . e)(1 - n n^T))
    dc = ds + P (f . ds - g' f . T dphi),   P = -d/(sigma m),   g' = n . (C - E)

A rim counts as its tangent d where circle and edge are nearest (`contact_circles.py`). With its radius rho, and u from
its middle to there, the place goes farther along it, and n turns with that, too:

    P = -d/(sigma m) m^2/K,   dn = T dphi - (n . u)/(rho K) f (f . ds - g' f . T dphi),   K = m^2 - g (n . u)/rho

Where the line of the shape is a rim, too, of radius r and with w from its middle to there, e turns as c goes along it.
With lambda = n . w/r and beta = 1 + g lambda, K = beta (1 - g (n . u)/rho) - (d . e)^2, and

    dc = ds - d/K (sigma m (f + g lambda/(sigma m) d) . ds - beta g' sigma m f . T dphi)
    dn = T dphi + ... + lambda/(beta m^2) (e - (d . e) d) e . dc

A crossing counts in full where the lines cross inside of both, steeply, and n is outwards of all faces that meet in the
edges. Towards ends, where corners take over, as lines become parallel, and as n leaves the wedges, it fades to nothing:
the force is that of a point times

    W = product of w(u),   w(u) = u^2 (3 - 2 u) between 0 and 1,
    u = (1 - |s|/h_a)/`END`, (1 - |t|/h_b)/`END`, 2 (h_a - |s|)/d - 1, 2 (h_b - |t|)/d - 1,
        (m - `STEEP` k)/(2 `STEEP` k), (n . b + `OVER`)/`TURNS`

with half-lengths h, the depth d = r_a - g, if that is above zero, the slenderness k of the line and normals b of the
shape's faces, or -a of the line's own. Faces that lie on each other cross with n along the normals of both: hence
`OVER`; and where an end is nearer than a crossing is deep, the bodies part beyond the end. What fades does no work of
its own: energy comes or goes where a crossing fades in or out deep in a body.
"""

import math

import numpy as np
from numba import typeof, types

from add.kernels.by_address import when_called
from add.kernels.caching import njit
from add.kernels.contact_arrays import HALF, NUMBER, SLENDER, SLOT, Frames, nothing, relative, seen
from add.kernels.contact_circles import (
    CROSSES,
    DEEPEST,
    END,
    OPEN,
    OVER,
    STEEP,
    TURNS,
    WHICH,
    WHOLE,
    axis_of,
    basis_of,
    between,
    dot,
    is_circle,
    is_line,
    line_of,
    rim_features,
    rim_of,
    rim_place,
    rims_across,
)
from add.kernels.contact_pairs import Shapes
from add.kernels.contact_places import BEND, BY, CLEAR, GROWN, LEFT, MOVED, ROLLS, call_rolled, feature_at, has_corner
from add.kernels.distance import SIDE
from add.kernels.shape_codes import BOX, CAPSULE, CYLINDER

#: Rows of L of a crossing: T (10-12); the change of ln W by dphi, and by the way of c; that by what P is multiplied by,
#: the scale of the force, and whether there is a crossing; that by both half-lengths, and which numbers these are,
#: 3 a + b; the gap.
TWIST, TURNED, ALONG, WEIGHT, HALVES, GAP = 10, 13, 14, 15, 16, 17
#: And of a rim: the change of n by what P is multiplied by; the direction from its middle. Of the rim of a shape: its
#: tangent, and the change of n by the way of c along it.
BENT, OUTWARDS, ITS, LEANS = 18, 19, 20, 21
#: Rows of L.
ROWS = 22
#: An edge of a box, and no line of another shape: what a line would cross that crosses none.
AN_EDGE = 22
#: Half the length of a rim [m]: it has no ends.
ENDLESS = 1e9


@njit(cache=True, error_model="numpy", inline="always")
def _share(u):
    """Return w(u) and w'(u)/w(u)."""
    if u >= 1.0:
        return 1.0, 0.0
    if u <= 0.0:
        return 0.0, 0.0
    return u * u * (3.0 - 2.0 * u), 6.0 * (1.0 - u) / (u * (3.0 - 2.0 * u))


@njit(cache=True, error_model="numpy", inline="always")
def _crossing(C, D, k, y_j, y_l, n_j, n_l, slope):
    """Return s, t and g' of the line through C along D, and (y_j, y_l) behind the shape's line along axis k."""
    s = (n_l * y_j - n_j * y_l) / slope
    return s, C[k] + s * D[k], n_j * y_j + n_l * y_l


@njit(cache=True, error_model="numpy", inline="always")
def _sum(x, a, y, b):
    """Return x a + y b."""
    return x * a[0] + y * b[0], x * a[1] + y * b[1], x * a[2] + y * b[2]


@njit(cache=True, error_model="numpy", inline="always")
def _faces(i, Q, D, contacts):
    """Return the normals of the faces that meet in line i, along D, in the frame of a shape; zeros of a core."""
    arms = contacts.arms
    M = seen(Q, arms[i, 5], arms[i, 6], arms[i, 7])
    w = between(D, M, 0.5)
    return _sum(0.5, M, 1.0, w), _sum(0.5, M, -1.0, w)


@njit(cache=True, error_model="numpy", forceinline=True)
def _features(i, o, Q, reach, least, contacts, frames):
    """Return the features by which line i crosses shape o: those of its first point and of its second, -1 for none.

    The u of both follow. Of two crossings of a line, over edges to either side of a face, each of its points takes
    one. ``least`` is the u from which on crossings count.
    """
    kind, size, rim, is_edge = (
        contacts.kind[o],
        contacts.size[o],
        contacts.rims[contacts.points[i, 3]],
        has_corner(i, contacts),
    )
    C, D = line_of(i, Q, contacts, frames)
    half, slender, radius = rim[HALF], STEEP * rim[SLENDER], 0.0 if kind == BOX else size[0]
    first, last, best_first, best_last = -1, -1, least, least
    if kind == BOX:
        for c in range(3):
            if abs(C[c]) - half * abs(D[c]) > size[c] + reach:
                return first, last, best_first, best_last
    one, two = _faces(i, Q, D, contacts)
    deepest = -DEEPEST * min(size[0], size[1], size[2]) if kind == BOX else -size[0]
    weight, signs = (9, 3, 1), 2 if kind == BOX else 1
    for k in range(0 if kind == BOX else 2, 3):
        j, l = (k + 1) % 3, (k + 2) % 3
        m, h_b = math.sqrt(D[j] * D[j] + D[l] * D[l]), size[k] if kind == BOX else size[1]
        if m <= max(slender, 1e-12):
            continue
        steep = (m - slender) / (2.0 * slender)
        for side in range(2):
            n_j, n_l, u_n = (2 * side - 1) * D[l] / m, (1 - 2 * side) * D[j] / m, steep
            if is_edge:
                u_n = min(u_n, (OVER - one[j] * n_j - one[l] * n_l) / TURNS)
                u_n = min(u_n, (OVER - two[j] * n_j - two[l] * n_l) / TURNS)
            if u_n <= least:
                continue
            for corner in range(signs * signs):
                s_j, s_l, u, way = 0.0, 0.0, u_n, 1.0
                if kind == BOX:
                    s_j, s_l = 2.0 * (corner % 2) - 1.0, 2.0 * (corner // 2) - 1.0
                    u = min(u, (s_j * n_j + OVER) / TURNS, (s_l * n_l + OVER) / TURNS)
                    way = s_j * D[j] if s_l * n_l > s_j * n_j else s_l * D[l]
                if u <= (best_last if way >= 0.0 else best_first):
                    continue
                y_j, y_l = C[j] - s_j * size[j], C[l] - s_l * size[l]
                s, t, g = _crossing(C, D, k, y_j, y_l, n_j, n_l, (2 * side - 1) * m)
                depth = contacts.arms[i, 3] + radius - g
                if g - radius >= reach or g - radius <= deepest:
                    continue
                u = min(u, (1.0 - abs(s) / half) / END, (1.0 - abs(t) / h_b) / END)
                if depth > 0.0:
                    u = min(u, 2.0 * (half - abs(s)) / depth - 1.0, 2.0 * (h_b - abs(t)) / depth - 1.0)
                if kind != BOX and g <= 0.0:
                    u = min(u, 0.0)
                if u <= (best_last if way >= 0.0 else best_first):
                    continue
                code = int(13 + s_j * weight[j] + s_l * weight[l]) if kind == BOX else SIDE
                feature = CROSSES | 2 * code | side
                if way >= 0.0:
                    best_last, last = min(u, 1.0), feature
                else:
                    best_first, first = min(u, 1.0), feature
    return first, last, best_first, best_last


@njit(cache=True, error_model="numpy", inline="always")
def _crosses(is_edge, i, o, contacts):
    """Whether line i may cross shape o.

    Of two bodies that both have lines, cores cross edges, and otherwise the lines of the first one those of the other.
    Rims cross all of them.
    """
    kind, b = contacts.kind[o], contacts.hosts[o]
    if not (kind == BOX or kind == CAPSULE or kind == CYLINDER):
        return False
    if is_circle(i, contacts):
        return True
    both = contacts.tables[contacts.points[i, 1], contacts.columns[o, 0], 11] != 0 and contacts.columns[o, 2] != 0
    if both and is_edge != (kind == BOX):
        return not is_edge
    return not both or contacts.points[i, 2] < b


@njit(cache=True, error_model="numpy")
def crossing_features(first, stop, o, reach, least, contacts, frames, found):
    """Fill ``found`` with the features by which lines first to stop, two points each, cross shape o; -1: it does not.

    Return whether one does. ``reach`` [m] counts from the surface of a line. If ``least`` is below zero, what is below
    `WHOLE` has `OPEN`.
    """
    some, Q = False, relative(contacts.points[first, 2], o, frames)
    for i in range(first, stop, 2):
        k = i - first
        found[k], found[k + 1] = -1, -1
        if _crosses(has_corner(i, contacts), i, o, contacts):
            if is_circle(i, contacts):
                one, two, u_one, u_two = rim_features(i, o, Q, reach, least, contacts, frames)
            else:
                one, two, u_one, u_two = _features(i, o, Q, reach + contacts.arms[i, 3], least, contacts, frames)
            found[k] = one | OPEN if least < 0.0 and one >= 0 and u_one <= WHOLE else one
            found[k + 1] = two | OPEN if least < 0.0 and two >= 0 and u_two <= WHOLE else two
            some = some or found[k] >= 0 or found[k + 1] >= 0
    return some


@njit(cache=True, error_model="numpy", inline="always")
def _turned(R, a):
    """Return R a."""
    return (
        R[0, 0] * a[0] + R[0, 1] * a[1] + R[0, 2] * a[2],
        R[1, 0] * a[0] + R[1, 1] * a[1] + R[1, 2] * a[2],
        R[2, 0] * a[0] + R[2, 1] * a[1] + R[2, 2] * a[2],
    )


@njit(cache=True, error_model="numpy")
def _lines(i, o, Q, feature, contacts, frames):
    """Return where line i crosses shape o over a feature, in the frame of the shape.

    That is place, tangent and direction from its middle, which is zero of a straight line; the normals of the two faces
    that meet in it; and both of the line of the shape, and which of its sizes its half-length is, -1 for none.
    """
    kind, size, code, sigma = contacts.kind[o], contacts.size[o], (feature & WHICH) // 2, (feature & 1) * 2.0 - 1.0
    C, A = line_of(i, Q, contacts, frames)
    curved, none = is_circle(i, contacts), (0.0, 0.0, 0.0)
    if kind == CYLINDER and code != SIDE:
        rim = contacts.rims[contacts.points[i, 3]]
        other = rim_of(code, size[1], size[0])
        one, two = rims_across((C, A, basis_of(A), rim[HALF]), other, STEEP * rim[SLENDER])
        _, _, mine, its = two if sigma > 0.0 else one
        return mine, (mine[2], A), its, (its[2], other[1]), -1
    k, s_j, s_l = axis_of(kind, code)
    x, y, z = 1.0 * (k == 0), 1.0 * (k == 1), 1.0 * (k == 2)
    first, second = (s_j * z, s_j * x, s_j * y), (s_l * y, s_l * z, s_l * x)
    edge = ((first[0] + second[0]) * size[0], (first[1] + second[1]) * size[1], (first[2] + second[2]) * size[2])
    its = edge if kind == BOX else none, (x, y, z), none
    if curved:
        mine = rim_place(i, o, Q, feature, contacts, frames)
        return mine, (mine[2], A), its, (first, second), k if kind == BOX else 1
    return (C, A, none), _faces(i, Q, A, contacts), its, (first, second), k if kind == BOX else 1


@njit(cache=True, error_model="numpy")
def cross(i, o, feature, contacts, frames, x, L, n):
    """Move line i, at x and L[0] as `point_place` leaves them, to where it crosses shape o; return the gap g [m].

    Fill the normal n (3,) and the rows of L from `MOVED` on: what moves with what, and the weight.
    """
    size, R, rim = contacts.size[o], frames.shapes.R[o], contacts.rims[contacts.points[i, 3]]
    sigma, curved, Q = (feature & 1) * 2.0 - 1.0, is_circle(i, contacts), relative(contacts.points[i, 2], o, frames)
    middle, _ = line_of(i, Q, contacts, frames)
    (C, D, U), (one, two), (E, T, W), (first, second), long = _lines(i, o, Q, feature, contacts, frames)
    slender = STEEP * rim[SLENDER]
    half, h_b = ENDLESS if curved else rim[HALF], size[long] if long >= 0 else ENDLESS
    # A crossing that is kept where its lines have become parallel weighs nothing there, whatever its normal is.
    N = between(D, T, sigma)
    sine = math.sqrt(dot(N, N))
    m = max(sine, 0.5 * slender, 1e-12)
    N, slope, along = _sum(1.0 / m, N, 0.0, N), sigma * m, dot(D, T)
    F, Y = between(T, N, 1.0), _sum(1.0, C, -1.0, E)
    s, g = -dot(F, Y) / slope, dot(N, Y)
    t, g_d = dot(T, Y) + s * along, along / slope
    # What the tangents of rims turn by per way along them, against n; how much less far the first place goes.
    bends, its = dot(U, N) / rim[HALF] if curved else 0.0, dot(W, N) / size[0] if long < 0 else 0.0
    farther = m * m / (m * m - g * bends + g * its * (1.0 - g * bends))
    way = _sum(1.0, _sum(1.0, C, -1.0, middle), s, D)
    way, d, u = _turned(R, way), _turned(R, D), _turned(R, U)
    e, f, normal = _turned(R, T), _turned(R, F), _turned(R, N)
    for r in range(3):
        n[r] = normal[r]
        L[BEND, r] = L[GROWN, r] = f[r] + g * its * d[r] / slope
        L[0, r] += way[r]
        x[0, r] += way[r]
        L[MOVED, r] = -farther * d[r] / slope
        L[BENT, r] = -farther * bends / (m * m) * f[r]
        L[OUTWARDS, r] = u[r]
        L[BY, r] = (1.0 + g * its) * g * (e[r] - g_d * f[r])
        L[ITS, r], L[LEANS, r] = e[r], its / (1.0 + g * its) * (e[r] - along * d[r]) / (m * m)
    for r in range(3):
        for c in range(3):
            L[TWIST + r, c] = d[r] * e[c] / slope + g_d * n[r] * n[c] - (g_d if r == c else 0.0)
    # The weight and its logarithmic derivatives: by s, by t, by the depth, and, of turns about the axes, by dphi.
    L[GAP, 0] = g - (size[0] if contacts.kind[o] != BOX and long >= 0 else 0.0)
    weight, by_s = _share((1.0 - abs(s) / half) / END)
    part, by_t = _share((1.0 - abs(t) / h_b) / END)
    weight *= part
    part, by_m = _share((m - slender) / (2.0 * slender))
    weight *= part
    by_s *= -math.copysign(1.0 / (END * half), s)
    by_t *= -math.copysign(1.0 / (END * h_b), t)
    by_m *= along / (2.0 * slender * m)
    depth, by_d, by_half, by_h_b = contacts.arms[i, 3] - L[GAP, 0], 0.0, -by_s * s / half, -by_t * t / h_b
    if curved:
        by_s += by_m * dot(T, U) / rim[HALF]
    if depth > 0.0:
        part, by = _share(2.0 * (half - abs(s)) / depth - 1.0)
        weight, by = weight * part, 2.0 * by / depth
        by_half, by_d, by_s = by_half + by, -by * (half - abs(s)) / depth, by_s - math.copysign(by, s)
        part, by = _share(2.0 * (h_b - abs(t)) / depth - 1.0)
        weight, by = weight * part, 2.0 * by / depth
        by_h_b, by_d, by_t = by_h_b + by, by_d - by * (h_b - abs(t)) / depth, by_t - math.copysign(by, t)
    v0, w0 = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    if long < 0 or contacts.kind[o] == BOX:
        part, by = _share((dot(first, N) + OVER) / TURNS)
        weight, by_1 = weight * part, by / TURNS
        part, by = _share((dot(second, N) + OVER) / TURNS)
        weight, by_2 = weight * part, by / TURNS
        v0 = _sum(by_1, first, by_2, second)
    if has_corner(i, contacts):
        part, by = _share((OVER - dot(one, N)) / TURNS)
        weight, by_1 = weight * part, -by / TURNS
        part, by = _share((OVER - dot(two, N)) / TURNS)
        weight, by_2 = weight * part, -by / TURNS
        w0 = _sum(by_1, one, by_2, two)
    v0, w0 = _turned(R, v0), _turned(R, w0)
    both = _sum(1.0, v0, 1.0, w0)
    if long < 0:
        by_t += by_m * dot(D, W) / (size[0] * (1.0 + g * its)) + dot(both, (L[LEANS, 0], L[LEANS, 1], L[LEANS, 2]))
    turned = between(n, w0, 1.0)
    for r in range(3):
        # n turns by T dphi against b, and by T dphi - dphi x n against a.
        L[TURNED, r] = -sigma * by_m * m * n[r] - turned[r]
        for c in range(3):
            L[TURNED, r] += L[TWIST + c, r] * both[c]
        L[ALONG, r] = by_t * e[r] - by_d * n[r]
    by_s += dot(both, f) * bends / slope
    L[WEIGHT, 0], L[WEIGHT, 1], L[WEIGHT, 2] = -farther * by_s / slope, contacts.arms[i, 4] * weight, 1.0
    L[HALVES, 0], L[HALVES, 1], L[HALVES, 2] = by_half, by_h_b, 3 * int(rim[NUMBER]) + max(long, 0)
    return L[GAP, 0]


_ROWS, _CUBE, _NONE = types.float64[:, ::1], np.zeros((0, 0, 0)), np.zeros((0, 0))
_AT = typeof(Frames(_CUBE, _NONE, Shapes(nothing().kind, _NONE, _CUBE, _NONE, _NONE, _NONE)))
_ALL = typeof(nothing()), _AT
call_crossing_features = when_called(
    crossing_features, (*[types.int64] * 3, *[types.float64] * 2, *_ALL, types.int64[::1]), types.boolean
)
call_cross = when_called(cross, (*[types.int64] * 3, *_ALL, _ROWS, _ROWS, types.float64[::1]), types.float64)


@njit(cache=True, error_model="numpy")
def may_cross(point, shape, contacts):
    """Return which pairs (m,) of points and shapes are none of a line, or of one that may cross the shape."""
    out = np.ones(point.size, dtype=np.bool_)
    for k in range(point.size):
        i, o = point[k], shape[k]
        if is_line(i, contacts):
            # Of two points of a straight line the second one crosses round sides.
            straight = not is_circle(i, contacts)
            second = contacts.kind[o] == BOX or not straight or contacts.rims[contacts.points[i, 3], SLOT] > 0.0
            out[k] = second and _crosses(has_corner(i, contacts), i, o, contacts)
    return out


@njit(cache=True, error_model="numpy")
def crossing_of(i, o, least, contacts, frames, found):
    """Return the feature by which line i crosses shape o at any distance, -1: it does not; ``found`` (2,) is used."""
    second = 1 if contacts.rims[contacts.points[i, 3], SLOT] > 0.0 else 0
    call_crossing_features((i - second, i - second + 2, o, math.inf, least, contacts, frames, found))
    return found[second]


@njit(cache=True, error_model="numpy")
def nearest(i, o, q, least, contacts, frames, x, L, S):
    """Return the feature of shape o that is nearest to point i at x: with `ROLLS` where its rim does, see `rolled`.

    That of a line is the one it crosses, or would: with `OPEN`, as that of a point whose rim crosses as a line.
    """
    if is_line(i, contacts):
        feature = crossing_of(i, o, -math.inf, contacts, frames, np.empty(2, dtype=np.int64))
        return feature if feature >= 0 else CROSSES | OPEN | 2 * AN_EDGE
    if contacts.points[i, 3] >= 0:
        feature = call_rolled((i, o, q, math.inf, least, contacts, frames, x, L, S))
        if feature >= 0:
            return feature | ROLLS
        if feature == CLEAR or feature == LEFT:
            return feature_at(i, o, contacts, frames, x, L, False) | OPEN
    return feature_at(i, o, contacts, frames, x, L, False)
