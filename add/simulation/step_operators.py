"""Derivatives of one step as operators for big systems: products with vectors, also with the transposed.

Many cotangents pulled back at once are rows of derivatives of a run, a few or hundreds (`pull_rows`). With J = dr/dq +
c dr/dv + c^2 dr/da and one column of bars a row, J^T lambda = q_bar + c v_bar for all of them with one factorisation;
see `add.simulation.bdf.BDF` for what follows of lambda.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from add.equations import charts
from add.equations.charts import Chart, Twists
from add.equations.kinematics import Columns, Directions, StateTangent, StateTangents, Weights
from add.linalg import DenseLU, LinearSolve
from add.simulation.derivative import linearise, named_instant
from add.simulation.step_jacobians import Step, StepDerivatives
from add.simulation.stepper import Record, TakenStep
from add.typing import FloatArray


@final
class StepOperator(LinearOperator):
    """A matrix known by its products; see `scipy.sparse.linalg.LinearOperator`."""

    def __init__(
        self,
        shape: tuple[int, int],
        forward: Callable[[FloatArray], FloatArray],
        backward: Callable[[FloatArray], FloatArray],
    ) -> None:
        super().__init__(np.dtype(float), shape)  # type: ignore[call-arg]
        self._forward, self._backward = forward, backward

    def _matvec(self, x: Any) -> Any:
        return self._forward(np.reshape(x, (-1, 1)))[:, 0]

    def _matmat(self, X: Any) -> Any:
        return self._forward(np.asarray(X, dtype=float))

    def _rmatvec(self, x: Any) -> Any:
        return self._backward(np.reshape(x, -1))


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
    """A step's derivative by all pairs of the state before it and by theta, both ways."""

    def __init__(self, derivatives: StepDerivatives, step: Step | Record) -> None:
        self.derivatives = derivatives
        record = step.record if isinstance(step, Step) else step
        self.step = TakenStep(derivatives.assembler, record, derivatives.theta, derivatives.linearise(record))
        self.n, self.m = derivatives.assembler.system.n, derivatives.stepper.n_history
        self.size = 2 * self.m * self.n
        twist = derivatives.chart is Chart.TWIST and derivatives.rotations.size
        states = derivatives.around(step) if twist else ()
        self.twists = tuple(Twists.at(state, derivatives.rotations) for state in states)

    def push(self, x: FloatArray, directions: sp.csr_array) -> FloatArray:
        """Return the tangents (2 m n, k) after the step, along those before it, x (2 m n, k), and of theta."""
        k, stepper = x.shape[1], self.derivatives.stepper
        pairs = (self.twists[1].inverse(x) if self.twists else x).reshape(self.m, 2, self.n, k)
        tangents = StateTangents(np.arange(k), StateTangent(pairs[:, 0].copy(), pairs[:, 1].copy()))
        pushed = stepper.pushforward(self.step, tangents, Directions(directions))
        after = np.stack([pushed.dot.q, pushed.dot.v], axis=1).reshape(self.size, k)
        return self.twists[0].apply(after) if self.twists else after

    def pull(self, bar: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the cotangents of the pairs before the step (2 m n,) and of theta."""
        columns = bar[:, None]
        pairs = (self.twists[0].transposed(columns) if self.twists else columns).reshape(self.m, 2, self.n)
        theta_bar = np.zeros_like(self.derivatives.theta)
        after = StateTangent(pairs[:, 0].copy(), pairs[:, 1].copy())
        before = self.derivatives.stepper.pullback(self.step, after, theta_bar)
        columns = np.stack([before.q, before.v], axis=1).reshape(-1, 1)
        return (self.twists[1].inverse_transposed(columns) if self.twists else columns)[:, 0], theta_bar

    def block(self, rows: slice, columns: slice) -> StepOperator:
        """Return a block of the transition."""

        def forward(x: FloatArray) -> FloatArray:
            whole = np.zeros((self.size, x.shape[1]))
            whole[columns] = x
            return self.push(whole, sp.csr_array((self.derivatives.theta.size, x.shape[1])))[rows]

        def backward(bar: FloatArray) -> FloatArray:
            whole = np.zeros(self.size)
            whole[rows] = bar
            return self.pull(whole)[0][columns]

        size = len(range(*rows.indices(self.size))), len(range(*columns.indices(self.size)))
        return StepOperator(size, forward, backward)

    def by_input(self, directions: Directions) -> InputOperator:
        """Return the derivatives by numbers that move theta along directions."""
        parts = [self._input(directions, slice(k * self.n, (k + 1) * self.n)) for k in (0, 1)]
        return InputOperator(*parts)

    def _input(self, directions: Directions, rows: slice) -> StepOperator:
        def forward(x: FloatArray) -> FloatArray:
            moved = sp.csr_array(directions.matrix @ x)
            return self.push(np.zeros((self.size, x.shape[1])), moved)[rows]

        def backward(bar: FloatArray) -> FloatArray:
            whole = np.zeros(self.size)
            whole[rows] = bar
            return np.asarray(directions.matrix.T @ self.pull(whole)[1])

        return StepOperator((self.n, directions.n), forward, backward)


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

    def blocks(row: int, column: int) -> tuple[StepOperator, ...]:
        starts = [(2 * k + column) * n for k in range(len(linear.step.record.alpha))]
        return tuple(linear.block(slice(row * n, (row + 1) * n), slice(start, start + n)) for start in starts)

    return StepOperators(
        linear.block(everything, everything),
        blocks(0, 0), blocks(0, 1), blocks(1, 0), blocks(1, 1),
        {name: linear.by_input(item) for name, item in derivatives.controls.items()},
        {name: linear.by_input(item) for name, item in derivatives.parameters.items()},
    )  # fmt: skip


def pull_rows(
    step: TakenStep, bars: StateTangent, directions: Directions, matrices: tuple[FloatArray, Columns] | None
) -> tuple[StateTangent, Columns]:
    """Pull cotangents (m, n, r) of the state after a step by a formula of backward differentiation to what is before.

    Parameters
    ----------
    matrices : (3, n, n) and Columns, or None
        dr/dq, dr/dv, dr/da and dr along the directions, of a system without multipliers; None: those of the terms.

    Returns
    -------
    StateTangent
        Those of the state before, (m, n, r).
    Columns
        Those of theta times the directions, (r, k).

    Raises
    ------
    SolverError
        If the matrix of the step is singular.
    """
    (assembler, record, theta, _), system = step, step.assembler.system
    c, kin, mu = record.c, record.kin, record.mu
    free, prescribed, n = system.partition.free, system.partition.prescribed, system.n
    if record.unchanged is not None:
        bars = charts.pullback(record.unchanged, record.charts, bars)
    u_bar, count = bars.q[0] + c * bars.v[0], bars.q.shape[2]
    adjoint = np.zeros((n + mu.size, count))
    by_rates, by_a, whole = np.zeros((3, n, count))
    if matrices is not None:
        by_theta, (dq, dv, da) = matrices[1], matrices[0]
        rates = dv + c * da
        matrix, factors = dq + c * rates, DenseLU()
        with named_instant(record.solution, system, theta):
            factors.factor_matrix(np.asfortranarray(matrix if free.size == n else matrix[np.ix_(free, free)]))
            adjoint[free] = factors.solve_transposed(u_bar[free])
        by_rates, by_a = rates.T @ adjoint, da.T @ adjoint
        if prescribed.size:
            whole = matrix.T @ adjoint
    else:
        linearised = linearise(assembler, record.solution, theta)
        branch, solver = linearised.branch, linearised.factors
        assert isinstance(solver, LinearSolve)
        with named_instant(record.solution, system, theta):
            both = solver.solve_transposed(np.concatenate([u_bar[free], np.zeros((mu.size, count))]))
        adjoint[free], adjoint[n:] = both[: free.size], both[free.size :]
        by_theta = branch.parameter_tangents(kin, mu, theta, directions)

        def transposed(weights: Weights) -> FloatArray:
            return assembler.transposed(kin, mu, theta, branch, adjoint, weights)

        by_rates, by_a = transposed(Weights(0.0, 1.0, c)), transposed(Weights(0.0, 0.0, 1.0))
        if prescribed.size:
            whole = transposed(Weights(1.0, c, c * c))
    before = StateTangent(np.zeros_like(bars.q), np.zeros_like(bars.v))
    before.q[0], before.v[0] = bars.q[1], bars.v[1]
    for k, alpha in enumerate(record.alpha):
        before.q[k] += c * alpha * (by_rates - bars.v[0])
        before.v[k] += c * alpha * by_a
    moved = system.motion_tangents(kin.t, theta, directions)
    index = np.union1d(by_theta.index, moved.index)
    out = np.zeros((count, index.size))
    out[:, np.searchsorted(index, by_theta.index)] = -adjoint.T @ by_theta.values
    if moved.index.size:
        out[:, np.searchsorted(index, moved.index)] += (u_bar - whole)[prescribed].T @ moved.values
    return before, Columns(index, out)
