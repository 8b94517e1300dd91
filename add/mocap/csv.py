"""Plain CSV recordings: `time_s`, then three columns `<marker>_x_m`, `<marker>_y_m`, `<marker>_z_m` a marker."""

from __future__ import annotations

import csv
import math
import os
import re

import numpy as np
from numpy.typing import NDArray

from add.errors import InputError
from add.mocap._table import Header, read_header, read_rows
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
    header = read_header(file)
    names, columns = _markers(header, unit)
    table = read_rows(header)
    positions = table.values[:, columns] / _PER_METRE[unit]
    valid = np.asarray(~np.isnan(positions).any(axis=2))
    if not valid.any():
        raise InputError(
            "every sample of every marker is missing",
            file=file,
            found=f"{len(table.lines)} frames of {len(names)} markers without a complete x, y, z",
            expected="at least one sample",
        )
    return Recording(names, table.values[:, 0], positions, valid, file)


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


def _markers(header: Header, unit: str) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Marker names and, for each, the columns of x, y, z."""
    file = header.file
    markers: dict[str, dict[str, int]] = {}
    for column, name in enumerate(header.columns[1:], start=1):
        place = f"line {header.line}, column {column + 1}"
        match = _COLUMN.fullmatch(name)
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
        raise InputError("no markers in the header", file=file, place=f"line {header.line}", expected=expected)
    for marker, axes in markers.items():
        lacking = [axis for axis in "xyz" if axis not in axes]
        if lacking:
            raise InputError(
                f"marker {marker!r} lacks an axis",
                file=file,
                place=f"line {header.line}",
                found=f"only {', '.join(sorted(axes))}",
                expected=" and ".join(f"'{marker}_{axis}_{unit}'" for axis in lacking),
            )
    return tuple(markers), np.array([[axes[axis] for axis in "xyz"] for axes in markers.values()])
