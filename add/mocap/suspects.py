"""Suspect parts of a recording: spikes, times that jump, markers that are exchanged for a while."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from add.mocap.recording import Recording
from add.typing import BoolArray, FloatArray, IntArray

#: A spike goes out and back within so many frames, by this part of the extent of the whole recording, and by so many of
#: the largest other steps.
SPIKE_FRAMES, SPIKE_SHARE, SPIKE_STEPS = 3, 0.5, 5.0
#: Share of a marker's frames from which on they are a motion.
SPIKE_RARE = 0.1
#: A jump of the times, in median periods.
JUMP = 20.0
#: Two markers are exchanged where they go on from each other's places so many times better than from their own.
BETTER = 4.0
#: From so many markers on it is seen what they have in common: a bend of their ways by which more than half of them
#: differ by this share of it.
TOGETHER, ALIKE = 5, 0.25
#: Most frames since a marker was seen last from which its way is continued.
LONGEST_GAP = 20
#: More exchanges, beside a share of the frames, are a motion too fast to follow, and no mistakes.
MOST, MOST_SHARE = 4, 0.05
_SHOWN = 3


class Exchange(NamedTuple):
    """Two markers that bear each other's names.

    Attributes
    ----------
    one, two : names
    start, stop : times of the first and last frame [s]; stop is infinite where it lasts to the end
    """

    one: str
    two: str
    start: float
    stop: float


#: Frames in which a marker does not move at all, and the part of the extent by which others move, or all at once.
FROZEN, MOVED = 10, 0.05
#: How much faster than within so many frames most markers must go at once, for no motion of theirs.
LEAP, LEAP_FRAMES = 10.0, 5


def suspects(recording: Recording, names: Mapping[str, str] | None = None) -> list[str]:
    """Return a sentence for each thing in a recording of markers that is probably not meant, with its place.

    Parameters
    ----------
    recording : on the clock whose times shall be said
    names : name here -> name in the file, by which masks are written; default: the same
    """
    known = names or {}
    swapped, mended = exchanges(recording)
    swaps = _swaps(swapped, known, float(recording.times[-1]))
    return [*_jumps(recording.times), *spikes(mended, known), *_leaps(mended), *_frozen(recording), *swaps]


def _leaps(recording: Recording) -> list[str]:
    """Return a sentence for the frame from which on most markers are elsewhere, all at once, and stay there."""
    seen = np.where(recording.valid[:, :, None], recording.positions, np.nan)
    if seen.shape[1] < 3 or len(seen) < 2 * LEAP_FRAMES or not recording.valid.any():
        return []
    both = recording.valid[1:] & recording.valid[:-1]
    steps = np.where(both, np.linalg.norm(np.diff(seen, axis=0), axis=2), 0.0)
    common = np.array([np.median(row[ok]) if ok.sum() >= 3 else 0.0 for row, ok in zip(steps, both, strict=True)])
    rates = common / np.diff(recording.times)
    k = int(np.argmax(rates))
    near = np.delete(rates[max(k - LEAP_FRAMES, 0) : k + LEAP_FRAMES + 1], min(k, LEAP_FRAMES))
    extent = float(np.linalg.norm(np.ptp(recording.positions[recording.valid], axis=0)))
    if common[k] < MOVED * extent or rates[k] < LEAP * near.max(initial=0.0):
        return []
    return [
        f"most markers are {common[k]:.3g} m elsewhere from {recording.times[k + 1]:.4g} s (frame {k + 1}) on, at more "
        f"than {LEAP:g} times their speed before and after: did a camera or the frame of the recording move?"
    ]


def _frozen(recording: Recording) -> list[str]:
    """Return a sentence for the marker that stops at once and stands still to the last digit, while the others move."""
    seen = np.where(recording.valid[:, :, None], recording.positions, np.nan)
    longest: tuple[int, int, int] = (FROZEN - 1, 0, 0)
    for k in range(len(recording.names)):
        steps = np.linalg.norm(np.diff(seen[:, k], axis=0), axis=1)
        moves = np.flatnonzero(steps != 0.0)  # or is not seen
        usual = np.nanmedian(steps[moves]) if np.isfinite(steps[moves]).any() else np.inf
        for one, two in zip(moves, [*moves[1:], len(steps)], strict=False):
            if steps[one] > 0.5 * usual:  # what comes to rest slows down
                longest = max(longest, (int(two - one) - 1, k, int(one) + 1))
    frames, marker, first = longest
    if frames < FROZEN:
        return []
    ways = np.linalg.norm(np.diff(np.delete(seen, marker, axis=1)[[first, first + frames]], axis=0)[0], axis=1)
    extent = float(np.linalg.norm(np.ptp(recording.positions[recording.valid], axis=0)))
    if not np.isfinite(ways).any() or np.nanmin(ways) < MOVED * extent:
        return []
    times = recording.times[[first, first + frames]]
    return [
        f"marker '{recording.names[marker]}' stands still to the last digit from {times[0]:.4g} to {times[1]:.4g} s, "
        f"while the others move by {np.nanmin(ways):.3g} m or more: was it lost, and its last place filled in? Mask it"
    ]


def _jumps(times: FloatArray) -> list[str]:
    periods = np.diff(times)
    if periods.size < 3:
        return []
    usual = float(np.median(periods))
    far = np.flatnonzero(periods > JUMP * usual)
    if not far.size:
        return []
    k = int(far[np.argmax(periods[far])])
    more = f" ({far.size - 1} more such jumps)" if far.size > 1 else ""
    return [
        f"the times jump by {periods[k]:.3g} s after frame {k} ({times[k]:.4g} s), where frames are {usual:.3g} s "
        f"apart: a pause, or two recordings in one file?{more}"
    ]


def masks(recording: Recording, names: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """Return the masks of a scene's recording that leave spikes and exchanged markers out; parameters of `suspects`."""
    known, (swapped, mended) = names or {}, exchanges(recording)
    spiked = [mask for *_, part in _spiked(mended, known) for mask in part]
    return spiked + [mask for item in swapped for mask in _of_exchange(item, known, float(recording.times[-1]))]


