"""Surfaces that pass through each other, counted without anything of the program: all edges against all faces."""

import numpy as np


def crossing_pairs(x, faces, others=None, edges=None):
    """Return the pairs (k, 2) of an edge and a face that pass through each other.

    Each edge p + s (q - p) is put into the plane of each face, a + u (b - a) + w (c - a), by Cramer's rule; they cross
    where 0 < s < 1, u > 0, w > 0, u + w < 1. Pairs that share a point are left out.

    Parameters
    ----------
    x : (n, 3) places
    faces : (m, 3) whose edges are tested
    others : (k, 3) faces to test them against; default: the same
    edges : (e, 2) to test; default: those of ``faces``
    """
    others = faces if others is None else others
    if edges is None:
        edges = np.unique(np.sort(faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1), axis=0)
    a, u, w = x[others[:, 0]], x[others[:, 1]] - x[others[:, 0]], x[others[:, 2]] - x[others[:, 0]]
    normal = np.cross(u, w)
    low, high = x[others].min(axis=1), x[others].max(axis=1)
    found = []
    for first in range(0, len(edges), 256):
        part = edges[first : first + 256]
        p, q = x[part[:, 0]], x[part[:, 1]]
        near = (np.minimum(p, q)[:, None] <= high).all(axis=2) & (np.maximum(p, q)[:, None] >= low).all(axis=2)
        near &= ~(part[:, :, None, None] == others[None, None]).any(axis=(1, 3))
        e, f = np.nonzero(near)
        d, y = q[e] - p[e], p[e] - a[f]
        det = -np.einsum("ij,ij->i", d, normal[f])
        with np.errstate(divide="ignore", invalid="ignore"):
            s = np.einsum("ij,ij->i", y, normal[f]) / det
            turned = np.cross(y, d)
            along_u = np.einsum("ij,ij->i", w[f], turned) / det
            along_w = -np.einsum("ij,ij->i", u[f], turned) / det
            hit = (s > 0) & (s < 1) & (along_u > 0) & (along_w > 0) & (along_u + along_w < 1)
        found.append(np.stack([e[hit] + first, f[hit]], axis=1))
    return np.concatenate(found)
