"""C3D files through `c3d`: three processors, integers and floats, markers with residuals, analog channels, events.

`c3d` and not `ezc3d`, which refuses the files of MIPS (big-endian) processors and, being compiled, could end this
process on a damaged one. Frame 1 is at t = 0, also where a trial was cut and begins later; so are the times of events.

Force plates give the force on the plate and the moment about its origin from their channels, in the plate's axes. Their
types are those of the format's manual: 1 has three forces, the centre of pressure and the free moment; 2 has three
forces and three moments; 3 has eight forces of four sensors; 4 is type 2 behind a calibration matrix, F = C s with s
the channels.
"""

import io
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np

from add.errors import InputError
from add.mocap.formats.base import Capture, Choices, Format
from add.mocap.formats.tracks import Draft
from add.mocap.take import Event, Signal, Take
from add.typing import FloatArray

_CHANNELS = {1: 6, 2: 6, 3: 8, 4: 6}
_COMPONENTS = (("Fx", "N"), ("Fy", "N"), ("Fz", "N"), ("Mx", ""), ("My", ""), ("Mz", ""))


def plate_signals(parameters: Mapping[str, FloatArray], analog: Sequence[Signal], notes: list[str]) -> list[Signal]:
    """Return force and moment of each plate.

    Parameters
    ----------
    parameters : of the group FORCE_PLATFORM, arrays with the first index of the file last
    analog : channels, of which the plates use some
    notes : extended by plates that cannot be read

    Returns
    -------
    list of Signal
        Six a plate, "plate 1 Fx" to "plate 1 Mz": components in the axes of the plate, moments about its origin, in the
        units of its channels.
    """
    used = int(parameters.get("USED", np.zeros(1))[0])
    if used < 1 or "CHANNEL" not in parameters or not analog:
        return []
    zero = parameters.get("ZERO", np.zeros(2)).astype(int)
    if zero.all():
        frames = " to ".join(map(str, zero))
        notes.append(f"FORCE_PLATFORM:ZERO: the plates were empty in frames {frames}; what they say then is left in")
    kinds = parameters.get("TYPE", np.zeros(0)).astype(int)
    matrices = parameters.get("CAL_MATRIX", np.zeros(0))
    matrices = matrices.reshape(-1, 6, 6) if matrices.size and matrices.size % 36 == 0 else np.zeros((0, 6, 6))
    rows = np.atleast_2d(parameters["CHANNEL"]).astype(int)
    signals: list[Signal] = []
    for plate in range(min(used, len(kinds), len(rows))):
        kind, numbers = int(kinds[plate]), rows[plate]
        needed = _CHANNELS.get(kind)
        if (
            needed is None
            or len(numbers) < needed
            or not ((1 <= numbers[:needed]) & (numbers[:needed] <= len(analog))).all()
            or (kind == 4 and len(matrices) <= plate)
        ):
            notes.append(
                f"force plate {plate + 1} of type {kind}: its forces are not made out; its channels are signals"
            )
            continue
        channels = [analog[number - 1] for number in numbers[:needed]]
        values = np.array([channel.values for channel in channels])
        origin = np.atleast_2d(parameters.get("ORIGIN", np.zeros((used, 3))))[min(plate, used - 1)]
        wrench = _wrench(kind, values, origin, matrices[plate] if kind == 4 else None)
        for k, (name, unit) in enumerate(_COMPONENTS):
            unit = channels[k].unit if kind in (1, 2) and not (kind == 1 and k in (3, 4)) else unit
            signals.append(Signal(f"plate {plate + 1} {name}", channels[0].times, wrench[k], unit))
    return signals


