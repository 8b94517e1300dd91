"""MCAP files, as ROS 2 and Foxglove record them: joint states, poses of bodies, wrenches, numbers."""

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from add.errors import InputError
from add.mocap.formats.base import Capture, Choices, Format, Remarks
from add.mocap.formats.tracks import turned, upright
from add.mocap.take import AngleRecording, PoseRecording, Signal, Take

#: Clocks that differ by less are one: messages take a while from their stamp to the log [s].
_SAME_CLOCK = 60.0
_MAGIC = b"\x89MCAP0\r\n"
#: Messages that are one pose of the body that the topic is called after -> the way to the pose.
_POSES = {"PoseStamped": ("pose",), "PoseWithCovarianceStamped": ("pose", "pose")}
_READ = ("JointState", *_POSES, "Odometry", "TransformStamped", "TFMessage", "WrenchStamped", "Float64")


@final
@dataclass
class _Found:
    """Content of the messages, by name; times are on the clock of the file [ns]; frames are those of poses."""

    states: dict[str, list[tuple[int, Any]]] = field(default_factory=dict)
    poses: dict[str, list[tuple[int, list[float], NDArray[np.float64]]]] = field(default_factory=dict)
    signals: dict[tuple[str, str], list[tuple[int, float]]] = field(default_factory=dict)
    others: dict[str, int] = field(default_factory=dict)
    frames: dict[str, set[str]] = field(default_factory=dict)
    #: Of messages with a header, how far the log's clock is ahead [ns].
    ahead: list[int] = field(default_factory=list)


@final
@dataclass(frozen=True)
class MCAP(Format):
    """Messages of ROS 2 (CDR with its schema in the file) or of JSON with the same fields, by the names of their types.

    sensor_msgs/JointState -> angles, with rates, and efforts as signals; geometry_msgs/PoseStamped,
    PoseWithCovarianceStamped, TransformStamped, nav_msgs/Odometry, tf2_msgs/TFMessage -> poses of bodies, by topic or
    by child frame; geometry_msgs/WrenchStamped, std_msgs/Float64 -> signals. Times are those of the headers, or else
    of the log, from the first message on. Lengths are in metres, as ROS says.
    """

    name: str = "MCAP"

    def recognises(self, capture: Capture) -> bool:
        return capture.data.startswith(_MAGIC)

    def read(self, capture: Capture, choices: Choices) -> Take:
        file = capture.file
        if choices.unit not in (None, "m"):
            raise InputError("the file says its unit", found=f"--unit {choices.unit}", expected="m")
        found, remarks = _Found(), Remarks()
        for topic, kind, log_time, message in _messages(capture):
            try:
                _take(found, topic, kind, log_time, message)
            except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
                raise InputError(f"a message of type {kind} lacks something ({type(error).__name__}: {error})",
                                 place=f"topic '{topic}'") from error  # fmt: skip
        times = [row[0] for rows in (found.states, found.poses, found.signals) for one in rows.values() for row in one]
        if not times:
            listed = ", ".join(f"{count} of {kind}" for kind, count in sorted(found.others.items())) or "no messages"
            raise InputError("nothing that is read", found=listed, expected=f"one of {', '.join(_READ)}")
        begin = min(times)
        remarks.notes.append(f"times are from the first message, at {1e-9 * begin:.6f} s of the file's clock")
        remarks.notes += [f"{count} messages of type {kind} are not read" for kind, count in found.others.items()]
        remarks.doubts += _doubts(found)
        up = upright(None, "", choices, remarks)
        bodies = {name: _body(rows, begin, up, file, name) for name, rows in found.poses.items()}
        angles = _angles(found, begin, file)
        signals = [
            Signal(name, 1e-9 * np.array([t - begin for t, _ in rows]), np.array([value for _, value in rows]), unit)
            for (name, unit), rows in found.signals.items()
        ]
        clocks = [*(one.times for one in bodies.values()), *([] if angles is None else [angles.times])]
        rate = next((float(1.0 / np.median(np.diff(clock))) for clock in clocks if len(clock) > 1), None)
        unit = "m" if bodies else ""
        return Take(self.name, file, bodies=bodies, angles=angles, signals=tuple(signals), unit=unit, rate=rate, up=up,
                    **remarks.said())  # fmt: skip


