"""The forward loop with hard contact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from add.equations.kinematics import State
from add.errors import SolverError
from add.hard_contact.options import HardOptions
from add.hard_contact.pairs import ContactPairs, contact_terms
from add.hard_contact.stepper import HardContactStepper, HardRecord
from add.linalg import one_blas_thread
from add.simulation import BDF
from add.simulation.run import Simulation
from add.solve.step_matrix import Assembler
from add.typing import FloatArray

#: Called after every step with the new state and its record.
HardObserver = Callable[[State, HardRecord], None]


@final
@dataclass
class HardTrajectory:
    """States and records of a run.

    Attributes
    ----------
    t : (k + 1,) [s]
    q, v : (k + 1, n)
    records : k records
    pairs : ContactPairs
    """

    t: FloatArray
    q: FloatArray
    v: FloatArray
    records: list[HardRecord]
    pairs: ContactPairs


def stepper_of(simulation: Simulation, options: HardOptions | None = None) -> HardContactStepper:
    """Return the stepper with step, order, start and tolerances of a simulation with BDF."""
    bdf = simulation.stepper
    if not isinstance(bdf, BDF):
        raise ValueError(f"hard contact steps by BDF only, not by {type(bdf).__name__}")
    return HardContactStepper(
        bdf.step_size, bdf.bdf_order, options or HardOptions(newton=bdf.newton), start_up=bdf.start_up
    )


def simulate_hard(
    simulation: Simulation,
    *,
    theta: FloatArray | None = None,
    n_steps: int | None = None,
    stepper: HardContactStepper | None = None,
    observers: Sequence[HardObserver] = (),
) -> HardTrajectory:
    """Run a simulation with its penalty contact replaced by exact contact.

    Friction coefficients, points and obstacles are those of its contact terms; their stiffnesses and laws are ignored.

    Parameters
    ----------
    simulation : Simulation
    theta : (n_theta,), optional
    n_steps : int, optional
    stepper : HardContactStepper, optional
        By default `stepper_of` the simulation.
    observers : called after every step

    Raises
    ------
    SolverError
        If a step fails; its ``trajectory`` holds the steps that were finished.
    """
    theta = simulation.theta if theta is None else np.asarray(theta, dtype=float)
    n_steps = simulation.n_steps if n_steps is None else n_steps
    stepper = stepper or stepper_of(simulation)
    contacts, system = contact_terms(simulation.system)
    pairs = ContactPairs.of(contacts)
    assembler = Assembler(system, simulation.solver(system.n_unknowns))
    q0, v0, _ = simulation.start.evaluate(simulation.assembler(), theta)
    state = stepper.start(q0, v0)
    t, q, v = [state.t], [state.q[0]], [state.v[0]]
    records: list[HardRecord] = []
    previous: HardRecord | None = None
    with one_blas_thread():
        try:
            for _ in range(n_steps):
                state, previous = stepper.step(assembler, pairs, state, theta, previous)
                t.append(state.t)
                q.append(state.q[0])
                v.append(state.v[0])
                records.append(previous)
                for observer in observers:
                    observer(state, previous)
        except SolverError as error:
            error.trajectory = HardTrajectory(np.array(t), np.stack(q), np.stack(v), records, pairs)  # type: ignore[attr-defined]
            raise
    return HardTrajectory(np.array(t), np.stack(q), np.stack(v), records, pairs)
