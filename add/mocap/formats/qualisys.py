"""Tables of tracks: TSV files of Qualisys Track Manager, of keys and one row a frame, and TRC files.

Positions are in millimetres by the definition of the format; a sample that is missing is blank or 0.000, 0.000, 0.000.
Which keys there are differs between versions. Events are rows `EVENT, name, frame, time`. Rows may begin with frame
and time or not.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, final

import numpy as np

from add.errors import InputError
from add.mocap.formats.base import Capture, Choices, Format, Grid, Text, positive, whole
from add.mocap.formats.tracks import Draft
from add.mocap.take import Event, Take

_KEY = re.compile(r"[A-Z][A-Z0-9_]+")
#: Keys by one of which a file is known.
_FIRST = (
    "NO_OF_FRAMES",
    "FILE_VERSION",
    "TOT_NO_OF_CHAN",
    "NO_OF_CAMERAS",
    "NO_OF_MARKERS",
    "MARKER_NAMES",
    "NO_OF_DATA_TYPES",
)
_AXIS = re.compile(r"(?P<name>.*?)[ _]?(?P<axis>[XYZ])")


class _Header(NamedTuple):
    """Keys of a file with their values and lines, events, and the line at which the data begin."""

    values: Mapping[str, Sequence[str]]
    lines: Mapping[str, int]
    events: Sequence[tuple[str, float, int]]
    data: int


@final
class QualisysTSV(Format):
    """Qualisys QTM TSV."""

    name = "Qualisys TSV"

    def recognises(self, capture: Capture) -> bool:
        return capture.head.lstrip("\ufeff").startswith(_FIRST)

    def read(self, capture: Capture, choices: Choices) -> Take:
        text = Text(capture.file, capture.lines, "\t")
        header = _header(text)
        kind = " ".join(header.values.get("DATA_INCLUDED", ["3D"])).strip() or "3D"
        if kind.upper() != "3D" or "MARKER_NAMES" not in header.values:
            raise InputError("a Qualisys export without trajectories",
                             place=f"line {header.lines.get('DATA_INCLUDED', 0) + 1}", found=f"DATA_INCLUDED {kind}",
                             expected="an export of 3D data with MARKER_NAMES")  # fmt: skip
        draft = Draft(text.file, choices, rate=_rate(header), unit=choices.unit or "mm")
        grid, names, first, places = _columns(text, header)
        times = _times(grid, first, draft)
        if "NO_OF_FRAMES" in header.values:
            place = f"line {header.lines['NO_OF_FRAMES'] + 1}"
            draft.count("NO_OF_FRAMES", header.values["NO_OF_FRAMES"][0], place, len(times))
        positions = grid.values[:, first:].reshape(len(times), len(names), 3)
        positions[(positions == 0.0).all(axis=2)] = np.nan
        draft.track(names, places, times, positions)
        version = header.values.get("FILE_VERSION", [""])[0]
        events = tuple(Event(name, time) for name, time, _ in sorted(header.events, key=lambda item: item[1]))
        return draft.take(f"{self.name} {version}".strip(), events=events)


def _header(text: Text) -> _Header:
    """Return the keys above the data."""
    values: dict[str, list[str]] = {}
    lines: dict[str, int] = {}
    events: list[tuple[str, float, int]] = []
    for index in range(len(text.lines)):
        if text.is_blank(index):
            continue
        cells = text.lines[index].split("\t")
        key = cells[0].strip().strip('"')
        if not _KEY.fullmatch(key):
            return _Header(values, lines, events, index)
        if key == "EVENT":
            if len(cells) < 4:
                raise text.fail(
                    "bad event", index, found=repr(text.lines[index][:60]), expected="EVENT, name, frame and time"
                )
            try:
                events.append((cells[1].strip(), float(cells[3]), index))
            except ValueError:
                raise text.fail("bad time of an event", index, 3, found=repr(cells[3]), expected="seconds") from None
            continue
        if key in values:
            raise text.fail(
                "a key appears twice", index, 0, found=repr(key), expected=f"once, as in line {lines[key] + 1}"
            )
        values[key] = [cell.strip() for cell in cells[1:]] or [""]
        lines[key] = index
    raise text.fail("no frames after the header", len(text.lines) - 1, found=0, expected=">= 1 frame")


def _rate(header: _Header) -> float | None:
    """Return FREQUENCY; None where the frames came from an external clock."""
    said = header.values.get("FREQUENCY", [""])[0]
    if not said or said.upper() == "EXT":
        return None
    return positive(said, "FREQUENCY", f"line {header.lines['FREQUENCY'] + 1}, column 2")


def _columns(text: Text, header: _Header) -> tuple[Grid, list[str], int, list[str]]:
    """Return the numbers, the name of each track, the first column of positions, and the places of the names."""
    line = header.lines["MARKER_NAMES"]
    names = list(header.values["MARKER_NAMES"])
    n_markers = None
    if "NO_OF_MARKERS" in header.values:
        place = f"line {header.lines['NO_OF_MARKERS'] + 1}, column 2"
        n_markers = whole(header.values["NO_OF_MARKERS"][0], "number of markers", place)
    top, heads = header.data, text.cells(header.data)
    while heads and not heads[-1]:
        heads.pop()
    titled, longer = not _is_number(heads[0]), False
    if titled:
        first = sum(cell.lower() in ("frame", "time") for cell in heads[:2])
        all_titles = len(heads)
        while len(heads) > first and not _AXIS.fullmatch(heads[-1]):
            heads.pop()
        names = _titles(text, top, heads, first)
        places = [f"line {top + 1}, column {first + 3 * k + 1}" for k in range(len(names))]
        longer = len(heads) < all_titles  # columns that are no coordinates, such as residuals
        headings = heads
    else:
        count = len(names) if n_markers is None else n_markers
        names = (names + [""] * count)[: max(count, len([name for name in names if name]))]
        places = [f"line {line + 1}, column {k + 2}" for k in range(len(names))]
        first = len(heads) - 3 * len(names)
        if first not in (0, 2):
            raise text.fail(
                "wrong number of cells", top, found=len(heads),
                expected=f"{3 * len(names)}, or two more with frame and time, for {len(names)} markers",
            )  # fmt: skip
        headings = [
            ["Frame", "Time"][k] if k < first else f"{names[(k - first) // 3]} {'XYZ'[(k - first) % 3]}"
            for k in range(len(heads))
        ]
    if n_markers is not None and n_markers != len(names):
        raise text.fail(
            "NO_OF_MARKERS does not agree with the columns", header.lines["NO_OF_MARKERS"], 1, found=n_markers,
            expected=len(names),
        )  # fmt: skip
    grid = text.grid(top + titled, len(text.lines), first + 3 * len(names), headings, longer=longer)
    return grid, names, first, places


def _titles(text: Text, top: int, heads: Sequence[str], first: int) -> list[str]:
    """Return the names in a row `Frame, Time, a X, a Y, a Z, ...`."""
    names = []
    matches = [_AXIS.fullmatch(cell) for cell in heads[first:]]
    for k in range(0, len(matches), 3):
        group = matches[k : k + 3]
        axes = "".join(match["axis"] if match else "?" for match in group)
        if axes != "XYZ" or len({match["name"] for match in group if match}) > 1:
            raise text.fail(
                "not the coordinates of a marker", top, first + k,
                found=", ".join(map(repr, heads[first + k : first + k + 3])),
                expected="'<name> X', '<name> Y', '<name> Z'",
            )  # fmt: skip
        names.append(group[0]["name"] if group[0] else "")
    if not names:
        raise text.fail("no markers in the row of columns", top, expected="'<name> X', '<name> Y', '<name> Z'")
    return names


def _times(grid: Grid, first: int, draft: Draft) -> np.ndarray:
    """Return the times of the frames, from their column or from the rate."""
    rate = draft.rate
    if first == 2:
        return draft.times(grid)
    if first == 1 and grid.headings[0].lower() == "time":
        return grid.increasing(0, "time")
    if rate is None:
        raise grid.text.fail("the rate is missing", 0, expected="a key FREQUENCY, or columns Frame and Time")
    if first == 1:
        return (grid.increasing(0, "frame number") - 1.0) / rate
    return np.arange(len(grid.rows)) / rate


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


# --- TRC files (Motion Analysis, OpenSim, Motive, Vicon): three lines of keys, two of columns, one row a frame --------


@final
class TRC(Format):
    """Track Row Column file."""

    name = "TRC"

    def recognises(self, capture: Capture) -> bool:
        return capture.head.lstrip('\ufeff "').startswith("PathFileType")

    def read(self, capture: Capture, choices: Choices) -> Take:
        by = next((line for line in capture.lines[1:5] if "DataRate" in line), capture.lines[0])
        text = Text.of(capture, by)
        keys, top = _keys(text)
        names, places = _names(text, top)
        count = whole(_key(text, keys, "NumMarkers"), "number of markers", f"line {top}, NumMarkers")
        if count != len(names):
            raise text.fail("NumMarkers does not agree with the columns", top - 1, found=count, expected=len(names))
        draft = Draft(text.file, choices, rate=positive(_key(text, keys, "DataRate"), "DataRate", f"line {top}"))
        headings = ["Frame#", "Time", *(f"{name} {axis}" for name in names for axis in "XYZ")]
        # The line of axes, X1 Y1 Z1, and the blank one below it are not always there.
        first = top + 1
        while first < len(text.lines) and (text.is_blank(first) or not text.cells(first)[0]):
            first += 1
        grid = text.grid(first, len(text.lines), len(headings), headings)
        times = draft.times(grid)
        if keys.get("NumFrames"):
            draft.count("NumFrames", keys["NumFrames"], f"line {top}, NumFrames", len(times))
        draft.read_unit(keys.get("Units"), f"line {top}, Units")
        draft.track(names, places, times, grid.values[:, 2:].reshape(len(times), len(names), 3))
        return draft.take(self.name)


def _keys(text: Text) -> tuple[dict[str, str], int]:
    """Return keys and values, and the line of `Frame#  Time  name ...`."""
    for index in range(min(8, len(text.lines) - 1)):
        keys = text.cells(index)
        if "DataRate" not in keys:
            continue
        values = text.cells(index + 1)
        if index + 2 >= len(text.lines) or not text.cells(index + 2)[0].lower().startswith("frame"):
            raise text.fail("the row of columns is missing", index + 2 if index + 2 < len(text.lines) else index + 1, 0,
                            expected="'Frame#', 'Time' and the names of the markers")  # fmt: skip
        return {key: value for key, value in zip(keys, values, strict=False) if key}, index + 2
    raise text.fail(
        "the row of keys is missing", min(1, len(text.lines) - 1), expected="'DataRate', 'NumMarkers', 'Units', ..."
    )


def _key(text: Text, keys: Mapping[str, str], key: str) -> str:
    if not keys.get(key):
        raise text.fail(f"{key} is missing", 1, found=", ".join(keys), expected=f"{key!r} with its value below it")
    return keys[key]


def _names(text: Text, top: int) -> tuple[list[str], list[str]]:
    """Return the names of the markers, each above the first of its three columns, and their places."""
    cells = text.cells(top)
    if len(cells) < 3 or not cells[1].lower().startswith("time"):
        raise text.fail(
            "no markers in the row of columns",
            top,
            found=", ".join(map(repr, cells[:3])),
            expected="'Frame#', 'Time', a name",
        )
    named = np.flatnonzero([bool(cell) for cell in cells[2:]])
    if not len(named):
        raise text.fail("no markers in the row of columns", top, expected="a name above every third column")
    stray = named[named % 3 != 0]
    if len(stray):
        raise text.fail(
            "a name above no X",
            top,
            int(stray[0]) + 2,
            found=repr(cells[stray[0] + 2]),
            expected="names above every third column",
        )
    # Tracks without a name at the end are known from the line of axes alone: X7 Y7 Z7.
    below = text.cells(top + 1) if top + 1 < len(text.lines) else []
    axes = len([cell for cell in below[2:] if cell]) if below and not below[0] else 0
    for k, cell in enumerate(below[2:] if axes else ()):
        if cell and cell[0].upper() in "XYZ" and cell[0].upper() != "XYZ"[k % 3]:
            raise text.fail("the axes of a marker are in another order", top + 1, k + 2, found=repr(cell),
                            expected=f"{'XYZ'[k % 3]}{k // 3 + 1}")  # fmt: skip
    n = max(int(named[-1]) // 3 + 1, axes // 3)
    names = [cells[2 + 3 * k] if 2 + 3 * k < len(cells) else "" for k in range(n)]
    return names, [f"line {top + 1}, column {3 + 3 * k}" for k in range(n)]
