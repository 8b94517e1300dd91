"""Marker trajectories over time, with what was not seen marked as such, and their way into the frame of a model."""

import difflib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self, final

import numpy as np
from numpy.typing import ArrayLike

from add.errors import InputError, naming
from add.typing import BoolArray, FloatArray

#: The largest number of a recording in size; squares of squares of larger ones are no numbers.
LARGEST = 1e60


def require_names(names: Iterable[str], available: Sequence[str], *, source: str | None = None) -> None:
    """Raise an `InputError` that lists the nearest and the available markers if a name is not among them."""
    folded = {name.casefold(): name for name in available}
    for name in names:
        if name in available:
            continue
        near = difflib.get_close_matches(str(name).casefold(), list(folded), n=3, cutoff=0.6)
        hint = f"nearest {', '.join(repr(folded[key]) for key in near)}; " if near else ""
        expected = f"one of the markers; {hint}available {', '.join(map(repr, available))}"
        raise InputError("unknown marker", file=source, found=repr(name), expected=expected)


class Timed(ABC):
    """Arrays of a recording over its frames: every one has a row for each of them.

    Every method returns a new recording; the arrays are private read-only copies.
    """

    times: FloatArray
    source: str

    def __post_init__(self) -> None:
        with naming(file=self.source):
            self._check()

    @abstractmethod
    def _check(self) -> None:
        """Refuse what does not fit, and keep copies of the arrays."""

    @property
    def n_frames(self) -> int:
        """Number of frames nf."""
        return len(self.times)

    def crop(self, start: float = -np.inf, stop: float = np.inf) -> Self:
        """Keep the frames with start <= t <= stop [s]."""
        keep = (self.times >= start) & (self.times <= stop)
        if not keep.any():
            found, recorded = f"[{start:g}, {stop:g}] s", f"[{self.times[0]:g}, {self.times[-1]:g}] s"
            expected = f"a part of {recorded} that holds a frame"
            raise InputError("no frame in the window", file=self.source, found=found, expected=expected)

        def kept(value: Any) -> Any:
            if isinstance(value, Mapping):
                return {name: column[keep] for name, column in value.items()}
            return value[keep] if isinstance(value, np.ndarray) else value

        return replace(self, **{name: kept(value) for name, value in vars(self).items()})  # type: ignore[type-var]

    def with_origin(self, t0: float) -> Self:
        """Count time from t0 [s]: the new times are t - t0."""
        return replace(self, times=self.times - t0)  # type: ignore[type-var]

    def _keep(self, **values: Any) -> None:
        """Set the fields of a new recording; nobody writes into its arrays."""
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)


@final
@dataclass(frozen=True, eq=False)
class Recording(Timed):
    """Positions of named markers at given times.

    Parameters
    ----------
    names : (nm,) marker names, unique
    times : (nf,) strictly increasing; need not be evenly spaced [s]
    positions : (nf, nm, 3) in the frame of whoever recorded, or of the model once registered [m]
    valid : (nf, nm) True where the marker was seen; positions elsewhere are set to NaN
    source : where it came from, for messages (a path, usually)
    """

    names: tuple[str, ...]
    times: FloatArray
    positions: FloatArray
    valid: BoolArray
    source: str = "recording"

    def _check(self) -> None:
        names = tuple(self.names)
        times = np.array(self.times, dtype=np.float64)
        positions = np.array(self.positions, dtype=np.float64)
        valid = np.array(self.valid, dtype=bool)
        _check_names(names)
        check_times(times)
        shape = (len(times), len(names), 3)
        if positions.shape != shape:
            expected = f"(frames, markers, 3) = {shape}"
            raise InputError("positions have the wrong shape", found=positions.shape, expected=expected)
        if valid.shape != shape[:2]:
            expected = f"(frames, markers) = {shape[:2]}"
            raise InputError("valid has the wrong shape", found=valid.shape, expected=expected)
        bad = np.argwhere(valid & ~(np.abs(positions) <= LARGEST).all(axis=2))
        if len(bad):
            frame, marker = bad[0]
            place = f"marker {names[marker]!r}, frame {frame} (t = {times[frame]:g} s)"
            found, expected = positions[frame, marker].tolist(), "finite numbers, or valid = False"
            problem = f"a valid position is not finite, or beyond {LARGEST:g}"
            raise InputError(problem, place=place, found=found, expected=expected)
        positions[~valid] = np.nan
        self._keep(names=names, times=times, positions=positions, valid=valid)

    @property
    def n_markers(self) -> int:
        """Number of markers."""
        return len(self.names)

    @property
    def rate(self) -> float:
        """Mean frame rate [Hz]; a single frame has none and raises."""
        if self.n_frames < 2:
            raise InputError("a single frame has no rate", file=self.source, found=1, expected="two frames or more")
        return float((self.n_frames - 1) / (self.times[-1] - self.times[0]))

    def index(self, name: str) -> int:
        """Column of a marker in `positions` and `valid`."""
        require_names([name], self.names, source=self.source)
        return self.names.index(name)

    def marker(self, name: str) -> FloatArray:
        """Positions of one marker, (nf, 3), NaN where it was not seen [m]."""
        return self.positions[:, self.index(name)]

    def mean(self, start: float = -np.inf, stop: float = np.inf) -> FloatArray:
        """Mean position of every marker over its valid frames in [start, stop].

        Returns
        -------
        (nm, 3) NaN for a marker that was not seen in the window [m]
        """
        inside = self.valid & ((self.times >= start) & (self.times <= stop))[:, None]
        count = inside.sum(axis=0)
        total = np.where(inside[:, :, None], self.positions, 0.0).sum(axis=0)
        return np.where(count[:, None] > 0, total / np.maximum(count, 1)[:, None], np.nan)

    def select(self, names: Sequence[str]) -> "Recording":
        """Keep these markers, in this order."""
        columns = [self.index(name) for name in names]
        return replace(self, names=tuple(names), positions=self.positions[:, columns], valid=self.valid[:, columns])

    def rename(self, names: Mapping[str, str]) -> "Recording":
        """Give markers new names, old -> new; the others keep theirs."""
        require_names(names, self.names, source=self.source)
        return replace(self, names=tuple(names.get(name, name) for name in self.names))

    def mask(self, names: Sequence[str], start: float = -np.inf, stop: float = np.inf) -> "Recording":
        """Declare these markers unseen where start <= t <= stop [s]."""
        columns = [self.index(name) for name in names]
        valid = self.valid.copy()
        valid[:, columns] &= ((self.times < start) | (self.times > stop))[:, None]
        return replace(self, valid=valid)

    def transformed(self, R: ArrayLike, t: ArrayLike) -> "Recording":
        """Every position x becomes R x + t, R (3, 3), t (3,) [m]."""
        return replace(self, positions=self.positions @ np.asarray(R, dtype=np.float64).T + np.asarray(t))


