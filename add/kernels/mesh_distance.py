"""Signed distance to a closed mesh of triangles, feature by feature.

The distance of a point X is that to the closest feature, a face, an edge or a vertex; its sign is that of the angle
between X - c, c being the closest place, and the feature's angle-weighted pseudonormal (Baerentzen, Aanaes 2005): a
face's normal, the sum of both at an edge, the sum of those around a vertex weighted by their angles. With n = grad g:

    face      g = n_f . (X - a),          n = n_f,              Hessian 0
    edge      g = +-|s|,                  n = s / g,            Hessian (I - u u^T - n n^T) / g,   s = X - a without u
    vertex    g = +-|X - a|,              n = (X - a) / g,      Hessian (I - n n^T) / g

An imposed feature evaluates the same formula wherever the point is. On an edge or a vertex n is the pseudonormal.

A mesh is one row of floats (`Layout` says what stands where), the first three of which are half the extent of a box
about the origin of its frame. Features are numbered: faces, then edges, then vertices.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import types

from add.kernels.borrowed import put
from add.kernels.by_address import when_called
from add.kernels.caching import njit
from add.kernels.ordering import order_of
from add.kernels.primitives import CORNER_0, EDGE_01, FACE, closest_on_triangle

#: Numbers before the arrays: half extents (3), counts of vertices, triangles, edges and boxes of the tree.
HEAD = 7
#: Triangles in a leaf of the tree, at most, and how deep it is, at most.
LEAF, DEEPEST = 4, 64


class Layout(NamedTuple):
    """The first entries of the arrays of a mesh in its row.

    Attributes
    ----------
    vertices : (nv, 3) [m]
    triangles, sides : (nt, 3) vertices, and edges 01, 12, 20, in the order of the leaves
    names : (nt,) number of each triangle as it was given
    edges : (ne, 2) vertices
    of_faces, of_edges, of_vertices : (nt, 3), (ne, 3), (nv, 3) unit pseudonormals, faces as they were given
    corners : (nt, 3) vertices of the faces as they were given
    boxes : (nb, 6) low and high corner of each box of the tree
    below : (nb, 2) the two children; or -1 - first triangle, and how many
    size : int
        Numbers in all.
    """

    vertices: int
    triangles: int
    sides: int
    names: int
    edges: int
    of_faces: int
    of_edges: int
    of_vertices: int
    corners: int
    boxes: int
    below: int
    size: int


@njit(cache=True, inline="always")
def layout(nv, nt, ne, nb):
    """Return the places of the arrays of a mesh with so many vertices, triangles, edges and boxes."""
    a = HEAD
    b = a + 3 * nv
    c = b + 3 * nt
    d = c + 3 * nt
    e = d + nt
    f = e + 2 * ne
    g = f + 3 * nt
    h = g + 3 * ne
    i = h + 3 * nv
    j = i + 3 * nt
    k = j + 6 * nb
    return Layout(a, b, c, d, e, f, g, h, i, j, k, k + 2 * nb)


@njit(cache=True, error_model="numpy", inline="always")
def _of(row):
    return layout(int(row[3]), int(row[4]), int(row[5]), int(row[6]))


@njit(cache=True, error_model="numpy", inline="always")
def _box_square(row, at, X0, X1, X2):
    """Square of the distance of a point from a box."""
    y0 = max(row[at] - X0, X0 - row[at + 3], 0.0)
    y1 = max(row[at + 1] - X1, X1 - row[at + 4], 0.0)
    y2 = max(row[at + 2] - X2, X2 - row[at + 5], 0.0)
    return y0 * y0 + y1 * y1 + y2 * y2


@njit(cache=True, error_model="numpy")
def mesh_feature(row, X0, X1, X2):
    """Return the closest feature of a mesh; of equally close ones the first that the tree meets."""
    at = _of(row)
    nt, ne = int(row[4]), int(row[5])
    stack, squares = np.empty(DEEPEST, dtype=np.int64), np.empty(DEEPEST)
    stack[0], squares[0], top = 0, _box_square(row, at.boxes, X0, X1, X2), 1
    best, feature = math.inf, 0
    while top > 0:
        top -= 1
        if squares[top] > best:
            continue
        box = stack[top]
        left, right = int(row[at.below + 2 * box]), int(row[at.below + 2 * box + 1])
        if left >= 0:
            near = _box_square(row, at.boxes + 6 * left, X0, X1, X2)
            far = _box_square(row, at.boxes + 6 * right, X0, X1, X2)
            if near > far:
                left, right, near, far = right, left, far, near
            stack[top], squares[top] = right, far
            stack[top + 1], squares[top + 1] = left, near
            top += 2
            continue
        for k in range(-1 - left, -1 - left + right):
            i0, i1, i2 = (
                at.vertices + 3 * int(row[at.triangles + 3 * k]),
                at.vertices + 3 * int(row[at.triangles + 3 * k + 1]),
                at.vertices + 3 * int(row[at.triangles + 3 * k + 2]),
            )
            a, b, c = row[i0 : i0 + 3], row[i1 : i1 + 3], row[i2 : i2 + 3]
            part, v, w = closest_on_triangle(X0, X1, X2, a, b, c)
            u = 1.0 - v - w
            y0 = X0 - (u * a[0] + v * b[0] + w * c[0])
            y1 = X1 - (u * a[1] + v * b[1] + w * c[1])
            y2 = X2 - (u * a[2] + v * b[2] + w * c[2])
            square = y0 * y0 + y1 * y1 + y2 * y2
            if square < best:
                best = square
                if part == FACE:
                    feature = int(row[at.names + k])
                elif part < CORNER_0:
                    feature = nt + int(row[at.sides + 3 * k + part - EDGE_01])
                else:
                    feature = nt + ne + int(row[at.triangles + 3 * k + part - CORNER_0])
    return feature


@njit(cache=True, error_model="numpy")
def mesh_branch(row, X0, X1, X2, feature, order, n, H):
    """Gap [m] of a feature; fills n (3,) if order >= 1 and adds to H (3, 3) [1/m], zeros, if order >= 2."""
    at = _of(row)
    nt, ne = int(row[4]), int(row[5])
    if feature < nt:
        a, m = at.vertices + 3 * int(row[at.corners + 3 * feature]), at.of_faces + 3 * feature
        if order >= 1:
            n[0], n[1], n[2] = row[m], row[m + 1], row[m + 2]
        return row[m] * (X0 - row[a]) + row[m + 1] * (X1 - row[a + 1]) + row[m + 2] * (X2 - row[a + 2])
    u0, u1, u2 = 0.0, 0.0, 0.0
    if feature < nt + ne:
        edge = feature - nt
        a = at.vertices + 3 * int(row[at.edges + 2 * edge])
        b = at.vertices + 3 * int(row[at.edges + 2 * edge + 1])
        m = at.of_edges + 3 * edge
        u0, u1, u2 = row[b] - row[a], row[b + 1] - row[a + 1], row[b + 2] - row[a + 2]
        length = math.sqrt(u0 * u0 + u1 * u1 + u2 * u2)
        u0, u1, u2 = u0 / length, u1 / length, u2 / length
    else:
        a, m = at.vertices + 3 * (feature - nt - ne), at.of_vertices + 3 * (feature - nt - ne)
    s0, s1, s2 = X0 - row[a], X1 - row[a + 1], X2 - row[a + 2]
    along = s0 * u0 + s1 * u1 + s2 * u2
    s0, s1, s2 = s0 - along * u0, s1 - along * u1, s2 - along * u2
    g = math.sqrt(s0 * s0 + s1 * s1 + s2 * s2)
    if s0 * row[m] + s1 * row[m + 1] + s2 * row[m + 2] < 0.0:
        g = -g
    if order >= 1:
        if g == 0.0:
            n[0], n[1], n[2] = row[m], row[m + 1], row[m + 2]
            return g
        n[0], n[1], n[2] = s0 / g, s1 / g, s2 / g
        if order >= 2:
            H[0, 0] = (1.0 - u0 * u0 - n[0] * n[0]) / g
            H[1, 1] = (1.0 - u1 * u1 - n[1] * n[1]) / g
            H[2, 2] = (1.0 - u2 * u2 - n[2] * n[2]) / g
            H[0, 1] = (-u0 * u1 - n[0] * n[1]) / g
            H[0, 2] = (-u0 * u2 - n[0] * n[2]) / g
            H[1, 2] = (-u1 * u2 - n[1] * n[2]) / g
            H[1, 0], H[2, 0], H[2, 1] = H[0, 1], H[0, 2], H[1, 2]
    return g


_ROW, _PLACE = types.float64[::1], (types.float64,) * 3
_OF_BRANCH = _ROW, *_PLACE, types.int64, types.int64, _ROW, types.float64[:, ::1]
call_mesh_feature = when_called(mesh_feature, (_ROW, *_PLACE), types.int64)
call_mesh_branch = when_called(mesh_branch, _OF_BRANCH, types.float64)


@njit(cache=True, error_model="numpy")
def mesh_is_near(row, X0, X1, X2, reach):
    """Whether a point is within reach of the box about a mesh: a quick test before the tree is asked."""
    return abs(X0) <= row[0] + reach and abs(X1) <= row[1] + reach and abs(X2) <= row[2] + reach


@njit(cache=True)
def box_tree(corners):
    """Return the order of triangles (nt, 3, 3) in the leaves of a tree of boxes.

    Further the boxes (nb, 6), and what lies below each (nb, 2). A box is halved at the median of its centres along the
    longest side.
    """
    n = corners.shape[0]
    low, high = np.empty((n, 3)), np.empty((n, 3))
    for t in range(n):
        for i in range(3):
            low[t, i] = min(corners[t, 0, i], corners[t, 1, i], corners[t, 2, i])
            high[t, i] = max(corners[t, 0, i], corners[t, 1, i], corners[t, 2, i])
    centres, order = 0.5 * (low + high), np.arange(n)
    boxes, below = np.empty((2 * n, 6)), np.empty((2 * n, 2), dtype=np.int64)
    waiting, count = [(0, n, -1)], 0
    while len(waiting) > 0:
        first, stop, parent = waiting.pop()
        if parent >= 0:  # the left child of a box is the one behind it, the right one is met later
            if below[parent, 0] < 0:
                below[parent, 0], below[parent, 1] = count, 0
            else:
                below[parent, 1] = count
        longest, axis = -1.0, 0
        part = order[first:stop].copy()
        for i in range(3):
            boxes[count, i], boxes[count, 3 + i] = low[part, i].min(), high[part, i].max()
            side = centres[part, i].max() - centres[part, i].min()
            if side > longest:
                longest, axis = side, i
        below[count, 0], below[count, 1] = -1, 0
        if stop - first <= LEAF:
            below[count, 0], below[count, 1] = -1 - first, stop - first
        else:
            put(part[order_of(centres[part, axis])], order[first:stop])
            middle = (first + stop) // 2
            waiting.append((middle, stop, count))
            waiting.append((first, middle, count))
        count += 1
    return order, boxes[:count], below[:count]
