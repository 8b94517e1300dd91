"""Derivatives of one step as operators for big systems: products with vectors, also with the transposed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from add.equations.charts import Chart, Twists
from add.equations.kinematics import Directions, StateTangent, StateTangents
from add.simulation.step_jacobians import Step, StepDerivatives
from add.simulation.stepper import Record, TakenStep
from add.typing import FloatArray


@final
class StepOperator(LinearOperator):
    """A part of a step's derivative, known by its products; see `scipy.sparse.linalg.LinearOperator`."""

    def __init__(self, step: "_LinearStep", rows: slice, columns: slice) -> None:
        shape = len(range(*rows.indices(step.size))), len(range(*columns.indices(step.width)))
        super().__init__(np.dtype(float), shape)  # type: ignore[call-arg]
        self._step, self._rows, self._columns = step, rows, columns

    def _matvec(self, x: Any) -> Any:
        return self._matmat(np.reshape(x, (-1, 1)))[:, 0]

    def _matmat(self, X: Any) -> Any:
        whole = np.zeros((self._step.width, X.shape[1]))
        whole[self._columns] = X
        return self._step.push(whole)[self._rows]

    def _rmatvec(self, x: Any) -> Any:
        whole = np.zeros(self._step.size)
        whole[self._rows] = np.reshape(x, -1)
        return self._step.pull(whole)[self._columns]


@final
@dataclass(frozen=True)
class InputOperator:
    """The derivative of the state after a step by a block of theta, or along directions.

    Attributes
    ----------
    q, v : StepOperator (n, k)
        Of the coordinates and velocities after the step, by all k numbers.
    """

    q: StepOperator
    v: StepOperator


@final
@dataclass(frozen=True)
class StepOperators:
    """The derivatives of one step as operators; the factors behind them hold until the next step is asked for.

    Attributes
    ----------
    transition : StepOperator (2 m n, 2 m n)
        See `StepJacobians.transition`.
    q_q, q_v, v_q, v_v : a StepOperator (n, n) for every pair that the step reads
    controls, parameters : name -> InputOperator
    """

    transition: StepOperator
    q_q: tuple[StepOperator, ...]
    q_v: tuple[StepOperator, ...]
    v_q: tuple[StepOperator, ...]
    v_v: tuple[StepOperator, ...]
    controls: Mapping[str, InputOperator] = field(default_factory=dict)
    parameters: Mapping[str, InputOperator] = field(default_factory=dict)


@final
class _LinearStep:
    """A step's derivative by all pairs of the state before it and, behind them, by the inputs, both ways."""

    def __init__(self, derivatives: StepDerivatives, step: Step | Record) -> None:
        self.derivatives, self.inputs = derivatives, derivatives.directions(0).matrix
        record = step.record if isinstance(step, Step) else step
        self.step = TakenStep(derivatives.assembler, record, derivatives.theta, derivatives.linearise(record))
        self.n, self.m = derivatives.assembler.system.n, derivatives.stepper.n_history
        self.size = 2 * self.m * self.n
        self.width = self.size + self.inputs.shape[1]
        twist = derivatives.chart is Chart.TWIST and derivatives.rotations.size
        states = derivatives.around(step) if twist else ()
        self.twists = tuple(Twists.at(state, derivatives.rotations) for state in states)

    def push(self, whole: FloatArray) -> FloatArray:
        """Return the tangents (2 m n, k) after the step, along those before it and of the inputs (width, k)."""
        (x, inputs), k = np.split(whole, [self.size]), whole.shape[1]
        before = StateTangent.of_flat(self.twists[1].inverse(x) if self.twists else x, self.m)
        directions = Directions(sp.csr_array(self.inputs @ sp.csr_array(inputs)))
        pushed = self.derivatives.stepper.pushforward(self.step, StateTangents(np.arange(k), before), directions)
        return self.twists[0].apply(pushed.dot.flat()) if self.twists else pushed.dot.flat()

    def pull(self, bar: FloatArray) -> FloatArray:
        """Return the cotangents (width,) of the pairs before the step and of the inputs."""
        columns, theta_bar = bar[:, None], np.zeros_like(self.derivatives.theta)
        after = StateTangent.of_flat((self.twists[0].transposed(columns) if self.twists else columns)[:, 0], self.m)
        columns = self.derivatives.stepper.pullback(self.step, after, theta_bar).flat()[:, None]
        before = (self.twists[1].inverse_transposed(columns) if self.twists else columns)[:, 0]
        return np.concatenate([before, self.inputs.T @ theta_bar])


def step_operators(derivatives: StepDerivatives, step: Step | Record) -> StepOperators:
    """Return the derivatives of a step as operators.

    Raises
    ------
    InputError
        If twists are asked for of a record alone.
    SolverError
        If the matrix of the step is singular.
    """
    linear = _LinearStep(derivatives, step)
    n, everything = linear.n, slice(None)

    def part(row: int, first: int, count: int) -> StepOperator:
        return StepOperator(linear, slice(row * n, (row + 1) * n), slice(first, first + count))

    def blocks(row: int, column: int) -> tuple[StepOperator, ...]:
        return tuple(part(row, (2 * k + column) * n, n) for k in range(len(linear.step.record.alpha)))

    first, inputs = linear.size, []
    for directions in (*derivatives.controls.values(), *derivatives.parameters.values()):
        inputs.append(InputOperator(part(0, first, directions.n), part(1, first, directions.n)))
        first += directions.n
    count = len(derivatives.controls)
    return StepOperators(
        StepOperator(linear, everything, slice(linear.size)),
        blocks(0, 0), blocks(0, 1), blocks(1, 0), blocks(1, 1),
        dict(zip(derivatives.controls, inputs[:count], strict=True)),
        dict(zip(derivatives.parameters, inputs[count:], strict=True)),
    )  # fmt: skip
