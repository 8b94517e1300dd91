"""Recordings of poses and of angles of joints, and all that one capture file holds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from add.errors import InputError
from add.mocap.recording import LARGEST, Recording, Timed, check_times
from add.typing import FloatArray

#: A quaternion whose norm is further than this from 1 is no rounded rotation but a mistake, such as another order.
UNIT = 1e-3


@np.errstate(over="ignore")
def off_unit(quaternion: FloatArray) -> int | None:
    """First frame of quaternions (nf, 4) whose norm is not 1 within UNIT; None if there is none."""
    bad = np.flatnonzero(~(np.abs(np.linalg.norm(quaternion, axis=1) - 1.0) <= UNIT))
    return int(bad[0]) if len(bad) else None


@final
@dataclass(frozen=True, eq=False)
class PoseRecording(Timed):
    """Position and orientation of a body's frame, every frame of them; a point X of the body is at x + R(q) X.

    Every method returns a new recording; the arrays are private read-only copies.

    Parameters
    ----------
    times : (nf,) strictly increasing; need not be evenly spaced [s]
    position : (nf, 3) x, origin of the body's frame in the world [m]
    quaternion : (nf, 4) w, x, y, z of the rotation R from the body's axes to the world's; unit within 1e-3. Kept
        normalised, with the sign that continues the frame before (the first one as given): q and -q turn alike.
    velocity : (nf, 3) of the origin of the body's frame, world axes, or None [m/s]
    angular_velocity : (nf, 3) in WORLD axes, or None [rad/s]
    extra : other columns, name -> (nf,), such as the angle of a joint
    source : where it came from, for messages (a path, usually)
    covariance : (nf, 6, 6) of the position of the frame's origin [m^2] and of a small rotation about the world's axes
        [rad^2], or None; symmetric, positive definite
    """

    times: FloatArray
    position: FloatArray
    quaternion: FloatArray
    velocity: FloatArray | None = None
    angular_velocity: FloatArray | None = None
    extra: Mapping[str, FloatArray] = field(default_factory=dict)
    source: str = "recording"
    covariance: FloatArray | None = None

    def _check(self) -> None:
        times = np.array(self.times, dtype=np.float64)
        check_times(times)
        quaternion = self._column("quaternion", self.quaternion, times, (4,))
        frame = off_unit(quaternion)
        if frame is not None:
            norm = f"norm {np.linalg.norm(quaternion[frame]):.6g}"
            raise InputError("not a unit quaternion", place=f"frame {frame}", found=norm, expected=f"1 within {UNIT:g}")
        quaternion /= np.linalg.norm(quaternion, axis=1)[:, None]
        turned = np.einsum("fi,fi->f", quaternion[1:], quaternion[:-1]) < 0.0
        quaternion[1:] *= np.where(np.cumsum(turned) % 2 == 1, -1.0, 1.0)[:, None]
        arrays = {"times": times, "quaternion": quaternion}
        arrays["position"] = self._column("position", self.position, times, (3,))
        for name, value in (("velocity", self.velocity), ("angular_velocity", self.angular_velocity)):
            if value is not None:
                arrays[name] = self._column(name, value, times, (3,))
        if self.covariance is not None:
            arrays["covariance"] = _positive(self._column("covariance", self.covariance, times, (6, 6)))
        extra = {name: self._column(name, values, times, ()) for name, values in self.extra.items()}
        for array in extra.values():
            array.setflags(write=False)
        self._keep(**arrays, extra=MappingProxyType(extra))

    def _column(self, name: str, values: ArrayLike, times: FloatArray, width: tuple[int, ...]) -> FloatArray:
        """Copy one quantity, of the right shape and finite."""
        array = np.array(values, dtype=np.float64)
        shape = (len(times), *width)
        if array.shape != shape:
            raise InputError(f"{name} has the wrong shape", found=array.shape, expected=shape)
        bad = np.flatnonzero(~(np.abs(array) <= LARGEST).reshape(len(times), -1).all(axis=1))
        if len(bad):
            raise InputError(
                f"{name} is not finite, or beyond {LARGEST:g}",
                place=f"frame {bad[0]} (t = {times[bad[0]]:g} s)",
                found=array[bad[0]].tolist(),
                expected="finite numbers (leave out frames in which the body was not seen)",
            )
        return array

    @property
    def rotations(self) -> FloatArray:
        """R, (nf, 3, 3), from the body's axes to the world's."""
        return self._rotation().as_matrix()

    @property
    def rotation_vectors(self) -> FloatArray:
        """w, (nf, 3) with R = exp([w]x) and |w| <= pi, which jumps where a body turns on beyond pi [rad]."""
        return self._rotation().as_rotvec()

    def _rotation(self) -> Rotation:
        return Rotation.from_quat(self.quaternion[:, [1, 2, 3, 0]])

    def turned(self, rotations: ArrayLike) -> "PoseRecording":
        """Give the body other orientations: R (nf, 3, 3), from its axes to the world's, one a frame."""
        quaternion = Rotation.from_matrix(np.asarray(rotations, dtype=np.float64)).as_quat()[:, [3, 0, 1, 2]]
        return replace(self, quaternion=quaternion)

    def transformed(self, R: ArrayLike, t: ArrayLike) -> "PoseRecording":
        """Move the world: every position x becomes R x + t, and all axes turn with it; R (3, 3), t (3,) [m]."""
        turn = np.asarray(R, dtype=np.float64)
        both = np.kron(np.eye(2), turn)
        quaternion = (Rotation.from_matrix(turn) * self._rotation()).as_quat()[:, [3, 0, 1, 2]]
        return replace(
            self,
            position=self.position @ turn.T + np.asarray(t, dtype=np.float64),
            quaternion=quaternion,
            velocity=None if self.velocity is None else self.velocity @ turn.T,
            angular_velocity=None if self.angular_velocity is None else self.angular_velocity @ turn.T,
            covariance=None if self.covariance is None else both @ self.covariance @ both.T,
        )

    def scaled(self, factor: float) -> "PoseRecording":
        """Return the poses with every length times a factor."""
        by = np.repeat([factor, 1.0], 3)
        covariance = None if self.covariance is None else self.covariance * np.outer(by, by)
        velocity = None if self.velocity is None else factor * self.velocity
        return replace(self, position=factor * self.position, velocity=velocity, covariance=covariance)

    def markers(self, points: ArrayLike, names: Sequence[str] | None = None) -> Recording:
        """Trajectories of points fixed to the body, x + R X, as if they had been markers.

        Parameters
        ----------
        points : (m, 3) X in the body's frame [m]
        names : of the points; "point_0" and so on by default
        """
        fixed = np.asarray(points, dtype=np.float64)
        if fixed.ndim != 2 or fixed.shape[1] != 3 or not np.isfinite(fixed).all():
            raise InputError("bad points of a body", found=fixed.tolist(), expected="(m, 3) finite coordinates [m]")
        labels = tuple(f"point_{k}" for k in range(len(fixed))) if names is None else tuple(names)
        positions = self.position[:, None] + np.einsum("fij,mj->fmi", self.rotations, fixed)
        return Recording(labels, self.times, positions, np.ones(positions.shape[:2], dtype=bool), self.source)


