"""TRC files (Motion Analysis, OpenSim, Motive, Vicon): three lines of keys, two of columns, one row a frame."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from add.mocap.formats.base import Capture, Choices, Format, Remarks
from add.mocap.formats.grid import Text, frame_times, positive, whole
from add.mocap.formats.tracks import length_unit, track_names, tracks, upright
from add.mocap.take import Take


@final
@dataclass(frozen=True)
class TRC(Format):
    """Track Row Column file."""

    name: str = "TRC"

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
        remarks = Remarks()
        rate = positive(_key(text, keys, "DataRate"), "DataRate", f"line {top}")
        headings = ["Frame#", "Time", *(f"{name} {axis}" for name in names for axis in "XYZ")]
        # The line of axes, X1 Y1 Z1, and the blank one below it are not always there.
        first = top + 1
        while first < len(text.lines) and (text.is_blank(first) or not text.cells(first)[0]):
            first += 1
        grid = text.grid(first, len(text.lines), len(headings), headings)
        grid.increasing(0, "frame number")
        times = frame_times(grid.increasing(1, "time"), grid.digits(1), rate, remarks)
        if keys.get("NumFrames"):
            promised = whole(keys["NumFrames"], "number of frames", f"line {top}, NumFrames")
            remarks.count("NumFrames", promised, len(times))
        unit = length_unit(keys.get("Units"), f"line {top}, Units", choices)
        up = upright(None, "", choices, remarks)
        labels = track_names(names, places, choices)
        positions = grid.values[:, 2:].reshape(len(times), len(names), 3)
        recording = tracks(labels.names, times, positions, unit, up, text.file)
        return Take(self.name, text.file, recording, labels.unlabelled, unit=unit, rate=rate, up=up, **remarks.said())


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
    n = max(int(named[-1]) // 3 + 1, axes // 3)
    names = [cells[2 + 3 * k] if 2 + 3 * k < len(cells) else "" for k in range(n)]
    return names, [f"line {top + 1}, column {3 + 3 * k}" for k in range(n)]
