"""Files of poses: MCAP, as ROS 2 and Foxglove record them, and JSON, as programs write it that track tags."""

import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, final

import numpy as np

from add.errors import InputError
from add.machine.files import parse_json
from add.mocap.formats.base import Capture, Choices, Format
from add.mocap.formats.tracks import PER_METRE, Draft
from add.mocap.take import UNIT, AngleRecording, PoseRecording, Signal, Take
from add.typing import FloatArray

# --- MCAP: joint states, poses of bodies, wrenches, numbers -----------------------------------------------------------

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
    poses: dict[str, list[tuple[int, list[float], FloatArray]]] = field(default_factory=dict)
    signals: dict[tuple[str, str], list[tuple[int, float]]] = field(default_factory=dict)
    others: Counter[str] = field(default_factory=Counter)
    frames: dict[str, set[str]] = field(default_factory=dict)
    #: Of messages with a header, how far the log's clock is ahead [ns].
    ahead: list[int] = field(default_factory=list)


@final
class MCAP(Format):
    """Messages of ROS 2 (CDR with its schema in the file) or of JSON with the same fields, by the names of their types.

    sensor_msgs/JointState -> angles, with rates, and efforts as signals; geometry_msgs/PoseStamped,
    PoseWithCovarianceStamped, TransformStamped, nav_msgs/Odometry, tf2_msgs/TFMessage -> poses of bodies, by topic or
    by child frame; geometry_msgs/WrenchStamped, std_msgs/Float64 -> signals. Times are those of the headers, or else
    of the log, from the first message on. Lengths are in metres, as ROS says.
    """

    name = "MCAP"

    def recognises(self, capture: Capture) -> bool:
        return capture.data.startswith(_MAGIC)

    def read(self, capture: Capture, choices: Choices) -> Take:
        file = capture.file
        if choices.unit not in (None, "m"):
            raise InputError("the file says its unit", found=f"--unit {choices.unit}", expected="m")
        data, draft = _Found(), Draft(file, choices)
        for topic, kind, log_time, message in _messages(capture):
            try:
                _take(data, topic, kind, log_time, message)
            except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
                raise InputError(f"a message of type {kind} lacks something ({type(error).__name__}: {error})",
                                 place=f"topic '{topic}'") from error  # fmt: skip
        times = [row[0] for rows in (data.states, data.poses, data.signals) for one in rows.values() for row in one]
        if not times:
            listed = ", ".join(f"{count} of {kind}" for kind, count in sorted(data.others.items())) or "no messages"
            raise InputError("nothing that is read", found=listed, expected=f"one of {', '.join(_READ)}")
        begin = min(times)
        draft.notes.append(f"times are from the first message, at {1e-9 * begin:.6f} s of the file's clock")
        draft.notes += [f"{count} messages of type {kind} are not read" for kind, count in data.others.items()]
        draft.doubts += _doubts(data)
        bodies = {name: _body(rows, begin, draft, name) for name, rows in data.poses.items()}
        angles = _angles(data, begin, file)
        signals = [
            Signal(name, 1e-9 * np.array([t - begin for t, _ in rows]), np.array([value for _, value in rows]), unit)
            for (name, unit), rows in data.signals.items()
        ]
        clocks = [*(one.times for one in bodies.values()), *([] if angles is None else [angles.times])]
        draft.rate = next((float(1.0 / np.median(np.diff(clock))) for clock in clocks if len(clock) > 1), None)
        draft.unit = "m" if bodies else ""
        return draft.take(self.name, bodies=bodies, angles=angles, signals=tuple(signals))


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
        found.others[kind or "no schema"] += 1
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


