"""Wrinkled sheets of triangles, and several surfaces as detection takes them."""

import numpy as np

from add.contact.crossings import Primitives


def sheet(n, shift=(0.0, 0.0, 0.0), wave=0.03):
    """Return points and faces of a wrinkled sheet of n x n points on the unit square."""
    u = np.linspace(0.0, 1.0, n)
    x, y = (part.ravel() for part in np.meshgrid(u, u, indexing="ij"))
    at = np.arange(n * n).reshape(n, n)
    a, b, c, d = at[:-1, :-1], at[1:, :-1], at[1:, 1:], at[:-1, 1:]
    faces = np.concatenate([np.stack([a, b, c], axis=2), np.stack([a, c, d], axis=2)]).reshape(-1, 3)
    return np.stack([x, y, wave * np.sin(9 * x) * np.cos(7 * y)], axis=1) + np.asarray(shift), faces


def joined(parts, itself=(), apart=(), blunt=0):
    """Return places and primitives of several surfaces; ``blunt`` edges at random are no edges."""
    points, faces, body, first = [], [], [], 0
    for k, (x, f) in enumerate(parts):
        points.append(x)
        faces.append(f + first)
        body.append(np.full(len(x), k))
        first += len(x)
    faces, body = np.concatenate(faces), np.concatenate(body)
    edges = np.unique(np.sort(faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1), axis=0)
    sharp = np.ones(len(edges), dtype=bool)
    sharp[np.random.default_rng(0).permutation(len(edges))[:blunt]] = False
    meets = ~np.eye(len(parts), dtype=bool)
    for k in itself:
        meets[k, k] = True
    for a, b in apart:
        meets[a, b] = meets[b, a] = False
    return np.concatenate(points), Primitives(edges, faces, sharp, body, meets)
