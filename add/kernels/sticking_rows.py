"""Pairs that stick: which they are, their forces, and where their derivatives go.

A pair k has up to m coordinates, ``dofs[k]`` (-1 for none). Its share of a matrix is the dense block over those it has,
row by row, from entry ``first[k]`` on.
"""

import numpy as np

from add.kernels.caching import njit
from add.kernels.contact_pairs import ACTIVE, BITS, SLIP, STICKS


@njit(cache=True)
def with_sticking(rows, slipping):
    """Return a copy of a decision with all pairs sticking that touch, those that slip only if ``slipping``."""
    out = rows.copy()
    for k in range(rows.shape[0]):
        bits = rows[k, BITS]
        if bits & ACTIVE != 0 and (slipping or bits & SLIP == 0):
            out[k, BITS] = bits | STICKS
    return out


@njit(cache=True)
def all_sticking(rows):
    """Whether all pairs stick that touch."""
    for k in range(rows.shape[0]):
        if rows[k, BITS] & (ACTIVE | STICKS) == ACTIVE:
            return False
    return True


@njit(cache=True)
def beyond(reactions, limits, margin):
    """Which reactions (k, 3) are longer than margin times their limits (k,), or have none (below zero)."""
    out = np.empty(limits.size, dtype=np.bool_)
    for k in range(limits.size):
        length = np.sqrt(reactions[k, 0] ** 2 + reactions[k, 1] ** 2 + reactions[k, 2] ** 2)
        out[k] = limits[k] < 0.0 or length > margin * limits[k]
    return out


@njit(cache=True)
def meet(dofs, taken):
    """Whether two of the points, with coordinates dofs (k, m), share one.

    ``taken`` (n,) is 0 for a coordinate without a point so far, 1 with one, 2 for one that does not count.
    """
    for k in range(dofs.shape[0]):
        for m in range(dofs.shape[1]):
            i = dofs[k, m]
            if i >= 0:
                if taken[i] == 1:
                    return True
                if taken[i] == 0:
                    taken[i] = 1
    return False


@njit(cache=True, error_model="numpy")
def add_forces(dofs, by_v, reactions, out):
    """Add by_v^T reactions to ``out``; by_v (k, 3, m), reactions (k, 3)."""
    for k in range(dofs.shape[0]):
        for m in range(dofs.shape[1]):
            i = dofs[k, m]
            if i >= 0:
                out[i] += (
                    by_v[k, 0, m] * reactions[k, 0] + by_v[k, 1, m] * reactions[k, 1] + by_v[k, 2, m] * reactions[k, 2]
                )


@njit(cache=True, error_model="numpy")
def add_blocks(dofs, first, factor, blocks, data, slots):
    """Add factor times blocks (k, m, m) to ``data[slots]``."""
    for k in range(dofs.shape[0]):
        at = first[k]
        for m in range(dofs.shape[1]):
            if dofs[k, m] >= 0:
                for n in range(dofs.shape[1]):
                    if dofs[k, n] >= 0:
                        data[slots[at]] += factor * blocks[k, m, n]
                        at += 1


@njit(cache=True, error_model="numpy")
def add_products(dofs, first, factor, left, right, data, slots):
    """Add factor left^T right, both (k, 3, m), to ``data[slots]``."""
    for k in range(dofs.shape[0]):
        at = first[k]
        for m in range(dofs.shape[1]):
            if dofs[k, m] >= 0:
                a, b, c = factor * left[k, 0, m], factor * left[k, 1, m], factor * left[k, 2, m]
                for n in range(dofs.shape[1]):
                    if dofs[k, n] >= 0:
                        data[slots[at]] += a * right[k, 0, n] + b * right[k, 1, n] + c * right[k, 2, n]
                        at += 1
