"""The pattern of a matrix and of more entries, in time linear in both: counting sorts and one merge a column."""

from __future__ import annotations

import numpy as np

from add.kernels.caching import njit


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
