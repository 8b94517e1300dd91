"""Blocks of compiled steps as states and records, made where they are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import final, overload

import numpy as np

from add.compiled.newton import AT_ROUND_OFF
from add.compiled.run import Block
from add.equations import charts
from add.equations.kinematics import Kinematics, State
from add.simulation.derivative import Solution
from add.simulation.stepper import NO_CHARTS, Record
from add.solve.step_equations import NewtonReport, Status
from add.typing import FloatArray, IntArray

#: Compiled steps have none.
_NO_MULTIPLIERS: FloatArray = np.zeros(0)


def state_after(block: Block, k: int) -> State:
    """Return the state after step ``k`` of a block."""
    steps, timing = block.steps, block.timing
    step = timing.first + k + 1
    if steps.turned[k].any():
        return charts.change(_unchanged(block, k), turned(block, k))
    before = (steps.states_q[k - 1], steps.states_v[k - 1]) if k else (block.q, block.v)
    q = np.concatenate([steps.q[k], before[0]]).reshape(2, -1)
    v = np.concatenate([steps.v[k], before[1]]).reshape(2, -1)
    return State(step * timing.dt, step, q, v)


def record_of(block: Block, k: int) -> Record:
    """Return the record of step ``k`` of a block."""
    steps, timing = block.steps, block.timing
    step = timing.first + k + 1
    row = 0 if step == 1 else 1
    status, iterations, factorizations, worst, _ = steps.counts[k].tolist()
    merits = tuple(steps.merits[k, : iterations + 1].tolist())
    report = NewtonReport(
        Status.ROUND_OFF if status == AT_ROUND_OFF else Status.CONVERGED,
        iterations, factorizations, merits[-1], float(steps.tolerance[k]), worst, 0, merits,
    )  # fmt: skip
    kin = Kinematics(steps.q[k], steps.v[k], steps.a[k], step * timing.dt, step)
    c, alphas = float(timing.c[row]), (float(timing.alpha_0[row]), float(timing.alpha_1[row]))
    solution = Solution(kin, _NO_MULTIPLIERS, block.decisions(k), c, timing.dt, report, candidates=block.candidates)
    alpha: tuple[float, ...] = alphas if alphas[1] else alphas[:1]
    if not steps.turned[k].any():
        return Record(solution, alpha)
    return Record(solution, alpha, turned(block, k), _unchanged(block, k))


def turned(block: Block, k: int) -> IntArray:
    """Return the first coordinates of the rotation vectors that change chart after step ``k`` of a block."""
    chosen = block.steps.turned[k]
    return block.system.system.rotations[chosen] if chosen.any() else NO_CHARTS


def _unchanged(block: Block, k: int) -> State:
    """Return the state after step ``k`` before its change of chart."""
    steps, timing = block.steps, block.timing
    before = (steps.states_q[k - 1], steps.states_v[k - 1]) if k else (block.q, block.v)
    step = timing.first + k + 1
    return State(step * timing.dt, step, np.stack([steps.q[k], before[0]]), np.stack([steps.v[k], before[1]]))


def stepwise(taken: Block | tuple[State, Record]) -> Iterator[tuple[State, Record]]:
    """Yield the steps of a block, or the one step, with the states after them."""
    if isinstance(taken, Block):
        for k in range(taken.n):
            yield state_after(taken, k), record_of(taken, k)
    else:
        yield taken


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
    def __getitem__(self, key: slice) -> Records: ...

    def __getitem__(self, key: int | slice) -> Record | Records:
        if isinstance(key, slice):
            return Records(self._parts[key])
        part = self._parts[key]
        return record_of(*part) if isinstance(part, tuple) else part

    def __iter__(self) -> Iterator[Record]:
        return (record_of(*part) if isinstance(part, tuple) else part for part in self._parts)

    def blocks(self) -> Iterator[tuple[int, Block | None, int]]:
        """Yield what lies behind the records, the last first: number of the first record, the block, how many steps.

        Records of no block, and those of a block that is not here from its first step on, come one by one, with None.
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
        return isinstance(part, tuple) and part[0] is block and part[1] == 0
