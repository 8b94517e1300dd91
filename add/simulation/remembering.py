"""Steps of systems with memory: what terms read of it is written into theta before a step, and renewed behind it."""

from dataclasses import dataclass, replace
from typing import final

import numpy as np
import scipy.sparse as sp

from add.equations.kinematics import Carry, Directions, State, StateTangent, StateTangents
from add.equations.memory import Memory, Timing
from add.errors import InputError
from add.simulation.bdf import BDF
from add.simulation.composed import AroundSteps
from add.simulation.derivative import Linearised
from add.simulation.stepper import Pair, PushedStep, Record, TakenStep
from add.solve.step_matrix import Assembler
from add.typing import FloatArray, IntArray

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

    @property
    def remembers(self) -> bool:
        """It does; see `DifferentiableStepper.remembers`."""
        return True

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
        following, record = self.inner.step(assembler, state, self._written(m, theta, timing), replay)
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
        written, own = self._written(m, theta, timing), np.zeros_like(theta)
        q_bar, m_bar = state_bar.q.copy(), np.zeros_like(m)
        if state_bar.memory.size:
            m_bar = self._after_pull(m, (q, theta), state_bar.memory[0], (q_bar[0], own), timing)
        bars = StateTangent(q_bar, state_bar.v)
        before = self.inner.pullback(step._replace(theta=written), bars, own)
        every = zip(self.memories, self._parts(m), strict=True)
        m_bar += np.concatenate([memory.write_pull(part, written, own, timing) for memory, part in every])
        own[self._entries] = 0.0
        if record.begun.marks[0][0]:
            at = _first(record, self.dt), theta
            self._after_pull(None, at, m_bar, (before.q[0], own), self._beginning(record))
        else:
            before.memory = m_bar[None]
        theta_bar += own
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
        return np.concatenate([memory.after_pull(part, at, own, bars, timing) for memory, part, own in every])

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
