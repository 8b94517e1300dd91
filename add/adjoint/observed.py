"""A finished run as a linear system of few states: what of its tangents its residuals see.

The residuals rho of a run read its states x_k, and these the numbers u: along tangents,

    x_0 = X u,    x_(k+1) = A_k x_k + B_k u,    rho_k = C_k x_k + D_k u.

Going back from the end, rows W_k are kept that say what all later residuals see of x_k. What the residuals of state k
and the rows behind it see together, [W_(k+1) A_k; C_k] = U_k W_k, with orthonormal columns U_k, has few rows that are
not round-off: a stiff or damped motion forgets, and a state of thousands of coordinates is seen by tens of rows. So

    y_k = W_k x_k,    [y_(k+1); rho_k] = U_k y_k + [W_(k+1) B_k; D_k] u,

and all residuals from state k on, squared, are |y_k|^2 where no number acts any more: a model of low order by
observability alone (Antoulas, Approximation of large-scale dynamical systems, SIAM 2005), of round-off's accuracy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.linalg

from add.equations.kinematics import Columns, Directions, StateTangent
from add.linalg import one_blas_thread
from add.objectives.base import StateRows
from add.simulation.run import Simulation, Trajectory
from add.simulation.start import Begun
from add.simulation.stepper import TakenStep
from add.typing import FloatArray, IntArray

#: What is below this part of the largest is round-off.
NEGLIGIBLE = 1e-13
#: Rows are looked through where this many, and this part of those that were left, have come.
ROOM, SHARE = 6, 0.25

_NOBODY: IntArray = np.zeros(0, dtype=np.int64)


@final
@dataclass(frozen=True)
class ObservedState:
    """One state and the step behind it.

    Attributes
    ----------
    onward : (r', r)
        y_(k+1) by y_k; no rows at the last state.
    seen : (m, r)
        The residuals of the state by y_k.
    inputs : Columns (r', k)
        y_(k+1) by the numbers that act in the step.
    direct : Columns (m, k)
        The residuals by the numbers themselves.
    """

    onward: FloatArray
    seen: FloatArray
    inputs: Columns
    direct: Columns


@final
@dataclass(frozen=True)
class ObservedRun:
    """The tangents of a run's residuals along ``n`` directions.

    Attributes
    ----------
    start : Columns (r, k)
        y_0 by the directions.
    states : the states, the first first
    slope : (n,)
        J^T rho of the residuals that it was made with.
    n : int
    """

    start: Columns
    states: tuple[ObservedState, ...]
    slope: FloatArray
    n: int

    def jacobian(self) -> FloatArray:
        """Return J (m, n), state by state: rows for rows of the residuals that it was made of."""
        y = self.start.dense(self.n)
        out = [np.zeros((0, self.n))]
        for state in self.states:
            rows = state.seen @ y
            rows[:, state.direct.index] += state.direct.values
            out.append(rows)
            y = state.onward @ y
            y[:, state.inputs.index] += state.inputs.values
        return np.concatenate(out)


def observe(
    simulation: Simulation,
    run: Trajectory,
    theta: FloatArray,
    directions: Directions,
    residuals: Mapping[int, Sequence[tuple[FloatArray, StateRows]]],
    most: int,
) -> ObservedRun | None:
    """Return what residuals see of a run from t = 0, by one sweep back with as many cotangents as there are rows.

    Parameters
    ----------
    residuals : of states, by their numbers, what they are (r,) and their derivatives
    most : int
        How many rows may be seen of a state.

    Returns
    -------
    ObservedRun or None
        None where more are, or a step has no such sweep (`DifferentiableStepper.pull_rows`).

    Raises
    ------
    SolverError
        If the matrix of a step is singular.
    """
    assembler, stepper = simulation.assembler(sweeping=True), simulation.differentiable
    m, n = run.initial.q.shape
    slope, states, records = np.zeros(directions.n), [], run.records
    # The last row is J^T rho's own, which is not to lose anything.
    rows, left = np.zeros((1, 2, m, n)), 0
    inputs = Columns.none()
    scale = np.array([1.0, stepper.dt])[:, None, None]  # a velocity counts for what it moves in a step
    with one_blas_thread():
        for k in range(run.n_steps, -1, -1):
            if k < run.n_steps:
                bars = StateTangent(*np.ascontiguousarray(rows.transpose(1, 2, 3, 0)))
                pulled = stepper.pull_rows(TakenStep(assembler, records[k], theta), bars, directions)
                if pulled is None:
                    return None
                before, inputs = pulled
                slope[inputs.index] += inputs.values[-1]
                inputs = Columns(inputs.index, inputs.values[:-1])
                rows = np.ascontiguousarray(np.stack([before.q, before.v]).transpose(3, 0, 1, 2))
            behind = rows.shape[0] - 1
            parts, weighted, direct = [rows[:-1]], rows[-1:].copy(), []
            for rho, rows_of in residuals.get(k, ()):
                values = np.stack([rows_of.bars.q, rows_of.bars.v]).transpose(3, 0, 1, 2)
                weighted[0] += np.tensordot(rho, values, 1)
                slope[rows_of.direct.index] += rho @ rows_of.direct.values
                parts.append(values)
                direct.append(rows_of.direct)
            rows = np.concatenate(parts)
            turn = np.eye(rows.shape[0])
            if rows.shape[0] > left + max(ROOM, SHARE * left):
                turn = _range((rows / scale).reshape(rows.shape[0], -1))
                rows, left = np.tensordot(turn, rows, ((0,), (0,))), turn.shape[1]
                if left > most:
                    return None
            states.append(ObservedState(turn[:behind], turn[behind:], inputs, Columns.stacked(direct)))
            rows = np.concatenate([rows, weighted])
        ends = rows.transpose(1, 2, 3, 0)
        found_start = simulation.start.pushforward(Begun(assembler, run.start, theta), directions)
        start = stepper.start_pushforward(*np.split(found_start.values, 2))
        values = np.einsum("mnr,mnk->rk", ends[0], start.q) + np.einsum("mnr,mnk->rk", ends[1], start.v)
        slope[found_start.index] += values[-1]
    return ObservedRun(Columns(found_start.index, values[:-1]), tuple(reversed(states)), slope, directions.n)


def _range(rows: FloatArray) -> FloatArray:
    """Return an orthonormal basis (m, r) of the columns of a matrix (m, n), but for round-off."""
    moving = rows[:, rows.any(axis=0)]
    if not moving.size:
        return np.zeros((rows.shape[0], 0))
    basis, triangle, _ = scipy.linalg.qr(moving, mode="economic", pivoting=True, check_finite=False)
    size = np.abs(triangle.diagonal())
    return np.ascontiguousarray(basis[:, size > NEGLIGIBLE * size[0]])
