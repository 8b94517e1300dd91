"""Predictions of single steps against the recorded states that they should end in.

    phi = 1/N sum_k  w_q |q_k - q^_k|^2 + w_v |v_k - v^_k|^2 + w_a |(v_k - v^_k)/dt|^2

x_k is the end of the step from the recorded x^_(k-1) (see `add.simulation.composed`), so that no error grows from step
to step and no impact is met late. Noise of the recording is in the start of every step, too: the estimate is biased,
where a fit of the whole trajectory is not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from add.equations import charts
from add.equations.kinematics import Columns, Directions, State, StateTangent, StateTangents
from add.objectives.base import LeastSquares
from add.typing import BoolArray, FloatArray, IntArray


@final
@dataclass(frozen=True)
class OneStep(LeastSquares):
    """Mean over the steps k of the squared errors of a prediction.

    Attributes
    ----------
    q, v : (n_steps + 1, n)
        Recorded states at the steps.
    rows : (r,)
        Coordinates that count.
    rotations : (b,)
        First coordinates of all rotation vectors: their ends are compared in one chart.
    by_place, by_speed : (r,)
        Roots of the weights of q and of v, where w_v is w_v + w_a/dt^2.
    counts : (n_steps + 1,) bool
        Which steps count, by the number of the state in which they end.
    dt : float
        Step [s].
    """

    q: FloatArray
    v: FloatArray
    rows: IntArray
    rotations: IntArray
    by_place: FloatArray
    by_speed: FloatArray
    counts: BoolArray
    dt: float

    def within(self, start: float, stop: float, *, last: int | None = None) -> OneStep:
        """Return the mean over the steps that end in [start, stop]."""
        t = self.dt * np.arange(self.counts.size)
        return replace(self, counts=self.counts & (t >= start - 1e-9) & (t <= stop + 1e-9))

    @property
    def looks(self) -> bool:
        """Whether any step counts."""
        return bool(self.counts[1:].any())

    def _scale(self, state: State) -> float:
        """Return the root of 1/N for a step that counts, else zero."""
        if not 0 < state.step < self.counts.size or not self.counts[state.step]:
            return 0.0
        return 1.0 / float(np.sqrt(self.counts[1:].sum()))

    def _target(self, state: State) -> tuple[FloatArray, FloatArray]:
        """Return the recorded state, with rotation vectors in the charts of ``state``."""
        q, v = self.q[state.step], self.v[state.step]
        if not self.rotations.size:
            return q, v
        at = self.rotations[:, None] + np.arange(3)
        far = np.linalg.norm(state.q[0][at] - q[at], axis=1) > np.pi
        if not far.any():
            return q, v
        other = charts.change(State(state.t, state.step, q[None], v[None]), self.rotations[far])
        return other.q[0], other.v[0]

    def step_residuals(self, state: State, theta: FloatArray) -> FloatArray:
        """Return the weighted errors (2 r,) of the step that ends in ``state``."""
        scale = self._scale(state)
        if scale == 0.0:
            return np.zeros(0)
        q, v = self._target(state)
        place, speed = (state.q[0] - q)[self.rows], (state.v[0] - v)[self.rows]
        return scale * np.concatenate([self.by_place * place, self.by_speed * speed])

    def step_pullback(self, state: State, theta: FloatArray, state_bar: StateTangent, theta_bar: FloatArray) -> None:
        """Add its gradient."""
        scale = self._scale(state)
        if scale:
            place, speed = np.split(2.0 * scale * self.step_residuals(state, theta), 2)
            state_bar.q[0, self.rows] += self.by_place * place
            state_bar.v[0, self.rows] += self.by_speed * speed

    def step_residual_tangents(
        self, state: State, theta: FloatArray, tangents: StateTangents, directions: Directions
    ) -> Columns:
        """Return the tangents (2 r, k) of `step_residuals`."""
        scale = self._scale(state)
        if scale == 0.0:
            return Columns(np.zeros(0, dtype=np.int64), np.zeros((0, 0)))
        dot = tangents.dot
        place, speed = self.by_place[:, None] * dot.q[0][self.rows], self.by_speed[:, None] * dot.v[0][self.rows]
        order = np.argsort(tangents.index)
        return Columns(tangents.index[order], scale * np.concatenate([place, speed])[:, order])
