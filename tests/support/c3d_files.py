"""C3D files for tests, written byte by byte after the published format: three processors, integers or floats."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

INTEL, DEC, MIPS = 84, 85, 86


def c3d_bytes(
    points: np.ndarray,
    *,
    processor: int = INTEL,
    scale: float = -0.1,
    rate: float = 100.0,
    first: int = 1,
    groups: Mapping[str, Mapping[str, Any]] | None = None,
    analog: np.ndarray | None = None,
    per_frame: int = 1,
    header_events: Sequence[tuple[str, float]] = (),
    frames: int | None = None,
) -> bytes:
    """A whole file.

    points (nf, nm, 4): x, y, z in the file's unit and the residual word, negative where nothing was seen; analog
    (nf * per_frame, nc) as stored. A positive scale stores integers. `frames` is the number that the header promises,
    if not the true one.
    """
    n_frames, n_points, _ = points.shape
    n_channels = 0 if analog is None else analog.shape[1]
    promised = n_frames if frames is None else frames
    block = {
        "POINT": {
            "USED": np.int16(n_points),
            "SCALE": np.float32(scale),
            "RATE": np.float32(rate),
            "DATA_START": np.int16(0),
            "FRAMES": np.int16(promised),
            "LABELS": [f"M{k + 1}" for k in range(n_points)],
            "UNITS": "mm",
        },
        "ANALOG": {
            "USED": np.int16(n_channels),
            "RATE": np.float32(rate * per_frame),
            "GEN_SCALE": np.float32(1.0),
            "SCALE": np.ones(n_channels, np.float32),
            "OFFSET": np.zeros(n_channels, np.int16),
            "LABELS": [f"A{k + 1}" for k in range(n_channels)],
            "UNITS": ["V"] * n_channels,
        },
    }
    for name, items in (groups or {}).items():
        block[name] = {**block.get(name, {}), **items}
        block[name] = {key: value for key, value in block[name].items() if value is not None}
    records = b""
    for number, (group, items) in enumerate(block.items(), start=1):
        name = group.encode()
        records += struct.pack("bb", len(name), -number) + name + _int16(3, processor) + b"\0"
        for key, value in items.items():
            body = _value(value, processor)
            name = key.encode()
            records += struct.pack("bb", len(name), number) + name + _int16(3 + len(body), processor) + body + b"\0"
    records += b"\0\0"
    n_blocks = -(-(4 + len(records)) // 512)
    start = 2 + n_blocks
    records = records.replace(_marker("DATA_START", 0, processor), _marker("DATA_START", start, processor))
    parameters = struct.pack("BBBB", 1, 0x50, n_blocks, processor) + records
    parameters = parameters.ljust(512 * n_blocks, b"\0")
    words = [n_points, n_channels * per_frame, first, min(first + promised - 1, 65535), 10]
    header = struct.pack("BB", 2, 0x50) + b"".join(_uint16(word, processor) for word in words)
    header += (
        _float(scale, processor) + _uint16(start, processor) + _uint16(per_frame, processor) + _float(rate, processor)
    )
    header = header.ljust(2 * 149, b"\0") + _uint16(12345, processor) + _uint16(len(header_events), processor) + b"\0\0"
    header += b"".join(_float(time, processor) for _, time in header_events).ljust(72, b"\0")
    header += bytes([1] * len(header_events)).ljust(18, b"\0") + b"\0\0"
    header += b"".join(name.encode().ljust(4)[:4] for name, _ in header_events)
    header = header.ljust(512, b"\0")
    data = []
    for frame in range(n_frames):
        values = points[frame].copy()
        if scale > 0:
            values[:, :3] = np.round(values[:, :3] / scale)
        data.append(_samples(values.ravel(), scale, processor))
        if analog is not None:
            rows = analog[frame * per_frame : (frame + 1) * per_frame]
            data.append(_samples(rows.ravel(), scale, processor))
    body = b"".join(data)
    return header + parameters + body.ljust(-(-len(body) // 512) * 512, b"\0")


def _marker(name: str, value: int, processor: int) -> bytes:
    return name.encode() + _int16(5, processor) + b"\x02\x00" + _int16(value, processor)


def _samples(values: np.ndarray, scale: float, processor: int) -> bytes:
    if scale > 0:
        return values.astype(">i2" if processor == MIPS else "<i2").tobytes()
    return _floats(values, processor)


def _floats(values: Any, processor: int) -> bytes:
    if processor == MIPS:
        return np.asarray(values).astype(">f4").tobytes()
    if processor == INTEL:
        return np.asarray(values).astype("<f4").tobytes()
    # VAX F: four times the IEEE number, its two halves swapped.
    words = (4.0 * np.asarray(values, dtype=np.float32)).astype("<f4").view("<u2").reshape(-1, 2)
    return np.ascontiguousarray(words[:, ::-1]).tobytes()


def _float(value: float, processor: int) -> bytes:
    return _floats(np.array([value], np.float32), processor)


def _int16(value: int, processor: int) -> bytes:
    return struct.pack(">h" if processor == MIPS else "<h", value)


def _uint16(value: int, processor: int) -> bytes:
    return struct.pack(">H" if processor == MIPS else "<H", value)


def _value(value: Any, processor: int) -> bytes:
    """type, dimensions, data."""
    if isinstance(value, str):
        text = value.encode("latin-1")
        return struct.pack("bBB", -1, 1, len(text)) + text
    if isinstance(value, (list, tuple)):
        texts = [item.encode("latin-1") for item in value]
        width = max(map(len, texts), default=0)
        return struct.pack("bBBB", -1, 2, width, len(texts)) + b"".join(text.ljust(width) for text in texts)
    array = np.asarray(value)
    shape = bytes(array.shape)
    data = array.ravel(order="F")
    if array.dtype == np.int8:
        return struct.pack("bB", 1, array.ndim) + shape + data.tobytes()
    if array.dtype == np.int16:
        return struct.pack("bB", 2, array.ndim) + shape + b"".join(_int16(int(item), processor) for item in data)
    return struct.pack("bB", 4, array.ndim) + shape + _floats(data, processor)