def _positive(covariance: FloatArray) -> FloatArray:
    """Return covariances (nf, 6, 6), of which each is symmetric and positive definite."""
    # In units of their own sizes: metres and radians do not compare.
    size = np.sqrt(np.maximum(np.einsum("fii->fi", covariance), 1e-300))
    scaled = covariance / (size[:, :, None] * size[:, None, :])
    wrong = np.abs(scaled - scaled.transpose(0, 2, 1)).max(axis=(1, 2)) > 1e-6
    wrong |= np.linalg.eigvalsh(scaled).min(axis=1) <= 1e-9
    if wrong.any():
        frame = int(np.flatnonzero(wrong)[0])
        raise InputError(
            "no covariance of a pose",
            place=f"frame {frame}",
            found=f"variances {np.einsum('ii->i', covariance[frame]).tolist()}",
            expected="a symmetric, positive definite matrix",
        )
    return np.asarray(0.5 * (covariance + covariance.transpose(0, 2, 1)))


@final
@dataclass(frozen=True, eq=False)
class AngleRecording(Timed):
    """Angles at given times; every method returns a new recording, the arrays are private read-only copies.

    Parameters
    ----------
    names : (na,) of the angles, unique
    times : (nf,) strictly increasing [s]
    angles : (nf, na) as recorded, continuous beyond pi [rad]
    rates : (nf, na), or None where they were not recorded [rad/s]
    source : where it came from, for messages (a path, usually)
    """

    names: tuple[str, ...]
    times: FloatArray
    angles: FloatArray
    rates: FloatArray | None = None
    source: str = "recording"

    def _check(self) -> None:
        names = tuple(self.names)
        if not names or len(set(names)) < len(names):
            raise InputError("bad names of angles", found=names, expected="one or more, all different")
        times = np.array(self.times, dtype=np.float64)
        check_times(times)
        arrays = {"times": times}
        for name, values in (("angles", self.angles), ("rates", self.rates)):
            if values is None:
                continue
            array = arrays[name] = np.array(values, dtype=np.float64)
            if array.shape != (len(times), len(names)):
                expected = f"(frames, angles) = {(len(times), len(names))}"
                raise InputError(f"{name} have the wrong shape", found=array.shape, expected=expected)
            bad = np.argwhere(~(np.abs(array) <= LARGEST))
            if len(bad):
                frame, column = bad[0]
                place = f"{names[column]!r}, frame {frame} (t = {times[frame]:g} s)"
                raise InputError(
                    f"{name} are not finite, or beyond {LARGEST:g}", place=place, found=array[frame, column]
                )
        self._keep(names=names, **arrays)


