"""Who waits for numba should know."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import final

from numba.core.event import Event, Listener, install_listener


@contextmanager
def first_compilation(say: Callable[[], None]) -> Iterator[None]:
    """Call ``say`` once, before the first kernel within is compiled; not for one that comes from numba's cache."""
    with install_listener("numba:compile", _First(say)):
        yield


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
