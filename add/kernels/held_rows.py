"""Rows of held pairs at work: their forces, and where their derivatives go.

A pair k has up to m coordinates, ``dofs[k]`` (-1 for none). Its share of a matrix is the dense block over those it has,
row by row, from entry ``first[k]`` on.
"""

from numba import njit


@njit(cache=True, error_model="numpy")
def pull(dofs, by_v, lam, out):
    """Add by_v^T lam to ``out``; by_v (k, 3, m), lam (k, 3)."""
    for k in range(dofs.shape[0]):
        for m in range(dofs.shape[1]):
            i = dofs[k, m]
            if i >= 0:
                out[i] += by_v[k, 0, m] * lam[k, 0] + by_v[k, 1, m] * lam[k, 1] + by_v[k, 2, m] * lam[k, 2]


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
