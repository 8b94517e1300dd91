"""Orderings of sparse matrices, on the graph of their blocks, and the fronts of the elimination tree."""

from typing import NamedTuple

import numpy as np
import pymetis

from add.kernels.caching import njit
from add.typing import AnyArray, BoolArray, FloatArray


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


def nested_dissection(structure: Structure) -> AnyArray:
    """Return the vertices in the order of their elimination: METIS (Karypis and Kumar 1998), always the same.

    Small parts are ordered by minimum degree. On meshes of 1500 nodes minimum degree alone costs 1.6 times the
    operations, on 5000 nodes twice.
    """
    count = structure.first.size - 1
    if not structure.neighbours.size:
        return np.arange(count, dtype=np.int32)
    graph = pymetis.CSRAdjacency(adj_starts=structure.adjacent, adjacent=structure.neighbours)
    order, _ = pymetis.nested_dissection(graph)
    return np.asarray(order, dtype=np.int32)


def weak_vertices(structure: Structure, diagonal: FloatArray) -> BoolArray:
    """Return which vertices have a diagonal (n,) of zeros: the multipliers of constraints."""
    if not diagonal.size:
        return np.zeros(0, dtype=bool)
    return ~np.logical_or.reduceat(diagonal != 0.0, structure.first[:-1])


def postponed(structure: Structure, order: AnyArray, weak: BoolArray) -> AnyArray:
    """Return the order with every weak vertex behind the last of its neighbours that is not weak.

    The pivot of a multiplier is zero until the coordinates that it holds are eliminated: then it is
    -c K^-1 c^T, which a definite K keeps away from zero.
    """
    place = np.empty(order.size)
    place[order] = np.arange(order.size)
    strong = np.where(weak, -1.0, place)
    for v in np.flatnonzero(weak):
        around = structure.neighbours[structure.adjacent[v] : structure.adjacent[v + 1]]
        place[v] = max(place[v], strong[around].max(initial=-1.0) + 0.5)
    return np.argsort(place, kind="stable").astype(np.int32)


@njit(cache=True)
def elimination_tree(indptr, neighbours, order):
    """Return the parent (by position in the order, -1 for a root) of every position, and the position of each vertex.

    Liu's algorithm with path compression: the parent of k is the first later position whose row of L meets column k.
    """
    n = order.size
    position = np.empty(n, dtype=np.int32)
    for k in range(n):
        position[order[k]] = k
    parent = np.full(n, -1, dtype=np.int32)
    ancestor = np.full(n, -1, dtype=np.int32)
    for k in range(n):
        g = order[k]
        for e in range(indptr[g], indptr[g + 1]):
            i = position[neighbours[e]]
            while i != -1 and i < k:
                following = ancestor[i]
                ancestor[i] = k
                if following == -1:
                    parent[i] = k
                i = following
    return parent, position


@njit(cache=True)
def postorder(parent, sequence):
    """Return the nodes of a forest, children before parents; among siblings the last listed comes first."""
    n = parent.size
    head = np.full(n + 1, -1, dtype=np.int32)
    following = np.full(n, -1, dtype=np.int32)
    # Put in front one by one, so that the last ends up at the head of its list.
    for i in sequence:
        p = parent[i] if parent[i] >= 0 else n
        following[i] = head[p]
        head[p] = i
    order = np.empty(n, dtype=np.int32)
    stack = np.empty(n + 1, dtype=np.int32)
    count, top = 0, 0
    stack[0] = n
    while top >= 0:
        i = stack[top]
        child = head[i]
        if child >= 0:
            head[i] = following[child]
            top += 1
            stack[top] = child
        else:
            top -= 1
            if i < n:
                order[count] = i
                count += 1
    return order


@njit(cache=True)
def column_counts(indptr, neighbours, order, position, parent, size):
    """Return for every position the number of unknowns below it in L, its own not counted.

    Row k of L is the subtree that its entries of A span: walk up from each until a visited position. Work is |L| of
    the compressed graph.
    """
    n = order.size
    below = np.zeros(n, dtype=np.int64)
    seen = np.full(n, -1, dtype=np.int32)
    for k in range(n):
        g = order[k]
        seen[k] = k
        for e in range(indptr[g], indptr[g + 1]):
            i = position[neighbours[e]]
            while i < k and seen[i] != k:
                below[i] += size[g]
                seen[i] = k
                i = parent[i]
    return below


