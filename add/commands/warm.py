"""Compilation of the steps of small systems in several processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from add.commands.parallel.workers import LocalProcesses, Work
from add.compiled.available import available, compile_function, stages


@final
class Compilation(Work[int, None]):
    """Functions of `add.compiled` by number."""

    def prepare(self) -> Callable[[int], None]:
        """Return what compiles one, and keeps it on disk."""
        return compile_function


def warm(processes: int) -> None:
    """Compile the steps in so many processes, which takes minutes, and keep them on disk."""
    with LocalProcesses(processes).session(Compilation()) as session:
        for stage in stages():
            for _ in session.spread(stage):
                pass
    available.cache_clear()
