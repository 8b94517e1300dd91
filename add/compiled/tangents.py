"""Tangents pushed through consecutive steps of a small system, along many directions, in one compiled call."""

from __future__ import annotations

import numpy as np

from add.compiled.dense import factor, solve_all
from add.compiled.linear import new_linear
from add.compiled.matrices import state_matrices
from add.compiled.steps import choices_of
from add.kernels.arena import Signals
from add.kernels.caching import CALLED, njit


@njit(**CALLED)
def _fill_step(linear, by_state, by_theta, places, stars, c, b):
    """Fill the matrix J of a step, and the right sides (k, n) of the tangents of its coordinates.

    J = dr/dq + c dr/dv + c^2 dr/da, b = (c dr/dv + c^2 dr/da) q_star + c dr/da v_star - dr; ``by_state`` is transposed.
    """
    by_q, by_v, by_a = by_state[0], by_state[1], by_state[2]
    n, rates, by_star = by_q.shape[0], np.empty(by_q.shape[0]), np.empty(by_q.shape[0])
    b[:] = 0.0
    for j in range(n):
        for i in range(n):
            by_star[i] = c * by_a[j, i]
            rates[i] = c * (by_v[j, i] + by_star[i])
            linear.matrix[j * n + i] = by_q[j, i] + rates[i]
        for m in range(b.shape[0]):
            q_star, v_star = stars[0, m, j], stars[1, m, j]
            for i in range(n):
                b[m, i] += rates[i] * q_star + by_star[i] * v_star
    for m in range(places.size):
        b[places[m]] -= by_theta[m]


@njit(cache=True, error_model="numpy", nogil=True)
def push_steps(arrays, routines, timing, steps, first, n_steps, signals, theta, along, moved, dots):
    """Push tangents through the steps ``first`` to ``first + n_steps - 1`` of a block, all coordinates free.

    With J dq = (c dr/dv + c^2 dr/da) dq_star + c dr/da dv_star - dr, dv = c (dq - dq_star), star = sum alpha_k of the
    pairs before. ``moved`` (m,) are the directions that have moved the state before, ``dots`` (2, 2, m, n) its tangents
    along them: q and v, each of two pairs, newest first. ``signals`` are those of the block's steps.

    Returns how many steps could be solved with, the directions that have moved anything (k,), those of ``moved`` first,
    and the tangents of q and v after each step (n_steps, k, n).
    """
    n, count = steps.q.shape[1], moved.size
    order, place = np.empty(along.n, dtype=np.int64), np.full(along.n, -1)
    for m in range(count):
        order[m] = moved[m]
        place[moved[m]] = m
    q, v = np.zeros((n_steps, along.n, n)), np.zeros((n_steps, along.n, n))
    old, stars = np.zeros((2, 2, along.n, n)), np.zeros((2, along.n, n))
    old[:, :, :count] = dots
    linear, done = new_linear(arrays), 0
    for k in range(n_steps):
        number = first + k
        row = 0 if timing.first + number == 0 else 1
        c = timing.c[row]
        t = (timing.first + number + 1) * timing.dt
        now = Signals(signals.weights[number], signals.table[number])
        chosen = choices_of(steps, number)
        kin = steps.q[number], steps.v[number], steps.a[number]
        by_state, columns, by_theta = state_matrices(arrays, routines, t, kin, theta, now, chosen, along)
        for column in columns:
            if place[column] < 0:
                place[column], order[count] = count, column
                count += 1
        if count:
            for kind in range(2):
                for m in range(count):
                    for i in range(n):
                        stars[kind, m, i] = (
                            timing.alpha_0[row] * old[kind, 0, m, i] + timing.alpha_1[row] * old[kind, 1, m, i]
                        )
            b, x = np.empty((count, n)), np.empty((count, n))
            _fill_step(linear, by_state, by_theta, place[columns], stars, c, b)
            largest = factor(linear, routines.blas)
            if largest < 0.0 or not solve_all(linear, largest, b, x, routines.blas):
                break
            for m in range(count):
                for i in range(n):
                    q[k, m, i] = x[m, i]
                    v[k, m, i] = c * (x[m, i] - stars[0, m, i])
                    old[0, 1, m, i], old[1, 1, m, i] = old[0, 0, m, i], old[1, 0, m, i]
                    old[0, 0, m, i], old[1, 0, m, i] = q[k, m, i], v[k, m, i]
        done += 1
    return done, order[:count].copy(), q[:done, :count].copy(), v[:done, :count].copy()
