"""Running and final costs of coordinates and velocities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from add.equations.kinematics import State, StateTangent
from add.equations.tangents import Columns, Directions, StateTangents
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
