"""A format of recordings of its own: lines `marker time x y z` under a first line that names it."""

from dataclasses import dataclass
from typing import final

import numpy as np

from add.errors import InputError
from add.extensions import Capture, Choices, Format
from add.mocap.recording import Recording
from add.mocap.take import Take


@final
@dataclass(frozen=True)
class LinesOfMarkers(Format):
    """One line a marker and frame, in metres with z up."""

    name: str = "lines of markers"

    def recognises(self, capture: Capture) -> bool:
        """Return whether the first line says so."""
        return capture.head.startswith("#markers 1")

    def read(self, capture: Capture, choices: Choices) -> Take:
        """Return the markers."""
        rows = []
        for number, line in enumerate(capture.lines[1:], start=2):
            words = line.split()
            try:
                rows += [(words[0], *map(float, words[1:5]))] if words else []
            except (ValueError, IndexError):
                raise InputError("not a marker", file=capture.file, place=f"line {number}", found=line) from None
        names = list(dict.fromkeys(row[0] for row in rows))
        times = np.unique([row[1] for row in rows])
        positions = np.full((times.size, len(names), 3), np.nan)
        for name, t, *place in rows:
            positions[np.searchsorted(times, t), names.index(name)] = place
        recording = Recording(tuple(names), times, positions, np.isfinite(positions).all(axis=2))
        return Take(self.name, capture.file, recording, unit="m", up="z")
