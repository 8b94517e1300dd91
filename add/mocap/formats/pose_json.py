"""JSON files of poses, as programs write them that track tags or estimate poses."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from add.errors import InputError
from add.machine.files import parse_json
from add.mocap.formats.base import Capture, Choices, Format, Remarks
from add.mocap.formats.tracks import PER_METRE, length_unit, turned, upright
from add.mocap.take import UNIT, PoseRecording, Take

#: Place of w, x, y, z in a list of that order.
_ORDERS = {"wxyz": (0, 1, 2, 3), "xyzw": (3, 0, 1, 2)}
_TOP = ("unit", "quaternion_order", "frames")
_KEYS = ("time", "body", "position", "quaternion", "covariance", "score")


@final
@dataclass(frozen=True)
class _Pose:
    """One frame in which the body was seen, in the unit of the file."""

    place: str
    time: float
    position: NDArray[np.float64]
    quaternion: NDArray[np.float64]
    covariance: NDArray[np.float64] | None
    score: float | None


@final
@dataclass(frozen=True)
class PoseJSON(Format):
    """An object with the unit of length, the order of quaternions and a list of frames.

        {"unit": "m", "quaternion_order": "xyzw", "frames": [
          {"time": 0.0, "position": [0.1, 0, 0.2], "quaternion": [0, 0, 0, 1], "covariance": [...], "score": 0.98},
          {"time": 0.02, "position": null, "quaternion": null}]}

    A position may be an object with x, y, z, a quaternion one with w, x, y, z, which then needs no order. A
    covariance is 6 x 6, as rows or as 36 numbers, of the position in the file's unit and of a small rotation about the
    world's axes [rad], as ROS has it. Frames of several bodies have a `body`.
    """

    name: str = "JSON of poses"

    def recognises(self, capture: Capture) -> bool:
        return capture.head.lstrip().startswith("{") and b'"frames"' in capture.data

    def read(self, capture: Capture, choices: Choices) -> Take:
        raw = parse_json("\n".join(capture.lines), capture.file)
        _known(raw, _TOP, "the file")
        if not isinstance(raw.get("frames"), list):
            raise InputError("no list of frames", place="frames", found=_brief(raw.get("frames")))
        said = raw.get("unit")
        unit = length_unit(said if said is None else _text(said, "unit"), "unit", choices)
        remarks = Remarks()
        up = upright(None, "", choices, remarks)
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
        bodies = {name: _recording(poses, unit, up, capture.file) for name, poses in frames.items()}
        if lost:
            remarks.notes.append(f"{lost} of {len(raw['frames'])} frames are gaps")
        if any(pose.extra for pose in bodies.values()):
            remarks.notes.append("scores are kept, and weigh nothing: a covariance does")
        first = next(iter(bodies.values()))
        rate = None if first.n_frames < 2 else float(1.0 / np.median(np.diff(first.times)))
        return Take(self.name, capture.file, bodies=bodies, unit=unit, rate=rate, up=up, **remarks.said())


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


def _recording(poses: list[_Pose], unit: str, up: str, file: str) -> PoseRecording:
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
        source=file,
        covariance=None if poses[0].covariance is None else np.array([pose.covariance for pose in poses]),
    ).scaled(1.0 / PER_METRE[unit])
    return recording if up == "z" else recording.transformed(turned(up), np.zeros(3))


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


def _numbers(value: Any, shape: tuple[int, ...], place: str) -> NDArray[np.float64]:
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
