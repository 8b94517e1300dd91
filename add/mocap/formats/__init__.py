"""Files of capture systems: recognised by what is in them, read into a `Take`."""

import os
from collections.abc import Iterator

from add.errors import InputError, naming
from add.machine.foreign import load_installed
from add.mocap.formats.base import Capture, Choices, Format, likeness
from add.mocap.formats.c3d import C3D
from add.mocap.formats.optical_csv import MotiveCSV, ViconCSV
from add.mocap.formats.plain import PlainCSV
from add.mocap.formats.poses import MCAP, PoseJSON
from add.mocap.formats.qualisys import TRC, QualisysTSV
from add.mocap.take import Take

#: In the order in which they are asked; their first lines or bytes exclude each other.
FORMATS: tuple[Format, ...] = (C3D(), MCAP(), MotiveCSV(), QualisysTSV(), TRC(), ViconCSV(), PoseJSON(), PlainCSV())


def read_take(
    path: str | os.PathLike[str],
    *,
    unit: str | None = None,
    up: str | None = None,
    number_repeated: bool = False,
) -> Take:
    """Read a file of a capture system, whatever its name.

    C3D, MCAP, TRC, Motive, Vicon and plain CSV, Qualisys TSV, JSON of poses.

    Parameters
    ----------
    path : the file
    unit : "m", "cm" or "mm", for a file that does not say its unit of length
    up : "x", "y" or "z", the file's axis that points up, for a file that does not say it; it becomes z
    number_repeated : call tracks that share a name `name#1`, `name#2`

    Raises
    ------
    InputError
        One line that names the format, the place, what was found and what was expected.
    """
    capture = Capture.of(path)
    choices = Choices(unit, up, number_repeated)
    for kind in _formats():
        if kind.recognises(capture):
            with naming(file=capture.file):
                try:
                    return kind.read(capture, choices)
                except InputError as error:
                    if not error.message.startswith(kind.name):
                        error.message = f"{kind.name}: {error.message}"
                        error.args = (error.message,)
                    raise
    raise InputError(
        "not a recording in a format that is known",
        file=capture.file,
        place=None if capture.is_binary else f"line {capture.first_line}",
        found=likeness(capture),
        expected=f"{', '.join(kind.name for kind in FORMATS[:-1])}, or {FORMATS[-1].name} that begins with 'time_s'",
    )


def _formats() -> Iterator[Format]:
    """Iterate over the formats of this package, then over those that extensions define."""
    yield from FORMATS
    load_installed()
    for kind in Format.__subclasses__():
        if kind not in map(type, FORMATS):
            yield kind()
