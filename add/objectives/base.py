"""The contract between an objective and the sweeps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

import numpy as np

from add.equations.kinematics import State, StateTangent
from add.typing import FloatArray


class Objective(ABC):
    """A sum over steps of functions of the state after the step, plus a function of theta.

    A state holds the last two pairs (q, v), so a term may fall between two steps. It never sees the whole trajectory,
    which is what lets stored and checkpointed runs share one code. One that looks back at an earlier state remembers
    it for the time of a run: whoever walks through a run takes the objective from `for_run`, asks `step_value` (or
    residuals) of every state from the first on, and only then `step_pullback`, from the last state to the first.
    """

    def for_run(self) -> Objective:
        """Return the objective with room for what one run makes it remember; itself if it remembers nothing."""
        return self

    @abstractmethod
    def step_value(self, state: State, theta: FloatArray) -> float:
        """Return the contribution of the interval that ends at ``state.t``; state number 0 is the start."""

    @abstractmethod
    def step_pullback(self, state: State, theta: FloatArray, state_bar: StateTangent, theta_bar: FloatArray) -> None:
        """Add the gradient of `step_value` to ``state_bar`` and ``theta_bar``."""

    def parameter_value(self, theta: FloatArray) -> float:
        """Return the part that depends on theta alone."""
        return 0.0

    def parameter_gradient(self, theta: FloatArray, theta_bar: FloatArray) -> None:
        """Add its gradient to ``theta_bar``."""


@final
@dataclass(frozen=True)
class WeightedSum(Objective):
    """sum_i w_i phi_i."""

    weights: tuple[float, ...]
    objectives: tuple[Objective, ...]

    def for_run(self) -> WeightedSum:
        """Return the sum of the parts for one run."""
        return WeightedSum(self.weights, tuple(part.for_run() for part in self.objectives))

    def step_value(self, state: State, theta: FloatArray) -> float:
        """Return the weighted sum."""
        pairs = zip(self.weights, self.objectives, strict=True)
        return sum(w * o.step_value(state, theta) for w, o in pairs)

    def step_pullback(self, state: State, theta: FloatArray, state_bar: StateTangent, theta_bar: FloatArray) -> None:
        """Add the weighted gradients."""
        for w, o in zip(self.weights, self.objectives, strict=True):
            q, v = np.zeros_like(state_bar.q), np.zeros_like(state_bar.v)
            part, theta_part = StateTangent(q, v), np.zeros_like(theta_bar)
            o.step_pullback(state, theta, part, theta_part)
            state_bar.q += w * q
            state_bar.v += w * v
            theta_bar += w * theta_part

    def parameter_value(self, theta: FloatArray) -> float:
        """Return the weighted sum."""
        return sum(w * o.parameter_value(theta) for w, o in zip(self.weights, self.objectives, strict=True))

    def parameter_gradient(self, theta: FloatArray, theta_bar: FloatArray) -> None:
        """Add the weighted gradients."""
        for w, o in zip(self.weights, self.objectives, strict=True):
            part = np.zeros_like(theta_bar)
            o.parameter_gradient(theta, part)
            theta_bar += w * part


def total(objective: Objective, states: Iterable[State], theta: FloatArray) -> float:
    """Return the objective of a stored run."""
    objective = objective.for_run()
    return objective.parameter_value(theta) + sum(objective.step_value(state, theta) for state in states)
