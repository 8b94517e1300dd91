"""Linearisations made ahead of a sweep, by other threads: they do not depend on what is swept.

The matrix of a step is that of its recorded state. Only solves with it and products wait for the step before, so that
as many steps as there are cores can be assembled and factored at once; the numbers are those of one thread.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

from add.steppers import Linearised, Record, Stepper
from add.system import Assembler
from add.typing import FloatArray

#: Share of the free memory that factors made ahead may take.
SHARE = 0.25


def crew(assembler: Assembler, threads: int) -> list[Assembler]:
    """Return the assembler and its copies: one for each thread, and one whose factors are in use meanwhile.

    Fewer where memory is short; one alone means that nothing is made ahead.
    """
    if threads <= 1:
        return [assembler]
    room = SHARE * _free_memory() / max(assembler.factorization.memory, 1)
    return [assembler, *(assembler.copy() for _ in range(int(min(threads, room))))]


def linearisations(
    stepper: Stepper, assemblers: Sequence[Assembler], theta: FloatArray, records: Iterable[Record]
) -> Iterator[Linearised]:
    """Yield the steps of ``records`` linearised, in their order; each holds until the next is asked for."""
    if len(assemblers) == 1:
        for record in records:
            yield stepper.linearise(assemblers[0], record, theta)
        return
    idle, left = deque(assemblers), iter(records)
    begun: deque[tuple[Future[Linearised], Assembler]] = deque()
    pool = ThreadPoolExecutor(len(assemblers) - 1)
    try:
        while True:
            for record in islice(left, len(idle)):
                assembler = idle.popleft()
                begun.append((pool.submit(stepper.linearise, assembler, record, theta), assembler))
            if not begun:
                return
            found, assembler = begun.popleft()
            yield found.result()
            idle.append(assembler)
    finally:
        pool.shutdown(cancel_futures=True)


def _free_memory() -> float:
    """Return the free memory [bytes]; infinite where the system does not say."""
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return float("inf")
