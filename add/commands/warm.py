"""Compilation of the steps of small systems in several processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import final

from add.commands.parallel.workers import LocalProcesses, Work
from add.compiled.available import available, functions


@final
class Compilation(Work[int, float]):
    """Functions of `add.compiled` by number."""

    def prepare(self) -> Callable[[int], float]:
        """Return what compiles one, keeps it on disk and says how many processor seconds that took."""

        def compile_function(number: int) -> float:
            function, signature = functions()[number]
            began = time.process_time()
            function.compile(signature)
            return time.process_time() - began

        return compile_function


def warm(processes: int, progress: Callable[[int, int], None] = lambda done, total: None) -> dict[str, float]:
    """Compile the steps in so many processes, which takes minutes, and keep them on disk.

    Parameters
    ----------
    processes : number of them
    progress : called after each function with how many are done and how many there are

    Returns
    -------
    Processor seconds by function, in the order in which they were finished; what several of them call counts for the
    one that came first.
    """
    names, seconds = [function.__name__ for function, _ in functions()], {}
    # The equations call much of the same, and would wait for each other: the residual first, the others last.
    order = [0, *range(len(names) - 1, 0, -1)]
    with LocalProcesses(processes).session(Compilation()) as session:
        for number, spent in session.spread(order):
            seconds[names[number]] = spent
            progress(len(seconds), len(order))
    available.cache_clear()
    return seconds