def _check_names(names: tuple[str, ...]) -> None:
    if not names:
        raise InputError("no markers", found=0, expected="at least 1 marker")
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str) or not name or not name.isprintable() or name != name.strip():
            raise InputError("bad marker name", found=repr(name), expected="printable text without blanks at its ends")
        if name in seen:
            raise InputError("two markers have the same name", found=repr(name), expected="unique names")
        seen.add(name)


def check_times(times: FloatArray) -> None:
    """Raise an `InputError` unless times (nf,), at least one, are finite and strictly increasing [s]."""
    if times.ndim != 1 or len(times) == 0:
        raise InputError("no frames", found=f"times of shape {times.shape}", expected="at least 1 frame")
    if not np.isfinite(times).all():
        frame = int(np.flatnonzero(~np.isfinite(times))[0])
        raise InputError("time is not finite", place=f"frame {frame}", found=times[frame])
    if (np.diff(times) <= 0.0).any():
        frame = int(np.flatnonzero(np.diff(times) <= 0.0)[0]) + 1
        found, expected = f"{times[frame]} s after {times[frame - 1]} s", "strictly increasing times"
        raise InputError("time does not increase", place=f"frame {frame}", found=found, expected=expected)


# Points whose second spread is below this share of the first do not fix the rotation about their line:
# 0.1 mm on 100 mm, the noise of a motion-capture marker.
_COLLINEAR = 1e-3
# Two rotations fit equally well when s1 + d s2 of the correlation vanishes (a mirrored symmetric figure).
_AMBIGUOUS = 1e-6


class RigidTransform(NamedTuple):
    """x -> R x + t, and how well it maps the points it was fitted to.

    Parameters
    ----------
    R : (3, 3) rotation, det R = +1
    t : (3,) [m]
    rms : weighted root mean square of the residuals [m]
    residuals : (n,) distance left at each point, in the order of the points [m]
    """

    R: FloatArray
    t: FloatArray
    rms: float
    residuals: FloatArray

    def apply(self, points: ArrayLike) -> FloatArray:
        """Map points (..., 3) [m]."""
        return np.asarray(points, dtype=np.float64) @ self.R.T + self.t


