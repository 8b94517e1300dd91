"""Fronts of the elimination tree: found, and merged where that is faster."""

from __future__ import annotations

import numpy as np

from add.kernels.caching import njit


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
