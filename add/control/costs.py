"""States as controllers see them, and what they cost.

How far one state is from another is measured in body axes where there are rotations:

    difference(s, r):  phi = log(R_r^T R_s),   omega_s - omega_r in body axes;   q and v themselves elsewhere

To first order it is T (s - r) with `add.equations.charts.Twists` at r, in whichever charts the two states are.
"""

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from add.equations.kinematics import Columns, Directions, State, StateTangent, StateTangents
from add.errors import InputError
from add.objectives.base import LeastSquares
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class CoordinateCost(LeastSquares):
    """phi = sum over steps of sum_i w_q,i (q_i - q*_i)^2 + w_v,i (v_i - v*_i)^2, from ``first`` to ``last``.

    For turning bodies take markers (points of an objective) instead: rotation vectors change their charts, and are
    refused by `ControlProblem`.

    Attributes
    ----------
    index : (k,) coordinates
    q, v : (k,) targets [m], [m/s]
    weight_q, weight_v : (k,) at least 0
    first, last : int
        The states that count, both included; equal for a final cost.
    """

    index: IntArray
    q: FloatArray
    v: FloatArray
    weight_q: FloatArray
    weight_v: FloatArray
    first: int
    last: int

    def __post_init__(self) -> None:
        sizes = {np.asarray(part).shape for part in (self.index, self.q, self.v, self.weight_q, self.weight_v)}
        if sizes != {(np.size(self.index),)} or np.min(self.weight_q) < 0.0 or np.min(self.weight_v) < 0.0:
            raise InputError(
                "a cost of coordinates needs a target and two weights of at least 0 for each",
                found=f"shapes {sorted(sizes)}", expected=f"({np.size(self.index)},) each",
            )  # fmt: skip

    def steps(self, theta: FloatArray) -> IntArray:
        """Return the states that count."""
        return np.arange(self.first, self.last + 1)

    @property
    def _roots(self) -> FloatArray:
        return np.sqrt(np.concatenate([self.weight_q, self.weight_v]))

    def _counts(self, state: State) -> bool:
        return self.first <= state.step <= self.last

    def step_residuals(self, state: State, theta: FloatArray) -> FloatArray:
        """Return sqrt(w) (q - q*), then those of the velocities."""
        if not self._counts(state):
            return np.zeros(0)
        return self._roots * np.concatenate([state.q[0, self.index] - self.q, state.v[0, self.index] - self.v])

    def step_residual_tangents(
        self, state: State, theta: FloatArray, tangents: StateTangents, directions: Directions
    ) -> Columns:
        """Return their tangents."""
        if not self._counts(state):
            return Columns(tangents.index, np.zeros((0, tangents.index.size)))
        rows = np.concatenate([tangents.dot.q[0, self.index], tangents.dot.v[0, self.index]])
        order = np.argsort(tangents.index)
        return Columns(tangents.index[order], self._roots[:, None] * rows[:, order])

    def step_value(self, state: State, theta: FloatArray) -> float:
        """Return the squares of one state."""
        rho = self.step_residuals(state, theta)
        return float(rho @ rho)

    def step_pullback(self, state: State, theta: FloatArray, state_bar: StateTangent, theta_bar: FloatArray) -> None:
        """Add 2 w (q - q*) and 2 w (v - v*)."""
        if self._counts(state):
            bars = 2.0 * self._roots * self.step_residuals(state, theta)
            k = self.index.size
            state_bar.q[0, self.index] += bars[:k]
            state_bar.v[0, self.index] += bars[k:]


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
