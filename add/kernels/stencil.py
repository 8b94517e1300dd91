"""Distance between two primitives of meshes: vertex to face, edge to edge, and what these become at their borders.

A stencil has up to four points x_i and a region, which says where on the primitives the closest points lie. In a region
the vector between the closest points is s = sum c_i x_i with coefficients c = c_0 + C beta that sum to zero; beta are
free: none for two vertices, one for a vertex and an edge, two for a vertex and a face or two edges. With T = X C,
G = T^T T and the optimality T^T s = 0:

    d = |s|, n = s / d            dd/dx_i = c_i n
    W_i = T G^-1 C_i              g_ij = C_i^T G^-1 C_j         Q = I - n n^T - T G^-1 T^T
    dc_j/dx_i = -(g_ij d n + c_i W_j)                           dn/dx_i = c_i Q / d - W_i n^T
    d^2 d/dx_j dx_i = c_i c_j Q / d - c_j W_i n^T - c_i n W_j^T - g_ij d n n^T

(i the row of dn/dx_i's argument). Q is zero where two beta are free, so that all stays finite as d goes to zero there;
n is then the normal of the plane of T. Everything is smooth in a region, also where its coefficients leave [0, 1].

Points are ordered (v, f_0, f_1, f_2) and (a_0, a_1, b_0, b_1); a vertex and an edge are FACE_EDGE of three points, two
vertices are FACE_VERTEX of two.
"""

import math

import numpy as np

from add.kernels.caching import njit

#: Vertex to face: inside; edges 0-1, 1-2, 2-0; corners.
FACE, FACE_EDGE, FACE_VERTEX = 0, 1, 4
#: Edge to edge: inside; a_0 or a_1 to edge b; edge a to b_0 or b_1; a_0 b_0, a_0 b_1, a_1 b_0, a_1 b_1.
EDGES, END_EDGE, EDGE_END, ENDS = 7, 8, 10, 12
N_REGIONS = 16

# c_0 and C of every region, and how many beta are free.
_ORIGIN = np.array(
    [
        [1, -1, 0, 0],
        [1, -1, 0, 0], [1, 0, -1, 0], [1, 0, 0, -1],
        [1, -1, 0, 0], [1, 0, -1, 0], [1, 0, 0, -1],
        [1, 0, -1, 0],
        [1, 0, -1, 0], [0, 1, -1, 0],
        [1, 0, -1, 0], [1, 0, 0, -1],
        [1, 0, -1, 0], [1, 0, 0, -1], [0, 1, -1, 0], [0, 1, 0, -1],
    ],
    dtype=np.float64,
)  # fmt: skip
_DIRECTION = np.zeros((N_REGIONS, 4, 2))
_DIRECTION[FACE] = [[0, 0], [1, 1], [-1, 0], [0, -1]]
for _k, (_i, _j) in enumerate(((1, 2), (2, 3), (3, 1))):
    _DIRECTION[FACE_EDGE + _k, _i, 0], _DIRECTION[FACE_EDGE + _k, _j, 0] = 1.0, -1.0
_DIRECTION[EDGES] = [[-1, 0], [1, 0], [0, 1], [0, -1]]
for _k in range(2):
    _DIRECTION[END_EDGE + _k, 2, 0], _DIRECTION[END_EDGE + _k, 3, 0] = 1.0, -1.0
    _DIRECTION[EDGE_END + _k, 0, 0], _DIRECTION[EDGE_END + _k, 1, 0] = -1.0, 1.0
_FREE = np.array([2, 1, 1, 1, 0, 0, 0, 2, 1, 1, 1, 1, 0, 0, 0, 0])
#: Squared sine of the angle below which two edges count as parallel: no region inside both.
_PARALLEL = 1e-24
#: Share of the lengths within which a place is on a border, up to round-off.
ON_BORDER = 1e-13
#: Share of the product of the squared rest lengths below which |e_a x e_b|^2 is mollified.
MOLLIFIED_BELOW = 1e-3

#: Rows of the scratch P (9, 3): n, T (2), T G^-1 (2), W (4).
NORMAL, WAYS = 0, 5
_T, _TG = 1, 3


