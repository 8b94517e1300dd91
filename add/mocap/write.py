"""Files of markers, poses and signals for other programs: TRC, C3D, CSV with units in the headings, MCAP."""

import csv
import math
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from add.errors import InputError
from add.mocap.formats.plain import COVARIANCE, POSITION, QUATERNION, SPIN_WORLD, VELOCITY
from add.mocap.recording import Recording
from add.mocap.take import PoseRecording, Signal, Take


def write_csv(path: str | os.PathLike[str], recording: Recording) -> None:
    """Write a recording in metres so that `read_csv` gives back the same bits; missing samples are blank cells."""
    header = ["time_s", *(f"{name}_{axis}_m" for name in recording.names for axis in "xyz")]
    frames = zip(recording.times.tolist(), recording.positions, strict=True)
    rows = (_cells([time, *frame.ravel().tolist()]) for time, frame in frames)
    _write(os.fspath(path), chain([header], rows), ",")


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
        "DataRate CameraRate NumFrames NumMarkers Units OrigDataRate OrigDataStartFrame OrigNumFrames".split(),
        [rate, rate, str(n), str(m), "m", rate, "1", str(n)],
        ["Frame#", "Time", *(cell for name in recording.names for cell in (name, "", ""))],
        ["", "", *(f"{axis}{k + 1}" for k in range(m) for axis in "XYZ")],
        [],  # not [""], for which csv writes two quotes
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
    rate = float(1.0 / np.diff(recording.times).mean())
    first = 1 + round(float(recording.times[0]) * rate)
    if not (1 <= first <= 65535 - n and abs(recording.times[0] * rate + 1 - first) <= 1e-3):
        raise InputError(
            "frames of a C3D count from t = 0", file=file, found=f"a start at {recording.times[0]:g} s, {rate:g} Hz"
        )
    if max(len(name.encode()) for name in recording.names) > 255:
        raise InputError("a name is too long for a C3D", file=file, expected="at most 255 bytes")
    writer = c3d.Writer(point_rate=rate, point_units="mm  ")
    writer.set_start_frame(first)
    labels = [name.encode() for name in recording.names]  # which the package measures before it encodes them
    width = max(map(len, labels))
    padded = b"".join(label.ljust(width) for label in labels)
    writer.point_group.add_param("LABELS", desc="", bytes_per_element=-1, bytes=padded, dimensions=[width, m])
    writer.set_screen_axis("+X", "+Z")
    for positions, valid in zip(recording.positions, recording.valid, strict=True):
        rows = np.zeros((m, 5), dtype=np.float32)
        rows[:, :3] = np.where(valid[:, None], 1000.0 * positions, 0.0)
        rows[:, 3] = np.where(valid, 0.0, -1.0)
        writer.add_frames([(rows, np.zeros((0, 0), dtype=np.float32))])
    with _writing(file), open(file, "wb") as stream, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # there are no analog channels
        writer.write(stream)


def write_pose_csv(path: str | os.PathLike[str], pose: PoseRecording) -> None:
    """Write the pose of a body so that `read_pose_csv` gives it back, with rates, covariances and other columns."""
    upper = None if pose.covariance is None else pose.covariance[:, *np.triu_indices(6)]
    parts = [
        (POSITION, pose.position),
        (QUATERNION, pose.quaternion),
        (VELOCITY, pose.velocity),
        (SPIN_WORLD, pose.angular_velocity),
        (COVARIANCE, upper),
        *(((name,), values) for name, values in pose.extra.items()),
    ]
    given = [(names, values) for names, values in parts if values is not None]
    header = ["time_s", *chain.from_iterable(names for names, _ in given)]
    rows = np.column_stack([pose.times, *(values for _, values in given)]).tolist()
    _write(os.fspath(path), [header, *map(_cells, rows)], ",")


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


# --- MCAP -------------------------------------------------------------------------------------------------------------

_PART = "\n" + 80 * "=" + "\nMSG: "
_HEADER = f"{_PART}std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id{_PART}builtin_interfaces/Time\n" + (
    "int32 sec\nuint32 nanosec"
)
_NUMBERS, _STATE, _MOVED = "std_msgs/msg/Float64", "sensor_msgs/msg/JointState", "tf2_msgs/msg/TFMessage"
#: Definitions of the messages, as ROS 2 has them.
_MESSAGES = {
    _NUMBERS: "float64 data",
    _STATE: f"std_msgs/Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\nfloat64[] effort{_HEADER}",
    _MOVED: f"geometry_msgs/TransformStamped[] transforms{_PART}geometry_msgs/TransformStamped\n"
    f"std_msgs/Header header\nstring child_frame_id\ngeometry_msgs/Transform transform{_HEADER}"
    f"{_PART}geometry_msgs/Transform\n"
    f"geometry_msgs/Vector3 translation\ngeometry_msgs/Quaternion rotation{_PART}geometry_msgs/Vector3\nfloat64 x\n"
    f"float64 y\nfloat64 z{_PART}geometry_msgs/Quaternion\nfloat64 x\nfloat64 y\nfloat64 z\nfloat64 w",
}


