"""Compilation of steps in several processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, final

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
    names, seconds = [_name(function) for function, _ in functions()], {}
    # Steps, and forces of contact, take longest, and their derivatives call much of the same.
    first = [k for k, name in enumerate(names) if name in ("body_family.forces", "steps.take_steps")]
    order = [*first, *(k for k in range(len(names)) if k not in first)]
    with LocalProcesses(processes).session(Compilation()) as session:
        for number, spent in session.spread(order):
            seconds[names[number]] = spent
            progress(len(seconds), len(order))
    available.cache_clear()
    return seconds


def _name(function: Any) -> str:
    """Return a function's name with that of its file."""
    file, name = (text.rpartition(".")[2] for text in (function.py_func.__module__, function.py_func.__qualname__))
    return f"{file}.{name.lstrip('_')}"