def _body(rows: list[tuple[int, list[float], FloatArray]], begin: int, draft: Draft, name: str) -> PoseRecording:
    """Return the poses of one body with z up; a covariance of zeros is none."""
    rows = sorted(rows, key=lambda row: row[0])
    numbers, covariances = np.array([row[1] for row in rows]), [row[2] for row in rows]
    known = all(one.size == 36 and one.any() for one in covariances)
    try:
        recording = PoseRecording(
            1e-9 * np.array([row[0] - begin for row in rows]), numbers[:, :3], numbers[:, 3:], source=draft.file,
            covariance=np.array(covariances).reshape(-1, 6, 6) if known else None,
        )  # fmt: skip
    except InputError as error:
        error.place = f"body '{name}'" + (f", {error.place}" if error.place else "")
        raise
    return draft.stood(recording)


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
    tables: dict[str, list[FloatArray | None]] = {"position": [], "velocity": [], "effort": []}
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


# --- JSON of poses ----------------------------------------------------------------------------------------------------

#: Place of w, x, y, z in a list of that order.
_ORDERS = {"wxyz": (0, 1, 2, 3), "xyzw": (3, 0, 1, 2)}
_TOP = ("unit", "quaternion_order", "frames")
_KEYS = ("time", "body", "position", "quaternion", "covariance", "score")


class _Pose(NamedTuple):
    """One frame in which the body was seen, in the unit of the file."""

    place: str
    time: float
    position: FloatArray
    quaternion: FloatArray
    covariance: FloatArray | None
    score: float | None


@final
class PoseJSON(Format):
    """An object with the unit of length, the order of quaternions and a list of frames.

        {"unit": "m", "quaternion_order": "xyzw", "frames": [
          {"time": 0.0, "position": [0.1, 0, 0.2], "quaternion": [0, 0, 0, 1], "covariance": [...], "score": 0.98},
          {"time": 0.02, "position": null, "quaternion": null}]}

    A position may be an object with x, y, z, a quaternion one with w, x, y, z, which then needs no order. A
    covariance is 6 x 6, as rows or as 36 numbers, of the position in the file's unit and of a small rotation about the
    world's axes [rad], as ROS has it. Frames of several bodies have a `body`.
    """

    name = "JSON of poses"

    def recognises(self, capture: Capture) -> bool:
        return capture.head.lstrip().startswith("{") and b'"frames"' in capture.data

    def read(self, capture: Capture, choices: Choices) -> Take:
        raw = parse_json("\n".join(capture.lines), capture.file)
        _known(raw, _TOP, "the file")
        if not isinstance(raw.get("frames"), list):
            raise InputError("no list of frames", place="frames", found=_brief(raw.get("frames")))
        said = raw.get("unit")
        draft = Draft(capture.file, choices)
        draft.read_unit(said if said is None else _text(said, "unit"), "unit")
        frames: dict[str, list[_Pose]] = {}
        lost = 0
        for k, frame in enumerate(raw["frames"]):
            body, pose = _frame(frame, f"frames.{k}", raw.get("quaternion_order"))
            if pose is None:
                lost += 1
            else:
                frames.setdefault(body, []).append(pose)
        if not frames:
            raise InputError("no body is seen in any frame", place="frames", expected="one pose at least")
        bodies = {name: _recording(poses, draft) for name, poses in frames.items()}
        if lost:
            draft.notes.append(f"{lost} of {len(raw['frames'])} frames are gaps")
        if any(pose.extra for pose in bodies.values()):
            draft.notes.append("scores are kept, and weigh nothing: a covariance does")
        first = next(iter(bodies.values()))
        draft.rate = None if first.n_frames < 2 else float(1.0 / np.median(np.diff(first.times)))
        return draft.take(self.name, bodies=bodies)


