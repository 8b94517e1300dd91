"""The pull-back of one step of a small system, as in `add.simulation.bdf`, without a return to Python."""

from __future__ import annotations

import numpy as np

from add.compiled.arrays import Signals, unpacked
from add.compiled.dense import add_transposed, factor, new_dense, solve, take_block
from add.compiled.families import Instant, jacobian, move_parameters, parameters
from add.kernels.caching import njit


@njit(cache=True, error_model="numpy", nogil=True)
def step_pullback(
    ints, floats, places, lapack, formula, q, v, a, weights, windows, theta, chosen, q_bar, v_bar, theta_bar
):
    """Pull cotangents (2, n) of the state after a step back through it; add those of theta and of the moves.

    Returns whether the matrix could be solved with, the cotangents (2, n) of q and of v before the step, and those of
    the prescribed coordinates (n,), zero elsewhere. ``theta_bar`` takes all but the share of where prescribed
    coordinates begin.
    """
    families = unpacked(ints, floats, places)
    layout = families.layout
    free, n, n_free, c = layout.free, layout.size[0], layout.free.size, formula.c
    at = Instant(formula.t, q, v, a, theta, Signals(weights, windows))
    q_before, v_before, by_position = np.zeros((2, n)), np.zeros((2, n)), np.zeros(n)
    data, dense = np.empty(n * n), new_dense(n_free)
    jacobian(families, at, chosen, 1.0, c, c * c, data)
    take_block(data, n, free, dense.matrix)
    largest = factor(dense, lapack)
    if largest < 0.0:
        return False, q_before, v_before, by_position
    b, lam_free, rest = np.empty(n_free), np.empty(n_free), np.empty(n_free)
    for k in range(n_free):
        b[k] = q_bar[0, free[k]] + c * v_bar[0, free[k]]
    if not solve(dense, largest, True, b, lam_free, rest, lapack):
        return False, q_before, v_before, by_position
    lam = np.zeros(n)
    for k in range(n_free):
        lam[free[k]] = lam_free[k]
    if layout.prescribed.size:
        whole = np.zeros(n)
        add_transposed(data, n, lam, whole)
        for i in layout.prescribed:
            by_position[i] = q_bar[0, i] + c * v_bar[0, i] - whole[i]
        move_parameters(families, at, by_position, theta_bar)
    by_a, by_rates = np.zeros(n), np.zeros(n)
    jacobian(families, at, chosen, 0.0, 0.0, 1.0, data)
    add_transposed(data, n, lam, by_a)
    jacobian(families, at, chosen, 0.0, 1.0, c, data)
    add_transposed(data, n, lam, by_rates)
    for i in range(n):
        by_rates[i] -= v_bar[0, i]
        q_before[0, i] = q_bar[1, i] + c * formula.alpha_0 * by_rates[i]
        q_before[1, i] = c * formula.alpha_1 * by_rates[i]
        v_before[0, i] = v_bar[1, i] + c * formula.alpha_0 * by_a[i]
        v_before[1, i] = c * formula.alpha_1 * by_a[i]
        lam[i] = -lam[i]
    parameters(families, at, chosen, lam, theta_bar)
    return True, q_before, v_before, by_position
