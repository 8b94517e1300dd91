"""Steps that each begin at a recorded state: predictions of one step, over a whole recording."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from add.equations.kinematics import Directions, State, StateTangent, StateTangents
from add.simulation.composed import AroundSteps
from add.simulation.derivative import Linearised
from add.simulation.stepper import ContactForces, Pair, PushedStep, Record, TakenStep
from add.solve.step_matrix import Assembler
from add.typing import FloatArray


@final
@dataclass(frozen=True)
class RecordedStates:
    """Coordinates and velocities at the steps of a simulation.

    Attributes
    ----------
    q, v : (k, n)
        At t = 0, dt, 2 dt, ...; rotation vectors up to the length pi.
    """

    q: FloatArray
    v: FloatArray

    @property
    def n_steps(self) -> int:
        """How many steps may begin and end at a recorded state."""
        return self.q.shape[0] - 1

    def state(self, like: State, n_history: int) -> State:
        """Return the recorded state at the step of ``like``, with its history; before t = 0 on a straight line."""
        rows = np.maximum(like.step - np.arange(n_history), 0)
        late = np.minimum(like.step - np.arange(n_history), 0)
        dt = like.t / like.step if like.step else 0.0
        return State(like.t, like.step, self.q[rows] + dt * late[:, None] * self.v[0], self.v[rows])


@final
@dataclass(frozen=True)
class Restarted(AroundSteps):
    """Any steps, each from the recorded state before it: x_k = step(recorded x_(k-1); theta).

    What a step ends in does not reach the next one, nor does a derivative: a cotangent pulled back through a step ends
    at theta. Only where a solver begins goes on from step to step (`State.carry`), so that it takes the same one of
    several solutions as a run does.

    Attributes
    ----------
    inner : DifferentiableStepper
    recorded : RecordedStates
    """

    recorded: RecordedStates

    def start(self, q: FloatArray, v: FloatArray) -> State:
        """Return the recorded state at t = 0, whatever a simulation would start from."""
        return self.inner.start(self.recorded.q[0], self.recorded.v[0])

    def start_pullback(self, state_bar: StateTangent) -> tuple[FloatArray, FloatArray]:
        """Return zeros: a recorded state does not change."""
        return np.zeros_like(state_bar.q[0]), np.zeros_like(state_bar.v[0])

    def start_pushforward(self, q_dot: FloatArray, v_dot: FloatArray) -> StateTangent:
        """Return zeros."""
        return self.inner.start_pushforward(np.zeros_like(q_dot), np.zeros_like(v_dot))

    def step(
        self, assembler: Assembler, state: State, theta: FloatArray, replay: Record | None = None
    ) -> tuple[State, Record]:
        """Take one step from the recorded state; see `DifferentiableStepper.step`."""
        begin = self.inner.start(self.recorded.q[0], self.recorded.v[0]) if state.step == 0 else None
        begin = begin or self.recorded.state(state, self.n_history)
        return self.inner.step(assembler, replace(begin, carry=state.carry), theta, replay)

    def contact_changes(self, record: Record, other: Record) -> int:
        """Return in how many contacts two records differ."""
        return self.inner.contact_changes(record, other)

    def contact_forces(self, record: Record, theta: FloatArray) -> ContactForces | None:
        """Return the contact forces that the step solved for."""
        return self.inner.contact_forces(record, theta)

    def linearise(self, assembler: Assembler, record: Record, theta: FloatArray) -> Linearised | None:
        """Assemble and factor the matrix of a step."""
        return self.inner.linearise(assembler, record, theta)

    def pullback(self, step: TakenStep, state_bar: StateTangent, theta_bar: FloatArray) -> StateTangent:
        """Add the cotangent of theta; that of the state before is zero."""
        self.inner.pullback(step, state_bar, theta_bar)
        return StateTangent(*(np.zeros_like(bar) for bar in (state_bar.q, state_bar.v, state_bar.memory)))

    def pull(self, step: TakenStep, bar: Pair, theta_bar: FloatArray) -> StateTangent:
        """Pull a cotangent back to the recorded state; see `StepPart.pull`."""
        return self.inner.pull(step, bar, theta_bar)

    def push(self, step: TakenStep, tangents: StateTangents, directions: Directions) -> PushedStep:
        """Push tangents along theta alone; see `StepPart.push`."""
        dot = StateTangent(*(np.zeros_like(x) for x in (tangents.dot.q, tangents.dot.v, tangents.dot.memory)))
        still = StateTangents(tangents.index, dot)
        return self.inner.push(step, still, directions)
