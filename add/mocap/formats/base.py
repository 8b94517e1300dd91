"""The contract of formats, choices left to the reader, the likeness of a file that nobody knows, and tables of numbers.

A table stands between other lines of a text: cells with their places, times on their grid.
"""

import csv
import math
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, final

import numpy as np

from add.errors import InputError
from add.machine.files import most_of_memory, read_given
from add.mocap.take import Take
from add.typing import FloatArray, require_kind

#: Memory that reading takes, in sizes of the file.
_MEMORY = 30.0


class Choices(NamedTuple):
    """Answers to questions that a file may leave open.

    Parameters
    ----------
    unit : of length; None = the file's own
    up : "x", "y" or "z", the file's axis that points up; None = z, or as the file says
    number_repeated : give tracks that share a name the names `name#1`, `name#2`, instead of refusing them
    """

    unit: str | None = None
    up: str | None = None
    number_repeated: bool = False


@final
@dataclass(frozen=True, eq=False)
class Capture:
    """A file in memory.

    Parameters
    ----------
    file : path, for messages
    data : all of its bytes
    """

    file: str
    data: bytes
    _lines: list[list[str]] = field(default_factory=list, repr=False)

    @staticmethod
    def of(path: str | os.PathLike[str]) -> "Capture":
        """Read a file.

        Raises
        ------
        InputError
            If it is missing, a folder, empty or larger than the memory.
        """
        require_kind(path, (str, os.PathLike), "recording", "the path of a file")
        file = os.fspath(path)
        data = read_given(file, most=most_of_memory(_MEMORY), expected="a recording")
        if not data.strip():
            raise InputError("the file is empty", file=file, expected="a recording")
        return Capture(file, data)

    @property
    def head(self) -> str:
        """The first kilobytes as text, as far as they are any: for the recognition of a format."""
        return self.data[:8192].decode("utf-8-sig", errors="replace")

    @property
    def is_binary(self) -> bool:
        """Whether the first kilobytes are no text."""
        return b"\0" in self.data[:8192]

    @property
    def first_line(self) -> int:
        """Number of the first line that is not blank, from 1."""
        return 1 + self.head[: len(self.head) - len(self.head.lstrip())].count("\n")

    @property
    def lines(self) -> list[str]:
        """The lines of a text, without their ends; LF, CRLF or CR, UTF-8 with or without a byte-order mark.

        Raises
        ------
        InputError
            If it is not UTF-8.
        """
        if not self._lines:
            # Not str.splitlines: it also splits at characters that may stand in a name.
            self._lines.append(self._decoded().replace("\r\n", "\n").replace("\r", "\n").split("\n"))
        return self._lines[0]

    def _decoded(self) -> str:
        if self.data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise InputError("not UTF-8 text", found="UTF-16", expected="UTF-8 (save or export it so)")
        try:
            text = self.data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            start = self.data.rfind(b"\n", 0, error.start) + 1
            raise InputError(
                "not UTF-8 text",
                place=f"line {1 + self.data.count(bytes([10]), 0, error.start)}, byte {error.start - start + 1}",
                found=f"byte 0x{self.data[error.start]:02x}",
                expected="UTF-8 (save or export the file so)",
            ) from error
        if "\0" in text:
            line = 1 + text.count("\n", 0, text.index("\0"))
            raise InputError("not text", place=f"line {line}", found="a zero byte", expected="UTF-8 text")
        return text


class Format(ABC):
    """One kind of file.

    Attributes
    ----------
    name : as people call it
    """

    name: str

    @abstractmethod
    def recognises(self, capture: Capture) -> bool:
        """Whether the content is of this kind, whatever the file is called."""

    @abstractmethod
    def read(self, capture: Capture, choices: Choices) -> Take:
        """Read it.

        Raises
        ------
        InputError
            One line with line and column, what was found and what was expected; `read_take` names the file.
        """


#: First bytes, and what a file is that has them.
_BYTES = (
    (b"PK\x03\x04", "a zip archive or an Excel workbook; export CSV"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook; export CSV"),
    (b"\x1f\x8b", "a gzip archive; unpack it"),
    (b"7z\xbc\xaf", "a 7z archive; unpack it"),
    (b"\x89HDF", "an HDF5 or MATLAB 7.3 file"),
    (b"MATLAB 5.0", "a MATLAB file; export C3D or TSV"),
    (b"Kaydara FBX", "an FBX scene; export C3D or CSV"),
    (b"HIERARCHY", "a BVH skeleton; export C3D or CSV"),
    (b"%PDF", "a PDF"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"{", "JSON"),
    (b"<", "XML or HTML"),
    (b"ply", "a PLY point cloud"),
)
#: Words of a text, and what it then is most likely, with what is wrong.
_WORDS = (
    (r"Format Version", "Motive CSV, but its first cell is not 'Format Version'"),
    (r"Rigid Body Marker|Time \(Seconds\)", "Motive CSV without its header row: export it with the header"),
    (r"Sub Frame", "Vicon CSV without the line 'Trajectories' at its top"),
    (r"MARKER_NAMES|NO_OF_", "Qualisys TSV, but its first word is no key of one"),
    (r"Frame\tTime\t", "Qualisys TSV without its header: export it with the header"),
    (r"PathFileType|DataRate\tCameraRate|Frame#", "TRC, but its first word is not 'PathFileType'"),
    (r"inDegrees|endheader", "an OpenSim MOT or STO file: angles and forces, no markers"),
    (r"_[xyz]_(?:m|cm|mm)\b", "plain CSV whose first column is not 'time_s'"),
)


def likeness(capture: Capture) -> str:
    """Say which kind of file this looks like."""
    data = capture.data
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "UTF-16 text; save or export it as UTF-8"
    for start, name in _BYTES:
        if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(start):
            return name
    if b"\0" in data[:4096]:
        return f"a binary file that begins with {data[:4].hex(' ')}" + (
            ", C3D has 50 in its second byte" if data[1:2] != b"\x50" else ""
        )
    head = capture.head
    for pattern, name in _WORDS:
        if re.search(pattern, head):
            return name
    line = next((line for line in head.splitlines() if line.strip()), "")
    try:
        first = next(csv.reader([line]))[0]
    except (csv.Error, StopIteration, IndexError):
        first = line
    return f"text that begins with {first[:40].strip()!r}"


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
    def of(capture: Capture, by: str) -> "Text":
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

    def grid(self, first: int, last: int, width: int, headings: Sequence[str], *, longer: bool = False) -> "Grid":
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


class Grid(NamedTuple):
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
