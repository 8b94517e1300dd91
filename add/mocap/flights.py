"""State of a rigid body at t = 0 from the frames of a free flight, in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from add.errors import InputError
from add.mocap.poses import PoseRecording
from add.mocap.starts import first_touch

__all__ = ["FlightStart", "Spin", "flight_of_point", "flight_spin"]

#: Sweeps of the fit of a rotation: each squares what is left.
_SWEEPS = 20
#: An acceleration is another than gravity's beyond this share of it, and so many standard errors.
_OFF, _ERRORS = 0.2, 5.0


@final
@dataclass(frozen=True, eq=False)
class FlightStart:
    """Position and velocity of a flying point at t = 0, and how well a parabola meets it.

    Parameters
    ----------
    position, velocity : (3,) [m], [m/s]
    rms : root mean square distance of the frames from it [m]
    frames : number of frames
    """

    position: NDArray[np.float64]
    velocity: NDArray[np.float64]
    rms: float
    frames: int


@final
@dataclass(frozen=True, eq=False)
class Spin:
    """Orientation and angular velocity at t = 0.

    Parameters
    ----------
    quaternion : (4,) w, x, y, z
    angular_velocity : (3,) world axes [rad/s]
    rms : root mean square angle of the frames from it [rad]
    """

    quaternion: NDArray[np.float64]
    angular_velocity: NDArray[np.float64]
    rms: float


def flight_of_point(
    times: NDArray[np.float64],
    positions: NDArray[np.float64],
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
        raise InputError(
            "no free flight", file=source,
            found=f"an acceleration of ({shown}) m/s^2 from {t[0]:.4g} to {t[-1]:.4g} s",
            expected=f"({meant}) m/s^2; say which frames by a window",
        )  # fmt: skip
    found, *_ = np.linalg.lstsq(basis[:, :2], x - np.outer(basis[:, 2], g), rcond=None)
    rest = x - np.outer(basis[:, 2], g) - basis[:, :2] @ found
    rms = float(np.sqrt((rest**2).sum(axis=1).mean()))
    return FlightStart(found[0], found[1], rms, len(t)), (float(t[0]), float(t[-1]))


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
