"""Steps made of other steps: of another stepper, of parts, from recorded states, and of systems with memory."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self, final

import numpy as np
import scipy.sparse as sp

from add.equations.kinematics import NO_CARRY, Carry, Directions, State, StateTangent, StateTangents
from add.errors import InputError
from add.simulation.bdf import BDF
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
from add.terms.memories import Memory, Timing
from add.typing import FloatArray, IntArray


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
        other, before = aside(step.assembler, record), StateTangent.zeros(self.n_history, bar[0].size)
        for part, taken in reversed(self.parts(record)):
            before = part.pull(TakenStep(other, taken, step.theta, linearised), bar, theta_bar)
            bar, linearised = (before.q[0], before.v[0]), None
        return before

    def push(self, step: TakenStep, tangents: StateTangents, directions: Directions) -> PushedStep:
        """Push tangents forward through the parts; see `StepPart.push`."""
        record = step.record
        other, parts, now = aside(step.assembler, record), self.parts(record), tangents
        for part, taken in parts[:-1]:
            now = shifted(*part.push(TakenStep(other, taken, step.theta), now, directions))
        part, taken = parts[-1]
        linearised = None if record.inner else step.linearised
        now, q_dot, v_dot = part.push(TakenStep(other, taken, step.theta, linearised), now, directions)
        # Directions that have set in in different parts stand in that order; before the step they had moved nothing.
        return StateTangents(now.index, tangents.including(now.index).dot), q_dot, v_dot


def aside(assembler: Assembler, record: Record) -> Assembler:
    """Return an assembler for the solves of a composed step: the other one may be at work in another thread."""
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


#: Marks of a carry: whether the step began a run, at rest.
_BEGAN, _WENT_ON = ((np.array([k], dtype=np.int64),) for k in (1, 0))


@final
@dataclass(frozen=True)
class Remembering(AroundSteps):
    """Steps of ``inner`` with memories; `State.carry` has that after a step, `Record.begun` that which it has read.

    Attributes
    ----------
    inner : BDF
    memories : tuple of Memory
    """

    inner: BDF
    memories: tuple[Memory, ...]

    #: It does; see `DifferentiableStepper.remembers`.
    remembers: ClassVar[bool] = True

    # --- forward ------------------------------------------------------------------------------------------------------

    def step(
        self, assembler: Assembler, state: State, theta: FloatArray, replay: Record | None = None
    ) -> tuple[State, Record]:
        """Take one step; see `DifferentiableStepper.step`.

        Raises
        ------
        InputError
            If the state is not the first one and has no memory.
        """
        begun = state.carry
        if not begun.memory.size and state.step == 0:
            begun = Carry(self._after(None, state.q[0], theta, Timing(state.t, self.dt))[None], _BEGAN)
        if not begun.memory.size:
            raise InputError(
                "a state of a body that remembers has a memory", found=f"step {state.step} without one",
                expected="State.carry of the run that the state is from",
            )  # fmt: skip
        m = begun.memory[0]
        timing = Timing(state.t + self.dt, self.dt)
        following, record = self.inner.step(
            assembler, replace(state, carry=NO_CARRY), self._written(m, theta, timing), replay
        )
        carry = Carry(self._after(m, record.kin.q, theta, timing)[None], _WENT_ON)
        unchanged = None if record.unchanged is None else replace(record.unchanged, carry=carry)
        solution = replace(record.solution, carry=carry)
        return replace(following, carry=carry), replace(record, solution=solution, unchanged=unchanged, begun=begun)

    def _parts(self, m: FloatArray) -> list[FloatArray]:
        """Return the part of each memory."""
        return np.split(m, np.cumsum([memory.n for memory in self.memories])[:-1])

    def _timing(self, record: Record) -> Timing:
        return Timing(record.kin.t, self.dt)

    def _beginning(self, record: Record) -> Timing:
        return Timing(record.kin.t - self.dt, self.dt)

    def _after(self, m: FloatArray | None, q: FloatArray, theta: FloatArray, timing: Timing) -> FloatArray:
        parts = [None] * len(self.memories) if m is None else self._parts(m)
        return np.concatenate(
            [memory.after(part, q, theta, timing) for memory, part in zip(self.memories, parts, strict=True)]
        )

    def _written(self, m: FloatArray, theta: FloatArray, timing: Timing) -> FloatArray:
        """Return theta with what terms read of the memory."""
        out = theta.copy()
        for memory, part in zip(self.memories, self._parts(m), strict=True):
            memory.write(part, out, timing)
        return out

    # --- derivatives --------------------------------------------------------------------------------------------------

    def linearise(self, assembler: Assembler, record: Record, theta: FloatArray) -> Linearised | None:
        """Assemble and factor the matrix of a step; see `DifferentiableStepper.linearise`."""
        return self.inner.linearise(
            assembler, record, self._written(record.begun.memory[0], theta, self._timing(record))
        )

    def pull(self, step: TakenStep, bar: Pair, theta_bar: FloatArray) -> StateTangent:
        """Pull a cotangent back with the memory held; see `StepPart.pull`."""
        written = self._written(step.record.begun.memory[0], step.theta, self._timing(step.record))
        return self.inner.pull(step._replace(theta=written), bar, theta_bar)

    def push(self, step: TakenStep, tangents: StateTangents, directions: Directions) -> PushedStep:
        """Push tangents forward with the memory held; see `StepPart.push`."""
        written = self._written(step.record.begun.memory[0], step.theta, self._timing(step.record))
        return self.inner.push(step._replace(theta=written), tangents, directions)

    def pullback(self, step: TakenStep, state_bar: StateTangent, theta_bar: FloatArray) -> StateTangent:
        """Pull a cotangent back; see `DifferentiableStepper.pullback`."""
        record, theta = step.record, step.theta
        q, m, timing = record.kin.q, record.begun.memory[0], self._timing(record)
        written, by_theta = self._written(m, theta, timing), np.zeros_like(theta)
        q_bar, m_bar = state_bar.q.copy(), np.zeros_like(m)
        if state_bar.memory.size:
            m_bar = self._after_pull(m, (q, theta), state_bar.memory[0], (q_bar[0], by_theta), timing)
        bars = StateTangent(q_bar, state_bar.v)
        before = self.inner.pullback(step._replace(theta=written), bars, by_theta)
        every = zip(self.memories, self._parts(m), strict=True)
        m_bar += np.concatenate([memory.write_pull(part, written, by_theta, timing) for memory, part in every])
        by_theta[self._entries] = 0.0
        if record.begun.marks[0][0]:
            at = _first(record, self.dt), theta
            self._after_pull(None, at, m_bar, (before.q[0], by_theta), self._beginning(record))
        else:
            before.memory = m_bar[None]
        theta_bar += by_theta
        return before

    def pushforward(self, step: TakenStep, tangents: StateTangents, directions: Directions) -> StateTangents:
        """Push tangents forward; see `DifferentiableStepper.pushforward`."""
        record, theta = step.record, step.theta
        m, timing = record.begun.memory[0], self._timing(record)
        # Directions that move nothing but numbers of the memory set in here.
        tangents = tangents.including(directions.touching(np.flatnonzero(directions.moved)))
        index, q_dot, v_dot = tangents.index, tangents.dot.q, tangents.dot.v
        dots = directions.matrix.tocsc()[:, index].toarray()
        if record.begun.marks[0][0]:
            at = _first(record, self.dt), q_dot[0]
            m_dot = self._after_push(None, np.zeros((m.size, 0)), at, (theta, dots), self._beginning(record))
        else:
            m_dot = tangents.dot.memory[0]
        written, written_dots, entries = self._written(m, theta, timing), dots.copy(), self._entries
        for memory, part, dot in zip(self.memories, self._parts(m), self._parts(m_dot), strict=True):
            memory.write_push(part, dot, written, written_dots, timing)
        # A tie moves some of the entries, too: what is written takes its place.
        rows, columns = np.repeat(entries, index.size), np.tile(index, entries.size)
        changed = (written_dots[entries] - dots[entries]).ravel()
        moved = Directions(directions.matrix + sp.csr_array((changed, (rows, columns)), shape=directions.matrix.shape))
        plain = StateTangents(index, StateTangent(q_dot, v_dot, np.zeros((0, 0, index.size))))
        after = self.inner.pushforward(step._replace(theta=written), plain, moved)
        new = self._after_push(m, m_dot, (record.kin.q, after.dot.q[0]), (theta, dots), timing)
        return StateTangents(after.index, StateTangent(after.dot.q, after.dot.v, new[None]))

    @property
    def _entries(self) -> IntArray:
        return np.concatenate([memory.entries for memory in self.memories])

    def _after_pull(self, m: FloatArray | None, at: Pair, bar: FloatArray, bars: Pair, timing: Timing) -> FloatArray:
        parts = [None] * len(self.memories) if m is None else self._parts(m)
        every = zip(self.memories, parts, self._parts(bar), strict=True)
        return np.concatenate([memory.after_pull(part, at, shares, bars, timing) for memory, part, shares in every])

    def _after_push(self, m: FloatArray | None, m_dot: FloatArray, at: Pair, theta: Pair, timing: Timing) -> FloatArray:
        n = len(self.memories)
        parts, dots = ([None] * n, [m_dot] * n) if m is None else (self._parts(m), self._parts(m_dot))
        every = zip(self.memories, parts, dots, strict=True)
        return np.concatenate([memory.after_push(part, dot, at, theta, timing) for memory, part, dot in every])


def _first(record: Record, dt: float) -> FloatArray:
    """Return the coordinates that a run began with: those that its first step looks back to, on a straight line."""
    kin, c = record.kin, record.c
    q_star, v_star = kin.q - kin.v / c, kin.v - kin.a / c
    return q_star + sum(record.alpha[1:]) * dt * v_star