def _wrench(kind: int, values: FloatArray, origin: FloatArray, matrix: FloatArray | None) -> FloatArray:
    """Return force and moment (6, n) in the axes of the plate."""
    if kind == 1:
        force, (px, py), free = values[:3], values[3:5], values[5]
        return np.stack([*force, py * force[2], -px * force[2], free + px * force[1] - py * force[0]])
    if kind == 3:
        fx12, fx34, fy14, fy23, fz1, fz2, fz3, fz4 = values
        a, b = abs(origin[0]), abs(origin[1])
        return np.stack([
            fx12 + fx34, fy14 + fy23, fz1 + fz2 + fz3 + fz4,
            b * (fz1 + fz2 - fz3 - fz4), a * (-fz1 + fz2 + fz3 - fz4), b * (fx34 - fx12) + a * (fy14 - fy23),
        ])  # fmt: skip
    # The file's first index runs fastest: element (i, j) of the matrix is [j, i] here.
    return values if matrix is None else matrix.T @ values


#: Lists of points that are no markers but outputs of a model, where POINT:TYPE_GROUPS names no others.
_MODELLED = ("ANGLES", "FORCES", "MOMENTS", "POWERS", "SCALARS", "REACTIONS", "MODELED_MARKERS", "MODELLED_MARKERS")
_BLOCK = 512
#: Highest number of a frame in the header.
_COUNTED = 65535


@final
class C3D(Format):
    """C3D."""

    name = "C3D"

    def recognises(self, capture: Capture) -> bool:
        # The second byte is the format's key; the first says where the parameters are, which begin with their own.
        return len(capture.data) >= 2 and capture.data[1] == 0x50 and 1 <= capture.data[0] <= 64

    def read(self, capture: Capture, choices: Choices) -> Take:
        if len(capture.data) < _BLOCK * 2:
            raise InputError(
                "the file is cut off", found=f"{len(capture.data)} bytes", expected="a C3D of 1024 or more"
            )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                reader = _reader(io.BytesIO(capture.data))
                _one_channel(reader)
                _check(reader, capture)
                return _take(reader, list(reader.read_frames()), capture, choices)
        except InputError:
            raise
        except Exception as error:  # of another package, on bytes that may be anything
            raise InputError(
                "not a readable C3D", found=f"{type(error).__name__}: {str(error)[:120]}", expected="a whole C3D file"
            ) from error


def _reader(stream: io.BytesIO) -> Any:
    """Return the reader of `c3d`, whose checks are `_check`'s: it takes only ratios of rates that are whole to the bit.

    The analog rate of a file of 119.88 Hz is ten times that to the last bit of 32.
    """
    import c3d

    class Reader(c3d.Reader):  # type: ignore[misc]
        @property
        def analog_per_frame(self) -> int:
            return round(self.analog_rate / self.point_rate)

        @property
        def first_frame(self) -> int:
            words = self.get("TRIAL:ACTUAL_START_FIELD")
            if words is None:
                return int(self.header.first_frame)
            low, high = (int(word) for word in words.uint16_array[:2])
            return low + 65536 * high  # not 65535, as the package has it

        last_frame, point_used = _whole(c3d.Reader.last_frame), _whole(c3d.Reader.point_used)
        analog_used = _whole(c3d.Reader.analog_used)

        def _check_metadata(self) -> None:
            pass

    return Reader(stream)


def _whole(of: property) -> property:
    """Return a number of 16 bits as a whole one: products of such overflow without an error."""
    return property(lambda self: int(of.__get__(self)))


def _one_channel(reader: Any) -> None:
    """Make offset and scale of a single analog channel arrays: files have plain numbers there, which `c3d` refuses."""
    for name in ("OFFSET", "SCALE"):
        parameter = reader.get(f"ANALOG:{name}")
        if parameter is not None and parameter.bytes and not parameter.dimensions:
            parameter.dimensions = [1]


