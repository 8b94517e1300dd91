"""Schedules: the steps of a run that are kept for the reverse sweep, and how; linearisations made ahead of a sweep.

Linearisations are made by other threads: they do not depend on what is swept. The matrix of a step is that of its
recorded state. Only solves with it and products wait for the step before, so that as many steps as there are cores can
be assembled and factored at once; the numbers are those of one thread.
"""

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import final

import numpy as np

from add.compiled.steps import Block
from add.equations.kinematics import State
from add.machine.files import available_memory
from add.simulation import DifferentiableStepper, Linearised, Record
from add.simulation.bdf import state_after, stepwise
from add.simulation.kept_states import KeptBlock, KeptSteps
from add.solve.step_matrix import Assembler
from add.typing import FloatArray

#: A block of compiled steps, or a step that the terms took with the state after it.
Taken = Block | tuple[State, Record]

#: Steps of the terms that are kept together, and made again together.
_TOGETHER = 64


class KeptRun(ABC):
    """The steps of a segment on their way from the forward run to the reverse sweep."""

    @abstractmethod
    def append(self, taken: Taken) -> None:
        """Keep a block or a step."""

    @abstractmethod
    def backwards(self) -> Iterator[list[Taken]]:
        """Yield the steps in groups, the last group first; within a group the first step is first."""


@final
class WholeSteps(KeptRun):
    """Keeps every step as it is."""

    def __init__(self) -> None:
        self._steps: list[Taken] = []

    def append(self, taken: Taken) -> None:
        """Keep a block or a step."""
        self._steps.append(taken)

    def backwards(self) -> Iterator[list[Taken]]:
        """Yield one group."""
        yield self._steps


@final
class StatesOfSteps(KeptRun):
    """Keeps states and decisions.

    Parameters
    ----------
    first : State
        Before the first step.
    """

    def __init__(self, first: State) -> None:
        self._kept: list[KeptBlock | KeptSteps | Block] = []
        self._before, self._last = first, first
        self._single: list[tuple[State, Record]] = []

    def append(self, taken: Taken) -> None:
        """Keep a block or a step."""
        if isinstance(taken, Block) and taken.carry:
            for one in stepwise(taken):
                self.append(one)
        elif isinstance(taken, Block):
            self._gather()
            self._kept.append(KeptBlock.of(taken) if taken.stages is None else taken)
            self._before = self._last = state_after(taken, taken.n - 1)
        else:
            self._single.append(taken)
            self._last = taken[0]
            if len(self._single) == _TOGETHER:
                self._gather()

    def _gather(self) -> None:
        if self._single:
            self._kept.append(KeptSteps.of(self._before, self._single))
            self._single, self._before = [], self._last

    def backwards(self) -> Iterator[list[Taken]]:
        """Yield groups of steps, made again."""
        self._gather()
        for kept in reversed(self._kept):
            if isinstance(kept, KeptSteps):
                yield list(kept.whole())
            else:
                yield [kept.whole() if isinstance(kept, KeptBlock) else kept]


class Schedule(ABC):
    """Cuts a run into segments; the reverse sweep recomputes a segment from its first state."""

    @abstractmethod
    def segments(self, n_steps: int) -> list[tuple[int, int]]:
        """Return (first, last) state numbers of consecutive segments, covering 0..n_steps."""

    def keep(self, first: State) -> KeptRun:
        """Return what keeps the steps of a segment that begins with the state ``first``."""
        return WholeSteps()


@final
@dataclass(frozen=True)
class StoreAll(Schedule):
    """Keep every state and record: no recomputation, memory grows with the run."""

    def segments(self, n_steps: int) -> list[tuple[int, int]]:
        """Return one segment."""
        return [(0, n_steps)]


@final
@dataclass(frozen=True)
class States(Schedule):
    """Keep states and decisions alone: 2 n numbers a step, and what contacts decided.

    The sweep makes each record again from them (see `add.simulation.kept_states`), without Newton's method: one
    linearisation a step, as ever, and the same gradient to the last bit. For long runs of small systems.
    """

    def segments(self, n_steps: int) -> list[tuple[int, int]]:
        """Return one segment."""
        return [(0, n_steps)]

    def keep(self, first: State) -> KeptRun:
        """Return what keeps states and decisions."""
        return StatesOfSteps(first)


@final
@dataclass(frozen=True)
class Checkpoints(Schedule):
    """Keep every ``interval``-th state and recompute between them: one more forward run, memory like its square root.

    Attributes
    ----------
    interval : int, optional
        Steps a segment; default the square root of the run's length, which needs least memory.
    """

    interval: int | None = None

    def segments(self, n_steps: int) -> list[tuple[int, int]]:
        """Return segments of ``interval`` steps."""
        size = self.interval or max(1, int(np.ceil(np.sqrt(n_steps))))
        return [(first, min(first + size, n_steps)) for first in range(0, n_steps, size)] or [(0, 0)]


_log = logging.getLogger(__name__)

#: Share of the free memory that factors made ahead may take.
SHARE = 0.25


def prefetch_assemblers(assembler: Assembler, threads: int) -> list[Assembler]:
    """Return the assembler and its copies: one for each thread, and one whose factors are in use meanwhile.

    Fewer where memory is short; one alone means that nothing is made ahead.
    """
    if threads <= 1:
        return [assembler]
    room = SHARE * available_memory() / max(assembler.factorization.memory, 1)
    if room < threads:
        _log.info("memory for the factors of %d of %d steps at once", int(room), threads)
    copies = [assembler.copy() for _ in range(int(min(threads, room)))]
    return [assembler, *(copy for copy in copies if copy is not None)]


def linearisations(
    stepper: DifferentiableStepper, assemblers: Sequence[Assembler], theta: FloatArray, records: Iterable[Record]
) -> Generator[Linearised | None]:
    """Yield the steps of ``records`` linearised, in their order; each holds until the next is asked for."""
    if len(assemblers) == 1:
        for record in records:
            yield stepper.linearise(assemblers[0], record, theta)
        return
    idle, left = deque(assemblers), iter(records)
    begun: deque[tuple[Future[Linearised | None], Assembler]] = deque()
    pool = ThreadPoolExecutor(len(assemblers) - 1)
    try:
        while True:
            for record in islice(left, len(idle)):
                assembler = idle.popleft()
                begun.append((pool.submit(stepper.linearise, assembler, record, theta), assembler))
            if not begun:
                return
            linearised, assembler = begun.popleft()
            yield linearised.result()
            idle.append(assembler)
    finally:
        pool.shutdown(cancel_futures=True)