def spikes(recording: Recording, names: Mapping[str, str] | None = None) -> list[str]:
    """Return a sentence for each marker, of the worst ones, that goes far out and comes back within a few frames.

    It has the masks to paste; ``names`` as in `suspects`.
    """
    out = _spiked(recording, names or {})
    return _first([f"{text}. To leave that out: {_pasted(part)}" for _, text, part in out], "markers have such spikes")


def _first(texts: list[str], what: str) -> list[str]:
    """Return the first of some texts, and one that says how many more there are."""
    left = len(texts) - _SHOWN
    return texts[:_SHOWN] + ([f"{left} more {what}"] if left > 0 else [])


def _spiked(recording: Recording, names: Mapping[str, str]) -> list[tuple[float, str, list[dict[str, Any]]]]:
    """Return how far each marker with spikes goes out, the worst first, a sentence, and masks."""
    out = []
    for k, name in enumerate(recording.names):
        frames = np.flatnonzero(recording.valid[:, k])
        path = recording.positions[frames, k]
        if frames.size < 2 * SPIKE_FRAMES + 2:
            continue
        inside = _outliers(path)
        if not inside.any() or inside.mean() > SPIKE_RARE:
            continue
        rest = recording.positions[recording.valid & ~_marked(recording.valid.shape, frames[inside], k)]
        extent = float(np.linalg.norm(np.ptp(rest, axis=0)))
        middle = np.median(path[~inside], axis=0)
        away = np.linalg.norm(path[inside] - middle, axis=1)
        if away.max() > SPIKE_SHARE * extent:
            out_there = frames[inside]
            worst = int(out_there[np.argmax(away)])
            more = f" ({out_there.size - 1} more such frames)" if out_there.size > 1 else ""
            stretches = np.split(out_there, np.flatnonzero(np.diff(out_there) > 1) + 1)
            ends = [(float(recording.times[item[0]]), float(recording.times[item[-1]])) for item in stretches]
            out.append((
                float(away.max()),
                f"marker '{name}' is {away.max():.3g} m away at {recording.times[worst]:.4g} s (frame {worst}) and "
                f"back at once, where all markers keep within {extent:.3g} m{more}",
                _masks([names.get(name, name)], ends),
            ))  # fmt: skip
    return sorted(out, key=lambda item: -item[0])