def _messages(capture: Capture) -> Iterator[tuple[str, str, int, Any]]:
    """Yield topic, name of the type without its package, time of the log [ns] and the message, in order of time."""
    try:
        from mcap.reader import make_reader
        from mcap_ros2.decoder import DecoderFactory
    except ImportError:
        raise InputError("MCAP files are read by the packages mcap and mcap-ros2-support, which are not installed",
                         expected="pip install 'add-sim[ros]'") from None  # fmt: skip
    factory, decoders = DecoderFactory(), dict[int, Callable[[bytes], Any] | None]()
    try:
        for schema, channel, message in make_reader(io.BytesIO(capture.data), validate_crcs=True).iter_messages():
            kind = "" if schema is None else schema.name.replace("::", "/").rpartition("/")[2]
            if channel.id not in decoders:
                encoding = channel.message_encoding
                decoders[channel.id] = json.loads if encoding == "json" else factory.decoder_for(encoding, schema)
            decoder = decoders[channel.id]
            readable = decoder if kind in _READ else None
            yield channel.topic, kind, message.log_time, None if readable is None else readable(message.data)
    except Exception as error:  # chunks are unpacked by other packages, whose errors have no common class
        raise InputError("the file is damaged, or was not closed", found=f"{type(error).__name__}: {error}") from error


def _of(node: Any, *names: str) -> Any:
    """Return a field of a field of a message."""
    for name in names:
        node = node[name] if isinstance(node, Mapping) else getattr(node, name)
    return node


def _take(found: _Found, topic: str, kind: str, log_time: int, message: Any) -> None:
    """Add what a message says."""
    name = topic.strip("/")
    if message is None:
        found.others[kind or "no schema"] = found.others.get(kind or "no schema", 0) + 1
    elif kind == "JointState":
        found.states.setdefault(name, []).append((_stamp(found, message, log_time), message))
    elif kind in _POSES:
        pose, wide = _of(message, *_POSES[kind]), len(_POSES[kind]) == 2
        _pose(found, name, message, log_time, pose, _of(message, "pose", "covariance") if wide else ())
    elif kind == "Odometry":
        child = _of(message, "child_frame_id") or name
        _pose(found, child, message, log_time, _of(message, "pose", "pose"), _of(message, "pose", "covariance"))
    elif kind == "WrenchStamped":
        for part, unit in (("force", "N"), ("torque", "N m")):
            for axis in "xyz":
                rows = found.signals.setdefault((f"{name}.{part}.{axis}", unit), [])
                rows.append((_stamp(found, message, log_time), float(_of(message, "wrench", part, axis))))
    elif kind == "Float64":
        found.signals.setdefault((name, ""), []).append((log_time, float(_of(message, "data"))))
    else:
        for one in _of(message, "transforms") if kind == "TFMessage" else [message]:
            _pose(found, _of(one, "child_frame_id"), one, log_time, _of(one, "transform"), ())


def _stamp(found: _Found, message: Any, log_time: int) -> int:
    """Return the time of a header [ns]; that of the log where it says none."""
    stamp = _of(message, "header", "stamp")
    part = "nanosec" if (isinstance(stamp, Mapping) and "nanosec" in stamp) or hasattr(stamp, "nanosec") else "nsec"
    time = 10**9 * int(_of(stamp, "sec")) + int(_of(stamp, part)) or log_time
    found.ahead.append(log_time - time)
    return time


