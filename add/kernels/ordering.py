"""Order of numbers that are finite, products of small matrices: NumPy's take seconds to compile, these a tenth."""

import numpy as np
from numba import types

from add.kernels.by_address import when_called
from add.kernels.caching import CALLED, njit

#: Runs of so many keys are sorted by insertion.
_SHORT = 8


@njit(**CALLED)
def order_of(keys):
    """Return the places (n,) of keys in ascending order; equal ones stay as they are (merge sort)."""
    n = keys.size
    order, other = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    for i in range(n):
        key, k = keys[i], i
        while k % _SHORT > 0 and keys[order[k - 1]] > key:
            order[k] = order[k - 1]
            k -= 1
        order[k] = i
    width = _SHORT
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            i, k = start, middle
            apart = k == stop or keys[order[k - 1]] <= keys[order[k]]  # sorted already: rows often are
            for at in range(start, stop):
                if i < middle and (apart or k == stop or keys[order[i]] <= keys[order[k]]):
                    other[at] = order[i]
                    i += 1
                else:
                    other[at] = order[k]
                    k += 1
        order, other = other, order
        width *= 2
    return order


@njit(**CALLED)
def first_not_below(keys, key):
    """Return the place of the first of some sorted keys that is not below ``key``; their number if there is none."""
    low, high = 0, keys.size
    while low < high:
        middle = (low + high) // 2
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@njit(**CALLED)
def distinct(keys):
    """Return keys in ascending order, each once."""
    out, n = np.empty_like(keys), 0
    for k in order_of(keys):
        if n == 0 or out[n - 1] != keys[k]:
            out[n] = keys[k]
            n += 1
    return out[:n].copy()


@njit(**CALLED)
def rows_by(rows, column):
    """Return rows (n, m) in the order of one of their columns."""
    out, at = np.empty(rows.shape, dtype=rows.dtype), 0
    for k in order_of(rows[:, column].copy()):
        for c in range(rows.shape[1]):
            out[at, c] = rows[k, c]
        at += 1
    return out


call_rows_by = when_called(rows_by, (types.int64[:, ::1], types.int64), types.int64[:, ::1])


@njit(cache=True)
def fill_turned(R, x, out):
    """Fill ``out`` (3,) with R x."""
    for i in range(3):
        out[i] = R[i, 0] * x[0] + R[i, 1] * x[1] + R[i, 2] * x[2]


@njit(cache=True)
def add_pulled(weight, J, A, out):
    """Add ``weight`` J^T A (k, n) to ``out``."""
    for i in range(J.shape[1]):
        for j in range(A.shape[1]):
            for l in range(J.shape[0]):
                out[i, j] += weight * J[l, i] * A[l, j]


@njit(cache=True)
def add_congruent(J, A, S, room, out):
    """Add J^T A S to ``out``; ``room`` has the shape of A S."""
    for i in range(room.shape[0]):
        for j in range(room.shape[1]):
            room[i, j] = 0.0
            for l in range(S.shape[0]):
                room[i, j] += A[i, l] * S[l, j]
    add_pulled(1.0, J, room, out)