def _masks(markers: Sequence[str], ends: Sequence[tuple[float, float]]) -> list[dict[str, Any]]:
    """Return what leaves stretches of markers out of a scene's recording; ends: times of first and last frames."""
    windows = [{"from": round(start - 5e-4, 4), "to": round(stop + 5e-4, 4)} for start, stop in ends]
    return [{"marker": name} | window for name in markers for window in windows]


def _pasted(mask: list[dict[str, Any]]) -> str:
    return f'"mask": {json.dumps(mask)}'


def _of_exchange(item: Exchange, names: Mapping[str, str], end: float) -> list[dict[str, Any]]:
    return _masks([names.get(name, name) for name in (item.one, item.two)], [(item.start, min(item.stop, end))])


def _marked(shape: tuple[int, ...], frames: IntArray, marker: int) -> BoolArray:
    out = np.zeros(shape, dtype=bool)
    out[frames, marker] = True
    return out


def _outliers(path: FloatArray) -> BoolArray:
    """Return the samples (n,) of a path that lie out and back, by steps far larger than all others."""
    steps = np.linalg.norm(np.diff(path, axis=0), axis=1)
    outliers, used = np.zeros(len(path), dtype=bool), np.zeros(len(steps), dtype=bool)
    stretches = []
    for width in range(1, SPIKE_FRAMES + 1):
        over = np.linalg.norm(path[width + 1 :] - path[: -width - 1], axis=1)
        out_and_back = np.minimum(steps[: over.size], steps[width : width + over.size])
        for k in np.flatnonzero(out_and_back > SPIKE_STEPS * over):
            stretches.append((k + 1, width, out_and_back[k]))
            used[k : k + width + 1] = True
    usual = float(steps[~used].max(initial=0.0))
    for k, width, size in stretches:
        if size > SPIKE_STEPS * usual:
            outliers[k : k + width] = True
    return outliers


def _swaps(swapped: list[Exchange], names: Mapping[str, str], end: float) -> list[str]:
    out = []
    for item in swapped:
        lasts = (
            f"from {item.start:.3f} to {item.stop:.3f} s" if np.isfinite(item.stop) else f"from {item.start:.3f} s on"
        )
        mask = _pasted(_of_exchange(item, names, end))
        out.append(f"{item.one} and {item.two} exchanged {lasts}? To leave that out: {mask}")
    return _first(out, "such exchanges")


def exchanges(recording: Recording) -> tuple[list[Exchange], Recording]:
    """Return which markers bear each other's names for a while, and the recording with their own.

    Frame by frame each marker's way is continued in a straight line from where it was seen last, and bent by what is
    common to most of them. Two markers whose
    places fit `BETTER` times better crosswise are exchanged from there on, and back where that happens again.
    """
    positions, valid = recording.positions.copy(), recording.valid.copy()
    events: list[tuple[int, int, int]] = []
    most = max(MOST, int(MOST_SHARE * recording.n_frames))
    if recording.n_markers < 2:
        return [], recording
    for frame in _suddenly(recording):
        at = [k for k in range(recording.n_markers) if valid[frame, k]]
        ahead = {k: place for k in at if (place := _ahead(recording.times, positions, valid, frame, k)) is not None}
        common = _common(positions[frame], ahead)
        ahead = {k: place + common for k, place in ahead.items()}
        pairs = sorted(
            (float(cross / max(straight, 1e-300)), i, j)
            for i in ahead for j in ahead if i < j
            for straight, cross in [_fits(positions[frame], ahead, i, j)] if BETTER * cross < straight
        )  # fmt: skip
        taken: set[int] = set()
        for _, i, j in pairs:
            if not taken & {i, j}:
                taken |= {i, j}
                positions[frame:, [i, j]] = positions[frame:, [j, i]]
                valid[frame:, [i, j]] = valid[frame:, [j, i]]
                events.append((i, j, int(frame)))
        if len(events) > most:
            return [], recording
    out = []
    for i, j in dict.fromkeys((i, j) for i, j, _ in events):
        frames = [frame for a, b, frame in events if (a, b) == (i, j)]
        for k in range(0, len(frames), 2):
            stop = float(recording.times[frames[k + 1] - 1]) if k + 1 < len(frames) else np.inf
            out.append(Exchange(recording.names[i], recording.names[j], float(recording.times[frames[k]]), stop))
    out.sort(key=lambda item: item.start)
    return out, replace(recording, positions=positions, valid=valid)


