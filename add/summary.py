"""Summaries of a few lines, for the prompt of Python and for notebooks, and of a few words, for messages."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from html import escape
from inspect import cleandoc
from typing import Any, NamedTuple

#: Rows and characters of a row above which a summary is cut.
MOST_ROWS, MOST_CHARACTERS = 12, 100


class Summary(NamedTuple):
    """A title, and rows of a name and a text.

    Examples
    --------
    >>> print(Summary("Trajectory", (("states", "201"), ("time", "0 to 2 s"))))
    Trajectory
      states  201
      time    0 to 2 s
    """

    title: str
    rows: tuple[tuple[str, str], ...]

    def _shown(self) -> list[tuple[str, str]]:
        rows = [(name, _cut(text)) for name, text in self.rows[:MOST_ROWS]]
        if len(self.rows) > MOST_ROWS:
            rows.append(("...", f"{len(self.rows) - MOST_ROWS} more"))
        return rows

    def __str__(self) -> str:
        rows = self._shown()
        width = max((len(name) for name, _ in rows), default=0)
        return "\n".join([self.title, *(f"  {name:<{width}}  {text}" for name, text in rows)])

    def html(self) -> str:
        """Return the summary as a table."""
        rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in self._shown())
        return f"<table><caption>{escape(self.title)}</caption>{rows}</table>"


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 3] + "..."


class Summarised(ABC):
    """Shows as its summary instead of all of its numbers."""

    @abstractmethod
    def summary(self) -> Summary:
        """Return a few lines."""

    def __repr__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        return self.summary().html()


def as_point(values: Iterable[float]) -> str:
    """Write the components of a point or vector, to four digits."""
    return "(" + ", ".join(f"{float(x) + 0.0:.4g}" for x in values) + ")"


def counted(n: int, noun: str) -> str:
    """Write how many there are of something.

    Examples
    --------
    >>> counted(1, "step"), counted(2, "step")
    ('1 step', '2 steps')
    """
    return f"{n} {noun}" + ("" if n == 1 else "s")


def few(texts: Sequence[str], most: int, what: str = "", by: str = ", ") -> str:
    """Write the first of some texts, and how many more there are.

    Examples
    --------
    >>> few(["a", "b"], 2), few(["a", "b", "c"], 1, " pairs", "; ")
    ('a, b', 'a and 2 more pairs')
    """
    return by.join(texts[:most]) + (f" and {len(texts) - most} more{what}" if len(texts) > most else "")


def fields_of(item: object, *keys: str) -> dict[str, Any]:
    """Return some attributes by their names, as results have them."""
    return {key: getattr(item, key) for key in keys}


def described(docstring: str | None, title: str = "Attributes") -> tuple[str | None, dict[str, str]]:
    """Return what a docstring says, and of each name in one of its sections (``a, b : text`` is of two)."""
    about, _, section = cleandoc(docstring or "").partition(f"{title}\n{'-' * len(title)}\n")
    texts: dict[str, str] = {}
    names: list[str] = []
    for line in section.splitlines():
        if line[:1].strip():
            names, line = line.partition(" : ")[0].split(", "), line.partition(" : ")[2]
        texts |= {name: f"{texts.get(name, '')} {line.strip()}".strip() for name in names}
    return about.rstrip() if texts else docstring, texts
