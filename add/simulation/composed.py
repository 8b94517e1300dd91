"""Steps that are made of other steps: those of another stepper, parts, or steps that each begin at a recorded state."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np

from add.equations.kinematics import Directions, State, StateTangent, StateTangents
from add.simulation.derivative import Linearised
from add.simulation.stepper import (
    ContactForces,
    DifferentiableStepper,
    Pair,
    PushedStep,
    Record,
    StepPart,
    TakenStep,
    shifted,
)
from add.solve.step_equations import NewtonOptions
from add.solve.step_matrix import Assembler
from add.typing import FloatArray


@dataclass(frozen=True)
class AroundSteps(DifferentiableStepper):
    """Steps of another stepper, begun or divided in another way.

    Attributes
    ----------
    inner : DifferentiableStepper
    """

    inner: DifferentiableStepper

    @property
    def needs_compiled(self) -> bool:
        """Whether the steps do."""
        return self.inner.needs_compiled

    @property
    def newton(self) -> NewtonOptions:  # type: ignore[override]
        """When a step counts as solved."""
        return self.inner.newton

    @property
    def order(self) -> int:
        """That of the steps."""
        return self.inner.order

    @property
    def dt(self) -> float:
        """Step [s]."""
        return self.inner.dt

    def solved_by(self, options: NewtonOptions) -> Self:
        """Return the stepper with other options of Newton's method."""
        return replace(self, inner=self.inner.solved_by(options))


class StepsInParts(DifferentiableStepper):
    """A stepper whose steps are whole or divided; derivatives go through the parts one after the other."""

    @abstractmethod
    def parts(self, record: Record) -> Sequence[tuple[StepPart, Record]]:
        """Return the parts of a step with their records, in their order: one, or several that each look back once."""

    def pull(self, step: TakenStep, bar: Pair, theta_bar: FloatArray) -> StateTangent:
        """Pull a cotangent back through the parts; see `StepPart.pull`."""
        record, linearised = step.record, step.linearised
        aside, before = _aside(step.assembler, record), StateTangent.zeros(self.n_history, bar[0].size)
        for part, own in reversed(self.parts(record)):
            before = part.pull(TakenStep(aside, own, step.theta, linearised), bar, theta_bar)
            bar, linearised = (before.q[0], before.v[0]), None
        return before

    def push(self, step: TakenStep, tangents: StateTangents, directions: Directions) -> PushedStep:
        """Push tangents forward through the parts; see `StepPart.push`."""
        record = step.record
        aside, parts, now = _aside(step.assembler, record), self.parts(record), tangents
        for part, own in parts[:-1]:
            now = shifted(*part.push(TakenStep(aside, own, step.theta), now, directions))
        part, own = parts[-1]
        linearised = None if record.inner else step.linearised
        now, q_dot, v_dot = part.push(TakenStep(aside, own, step.theta, linearised), now, directions)
        return tangents.including(now.index), q_dot, v_dot


def _aside(assembler: Assembler, record: Record) -> Assembler:
    """Return an assembler for the solves of a divided step: the other one may be at work in another thread."""
    return (assembler.copy() or assembler) if record.inner else assembler


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