@njit(cache=True, error_model="numpy", inline="always")
def _dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@njit(cache=True, error_model="numpy")
def face_region(x):
    """Return the region of a vertex x[0] and a face x[1:4] (Ericson, Real-Time Collision Detection, 5.1.5).

    What is on a border up to round-off is counted to it, so that all faces there agree.
    """
    b0, b1, b2 = x[2, 0] - x[1, 0], x[2, 1] - x[1, 1], x[2, 2] - x[1, 2]
    c0, c1, c2 = x[3, 0] - x[1, 0], x[3, 1] - x[1, 1], x[3, 2] - x[1, 2]
    p0, p1, p2 = x[0, 0] - x[1, 0], x[0, 1] - x[1, 1], x[0, 2] - x[1, 2]
    d1, d2 = b0 * p0 + b1 * p1 + b2 * p2, c0 * p0 + c1 * p1 + c2 * p2
    bb, cc, bc = b0 * b0 + b1 * b1 + b2 * b2, c0 * c0 + c1 * c1 + c2 * c2, b0 * c0 + b1 * c1 + b2 * c2
    tiny, area = ON_BORDER * max(bb, cc), ON_BORDER * max(bb * cc - bc * bc, 0.0)
    if d1 <= tiny and d2 <= tiny:
        return FACE_VERTEX
    p0, p1, p2 = x[0, 0] - x[2, 0], x[0, 1] - x[2, 1], x[0, 2] - x[2, 2]
    d3, d4 = b0 * p0 + b1 * p1 + b2 * p2, c0 * p0 + c1 * p1 + c2 * p2
    if d3 >= -tiny and d4 <= d3 + tiny:
        return FACE_VERTEX + 1
    if d1 * d4 - d3 * d2 <= area and d1 >= 0.0 and d3 <= 0.0:
        return FACE_EDGE
    p0, p1, p2 = x[0, 0] - x[3, 0], x[0, 1] - x[3, 1], x[0, 2] - x[3, 2]
    d5, d6 = b0 * p0 + b1 * p1 + b2 * p2, c0 * p0 + c1 * p1 + c2 * p2
    if d6 >= -tiny and d5 <= d6 + tiny:
        return FACE_VERTEX + 2
    if d5 * d2 - d1 * d6 <= area and d2 >= 0.0 and d6 <= 0.0:
        return FACE_EDGE + 2
    if d3 * d6 - d5 * d4 <= area and d4 - d3 >= 0.0 and d5 - d6 >= 0.0:
        return FACE_EDGE + 1
    return FACE


@njit(cache=True, error_model="numpy", inline="always")
def end_of_edge(x, v, i, j):
    """Return -1, 0 or 1 (inside, at x[i], at x[j]): where x[v] is closest on the edge; and the squared distance."""
    e0, e1, e2 = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
    p0, p1, p2 = x[v, 0] - x[i, 0], x[v, 1] - x[i, 1], x[v, 2] - x[i, 2]
    along, length = e0 * p0 + e1 * p1 + e2 * p2, e0 * e0 + e1 * e1 + e2 * e2
    if along <= ON_BORDER * length:
        return 0, p0 * p0 + p1 * p1 + p2 * p2
    if along >= (1.0 - ON_BORDER) * length:
        p0, p1, p2 = x[v, 0] - x[j, 0], x[v, 1] - x[j, 1], x[v, 2] - x[j, 2]
        return 1, p0 * p0 + p1 * p1 + p2 * p2
    t = along / length
    p0, p1, p2 = p0 - t * e0, p1 - t * e1, p2 - t * e2
    return -1, p0 * p0 + p1 * p1 + p2 * p2


@njit(cache=True, error_model="numpy")
def edges_region(x):
    """Return the region of two edges x[:2], x[2:]: inside if the common perpendicular is, else the nearest border."""
    u0, u1, u2 = x[1, 0] - x[0, 0], x[1, 1] - x[0, 1], x[1, 2] - x[0, 2]
    v0, v1, v2 = x[3, 0] - x[2, 0], x[3, 1] - x[2, 1], x[3, 2] - x[2, 2]
    w0, w1, w2 = x[0, 0] - x[2, 0], x[0, 1] - x[2, 1], x[0, 2] - x[2, 2]
    uu, vv, uv = u0 * u0 + u1 * u1 + u2 * u2, v0 * v0 + v1 * v1 + v2 * v2, u0 * v0 + u1 * v1 + u2 * v2
    z0, z1, z2 = u1 * v2 - u2 * v1, u2 * v0 - u0 * v2, u0 * v1 - u1 * v0
    square = z0 * z0 + z1 * z1 + z2 * z2
    if square > _PARALLEL * uu * vv:
        uw, vw = u0 * w0 + u1 * w1 + u2 * w2, v0 * w0 + v1 * w1 + v2 * w2
        along_a, along_b = uv * vw - vv * uw, uu * vw - uv * uw
        if 0.0 < along_a < square and 0.0 < along_b < square:
            return EDGES
    best, region = math.inf, ENDS
    for k in range(2):
        at, square = end_of_edge(x, k, 2, 3)
        if square < best:
            best, region = square, END_EDGE + k if at < 0 else ENDS + 2 * k + at
    for k in range(2):
        at, square = end_of_edge(x, 2 + k, 0, 1)
        if square < best:
            best, region = square, EDGE_END + k if at < 0 else ENDS + 2 * at + k
    return region