# --- The content of one capture file: markers, bodies, angles, signals, events, and remarks on how it was read --------


class Signal(NamedTuple):
    """One channel of an analog device, a force plate or a model, over time.

    Parameters
    ----------
    name : of the channel, with its device where the file names one
    times : (n,) [s]
    values : (n,) NaN where missing, in `unit`
    unit : as the file says it; "" where it says none
    """

    name: str
    times: FloatArray
    values: FloatArray
    unit: str = ""


class Event(NamedTuple):
    """A moment that was marked in the recording.

    Parameters
    ----------
    name : of the event, with its context or subject where the file has one
    time : on the clock of the file [s]
    """

    name: str
    time: float


@final
@dataclass(frozen=True, eq=False)
class Take:
    """The content of one file of a capture system.

    Parameters
    ----------
    format : of the file, with its version where it says one
    source : path of the file
    markers : measured tracks, labelled and not, or None; model positions are never among them [m]
    unlabelled : names of the tracks that no label was given to
    bodies : name -> pose over time, frames in which the body was not seen left out [m]
    angles : of joints, or None
    signals : analog channels, force plates, outputs of models
    events : in order of time
    unit : of length, as it was read; "" where nothing has a length
    rate : frames a second [Hz], or None for a single frame
    up : "z", or the file's axis that was turned to z
    notes : how it was read, such as what was left out
    doubts : what is probably not meant, such as fewer frames than promised
    frame : remark on which axis points up, where the file leaves that open or the frame was turned; "" for none
    """

    format: str
    source: str
    markers: Recording | None = None
    unlabelled: tuple[str, ...] = ()
    bodies: Mapping[str, PoseRecording] = field(default_factory=dict)
    angles: AngleRecording | None = None
    signals: tuple[Signal, ...] = ()
    events: tuple[Event, ...] = ()
    unit: str = ""
    rate: float | None = None
    up: str = "z"
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    frame: str = ""

    def require_markers(self) -> Recording:
        """Return the markers.

        Raises
        ------
        InputError
            If the file has none.
        """
        if self.markers is None:
            parts = {"poses of bodies": self.bodies, "angles": self.angles, "signals": self.signals}
            held = " and ".join(name for name, part in parts.items() if part) or "nothing in it"
            found = f"{self.format} with {held}"
            raise InputError("no markers", file=self.source, found=found, expected="trajectories of markers")
        return self.markers

    def body(self, name: str | None) -> PoseRecording:
        """Return the pose of a body; of the only one for None.

        Raises
        ------
        InputError
            If it is not there, or several are.
        """
        listed = ", ".join(map(repr, self.bodies)) or "none"
        if name is None:
            if len(self.bodies) != 1:
                what = "no poses of bodies" if not self.bodies else "several bodies: say which one"
                raise InputError(what, file=self.source, found=listed, expected="the pose of one body")
            return next(iter(self.bodies.values()))
        if name not in self.bodies:
            raise InputError("there is no such body", file=self.source, found=repr(name), expected=f"one of {listed}")
        return self.bodies[name]

    def require_angles(self) -> AngleRecording:
        """Return the angles.

        Raises
        ------
        InputError
            If the file has none.
        """
        if self.angles is None:
            raise InputError(
                "no angles of joints", file=self.source, found=self.format, expected="'<name>_rad' columns"
            )
        return self.angles
