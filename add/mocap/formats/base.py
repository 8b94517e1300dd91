"""The contract of a file format, choices left to the reader, and the likeness of a file that nobody knows."""

from __future__ import annotations

import csv
import os
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import NamedTuple, final

from add.errors import InputError
from add.machine.files import most_of_memory, read_given
from add.mocap.take import Take
from add.typing import require_kind

#: Memory that reading takes, in sizes of the file.
_MEMORY = 30.0


class Choices(NamedTuple):
    """Answers to questions that a file may leave open.

    Parameters
    ----------
    unit : of length; None = the file's own
    up : "x", "y" or "z", the file's axis that points up; None = z, or as the file says
    number_repeated : give tracks that share a name the names `name#1`, `name#2`, instead of refusing them
    """

    unit: str | None = None
    up: str | None = None
    number_repeated: bool = False


@final
@dataclass(frozen=True, eq=False)
class Capture:
    """A file in memory.

    Parameters
    ----------
    file : path, for messages
    data : all of its bytes
    """

    file: str
    data: bytes
    _lines: list[list[str]] = field(default_factory=list, repr=False)

    @staticmethod
    def of(path: str | os.PathLike[str]) -> Capture:
        """Read a file.

        Raises
        ------
        InputError
            If it is missing, a folder, empty or larger than the memory.
        """
        require_kind(path, (str, os.PathLike), "recording", "the path of a file")
        file = os.fspath(path)
        data = read_given(file, most=most_of_memory(_MEMORY), expected="a recording")
        if not data.strip():
            raise InputError("the file is empty", file=file, expected="a recording")
        return Capture(file, data)

    @property
    def head(self) -> str:
        """The first kilobytes as text, as far as they are any: for the recognition of a format."""
        return self.data[:8192].decode("utf-8-sig", errors="replace")

    @property
    def is_binary(self) -> bool:
        """Whether the first kilobytes are no text."""
        return b"\0" in self.data[:8192]

    @property
    def first_line(self) -> int:
        """Number of the first line that is not blank, from 1."""
        return 1 + self.head[: len(self.head) - len(self.head.lstrip())].count("\n")

    @property
    def lines(self) -> list[str]:
        """The lines of a text, without their ends; LF, CRLF or CR, UTF-8 with or without a byte-order mark.

        Raises
        ------
        InputError
            If it is not UTF-8.
        """
        if not self._lines:
            self._lines.append(_split(self._decoded()))
        return self._lines[0]

    def _decoded(self) -> str:
        if self.data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise InputError("not UTF-8 text", found="UTF-16", expected="UTF-8 (save or export it so)")
        try:
            text = self.data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            start = self.data.rfind(b"\n", 0, error.start) + 1
            raise InputError(
                "not UTF-8 text",
                place=f"line {1 + self.data.count(bytes([10]), 0, error.start)}, byte {error.start - start + 1}",
                found=f"byte 0x{self.data[error.start]:02x}",
                expected="UTF-8 (save or export the file so)",
            ) from error
        if "\0" in text:
            line = 1 + text.count("\n", 0, text.index("\0"))
            raise InputError("not text", place=f"line {line}", found="a zero byte", expected="UTF-8 text")
        return text


def _split(text: str) -> list[str]:
    # Not str.splitlines: it also splits at characters that may stand in a name.
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


class Format(ABC):
    """One kind of file.

    Attributes
    ----------
    name : as people call it
    """

    name: str

    @abstractmethod
    def recognises(self, capture: Capture) -> bool:
        """Whether the content is of this kind, whatever the file is called."""

    @abstractmethod
    def read(self, capture: Capture, choices: Choices) -> Take:
        """Read it.

        Raises
        ------
        InputError
            One line with line and column, what was found and what was expected; `read_take` names the file.
        """


#: First bytes, and what a file is that has them.
_BYTES = (
    (b"PK\x03\x04", "a zip archive or an Excel workbook; export CSV"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook; export CSV"),
    (b"\x1f\x8b", "a gzip archive; unpack it"),
    (b"7z\xbc\xaf", "a 7z archive; unpack it"),
    (b"\x89HDF", "an HDF5 or MATLAB 7.3 file"),
    (b"MATLAB 5.0", "a MATLAB file; export C3D or TSV"),
    (b"Kaydara FBX", "an FBX scene; export C3D or CSV"),
    (b"HIERARCHY", "a BVH skeleton; export C3D or CSV"),
    (b"%PDF", "a PDF"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"{", "JSON"),
    (b"<", "XML or HTML"),
    (b"ply", "a PLY point cloud"),
)
#: Words of a text, and what it then is most likely, with what is wrong.
_WORDS = (
    (r"Format Version", "Motive CSV, but its first cell is not 'Format Version'"),
    (r"Rigid Body Marker|Time \(Seconds\)", "Motive CSV without its header row: export it with the header"),
    (r"Sub Frame", "Vicon CSV without the line 'Trajectories' at its top"),
    (r"MARKER_NAMES|NO_OF_", "Qualisys TSV, but its first word is no key of one"),
    (r"Frame\tTime\t", "Qualisys TSV without its header: export it with the header"),
    (r"PathFileType|DataRate\tCameraRate|Frame#", "TRC, but its first word is not 'PathFileType'"),
    (r"inDegrees|endheader", "an OpenSim MOT or STO file: angles and forces, no markers"),
    (r"_[xyz]_(?:m|cm|mm)\b", "plain CSV whose first column is not 'time_s'"),
)


def likeness(capture: Capture) -> str:
    """Say which kind of file this looks like."""
    data = capture.data
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "UTF-16 text; save or export it as UTF-8"
    for start, name in _BYTES:
        if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(start):
            return name
    if b"\0" in data[:4096]:
        return f"a binary file that begins with {data[:4].hex(' ')}" + (
            ", C3D has 50 in its second byte" if data[1:2] != b"\x50" else ""
        )
    head = capture.head
    for pattern, name in _WORDS:
        if re.search(pattern, head):
            return name
    line = next((line for line in head.splitlines() if line.strip()), "")
    try:
        first = next(csv.reader([line]))[0]
    except (csv.Error, StopIteration, IndexError):
        first = line
    return f"text that begins with {first[:40].strip()!r}"
