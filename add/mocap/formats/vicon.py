"""CSV files of Vicon Nexus: sections, each with its rate, names, axes, units and one row a frame or a subframe.

    Trajectories
    100
    ,,Subject:Marker,,,Subject:Other,,
    Frame,Sub Frame,X,Y,Z,X,Y,Z
    ,,mm,mm,mm,mm,mm,mm
    1,0,44.16,-276.86,675.69,...

Devices are sampled several times a frame: their rate is that of their section, and `Sub Frame` counts within a frame.
Frame 1 is at t = 0, also where an export begins later.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple, final

import numpy as np

from add.mocap.formats.base import Capture, Choices, Format, Grid, Text, positive
from add.mocap.formats.tracks import Draft
from add.mocap.take import Event, Signal, Take

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
    """Vicon Nexus CSV."""

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