def _check(reader: Any, capture: Capture) -> None:
    """Refuse a file that does not hold what its header promises."""
    header = reader.header
    if reader.get("POINT") is None:
        raise InputError("the group of parameters POINT is missing", expected="POINT:USED, POINT:RATE, POINT:LABELS")
    rate = reader.point_rate
    if not (np.isfinite(rate) and 0.0 < rate < 1e7):
        raise InputError("bad rate", place="POINT:RATE", found=rate, expected="a number above 0 [Hz]")
    ratio = reader.analog_rate / rate if reader.analog_used else header.analog_per_frame
    for what, found, expected in (
        ("POINT:USED does not agree with the header", reader.point_used, header.point_count),
        ("POINT:SCALE does not agree with the header", reader.point_scale, header.scale_factor),
        ("POINT:RATE does not agree with the header", rate, header.frame_rate),
        ("ANALOG:RATE does not agree with the header's samples a frame", ratio, header.analog_per_frame),
        (
            "the analog channels do not agree with the header",
            reader.analog_used * reader.analog_per_frame,
            header.analog_count,
        ),
    ):
        if not abs(found - expected) <= 1e-4 * abs(expected):
            raise InputError(what, place="parameters", found=found, expected=expected)
    n_frames = reader.last_frame - reader.first_frame + 1
    width = 4 if reader.point_scale < 0 else 2
    need = n_frames * width * (4 * reader.point_used + reader.analog_used * reader.analog_per_frame)
    room = len(capture.data) - (header.data_block - 1) * _BLOCK
    if n_frames < 1 or not 0 < header.data_block or need <= 0:
        raise InputError("no frames", place="header", found=f"frames {reader.first_frame} to {reader.last_frame}")
    if reader.last_frame == _COUNTED and room - need >= _BLOCK:
        raise InputError(
            "more frames than the header can count",
            place="data",
            found=f"{room * n_frames // need} frames",
            expected="TRIAL:ACTUAL_END_FIELD or POINT:LONG_FRAMES",
        )
    if room < need:
        raise InputError("the file is cut off", place="data",
                         found=f"{max(room, 0)} bytes, {max(room, 0) * n_frames // need} frames",
                         expected=f"{need} bytes for {n_frames} frames")  # fmt: skip


def _take(reader: Any, frames: Sequence[Any], capture: Capture, choices: Choices) -> Take:
    """Return what was read, under its names."""
    group, draft = reader.get("POINT"), Draft(capture.file, choices, rate=float(reader.point_rate))
    times = (reader.first_frame - 1 + np.arange(len(frames))) / float(reader.point_rate)
    points = np.array([points for _, points, _ in frames], dtype=np.float64).reshape(len(frames), -1, 5)
    positions = points[:, :, :3]
    positions[points[:, :, 3] < 0.0] = np.nan
    labels = (_all_strings(group, "LABELS") + [""] * points.shape[1])[: points.shape[1]]
    modelled = _modelled(group)
    measured = [k for k, label in enumerate(labels) if label not in modelled]
    signals = [
        Signal(f"{label} {axis}", times, positions[:, k, i], modelled[label])
        for k, label in enumerate(labels)
        if label in modelled
        for i, axis in enumerate("XYZ")
    ]
    draft.up, draft.frame = "z", ""
    if measured:
        _turn(group, draft)
        draft.read_unit((_strings(group.get("UNITS")) or [""])[0], "POINT:UNITS")
        places = [f"POINT:LABELS {k + 1}" for k in measured]
        draft.track([labels[k] for k in measured], places, times, positions[:, measured])
    analog = _analog(reader, frames, float(times[0]))
    signals += analog
    signals += plate_signals(_parameters(reader.get("FORCE_PLATFORM")), analog, draft.notes)
    kind = f"C3D ({reader.proc_type}, {'floats' if reader.point_scale < 0 else 'integers'})"
    return draft.take(kind, signals=tuple(signals), events=_events(reader))


def _strings(parameter: Any) -> list[str]:
    """Return the texts of a parameter, blanks taken off; the first dimension is their length."""
    if parameter is None or not parameter.bytes:
        return []
    width = int(parameter.dimensions[0]) if len(parameter.dimensions) else len(parameter.bytes)
    data = bytes(parameter.bytes)
    if width < 1:
        return []
    texts = [data[k : k + width] for k in range(0, len(data) - width + 1, width)]
    return [_decoded(text).strip(" \0") for text in texts]


def _decoded(text: bytes) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return text.decode("latin-1")


def _all_strings(group: Any, name: str) -> list[str]:
    """Return the texts of NAME, NAME2, NAME3, ...: one parameter holds 255 at most."""
    strings: list[str] = []
    for number in range(1, 100):
        parameter = group.get(name if number == 1 else f"{name}{number}")
        if parameter is None:
            break
        strings += _strings(parameter)
    return strings