def rigid_fit(source: ArrayLike, target: ArrayLike, weights: ArrayLike | None = None) -> RigidTransform:
    """Rotation and translation that bring `source` nearest to `target` (Kabsch 1976, Umeyama 1991, without scale).

    minimise sum_i w_i |R x_i + t - y_i|^2 over rotations: with the weighted correlation H = sum_i w_i (y_i - y_c)
    (x_i - x_c)^T = U S V^T, R = U diag(1, 1, det(U V^T)) V^T and t = y_c - R x_c.

    Parameters
    ----------
    source, target : (n, 3) corresponding points, n >= 3, not on one line [m]
    weights : (n,) >= 0, at least 3 positive; equal by default

    Returns
    -------
    RigidTransform

    Raises
    ------
    InputError : fewer than 3 points, collinear points, wrong shapes, values that are not finite, or a figure for
        which several rotations fit equally well

    Notes
    -----
    Least squares: one mislabelled marker spoils the fit. Look at `residuals`. Three points always leave a plane of
    symmetry, but never a choice of handedness, because reflections are excluded.
    """
    x, y = _points(source, "source"), _points(target, "target")
    if x.shape != y.shape:
        raise InputError(
            "source and target differ in number", found=f"{len(x)} and {len(y)} points", expected="pairs of points"
        )
    w = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=np.float64)
    if w.shape != (len(x),) or not np.isfinite(w).all() or (w < 0.0).any():
        raise InputError(
            "bad weights of a rigid fit", found=w.tolist(), expected=f"{len(x)} finite numbers >= 0, one a point"
        )
    used = w > 0.0
    if used.sum() < 3:
        raise InputError(
            "too few points for a rigid fit", found=int(used.sum()), expected="3 points or more that are not on a line"
        )
    w = w / w.sum()
    x_c, y_c = w @ x, w @ y
    for points, centre, name in ((x, x_c, "source"), (y, y_c, "target")):
        spread = np.linalg.svd(np.sqrt(w)[:, None] * (points - centre), compute_uv=False)
        if spread[1] <= _COLLINEAR * spread[0]:
            raise InputError(
                f"the {name} points of a rigid fit lie on one line",
                found=f"{used.sum()} points with spreads {spread[0]:.3g} m and {spread[1]:.3g} m across",
                expected="points that span a plane",
            )
    u, s, vt = np.linalg.svd((w[:, None] * (y - y_c)).T @ (x - x_c))
    handed = 1.0 if np.linalg.det(u @ vt) > 0.0 else -1.0
    if s[1] + handed * s[2] <= _AMBIGUOUS * s[0]:
        raise InputError(
            "several rotations fit these points equally well",
            found=f"singular values {s[0]:.3g}, {s[1]:.3g}, {s[2]:.3g} m^2, handedness {handed:+.0f}",
            expected="corresponding points of one figure (is one set mirrored, or are markers swapped?)",
        )
    R = (u * [1.0, 1.0, handed]) @ vt
    t = y_c - R @ x_c
    residuals = np.linalg.norm(x @ R.T + t - y, axis=1)
    return RigidTransform(R, t, float(np.sqrt(w @ residuals**2)), residuals)


def register(
    recording: Recording, model_points: Mapping[str, ArrayLike], *, window: tuple[float, float] | None = None
) -> tuple[Recording, RigidTransform]:
    """Transform a recording into the frame in which some of its markers have known positions.

    Parameters
    ----------
    recording : in any rigid frame
    model_points : marker name -> position (3,) in the model frame [m]
    window : (start, stop), both included, over which the markers rest [s]; the whole recording by default

    Returns
    -------
    (Recording, RigidTransform)
        the whole recording in the model frame, and the fit, its residuals in the order of `model_points`

    Raises
    ------
    InputError : unknown names, a marker without a valid frame in the window, or what `rigid_fit` refuses
    """
    names = list(model_points)
    require_names(names, recording.names, source=recording.source)
    start, stop = (-np.inf, np.inf) if window is None else window
    if not start <= stop:
        found = f"[{start}, {stop}] s"
        raise InputError(
            "the window of a registration is empty", file=recording.source, found=found, expected="start <= stop"
        )
    target = [np.asarray(model_points[name], dtype=np.float64) for name in names]
    for name, point in zip(names, target, strict=True):
        if point.shape != (3,) or not np.isfinite(point).all():
            raise InputError(
                f"bad model position of marker {name!r}", found=point.tolist(), expected="3 finite coordinates [m]"
            )
    mean = recording.mean(start, stop)[[recording.names.index(name) for name in names]]
    unseen = [name for name, point in zip(names, mean, strict=True) if np.isnan(point).any()]
    if unseen:
        raise InputError(
            f"no valid frame of {', '.join(map(repr, unseen))} in the window of the registration",
            file=recording.source,
            found=f"[{start:g}, {stop:g}] s of [{recording.times[0]:g}, {recording.times[-1]:g}] s",
            expected="a window in which every named marker is seen",
        )
    fit = rigid_fit(mean, np.reshape(target, (-1, 3)))
    return recording.transformed(fit.R, fit.t), fit


def _points(values: ArrayLike, name: str) -> FloatArray:
    points = np.asarray(values, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 3:
        raise InputError(f"bad {name} points of a rigid fit", found=f"shape {points.shape}", expected="(n, 3)")
    if not np.isfinite(points).all():
        row = int(np.flatnonzero(~np.isfinite(points).all(axis=1))[0])
        raise InputError(
            f"a {name} point of a rigid fit is not finite", place=f"point {row}", found=points[row].tolist()
        )
    return points
