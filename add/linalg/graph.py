"""The graph that is ordered: unknowns with the same neighbours are one vertex."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from add.kernels.caching import njit
from add.typing import AnyArray


class Structure(NamedTuple):
    """A matrix by columns and by rows, sorted, and the compressed graph of its symmetrised structure.

    Attributes
    ----------
    indptr, indices : by columns
    row_indptr, row_indices, row_entry : by rows, with the place of every entry among the values
    first : (n_vertices + 1,) first unknown of every vertex
    adjacent, neighbours : offsets and neighbours of every vertex, itself left out
    """

    indptr: AnyArray
    indices: AnyArray
    row_indptr: AnyArray
    row_indices: AnyArray
    row_entry: AnyArray
    first: AnyArray
    adjacent: AnyArray
    neighbours: AnyArray


@njit(cache=True)
def rows_of(indptr, indices):
    """Return the structure by rows: (indptr, indices, entry), sorted."""
    n = indptr.size - 1
    start = np.zeros(n + 1, dtype=np.int32)
    for i in indices:
        start[i + 1] += 1
    for i in range(n):
        start[i + 1] += start[i]
    fill = start[:n].copy()
    cols = np.empty(indices.size, dtype=np.int32)
    entry = np.empty(indices.size, dtype=np.int32)
    for j in range(n):
        for k in range(indptr[j], indptr[j + 1]):
            i = indices[k]
            cols[fill[i]] = j
            entry[fill[i]] = k
            fill[i] += 1
    return start, cols, entry


@njit(cache=True)
def _alike(indptr, indices, j):
    """Whether columns j - 1 and j have the same structure."""
    a, b = indptr[j - 1], indptr[j]
    size = b - a
    if indptr[j + 1] - b != size:
        return False
    for k in range(size):
        if indices[a + k] != indices[b + k]:
            return False
    return True


@njit(cache=True)
def _add_neighbours(indptr, indices, vertex, j, g, seen, neighbours, size):
    """Append the vertices met in column j that vertex g has not seen; return how many there are now."""
    for k in range(indptr[j], indptr[j + 1]):
        h = vertex[indices[k]]
        if seen[h] != g:
            seen[h] = g
            neighbours[size] = h
            size += 1
    return size


@njit(cache=True)
def compress(indptr, indices, row_indptr, row_indices):
    """Return the compressed graph of the symmetrised structure: (first, adjacent, neighbours).

    Unknowns in a row are one vertex if their columns are alike and their rows are alike. The diagonal is stored, so
    they are then neighbours of each other too. The three coordinates of a node usually are one vertex.
    """
    n = indptr.size - 1
    vertex = np.empty(n, dtype=np.int32)
    first = np.empty(n + 1, dtype=np.int32)
    count = 0
    capacity = 0
    for j in range(n):
        if j == 0 or not (_alike(indptr, indices, j) and _alike(row_indptr, row_indices, j)):
            first[count] = j
            count += 1
            capacity += indptr[j + 1] - indptr[j] + row_indptr[j + 1] - row_indptr[j]
        vertex[j] = count - 1
    first[count] = n
    seen = np.full(count, -1, dtype=np.int32)
    adjacent = np.zeros(count + 1, dtype=np.int32)
    neighbours = np.empty(capacity, dtype=np.int32)
    size = 0
    for g in range(count):
        j = first[g]
        seen[g] = g
        size = _add_neighbours(indptr, indices, vertex, j, g, seen, neighbours, size)
        size = _add_neighbours(row_indptr, row_indices, vertex, j, g, seen, neighbours, size)
        adjacent[g + 1] = size
    return first[: count + 1].copy(), adjacent, neighbours[:size].copy()


def structure_of(indptr: AnyArray, indices: AnyArray) -> Structure:
    """Return a matrix by columns (int32, sorted) with all that follows from it."""
    row_indptr, row_indices, row_entry = rows_of(indptr, indices)
    graph = compress(indptr, indices, row_indptr, row_indices)
    return Structure(indptr, indices, row_indptr, row_indices, row_entry, *graph)
