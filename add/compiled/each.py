"""One step of each of many states of a small system, and the way back through it, in one compiled call.

Members do not meet: each one is a block of one step of `add.compiled.steps`, so that its numbers are those of a step
taken alone, to the bit.
"""

from __future__ import annotations

import numpy as np

from add.compiled.steps import Steps, Timing, choices_of, pull_back_steps, take_steps
from add.compiled.walk import with_rows
from add.kernels.arena import Signals
from add.kernels.caching import njit


@njit(cache=True, error_model="numpy", nogil=True)
def take_each(arrays, routines, timing, firsts, criteria, before, starts, signals, thetas, replay, given):
    """Take one step of each of b states.

    As `add.compiled.steps.take_steps`, where ``firsts`` (b,) are the numbers of the states before, ``before`` q and v
    (b, 2, n), ``starts`` (b, n_p), ``signals`` a row a member and ``thetas`` (b, n_theta); ``replay`` is false.

    Returns which members (b,) were found by the normal path, and the fields of `Steps` with a row a member.
    """
    q_before, v_before = before
    b, n = q_before.shape[0], q_before.shape[2]
    n_choices = given[1].ends.size
    found = np.zeros(b, dtype=np.bool_)
    q, v, a = np.zeros((b, n)), np.zeros((b, n)), np.zeros((b, n))
    states_q, states_v = np.zeros((b, n)), np.zeros((b, n))
    counts, tolerance = np.zeros((b, 5), dtype=np.int64), np.zeros(b)
    merits = np.zeros((b, criteria.max_iterations + 1))
    rows, n_rows = np.empty((4 * b, 3), dtype=np.int64), 0
    ends = np.zeros((b, n_choices), dtype=np.int64)
    turned = np.zeros((b, 0), dtype=np.bool_)
    for k in range(b):
        own = Timing(timing.dt, firsts[k], timing.c, timing.alpha_0, timing.alpha_1)
        now = Signals(signals.weights[k : k + 1], signals.table[k : k + 1])
        (
            done, q_k, v_k, a_k, states_q_k, states_v_k, turned_k, counts_k, tolerance_k, merits_k, rows_k, ends_k,
        ) = take_steps(
            arrays, routines, own, criteria, (q_before[k], v_before[k]), 1, starts[k], now, thetas[k], replay, given
        )  # fmt: skip
        if k == 0:
            turned = np.zeros((b, turned_k.shape[1]), dtype=np.bool_)
        ends[k] = n_rows
        if done == 0:
            continue
        found[k] = True
        q[k], v[k], a[k], states_q[k], states_v[k] = q_k[0], v_k[0], a_k[0], states_q_k[0], states_v_k[0]
        turned[k], counts[k], tolerance[k] = turned_k[0], counts_k[0], tolerance_k[0]
        # Beyond the last iterate a row holds whatever the memory held.
        merits[k, : counts_k[0, 1] + 1] = merits_k[0, : counts_k[0, 1] + 1]
        rows = with_rows(rows, n_rows, rows_k)
        for i in range(n_choices):
            ends[k, i] += ends_k[0, i]
        n_rows += rows_k.shape[0]
    return (
        found, q, v, a, states_q, states_v, turned, counts, tolerance, merits, rows[:n_rows].copy(), ends,
    )  # fmt: skip


@njit(cache=True, error_model="numpy", nogil=True)
def pull_back_each(arrays, routines, timing, firsts, steps, before, signals, thetas, bars, by_positions, theta_bars):
    """Pull the cotangents of the states after the steps of `take_each` back.

    ``before`` are q and v (b, n) of the newest pairs before, ``bars`` those of q and v (b, 2, 2, n): of each member,
    row 1 the cotangent of the pairs after the step, row 0 takes that of the pairs before. ``by_positions`` (b, n) and
    ``theta_bars`` (b, n_theta) as in `add.compiled.steps.pull_back_steps`.

    Returns which members (b,) had a matrix that could be solved with.
    """
    (q_before, v_before), (q_bars, v_bars) = before, bars
    b = thetas.shape[0]
    solved = np.zeros(b, dtype=np.bool_)
    for k in range(b):
        own = Timing(timing.dt, firsts[k], timing.c, timing.alpha_0, timing.alpha_1)
        now = Signals(signals.weights[k : k + 1], signals.table[k : k + 1])
        chosen, part = choices_of(steps, k), slice(k, k + 1)
        step = Steps(
            steps.q[part], steps.v[part], steps.a[part], steps.states_q[part], steps.states_v[part],
            steps.turned[part], steps.counts[part], steps.tolerance[part], steps.merits[part],
            chosen.rows, chosen.ends.reshape((1, chosen.ends.size)),
        )  # fmt: skip
        left = pull_back_steps(
            arrays, routines, own, step, 1, (q_before[k], v_before[k]), now, thetas[k], (q_bars[k], v_bars[k]),
            by_positions[k], theta_bars[k],
        )  # fmt: skip
        solved[k] = left == 0
    return solved
