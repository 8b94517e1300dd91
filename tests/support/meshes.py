"""Closed meshes made here: any set of cells, a torus, a ball."""

import numpy as np


def cells_surface(filled, width=1.0):
    """Return vertices and triangles of the boundary of cubes: ``filled`` (nx, ny, nz) bool, corner at the origin."""
    around = np.pad(filled, 1)
    number, vertices, triangles = {}, [], []

    def vertex(place):
        if place not in number:
            number[place] = len(vertices)
            vertices.append(place)
        return number[place]

    for cell in np.argwhere(filled):
        for axis in range(3):
            for side in (0, 1):
                beside = cell + 1
                beside[axis] += 2 * side - 1
                if around[tuple(beside)]:
                    continue
                u, w = np.eye(3, dtype=int)[[(axis + 1) % 3, (axis + 2) % 3]]
                first = cell + side * np.eye(3, dtype=int)[axis]
                quad = [vertex(tuple(first + d)) for d in (0 * u, u, u + w, w)]
                quad = quad if side else quad[::-1]
                triangles += [(quad[0], quad[1], quad[2]), (quad[0], quad[2], quad[3])]
    return width * np.array(vertices, dtype=float), np.array(triangles)


def notched_cube(half=1.0):
    """Return a cube of half edge ``half`` about the origin without the octant where all coordinates are positive.

    The origin is a corner, and the positive axes are edges, that the solid surrounds.
    """
    filled = np.ones((2, 2, 2), dtype=bool)
    filled[1, 1, 1] = False
    vertices, triangles = cells_surface(filled, half)
    return vertices - half, triangles


def feature_of(mesh, *corners):
    """Return the number of the edge or vertex of a mesh between these places."""
    of = [int(np.flatnonzero((mesh.vertices == np.array(place)).all(axis=1))[0]) for place in corners]
    sides = np.sort(mesh.triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    edges = np.unique(sides, axis=0)
    if len(of) == 1:
        return len(mesh.triangles) + len(edges) + of[0]
    return len(mesh.triangles) + int(np.flatnonzero((edges == sorted(of)).all(axis=1))[0])


def torus(radius=0.1, tube=0.04, n=24, m=12):
    """Return a torus about the z axis."""
    i, j = np.meshgrid(np.arange(n), np.arange(m), indexing="ij")
    u, w = 2 * np.pi * i / n, 2 * np.pi * j / m
    rho = radius + tube * np.cos(w)
    vertices = np.stack([rho * np.cos(u), rho * np.sin(u), tube * np.sin(w)], axis=2).reshape(-1, 3)
    a, b = i * m + j, (i + 1) % n * m + j
    c, d = (i + 1) % n * m + (j + 1) % m, i * m + (j + 1) % m
    triangles = np.concatenate([np.stack([a, b, c], axis=2), np.stack([a, c, d], axis=2)]).reshape(-1, 3)
    return vertices, triangles


def winding(x, vertices, triangles):
    """Return how often the surface winds around points (n, 3): one inside, zero outside (van Oosterom 1983)."""
    a, b, c = (vertices[triangles[:, k]][None] - x[:, None] for k in range(3))
    la, lb, lc = (np.linalg.norm(side, axis=2) for side in (a, b, c))
    volume = np.einsum("ijk,ijk->ij", a, np.cross(b, c))
    size = la * lb * lc + (a * b).sum(axis=2) * lc + (b * c).sum(axis=2) * la + (c * a).sum(axis=2) * lb
    return np.arctan2(volume, size).sum(axis=1) / (2 * np.pi)
