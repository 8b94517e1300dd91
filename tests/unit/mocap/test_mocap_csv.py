"""The CSV reader and writer: round trips, accepted variants, and one line for every way a file can be wrong."""

import numpy as np
import pytest

from add.errors import InputError
from add.mocap import Recording, read_csv, write_csv

HEADER = "time_s,A_x_m,A_y_m,A_z_m,B-1_x_m,B-1_y_m,B-1_z_m\n"
ROW0 = "0.0,1,2,3,4,5,6\n"
ROW1 = "0.01,1.5,2.5,3.5,4.5,5.5,6.5\n"


def write(tmp_path, text, name="take.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_reads(tmp_path):
    path = write(tmp_path, HEADER + ROW0 + ROW1)
    recording = read_csv(path)
    assert recording.names == ("A", "B-1")
    assert recording.source == str(path)
    np.testing.assert_array_equal(recording.times, [0.0, 0.01])
    np.testing.assert_array_equal(recording.positions[1], [[1.5, 2.5, 3.5], [4.5, 5.5, 6.5]])
    assert recording.valid.all()


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbf" + (HEADER + ROW0 + ROW1).encode(),
        (HEADER + ROW0 + ROW1).replace("\n", "\r\n"),
        "# made by hand\n" + HEADER + "\n" + ROW0 + '  # a "comment\n' + ROW1 + "\n\n",
        (HEADER + ROW0 + ROW1).replace(",", " , "),
        (HEADER + ROW0 + ROW1).rstrip("\n"),
        '"time_s","A_x_m","A_y_m","A_z_m","B-1_x_m","B-1_y_m","B-1_z_m"\n' + ROW0 + ROW1,
    ],
    ids=["bom", "crlf", "comments", "blanks", "no final newline", "quoted"],
)
def test_accepts(tmp_path, text):
    plain = read_csv(write(tmp_path, HEADER + ROW0 + ROW1, "plain.csv"))
    recording = read_csv(write(tmp_path, text))
    assert recording.names == plain.names
    np.testing.assert_array_equal(recording.times, plain.times)
    np.testing.assert_array_equal(recording.positions, plain.positions)


def test_columns_in_any_order_and_single_frame(tmp_path):
    recording = read_csv(write(tmp_path, "time_s,A_z_m,A_x_m,B_x_m,B_y_m,A_y_m,B_z_m\n0,3,1,4,5,2,6\n"))
    np.testing.assert_array_equal(recording.positions, [[[1, 2, 3], [4, 5, 6]]])


def test_blank_and_nan_cells_are_missing(tmp_path):
    recording = read_csv(write(tmp_path, HEADER + "0,,,,4,5,6\n0.01,1,2,3,NaN,nan,NAN\n0.02,1,,3,4,5,6\n"))
    np.testing.assert_array_equal(recording.valid, [[False, True], [True, False], [False, True]])
    assert np.isnan(recording.positions[2, 0]).all()


def test_units(tmp_path):
    path = write(tmp_path, "time_s,A_x_mm,A_y_mm,A_z_mm\n0,1,-20,300\n")
    np.testing.assert_array_equal(read_csv(path, unit="mm").positions, [[[0.001, -0.02, 0.3]]])
    with pytest.raises(InputError, match=r"wrong unit of a column .*unit='mm'"):
        read_csv(path)
    with pytest.raises(InputError, match="unknown unit"):
        read_csv(path, unit="inch")


def test_round_trip_is_bit_exact(tmp_path):
    rng = np.random.default_rng(3)
    positions = rng.normal(size=(40, 3, 3)) * 10.0 ** rng.integers(-12, 9, size=(40, 3, 3))
    positions[0, 0] = [-0.0, 5e-324, 0.1 + 0.2]
    valid = rng.random((40, 3)) > 0.2
    valid[0, 0] = True
    times = np.cumsum(rng.random(40)) - 3.0
    recording = Recording(("Tip-1", 'a "b", c', "µ_x_m"), times, positions, valid)
    path = tmp_path / "out.csv"
    write_csv(path, recording)
    again = read_csv(path)
    assert again.names == recording.names
    assert again.times.tobytes() == recording.times.tobytes()
    np.testing.assert_array_equal(again.valid, valid)
    assert again.positions[valid].tobytes() == recording.positions[valid].tobytes()


def test_cannot_write(tmp_path):
    recording = Recording(("A",), [0.0], np.zeros((1, 1, 3)), [[True]])
    with pytest.raises(InputError, match="cannot write the file"):
        write_csv(tmp_path / "no" / "such" / "folder.csv", recording)


