"""Moments that a recording shows by itself: when what was held is let go, and when what flies touches something."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from add.errors import InputError
from add.mocap.recording import Recording

__all__ = ["first_touch", "release_time"]

#: A stretch of rest lasts as long [s], and has as many frames.
_REST, _FRAMES = 0.1, 8
#: Motion is what leaves the rest by so many standard deviations, or by this share of its largest way.
_SIGMAS, _SHARE = 6.0, 0.01
#: Frames after the first motion through which the parabola of a release is laid.
_MOST_AFTER = 6
#: Frames from which the parabola of a flight is known, those that have to leave it, and the noise it is given [m].
_FLIGHT, _LEAVING, _NOISE = 8, 3, 1e-3


def release_time(recording: Recording) -> float:
    """Return when markers that were at rest begin to move, on the recording's clock [s].

    The rest is the quietest stretch before the fastest motion. The first frames beyond its noise lie on
    d = a/2 (t - t0)^2, since a release changes accelerations and not yet velocities: t0 is where the straight line
    through sqrt(d) meets zero, to a fraction of a frame.

    Raises
    ------
    InputError
        If nothing rests before it moves, or nothing moves.
    """
    times = recording.times
    if recording.n_frames < 2 * _FRAMES:
        raise InputError(
            "too few frames to find a release", file=recording.source, found=recording.n_frames, expected=2 * _FRAMES
        )
    positions = recording.positions
    step = np.linalg.norm(np.diff(positions, axis=0), axis=2) / np.diff(times)[:, None]
    speed = np.array([np.nan if np.isnan(row).all() else float(np.nanmax(row)) for row in step])
    if np.isnan(speed).all():
        raise InputError("no marker is seen in two frames that follow each other", file=recording.source)
    fastest = int(np.nanargmax(speed))
    width = max(_FRAMES, int(np.ceil(_REST / float(np.median(np.diff(times))))))
    if fastest < width:
        raise InputError(
            "no rest before the motion: the release cannot be found", file=recording.source,
            found=f"the fastest motion at {times[fastest]:g} s", expected=f"at least {width} frames of rest before it",
        )  # fmt: skip
    filled = np.where(np.isnan(speed), np.nanmax(speed), speed)
    means = np.convolve(filled[:fastest], np.full(width, 1.0 / width), mode="valid")
    quiet = int(np.argmin(means)) if len(means) else 0
    still = positions[quiet : quiet + width]
    centre = np.array([_mean(still[:, k]) for k in range(recording.n_markers)])
    away = np.linalg.norm(positions - centre, axis=2)
    squares = np.array([np.nan if np.isnan(row).all() else float(np.nanmean(row**2)) for row in away])
    # Noise adds its own square to that of the way.
    way = np.sqrt(np.maximum(squares - np.nanmean(squares[quiet : quiet + width]), 0.0))
    noise = float(np.nanstd(still - centre))
    peak = float(np.nanmax(way[quiet:]))
    least = max(_SIGMAS * noise, _SHARE * peak)
    moving = np.flatnonzero(way[quiet + width :] > least)
    if not len(moving) or peak <= _SIGMAS * noise:
        raise InputError("nothing moves after the rest", file=recording.source, found=f"{1e3 * peak:.3g} mm at most")
    first = quiet + width + int(moving[0])
    after = np.arange(first, min(first + _MOST_AFTER, len(way)))
    after = after[np.isfinite(way[after]) & (way[after] <= max(0.3 * peak, way[first]))]
    if len(after) < 2:
        return float(times[first - 1])
    slope, offset = np.polyfit(times[after], np.sqrt(way[after]), 1)
    found = -offset / slope if slope > 0.0 else times[first - 1]
    return float(np.clip(found, times[max(first - _MOST_AFTER, quiet)], times[first]))


def first_touch(times: NDArray[np.float64], positions: NDArray[np.float64], source: str = "recording") -> float | None:
    """Return when a point that flies, such as the centre of a ball, leaves its parabola [s]; None if it never does.

    A parabola is laid through all frames so far, as soon as there are enough; the flight ends before the first of some
    frames in a row that lie further from it than the noise allows.

    Parameters
    ----------
    times : (nf,) of frames in which it is seen, from the first of the flight on [s]
    positions : (nf, 3) [m]
    source : for messages

    Raises
    ------
    InputError
        If there are too few frames.
    """
    if len(times) < _FLIGHT + _LEAVING:
        raise InputError(
            "too few frames to find the end of a flight", file=source, found=len(times), expected=_FLIGHT + _LEAVING
        )
    for n in range(_FLIGHT, len(times) - _LEAVING + 1):
        t = times[:n] - times[n - 1]
        basis = np.stack([np.ones(n), t, t * t], axis=1)
        found, *_ = np.linalg.lstsq(basis, positions[:n], rcond=None)
        left = positions[:n] - basis @ found
        noise = max(_NOISE, float(np.sqrt((left**2).sum() / max(3 * n - 9, 1))))
        ahead = times[n : n + _LEAVING] - times[n - 1]
        wide = np.stack([np.ones(_LEAVING), ahead, ahead * ahead], axis=1)
        # What the parabola itself is uncertain by there, from the frames that it was laid through.
        spread = np.sqrt(1.0 + np.einsum("ij,jk,ik->i", wide, np.linalg.inv(basis.T @ basis), wide))
        off = np.linalg.norm(positions[n : n + _LEAVING] - wide @ found, axis=1)
        if (off > _SIGMAS * noise * spread).all():
            return float(times[n - 1])
    return None


def _mean(track: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of a track (n, 3) over the frames in which it is seen; NaN if there is none."""
    seen = track[np.isfinite(track).all(axis=1)]
    return seen.mean(axis=0) if len(seen) else np.full(3, np.nan)
