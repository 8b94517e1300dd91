"""Likeness of a file that no reader knows, in words."""

from __future__ import annotations

import csv
import re

from add.mocap.formats.base import Capture

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
