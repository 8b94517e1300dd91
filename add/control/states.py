"""Differences of states as twists, and states moved by twists: what feedback and shooting nodes are written in.

    difference(s, r):  phi = log(R_r^T R_s),   omega_s - omega_r in body axes;   q and v themselves elsewhere

To first order it is T (s - r) with `add.equations.twists.Twists` at r, in whichever charts the two states are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from add.equations.kinematics import State
from add.typing import FloatArray, IntArray


def _quaternions(w: FloatArray) -> FloatArray:
    """Return unit quaternions (..., 4), the scalar first, of rotation vectors (..., 3)."""
    half = 0.5 * np.linalg.norm(w, axis=-1, keepdims=True)
    return np.concatenate([np.cos(half), 0.5 * np.sinc(half / np.pi) * w], axis=-1)


def _vectors(quaternions: FloatArray) -> FloatArray:
    """Return rotation vectors (..., 3), at most pi long."""
    sign = np.where(quaternions[..., :1] < 0.0, -1.0, 1.0)
    scalar, vector = sign * quaternions[..., :1], sign * quaternions[..., 1:]
    length = np.linalg.norm(vector, axis=-1, keepdims=True)
    safe = np.where(length > 1e-12, length, 1.0)
    factor = np.where(length > 1e-12, 2.0 * np.arctan2(length, scalar) / safe, 2.0)
    return np.asarray(factor * vector)


def _product(p: FloatArray, q: FloatArray) -> FloatArray:
    """Return the products of quaternions."""
    scalar = p[..., :1] * q[..., :1] - (p[..., 1:] * q[..., 1:]).sum(axis=-1, keepdims=True)
    vector = p[..., :1] * q[..., 1:] + q[..., :1] * p[..., 1:] + np.cross(p[..., 1:], q[..., 1:])
    return np.concatenate([scalar, vector], axis=-1)


def _right_jacobians(w: FloatArray) -> FloatArray:
    """Return J_r(w) (..., 3, 3) = I - b [w]x + c [w]x^2, b = (1 - cos t)/t^2, c = (t - sin t)/t^3."""
    t = np.linalg.norm(w, axis=-1)[..., None, None]
    small = t < 1e-3
    safe = np.where(small, 1.0, t)
    b = np.where(small, 0.5 - t**2 / 24.0, (1.0 - np.cos(safe)) / safe**2)
    c = np.where(small, 1.0 / 6.0 - t**2 / 120.0, (safe - np.sin(safe)) / safe**3)
    cross = np.zeros((*w.shape, 3))
    cross[..., 0, 1], cross[..., 0, 2], cross[..., 1, 2] = -w[..., 2], w[..., 1], -w[..., 0]
    cross -= np.swapaxes(cross, -1, -2)
    return np.asarray(np.eye(3) - b * cross + c * cross @ cross)


def _rotations(state: State, rotations: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return rotation vectors and their body rates, (m, b, 3) each."""
    index = rotations[:, None] + np.arange(3)
    w, w_dot = state.q[:, index], state.v[:, index]
    return w, np.asarray((_right_jacobians(w) @ w_dot[..., None])[..., 0])


def difference(state: State, reference: State, rotations: IntArray) -> FloatArray:
    """Return the difference (2 m n,) of the pairs of two states, rotations as twists at the reference."""
    dq, dv = state.q - reference.q, state.v - reference.v
    if rotations.size:
        index = rotations[:, None] + np.arange(3)
        (w, rate), (w_r, rate_r) = _rotations(state, rotations), _rotations(reference, rotations)
        back = _quaternions(w_r) * np.array([1.0, -1.0, -1.0, -1.0])
        dq[:, index], dv[:, index] = _vectors(_product(back, _quaternions(w))), rate - rate_r
    return np.stack([dq, dv], axis=1).ravel()


def moved(reference: State, change: FloatArray, rotations: IntArray) -> State:
    """Return the state whose `difference` from the reference is ``change`` (2 m n,); all pairs in one chart."""
    m, n = reference.q.shape
    pairs = change.reshape(m, 2, n)
    q, v = reference.q + pairs[:, 0], reference.v + pairs[:, 1]
    if rotations.size:
        index = rotations[:, None] + np.arange(3)
        w_r, rate_r = _rotations(reference, rotations)
        w = _vectors(_product(_quaternions(w_r), _quaternions(pairs[:, 0][:, index])))
        for k in range(1, m):  # a formula needs all pairs in the chart of the newest
            length = np.linalg.norm(w[k], axis=-1, keepdims=True)
            other = w[k] * (1.0 - 2.0 * np.pi / np.where(length > 1e-9, length, 1.0))
            nearer = np.linalg.norm(other - w[0], axis=-1) < np.linalg.norm(w[k] - w[0], axis=-1)
            w[k] = np.where((nearer & (length[:, 0] > 1e-9))[:, None], other, w[k])
        rates = (rate_r + pairs[:, 1][:, index])[..., None]
        q[:, index], v[:, index] = w, np.linalg.solve(_right_jacobians(w), rates)[..., 0]
    return replace(reference, q=q, v=v)