@njit(cache=True)
def supernodes(parent, pivots, border, small, share):
    """Merge nodes of the tree with their parents; return for every node the top of its merged group.

    A child always joins where that stores no zeros. Beyond that it joins if the front that results has at most
    ``small[0]`` pivots, or if its zeros are at most ``share[i]`` of what it stores, where ``small[i]`` is
    the first limit that its number of pivots does not exceed.

    Parameters
    ----------
    parent : (n,) children before parents
    pivots : (n,) columns of every node; changed in place to those of the merged group at its top
    border : (n,) rows below them
    small : (k,) increasing numbers of pivots
    share : (k + 1,)
    """
    n = parent.size
    into = np.arange(n).astype(np.int32)
    zeros = np.zeros(n)
    head = np.full(n, -1, dtype=np.int32)
    following = np.full(n, -1, dtype=np.int32)
    for p in range(n):
        # All children of p are final; grandchildren of an absorbed child become children of p, but are not asked again:
        # they were turned down by a smaller front.
        kept = -1
        child = head[p]
        while child >= 0:
            after = following[child]
            a, b = pivots[child], border[child]
            c, d = pivots[p], border[p]
            extra = a * (c + d - b)  # rows of the merged front that the child's columns do not have
            total = a + c
            filled = zeros[child] + zeros[p] + extra
            stored = 0.5 * total * (total + 1) + total * d
            limit = share[-1]
            for i in range(small.size):
                if total <= small[i]:
                    limit = share[i]
                    break
            if extra == 0 or filled <= limit * stored:
                into[child] = p
                pivots[p] = total
                zeros[p] = filled
                # Its remaining children move up.
                grand = head[child]
                while grand >= 0:
                    other = following[grand]
                    following[grand] = kept
                    kept = grand
                    grand = other
            else:
                following[child] = kept
                kept = child
            child = after
        head[p] = kept
        if parent[p] >= 0:
            following[p] = head[parent[p]]
            head[parent[p]] = p
    for i in range(n - 1, -1, -1):
        into[i] = into[into[i]] if into[i] != i else i
    return into


@njit(cache=True)
def _sorted_by(keys, n, chosen, n_chosen):
    """Return the first ``n_chosen`` of ``chosen`` in the order of their keys in [0, n); equal ones keep theirs."""
    start = np.zeros(n + 1, dtype=np.int64)
    for i in range(n_chosen):
        start[keys[chosen[i]] + 1] += 1
    for i in range(n):
        start[i + 1] += start[i]
    out = np.empty(n_chosen, dtype=np.int64)
    for i in range(n_chosen):
        e = chosen[i]
        out[start[keys[e]]] = e
        start[keys[e]] += 1
    return out


@njit(cache=True)
def merged(indptr, indices, rows, cols):
    """Merge entries into a structure by columns.

    Parameters
    ----------
    indptr, indices : of a square matrix by columns, rows sorted
    rows, cols : (k,) int64 of more entries, repeats allowed; those with a negative one are left out

    Returns
    -------
    indptr, indices : of both
    place : (nnz,) where the values of the first go
    slots : (k,) where those of the entries go; one past the last value for what is left out
    """
    n = indptr.size - 1
    chosen = np.empty(rows.size, dtype=np.int64)
    m = 0
    for e in range(rows.size):
        if rows[e] >= 0 and cols[e] >= 0:
            chosen[m] = e
            m += 1
    order = _sorted_by(cols, n, _sorted_by(rows, n, chosen, m), m)
    pointers = np.zeros(n + 1, dtype=np.int32)
    both = np.empty(indices.size + m, dtype=np.int32)
    place = np.empty(indices.size, dtype=np.int64)
    slots = np.empty(rows.size, dtype=np.int64)
    size, at = 0, 0
    for j in range(n):
        b, stop = indptr[j], indptr[j + 1]
        while b < stop or (at < m and cols[order[at]] == j):
            i = indices[b] if b < stop else n
            if at < m and cols[order[at]] == j and rows[order[at]] < i:
                i = rows[order[at]]
            if b < stop and indices[b] == i:
                place[b] = size
                b += 1
            while at < m and rows[order[at]] == i and cols[order[at]] == j:
                slots[order[at]] = size
                at += 1
            both[size] = i
            size += 1
        pointers[j + 1] = size
    for e in range(rows.size):
        if rows[e] < 0 or cols[e] < 0:
            slots[e] = size
    return pointers, both[:size].copy(), place, slots
