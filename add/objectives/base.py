"""Objectives as the sweeps see them: sums over states, sums of squares among them, and their weighted sums."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.sparse as sp

from add.equations.kinematics import State, StateTangent
from add.equations.tangents import Columns, Directions, StateTangents, StretchTangents
from add.simulation.run import Trajectory
from add.typing import FloatArray, IntArray


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

    def within(self, start: float, stop: float, *, last: int | None = None) -> Objective:
        """Return the part whose times lie in [start, stop] [s], of a run that ends with step ``last``.

        The objective itself where nothing in it has a time.
        """
        return self

    def steps(self, theta: FloatArray) -> IntArray | None:
        """Return the numbers of the states that `step_value` may see anything in, in any order; None: all.

        Others need not be asked: a run of thousands of steps with a hundred frames does not walk through Python.
        """
        return None

    @property
    def looks(self) -> bool:
        """Whether any state of a run counts; not those of functions of theta alone."""
        return True

    def as_squares(self) -> list[tuple[float, LeastSquares]]:
        """Return the objective as weighted sums of squares: what Gauss-Newton asks for.

        Raises
        ------
        TypeError
            If it is none.
        """
        raise TypeError(f"{type(self).__name__} is not a sum of squares")


class LeastSquares(Objective):
    """phi = sum over steps |rho_k|^2 + |rho(theta)|^2.

    A step's residuals see what `Objective.step_value` sees, the state after the step and theta.
    """

    def as_squares(self) -> list[tuple[float, LeastSquares]]:
        """Return the objective itself, with weight one."""
        return [(1.0, self)]

    @abstractmethod
    def step_residuals(self, state: State, theta: FloatArray) -> FloatArray:
        """Return rho_k (r,) of the interval that ends at ``state``."""

    @abstractmethod
    def step_residual_tangents(
        self, state: State, theta: FloatArray, tangents: StateTangents, directions: Directions
    ) -> Columns:
        """Return the tangents (r, k) of `step_residuals`, by the state and by theta itself."""

    def run_residuals(self, run: Trajectory, theta: FloatArray) -> FloatArray:
        """Return the residuals of all states of a run, one behind the other."""
        return np.concatenate([np.zeros(0), *(self.step_residuals(state, theta) for state in run.states())])

    def stretch_residual_tangents(
        self, run: Trajectory, first: int, theta: FloatArray, tangents: StretchTangents, directions: Directions
    ) -> Columns:
        """Return the tangents of the residuals of consecutive states of a run, number ``first`` the first of them."""
        found = [
            self.step_residual_tangents(run.state(first + k), theta, dot, directions)
            for k, dot in enumerate(tangents.states())
        ]
        index = np.unique(np.concatenate([columns.index for columns in found]))
        values = np.zeros((sum(columns.values.shape[0] for columns in found), index.size))
        row = 0
        for columns in found:
            stop = row + columns.values.shape[0]
            values[row:stop, np.searchsorted(index, columns.index)] = columns.values
            row = stop
        return Columns(index, values)

    @property
    def sample_weight(self) -> float:
        """Sum of the weights of the samples, three residuals each; zero where there are no such."""
        return 0.0

    def parameter_residuals(self, theta: FloatArray) -> FloatArray:
        """Return rho(theta) (r,)."""
        return np.zeros(0)

    def parameter_residual_jacobian(self, theta: FloatArray) -> sp.csr_array:
        """Return its derivative (r, n_theta)."""
        return sp.csr_array((0, theta.size))


@final
@dataclass(frozen=True)
class WeightedSum(Objective):
    """sum_i w_i phi_i."""

    weights: tuple[float, ...]
    objectives: tuple[Objective, ...]

    def for_run(self) -> WeightedSum:
        """Return the sum of the parts for one run."""
        return WeightedSum(self.weights, tuple(part.for_run() for part in self.objectives))

    def within(self, start: float, stop: float, *, last: int | None = None) -> WeightedSum:
        """Return the sum of what of the parts lies in a window."""
        return WeightedSum(self.weights, tuple(part.within(start, stop, last=last) for part in self.objectives))

    def steps(self, theta: FloatArray) -> IntArray | None:
        """Return the states of all parts."""
        found = [part.steps(theta) for part in self.objectives]
        known = [steps for steps in found if steps is not None]
        return np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *known])) if len(known) == len(found) else None

    @property
    def looks(self) -> bool:
        """Whether any part does."""
        return any(part.looks for part in self.objectives)

    def as_squares(self) -> list[tuple[float, LeastSquares]]:
        """Return the squares of all parts."""
        pairs = zip(self.weights, self.objectives, strict=True)
        return [(w * inner, part) for w, o in pairs for inner, part in o.as_squares()]

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