def _frame(frame: Any, place: str, order: Any) -> tuple[str, _Pose | None]:
    """Return the body of a frame and its pose, None for a gap."""
    _known(frame, _KEYS, place)
    time = _numbers(frame.get("time"), (), f"{place}.time")
    body = frame.get("body", "body")
    if not isinstance(body, str | int) or isinstance(body, bool) or not str(body).strip():
        raise InputError("no name of a body", place=f"{place}.body", found=_brief(body), expected="a text")
    position, quaternion = frame.get("position"), frame.get("quaternion")
    if position is None and quaternion is None:
        return str(body), None
    at = f"{place}.quaternion"
    if isinstance(quaternion, Mapping):
        turn = _numbers(_listed(quaternion, "wxyz", at), (4,), at)
    else:
        turn = _numbers(quaternion, (4,), at)
        if order not in _ORDERS:
            raise InputError("the file does not say the order of its quaternions", place="quaternion_order",
                             found=_brief(order), expected='"wxyz" or "xyzw"')  # fmt: skip
        turn = turn[list(_ORDERS[order])]
    norm = float(np.linalg.norm(turn))
    if abs(norm - 1.0) > UNIT:
        raise InputError("not a unit quaternion", place=at, found=f"norm {norm:.6g}", expected=f"1 within {UNIT:g}")
    at = f"{place}.position"
    if isinstance(position, Mapping):
        position = _listed(position, "xyz", at)
    covariance, score = frame.get("covariance"), frame.get("score")
    if covariance is not None:
        flat = isinstance(covariance, list) and len(covariance) == 36
        covariance = _numbers(covariance, (36,) if flat else (6, 6), f"{place}.covariance").reshape(6, 6)
    if score is not None:
        score = float(_numbers(score, (), f"{place}.score"))
    return str(body), _Pose(place, float(time), _numbers(position, (3,), at), turn, covariance, score)


def _recording(poses: list[_Pose], draft: Draft) -> PoseRecording:
    """Return the poses of one body in metres with z up."""
    for one, other in pairwise(poses):
        if other.time <= one.time:
            raise InputError("times do not increase", place=f"{other.place}.time", found=f"{other.time:g} s",
                             expected=f"more than the {one.time:g} s before")  # fmt: skip
    for key in ("covariance", "score"):
        given = [getattr(pose, key) is not None for pose in poses]
        if any(given) and not all(given):
            raise InputError(f"a frame has no {key} and others do", place=poses[given.index(False)].place,
                             expected=f"a {key} in every frame in which the body was seen, or in none")  # fmt: skip
    recording = PoseRecording(
        np.array([pose.time for pose in poses]),
        np.array([pose.position for pose in poses]),
        np.array([pose.quaternion for pose in poses]),
        extra={} if poses[0].score is None else {"score": np.array([pose.score for pose in poses], dtype=float)},
        source=draft.file,
        covariance=None if poses[0].covariance is None else np.array([pose.covariance for pose in poses]),
    ).scaled(1.0 / PER_METRE[draft.unit])
    return draft.stood(recording)


def _known(node: Any, keys: tuple[str, ...], place: str) -> None:
    if not isinstance(node, dict):
        raise InputError("not an object", place=place, found=_brief(node), expected=", ".join(keys))
    other = next((key for key in node if key not in keys), None)
    if other is not None:
        raise InputError("unknown key", place=place, found=repr(other[:60]), expected=", ".join(keys))


def _listed(node: Mapping[str, Any], keys: str, place: str) -> list[Any]:
    """Return the values of an object whose keys are single letters, in their order."""
    if set(node) != set(keys):
        raise InputError("a vector lacks components, or has others", place=place, found=", ".join(map(repr, node))[:80],
                         expected=", ".join(keys))  # fmt: skip
    return [node[key] for key in keys]


def _numbers(value: Any, shape: tuple[int, ...], place: str) -> FloatArray:
    """Return finite numbers of a shape."""
    expected = "a finite number" if not shape else f"{' x '.join(map(str, shape))} finite numbers"

    def plain(node: Any, left: tuple[int, ...]) -> bool:
        if left:
            return isinstance(node, list) and len(node) == left[0] and all(plain(item, left[1:]) for item in node)
        return isinstance(node, int | float) and not isinstance(node, bool) and abs(node) < 1e300

    if not plain(value, shape):
        raise InputError(
            "no such number" if not shape else "no such numbers", place=place, found=_brief(value), expected=expected
        )
    return np.array(value, dtype=np.float64)


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise InputError("not a text", place=place, found=_brief(value), expected="m, cm or mm")
    return value


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
