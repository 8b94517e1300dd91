"""Direct sensitivities: tangents of the trajectory along directions of theta, few or thousands."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import final

import numpy as np

from add.adjoint.schedule import linearisations, prefetch_assemblers
from add.equations.kinematics import Directions, SparseMatrix, StateTangent, StateTangents, StretchTangents
from add.linalg import one_blas_thread
from add.objectives.base import Objective
from add.simulation.bdf import Records
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
