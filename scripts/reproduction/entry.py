"""What one figure or table of the paper leaves: rows beside the published numbers, pictures, notes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from scripts.reproduction.published import PUBLISHED
from scripts.reproduction.tasks import Tasks

ROOT = Path(__file__).resolve().parents[2]
SCENES = ROOT / "scenes"
MESHES = ROOT / "data" / "meshes"
#: Where experiments that take hours keep what they have, until they are done.
LONG_RUNS = ROOT / "runs" / "reproduction-long"


class Skipped(Exception):
    """An entry cannot run here; the message says why."""


@final
@dataclass(frozen=True)
class Row:
    """One measured number beside a published one.

    Attributes
    ----------
    quantity : str
        What it is, with its unit.
    ours : str
        As it is printed.
    published : str, optional
        Key of `PUBLISHED`; None where nothing was published.
    """

    quantity: str
    ours: str
    published: str | None = None

    def __post_init__(self) -> None:
        if self.published is not None and self.published not in PUBLISHED:
            raise KeyError(self.published)


@final
@dataclass(frozen=True)
class Outcome:
    """What an entry found.

    Attributes
    ----------
    rows : tuple of Row
    images : file name -> caption
    notes : tuple of str
        Sentences under the table: what was bounded and why, what differs.
    values : name -> number or list
        Raw numbers that other entries use.
    """

    rows: tuple[Row, ...]
    images: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)


@final
@dataclass(frozen=True)
class Context:
    """How an entry is to run.

    Attributes
    ----------
    short : bool
        Coarse and in seconds: to see that it works; its numbers say nothing.
    images : Path
        Folder of the pictures.
    values : key of an entry -> its `Outcome.values`
        Of the entries that ran before.
    """

    short: bool
    images: Path
    values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def image(self, name: str) -> Path:
        """Return where a picture goes."""
        self.images.mkdir(parents=True, exist_ok=True)
        return self.images / name

    def tasks(self, key: str) -> Tasks:
        """Return what is kept of the tasks of an experiment that takes hours; of a short run nothing is."""
        return Tasks(None if self.short else LONG_RUNS / f"{key}.jsonl")


@final
@dataclass(frozen=True)
class Entry:
    """One figure or table.

    Attributes
    ----------
    key : str
        Short name, as ``--only`` takes it.
    title : str
    about : str
        What the paper shows and how it is done here.
    run : Context -> Outcome
    long : bool
        Whether it takes hours: `make reproduce-long` runs it, `make reproduce` does not.
    """

    key: str
    title: str
    about: str
    run: Callable[[Context], Outcome]
    long: bool = False


@final
class Clock:
    """Processor seconds of a block of code."""

    seconds = 0.0


@contextmanager
def clock() -> Iterator[Clock]:
    """Time a block in processor seconds, which other programs on the machine disturb less than wall time."""
    found, begin = Clock(), time.process_time()
    try:
        yield found
    finally:
        found.seconds = time.process_time() - begin
