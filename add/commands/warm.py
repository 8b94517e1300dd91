"""Compilation: all of it at once, and the time it takes on the way."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, final

from numba.core.event import Event, Listener, install_listener

from add.commands.parallel.workers import LocalProcesses, Work
from add.compiled.available import available, functions
from add.kernels.caching import executable


@final
class Compilation(Work[int, float]):
    """Functions of `add.compiled` by number."""

    def prepare(self) -> Callable[[int], float]:
        """Return what compiles one, keeps it on disk and says how many processor seconds that took."""

        def compile_function(number: int) -> float:
            function, signature = functions()[number]
            began = time.process_time()
            executable(function, signature)
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


@contextmanager
def first_compilation(say: Callable[[], None]) -> Iterator[None]:
    """Call ``say`` once, before the first kernel within is compiled; not for one that comes from numba's cache."""
    with install_listener("numba:compile", _First(say)):
        yield


@contextmanager
def kernel_clock() -> Iterator[Callable[[], float]]:
    """Yield the wall time that numba has needed within for compiling kernels and loading them from its cache [s].

    Both are done under its compiler lock; a kernel that calls others brings them along, and is counted once.
    """
    clock = _Clock()
    with install_listener("numba:compiler_lock", clock):
        yield lambda: clock.seconds


@final
class _First(Listener):
    def __init__(self, say: Callable[[], None]) -> None:
        self._say: Callable[[], None] | None = say

    def on_start(self, event: Event) -> None:
        if self._say is not None:
            say, self._say = self._say, None
            say()

    def on_end(self, event: Event) -> None:
        pass


@final
class _Clock(Listener):
    """Adds up the outermost events."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth, self._begin = 0, 0.0

    def on_start(self, event: Event) -> None:
        if not self._depth:
            self._begin = time.perf_counter()
        self._depth += 1

    def on_end(self, event: Event) -> None:
        self._depth -= 1
        if not self._depth:
            self.seconds += time.perf_counter() - self._begin
