"""The discrete adjoint of a run: exact for the converged steps, whatever the stepper.

The sweep walks a schedule backwards and calls the stepper's `pullback`; it knows no integrator.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import final

import numpy as np

from add.adjoint.prefetch import linearisations, prefetch_assemblers
from add.adjoint.schedule import Schedule, StoreAll
from add.equations.kinematics import State, StateTangent
from add.linalg import one_blas_thread
from add.objectives.base import Objective, total
from add.simulation import Record
from add.simulation.run import Observer, Replay, Simulation, Trajectory
from add.simulation.start import StartRecord
from add.solve.step_matrix import Assembler
from add.typing import FloatArray


@final
@dataclass
class Evaluation:
    """Value and gradient of an objective, with the states that the schedule kept.

    Attributes
    ----------
    value : float
    gradient : (n_theta,)
    """

    value: float
    gradient: FloatArray


def evaluate(
    simulation: Simulation,
    objective: Objective,
    theta: FloatArray | None = None,
    *,
    n_steps: int | None = None,
    replay: Replay | None = None,
    observers: Sequence[Observer] = (),
) -> tuple[float, Trajectory]:
    """Return the objective's value and the run it was found on."""
    theta = simulation.theta if theta is None else theta
    trajectory = simulation.run(theta, n_steps=n_steps, replay=replay, observers=observers)
    return total(objective, trajectory.states(), theta), trajectory


def value_and_gradient(
    simulation: Simulation,
    objective: Objective,
    theta: FloatArray | None = None,
    *,
    n_steps: int | None = None,
    schedule: Schedule | None = None,
    replay: Replay | None = None,
    observers: Sequence[Observer] = (),
) -> Evaluation:
    """Run forward, then sweep backward.

    Parameters
    ----------
    simulation : Simulation
    objective : Objective
    theta : (n_theta,), optional
    n_steps : int, optional
    schedule : Schedule, optional
        Default `StoreAll`. Recomputed segments are bit-equal to the first pass: a step depends on its State alone.
    replay : Replay, optional
        Decisions to hold in the forward pass.
    observers : called after every step of the first forward pass

    Returns
    -------
    Evaluation
    """
    theta = simulation.theta if theta is None else np.asarray(theta, dtype=float)
    n_steps = simulation.n_steps if n_steps is None else n_steps
    segments = (schedule or StoreAll()).segments(n_steps)
    objective = objective.for_run()
    assembler = simulation.assembler()
    with one_blas_thread():
        state, start = simulation.begin(assembler, theta, replay)
        value = objective.parameter_value(theta) + objective.step_value(state, theta)
        checkpoints: list[State] = []
        kept: list[tuple[State, Record]] = []
        for first, last in segments:
            checkpoints.append(state)
            kept = []
            for k in range(first, last):
                state, record = simulation.stepper.step(assembler, state, theta, replay.records[k] if replay else None)
                value += objective.step_value(state, theta)
                kept.append((state, record))
                for observer in observers:
                    observer(state, record)

        assemblers = prefetch_assemblers(assembler, simulation.threads)
        theta_bar = np.zeros_like(theta)
        objective.parameter_gradient(theta, theta_bar)
        bar = StateTangent.zeros(simulation.stepper.n_history, simulation.system.n)
        for number in range(len(segments) - 1, -1, -1):
            first, last = segments[number]
            if number < len(segments) - 1:
                kept = []
                state = checkpoints[number]
                for k in range(first, last):
                    step_replay = replay.records[k] if replay else None
                    state, record = simulation.stepper.step(assembler, state, theta, step_replay)
                    kept.append((state, record))
            backwards = (record for _, record in reversed(kept))
            with closing(linearisations(simulation.stepper, assemblers, theta, backwards)) as steps:
                for (state, record), step in zip(reversed(kept), steps, strict=True):
                    objective.step_pullback(state, theta, bar, theta_bar)
                    bar = simulation.stepper.pullback(assembler, record, theta, bar, theta_bar, step)
        _pull_start(simulation, objective, assembler, checkpoints[0], start, theta, bar, theta_bar)
    return Evaluation(value, theta_bar)


def _pull_start(
    simulation: Simulation,
    objective: Objective,
    assembler: Assembler,
    state: State,
    start: StartRecord | None,
    theta: FloatArray,
    bar: StateTangent,
    theta_bar: FloatArray,
) -> None:
    """Pull the cotangent of the first state back to theta."""
    objective.step_pullback(state, theta, bar, theta_bar)
    q_bar, v_bar = simulation.stepper.start_pullback(bar)
    simulation.start.pullback(assembler, start, theta, q_bar, v_bar, theta_bar)
