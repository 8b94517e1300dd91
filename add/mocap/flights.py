"""Flights in a recording, and moments that it shows by itself: releases, and touches."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from add.errors import InputError
from add.mocap.recording import Recording
from add.mocap.take import PoseRecording
from add.typing import FloatArray

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
    moment = -offset / slope if slope > 0.0 else times[first - 1]
    return float(np.clip(moment, times[max(first - _MOST_AFTER, quiet)], times[first]))


def first_touch(times: FloatArray, positions: FloatArray, source: str = "recording") -> float | None:
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
        coefficients, *_ = np.linalg.lstsq(basis, positions[:n], rcond=None)
        left = positions[:n] - basis @ coefficients
        noise = max(_NOISE, float(np.sqrt((left**2).sum() / max(3 * n - 9, 1))))
        ahead = times[n : n + _LEAVING] - times[n - 1]
        wide = np.stack([np.ones(_LEAVING), ahead, ahead * ahead], axis=1)
        # What the parabola itself is uncertain by there, from the frames that it was laid through.
        spread = np.sqrt(1.0 + np.einsum("ij,jk,ik->i", wide, np.linalg.inv(basis.T @ basis), wide))
        off = np.linalg.norm(positions[n : n + _LEAVING] - wide @ coefficients, axis=1)
        if (off > _SIGMAS * noise * spread).all():
            return float(times[n - 1])
    return None


def _mean(track: FloatArray) -> FloatArray:
    """Return the mean of a track (n, 3) over the frames in which it is seen; NaN if there is none."""
    seen = track[np.isfinite(track).all(axis=1)]
    return seen.mean(axis=0) if len(seen) else np.full(3, np.nan)


#: Sweeps of the fit of a rotation: each squares what is left.
_SWEEPS = 20
#: An acceleration is another than gravity's beyond this share of it, and so many standard errors.
_OFF, _ERRORS = 0.2, 5.0


class FlightStart(NamedTuple):
    """Position and velocity of a flying point at t = 0, and how well a parabola meets it.

    Parameters
    ----------
    position, velocity : (3,) [m], [m/s]
    rms : root mean square distance of the frames from it [m]
    frames : number of frames
    """

    position: FloatArray
    velocity: FloatArray
    rms: float
    frames: int


class Spin(NamedTuple):
    """Orientation and angular velocity at t = 0.

    Parameters
    ----------
    quaternion : (4,) w, x, y, z
    angular_velocity : (3,) world axes [rad/s]
    rms : root mean square angle of the frames from it [rad]
    """

    quaternion: FloatArray
    angular_velocity: FloatArray
    rms: float


def flight_of_point(
    times: FloatArray,
    positions: FloatArray,
    gravity: ArrayLike,
    window: tuple[float, float] | None = None,
    source: str = "recording",
) -> tuple[FlightStart, tuple[float, float]]:
    """Return the start of x(t) = x0 + v0 t + g t^2 / 2, by least squares, and the times of the frames that it is from.

    Parameters
    ----------
    times : (nf,) [s]; frames before t = 0 are left out
    positions : (nf, 3) of the centre of mass [m]
    gravity : (3,) [m/s^2]
    window : times of the frames that count [s]; default: from t = 0 to the first touch
    source : for messages

    Raises
    ------
    InputError
        If there are too few frames, or what they show is no free flight.
    """
    g = np.asarray(gravity, dtype=np.float64)
    first, last = window or (0.0, np.inf)
    kept = (times >= first - 1e-9) & (times <= last + 1e-9)
    t, x = times[kept], positions[kept]
    if window is None and len(t) >= 11:
        end = first_touch(t, x, source)
        t, x = (t, x) if end is None else (t[t <= end], x[t <= end])
    if len(t) < 4:
        raise InputError("too few frames of a flight", file=source, found=len(t), expected="4 or more from t = 0 on")
    basis = np.stack([np.ones_like(t), t, 0.5 * t * t], axis=1)
    free, *_ = np.linalg.lstsq(basis, x, rcond=None)
    left = x - basis @ free
    spread = np.sqrt(np.linalg.inv(basis.T @ basis)[2, 2] * (left**2).sum() / max(3 * len(t) - 9, 1))
    off = float(np.linalg.norm(free[2] - g))
    if off > _OFF * max(float(np.linalg.norm(g)), 1.0) + _ERRORS * spread:
        shown, meant = (", ".join(f"{component:.3g}" for component in a) for a in (free[2], g))
        turned = abs(float(np.linalg.norm(free[2]) - np.linalg.norm(g))) < 0.3 * off
        remedy = (
            "its size is right: `recording.up` says which axis points up" if turned else "say which frames by a window"
        )
        raise InputError(
            "no free flight", file=source,
            found=f"an acceleration of ({shown}) m/s^2 from {t[0]:.4g} to {t[-1]:.4g} s",
            expected=f"({meant}) m/s^2; {remedy}",
        )  # fmt: skip
    coefficients, *_ = np.linalg.lstsq(basis[:, :2], x - np.outer(basis[:, 2], g), rcond=None)
    rest = x - np.outer(basis[:, 2], g) - basis[:, :2] @ coefficients
    rms = float(np.sqrt((rest**2).sum(axis=1).mean()))
    return FlightStart(coefficients[0], coefficients[1], rms, len(t)), (float(t[0]), float(t[-1]))


def flight_spin(pose: PoseRecording) -> Spin:
    """Return the start of R(t) = exp([omega t]x) R0, by least squares of the angles left.

    omega is constant where the moments of inertia are equal, or over a time in which the body turns little. Each sweep
    fits log(R_k R0^T exp(-[omega t_k]x)) by a + b t and turns R0 by a, omega by b.

    Parameters
    ----------
    pose : frames of the flight, t = 0 being the start

    Raises
    ------
    InputError
        If there are fewer than three frames.
    """
    if pose.n_frames < 3:
        raise InputError("too few frames of a flight", file=pose.source, found=pose.n_frames, expected="3 or more")
    t = pose.times
    turns = Rotation.from_quat(pose.quaternion[:, [1, 2, 3, 0]])
    steps = (turns[1:] * turns[:-1].inv()).as_rotvec() / np.diff(t)[:, None]
    omega = np.median(steps, axis=0)
    start = Rotation.from_rotvec(-omega * t[0]) * turns[0]
    basis = np.stack([np.ones_like(t), t], axis=1)
    left = np.zeros((len(t), 3))
    for _ in range(_SWEEPS):
        left = (turns * start.inv() * Rotation.from_rotvec(-np.outer(t, omega))).as_rotvec()
        (a, b), *_ = np.linalg.lstsq(basis, left, rcond=None)
        start, omega = Rotation.from_rotvec(a) * start, omega + b
        if np.abs(a).max() < 1e-12 and np.abs(b).max() < 1e-11:
            break
    return Spin(start.as_quat()[[3, 0, 1, 2]], omega, float(np.sqrt((left**2).sum(axis=1).mean())))