def _modelled(group: Any) -> dict[str, str]:
    """Return the labels of points that are outputs of a model, with their units."""
    rows = _strings(group.get("TYPE_GROUPS"))
    kinds = {**dict.fromkeys(_MODELLED), **dict.fromkeys(rows[: len(rows) // 2])}
    units = {}
    for kind in kinds:
        unit = (_strings(group.get(f"{kind.removesuffix('S')}_UNITS")) or [""])[0] if kind else ""
        units.update({label: unit for label in _all_strings(group, kind) if label} if kind else {})
    return units


def _turn(group: Any, draft: Draft) -> None:
    """Take the axis that points up: POINT:Y_SCREEN is the one that runs up the screen."""
    said = (_strings(group.get("Y_SCREEN")) or [""])[0].upper()
    axis = {"+Y": "y", "Y": "y", "+X": "x", "X": "x"}.get(said)
    draft.turn(axis, f"POINT:Y_SCREEN is {said}")
    if draft.choices.up is None and axis is None and said not in ("", "+Z", "Z"):
        draft.frame = (
            f'POINT:Y_SCREEN is {said}: positions are as written; --up (in a scene "up") says which axis is up'
        )


def _analog(reader: Any, frames: Sequence[Any], begin: float) -> list[Signal]:
    """Return the analog channels in their units: (word - OFFSET) SCALE GEN_SCALE."""
    if not reader.analog_used:
        return []
    values = np.concatenate([np.atleast_2d(analog) for _, _, analog in frames], axis=1)
    rate = float(reader.point_rate) * reader.analog_per_frame
    times = begin + np.arange(values.shape[1]) / rate
    group = reader.get("ANALOG")
    labels, units = _all_strings(group, "LABELS"), _all_strings(group, "UNITS")
    count = Counter[str]()
    signals = []
    for k, row in enumerate(values):
        name = labels[k] if k < len(labels) and labels[k] else f"channel {k + 1}"
        count[name] += 1
        unique = name if count[name] == 1 else f"{name}#{count[name]}"
        signals.append(Signal(unique, times, row, units[k] if k < len(units) else ""))
    return signals


def _parameters(group: Any) -> dict[str, FloatArray]:
    """Return the numbers of a group, first index of the file last."""
    if group is None:
        return {}
    return {
        name.upper(): _numbers(item)
        for name, item in group.param_items()
        if item.bytes_per_element in (2, 4) and item.bytes
    }


def _numbers(parameter: Any) -> FloatArray:
    """Return the numbers of a parameter, at least one."""
    real = parameter.bytes_per_element == 4
    if len(parameter.dimensions):
        numbers = parameter.float_array if real else parameter.int16_array
    else:
        numbers = parameter.float_value if real else parameter.int16_value
    return np.atleast_1d(np.asarray(numbers, dtype=np.float64))


def _events(reader: Any) -> tuple[Event, ...]:
    """Return the events of the group EVENT, or of the header where that has none."""
    group = reader.get("EVENT")
    events = []
    if group is not None and group.get("TIMES") is not None and group.get("TIMES").bytes:
        times = _numbers(group.get("TIMES")).reshape(-1, 2)  # minutes, seconds
        labels, contexts = _all_strings(group, "LABELS"), _all_strings(group, "CONTEXTS")
        used = group.get("USED")  # rows may be kept for more
        for k, (minutes, seconds) in enumerate(times if used is None else times[: max(int(_numbers(used)[0]), 0)]):
            parts = [items[k] for items in (contexts, labels) if k < len(items) and items[k]]
            events.append(Event(" ".join(parts) or "event", float(60.0 * minutes + seconds)))
    if not events:
        # All of them, shown on a screen or not: programs do not agree which flag says that they are.
        rows = zip(reader.header.event_timings, reader.header.event_labels, strict=True)
        events = [Event(name.strip(" \0") or "event", float(time)) for time, name in rows]
    return tuple(sorted(events, key=lambda event: event.time))
