"""One step of a small system: Newton's method as in `add.solve.newton`, without a return to Python.

Only the normal path is here: the first guess, undamped iterations, the line search. Whatever asks for more is left to
the terms and their fallbacks, which begin the step anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from add.compiled.arrays import Signals, unpacked
from add.compiled.dense import Lapack, factor, new_dense, solve, take_block
from add.compiled.families import Choices, Instant, jacobian, move_prescribed, residual
from add.kernels.caching import njit
from add.typing import FloatArray, IntArray

#: As in `add.solve.newton`, where the reasons stand.
MAX_HALVINGS = 14
SUFFICIENT_DECREASE = 1e-4
BLOCKED = 1e-9
NATURAL_AFTER = 2
ROUND_OFF = 64.0
EPS = float(np.finfo(float).eps)

#: How an iteration ended.
CONVERGED, AT_ROUND_OFF, GIVEN_UP = range(3)

_JIT = {"cache": True, "error_model": "numpy"}


class Formula(NamedTuple):
    """The step: time t [s] and step dt [s], c = 1/(beta dt), the history coefficients."""

    t: float
    dt: float
    c: float
    alpha_0: float
    alpha_1: float


class Criteria(NamedTuple):
    """When to stop; see `add.solve.step_equations.NewtonOptions`."""

    atol: float
    rtol: float
    reuse: float
    norm: int
    max_iterations: int


class Iterate(NamedTuple):
    """Room for an iterate."""

    u: FloatArray
    q: FloatArray
    v: FloatArray
    a: FloatArray
    r: FloatArray
    codes: IntArray


@njit(**_JIT)
def _new_iterate(n, n_codes):
    return Iterate(
        np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.zeros(n_codes, dtype=np.int8)
    )


@njit(**_JIT)
def _free_norm(r, free, order):
    """Return the norm of r over the free coordinates, infinite where it is not finite."""
    total = 0.0
    for i in free:
        total += r[i] * r[i] if order == 2 else abs(r[i])
    total = np.sqrt(total) if order == 2 else total
    return total if np.isfinite(total) else np.inf


@njit(**_JIT)
def _evaluate(families, formula, q_star, v_star, signals, theta, replay, given, norm, measured, point):
    """Fill an iterate at its u; return its merit, its choices, and the norm of the largest force family."""
    u, q, v, a, r, codes = point
    for i in range(u.size):
        v[i] = formula.c * u[i]
        a[i] = formula.c * (v[i] - v_star[i])
        q[i] = q_star[i] + u[i]
    if replay:
        codes[:] = given.codes
    at = Instant(formula.t, q, v, a, theta, signals)
    chosen, scale = residual(families, at, replay, Choices(given.bodies, given.nodes, codes), norm * measured, r)
    return _free_norm(r, families.layout.free, norm), chosen, scale


@njit(**_JIT)
def _weighted_size(data, n, free, x, order):
    """Return the norm of |A| |x| over the free coordinates, A (n n,) by columns."""
    out = np.zeros(n)
    for c in free:
        size = abs(x[c])
        for r in range(n):
            out[r] += abs(data[c * n + r]) * size
    return _free_norm(out, free, order)


@njit(**_JIT)
def _at_round_off(families, at, chosen, u, c, merit, scale, order, data):
    """Whether the residual is as small as rounding allows; overwrites ``data``."""
    free, n = families.layout.free, u.size
    jacobian(families, at, chosen, 1.0, c, c * c, data)
    scale += _weighted_size(data, n, free, u, order)
    jacobian(families, at, chosen, 1.0, 0.0, 0.0, data)
    scale += _weighted_size(data, n, free, at.q, order)
    return merit <= ROUND_OFF * EPS * scale


@njit(**_JIT)
def _take_trial(trial, point, step, length, free):
    """Fill u of a trial at a length along a step."""
    trial.u[:] = point.u
    for k in range(free.size):
        trial.u[free[k]] += length * step[k]


@njit(cache=True, error_model="numpy", nogil=True)
def newton_step(
    ints, floats, places, lapack, formula, criteria, q_before, v_before, start, weights, windows, theta, replay, given
):
    """Take one step from the history q_before, v_before (2, n).

    ``start`` (n_p,) are the prescribed coordinates without their moves, ``weights`` and ``windows`` those of `Signals`.
    ``given``: u to begin with (n,), unused unless ``replay``, and the choices of a replay.

    Returns how it ended; the factorisations, the worst coordinate, the tolerance; merits of all iterates; q, v, a; the choices; which rotation vectors are longer than pi.
    """
    families = unpacked(ints, floats, places)
    layout = families.layout
    free, n, n_free, norm = layout.free, layout.size[0], layout.free.size, criteria.norm
    signals = Signals(weights, windows)
    u_given, chosen = given
    c = formula.c
    q_star = formula.alpha_0 * q_before[0] + formula.alpha_1 * q_before[1]
    v_star = formula.alpha_0 * v_before[0] + formula.alpha_1 * v_before[1]
    n_codes = chosen.codes.size
    point, trial = _new_iterate(n, n_codes), _new_iterate(n, n_codes)
    for i in range(n):
        if replay:
            point.u[i] = u_given[i]
        else:
            point.u[i] = v_star[i] / c + (v_before[0, i] - v_before[1, i]) / formula.dt / (c * c)
    if layout.prescribed.size:
        at = Instant(formula.t, point.q, point.v, point.a, theta, signals)
        move_prescribed(families.loads, layout, at, start, point.q)
        for i in layout.prescribed:
            point.u[i] = point.q[i] - q_star[i]

    merit, chosen, scale = _evaluate(
        families, formula, q_star, v_star, signals, theta, replay, chosen, norm, True, point
    )
    history = np.empty(criteria.max_iterations + 1)
    history[0] = merit
    n_history, factorizations, status, tolerance = 1, 0, GIVEN_UP, criteria.atol
    data, dense = np.empty(n * n), new_dense(n_free)
    step, rest, b = np.empty(n_free), np.empty(n_free), np.empty(n_free)
    residuals, lengths, merits = np.empty((NATURAL_AFTER + 1, n)), np.empty(NATURAL_AFTER + 1), np.empty(NATURAL_AFTER + 1)
    largest, reuse = 0.0, False
    if np.isfinite(merit):
        tolerance += criteria.rtol * scale
        for iteration in range(criteria.max_iterations + 1):
            at = Instant(formula.t, point.q, point.v, point.a, theta, signals)
            if merit <= tolerance:
                status = CONVERGED
                break
            stalled = n_history > 3 and history[n_history - 1] > 0.7 * history[n_history - 4]
            if stalled and _at_round_off(families, at, chosen, point.u, c, merit, scale, norm, data):
                status = AT_ROUND_OFF
                break
            if iteration == criteria.max_iterations:
                break
            if not reuse:
                jacobian(families, at, chosen, 1.0, c, c * c, data)
                take_block(data, n, free, dense.matrix)
                largest = factor(dense, lapack)
                if largest < 0.0:
                    break
                factorizations += 1
            for k in range(n_free):
                b[k] = -point.r[free[k]]
            if not solve(dense, largest, False, b, step, rest, lapack):
                break
            length, found, size = 1.0, False, 0.0
            for k in range(n_free):
                size += step[k] * step[k]
            size = np.sqrt(size)
            trial_merit, trial_chosen = merit, chosen
            for halving in range(MAX_HALVINGS):
                if length <= BLOCKED:
                    break
                _take_trial(trial, point, step, length, free)
                trial_merit, trial_chosen, _ = _evaluate(
                    families, formula, q_star, v_star, signals, theta, replay, chosen, norm, False, trial
                )
                if trial_merit <= (1.0 - SUFFICIENT_DECREASE * length) * merit:
                    found = True
                    break
                if halving <= NATURAL_AFTER:
                    residuals[halving], lengths[halving], merits[halving] = trial.r, length, trial_merit
                if halving == NATURAL_AFTER:
                    natural = _natural(dense, largest, residuals, lengths, merits, size, free, b, rest, lapack)
                    if natural == -2:
                        break
                    if natural >= 0:
                        _take_trial(trial, point, step, lengths[natural], free)
                        trial_merit, trial_chosen, _ = _evaluate(
                            families, formula, q_star, v_star, signals, theta, replay, chosen, norm, False, trial
                        )
                        found = True
                        break
                length *= 0.5
            if reuse and (not found or trial_merit > 0.5 * merit):
                reuse = False
                continue
            if not found:
                if _at_round_off(families, at, chosen, point.u, c, merit, scale, norm, data):
                    status = AT_ROUND_OFF
                break
            reuse = trial_merit < criteria.reuse * merit
            point, trial = trial, point
            merit, chosen = trial_merit, trial_chosen
            history[n_history] = merit
            n_history += 1
    worst, most = 0, -1.0
    for k in range(n_free):
        x = abs(point.r[free[k]])
        if x > most:
            worst, most = free[k], x
    turned = np.zeros(layout.rotations.size, dtype=np.bool_)
    for k in range(layout.rotations.size):
        i = layout.rotations[k]
        q = point.q
        turned[k] = q[i] * q[i] + q[i + 1] * q[i + 1] + q[i + 2] * q[i + 2] > np.pi * np.pi
    return (
        status, factorizations, worst, tolerance, history[:n_history], point.q, point.v, point.a, chosen,
        turned.any(),
    )  # fmt: skip


@njit(**_JIT)
def _natural(dense, largest, residuals, lengths, merits, size, free, b, rest, lapack):
    """Return the first of the trials that passes the natural monotonicity test, -1 for none, -2 if a solve is noise."""
    x = np.empty(free.size)
    for k in range(lengths.size):
        if not np.isfinite(merits[k]):
            continue
        for i in range(free.size):
            b[i] = -residuals[k, free[i]]
        if not solve(dense, largest, False, b, x, rest, lapack):
            return -2
        total = 0.0
        for i in range(free.size):
            total += x[i] * x[i]
        if np.sqrt(total) <= (1.0 - 0.25 * lengths[k]) * size:
            return k
    return -1
