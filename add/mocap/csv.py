"""Plain CSV recordings: `time_s`, then three columns `<marker>_x_m`, `<marker>_y_m`, `<marker>_z_m` a marker."""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from add.errors import InputError
from add.mocap.recording import Recording

__all__ = ["read_csv", "write_csv"]

_PER_METRE = {"m": 1.0, "cm": 100.0, "mm": 1000.0}
_COLUMN = re.compile(r"(?P<marker>.+)_(?P<axis>[xyz])_(?P<unit>[A-Za-z]+)")


def read_csv(path: str | os.PathLike[str], *, unit: str = "m") -> Recording:
    """Read a recording from a CSV file.

    The header names `time_s` first, then `<marker>_<axis>_<unit>` for the axes x, y, z of every marker, in any order.
    A sample of which any coordinate is blank or NaN is missing. Blank lines and lines that start with `#` are skipped;
    UTF-8 with or without a byte-order mark; LF or CRLF.

    Parameters
    ----------
    path : the file
    unit : "m", "cm" or "mm", the suffix of the columns; positions are converted to metres

    Returns
    -------
    Recording with `source` = the path as given

    Raises
    ------
    InputError : one line with file, line and column, what was found and what was expected
    """
    file = os.fspath(path)
    if unit not in _PER_METRE:
        raise InputError("unknown unit of length", file=file, found=repr(unit), expected="'m', 'cm' or 'mm'")
    rows = _rows(_text(file), file)
    try:
        line, header = next(rows)
    except StopIteration:
        raise InputError("the file is empty", file=file, expected="a header line and frames") from None
    names, columns = _header(header, unit, file, line)
    lines, table = _table(rows, header, file)
    if not lines:
        raise InputError("no frames after the header", file=file, place=f"line {line}", found=0, expected=">= 1 frame")
    _check_times(table[:, 0], lines, file)
    positions = table[:, columns] / _PER_METRE[unit]
    valid = np.asarray(~np.isnan(positions).any(axis=2))
    if not valid.any():
        raise InputError(
            "every sample of every marker is missing",
            file=file,
            found=f"{len(lines)} frames of {len(names)} markers without a complete x, y, z",
            expected="at least one sample",
        )
    return Recording(names, table[:, 0], positions, valid, file)


def write_csv(path: str | os.PathLike[str], recording: Recording) -> None:
    """Write a recording in metres so that `read_csv` gives back the same bits; missing samples are blank cells."""
    file = os.fspath(path)
    header = ["time_s", *(f"{name}_{axis}_m" for name in recording.names for axis in "xyz")]
    try:
        with open(file, "w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(header)
            for time, frame in zip(recording.times.tolist(), recording.positions, strict=True):
                # repr of a float is the shortest text that reads back as the same float
                cells = ("" if math.isnan(value) else repr(value) for value in frame.ravel().tolist())
                writer.writerow([repr(time), *cells])
    except OSError as error:
        raise InputError("cannot write the file", file=file, found=error.strerror) from error


def _text(file: str) -> str:
    try:
        data = Path(file).read_bytes()
    except FileNotFoundError as error:
        raise InputError("no such file", file=file, expected="a CSV recording") from error
    except IsADirectoryError as error:
        raise InputError("is a directory", file=file, expected="a CSV recording") from error
    except OSError as error:
        raise InputError("cannot read the file", file=file, found=error.strerror) from error
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


def _header(header: list[str], unit: str, file: str, line: int) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Marker names and, for each, the columns of x, y, z."""
    if header[0] != "time_s":
        only = len(header) == 1 and any(mark in header[0] for mark in ";\t")
        raise InputError(
            "the columns are not separated by commas" if only else "the first column is not the time",
            file=file,
            place=f"line {line}, column 1",
            found=repr(header[0][:60]),
            expected="'time_s'",
        )
    markers: dict[str, dict[str, int]] = {}
    for column, name in enumerate(header[1:], start=1):
        place = f"line {line}, column {column + 1}"
        match = _COLUMN.fullmatch(name)
        if name in header[:column]:
            raise InputError(
                "two columns have the same name",
                file=file,
                place=place,
                found=f"{name!r}, also in column {header.index(name) + 1}",
                expected="unique columns",
            )
        if match is None:
            raise InputError(
                "not the coordinate of a marker",
                file=file,
                place=place,
                found=repr(name),
                expected=f"'<marker>_x_{unit}', '<marker>_y_{unit}' or '<marker>_z_{unit}'",
            )
        if match["unit"] != unit:
            other = f" (or read it with unit={match['unit']!r})" if match["unit"] in _PER_METRE else ""
            raise InputError(
                "wrong unit of a column",
                file=file,
                place=place,
                found=repr(name),
                expected=f"'{match['marker']}_{match['axis']}_{unit}'{other}",
            )
        markers.setdefault(match["marker"], {})[match["axis"]] = column
    if not markers:
        expected = f"'<marker>_x_{unit}', '<marker>_y_{unit}', '<marker>_z_{unit}'"
        raise InputError("no markers in the header", file=file, place=f"line {line}", expected=expected)
    for marker, axes in markers.items():
        lacking = [axis for axis in "xyz" if axis not in axes]
        if lacking:
            raise InputError(
                f"marker {marker!r} lacks an axis",
                file=file,
                place=f"line {line}",
                found=f"only {', '.join(sorted(axes))}",
                expected=" and ".join(f"'{marker}_{axis}_{unit}'" for axis in lacking),
            )
    return tuple(markers), np.array([[axes[axis] for axis in "xyz"] for axes in markers.values()])


def _table(
    rows: Iterator[tuple[int, list[str]]], header: list[str], file: str
) -> tuple[list[int], NDArray[np.float64]]:
    """Line numbers and values (n, columns); NaN where a cell is blank."""
    lines: list[int] = []
    table: list[list[float]] = []
    for line, cells in rows:
        if len(cells) != len(header):
            raise InputError(
                "wrong number of cells",
                file=file,
                place=f"line {line}",
                found=len(cells),
                expected=f"{len(header)}, as in the header",
            )
        lines.append(line)
        table.append([_number(cell, column, header, file, line) for column, cell in enumerate(cells)])
    return lines, np.array(table).reshape(len(lines), len(header))


def _number(cell: str, column: int, header: list[str], file: str, line: int) -> float:
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
            file=file,
            place=f"line {line}, column {column + 1} ({header[column]})",
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