MALFORMED = {
    "empty": ("", ["the file is empty"]),
    "only comments": ("# nothing\n\n", ["the file is empty"]),
    "header only": (HEADER, ["line 1", "no frames after the header"]),
    "no time": (HEADER.replace("time_s,", "") + ROW0, ["line 1, column 1", "'A_x_m'", "expected 'time_s'"]),
    "time in ms": (HEADER.replace("time_s", "time_ms") + ROW0, ["line 1, column 1", "'time_ms'", "'time_s'"]),
    "semicolons": ((HEADER + ROW0).replace(",", ";"), ["line 1", "not separated by commas"]),
    "no markers": ("time_s\n0\n", ["line 1", "no markers in the header"]),
    "axis lacking": (
        "time_s,A_x_m,A_y_m\n0,1,2\n",
        ["line 1", "marker 'A' lacks an axis", "found only x, y", "expected 'A_z_m'"],
    ),
    "wrong unit": (HEADER.replace("B-1_y_m", "B-1_y_mm") + ROW0, ["line 1, column 6", "'B-1_y_mm'", "'B-1_y_m'"]),
    "no unit": (HEADER.replace("A_z_m", "A_z") + ROW0, ["line 1, column 4", "not the coordinate", "'A_z'"]),
    "stray column": (HEADER.replace("A_x_m", "frame") + ROW0, ["line 1, column 2", "'frame'", "'<marker>_x_m'"]),
    "nameless column": (HEADER.replace("\n", ",\n") + ROW0, ["line 1, column 8", "not the coordinate", "''"]),
    "duplicate": (HEADER.replace("A_y_m", "A_x_m") + ROW0, ["line 1, column 3", "'A_x_m', also in column 2"]),
    "text": (HEADER + ROW0 + ROW1.replace("3.5,", "3;5,"), ["line 3, column 4 (A_z_m)", "not a number", "'3;5'"]),
    "underscore": (HEADER + ROW0.replace("4", "4_0"), ["line 2, column 5 (B-1_x_m)", "not a number", "'4_0'"]),
    "nul byte": (HEADER + ROW0.replace("4", "\0"), ["line 2", "a zero byte"]),
    "short row": (HEADER + ROW0 + "0.01,1,2\n", ["line 3", "wrong number of cells", "found 3", "expected 7"]),
    "long row": (HEADER + ROW0.replace("\n", ",9\n"), ["line 2", "wrong number of cells", "found 8"]),
    "open quote": (HEADER + '0,"1,2,3,4,5,6\n' + ROW1, ["line 2", "not a line of cells"]),
    "time repeats": (HEADER + ROW0 + "# c\n" + ROW0, ["line 4, column 1 (time_s)", "time repeats", "in line 2"]),
    "time backwards": (HEADER + ROW1 + ROW0, ["line 3", "time runs backwards", "0 after 0.01 in line 2"]),
    "time NaN": (HEADER + "nan" + ROW0[3:], ["line 2, column 1", "the time is missing"]),
    "time blank": (HEADER + ROW0[3:], ["line 2, column 1", "the time is missing"]),
    "time infinite": (HEADER + "inf" + ROW0[3:], ["line 2, column 1 (time_s)", "infinite value"]),
    "infinite": (HEADER + ROW0.replace("6", "-Infinity"), ["line 2, column 7 (B-1_z_m)", "infinite value"]),
    "overflow": (HEADER + ROW0.replace("6", "1e999"), ["line 2, column 7 (B-1_z_m)", "infinite value", "'1e999'"]),
    "all missing": (HEADER + "0,,,,,,\n0.1,1,,,,2,3\n", ["every sample of every marker is missing", "2 frames of 2"]),
    "latin-1": ((HEADER + ROW0).encode() + "# Grüße\n".encode("latin-1"), ["line 3", "not UTF-8", "byte 0xfc"]),
    "utf-16": ((HEADER + ROW0).encode("utf-16"), ["not UTF-8", "UTF-16"]),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed(tmp_path, case):
    text, parts = MALFORMED[case]
    path = write(tmp_path, text)
    with pytest.raises(InputError) as error:
        read_csv(path)
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    for part in parts:
        assert part in message


def test_missing_file_and_directory(tmp_path):
    with pytest.raises(InputError, match=r"none\.csv: there is no such file"):
        read_csv(tmp_path / "none.csv")
    with pytest.raises(InputError, match="this is a folder"):
        read_csv(tmp_path)
    file = write(tmp_path, HEADER)
    with pytest.raises(InputError, match="cannot be read"):
        read_csv(file / "below")