def _pose(found: _Found, name: str, message: Any, log_time: int, pose: Any, covariance: Sequence[float]) -> None:
    place = _of(pose, "position" if _has(pose, "position") else "translation")
    turn = _of(pose, "orientation" if _has(pose, "orientation") else "rotation")
    numbers = [*(float(_of(place, axis)) for axis in "xyz"), *(float(_of(turn, axis)) for axis in "wxyz")]
    row = _stamp(found, message, log_time), numbers, np.array(covariance, dtype=np.float64)
    found.poses.setdefault(name, []).append(row)
    found.frames.setdefault(name, set()).add(str(_of(message, "header", "frame_id")))


def _doubts(found: _Found) -> Iterator[str]:
    """Yield doubts about poses that are not those in one frame that stands still, and about two clocks."""
    ahead = 1e-9 * float(np.median(found.ahead or [0]))
    if abs(ahead) > _SAME_CLOCK and any(not unit for _, unit in found.signals):
        behind = f"the clock of the log is {ahead:.6g} s ahead of that of the headers"
        yield f"{behind}: Float64 messages, which have none, are on the other one"
    for name, frames in found.frames.items():
        if len(frames) > 1:
            yield f"poses of '{name}' are in several frames ({', '.join(sorted(frames))}), taken for those in one"
        elif moving := frames & set(found.poses):
            yield f"poses of '{name}' are in the frame '{moving.pop()}', which moves itself: they are not the world's"


def _has(node: Any, name: str) -> bool:
    return name in node if isinstance(node, Mapping) else hasattr(node, name)


def _body(
    rows: list[tuple[int, list[float], NDArray[np.float64]]], begin: int, up: str, file: str, name: str
) -> PoseRecording:
    """Return the poses of one body with z up; a covariance of zeros is none."""
    rows = sorted(rows, key=lambda row: row[0])
    numbers, covariances = np.array([row[1] for row in rows]), [row[2] for row in rows]
    known = all(one.size == 36 and one.any() for one in covariances)
    try:
        recording = PoseRecording(
            1e-9 * np.array([row[0] - begin for row in rows]), numbers[:, :3], numbers[:, 3:], source=file,
            covariance=np.array(covariances).reshape(-1, 6, 6) if known else None,
        )  # fmt: skip
    except InputError as error:
        error.place = f"body '{name}'" + (f", {error.place}" if error.place else "")
        raise
    return recording if up == "z" else recording.transformed(turned(up), np.zeros(3))


def _angles(found: _Found, begin: int, file: str) -> AngleRecording | None:
    """Return positions and velocities of joints; efforts become signals."""
    if not found.states:
        return None
    if len(found.states) > 1:
        raise InputError("joint states under several topics", found=", ".join(sorted(found.states)),
                         expected="one topic of sensor_msgs/JointState")  # fmt: skip
    ((topic, rows),) = found.states.items()
    rows = sorted(rows, key=lambda row: row[0])
    names = [str(name) for name in _of(rows[0][1], "name")]
    tables: dict[str, list[NDArray[np.float64] | None]] = {"position": [], "velocity": [], "effort": []}
    for time, message in rows:
        order = {str(name): k for k, name in enumerate(_of(message, "name"))}
        if set(order) != set(names):
            raise InputError("joint states do not name the same joints",
                             place=f"topic '{topic}', t = {1e-9 * (time - begin):g} s", found=", ".join(order),
                             expected=", ".join(names))  # fmt: skip
        for key, table in tables.items():
            values = np.array(_of(message, key), dtype=np.float64)
            table.append(values[[order[name] for name in names]] if values.size == len(names) else None)
    position, velocity, effort = (
        None if any(row is None for row in table) else np.array(table, dtype=np.float64) for table in tables.values()
    )
    if position is None:
        raise InputError("joint states without positions", place=f"topic '{topic}'")
    times = [time for time, _ in rows]
    if effort is not None:
        for k, name in enumerate(names):
            found.signals[f"{name}.effort", ""] = list(zip(times, effort[:, k].tolist(), strict=True))
    return AngleRecording(tuple(names), 1e-9 * np.array([t - begin for t in times]), position, velocity, file)
