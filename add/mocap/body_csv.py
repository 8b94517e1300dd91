"""Recordings as tables: of markers, and of bodies."""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from add.errors import InputError
from add.mocap._table import Header, Table, read_header, read_rows
from add.mocap.recording import Recording
from add.mocap.take import UNIT, AngleRecording, PoseRecording, off_unit

_POSITION = ("x_m", "y_m", "z_m")
_QUATERNION = ("qw", "qx", "qy", "qz")
_VELOCITY = ("vx_m_s", "vy_m_s", "vz_m_s")
_SPIN_WORLD = ("wx_rad_s", "wy_rad_s", "wz_rad_s")
_SPIN_BODY = ("wx_body_rad_s", "wy_body_rad_s", "wz_body_rad_s")
_SIGMAS = ("sigma_position_m", "sigma_angle_rad")
_COVARIANCE = tuple(f"cov_{i}{j}" for i in range(1, 7) for j in range(i, 7))
_ANGLE, _RATE = "_rad", "_rad_s"


def read_pose_csv(path: str | os.PathLike[str], *, columns: Mapping[str, str] | None = None) -> PoseRecording:
    """Read the pose of a rigid body from a CSV file; rows in which the whole pose is blank are gaps.

    Columns: `time_s` first, then in any order `x_m, y_m, z_m`, `qw, qx, qy, qz`, and, where recorded, the velocity
    `vx_m_s, vy_m_s, vz_m_s` in world axes and the angular velocity, as `wx_rad_s, wy_rad_s, wz_rad_s` in world axes
    or as `wx_body_rad_s, wy_body_rad_s, wz_body_rad_s` in the body's, which is turned into world axes here:
    omega = R omega_body. How sure the pose is: `sigma_position_m` and `sigma_angle_rad`, standard deviations of each
    coordinate, or `cov_11`, `cov_12` to `cov_66`, the upper half of the covariance of x, y, z [m] and of a small
    rotation about the world's x, y, z [rad], as ROS has it. All other columns are kept in `extra` under their names.
    Comments, blank lines and line ends as in `read_csv`.

    Parameters
    ----------
    path : the file
    columns : heading in the file -> heading as above, for files that name them otherwise; units are not converted

    Raises
    ------
    InputError : one line with file, line and column, what was found and what was expected
    """
    header = read_header(os.fspath(path), columns)
    known = (_POSITION, _QUATERNION, _VELOCITY, _SPIN_WORLD, _SPIN_BODY, _SIGMAS, _COVARIANCE)
    given = {group: _complete(header, group) for group in known}
    for group in (_POSITION, _QUATERNION):
        if not given[group]:
            raise header.fail(
                f"the {'position' if group is _POSITION else 'orientation'} is missing",
                expected=", ".join(map(repr, group)),
            )
    if given[_SPIN_WORLD] and given[_SPIN_BODY]:
        raise header.fail(
            "angular velocity in world axes and in those of the body",
            expected=f"either {', '.join(_SPIN_WORLD)} or {', '.join(_SPIN_BODY)}",
        )
    if given[_SIGMAS] and given[_COVARIANCE]:
        raise header.fail(
            "two kinds of errors of the pose",
            expected=f"either {', '.join(_SIGMAS)} or {_COVARIANCE[0]} to {_COVARIANCE[-1]}",
        )
    table = _filled(header, (*_POSITION, *_QUATERNION))
    named = {heading for group in known for heading in group}
    others = [(k, heading) for k, heading in enumerate(header.columns) if k and heading not in named]
    quaternion = _values(table, _QUATERNION)
    frame = off_unit(quaternion)
    if frame is not None:
        raise InputError(
            "not a unit quaternion",
            file=header.file,
            place=f"line {table.lines[frame]}, columns {', '.join(_QUATERNION)}",
            found=f"norm {np.linalg.norm(quaternion[frame]):.6g}",
            expected=f"1 within {UNIT:g}",
        )
    recording = PoseRecording(
        table.values[:, 0],
        _values(table, _POSITION),
        quaternion,
        _values(table, _VELOCITY) if given[_VELOCITY] else None,
        _values(table, _SPIN_WORLD) if given[_SPIN_WORLD] else None,
        {heading: table.values[:, k] for k, heading in others},
        header.file,
        _covariances(table) if given[_SIGMAS] or given[_COVARIANCE] else None,
    )
    if not given[_SPIN_BODY]:
        return recording
    spin = np.einsum("fij,fj->fi", recording.rotations, _values(table, _SPIN_BODY))
    return replace(recording, angular_velocity=spin)