def write_mcap(path: str | os.PathLike[str], take: Take) -> None:
    """Write angles, poses and signals as messages of ROS 2, which `ros2 bag`, Foxglove and `read_take` read.

    sensor_msgs/JointState on /joint_states, its efforts the signals that are called ``JOINT.effort``; poses as
    tf2_msgs/TFMessage on /tf, from "world"; other signals as std_msgs/Float64 on /signals/NAME, "/" for each ".". Their
    units are in the file's metadata.

    Raises
    ------
    InputError
        If the packages are not installed, two signals have one topic, or the file cannot be written.
    """
    file = os.fspath(path)
    try:
        from mcap_ros2.writer import Writer
    except ImportError:
        raise InputError(
            "MCAP files are written by the packages mcap and mcap-ros2-support, which are not installed", file=file,
            expected="pip install 'add-sim[ros]'",
        ) from None  # fmt: skip
    units: dict[str, str] = {}
    rows = sorted(_messages(file, take, units), key=lambda row: row[:2])
    with _writing(file), open(file, "wb") as stream:
        writer = Writer(stream)
        schemas = {kind: writer.register_msgdef(kind, text) for kind, text in _MESSAGES.items()}
        for time, topic, kind, message in rows:
            writer.write_message(topic, schemas[kind], message, log_time=time)
        writer.add_metadata("units", units)
        writer.finish()


def _messages(file: str, take: Take, units: dict[str, str]) -> Iterator[tuple[int, str, str, dict[str, Any]]]:
    """Yield time [ns], topic, type and message; fill the units of the topics of signals."""

    def header(time: int) -> dict[str, Any]:
        return {"stamp": {"sec": time // 10**9, "nanosec": time % 10**9}, "frame_id": "world"}

    joints = () if take.angles is None else take.angles.names
    efforts = {signal.name: signal for signal in take.signals if signal.name.removesuffix(".effort") in joints}
    for signal in take.signals:
        if signal.name in efforts:
            continue
        topic = "/signals/" + re.sub(
            r"(^|/)(?=\d)", r"\1_", re.sub(r"\W", "_", signal.name.replace(".", "/"), flags=re.A)
        )
        if topic in units:
            raise InputError("two signals have one topic", file=file, place=topic, found=f"'{signal.name}' and another")
        units[topic] = signal.unit
        for time, value in zip(_nanoseconds(signal.times), signal.values.tolist(), strict=True):
            yield time, topic, _NUMBERS, {"data": value}
    if take.angles is not None:
        rates = np.zeros((len(take.angles.times), 0)) if take.angles.rates is None else take.angles.rates
        known = [efforts[name].values for joint in joints if (name := f"{joint}.effort") in efforts]
        forces = np.stack(known, axis=1) if len(known) == len(joints) else rates[:, :0]
        for time, *numbers in zip(_nanoseconds(take.angles.times), take.angles.angles, rates, forces, strict=True):
            fields = dict(zip(("position", "velocity", "effort"), (row.tolist() for row in numbers), strict=True))
            yield time, "/joint_states", _STATE, {"header": header(time), "name": list(joints), **fields}
    for name, pose in take.bodies.items():
        for time, place, turn in zip(_nanoseconds(pose.times), pose.position, pose.quaternion, strict=True):
            moved = {"translation": dict(zip("xyz", place.tolist(), strict=True)),
                     "rotation": dict(zip("wxyz", turn.tolist(), strict=True))}  # fmt: skip
            yield (
                time,
                "/tf",
                _MOVED,
                {"transforms": [{"header": header(time), "child_frame_id": name, "transform": moved}]},
            )


def _nanoseconds(times: np.ndarray[Any, np.dtype[np.float64]]) -> list[int]:
    return np.rint(1e9 * times).astype(np.int64).tolist()


# ----------------------------------------------------------------------------------------------------------------------


def _cells(values: Iterable[float]) -> list[str]:
    # repr of a float is the shortest text that reads back as the same float
    return ["" if math.isnan(value) else repr(value) for value in values]


def _write(file: str, rows: Iterable[Sequence[str]], delimiter: str) -> None:
    with _writing(file), open(file, "w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, delimiter=delimiter, lineterminator="\n").writerows(rows)


@contextmanager
def _writing(file: str) -> Iterator[None]:
    """Errors of the system while a file is written, as ones that name it."""
    try:
        yield
    except OSError as error:
        raise InputError("cannot write the file", file=file, found=error.strerror) from error
