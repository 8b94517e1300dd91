"""CSV files of OptiTrack Motive (format version 1.2 and later) and of Vicon Nexus: rows of keys and names, one a frame.

Motive: the first row holds keys and values in turn; which keys there are differs between versions. The rows above
`Frame, Time (Seconds)` name each column: type, name, ID, in newer versions a parent, and the quantity. Only columns of
the type `Marker` were measured: those of rigid bodies' and bones' markers are where a model expects them.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, final

import numpy as np

from add.mocap.formats.base import Capture, Choices, Format, Grid, Text, positive
from add.mocap.formats.tracks import Draft
from add.mocap.take import Event, PoseRecording, Signal, Take
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
    given = named["type"], named["name"], named.get("id", []), plain[-1], axis
    return _Columns(*(_padded(cells, n) for cells in given))


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


# --- CSV files of Vicon Nexus -----------------------------------------------------------------------------------------

_MARKERS, _EVENTS = "trajectories", "events"
_DERIVATIVE = re.compile(r"[XYZ](?:'{1,2}|\"{1,2})", re.IGNORECASE)
_SECTIONS = (_MARKERS, _EVENTS, "devices", "joints", "segments", "model outputs", "global parameters", "emg", "forces")


class _Section(NamedTuple):
    """One part of a file: its title, the line after it and the first line of the next."""

    title: str
    first: int
    last: int


@final
class ViconCSV(Format):
    """Vicon Nexus CSV: sections, each with its rate, names, axes, units and one row a frame or a subframe.

        Trajectories
        100
        ,,Subject:Marker,,,Subject:Other,,
        Frame,Sub Frame,X,Y,Z,X,Y,Z
        ,,mm,mm,mm,mm,mm,mm
        1,0,44.16,-276.86,675.69,...

    Devices are sampled several times a frame: their rate is that of their section, and `Sub Frame` counts within a
    frame. Frame 1 is at t = 0, also where an export begins later.
    """

    name = "Vicon Nexus CSV"

    def recognises(self, capture: Capture) -> bool:
        lines = [line for line in capture.head.splitlines() if line.strip(" ,;\t")]
        first = lines[0].strip(' ,;\t"').lower() if lines else ""
        second = lines[1].strip(' ,;\t"') if len(lines) > 1 else ""
        return first in _SECTIONS or (first != "" and second[:1].isdigit() and "Sub Frame" in capture.head)

    def read(self, capture: Capture, choices: Choices) -> Take:
        by = next((line for line in capture.lines if "Sub Frame" in line), next(iter(capture.lines)))
        text = Text.of(capture, by)
        draft = Draft(text.file, choices)
        signals: list[Signal] = []
        events: list[Event] = []
        for section in _sections(text):
            if section.title.lower() == _EVENTS:
                events += _events(text, section)
            elif section.title.lower() == _MARKERS:
                if draft.markers is not None:
                    raise text.fail("a second section of trajectories", section.first - 1, 0, expected="one")
                _trajectories(text, section, draft)
            else:
                signals += _signals(text, section)
        events.sort(key=lambda event: event.time)
        return draft.take(self.name, signals=tuple(signals), events=tuple(events))


def _sections(text: Text) -> list[_Section]:
    """Return the parts of a file: a title stands alone in its line and begins with a letter."""
    starts: list[tuple[str, int]] = []
    for index in range(len(text.lines)):
        line = text.lines[index]
        if not line or not (line[0].isalpha() or line[0] == '"'):
            continue
        cells = text.cells(index)
        if cells[0] and not any(cells[1:]):
            starts.append((cells[0], index + 1))
    if not starts:
        raise text.fail("no section in the file", 0, 0, expected="a line 'Trajectories'")
    ends = [first - 1 for _, first in starts[1:]] + [len(text.lines)]
    return [_Section(title, first, last) for (title, first), last in zip(starts, ends, strict=True)]


def _table(text: Text, section: _Section) -> tuple[float, list[str], list[str], list[str], Grid]:
    """Return rate, names above the columns, headings, units, and numbers of a section."""
    lines = [index for index in range(section.first, section.last) if not text.is_blank(index)]
    if not lines:
        raise text.fail(f"section {section.title!r} is empty", section.first - 1, 0, expected="a rate and rows")
    rate = positive(text.cells(lines[0])[0], "rate", f"line {lines[0] + 1}, column 1")
    top = next((k for k in lines[1:4] if text.cells(k)[0].lower() == "frame"), None)
    if top is None:
        raise text.fail(
            "the row of columns is missing", lines[0], expected="'Frame,Sub Frame,X,Y,Z,...' below this line"
        )
    headings = text.cells(top)
    if len(headings) < 2 or headings[1].lower().replace(" ", "") != "subframe":
        raise text.fail("no subframes", top, 1, found=repr(headings[1] if headings[1:] else ""), expected="'Sub Frame'")
    while headings and not headings[-1]:
        headings.pop()
    names = text.cells(top - 1) if top - 1 > lines[0] else []
    units = text.cells(top + 1) if top + 1 < section.last else []
    has_units = bool(units) and not units[0]
    grid = text.grid(top + 1 + has_units, section.last, len(headings), headings)
    pad = len(headings)
    return rate, _padded(names, pad), headings, _padded(units if has_units else [], pad), grid


def _padded(cells: Sequence[str], width: int) -> list[str]:
    return [*cells[:width], *[""] * (width - len(cells))]


def _frames(grid: Grid) -> np.ndarray:
    """Return frame numbers, whole and increasing by one at most, with subframes counted up within each."""
    frames, subframes = grid.values[:, 0], grid.values[:, 1]
    for column, values in ((0, frames), (1, subframes)):
        bad = np.flatnonzero(~(values == np.round(values)) | (values < 0))
        if len(bad):
            cell = grid.text.cells(grid.rows[bad[0]])[column]
            raise grid.text.fail(
                f"bad {grid.headings[column].lower()} number", grid.rows[bad[0]], column, found=repr(cell),
                expected="a whole number",
            )  # fmt: skip
    before = frames + subframes / (subframes.max() + 1.0)
    bad = np.flatnonzero(np.diff(before) <= 0.0)
    if len(bad):
        row = int(bad[0]) + 1
        here, there = (f"{frames[k]:g}, {subframes[k]:g}" for k in (row, row - 1))
        raise grid.text.fail(
            "the frame number repeats or runs backwards", grid.rows[row], 0,
            found=f"{here} after {there} in line {grid.rows[row - 1] + 1}", expected="increasing ones",
        )  # fmt: skip
    return frames


def _trajectories(text: Text, section: _Section, draft: Draft) -> None:
    """Read rate, unit and markers."""
    draft.rate, names, headings, units, grid = _table(text, section)
    top = next(k for k in range(section.first, section.last) if text.cells(k)[0].lower() == "frame")
    if np.any(grid.values[:, 1] != 0.0):
        row = int(np.flatnonzero(grid.values[:, 1])[0])
        raise text.fail("a subframe of a trajectory", grid.rows[row], 1, found=f"{grid.values[row, 1]:g}", expected="0")
    triples = [k for k in range(2, len(headings) - 2) if [h.upper() for h in headings[k : k + 3]] == ["X", "Y", "Z"]]
    # Velocities and accelerations, where they were exported, too: X', Y', Z', X'', ...
    rates = {k for k in range(2, len(headings)) if _DERIVATIVE.fullmatch(headings[k])}
    left = set(range(2, len(headings))) - {k + i for k in triples for i in range(3)} - rates
    if left or not triples:
        column = min(left, default=2)
        raise text.fail(
            "not the coordinate of a marker", top, column,
            found=repr(headings[column] if column < len(headings) else ""), expected="X, Y, Z of every marker",
        )  # fmt: skip
    stray = [k for k in range(2, len(names)) if names[k] and k not in triples and k not in rates]
    if stray:
        raise text.fail(
            "a name above no marker", top - 1, stray[0], found=repr(names[stray[0]]), expected="one above every X"
        )
    said = {unit for k in triples for unit in units[k : k + 3]}
    if len(said) > 1:
        raise text.fail("several units of length", top + 1, found=", ".join(map(repr, sorted(said))), expected="one")
    draft.read_unit(next(iter(said), None), f"line {top + 2}")
    times = (_frames(grid) - 1.0) / draft.rate
    positions = grid.values[:, np.array(triples)[:, None] + np.arange(3)]
    draft.track([names[k] for k in triples], [f"line {top}, column {k + 1}" for k in triples], times, positions)


def _signals(text: Text, section: _Section) -> list[Signal]:
    """Return the channels of a section: each column, after the device or model that is named above it."""
    rate, names, headings, units, grid = _table(text, section)
    frames, most = _frames(grid), grid.values[:, 1].max() + 1.0
    times = (frames - 1.0) * most / rate + grid.values[:, 1] / rate
    signals, device = [], ""
    for k in range(2, len(headings)):
        device = names[k] or device
        signals.append(Signal(" ".join(filter(None, (device, headings[k]))), times, grid.values[:, k], units[k]))
    return signals


def _events(text: Text, section: _Section) -> list[Event]:
    """Return the events of a section `Subject, Context, Name, Time (s), Description`."""
    lines = [index for index in range(section.first, section.last) if not text.is_blank(index)]
    top = next((k for k in lines if any(cell.lower().startswith("time") for cell in text.cells(k))), None)
    if top is None:
        return []
    heads = [cell.lower() for cell in text.cells(top)]
    at = next(k for k, cell in enumerate(heads) if cell.startswith("time"))
    parts = [heads.index(key) for key in ("subject", "context", "name") if key in heads]
    events = []
    for index in lines[lines.index(top) + 1 :]:
        cells = _padded(text.cells(index), len(heads))
        try:
            time = float(cells[at].replace(",", "."))
        except ValueError:
            raise text.fail("bad time of an event", index, at, found=repr(cells[at]), expected="seconds") from None
        events.append(Event(" ".join(cells[k] for k in parts if cells[k]) or "event", time))
    return events
