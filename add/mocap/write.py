"""Files of markers, poses and signals for other programs: TRC, and CSV with units in the headings."""

import csv
import math
import os
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from add.errors import InputError
from add.mocap.recording import Recording
from add.mocap.take import PoseRecording, Signal


def write_trc(path: str | os.PathLike[str], recording: Recording) -> None:
    """Write markers as TRC in metres with z up, so that `read_take` gives back the same bits; missing ones are blank.

    Raises
    ------
    InputError
        If a name holds a tab, or the file cannot be written.
    """
    file = os.fspath(path)
    bad = [name for name in recording.names if "\t" in name]
    if bad:
        raise InputError("a tab in the name of a marker cannot be in a TRC file", file=file, found=repr(bad[0]))
    rate = f"{recording.rate:.10g}" if recording.n_frames > 1 else "1"
    n, m = recording.n_frames, recording.n_markers
    head = [
        ["PathFileType", "4", "(X/Y/Z)", Path(file).name],
        [
            "DataRate",
            "CameraRate",
            "NumFrames",
            "NumMarkers",
            "Units",
            "OrigDataRate",
            "OrigDataStartFrame",
            "OrigNumFrames",
        ],
        [rate, rate, str(n), str(m), "m", rate, "1", str(n)],
        ["Frame#", "Time", *(cell for name in recording.names for cell in (name, "", ""))],
        ["", "", *(f"{axis}{k + 1}" for k in range(m) for axis in "XYZ")],
        [""],
    ]
    rows = (
        [str(k + 1), repr(time), *_cells(frame.ravel().tolist())]
        for k, (time, frame) in enumerate(zip(recording.times.tolist(), recording.positions, strict=True))
    )
    _write(file, [*head, *rows], "\t")


def write_c3d(path: str | os.PathLike[str], recording: Recording) -> None:
    """Write markers as C3D in millimetres with z up, as floats of 32 bits: to 1e-7 of the distance from the origin.

    Raises
    ------
    InputError
        If frames are not evenly spaced, or there are too many of them or of markers for the format.
    """
    import c3d

    file = os.fspath(path)
    n, m = recording.n_frames, recording.n_markers
    if n < 2 or np.ptp(np.diff(recording.times)) > 1e-6 * float(recording.times[-1] - recording.times[0]):
        raise InputError("a C3D needs frames that are evenly spaced", file=file, expected="a rate")
    if n > 65535 or m > 255:
        raise InputError(
            "too much for a C3D", file=file, found=f"{n} frames of {m} markers", expected="at most 65535 of 255"
        )
    writer = c3d.Writer(point_rate=float(1.0 / np.diff(recording.times).mean()), point_units="mm  ")
    writer.set_point_labels(list(recording.names))
    writer.set_screen_axis("+X", "+Z")
    for positions, valid in zip(recording.positions, recording.valid, strict=True):
        rows = np.zeros((m, 5), dtype=np.float32)
        rows[:, :3] = np.where(valid[:, None], 1000.0 * positions, 0.0)
        rows[:, 3] = np.where(valid, 0.0, -1.0)
        writer.add_frames([(rows, np.zeros((0, 0), dtype=np.float32))])
    try:
        with open(file, "wb") as stream, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # there are no analog channels
            writer.write(stream)
    except OSError as error:
        raise InputError("cannot write the file", file=file, found=error.strerror) from error


def write_pose_csv(path: str | os.PathLike[str], pose: PoseRecording) -> None:
    """Write the pose of a body so that `read_pose_csv` gives it back: `time_s, x_m, y_m, z_m, qw, qx, qy, qz`."""
    rows = np.column_stack([pose.times, pose.position, pose.quaternion]).tolist()
    _write(os.fspath(path), [["time_s", "x_m", "y_m", "z_m", "qw", "qx", "qy", "qz"], *map(_cells, rows)], ",")


def write_signals(path: str | os.PathLike[str], signals: Sequence[Signal]) -> list[Path]:
    """Write signals as CSV, `time_s` and `name [unit]`; those sampled at other times into a file of their own.

    Returns
    -------
    list of Path
        OUT, and OUT_2, OUT_3 for further clocks.

    Raises
    ------
    InputError
        If there are none, or a file cannot be written.
    """
    if not signals:
        raise InputError("there are no signals to write", file=path)
    groups: list[list[Signal]] = []
    for signal in signals:
        group = next((group for group in groups if np.array_equal(group[0].times, signal.times)), None)
        if group is None:
            groups.append([signal])
        else:
            group.append(signal)
    written = []
    for number, group in enumerate(groups, start=1):
        target = Path(path) if number == 1 else Path(path).with_stem(f"{Path(path).stem}_{number}")
        head = ["time_s", *(f"{signal.name} [{signal.unit}]" if signal.unit else signal.name for signal in group)]
        table = np.column_stack([group[0].times, *(signal.values for signal in group)]).tolist()
        _write(os.fspath(target), [head, *map(_cells, table)], ",")
        written.append(target)
    return written


def _cells(values: Iterable[float]) -> list[str]:
    # repr of a float is the shortest text that reads back as the same float
    return ["" if math.isnan(value) else repr(value) for value in values]


def _write(file: str, rows: Iterable[Sequence[str]], delimiter: str) -> None:
    try:
        with open(file, "w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, delimiter=delimiter, lineterminator="\n").writerows(rows)
    except OSError as error:
        raise InputError("cannot write the file", file=file, found=error.strerror) from error
