"""Damaged capture files: one line that says what is wrong and where, exit code 2, no traceback."""

import struct

import numpy as np
import pytest
from support import capture_files as made
from support.c3d_files import MIPS, c3d_bytes

from add.commands.cli import main
from add.errors import InputError
from add.mocap import read_take

MOTION = made.motion()
POINTS = np.concatenate([np.nan_to_num(MOTION), np.zeros((12, 3, 1))], axis=2)


def sub(data: bytes, *pairs: tuple[bytes, bytes]) -> bytes:
    for old, new in pairs:
        assert old in data, old
        data = data.replace(old, new, 1)
    return data


def line(data: bytes, number: int, change, end: bytes = b"\n") -> bytes:
    """One line, from 1, changed."""
    lines = data.split(end)
    lines[number - 1] = change(lines[number - 1])
    return end.join(item for item in lines if item is not None)


def cell(data: bytes, number: int, column: int, value: bytes, mark: bytes, end: bytes = b"\n") -> bytes:
    """One cell of a line, both from 1, changed."""

    def change(text: bytes) -> bytes:
        cells = text.split(mark)
        cells[column - 1] = value
        return mark.join(cells)

    return line(data, number, change, end)


def texts(data: bytes, mark: bytes, first: int, end: bytes = b"\n") -> dict[str, bytes]:
    """Damages that every table can have; ``first`` is the line of its first frame."""
    lines = data.split(end)
    return {
        "empty": b"",
        "blank": b" \r\n\r\n ",
        "binary": bytes(range(256)) * 8,
        "a zip archive": b"PK\x03\x04" + bytes(200),
        "UTF-16": data.decode().encode("utf-16"),
        "Latin-1": data.replace(b"heel", b"h\xe4l"),
        "a zero byte": sub(data, (lines[first + 1], b"\0" + lines[first + 1][1:])),
        "cut in a line": end.join(lines[: first + 5]) + end + lines[first + 5][: len(lines[first + 5]) // 2],
        "no frames": end.join(lines[: first - 1]) + end,
        "a word for a coordinate": cell(data, first + 2, 6, b"n/a", mark, end),
        "two points in a number": cell(data, first + 2, 6, b"1.2.3", mark, end),
        "an underscore in a number": cell(data, first + 2, 6, b"1_000", mark, end),
        "an infinite coordinate": cell(data, first + 2, 6, b"inf", mark, end),
        "a cell too many": line(data, first + 2, lambda text: text + mark + b"1.0", end),
        "a cell too few": line(data, first + 2, lambda text: text.rpartition(mark)[0], end),
        "a frame twice": end.join([*lines[: first + 3], lines[first + 2], *lines[first + 3 :]]),
        "frames backwards": end.join([*lines[: first + 1], lines[first + 4], lines[first + 2], *lines[first + 4 :]]),
    }


MOTIVE, VICON, QTM, TRC, PLAIN = (
    made.motive(MOTION),
    made.vicon(MOTION, end="\n"),
    made.qualisys(MOTION),
    made.trc(MOTION),
    made.plain(MOTION),
)
CASES: dict[str, dict[str, bytes]] = {
    "motive": texts(MOTIVE, b",", 8)
    | {
        "no unit": sub(MOTIVE, (b",Length Units,Millimeters", b"")),
        "an unknown unit": sub(MOTIVE, (b"Millimeters", b"Furlongs")),
        "no rate, but zero": sub(MOTIVE, (b"Export Frame Rate,100.000000", b"Export Frame Rate,0.000000")),
        "a rate of letters": sub(MOTIVE, (b"Export Frame Rate,100.000000", b"Export Frame Rate,fast")),
        "no names": line(MOTIVE, 4, lambda text: None),
        "no header": MOTIVE.partition(b"\n")[2],
        "no row of columns": line(MOTIVE, 7, lambda text: None),
        "a marker without z": sub(MOTIVE, (b"X,Y,Z,X,Y,Z,X,Y,Z\n", b"X,Y,Z,X,Y,,X,Y,Z\n")),
        "a label twice": sub(MOTIVE, (b"toe,toe,toe", b"heel,heel,heel")),
        "no time": cell(MOTIVE, 10, 2, b"", b","),
        "a count of letters": sub(MOTIVE, (b"Total Exported Frames,12", b"Total Exported Frames,many")),
        "an open quote": sub(MOTIVE, (b'"a, b"', b'"a, b')),
    },
    "vicon": texts(VICON, b",", 6)
    | {
        "no rate": cell(VICON, 2, 1, b"", b","),
        "a rate of letters": cell(VICON, 2, 1, b"fast", b","),
        "a negative rate": cell(VICON, 2, 1, b"-100", b","),
        "no units": line(VICON, 5, lambda text: None),
        "two units": sub(VICON, (b"mm,mm,mm\n", b"mm,mm,m\n")),
        "no row of columns": line(VICON, 4, lambda text: None),
        "an axis twice": sub(VICON, (b"X,Y,Z,X,Y,Z", b"X,Y,Z,X,X,Z")),
        "a label twice": sub(VICON, (b"Anna:toe", b"Anna:heel")),
        "a name out of place": sub(VICON, (b"Anna:toe,,", b",Anna:toe,")),
        "no subframes": sub(VICON, (b"Sub Frame", b"Time")),
        "half a frame": cell(VICON, 8, 1, b"3.5", b","),
        "a subframe of a trajectory": cell(VICON, 8, 2, b"1", b","),
        "only a title": b"Trajectories\n",
        "trajectories twice": VICON + b"\n" + VICON,
    },
    "qualisys": texts(QTM, b"\t", 11, b"\r\n")
    | {
        "no rate": sub(QTM.replace(b"\r\n", b"\n"), (b"FREQUENCY\t100", b"FREQUENCY\t0")),
        "a rate of letters": sub(QTM, (b"FREQUENCY\t100", b"FREQUENCY\tfast")),
        "a wrong count of markers": sub(QTM, (b"NO_OF_MARKERS\t3", b"NO_OF_MARKERS\t4")),
        "a count of letters": sub(QTM, (b"NO_OF_FRAMES\t12", b"NO_OF_FRAMES\tmany")),
        "a label twice": QTM.replace(b"toe", b"heel"),
        "analog data": sub(QTM, (b"DATA_INCLUDED\t3D", b"DATA_INCLUDED\tANALOG")),
        "rigid bodies": sub(QTM, (b"DATA_INCLUDED\t3D", b"DATA_INCLUDED\t6D")),
        "no names": sub(QTM, (b"MARKER_NAMES\theel\ttoe\thip\r\n", b"")),
        "an axis twice": sub(QTM, (b"toe Y", b"toe X")),
        "a key twice": sub(QTM, (b"NO_OF_CAMERAS\t8", b"NO_OF_FRAMES\t12")),
        "a bad event": sub(QTM, (b"kick\t6\t0.05", b"kick\t6\tsoon")),
        "no rate and no times": sub(made.qualisys(MOTION, titles=False, timed=False), (b"FREQUENCY\t100\r\n", b"")),
        "columns and names differ": sub(made.qualisys(MOTION, titles=False), (b"\thip", b"")).replace(
            b"NO_OF_MARKERS\t3\r\n", b""
        ),
    },
    "trc": texts(TRC, b"\t", 7)
    | {
        "no unit": sub(TRC, (b"\tmm\t", b"\t\t")),
        "an unknown unit": sub(TRC, (b"\tmm\t", b"\tell\t")),
        "no rate": sub(TRC, (b"100.00\t", b"\t")),
        "axes in another order": sub(TRC, (b"X1\tY1", b"Y1\tX1")),
        "a rate of letters": sub(TRC, (b"100.00\t", b"fast\t")),
        "a wrong count of markers": sub(TRC, (b"\t12\t3\t", b"\t12\t4\t")),
        "a count of letters": sub(TRC, (b"\t12\t3\t", b"\tmany\t3\t")),
        "no keys": line(TRC, 2, lambda text: None),
        "no row of columns": line(TRC, 4, lambda text: None),
        "a label twice": sub(TRC, (b"toe", b"heel")),
        "a name out of place": sub(TRC, (b"\ttoe\t", b"\t\ttoe")),
        "no time": cell(TRC, 9, 2, b"", b"\t"),
        "only the first line": TRC.split(b"\n")[0],
        "the first word": TRC[3:],
    },
    "plain": texts(PLAIN, b",", 2)
    | {
        "no axis": PLAIN.replace(b"toe_z_mm", b"toe_q_mm"),
        "two units": PLAIN.replace(b"toe_z_mm", b"toe_z_m"),
        "a label twice": PLAIN.replace(b"toe", b"heel"),
        "no time": PLAIN.replace(b"time_s", b"frame"),
    },
}
WHOLE = c3d_bytes(POINTS, groups={"POINT": {"LABELS": list(made.NAMES)}}, analog=np.zeros((24, 2)), per_frame=2)


def word(data: bytes, number: int, value: int) -> bytes:
    """A word of the header, from 1, changed."""
    return data[: 2 * number - 2] + struct.pack("<h", value) + data[2 * number :]


CASES["c3d"] = {
    "empty": b"",
    "only two bytes": WHOLE[:2],
    "only the header": WHOLE[:512],
    "half the parameters": WHOLE[:700],
    "cut in the data": WHOLE[:-600],
    "no data": WHOLE[:1536],
    "a key that is none": b"\x02\x51" + WHOLE[2:],
    "more points than promised": word(WHOLE, 2, 2),
    "fewer points than promised": word(WHOLE, 2, 4),
    "more analog words than promised": word(WHOLE, 3, 2),
    "more frames than there are": c3d_bytes(POINTS, frames=900),
    "no frames": c3d_bytes(POINTS[:0]),
    "no points and no channels": c3d_bytes(np.zeros((3, 0, 4))),
    "no rate": c3d_bytes(POINTS, rate=0.0),
    "a negative rate": c3d_bytes(POINTS, rate=-100.0),
    "a rate of NaN": c3d_bytes(POINTS, rate=float("nan")),
    "no unit": c3d_bytes(POINTS, groups={"POINT": {"UNITS": None}}),
    "an unknown unit": c3d_bytes(POINTS, groups={"POINT": {"UNITS": "ell"}}),
    "a label twice": c3d_bytes(POINTS, groups={"POINT": {"LABELS": ["a", "a", "b"]}}),
    "no processor": WHOLE[:515] + b"\x07" + WHOLE[516:],
    "another processor": WHOLE[:515] + bytes([MIPS]) + WHOLE[516:],
    "parameters of noise": WHOLE[:516] + bytes(np.random.default_rng(1).integers(0, 256, 900, np.uint8)) + WHOLE[1416:],
    "nothing but missing samples": c3d_bytes(np.concatenate([POINTS[:, :, :3], -np.ones((12, 3, 1))], axis=2)),
    "text": b"\x02Pthis is a text that has the two bytes of a C3D " * 40,
}

ALL = [pytest.param(data, id=f"{kind}: {name}") for kind, cases in CASES.items() for name, data in cases.items()]


def test_twenty_a_format():
    assert {kind: len(cases) >= 20 for kind, cases in CASES.items()} == dict.fromkeys(CASES, True)


@pytest.mark.parametrize("data", ALL)
def test_damaged(data, tmp_path, capsys):
    path = tmp_path / "take.csv"
    path.write_bytes(data)
    with pytest.raises(SystemExit) as stop:
        main(["recording", "info", str(path)])
    said = capsys.readouterr()
    assert stop.value.code == 2, said.out
    assert "Traceback" not in said.err
    last = said.err.strip().splitlines()[-1]
    assert last.startswith(f"error: {path}: ")
    assert len(last) < 600
    assert "found" in last or "expected" in last


PLACES = [
    ("motive", "a word for a coordinate", "line 10, column 6"),
    ("motive", "a label twice", "column 18"),
    ("vicon", "two points in a number", "line 8, column 6"),
    ("vicon", "half a frame", "line 8, column 1"),
    ("qualisys", "a word for a coordinate", "line 13, column 6"),
    ("qualisys", "a wrong count of markers", "line 3, column 2"),
    ("qualisys", "a frame twice", "line 15, column 1"),
    ("trc", "no time", "line 9, column 2"),
    ("trc", "Latin-1", "line 4, byte 14"),
    ("plain", "an infinite coordinate", "line 4, column 6"),
    ("c3d", "an unknown unit", "POINT:UNITS"),
]


@pytest.mark.parametrize(("kind", "name", "place"), PLACES)
def test_the_place_is_said(kind, name, place, tmp_path):
    path = tmp_path / "take"
    path.write_bytes(CASES[kind][name])
    with pytest.raises(InputError) as caught:
        read_take(path)
    assert place in str(caught.value)


LIKENESS = [
    ("motive", "no header", "Motive CSV without its header row"),
    ("trc", "the first word", "TRC, but its first word"),
    ("c3d", "a key that is none", "a binary file"),
    ("vicon", "UTF-16", "UTF-16"),
    ("vicon", "a zip archive", "Excel"),
]


@pytest.mark.parametrize(("kind", "name", "likeness"), LIKENESS)
def test_a_refused_file_says_what_it_looks_like(kind, name, likeness, tmp_path):
    path = tmp_path / "take"
    path.write_bytes(CASES[kind][name])
    with pytest.raises(InputError, match=likeness):
        read_take(path)


@pytest.mark.parametrize("kind", ["motive", "qualisys", "trc"])
def test_a_wrong_number_of_frames_is_a_doubt(kind, tmp_path, capsys):
    """Shortened files are common, so they are read; nobody is left to think that they are whole."""
    data = {"motive": MOTIVE, "qualisys": QTM.replace(b"\r\n", b"\n"), "trc": TRC}[kind]
    path = tmp_path / "take"
    path.write_bytes(b"\n".join(data.split(b"\n")[:-3]) + b"\n")
    with pytest.raises(SystemExit) as stop:
        main(["recording", "info", str(path)])
    assert stop.value.code == 0
    assert "12 frames, and 10 are there" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stop:
        main(["recording", "info", "--strict", str(path)])
    assert stop.value.code == 2


def test_random_bytes_change_nothing_silently(tmp_path):
    """A C3D with any of its first 1500 bytes changed is read or refused; nothing else comes out."""
    rng = np.random.default_rng(3)
    path = tmp_path / "take.c3d"
    refused = 0
    for _ in range(400):
        data = bytearray(WHOLE)
        for place in rng.integers(0, 1500, 3):
            data[place] = rng.integers(0, 256)
        path.write_bytes(bytes(data))
        try:
            read_take(path)
        except InputError:
            refused += 1
    assert refused > 20
