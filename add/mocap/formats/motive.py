"""CSV files of OptiTrack Motive, format version 1.2 and later: a row of keys, rows that name columns, one row a frame.

The first row holds keys and values in turn; which keys there are differs between versions. The rows above
`Frame, Time (Seconds)` name each column: type, name, ID, in newer versions a parent, and the quantity. Only columns of
the type `Marker` were measured: those of rigid bodies' and bones' markers are where a model expects them.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, final

import numpy as np

from add.mocap.formats.base import Capture, Choices, Format, Grid, Text, positive
from add.mocap.formats.tracks import Draft
from add.mocap.take import PoseRecording, Take
from add.typing import FloatArray

_MOST_HEADER_LINES = 40
_LABELS = ("type", "name", "id", "parent")


class _Columns(NamedTuple):
    """The rows that name the columns."""

    kind: Sequence[str]
    name: Sequence[str]
    identity: Sequence[str]
    quantity: Sequence[str]
    axis: Sequence[str]


@final
class MotiveCSV(Format):
    """OptiTrack Motive CSV."""

    name = "Motive CSV"

    def recognises(self, capture: Capture) -> bool:
        return capture.head.lstrip('\ufeff "').startswith("Format Version")

    def read(self, capture: Capture, choices: Choices) -> Take:
        text = Text.of(capture, capture.lines[0])
        keys = _keys(text)
        top = _top(text)
        columns = _columns(text, top)
        width = 2 + max(
            (k for k, axis in enumerate(columns.axis[2:], start=1) if axis or columns.kind[k + 1]), default=0
        )
        headings = [f"{name} {axis}".strip() for name, axis in zip(columns.name, columns.axis, strict=True)]
        grid = text.grid(top + 1, len(text.lines), width, headings)
        draft = Draft(text.file, choices)
        rate = next((keys[key] for key in ("Export Frame Rate", "Capture Frame Rate") if keys.get(key)), None)
        draft.rate = None if rate is None else positive(rate, "frame rate", "line 1")
        times = draft.times(grid)
        if keys.get("Total Exported Frames"):
            draft.count("the header", keys["Total Exported Frames"], "line 1", len(times))
        draft.read_unit(keys.get("Length Units"), "line 1, Length Units")
        if choices.up is None:
            draft.frame = (
                "Motive's frame has y up unless its user chose otherwise, and the file does not say: positions are as "
                'written; --up y (in a scene "up": "y") turns them, --up z says that z is up'
            )
        if keys.get("Coordinate Space", "Global").lower() not in ("global", "world"):
            draft.notes.append(
                f"Coordinate Space is {keys['Coordinate Space']!r}: bones count from their parents, not from the world"
            )
        columns_of = _markers(columns, text, top)
        if columns_of:
            names = [columns.name[k[0]] for k in columns_of]
            places = [f"the header above line {top + 1}, column {k[0] + 1}" for k in columns_of]
            draft.track(names, places, times, grid.values[:, np.array(columns_of)])
        version = next(iter(keys.values()))
        return draft.take(f"{self.name} {version}", bodies=_bodies(columns, grid, keys, times, draft))


def _keys(text: Text) -> dict[str, str]:
    """Return keys and values of the first row, those on lines of their own among them."""
    cells = text.cells(0)
    keys = dict(zip(cells[::2], cells[1::2], strict=False))
    for index in range(1, min(len(text.lines), _MOST_HEADER_LINES)):
        cells = text.cells(index)
        if not cells[0] or len([cell for cell in cells if cell]) > 2:
            break
        keys.setdefault(cells[0], cells[1] if len(cells) > 1 else "")
    return keys


def _top(text: Text) -> int:
    """Return the line of `Frame, Time (Seconds), X, Y, Z`."""
    for index in range(min(len(text.lines), _MOST_HEADER_LINES)):
        cells = [cell.lower() for cell in text.cells(index)[:2]]
        if cells[:1] == ["frame"] and cells[1:] and cells[1].startswith("time"):
            return index
    raise text.fail(
        "Motive's row of columns is missing",
        min(len(text.lines), _MOST_HEADER_LINES) - 1,
        expected="'Frame,Time (Seconds),X,Y,Z,...'",
    )


def _columns(text: Text, top: int) -> _Columns:
    """Return the rows that name the columns: by the label in their second cell, or by their order."""
    axis = text.cells(top)
    rows: list[tuple[int, list[str]]] = []
    for index in range(top - 1, 0, -1):
        cells = text.cells(index)
        if text.is_blank(index) or cells[0]:
            break
        rows.insert(0, (index, cells))
    named = {cells[1].lower(): cells for _, cells in rows if len(cells) > 1 and cells[1].lower() in _LABELS}
    plain = [cells for _, cells in rows if not (len(cells) > 1 and cells[1])]
    if not named:
        if len(rows) < 4:
            raise text.fail(
                "Motive's rows of types and names are missing", top, found=f"{len(rows)} rows above this one",
                expected="type, name, ID and quantity of every column",
            )  # fmt: skip
        order = [cells for _, cells in rows]
        named = {"type": order[0], "name": order[1], "id": order[2]}
        plain = order[-1:]
    for key in ("type", "name"):
        if key not in named:
            raise text.fail(
                f"Motive's row of {key}s is missing", top, expected=f"',{key.capitalize()},...' above this line"
            )
    if not plain:
        raise text.fail(
            "Motive's row of quantities is missing", top, expected="',,Rotation,...,Position,...' above this line"
        )
    n = max(len(axis), *(len(cells) for cells in (*named.values(), plain[-1])))
    fill = [
        [*cells, *[""] * (n - len(cells))]
        for cells in (named["type"], named["name"], named.get("id", []), plain[-1], axis)
    ]
    return _Columns(*fill)


def _groups(columns: _Columns) -> list[list[int]]:
    """Return the runs of columns that belong to one thing: the same type, name and ID."""
    groups: list[list[int]] = []
    before: tuple[str, ...] = ()
    seen: set[tuple[str, str]] = set()
    for k in range(2, len(columns.axis)):
        if not columns.kind[k]:
            continue
        what = (columns.kind[k], columns.name[k], columns.identity[k])
        cell = (columns.quantity[k].lower(), columns.axis[k].upper())
        if what != before or cell in seen:
            groups.append([])
            seen = set()
        groups[-1].append(k)
        seen.add(cell)
        before = what
    return groups


def _axes(columns: _Columns, group: Sequence[int], quantity: str, axes: str) -> list[int]:
    """Return the columns of some axes of a quantity, in that order; those that are missing are left out."""
    at = {columns.axis[k].upper(): k for k in group if columns.quantity[k].lower() == quantity}
    return [at[axis] for axis in axes if axis in at]


def _markers(columns: _Columns, text: Text, top: int) -> list[list[int]]:
    """Return the columns x, y, z of every measured marker."""
    markers = []
    for group in _groups(columns):
        if columns.kind[group[0]].lower() != "marker":
            continue
        xyz = _axes(columns, group, "position", "XYZ")
        if len(xyz) != 3:
            raise text.fail(
                f"marker {columns.name[group[0]]!r} lacks an axis", top, group[0],
                found=", ".join(columns.axis[k] or "blank" for k in group), expected="X, Y, Z of 'Position'",
            )  # fmt: skip
        markers.append(xyz)
    return markers


def _bodies(
    columns: _Columns, grid: Grid, keys: Mapping[str, str], times: FloatArray, draft: Draft
) -> dict[str, PoseRecording]:
    """Return the poses of rigid bodies and bones; what is not read is noted."""
    bodies: dict[str, PoseRecording] = {}
    unread = Counter[str]()
    for group in _groups(columns):
        kind, name = columns.kind[group[0]], columns.name[group[0]]
        if kind.lower() == "marker":
            continue
        xyz, turn = _axes(columns, group, "position", "XYZ"), _axes(columns, group, "rotation", "WXYZ")
        if kind.lower().endswith("marker"):
            key = f"columns of {kind!r} are positions that a model expects, no measurements: left out"
        elif len(xyz) != 3:
            key = f"{kind!r} without a position: left out"
        elif len(turn) != 4:
            how = keys.get("Rotation Type", "unknown")
            key = f"{kind!r} with rotations of the type {how!r}: left out; export quaternions"
        else:
            pose = draft.pose(times, grid.values[:, xyz], grid.values[:, turn])
            if pose is not None and name not in bodies:
                bodies[name] = pose
                continue
            key = f"{kind!r} {name!r}, " + ("never seen: left out" if pose is None else "a second time: left out")
        unread[key] += 1
    draft.notes.extend(f"{count} x {key}" if count > 1 else key for key, count in unread.items())
    return bodies