def read_angle_csv(path: str | os.PathLike[str], *, columns: Mapping[str, str] | None = None) -> AngleRecording:
    """Read angles of joints from a CSV file, every cell of it filled.

    Columns: `time_s` first, then `<name>_rad` for every angle and, for all of them or none, its rate `<name>_rad_s` or
    `d<name>_rad_s`. Comments, blank lines and line ends as in `read_csv`.

    Parameters
    ----------
    path : the file
    columns : heading in the file -> heading as above, for files that name them otherwise; units are not converted

    Raises
    ------
    InputError : one line with file, line and column, what was found and what was expected
    """
    header = read_header(os.fspath(path), columns)
    names = tuple(heading.removesuffix(_ANGLE) for heading in header.columns if heading.endswith(_ANGLE))
    if not names:
        raise header.fail("no angles in the header", expected=f"'<name>{_ANGLE}'")
    choices = [[rate for rate in (name + _RATE, "d" + name + _RATE) if rate in header.columns] for name in names]
    rates = [rate for choice in choices for rate in choice]
    known = {"time_s", *(name + _ANGLE for name in names), *rates}
    for column, heading in enumerate(header.columns):
        if heading not in known:
            raise header.fail(
                "not an angle or its rate",
                column,
                found=repr(heading),
                expected=f"'<name>{_ANGLE}', '<name>{_RATE}' or 'd<name>{_RATE}'",
            )
    if rates and any(len(choice) != 1 for choice in choices):
        raise header.fail(
            "not one rate for every angle",
            found=", ".join(map(repr, rates)),
            expected=f"one for each of {', '.join(map(repr, names))}, or none",
        )
    table = _filled(header)
    angles = _values(table, [name + _ANGLE for name in names])
    return AngleRecording(names, table.values[:, 0], angles, _values(table, rates) if rates else None, header.file)


def _complete(header: Header, group: Sequence[str]) -> bool:
    """Whether the columns of a vector are there; some of them alone are an error."""
    present = [heading for heading in group if heading in header.columns]
    if present and len(present) < len(group):
        raise header.fail(
            "a vector lacks components",
            found=f"only {', '.join(map(repr, present))}",
            expected=" and ".join(repr(heading) for heading in group if heading not in present),
        )
    return bool(present)


def _covariances(table: Table) -> NDArray[np.float64]:
    """Return the covariances (nf, 6, 6) that the columns give."""
    if _SIGMAS[0] in table.header.columns:
        sigmas = _values(table, _SIGMAS)
        return np.einsum("fi,ij->fij", np.repeat(sigmas**2, 3, axis=1), np.eye(6))
    out = np.zeros((len(table.lines), 6, 6))
    rows, columns = np.triu_indices(6)
    out[:, rows, columns] = out[:, columns, rows] = _values(table, _COVARIANCE)
    return out


def _filled(header: Header, gaps: Sequence[str] = ()) -> Table:
    """Read the rows, none of whose cells may be blank or NaN; those where all of ``gaps`` are blank are left out."""
    table = read_rows(header)
    if gaps:
        seen: NDArray[np.bool_] = np.asarray(~np.isnan(_values(table, gaps)).all(axis=1))
        if not seen.any():
            raise InputError("the body is seen in no frame", file=header.file, expected="one pose at least")
        lines = [line for line, kept in zip(table.lines, seen, strict=True) if kept]
        table = Table(header, lines, table.values[seen])
    missing = np.argwhere(np.isnan(table.values))
    if len(missing):
        row, column = missing[0]
        raise InputError(
            "a value is missing",
            file=header.file,
            place=table.place(int(row), int(column)),
            expected="a finite number (leave out the lines of frames in which nothing was seen)",
        )
    return table


def _values(table: Table, group: Sequence[str]) -> NDArray[np.float64]:
    return table.values[:, [table.header.columns.index(heading) for heading in group]]


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
    markers: dict[str, dict[str, int]] = {}
    for column, name in enumerate(header.columns[1:], start=1):
        match = _COLUMN.fullmatch(name)
        if match is None:
            raise header.fail(
                "not the coordinate of a marker",
                column,
                found=repr(name),
                expected=f"'<marker>_x_{unit}', '<marker>_y_{unit}' or '<marker>_z_{unit}'",
            )
        if match["unit"] != unit:
            other = f" (or read it with unit={match['unit']!r})" if match["unit"] in _PER_METRE else ""
            raise header.fail(
                "wrong unit of a column",
                column,
                found=repr(name),
                expected=f"'{match['marker']}_{match['axis']}_{unit}'{other}",
            )
        markers.setdefault(match["marker"], {})[match["axis"]] = column
    if not markers:
        expected = f"'<marker>_x_{unit}', '<marker>_y_{unit}', '<marker>_z_{unit}'"
        raise header.fail("no markers in the header", expected=expected)
    for marker, axes in markers.items():
        lacking = [axis for axis in "xyz" if axis not in axes]
        if lacking:
            raise header.fail(
                f"marker {marker!r} lacks an axis",
                found=f"only {', '.join(sorted(axes))}",
                expected=" and ".join(f"'{marker}_{axis}_{unit}'" for axis in lacking),
            )
    return tuple(markers), np.array([[axes[axis] for axis in "xyz"] for axes in markers.values()])
