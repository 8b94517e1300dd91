"""The time that numba compiles, announced and kept out of the time of the steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import final

from numba.core.event import Event, Listener, install_listener


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
