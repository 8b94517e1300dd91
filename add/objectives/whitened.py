"""Poses against recorded ones, each frame weighted by the covariance of its pose."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from add.equations.kinematics import Columns, Directions, State, StateTangent, StateTangents
from add.objectives.base import LeastSquares
from add.objectives.regularisers import Loss, bend, bending
from add.objectives.tracking import Tracking
from add.typing import FloatArray, IntArray

#: Share of the largest singular value below which points do not tell a direction of the pose, as collinear ones.
_UNSEEN = 1e-9


def whitening(arms: FloatArray, places: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return W (6, 3 n) with W d of unit covariance, d the error of n points and directions of a body.

    A small error (dx, dw) of the pose, of covariance S, moves point p by dx + dw x a_p and a direction by dw x a_p:
    d = A (dx, dw). With S = C C^T and the singular value decomposition A C = U s V^T, W = s^-1 U^T; rows that the
    points do not tell are zero.

    Parameters
    ----------
    arms : (n, 3) a_p: from the origin of the body's frame to the points, and the directions, world axes [m], [-]
    places : (n,) 1 for points, 0 for directions; those that were not seen are NaN
    covariance : (6, 6) of the origin [m] and of the rotation about the world's axes [rad]; positive definite
    """
    n = places.size
    seen = np.flatnonzero(np.isfinite(places))
    out = np.zeros((6, n, 3))
    if not seen.size:
        return out.reshape(6, 3 * n)
    by_pose = np.zeros((seen.size, 3, 6))
    by_pose[:, :, :3] = places[seen, None, None] * np.eye(3)
    for k, axis in enumerate(np.eye(3)):
        by_pose[:, :, 3 + k] = np.cross(axis, arms[seen])
    matrix = by_pose.reshape(-1, 6)
    size = np.linalg.norm(matrix, axis=0)
    rank = np.linalg.matrix_rank(matrix / np.where(size > 0.0, size, 1.0), tol=_UNSEEN**0.5)
    u, s, _ = np.linalg.svd(matrix @ np.linalg.cholesky(covariance), full_matrices=False)
    out[:rank, seen] = (u[:, :rank] / s[:rank]).T.reshape(rank, seen.size, 3)
    return out.reshape(6, 3 * n)


@final
@dataclass(frozen=True)
class WhitenedTracking(LeastSquares):
    """phi = w sum_f rho(r_f^T r_f), r_f = W_f d_f: distances of points, whitened frame by frame [-].

    rho(s^2) = s^2 without a loss. W_f is that of the recorded pose, and does not change with theta.

    Attributes
    ----------
    points : Tracking
        Of positions, with weights of one and without a loss; its targets are finite.
    matrices : (n_frames, 6, 3 n_points), W_f
    weight : w, of every row [-]
    loss : Loss, optional
        Of the distance in standard deviations.
    """

    points: Tracking
    matrices: FloatArray
    weight: float
    loss: Loss | None = None

    @property
    def told(self) -> FloatArray:
        """Of every frame and row (n_frames, 6), whether the points tell it."""
        return np.asarray(self.matrices.any(axis=2))

    def rows(self, frame: int) -> IntArray:
        """Return the rows of a frame that count."""
        return np.flatnonzero(self.told[frame])

    def frames(self, state: State, theta: FloatArray) -> IntArray:
        """Return the frames of the interval that ends at ``state``."""
        return self.points.frames(state, theta)

    def within(self, start: float, stop: float, *, last: int | None = None) -> WhitenedTracking:
        """Return the objective of the frames in [start, stop]; the weights of what is left sum to what they did."""
        times = self.points.times
        kept = (times >= start - 1e-9) & (times <= stop + 1e-9)
        count = int(self.told[kept].sum())
        weight = self.weight * int(self.told.sum()) / count if count else self.weight
        points = self.points.within(start, stop, mean=False, last=last)
        return replace(self, points=points, matrices=self.matrices[kept], weight=weight)

    def _whitened(self, state: State, theta: FloatArray) -> Iterable[tuple[int, FloatArray]]:
        for frame, difference in self.points.differences(state, theta):
            yield frame, self.matrices[frame] @ difference.ravel()

    def step_residuals(self, state: State, theta: FloatArray) -> FloatArray:
        """Return sqrt(w) sqrt(rho / r^T r) r of the frames of this interval [-]."""
        found = [np.zeros(0)]
        for frame, row in self._whitened(state, theta):
            bent = row if self.loss is None else bend(self.loss, row[None])[0]
            found.append(np.sqrt(self.weight) * bent[self.rows(frame)])
        return np.concatenate(found)

    def step_pullback(self, state: State, theta: FloatArray, state_bar: StateTangent, theta_bar: FloatArray) -> None:
        """Add 2 w rho' W^T r, spread over the points."""
        times, placement = self.points.simulation_times(theta), self.points.placement
        for frame, row in self._whitened(state, theta):
            bar = 2.0 * self.weight * (self.matrices[frame].T @ row).reshape(-1, 3)
            if self.loss is not None:
                bar *= self.loss.slope(np.array([row @ row]))[0]
            self.points.pull(state, times[frame], bar, theta, state_bar, theta_bar)
            if placement is not None:
                placement.pull(self.points.targets[frame], -bar, theta, theta_bar)

    def step_residual_tangents(
        self, state: State, theta: FloatArray, tangents: StateTangents, directions: Directions
    ) -> Columns:
        """Return the tangents of `step_residuals`: those of the points, whitened."""
        moved = self.points.step_residual_tangents(state, theta, tangents, directions)
        n_frames = self.frames(state, theta).size
        by_frame = moved.values.reshape(n_frames, self.matrices.shape[2], moved.index.size)
        found = [np.zeros((0, moved.index.size))]
        for (frame, row), change in zip(self._whitened(state, theta), by_frame, strict=True):
            rows = self.matrices[frame] @ change
            if self.loss is not None:
                rows = bending(self.loss, row[None])[0] @ rows
            found.append(np.sqrt(self.weight) * rows[self.rows(frame)])
        return Columns(moved.index, np.concatenate(found))

    @property
    def looks(self) -> bool:
        """Whether any row counts."""
        return bool(self.matrices.any())

    @property
    def sample_weight(self) -> float:
        """Sum of the weights of the rows, a third each: a marker gives three."""
        return self.weight * float(self.told.sum()) / 3.0
