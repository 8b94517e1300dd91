"""The errors that `add` raises on purpose; anything else that escapes is a bug."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any, ClassVar


class AddError(Exception):
    """Base of every error that `add` raises on purpose."""

    #: What the command line ends with.
    exit_code: ClassVar[int] = 1


class InputError(AddError):
    """Something given by the user cannot be used.

    Parameters
    ----------
    message : str
        What is wrong, and the remedy where there is one.
    file : path, optional
        The file it is in.
    place : str, optional
        Where in the file, e.g. the JSON path ``bodies.ball.material.young``.
    found, expected : object, optional
        What stands there and what should; written with ``str``, so quote what needs quotes.

    Examples
    --------
    >>> print(InputError("impossible value", file="a.json", place="time.dt", found=-1, expected="a number > 0 [s]"))
    a.json: time.dt: impossible value (found -1; expected a number > 0 [s])
    """

    exit_code: ClassVar[int] = 2

    def __init__(
        self,
        message: str,
        *,
        file: str | PathLike[str] | None = None,
        place: str | None = None,
        found: object = None,
        expected: object = None,
    ) -> None:
        super().__init__(message)  # the message alone: the rest travels in __dict__ when the error is pickled
        self.message = message
        self.file = file
        self.place = place
        self.found = found
        self.expected = expected

    def __str__(self) -> str:
        head = ": ".join(str(part) for part in (self.file, self.place, self.message) if part is not None)
        named = (("found", self.found), ("expected", self.expected))
        tail = "; ".join(f"{name} {value}" for name, value in named if value is not None)
        return f"{head} ({tail})" if tail else head


@contextmanager
def naming(place: str | None = None, file: str | PathLike[str] | None = None) -> Iterator[None]:
    """Let input errors say their place, if one is given, and the file where they know none."""
    try:
        yield
    except InputError as error:
        error.place = error.place if place is None else place
        error.file = error.file or file
        raise


def require_known(names: Iterable[str], known: Collection[str], message: str, **where: Any) -> None:
    """Refuse a name that is not among those that are known."""
    for name in names:
        if name not in known:
            raise InputError(message, found=name, expected=", ".join(known), **where)


def in_short(text: object) -> str:
    """Return what an error of another package says, on one line, or its name where it says nothing."""
    return " ".join(str(text).split())[:200] or type(text).__name__


class OutOfMemory(AddError):
    """The memory was not enough; the message says what is kept."""

    exit_code: ClassVar[int] = 3


class SolverError(AddError):
    """A solve or an optimisation did not arrive; the message names the step, the number, the limit and a remedy."""

    exit_code: ClassVar[int] = 3
