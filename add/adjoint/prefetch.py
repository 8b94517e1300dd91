"""Linearisations made ahead of a sweep, by other threads: they do not depend on what is swept.

The matrix of a step is that of its recorded state. Only solves with it and products wait for the step before, so that
as many steps as there are cores can be assembled and factored at once; the numbers are those of one thread.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

from add.machine.resources import available_memory
from add.simulation import DifferentiableStepper, Linearised, Record
from add.solve.step_matrix import Assembler
from add.typing import FloatArray

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
            found, assembler = begun.popleft()
            yield found.result()
            idle.append(assembler)
    finally:
        pool.shutdown(cancel_futures=True)
