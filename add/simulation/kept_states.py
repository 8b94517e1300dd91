"""Finished steps as few numbers: states and decisions, from which records are made again without solving anything.

The solution (q, v) of every step is kept, with decisions, multipliers and what the stepper carries. The rest follows:
the state behind a step is its solution, in the charts that it changed to, with that of the step before; its
acceleration is a = c (v - sum alpha_k v_k), in the order of operations of the step itself, so that it is the same to
the last bit. Where it is not (a stepper that does not begin at the state before), it is kept, too.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import final, overload

import numpy as np

from add.compiled.pack import PackedSystem
from add.compiled.steps import Block, Steps, Timing
from add.equations import charts
from add.equations.kinematics import NO_CARRY, Carry, Kinematics, State
from add.equations.term import AllCandidates
from add.simulation.bdf import record_of
from add.simulation.derivative import Solution
from add.simulation.stepper import NO_CHARTS, Record
from add.solve.step_equations import NewtonReport, Status
from add.typing import AnyArray, BoolArray, FloatArray, IntArray

#: A record made again knows that its step was solved, and no more of how.
_SOLVED = NewtonReport(Status.CONVERGED, 0, 0, 0.0, 0.0, 0, 0, ())


@final
class Records(Sequence[Record]):
    """The records of a run: of single steps, and of blocks, whose records are made where they are asked for."""

    def __init__(self, parts: Iterable[Record | tuple[Block, int]] = ()) -> None:
        self._parts: list[Record | tuple[Block, int]] = list(parts)

    def append(self, part: Record | tuple[Block, int]) -> None:
        """Add the record of a step, or where it is made: a block and the number of the step in it."""
        self._parts.append(part)

    def extend(self, block: Block) -> None:
        """Add the records of a block."""
        self._parts.extend((block, k) for k in range(block.n))

    def __len__(self) -> int:
        return len(self._parts)

    @overload
    def __getitem__(self, key: int) -> Record: ...

    @overload
    def __getitem__(self, key: slice) -> "Records": ...

    def __getitem__(self, key: int | slice) -> "Record | Records":
        if isinstance(key, slice):
            return Records(self._parts[key])
        part = self._parts[key]
        return record_of(*part) if isinstance(part, tuple) else part

    def __iter__(self) -> Iterator[Record]:
        return (record_of(*part) if isinstance(part, tuple) else part for part in self._parts)

    def blocks(self) -> Iterator[tuple[int, Block | None, int]]:
        """Yield what lies behind the records, the last first: number of the first record, the block, how many steps.

        Records of no block, those of a block that hands on more than coordinates and velocities, and those of one that
        is not here from its first step on come one by one, with None.
        """
        stop = len(self._parts)
        while stop:
            part = self._parts[stop - 1]
            if isinstance(part, tuple) and part[1] < stop and self._begins(stop - 1 - part[1], part[0]):
                yield stop - 1 - part[1], part[0], part[1] + 1
                stop -= part[1] + 1
            else:
                yield stop - 1, None, 1
                stop -= 1

    def _begins(self, k: int, block: Block) -> bool:
        """Whether a block begins with record ``k``."""
        part = self._parts[k]
        return isinstance(part, tuple) and part[0] is block and part[1] == 0 and block.carry is None


@final
@dataclass(frozen=True)
class Ragged:
    """Arrays that differ in their number of rows, one behind the other; integers as narrow as they fit.

    Attributes
    ----------
    values : all rows
    ends : (k + 1,) where those of each array begin
    dtype : of the arrays
    """

    values: AnyArray
    ends: IntArray
    dtype: np.dtype

    @classmethod
    def of(cls, arrays: Sequence[AnyArray]) -> "Ragged":
        """Return arrays of one kind, one at least."""
        values = np.concatenate(arrays)
        dtype = values.dtype
        if dtype == np.int64 and np.abs(values).max(initial=0) < 2**31:
            values = values.astype(np.int32)
        return cls(values, np.cumsum([0, *(len(array) for array in arrays)]).astype(np.int32), dtype)

    def __getitem__(self, k: int) -> AnyArray:
        return self.values[self.ends[k] : self.ends[k + 1]].astype(self.dtype)


@final
@dataclass(frozen=True)
class KeptBlock:
    """The states and decisions of a block of compiled steps.

    Attributes
    ----------
    system, timing, n : see `Block`
    q, v : (k + 1, n) the newest pair of the state before the block, and the solutions
    own : number of a step -> its acceleration, where it does not follow from the others; the first does not
    turned : (k, n_rotations)
    rows : decisions of all steps
    counts : (k, n_deciding) rows of each family in each step
    candidates : of the block
    mu : (n, m) multipliers
    """

    system: PackedSystem
    timing: Timing
    n: int
    q: FloatArray
    v: FloatArray
    own: dict[int, FloatArray]
    turned: BoolArray
    rows: Ragged
    counts: AnyArray
    candidates: AllCandidates
    mu: FloatArray

    @classmethod
    def of(cls, block: Block) -> "KeptBlock":
        """Return what is kept of a block."""
        steps, n = block.steps, block.n
        ends = steps.ends[:n]
        rows = Ragged.of([steps.rows[ends[0, 0] : ends[-1, -1]]])
        q, v = np.concatenate([block.q[None], steps.q[:n]]), np.concatenate([block.v[None], steps.v[:n]])
        counts = np.diff(ends, axis=1).astype(np.int32)
        more = block.candidates, block.mu[:n].copy()
        kept = cls(block.system, block.timing, n, q, v, {}, steps.turned[:n].copy(), rows, counts, *more)
        rebuilt = kept._accelerations(*kept._states())
        accelerations = {k: steps.a[k].copy() for k in np.flatnonzero((rebuilt != steps.a[:n]).any(axis=1)).tolist()}
        kept.own.update(accelerations)
        return kept

    def whole(self) -> Block:
        """Return the block; of how its steps were solved it knows nothing."""
        n = self.n
        states_q, states_v = self._states()
        a = self._accelerations(states_q, states_v)
        for k, acceleration in self.own.items():
            a[k] = acceleration
        nothing = np.zeros((n, 1))
        ends = np.zeros((n, self.counts.shape[1] + 1), dtype=np.int64)
        ends[:, 1:] = np.cumsum(self.counts).reshape(self.counts.shape)
        ends[1:, 0] = ends[:-1, -1]
        rows = self.rows[0]
        steps = Steps(
            self.q[1:], self.v[1:], a, states_q[1:], states_v[1:], self.turned, np.zeros((n, 5), dtype=np.int64),
            nothing[:, 0].copy(), nothing, rows, ends,
        )  # fmt: skip
        return Block(self.system, self.timing, steps, n, self.q[0], self.v[0], self.candidates, self.mu)

    def _states(self) -> tuple[FloatArray, FloatArray]:
        """Return the newest pair of the state before the block and after every step (k + 1, n)."""
        if not self.turned.any():
            return self.q, self.v
        q, v = self.q.copy(), self.v.copy()
        for k in np.flatnonzero(self.turned.any(axis=1)).tolist():
            state = charts.change(State(0.0, 0, q[k + 1 : k + 2], v[k + 1 : k + 2]), self._changed(k))
            q[k + 1], v[k + 1] = state.q[0], state.v[0]
        return q, v

    def _changed(self, k: int) -> IntArray:
        return self.system.system.rotations[self.turned[k]]

    def _accelerations(self, states_q: FloatArray, states_v: FloatArray) -> FloatArray:
        """Return those that follow (k, n); that of the first step would need an older pair, and is NaN."""
        timing, out = self.timing, np.full((self.n, self.v.shape[1]), np.nan)
        # The older pair of a state is in the charts of the state.
        older = states_v[:-2].copy() if self.turned.any() else states_v[:-2]
        for k in np.flatnonzero(self.turned[:-1].any(axis=1)).tolist():
            pair = charts.change(State(0.0, 0, states_q[k : k + 1], states_v[k : k + 1]), self._changed(k))
            older[k] = pair.v[0]
        star = timing.alpha_0[1] * states_v[1:-1] + timing.alpha_1[1] * older
        out[1:] = timing.c[1] * (self.v[2:] - star)
        return out


@final
@dataclass(frozen=True)
class KeptSteps:
    """The states and decisions of consecutive steps that the terms have taken.

    Attributes
    ----------
    before : State
    q, v : (k, n) solutions
    own : number of a step -> its acceleration, where it does not follow from the others
    shifted : number of a step -> coordinates of the state after it, where they are not those of the solution
    changed : number of a step -> rotation vectors that changed chart
    formulas : (c, dt, alpha), and `which` of them each step follows
    mu : Ragged
    decisions : of every deciding term
    memory, marks : of the carry; None where it is empty
    begun : what the first step has read of a memory, and whether all have
    candidates : of every step; equal ones are one object
    divided : number of a step -> the state after it and its record, of steps that are made of other solves
    """

    before: State
    q: FloatArray
    v: FloatArray
    own: dict[int, FloatArray]
    shifted: dict[int, FloatArray]
    changed: dict[int, IntArray]
    formulas: tuple[tuple[float, float, tuple[float, ...]], ...]
    which: tuple[int, ...]
    mu: Ragged
    decisions: tuple[Ragged, ...]
    memory: Ragged | None
    begun: Carry
    marks: tuple[Ragged, ...]
    candidates: tuple[AllCandidates, ...]
    divided: dict[int, tuple[State, Record]]

    @classmethod
    def of(cls, before: State, steps: Sequence[tuple[State, Record]]) -> "KeptSteps":
        """Return what is kept of steps, one at least, that follow the state ``before``."""
        records = [record for _, record in steps]
        q, v = (np.stack([getattr(record.kin, name) for record in records]) for name in ("q", "v"))
        ways = [(record.c, record.solution.dt, record.alpha) for record in records]
        formulas = tuple(dict.fromkeys(ways))
        which = tuple(formulas.index(way) for way in ways)
        shifted, candidates = {}, []
        last: AllCandidates = ()
        for k, (state, record) in enumerate(steps):
            newest = (state if record.unchanged is None else record.unchanged).q[0]
            if not np.array_equal(newest, q[k]):
                shifted[k] = newest.copy()
            near = record.solution.candidates
            last = last if _equal(last, near) else near
            candidates.append(last)
        # Of steps that are kept whole nothing is kept here: another one's stands in.
        plain = next((record.carry for record in records if record.carry.marks and not record.composed), NO_CARRY)
        nothing = Carry(np.zeros(0), (np.zeros(0, dtype=np.int64),) * len(plain.marks))  # of steps that hand nothing on
        carries = [plain if record.composed else record.carry if record.carry.marks else nothing for record in records]
        kept = cls(
            before, q, v, {}, shifted,
            {k: record.charts for k, record in enumerate(records) if record.charts.size},
            formulas, which,
            Ragged.of([record.mu for record in records]),
            tuple(map(Ragged.of, zip(*(record.decisions for record in records), strict=True))),
            Ragged.of([carry.memory.ravel() for carry in carries]) if plain.marks else None,
            records[0].begun,
            tuple(map(Ragged.of, zip(*(carry.marks for carry in carries), strict=True))),
            tuple(candidates),
            {k: step for k, step in enumerate(steps) if step[1].composed},
        )  # fmt: skip
        accelerations = {
            k: record.kin.a.copy()
            for k, ((_, again), record) in enumerate(zip(kept.whole(), records, strict=True))
            if not np.array_equal(again.kin.a, record.kin.a)
        }
        kept.own.update(accelerations)
        return kept

    def whole(self) -> list[tuple[State, Record]]:
        """Return the states after the steps and their records; of how they were solved these know nothing."""
        out: list[tuple[State, Record]] = []
        state, begun = self.before, self.begun
        for k in range(len(self.q)):
            if k in self.divided:
                out.append(self.divided[k])
                state = self.divided[k][0]
                continue
            c, dt, alpha = self.formulas[self.which[k]]
            step = self.before.step + k + 1
            # As `StepEquations.kinematics` has it, to the last bit.
            v_star = sum(x * v for x, v in zip(alpha, state.v, strict=False))
            a = self.own[k] if k in self.own else np.asarray(c * (self.v[k] - v_star))
            kin = Kinematics(self.q[k], self.v[k], a, step * dt, step)
            carry = NO_CARRY
            if self.memory is not None and (self.memory[k].size or any(marks[k].size for marks in self.marks)):
                carry = Carry(self.memory[k].reshape(1, -1), tuple(marks[k] for marks in self.marks))
            solution = Solution(
                kin, self.mu[k], tuple(rows[k] for rows in self.decisions), c, dt, _SOLVED, carry, self.candidates[k]
            )
            pairs = np.stack([self.shifted.get(k, kin.q), state.q[0]]), np.stack([kin.v, state.v[0]])
            state = State(kin.t, step, *pairs, carry)
            changed = self.changed.get(k, NO_CHARTS)
            unchanged = state if changed.size else None
            state = charts.change(state, changed) if changed.size else state
            out.append((state, Record(solution, alpha, changed, unchanged, begun=begun)))
            begun = carry if begun.memory.size else begun
        return out


def _equal(one: AllCandidates, other: AllCandidates) -> bool:
    """Whether two sets of candidates are the same."""
    if len(one) != len(other):
        return False
    return all(
        a is b or (a is not None and b is not None and np.array_equal(a, b)) for a, b in zip(one, other, strict=True)
    )
