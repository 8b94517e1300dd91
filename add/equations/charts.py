"""Changes of chart of rotation vectors: a body that turns beyond pi goes on from the other side.

    phi(w) = w (1 - 2 pi / |w|),   w_dot <- D w_dot,   D = (1 - 2 pi / |w|) I + 2 pi w w^T / |w|^3

exp([phi(w)]x) = exp([w]x), so nothing physical changes. All pairs of a state's history change together, by the same
branch, also where |w| is still below pi: a BDF formula needs one chart. What else a state carries has no rotations in
it, or has them in world axes, and stays.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from add.equations.kinematics import State, StateTangent
from add.kernels.charts import beyond_pi, change_chart, change_chart_pullback
from add.typing import FloatArray, IntArray


def beyond(q: FloatArray, rotations: IntArray) -> IntArray:
    """Return the ``rotations`` (first coordinates of rotation vectors) whose length in ``q`` is above pi."""
    return rotations[beyond_pi(q, rotations)] if rotations.size else rotations


def _derivative(w: FloatArray) -> FloatArray:
    """Return D (3, 3), which is symmetric."""
    t = np.linalg.norm(w)
    return (1.0 - 2.0 * np.pi / t) * np.eye(3) + 2.0 * np.pi / t**3 * np.outer(w, w)


def _second_derivative(w: FloatArray, h: FloatArray) -> FloatArray:
    """Return d(D h)/dw (3, 3), which is symmetric."""
    t = np.linalg.norm(w)
    wh = w @ h
    sides = np.outer(h, w) + np.outer(w, h) + wh * np.eye(3) - 3.0 * wh / t**2 * np.outer(w, w)
    return 2.0 * np.pi / t**3 * sides


def change(state: State, rotations: IntArray) -> State:
    """Return the state in the other chart of ``rotations``."""
    q, v = state.q.copy(), state.v.copy()
    for first in rotations:
        change_chart(first, q, v)
    return replace(state, q=q, v=v)


def pullback(state: State, rotations: IntArray, bar: StateTangent) -> StateTangent:
    """Pull cotangents, arrays (m, n) or (m, n, r) for r of them, back through `change`; ``state`` is the one before."""
    out = replace(bar, q=bar.q.copy(), v=bar.v.copy())
    for first in rotations:
        if bar.q.ndim == 2:
            change_chart_pullback(first, state.q, state.v, out.q, out.v)
            continue
        part = slice(first, first + 3)
        for k in range(bar.q.shape[0]):
            w, w_dot = state.q[k, part], state.v[k, part]
            derivative = _derivative(w)  # symmetric, as the second
            out.q[k, part] = derivative @ bar.q[k, part] + _second_derivative(w, w_dot) @ bar.v[k, part]
            out.v[k, part] = derivative @ bar.v[k, part]
    return out


def pushforward(state: State, rotations: IntArray, dot: StateTangent) -> StateTangent:
    """Push a tangent, arrays (m, n) or (m, n, k) for k directions, forward through `change`."""
    out = replace(dot, q=dot.q.copy(), v=dot.v.copy())
    for first in rotations:
        part = slice(first, first + 3)
        for k in range(dot.q.shape[0]):
            w, w_dot = state.q[k, part], state.v[k, part]
            derivative = _derivative(w)
            out.q[k, part] = derivative @ dot.q[k, part]
            out.v[k, part] = derivative @ dot.v[k, part] + _second_derivative(w, w_dot) @ dot.q[k, part]
    return out
