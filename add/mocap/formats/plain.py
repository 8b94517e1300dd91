"""Plain CSV files: `time_s`, then coordinates of markers, the pose of a body, or angles, with units in the headings."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import hypot
from typing import NamedTuple, final

import numpy as np

from add.errors import InputError, naming
from add.mocap.formats.base import Capture, Choices, Format, Grid, Text
from add.mocap.formats.tracks import Draft, tracks
from add.mocap.recording import Recording
from add.mocap.take import UNIT, AngleRecording, PoseRecording, Take, off_unit
from add.typing import BoolArray, FloatArray, IntArray

#: Columns of a table that somebody may have meant.
MOST_COLUMNS = 10_000
_UNITS = ("m", "cm", "mm")
_UNIT = re.compile(r"_[xyz]_(m|cm|mm)$")
_COLUMN = re.compile(r"(?P<marker>.+)_(?P<axis>[xyz])_(?P<unit>[A-Za-z]+)")
#: Columns of poses.
POSITION = ("x_m", "y_m", "z_m")
QUATERNION = ("qw", "qx", "qy", "qz")
VELOCITY = ("vx_m_s", "vy_m_s", "vz_m_s")
SPIN_WORLD = ("wx_rad_s", "wy_rad_s", "wz_rad_s")
_SPIN_BODY = ("wx_body_rad_s", "wy_body_rad_s", "wz_body_rad_s")
_SIGMAS = ("sigma_position_m", "sigma_angle_rad")
COVARIANCE = tuple(f"cov_{i}{j}" for i in range(1, 7) for j in range(i, 7))
_ANGLE, _RATE = "_rad", "_rad_s"


@final
class PlainCSV(Format):
    """Comma-separated columns with their units."""

    name = "plain CSV"

    def recognises(self, capture: Capture) -> bool:
        return _headings(capture.head)[:1] == ["time_s"]

    def read(self, capture: Capture, choices: Choices) -> Take:
        draft = Draft(capture.file, choices)
        headings = _headings(capture.head)
        if "qw" in headings or {"qx", "qy", "qz"} <= set(headings):
            draft.read_unit("m", "the columns x_m, y_m, z_m")
            pose = draft.stood(read_pose_csv(capture.file))
            draft.rate = None if pose.n_frames < 2 else (pose.n_frames - 1) / (pose.times[-1] - pose.times[0])
            return draft.take(f"{self.name}, pose of a body", bodies={"body": pose})
        if any(heading.endswith("_rad") for heading in headings):
            return draft.take(f"{self.name}, angles", angles=read_angle_csv(capture.file), up="z", frame="")
        said = next((match[1] for match in map(_UNIT.search, headings) if match), None)
        draft.unit = choices.unit or said or "m"
        draft.markers = draft.stood(read_csv(capture.file, unit=draft.unit))
        draft.rate = draft.markers.rate if draft.markers.n_frames > 1 else None
        return draft.take(self.name)


def _headings(head: str) -> list[str]:
    """Return the cells of the first line that is neither blank nor a comment."""
    for line in re.split(r"\r\n|\n|\r", head):
        if line.strip() and not line.lstrip().startswith("#"):
            return [cell.strip().strip('"') for cell in line.split(",")]
    return []


class _Table(NamedTuple):
    """A table whose rows are still to be read: the line of its headings, from 0; the time is the first of them."""

    text: Text
    line: int
    columns: tuple[str, ...]

    def fail(self, message: str, column: int | None = None, **said: object) -> InputError:
        """Return the error of the headings, or of one by its number from 0."""
        return self.text.fail(message, self.line, column, **said)  # type: ignore[arg-type]

    def has(self, group: Sequence[str]) -> bool:
        """Whether the columns of a vector are there; some of them alone are an error."""
        present = [heading for heading in group if heading in self.columns]
        if present and len(present) < len(group):
            lacking = " and ".join(repr(heading) for heading in group if heading not in present)
            found = f"only {', '.join(map(repr, present))}"
            raise self.fail("a vector lacks components", found=found, expected=lacking)
        return bool(present)

    def rows(self) -> Grid:
        """Return the rows below the headings, at least one, times strictly increasing."""
        grid = self.text.grid(self.line + 1, len(self.text.lines), len(self.columns), self.columns)
        grid.increasing(0, "time")
        return grid

    def filled(self, gaps: Sequence[str] = ()) -> Grid:
        """Return the rows, none of whose cells may be blank; those where all of ``gaps`` are blank are left out."""
        grid = self.rows()
        if gaps:
            seen: BoolArray = np.asarray(~np.isnan(grid.columns(gaps)).all(axis=1))
            if not seen.any():
                raise InputError("the body is seen in no frame", expected="one pose at least")
            kept = [row for row, is_seen in zip(grid.rows, seen, strict=True) if is_seen]
            grid = grid._replace(rows=kept, values=grid.values[seen])
        for row, column in np.argwhere(np.isnan(grid.values)):
            expected = "a finite number (leave out the lines of frames in which nothing was seen)"
            raise grid.fail("a value is missing", row, column, expected=expected)
        return grid


def _opened(file: str, rename: Mapping[str, str] | None = None) -> _Table:
    """Open a table and read its headings, unique and "time_s" first; `rename` has other ones for some of the file."""
    text, rename = Text(file, Capture.of(file).lines, ",", comments=True), rename or {}
    line = next((k for k in range(len(text.lines)) if not text.is_blank(k)), None)
    if line is None:
        raise InputError("the file is empty", expected="a header line and frames")
    given = text.cells(line)
    for name in rename:
        if name not in given:
            raise text.fail("no such column to rename", line, found=", ".join(map(repr, given)), expected=repr(name))
    columns = tuple(rename.get(name, name) for name in given)
    table = _Table(text, line, columns)
    if columns[0] != "time_s":
        only = len(columns) == 1 and any(mark in columns[0] for mark in ";\t")
        wrong = "the columns are not separated by commas" if only else "the first column is not the time"
        raise table.fail(wrong, 0, found=repr(columns[0][:60]), expected="'time_s'")
    if len(columns) > MOST_COLUMNS:
        raise table.fail("too many columns", found=len(columns), expected=f"at most {MOST_COLUMNS}")
    first: dict[str, int] = {}
    for column, name in enumerate(columns):
        if first.setdefault(name, column) < column:
            found = f"{name!r}, also in column {first[name] + 1}"
            raise table.fail("two columns have the same name", column, found=found, expected="unique columns")
    return table


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
    file = os.fspath(path)
    with naming(file=file):
        table = _opened(file, columns)
        known = (POSITION, QUATERNION, VELOCITY, SPIN_WORLD, _SPIN_BODY, _SIGMAS, COVARIANCE)
        given = {group: table.has(group) for group in known}
        for what, group in (("position", POSITION), ("orientation", QUATERNION)):
            if not given[group]:
                raise table.fail(f"the {what} is missing", expected=", ".join(map(repr, group)))
        if given[SPIN_WORLD] and given[_SPIN_BODY]:
            expected = f"either {', '.join(SPIN_WORLD)} or {', '.join(_SPIN_BODY)}"
            raise table.fail("angular velocity in world axes and in those of the body", expected=expected)
        if given[_SIGMAS] and given[COVARIANCE]:
            expected = f"either {', '.join(_SIGMAS)} or {COVARIANCE[0]} to {COVARIANCE[-1]}"
            raise table.fail("two kinds of errors of the pose", expected=expected)
        grid = table.filled((*POSITION, *QUATERNION))
        named = {heading for group in known for heading in group}
        quaternion = grid.columns(QUATERNION)
        frame = off_unit(quaternion)
        if frame is not None:
            place = f"line {grid.rows[frame] + 1}, columns {', '.join(QUATERNION)}"
            norm = f"norm {hypot(*quaternion[frame]):.6g}"
            raise InputError("not a unit quaternion", place=place, found=norm, expected=f"1 within {UNIT:g}")
        recording = PoseRecording(
            grid.values[:, 0],
            grid.columns(POSITION),
            quaternion,
            grid.columns(VELOCITY) if given[VELOCITY] else None,
            grid.columns(SPIN_WORLD) if given[SPIN_WORLD] else None,
            {heading: grid.values[:, k] for k, heading in enumerate(table.columns) if k and heading not in named},
            file,
            _covariances(grid) if given[_SIGMAS] or given[COVARIANCE] else None,
        )
        if not given[_SPIN_BODY]:
            return recording
        spin = np.einsum("fij,fj->fi", recording.rotations, grid.columns(_SPIN_BODY))
        return replace(recording, angular_velocity=spin)


def _covariances(grid: Grid) -> FloatArray:
    """Return the covariances (nf, 6, 6) that the columns give."""
    if _SIGMAS[0] in grid.headings:
        return np.einsum("fi,ij->fij", np.repeat(grid.columns(_SIGMAS) ** 2, 3, axis=1), np.eye(6))
    out = np.zeros((len(grid.rows), 6, 6))
    rows, columns = np.triu_indices(6)
    out[:, rows, columns] = out[:, columns, rows] = grid.columns(COVARIANCE)
    return out


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
    file = os.fspath(path)
    with naming(file=file):
        table = _opened(file, columns)
        names = tuple(heading.removesuffix(_ANGLE) for heading in table.columns if heading.endswith(_ANGLE))
        if not names:
            raise table.fail("no angles in the header", expected=f"'<name>{_ANGLE}'")
        choices = [[rate for rate in (name + _RATE, "d" + name + _RATE) if rate in table.columns] for name in names]
        rates = [rate for choice in choices for rate in choice]
        known = {"time_s", *(name + _ANGLE for name in names), *rates}
        for column, heading in enumerate(table.columns):
            if heading not in known:
                expected = f"'<name>{_ANGLE}', '<name>{_RATE}' or 'd<name>{_RATE}'"
                raise table.fail("not an angle or its rate", column, found=repr(heading), expected=expected)
        if rates and any(len(choice) != 1 for choice in choices):
            expected = f"one for each of {', '.join(map(repr, names))}, or none"
            raise table.fail("not one rate for every angle", found=", ".join(map(repr, rates)), expected=expected)
        grid = table.filled()
        angles = grid.columns([name + _ANGLE for name in names])
        return AngleRecording(names, grid.values[:, 0], angles, grid.columns(rates) if rates else None, file)


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
    with naming(file=file):
        if unit not in _UNITS:
            raise InputError("unknown unit of length", found=repr(unit), expected="'m', 'cm' or 'mm'")
        table = _opened(file)
        names, columns = _markers(table, unit)
        values = table.rows().values
        return tracks(names, values[:, 0], values[:, columns], unit, "z", file)


def _markers(table: _Table, unit: str) -> tuple[tuple[str, ...], IntArray]:
    """Marker names and, for each, the columns of x, y, z."""
    markers: dict[str, dict[str, int]] = {}
    for column, name in enumerate(table.columns[1:], start=1):
        match = _COLUMN.fullmatch(name)
        if match is None:
            expected = f"'<marker>_x_{unit}', '<marker>_y_{unit}' or '<marker>_z_{unit}'"
            raise table.fail("not the coordinate of a marker", column, found=repr(name), expected=expected)
        if match["unit"] != unit:
            other = f" (or read it with unit={match['unit']!r})" if match["unit"] in _UNITS else ""
            expected = f"'{match['marker']}_{match['axis']}_{unit}'{other}"
            raise table.fail("wrong unit of a column", column, found=repr(name), expected=expected)
        markers.setdefault(match["marker"], {})[match["axis"]] = column
    if not markers:
        expected = f"'<marker>_x_{unit}', '<marker>_y_{unit}', '<marker>_z_{unit}'"
        raise table.fail("no markers in the header", expected=expected)
    for marker, axes in markers.items():
        lacking = " and ".join(f"'{marker}_{axis}_{unit}'" for axis in "xyz" if axis not in axes)
        if lacking:
            found = f"only {', '.join(sorted(axes))}"
            raise table.fail(f"marker {marker!r} lacks an axis", found=found, expected=lacking)
    return tuple(markers), np.array([[axes[axis] for axis in "xyz"] for axes in markers.values()])