@njit(cache=True, error_model="numpy")
def stencil(region, x, n_points, order, c, g, P):
    """Return d and how many beta are free; fill c (4,) and n, the row NORMAL of P (9, 3).

    With order 2 also g (4, 4), and W in the rows from WAYS of P. Where d is zero and no
    plane gives n, n is the third axis.
    """
    free = _FREE[region]
    s0, s1, s2 = 0.0, 0.0, 0.0
    for i in range(4):
        c[i] = _ORIGIN[region, i]
    for i in range(n_points):
        s0, s1, s2 = s0 + c[i] * x[i, 0], s1 + c[i] * x[i, 1], s2 + c[i] * x[i, 2]
    for j in range(free):
        P[_T + j, 0], P[_T + j, 1], P[_T + j, 2] = 0.0, 0.0, 0.0
        for i in range(n_points):
            factor = _DIRECTION[region, i, j]
            if factor != 0.0:
                P[_T + j, 0] += factor * x[i, 0]
                P[_T + j, 1] += factor * x[i, 1]
                P[_T + j, 2] += factor * x[i, 2]
    if free == 2:
        u, v = P[_T], P[_T + 1]
        z0, z1, z2 = u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]
        square = z0 * z0 + z1 * z1 + z2 * z2
        uu, vv, uv = _dot(u, u) / square, _dot(v, v) / square, _dot(u, v) / square
        for a in range(3):
            P[_TG, a] = vv * u[a] - uv * v[a]
            P[_TG + 1, a] = uu * v[a] - uv * u[a]
        length = math.sqrt(square)
        d = (z0 * s0 + z1 * s1 + z2 * s2) / length
        if d < 0.0:
            d, length = -d, -length
        P[NORMAL, 0], P[NORMAL, 1], P[NORMAL, 2] = z0 / length, z1 / length, z2 / length
        h00, h01, h11 = vv, -uv, uu
    elif free == 1:
        u = P[_T]
        uu = _dot(u, u)
        for a in range(3):
            P[_TG, a] = u[a] / uu
        h00, h01, h11 = 1.0 / uu, 0.0, 0.0
        d = 0.0
    else:
        h00, h01, h11 = 0.0, 0.0, 0.0
        d = 0.0
    for j in range(free):
        beta = -(P[_TG + j, 0] * s0 + P[_TG + j, 1] * s1 + P[_TG + j, 2] * s2)
        for i in range(n_points):
            c[i] += beta * _DIRECTION[region, i, j]
    if free < 2:
        s0, s1, s2 = 0.0, 0.0, 0.0
        for i in range(n_points):
            s0, s1, s2 = s0 + c[i] * x[i, 0], s1 + c[i] * x[i, 1], s2 + c[i] * x[i, 2]
        d = math.sqrt(s0 * s0 + s1 * s1 + s2 * s2)
        if d > 0.0:
            P[NORMAL, 0], P[NORMAL, 1], P[NORMAL, 2] = s0 / d, s1 / d, s2 / d
        else:
            P[NORMAL, 0], P[NORMAL, 1], P[NORMAL, 2] = 0.0, 0.0, 1.0
    if order >= 2:
        for i in range(n_points):
            e0, e1 = _DIRECTION[region, i, 0], _DIRECTION[region, i, 1]
            for a in range(3):
                P[WAYS + i, a] = (P[_TG, a] * e0 if free > 0 else 0.0) + (P[_TG + 1, a] * e1 if free > 1 else 0.0)
            for j in range(n_points):
                f0, f1 = _DIRECTION[region, j, 0], _DIRECTION[region, j, 1]
                g[i, j] = h00 * e0 * f0 + h01 * (e0 * f1 + e1 * f0) + h11 * e1 * f1
    return d, free


