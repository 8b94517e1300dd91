"""Tables of numbers in CSV files: a line of headings, then one row a frame, the time first."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from add.errors import InputError
from add.machine.files import most_of_memory, read_regular

#: Columns of a table that somebody may have meant.
MOST_COLUMNS = 10_000
#: Memory that reading takes, in sizes of the file: every number as one of Python's.
_MEMORY = 30.0


@dataclass(frozen=True)
class Header:
    """The headings of a file whose rows are still to be read.

    Parameters
    ----------
    file : for messages
    line : its number, from 1
    columns : (nc,) unique headings, "time_s" first
    rows : line number and cells of what follows
    """

    file: str
    line: int
    columns: tuple[str, ...]
    rows: Iterator[tuple[int, list[str]]]

    def fail(self, message: str, column: int | None = None, **said: object) -> InputError:
        """Return the error of the headings, or of one by its number from 0."""
        place = f"line {self.line}" + ("" if column is None else f", column {column + 1}")
        return InputError(message, file=self.file, place=place, **said)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Table:
    """The rows of a file.

    Parameters
    ----------
    header : what the columns are
    lines : (nf,) where the rows stand, from 1
    values : (nf, nc) NaN where a cell is blank; the first column increases strictly [s]
    """

    header: Header
    lines: list[int]
    values: NDArray[np.float64]

    def place(self, row: int, column: int) -> str:
        """The place of a cell, for messages."""
        return f"line {self.lines[row]}, column {column + 1} ({self.header.columns[column]})"


def read_header(file: str, rename: Mapping[str, str] | None = None) -> Header:
    """Open a table and read its headings.

    Blank lines and lines that start with `#` are skipped; UTF-8 with or without a byte-order mark; LF or CRLF.

    Parameters
    ----------
    file : path
    rename : heading in the file -> heading as `Header.columns` has it

    Raises
    ------
    InputError : missing or unreadable, empty, not separated by commas, without the time, or with a heading twice
    """
    rows = _rows(_text(file), file)
    try:
        line, columns = next(rows)
    except StopIteration:
        raise InputError("the file is empty", file=file, expected="a header line and frames") from None
    for name in rename or ():
        if name not in columns:
            raise InputError(
                "no such column to rename",
                file=file,
                place=f"line {line}",
                found=", ".join(map(repr, columns)),
                expected=repr(name),
            )
    columns = [(rename or {}).get(name, name) for name in columns]
    if columns[0] != "time_s":
        only = len(columns) == 1 and any(mark in columns[0] for mark in ";\t")
        raise InputError(
            "the columns are not separated by commas" if only else "the first column is not the time",
            file=file,
            place=f"line {line}, column 1",
            found=repr(columns[0][:60]),
            expected="'time_s'",
        )
    if len(columns) > MOST_COLUMNS:
        raise InputError(
            "too many columns", file=file, place=f"line {line}", found=len(columns), expected=f"at most {MOST_COLUMNS}"
        )
    seen: set[str] = set()
    for column, name in enumerate(columns):
        seen.add(name)
        if len(seen) <= column:
            raise InputError(
                "two columns have the same name",
                file=file,
                place=f"line {line}, column {column + 1}",
                found=f"{name!r}, also in column {columns.index(name) + 1}",
                expected="unique columns",
            )
    return Header(file, line, tuple(columns), rows)


def read_rows(header: Header) -> Table:
    """Read the rows below the headings, at least one, times strictly increasing."""
    lines: list[int] = []
    values: list[list[float]] = []
    for line, cells in header.rows:
        if len(cells) != len(header.columns):
            raise InputError(
                "wrong number of cells",
                file=header.file,
                place=f"line {line}",
                found=len(cells),
                expected=f"{len(header.columns)}, as in the header",
            )
        lines.append(line)
        values.append([_number(cell, column, header, line) for column, cell in enumerate(cells)])
    if not lines:
        raise InputError(
            "no frames after the header", file=header.file, place=f"line {header.line}", found=0, expected=">= 1 frame"
        )
    table = Table(header, lines, np.array(values).reshape(len(lines), len(header.columns)))
    _check_times(table.values[:, 0], lines, header.file)
    return table


def _text(file: str) -> str:
    try:
        data = read_regular(file, most=most_of_memory(_MEMORY))
    except FileNotFoundError as error:
        raise InputError("no such file", file=file, expected="a CSV recording") from error
    except IsADirectoryError as error:
        raise InputError("is a directory", file=file, expected="a CSV recording") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError("cannot read the file", file=file, found=reason) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = 1 + data.count(b"\n", 0, error.start)
        raise InputError(
            "not UTF-8 text",
            file=file,
            place=f"line {line}",
            found=f"byte 0x{data[error.start]:02x}",
            expected="UTF-8 (save the file as 'CSV UTF-8')",
        ) from error


def _rows(text: str, file: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and stripped cells of every line that is neither blank nor a comment."""
    # One csv.reader for each line: line numbers count comments, and a stray quote cannot swallow the rest of the file.
    for number, line in enumerate(re.split(r"\r\n|\n|\r", text), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            cells = next(csv.reader([line], strict=True, skipinitialspace=True))
        except csv.Error as error:
            raise InputError(
                "not a line of CSV", file=file, place=f"line {number}", found=str(error), expected="closed quotes"
            ) from error
        yield number, [cell.strip() for cell in cells]


def _number(cell: str, column: int, header: Header, line: int) -> float:
    if not cell:
        return math.nan
    try:
        value = math.nan if "_" in cell else float(cell)  # float() takes "1_000" for a number
        wrong = "not a number" if "_" in cell else "infinite value" if math.isinf(value) else ""
    except ValueError:
        wrong = "not a number"
    if wrong:
        raise InputError(
            wrong,
            file=header.file,
            place=f"line {line}, column {column + 1} ({header.columns[column]})",
            found=repr(cell[:60]),
            expected="a finite number" if column == 0 else "a finite number, or a blank cell where it is missing",
        )
    return value


def _check_times(times: NDArray[np.float64], lines: list[int], file: str) -> None:
    for frame, line in enumerate(lines):
        if math.isnan(times[frame]):
            raise InputError(
                "the time is missing", file=file, place=f"line {line}, column 1 (time_s)", expected="a finite number"
            )
        if frame and times[frame] <= times[frame - 1]:
            verb = "repeats" if times[frame] == times[frame - 1] else "runs backwards"
            raise InputError(
                f"time {verb}",
                file=file,
                place=f"line {line}, column 1 (time_s)",
                found=f"{times[frame]} s after {times[frame - 1]} s in line {lines[frame - 1]}",
                expected="strictly increasing times",
            )
