"""From columns of a file to the tracks of a `Take`: names, units, missing samples, the axis that points up."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar, final

import numpy as np

from add.errors import InputError
from add.mocap.formats.base import Choices, Grid, whole
from add.mocap.recording import Recording
from add.mocap.take import PoseRecording, Take
from add.typing import FloatArray

Moved = TypeVar("Moved", Recording, PoseRecording)

#: How many of a unit are a metre, under the names that files use.
PER_METRE: Mapping[str, float] = {
    "m": 1.0,
    "dm": 10.0,
    "cm": 100.0,
    "mm": 1000.0,
    "um": 1e6,
    "in": 1 / 0.0254,
    "ft": 1 / 0.3048,
}
_SPELT = {"meter": "m", "metre": "m", "millimeter": "mm", "millimetre": "mm", "centimeter": "cm", "centimetre": "cm",
          "decimeter": "dm", "decimetre": "dm", "micrometer": "um", "micrometre": "um", "micron": "um", "µm": "um",
          "inch": "in", "inche": "in", "foot": "ft", "feet": "ft"}  # fmt: skip
#: Names that capture systems give to tracks without a label: "*12", "Unlabeled:108", "Unlabeled_3", "unidentified 3".
_UNLABELLED = re.compile(r"\*\d*|(?:.*:)?(?:\*\d+|un-?(?:labell?ed|identified|named)(?![a-z]).*)", re.IGNORECASE)
#: Rotations that bring the file's axis to z: of y about x, as in (x, -z, y); of x by the cycle (y, z, x).
_TURNS = {
    "x": np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]),
    "y": np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]),
    "z": np.eye(3),
}
_WORDS = {"x": "(x, y, z) became (y, z, x)", "y": "(x, y, z) became (x, -z, y)"}


class Names(NamedTuple):
    """Names of tracks, all different.

    Parameters
    ----------
    names : one a track
    unlabelled : those that no label was given to
    """

    names: tuple[str, ...]
    unlabelled: tuple[str, ...]


def track_names(raw: Sequence[str], places: Sequence[str], choices: Choices) -> Names:
    """Return names of tracks; those without one are numbered.

    Parameters
    ----------
    raw : as the file has them, blank for none
    places : of each in the file, for messages
    choices

    Raises
    ------
    InputError
        If two labelled tracks have the same name and nobody said to number them, or a name cannot be printed.
    """
    names: list[str] = []
    lacking: list[str] = []
    places_of: dict[str, list[int]] = {}
    for k, text in enumerate(raw):
        name = text.strip()
        if not name.isprintable():
            raise InputError("bad name of a track", place=places[k], found=repr(name[:60]), expected="text")
        if not name:
            name = f"unlabelled {1 + sum(item.startswith('unlabelled ') for item in names)}"
        places_of.setdefault(name, []).append(k)
        names.append(name)
    for name, columns in places_of.items():
        free = _UNLABELLED.fullmatch(name) is not None
        if len(columns) > 1:
            if not free and not choices.number_repeated:
                raise InputError(
                    "two tracks have the same name",
                    place=places[columns[1]],
                    found=f"{name!r}, also at {places[columns[0]]}",
                    expected='unique names; --number-repeated (in a scene "number_repeated": true) calls them '
                    f"'{name}#1', '{name}#2'",
                )
            for number, column in enumerate(columns, start=1):
                names[column] = f"{name}#{number}"
                if names[column] in places_of:
                    raise InputError("two tracks have the same name", place=places[column], found=repr(names[column]))
        if free:
            lacking += [names[column] for column in columns]
    return Names(tuple(names), tuple(lacking))


@final
@dataclass
class Draft:
    """Draft of a `Take` while its file is read: remarks, unit, axis that points up, rate and markers.

    Parameters
    ----------
    file : path
    choices : Choices
    """

    file: str
    choices: Choices
    notes: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    frame: str = ""
    unit: str = ""
    up: str = "z"
    rate: float | None = None
    markers: Recording | None = None
    unlabelled: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Turn the frame as asked for."""
        self.turn()

    def turn(self, said: str | None = None, place: str = "") -> None:
        """Take the axis that points up, and note it where the frame is turned for it.

        Parameters
        ----------
        said : "y" or "x" where the file says so; "z" or None otherwise
        place : where it says so
        """
        self.up, self.frame = self.choices.up or said or "z", ""
        if self.up != "z":
            why = "as asked for" if self.choices.up else f"{place}: {self.up} points up there"
            self.frame = f"the frame was turned so that z points up, {_WORDS[self.up]} ({why})"

    def stood(self, recording: Moved) -> Moved:
        """Return what was recorded with z up."""
        return recording if self.up == "z" else recording.transformed(_TURNS[self.up], np.zeros(3))

    def read_unit(self, said: str | None, place: str) -> None:
        """Take the unit of length: that of the file, or the one that was asked for where it says none.

        Raises
        ------
        InputError
            If neither says one, both differ, or nobody knows it.
        """
        known, asked = None, self.choices.unit
        if said:
            text = said.strip()
            short = text if text in PER_METRE else text.lower()
            known = short if short in PER_METRE else _SPELT.get(short.rstrip("s"), _SPELT.get(short, ""))
            if not known:
                expected = f"one of {', '.join(PER_METRE)}"
                raise InputError("unknown unit of length", place=place, found=repr(text[:60]), expected=expected)
        if asked is None and known is None:
            expected = '--unit mm, or "unit" of the recording in a scene: m, cm or mm'
            raise InputError("the file does not say its unit of length", place=place, expected=expected)
        if asked is not None and known is not None and asked != known:
            raise InputError("another unit was asked for than the file says", place=place, found=f"{known!r}",
                             expected=f"{asked!r}")  # fmt: skip
        self.unit = known or asked or ""

    def count(self, what: str, said: str, place: str, found: int) -> None:
        """Doubt a file that does not have as many frames as it says."""
        promised = whole(said, "number of frames", place)
        if promised != found:
            self.doubts.append(f"{what} promises {promised} frames, and {found} are there: is the file whole?")

    def times(self, grid: Grid) -> FloatArray:
        """Return the times of a table that begins with frame and time.

        They are without the rounding of the decimals that they are written with, where the rate explains them:
        t_k = (n + k) / rate, if no written time is further from it than half a unit of its last digit; else as written.
        A rate that the times contradict by more than 1 % is a doubt.
        """
        grid.increasing(0, "frame number")
        written, rate = grid.increasing(1, "time"), self.rate
        if rate is None or len(written) < 2:
            return written
        seen = 1.0 / float(np.median(np.diff(written)))  # frames may be missing
        half = 0.5000001 * 10.0 ** -grid.digits(1) + 1e-12
        if abs(1.0 / seen - 1.0 / rate) > 2.0 * half + 0.01 / rate:
            self.doubts.append(f"the header says {rate:g} frames a second, the times {seen:.6g}: the times are taken")
            return written
        frames = np.round(written * rate)
        exact = (np.diff(frames) >= 1.0).all() and np.abs(frames / rate - written).max() <= half
        return frames / rate if exact else written

    def track(self, raw: Sequence[str], places: Sequence[str], times: FloatArray, positions: FloatArray) -> None:
        """Take tracks as the markers; see `track_names` and `tracks`."""
        names = track_names(raw, places, self.choices)
        self.markers = tracks(names.names, times, positions, self.unit, self.up, self.file)
        self.unlabelled = names.unlabelled

    def pose(self, times: FloatArray, position: FloatArray, quaternion: FloatArray) -> PoseRecording | None:
        """Return the pose of a body over the frames in which it was seen; None if it never was.

        Parameters
        ----------
        times : (nf,) [s]
        position : (nf, 3) in the file's unit and axes, NaN where not seen
        quaternion : (nf, 4) w, x, y, z
        """
        seen = np.isfinite(position).all(axis=1) & np.isfinite(quaternion).all(axis=1)
        if not seen.any():
            return None
        metres = position[seen] / PER_METRE[self.unit]
        return self.stood(PoseRecording(times[seen], metres, quaternion[seen], source=self.file))

    def take(self, format: str, **parts: Any) -> Take:
        """Return it with the name of the format, and with what else there is."""
        own = {key: value for key, value in vars(self).items() if key not in ("file", "choices", "notes", "doubts")}
        return Take(format, self.file, **own | {"notes": tuple(self.notes), "doubts": tuple(self.doubts)} | parts)


def tracks(
    names: Sequence[str],
    times: FloatArray,
    positions: FloatArray,
    unit: str,
    up: str,
    file: str,
) -> Recording:
    """Return a recording in metres with z up; samples of which a coordinate is NaN are missing.

    Parameters
    ----------
    names : (nm,)
    times : (nf,) [s]
    positions : (nf, nm, 3) in the file's unit and axes
    unit, up : of the file
    file : path

    Raises
    ------
    InputError
        If every sample is missing.
    """
    valid = np.asarray(~np.isnan(positions).any(axis=2))
    if not valid.any():
        raise InputError(
            "every sample of every marker is missing",
            found=f"{len(times)} frames of {len(names)} markers without a complete x, y, z",
            expected="at least one sample",
        )
    scaled = positions / PER_METRE[unit]
    return Recording(tuple(names), times, scaled if up == "z" else scaled @ _TURNS[up].T, valid, file)
