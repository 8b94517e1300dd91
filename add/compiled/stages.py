"""Stages of an explicit Runge-Kutta step, and the way back through them, each in one compiled call."""

from typing import NamedTuple

import numpy as np

from add.compiled.linear import factor_dense, new_linear, solve_dense
from add.compiled.routines import call_jacobian, call_matrices, call_parameters, call_residual
from add.compiled.structure import links_of
from add.compiled.tree_equations import new_lifted
from add.kernels.arena import Instant, Signals
from add.kernels.borrowed import put
from add.kernels.caching import CALLED, njit
from add.typing import FloatArray


class Tableau(NamedTuple):
    """Coefficients of an explicit method of s stages: a (s, s), below the diagonal, b (s,), c (s,)."""

    a: FloatArray
    b: FloatArray
    c: FloatArray


@njit(**CALLED)
def _matrices(arrays, routines, at, lifted, choices, r, over_rows, parts, linear):
    """Fill r and dr/dq, dr/dv, dr/da (3, n n) at a state, and factor the last; return its largest entry, -1 if bad."""
    call_residual(routines.residual, (arrays, at, lifted, True, choices, 0, r))
    call_matrices(routines.matrices, (arrays, at, lifted, choices, over_rows, parts))
    for k in range(linear.matrix.size):
        linear.matrix[k] = parts[2, k]
    return factor_dense(linear, routines.blas)


@njit(**CALLED)
def _over_rows(arrays):
    """Return room for matrices over the rows of X."""
    sizes = links_of(arrays).sizes
    rows = sizes[0] if sizes.size else 0
    return np.empty((3, rows * rows))


@njit(cache=True, error_model="numpy", nogil=True)
def take_stages(arrays, routines, tableau, instant, before, signals, theta, choices):
    """Return q, v and a of the stages (3, s, n) of a step from ``before``, q and v; q and v behind it; success.

    q_i = q + dt sum a_ij v_j, v_i = v + dt sum a_ij a_j, M(q_i) a_i = -r(q_i, v_i, 0). ``instant`` are t and dt,
    ``signals`` those of the stages.
    """
    (t, dt), (q, v), n, s = instant, before, before[0].size, tableau.b.size
    stages, still, r = np.zeros((3, s, n)), np.zeros(n), np.empty(n)
    lifted, linear, mass, x, rest = new_lifted(arrays), new_linear(arrays), np.empty(n * n), np.empty(n), np.empty(n)
    for i in range(s):
        q_i, v_i = stages[0, i], stages[1, i]
        q_i[:], v_i[:] = q, v
        for j in range(i):
            h = dt * tableau.a[i, j]
            if h != 0.0:
                for k in range(n):
                    q_i[k] += h * stages[1, j, k]
                    v_i[k] += h * stages[2, j, k]
        now = Signals(signals.weights[i], signals.table[i])
        at = Instant(t + tableau.c[i] * dt, q_i, v_i, still, theta, now)
        call_residual(routines.residual, (arrays, at, lifted, True, choices, 0, r))
        call_jacobian(routines.jacobian, (arrays, at, lifted, choices, 0.0, 0.0, 1.0, mass))
        put(mass, linear.matrix)
        largest = factor_dense(linear, routines.blas)
        for k in range(n):
            r[k] = -r[k]
        if largest < 0.0 or not solve_dense(linear, largest, False, r, x, rest, routines.blas):
            return stages, stages[0, 0], stages[1, 0], False
        for k in range(n):
            stages[2, i, k] = x[k]
    q_end, v_end, finite = q.copy(), v.copy(), True
    for k in range(n):
        for i in range(s):
            q_end[k] += dt * tableau.b[i] * stages[1, i, k]
            v_end[k] += dt * tableau.b[i] * stages[2, i, k]
        finite = finite and np.isfinite(q_end[k]) and np.isfinite(v_end[k])
    return stages, q_end, v_end, finite


@njit(cache=True, error_model="numpy", nogil=True)
def pull_back_stages(arrays, routines, tableau, instant, stages, signals, theta, choices, bars, theta_bar):
    """Return the cotangents (2, n) of q and v before a step from those behind it, ``bars`` (2, n), and success.

    With those of a stage's q and v, of what later ones make of them, lambda = M^-T a_bar, and all of r moves:
    q_bar_i = -dr/dq^T lambda, v_bar_i -= dr/dv^T lambda, theta_bar -= dr/dtheta^T lambda.
    """
    (t, dt), s, n = instant, tableau.b.size, bars.shape[1]
    of_stages, before = np.zeros((2, s, n)), bars.copy()
    lifted, linear, parts, rest = new_lifted(arrays), new_linear(arrays), np.empty((3, n * n)), np.empty(n)
    over_rows, lam, a_bar, r = _over_rows(arrays), np.empty(n), np.empty(n), np.empty(n)
    for i in range(s - 1, -1, -1):
        for k in range(n):
            a_bar[k] = dt * tableau.b[i] * bars[1, k]
            of_stages[1, i, k] = dt * tableau.b[i] * bars[0, k]
        for j in range(i + 1, s):
            h = dt * tableau.a[j, i]
            if h != 0.0:
                for k in range(n):
                    a_bar[k] += h * of_stages[1, j, k]
                    of_stages[1, i, k] += h * of_stages[0, j, k]
        now = Signals(signals.weights[i], signals.table[i])
        at = Instant(t + tableau.c[i] * dt, stages[0, i], stages[1, i], stages[2, i], theta, now)
        largest = _matrices(arrays, routines, at, lifted, choices, r, over_rows, parts, linear)
        if largest < 0.0 or not solve_dense(linear, largest, True, a_bar, lam, rest, routines.blas):
            return before, False
        for column in range(n):
            by_q, by_v = 0.0, 0.0
            for k in range(n):
                by_q += parts[0, column * n + k] * lam[k]
                by_v += parts[1, column * n + k] * lam[k]
            of_stages[0, i, column] = -by_q
            of_stages[1, i, column] -= by_v
        for k in range(n):
            lam[k] = -lam[k]
            before[0, k] += of_stages[0, i, k]
            before[1, k] += of_stages[1, i, k]
        call_parameters(routines.parameters, (arrays, at, lifted, choices, over_rows, lam, theta_bar))
    return before, True
