"""Direct sensitivities: tangents of the trajectory along directions of theta, few or thousands.

Of thousands a finished run is a linear system of few states: what of its tangents its residuals see. The residuals rho
of a run read its states x_k, and these the numbers u: along tangents,

    x_0 = X u,    x_(k+1) = A_k x_k + B_k u,    rho_k = C_k x_k + D_k u.

Going back from the end, rows W_k are kept that say what all later residuals see of x_k. What the residuals of state k
and the rows behind it see together, [W_(k+1) A_k; C_k] = U_k W_k, with orthonormal columns U_k, has few rows that are
not round-off: a stiff or damped motion forgets, and a state of thousands of coordinates is seen by tens of rows. So

    y_k = W_k x_k,    [y_(k+1); rho_k] = U_k y_k + [W_(k+1) B_k; D_k] u,

and all residuals from state k on, squared, are |y_k|^2 where no number acts any more: a model of low order by
observability alone (Antoulas, Approximation of large-scale dynamical systems, SIAM 2005), of round-off's accuracy.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.linalg

from add.adjoint.schedule import linearisations, prefetch_assemblers
from add.equations.kinematics import Columns, Directions, SparseMatrix, StateTangent, StateTangents, StretchTangents
from add.linalg import one_blas_thread
from add.objectives.base import Objective, StateRows
from add.simulation.kept_states import Records
from add.simulation.run import Simulation, Trajectory
from add.simulation.start import Begun
from add.simulation.stepper import TakenBlock, TakenStep
from add.typing import FloatArray


@final
@dataclass
class Tangents:
    """Tangents of all states of a run.

    Attributes
    ----------
    directions : Directions
    states : k + 1 tangents, each along the directions that have moved the state by then
    """

    directions: Directions
    states: list[StateTangents]

    @property
    def q(self) -> FloatArray:
        """Tangents of the coordinates (n_directions, k + 1, n), zeros filled in."""
        return self._whole([s.dot.q[0] for s in self.states])

    @property
    def v(self) -> FloatArray:
        """Tangents of the velocities (n_directions, k + 1, n), zeros filled in."""
        return self._whole([s.dot.v[0] for s in self.states])

    def _whole(self, parts: list[FloatArray]) -> FloatArray:
        out = np.zeros((self.directions.n, len(parts), parts[0].shape[0]))
        for k, (state, part) in enumerate(zip(self.states, parts, strict=True)):
            out[state.index, k] = part.T
        return out

    def derivative(self, objective: Objective, trajectory: Trajectory, theta: FloatArray) -> FloatArray:
        """Return the objective's derivative along every direction (n_directions,)."""
        theta_bar = np.zeros_like(theta)
        objective = objective.for_run()
        for k in range(len(self.states)):
            objective.step_value(trajectory.state(k), theta)
        objective.parameter_gradient(theta, theta_bar)
        out = np.zeros(self.directions.n)
        for k, tangents in reversed(list(enumerate(self.states))):
            m, n, _ = tangents.dot.q.shape
            bar = StateTangent.zeros(m, n)
            objective.step_pullback(trajectory.state(k), theta, bar, theta_bar)
            for a, dot in ((bar.q, tangents.dot.q), (bar.v, tangents.dot.v)):
                out[tangents.index] += np.einsum("mn,mnk->k", a, dot)
        return out + self.directions.matrix.T @ theta_bar


def pushforward(
    simulation: Simulation,
    trajectory: Trajectory,
    theta: FloatArray,
    directions: Directions | Sequence[FloatArray] | FloatArray | SparseMatrix,
    initial: StateTangents | None = None,
) -> Tangents:
    """Push directions of theta through a finished run; one factorisation a step serves all of them.

    Parameters
    ----------
    simulation : Simulation
    trajectory : Trajectory
        The run, whose decisions are held.
    theta : (n_theta,)
    directions : vectors (n_theta,), or a matrix (n_theta, k), dense or sparse
    initial : StateTangents, optional
        Of the state that the run went on from, which theta then has no share in. Default: as the simulation starts.

    Notes
    -----
    Everything is kept, (steps, k, 4 n) numbers; `sweep` keeps one state's.
    """
    directions = Directions.of(directions)
    with one_blas_thread():
        return Tangents(directions, list(sweep(simulation, trajectory, theta, directions, initial)))


def sweep(
    simulation: Simulation,
    trajectory: Trajectory,
    theta: FloatArray,
    directions: Directions,
    initial: StateTangents | None = None,
) -> Iterator[StateTangents]:
    """Yield the tangents of every state of a finished run, the initial one first; see `pushforward`.

    Whoever walks through them should hold BLAS to one thread, as runs do: the products are small.
    """
    for part in stretches(simulation, trajectory, theta, directions, initial):
        if isinstance(part, StretchTangents):
            yield from part.states()
        else:
            yield part


def stretches(
    simulation: Simulation,
    trajectory: Trajectory,
    theta: FloatArray,
    directions: Directions,
    initial: StateTangents | None = None,
) -> Iterator[StateTangents | StretchTangents]:
    """Yield what `sweep` does, the tangents of several states at once where one compiled call has them."""
    assembler = simulation.assembler(sweeping=True)
    stepper = simulation.differentiable
    if initial is None:
        start = simulation.start.pushforward(Begun(assembler, trajectory.start, theta), directions)
        q_dot, v_dot = np.split(start.values, 2)
        tangents = StateTangents(start.index, stepper.start_pushforward(q_dot, v_dot))
    else:
        tangents = initial
    yield tangents
    records = trajectory.records
    if assembler.compiled is None and simulation.threads > 1 and records:
        # What threads are to share: the analysis of the pattern and the size of its factors.
        stepper.linearise(assembler, records[0], theta)
        assemblers = prefetch_assemblers(assembler, simulation.threads)
        with closing(linearisations(stepper, assemblers, theta, records)) as steps:
            for record, step in zip(records, steps, strict=True):
                tangents = stepper.pushforward(TakenStep(assembler, record, theta, step), tangents, directions)
                yield tangents
        return
    blocks = (
        list(records.blocks())[::-1] if isinstance(records, Records) else [(k, None, 1) for k in range(len(records))]
    )
    for number, block, n in blocks:
        done = 0
        while done < n:
            taken = block and TakenBlock(assembler, block, range(done, n), theta)
            part = taken and stepper.push_stretch(taken, tangents, directions)
            if part:
                tangents, done = part.last, done + part.n
                yield part
            else:
                last = TakenStep(assembler, records[number + done], theta)
                tangents = stepper.pushforward(last, tangents, directions)
                done += 1
                yield tangents


#: What is below this part of the largest is round-off.
NEGLIGIBLE = 1e-13
#: Rows are looked through where this many, and this part of those that were left, have come.
ROOM, SHARE = 6, 0.25


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