@njit(cache=True, error_model="numpy")
def across(free, d, P, Q):
    """Fill Q (3, 3) with (I - n n^T - T G^-1 T^T) / d; zero where two beta are free, or d is zero."""
    if free == 2 or d == 0.0:
        for a in range(3):
            Q[a, 0], Q[a, 1], Q[a, 2] = 0.0, 0.0, 0.0
        return
    n = P[NORMAL]
    for a in range(3):
        for b in range(3):
            value = -n[a] * n[b]
            if free == 1:
                value -= P[_TG, a] * P[_T, b]
            Q[a, b] = value / d
        Q[a, a] += 1.0 / d


@njit(cache=True, error_model="numpy")
def mollifier(x, eps, order, gradient, hessian):
    """Return m = (c / eps) (2 - c / eps) of two edges, c = |e_a x e_b|^2 < eps; C^1 with 1 beyond.

    Fills the gradient (4, 3) if order >= 1 and the Hessian (12, 12) if order >= 2, both overwritten. With u = e_a,
    v = e_b: c = u^2 v^2 - (u v)^2, dc/du = 2 (v^2 u - (u v) v), d^2c/du^2 = 2 (v^2 I - v v^T),
    d^2c/du dv = 4 u v^T - 2 v u^T - 2 (u v) I.
    """
    u0, u1, u2 = x[1, 0] - x[0, 0], x[1, 1] - x[0, 1], x[1, 2] - x[0, 2]
    v0, v1, v2 = x[3, 0] - x[2, 0], x[3, 1] - x[2, 1], x[3, 2] - x[2, 2]
    z0, z1, z2 = u1 * v2 - u2 * v1, u2 * v0 - u0 * v2, u0 * v1 - u1 * v0
    square = z0 * z0 + z1 * z1 + z2 * z2
    if order >= 1:
        slope = 2.0 / eps * (1.0 - square / eps)
        # dc/du = 2 v x z, dc/dv = 2 z x u
        by_u = (2.0 * (v1 * z2 - v2 * z1), 2.0 * (v2 * z0 - v0 * z2), 2.0 * (v0 * z1 - v1 * z0))
        by_v = (2.0 * (z1 * u2 - z2 * u1), 2.0 * (z2 * u0 - z0 * u2), 2.0 * (z0 * u1 - z1 * u0))
        for a in range(3):
            gradient[0, a], gradient[1, a] = -slope * by_u[a], slope * by_u[a]
            gradient[2, a], gradient[3, a] = -slope * by_v[a], slope * by_v[a]
        if order >= 2:
            u, v = (u0, u1, u2), (v0, v1, v2)
            uu, vv, uv = u0 * u0 + u1 * u1 + u2 * u2, v0 * v0 + v1 * v1 + v2 * v2, u0 * v0 + u1 * v1 + u2 * v2
            bend = -2.0 / (eps * eps)
            for a in range(3):
                for b in range(3):
                    same = 1.0 if a == b else 0.0
                    h_uu = bend * by_u[a] * by_u[b] + slope * 2.0 * (vv * same - v[a] * v[b])
                    h_vv = bend * by_v[a] * by_v[b] + slope * 2.0 * (uu * same - u[a] * u[b])
                    h_uv = bend * by_u[a] * by_v[b] + slope * (4.0 * u[a] * v[b] - 2.0 * v[a] * u[b] - 2.0 * uv * same)
                    for i in range(2):
                        for j in range(2):
                            sign = 1.0 if i == j else -1.0
                            hessian[3 * i + a, 3 * j + b] = sign * h_uu
                            hessian[6 + 3 * i + a, 6 + 3 * j + b] = sign * h_vv
                            hessian[3 * i + a, 6 + 3 * j + b] = sign * h_uv
                            hessian[6 + 3 * j + b, 3 * i + a] = sign * h_uv
    return square / eps * (2.0 - square / eps)


@njit(cache=True, error_model="numpy")
def edge_cross_square(x):
    """Return |e_a x e_b|^2."""
    u0, u1, u2 = x[1, 0] - x[0, 0], x[1, 1] - x[0, 1], x[1, 2] - x[0, 2]
    v0, v1, v2 = x[3, 0] - x[2, 0], x[3, 1] - x[2, 1], x[3, 2] - x[2, 2]
    z0, z1, z2 = u1 * v2 - u2 * v1, u2 * v0 - u0 * v2, u0 * v1 - u1 * v0
    return z0 * z0 + z1 * z1 + z2 * z2
