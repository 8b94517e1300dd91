"""Bringing a recording into the frame of a model through markers whose model positions are known."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from add.errors import InputError
from add.mocap.recording import Recording, require_names
from add.typing import FloatArray

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
    recording: Recording,
    model_points: Mapping[str, ArrayLike],
    *,
    window: tuple[float, float] | None = None,
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
        raise InputError(
            "the window of a registration is empty",
            file=recording.source,
            found=f"[{start}, {stop}] s",
            expected="start <= stop",
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
