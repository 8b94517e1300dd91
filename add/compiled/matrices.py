"""The matrices of a small system's equations at one state, and the derivatives of a step, in one compiled call each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from add.compiled.dense import factor, solve_all
from add.compiled.linear import new_linear
from add.compiled.routines import call_inputs, call_matrices, call_parameters, call_residual
from add.compiled.structure import links_of
from add.compiled.tree_equations import new_lifted
from add.kernels.arena import Instant
from add.kernels.caching import njit
from add.typing import FloatArray, IntArray


class Along(NamedTuple):
    """Directions of theta, row by row of their matrix; see `add.equations.kinematics.Directions`.

    Attributes
    ----------
    indptr, indices, data : compressed by rows, (n_theta + 1,), (m,), (m,)
    n : number of directions
    numbers : whether any of them moves more than coefficients of signals
    """

    indptr: IntArray
    indices: IntArray
    data: FloatArray
    n: int
    numbers: bool


class Reading(NamedTuple):
    """The formula of a step: time t [s] of its end, c = 1/(beta dt), history coefficients, pairs that a state holds."""

    t: float
    c: float
    alpha: FloatArray
    pairs: int


@njit(cache=True, error_model="numpy")
def _moved(entries, values, along):
    """Return the directions that move any of the entries (m,) by which ``values`` (m, n) are derivatives, and r'."""
    number, acting = np.full(along.n, -1), np.zeros(entries.size, dtype=np.bool_)
    for m in range(entries.size):
        for i in range(values.shape[1]):
            if values[m, i] != 0.0:
                acting[m] = True
                break
        if acting[m]:
            for j in range(along.indptr[entries[m]], along.indptr[entries[m] + 1]):
                number[along.indices[j]] = 0
    columns, count = np.empty(along.n, dtype=np.int64), 0
    for d in range(along.n):
        if number[d] == 0:
            number[d], columns[count] = count, d
            count += 1
    out = np.zeros((count, values.shape[1]))
    for m in range(entries.size):
        if acting[m]:
            for j in range(along.indptr[entries[m]], along.indptr[entries[m] + 1]):
                out[number[along.indices[j]]] += along.data[j] * values[m]
    return columns[:count].copy(), out


@njit(cache=True, error_model="numpy", nogil=True)
def state_matrices(arrays, routines, t, kin, theta, signals, choices, along):
    """Return the transposed of dr/dq, dr/dv and dr/da (3, n, n), the directions that act (k,), dr along each (k, n).

    ``arrays`` is an `Arena`, ``kin`` q, v and a (n,) each, ``signals`` those of the instant.
    """
    q, v, a = kin
    at, lifted = Instant(t, q, v, a, theta, signals), new_lifted(arrays)
    n, rows = q.size, 0
    sizes = links_of(arrays).sizes
    if sizes.size:
        rows = sizes[0]
        call_residual(routines.residual, (arrays, at, lifted, True, choices, 0, np.empty(n)))
    out, by_rows = np.empty((3, n * n)), np.empty((3, rows * rows))
    call_matrices(routines.matrices, (arrays, at, lifted, choices, by_rows, out))
    entries, values = np.zeros(0, dtype=np.int64), np.zeros((0, n))
    if along.numbers:
        by_theta, unit = np.zeros((n, theta.size)), np.zeros(n)
        for i in range(n):
            unit[i] = 1.0
            call_parameters(routines.parameters, (arrays, at, lifted, choices, by_rows, unit, by_theta[i]))
            unit[i] = 0.0
        entries = np.flatnonzero(along.indptr[1:] > along.indptr[:-1])
        values = np.empty((entries.size, n))
        for m in range(entries.size):
            values[m] = by_theta[:, entries[m]]
    elif along.indices.size:
        entries, values = call_inputs(routines.inputs, (arrays, at, lifted, choices, along.indptr))
    columns, by_theta = _moved(entries, values, along)
    return out.reshape((3, n, n)), columns, by_theta


@njit(cache=True, error_model="numpy", nogil=True)
def step_matrices(arrays, routines, step, kin, theta, signals, choices, along):
    """Return the transition (2 m n, 2 m n) of a step, its derivatives (2 m n, k) by directions that act, and these.

    With J = dr/dq + c dr/dv + c^2 dr/da, J dq' = (c dr/dv + c^2 dr/da) dq_star + c dr/da dv_star - dr/dtheta, and
    dv' = c (dq' - dq_star); all coordinates are free. Last comes whether J could be solved with.
    """
    by_state, columns, by_theta = state_matrices(arrays, routines, step.t, kin, theta, signals, choices, along)
    by_q, by_v, by_a = by_state[0], by_state[1], by_state[2]
    n, k, c = by_q.shape[0], columns.size, step.c
    linear, b = new_linear(arrays), np.empty((2 * n + k, n))
    for j in range(n):
        for i in range(n):
            rates = c * by_v[j, i] + c * c * by_a[j, i]
            linear.matrix[j * n + i] = by_q[j, i] + rates
            b[j, i], b[n + j, i] = rates, c * by_a[j, i]
    b[2 * n :] = -by_theta
    size = 2 * step.pairs * n
    transition, along_inputs = np.zeros((size, size)), np.zeros((size, k))
    x, largest = np.empty((2 * n + k, n)), factor(linear, routines.blas)
    if largest < 0.0 or not solve_all(linear, largest, b, x, routines.blas):
        return transition, along_inputs, columns, False
    for read in range(step.alpha.size):
        alpha, first = step.alpha[read], 2 * read * n
        for i in range(n):
            for j in range(2 * n):
                transition[i, first + j] = alpha * x[j, i]
                transition[n + i, first + j] = c * alpha * x[j, i]
            transition[n + i, first + i] -= c * alpha
    for i in range(2 * n, size):
        transition[i, i - 2 * n] = 1.0  # the older pairs are those of the state before
    for i in range(n):
        for j in range(k):
            along_inputs[i, j], along_inputs[n + i, j] = x[2 * n + j, i], c * x[2 * n + j, i]
    return transition, along_inputs, columns, True
