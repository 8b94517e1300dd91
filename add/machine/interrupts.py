"""How a command is stopped from outside, so that nothing that was finished is lost."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, final

#: Seconds until a signal comes again that came at a bad moment.
AGAIN = 0.002
#: Modules whose functions run where an exception is ignored: compiled code calls them on its way from disk, in and
#: out; the interpreter calls this module's hook.
_IGNORED = (
    "numba.core.serialize",
    "numba.experimental.structref",
    "llvmlite.binding.executionengine",
    "namedtuple_",
    __name__,
)
#: A second Ctrl-C this soon after the first belongs to it: what is kept is being written [s].
GRACE = 2.0


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP, as batch systems and closed terminals send them: an interruption with another exit code."""


def _unsafe(frame: FrameType | None) -> bool:
    """Return whether an exception would be ignored: compiled code converts by Python, or an answer is on its way."""
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith(_IGNORED):
            return True
        frame = frame.f_back
    return False


def _send(number: int) -> None:
    """Send a signal to the main thread, so that it ends a wait there, too."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:
        signal.raise_signal(number)


@final
class _Answer:
    """Turns signals into exceptions, once each; impatience does not cut what the first one began to write."""

    def __init__(self) -> None:
        self._first: float | None = None
        self.stopped = False

    @staticmethod
    def _later(number: int, frame: FrameType | None) -> bool:
        """Send the signal again, a moment later, if an exception would do harm now."""
        if unsafe := _unsafe(frame):
            threading.Timer(AGAIN, _send, (number,)).start()
        return unsafe

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """Answer SIGINT; after `GRACE` another one is meant, and stops the writing, too."""
        if self._later(number, frame):
            return
        now = time.monotonic()
        if self._first is None or now - self._first > GRACE:
            self._first, self.stopped = now, True
            raise KeyboardInterrupt

    def terminate(self, number: int, frame: FrameType | None) -> None:
        """Answer SIGTERM and SIGHUP, and no further one."""
        if self._later(number, frame):
            return
        for each in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, signal.SIG_IGN)
        self.stopped = True
        raise Terminated(signal.Signals(number).name)

    def again(self, error: BaseException | None) -> None:
        """Send a signal again whose exception was ignored: a destructor or a callback of the interpreter got it."""
        self._first, self.stopped = None, False
        number = signal.SIGINT
        if isinstance(error, Terminated):
            number = signal.Signals[str(error)]
            for each in (signal.SIGTERM, signal.SIGHUP):
                signal.signal(each, self.terminate)
        threading.Timer(AGAIN, _send, (number,)).start()


@contextmanager
def stops_are_interruptions() -> Iterator[None]:
    """Answer SIGINT, SIGTERM and SIGHUP within, except those that the calling program answers or ignores already.

    After a stop the process is about to end: what still comes is ignored, so that its exit code stays.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    answer = _Answer()
    wanted = {
        signal.SIGINT: (signal.default_int_handler, answer.interrupt),
        signal.SIGTERM: (signal.SIG_DFL, answer.terminate),
        signal.SIGHUP: (signal.SIG_DFL, answer.terminate),  # ignored under nohup
    }
    before = {number: signal.getsignal(number) for number in wanted}
    ours = {number: handler for number, (usual, handler) in wanted.items() if before[number] is usual}
    report = sys.unraisablehook

    def ignored(what: "sys.UnraisableHookArgs") -> Any:
        stop = issubclass(what.exc_type, KeyboardInterrupt) and ours
        return answer.again(what.exc_value) if stop else report(what)

    for number, handler in ours.items():
        signal.signal(number, handler)
    sys.unraisablehook = ignored
    try:
        yield
    finally:
        sys.unraisablehook = report
        for number in ours:
            signal.signal(number, signal.SIG_IGN if answer.stopped else before[number])


@contextmanager
def stops_wait() -> Iterator[Callable[[], None]]:
    """Let signals wait within, for code of others that an exception at any place would break.

    Yields
    ------
    callable
        Raises what has waited; the end of the context does so, too.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    waiting: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    held = {number: handler for number, handler in before.items() if callable(handler)}

    def hold(number: int, frame: FrameType | None) -> None:
        waiting.append(number)

    def take() -> None:
        for number in held:
            signal.signal(number, hold)

    def give_back() -> None:
        for number, handler in held.items():
            if signal.getsignal(number) is hold:  # an answer may have changed it
                signal.signal(number, handler)

    def answer() -> None:
        while waiting:
            number = signal.Signals(waiting.pop(0))
            give_back()
            try:
                held[number](number, None)
            except BaseException:
                waiting.clear()  # one answer is for all
                raise
            take()

    take()
    try:
        yield answer
    finally:
        give_back()
        answer()
        give_back()


def default_stops() -> None:
    """Let signals stop the process as they do without an answer."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if isinstance(getattr(signal.getsignal(number), "__self__", None), _Answer):
                signal.signal(number, signal.SIG_DFL)
