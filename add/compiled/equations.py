"""The equations of a system without trees at one state: force families over its coordinates.

`add.compiled.tree_equations` has the same functions for a system with trees; a step calls one or the other by address.
"""

from __future__ import annotations

import numpy as np

from add.compiled.walk import add_inputs, add_jacobian, add_parameters, forces, new_found, unit
from add.kernels.caching import CALLED, njit


@njit(**CALLED)
def residual(arena, at, room, replay, choices, measured, r):
    """Fill r (n,); decide, or take ``choices``. Return the choices, and the largest family's norm.

    ``measured``: 1 or 2, the norm; 0 to leave it out. ``room`` is that of `add.compiled.tree_equations.new_lifted`.
    """
    r[:] = 0.0
    return forces(arena, 0, at, replay, choices, measured, 0.0, r, np.empty((0, 0)))


@njit(**CALLED)
def jacobian(arena, at, room, choices, weight_q, weight_v, weight_a, data):
    """Fill ``data``, values of a matrix over all coordinates, with weight_q dr/dq + weight_v dr/dv + weight_a dr/da."""
    data[:] = 0.0
    add_jacobian(arena, 0, at, choices, weight_q, weight_v, weight_a, data)


@njit(**CALLED)
def matrices(arena, at, room, choices, over_rows, out):
    """Fill ``out`` (3, n_values) with dr/dq, dr/dv, dr/da; ``over_rows`` is for those over X where there are trees."""
    for k in range(3):
        by_q, by_v, by_a = unit(k)
        out[k] = 0.0
        add_jacobian(arena, 0, at, choices, by_q, by_v, by_a, out[k])


@njit(**CALLED)
def parameters(arena, at, room, choices, over_rows, lam, out):
    """Add lam^T dr/dtheta to ``out`` (n_theta,)."""
    add_parameters(arena, 0, at, choices, lam, out)


@njit(**CALLED)
def inputs(arena, at, room, choices, indptr):
    """Return the coefficients of signals that act and that a direction moves (m,), and dr by each (m, n).

    A drive, a load or a motor touches few coordinates, so that the derivative by each coefficient has a closed form
    with few entries; the pull-backs of `parameters` would ask all families for each coordinate. ``indptr``
    (n_theta + 1,) counts the directions that move each entry of theta.
    """
    found = new_found(arena, at, at.q.size)
    add_inputs(arena, 0, at, choices, indptr, found)
    return found.entries[: found.size[0]], found.values[: found.size[0]]