def _common(here: FloatArray, ahead: Mapping[int, FloatArray]) -> FloatArray:
    """Return by how far (3,) half of the markers are all off from where they should be, as on a body that is shaken.

    Of fewer than `TOGETHER` two that are exchanged would be half. Markers that are off by different ways have nothing
    in common.
    """
    if len(ahead) < TOGETHER:
        return np.zeros(3)
    off = np.array([here[k] - place for k, place in ahead.items()])
    middle = np.median(off, axis=0)
    alike = np.linalg.norm(off - middle, axis=1) < ALIKE * np.linalg.norm(middle)
    return middle if alike.sum() > len(ahead) / 2 else np.zeros(3)


def _fits(here: FloatArray, ahead: dict[int, FloatArray], i: int, j: int) -> tuple[float, float]:
    """Return how far two markers are from where they should be, and from where the other one should be [m]."""
    straight = np.linalg.norm(here[i] - ahead[i]) + np.linalg.norm(here[j] - ahead[j])
    cross = np.linalg.norm(here[j] - ahead[i]) + np.linalg.norm(here[i] - ahead[j])
    return float(straight), float(cross)


def _ahead(times: FloatArray, positions: FloatArray, valid: BoolArray, frame: int, marker: int) -> FloatArray | None:
    """Return where a marker should be in a frame, by the two frames before in which it was seen; None for neither."""
    seen = np.flatnonzero(valid[max(0, frame - LONGEST_GAP) : frame, marker]) + max(0, frame - LONGEST_GAP)
    if not seen.size:
        return None
    last = positions[seen[-1], marker]
    if seen.size < 2 or seen[-1] - seen[-2] > 1:
        return np.asarray(last)
    speed = (last - positions[seen[-2], marker]) / (times[seen[-1]] - times[seen[-2]])
    return np.asarray(last + speed * min(times[frame] - times[seen[-1]], times[seen[-1]] - times[seen[-2]]))


def _suddenly(recording: Recording) -> IntArray:
    """Return the frames in which a marker bends its way by a part of its distance to others, or is seen again."""
    positions, valid = recording.positions, recording.valid
    some = positions[:: max(1, recording.n_frames // 200)]
    with np.errstate(invalid="ignore"):
        apart = np.linalg.norm(some[:, :, None] - some[:, None], axis=3)
        apart[:, np.arange(recording.n_markers), np.arange(recording.n_markers)] = np.inf
        near = np.nan_to_num(apart, nan=np.inf).min(axis=(0, 2))
        bend = np.full(valid.shape, 0.0)
        bend[2:] = np.linalg.norm(positions[2:] - 2.0 * positions[1:-1] + positions[:-2], axis=2)
        first = np.linalg.norm(positions[1:2] - positions[:1], axis=2)
    bend[1:2] = first
    sudden = np.nan_to_num(bend) > 0.25 * near
    again = np.zeros_like(valid)
    again[1:] = valid[1:] & ~valid[:-1]
    return np.flatnonzero((sudden | again).sum(axis=1) >= 1)
