"""Tables of numbers between other lines of a text: cells with their places, times on their grid."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from add.errors import InputError
from add.mocap.formats.base import Capture
from add.typing import FloatArray

_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")


class Text(NamedTuple):
    """The lines of a file, and what separates their cells.

    Parameters
    ----------
    file : path, for messages
    lines : without their ends
    delimiter : "," ";" or a tab
    comments : whether lines that begin with `#` count as blank
    """

    file: str
    lines: Sequence[str]
    delimiter: str
    comments: bool = False

    @staticmethod
    def of(capture: Capture, by: str) -> Text:
        """Split as a line says that is known to have several cells.

        Parameters
        ----------
        capture : the file
        by : that line
        """
        counts = {mark: by.count(mark) for mark in ("\t", ";", ",")}
        return Text(capture.file, capture.lines, max(counts, key=lambda mark: counts[mark]))

    def cells(self, index: int) -> list[str]:
        """Return the cells of a line, from 0, without blanks around them; quotes taken off."""
        line = self.lines[index]
        if '"' not in line:
            return [cell.strip() for cell in line.split(self.delimiter)]
        try:
            cells = next(csv.reader([line], strict=True, skipinitialspace=True, delimiter=self.delimiter))
        except csv.Error as error:
            raise InputError(
                "not a line of cells", place=f"line {index + 1}", found=error, expected="closed quotes"
            ) from error
        return [cell.strip() for cell in cells]

    def is_blank(self, index: int) -> bool:
        """Whether nothing stands in a line but separators, or a comment."""
        line = self.lines[index]
        return not line.strip(f" {self.delimiter}\t\r,;") or (self.comments and line.lstrip().startswith("#"))

    def fail(
        self, message: str, index: int, column: int | None = None, heading: str = "", **said: object
    ) -> InputError:
        """Return an error in a line, and a column with its heading, both from 0."""
        place = f"line {index + 1}" + ("" if column is None else f", column {column + 1}")
        return InputError(message, place=place + (f" ({heading})" if heading else ""), **said)  # type: ignore[arg-type]

    def grid(self, first: int, last: int, width: int, headings: Sequence[str], *, longer: bool = False) -> Grid:
        """Return the numbers of lines [first, last), blank lines left out; a blank or NaN cell is NaN.

        Parameters
        ----------
        first, last : lines, from 0
        width : number of cells that count; empty ones may follow
        headings : of the columns, for messages
        longer : whether cells beyond may hold something

        Raises
        ------
        InputError
            At a cell that is no number, or a line with too few or too many cells.
        """
        rows = [index for index in range(first, last) if not self.is_blank(index)]
        if not rows:
            raise self.fail("no frames after the header", first - 1, found=0, expected=">= 1 frame")
        values = np.empty((len(rows), width))
        for row, index in enumerate(rows):
            cells = self.cells(index)
            if len(cells) < width or (not longer and any(cells[width:])):
                expected = f"{width}, as in the header (is the file whole?)"
                raise self.fail("wrong number of cells", index, found=len(cells), expected=expected)
            values[row] = self._numbers(cells[:width], index, headings)
        return Grid(self, rows, values, tuple(headings))

    def _numbers(self, cells: list[str], index: int, headings: Sequence[str]) -> FloatArray | list[float]:
        try:
            numbers = np.array([float(cell) if cell else math.nan for cell in cells])
            if not np.isinf(numbers).any() and "_" not in self.lines[index]:  # float() takes "1_000" for a number
                return numbers
        except ValueError:
            pass
        return [self._number(cell, index, column, headings) for column, cell in enumerate(cells)]

    def _number(self, cell: str, index: int, column: int, headings: Sequence[str]) -> float:
        if not cell:
            return math.nan
        text = cell.replace(",", ".") if self.delimiter == ";" and _DECIMAL_COMMA.fullmatch(cell) else cell
        try:
            value = math.nan if "_" in text else float(text)
            wrong = "not a number" if "_" in text else "infinite value" if math.isinf(value) else ""
        except ValueError:
            wrong = "not a number"
        if wrong:
            heading = headings[column] if column < len(headings) else ""
            expected = "a finite number, or a blank cell where it is missing"
            raise self.fail(wrong, index, column, heading, found=repr(cell[:60]), expected=expected)
        return value


@final
@dataclass(frozen=True, eq=False)
class Grid:
    """Numbers of lines of a text.

    Parameters
    ----------
    text : where they stand
    rows : (n,) lines, from 0
    values : (n, width)
    headings : of the columns
    """

    text: Text
    rows: list[int]
    values: FloatArray
    headings: tuple[str, ...]

    def fail(self, message: str, row: int, column: int, **said: object) -> InputError:
        """Return an error in a cell."""
        return self.text.fail(message, self.rows[row], column, self.headings[column], **said)

    def increasing(self, column: int, what: str) -> FloatArray:
        """Return a column that has to be there in every row and to increase.

        Raises
        ------
        InputError
            At the first row where it does not.
        """
        values = self.values[:, column]
        for row, value in enumerate(values.tolist()):
            if math.isnan(value):
                raise self.fail(f"the {what} is missing", row, column, expected="a finite number")
            if row and value <= values[row - 1]:
                verb = "repeats" if value == values[row - 1] else "runs backwards"
                both = f"{value:.10g} after {values[row - 1]:.10g} in line {self.rows[row - 1] + 1}"
                raise self.fail(f"the {what} {verb}", row, column, found=both, expected="increasing ones")
        return values

    def columns(self, names: Sequence[str]) -> FloatArray:
        """Return the columns (n, k) of some headings."""
        return self.values[:, [self.headings.index(name) for name in names]]

    def digits(self, column: int) -> int:
        """Return the largest number of decimals that a column is written with."""
        most = 0
        for index in self.rows[:1000]:
            cell = self.text.cells(index)[column].replace(",", ".")
            most = max(most, len(cell.partition(".")[2]) if "e" not in cell.lower() else 15)
        return most


def positive(text: str, what: str, place: str) -> float:
    """Return a number above 0 of a header.

    Raises
    ------
    InputError
    """
    try:
        value = float(text.replace(",", "."))
    except ValueError:
        value = math.nan
    if not (0.0 < value < math.inf):
        raise InputError(f"bad {what}", place=place, found=repr(text[:60]), expected="a number above 0")
    return value


def whole(text: str, what: str, place: str) -> int:
    """Return a whole number of a header, 0 or more.

    Raises
    ------
    InputError
    """
    if not text.isascii() or not text.isdigit():
        raise InputError(f"bad {what}", place=place, found=repr(text[:60]), expected="a whole number")
    return int(text)
