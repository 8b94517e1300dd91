"""Frames of a recording over consecutive states of a run, all at once: residuals and their tangents."""

from __future__ import annotations

from typing import Protocol, final

import numpy as np

from add.equations.points import PointMap
from add.equations.tangents import Columns, Directions, StretchTangents
from add.objectives.interpolation import Interpolant
from add.objectives.losses import Loss, bend, bending
from add.objectives.placement import Placement
from add.simulation.run import Trajectory
from add.typing import FloatArray, IntArray


class Tracked(Protocol):
    """The part of `add.objectives.tracking.Tracking` that frames read; its attributes stand there."""

    @property
    def points(self) -> PointMap: ...
    @property
    def targets(self) -> FloatArray: ...
    @property
    def weights(self) -> FloatArray: ...
    @property
    def projector(self) -> FloatArray: ...
    @property
    def loss(self) -> Loss | None: ...
    @property
    def clock(self) -> int | None: ...
    @property
    def placement(self) -> Placement | None: ...
    @property
    def between(self) -> Interpolant: ...
    def intervals(self, theta: FloatArray) -> IntArray: ...
    def simulation_times(self, theta: FloatArray) -> FloatArray: ...
    def placed(self, frames: IntArray, theta: FloatArray) -> FloatArray: ...


@final
class FramesOver:
    """The frames, of positions, that lie after state ``before`` of a run from t = 0 on, and not after state ``last``.

    Attributes
    ----------
    frames : (n_frames,) their numbers
    times : (n_frames,) on the simulation's clock [s]
    ends : (n_frames,) number of the state that ends the interval of each
    rows : (k,) numbers of the states around them
    """

    def __init__(self, tracking: Tracked, run: Trajectory, theta: FloatArray, before: int, last: int) -> None:
        self.tracking, self.run, self.theta, self.before = tracking, run, theta, before
        interval = tracking.intervals(theta)
        self.frames = np.arange(*np.searchsorted(interval, [before + 1, last + 1]))
        self.times, self.ends = tracking.simulation_times(theta)[self.frames], interval[self.frames]
        self.rows = np.union1d(self.ends - 1, self.ends)

    def _between(self, places: FloatArray, rates: FloatArray, slopes: bool = False) -> FloatArray:
        """Return (n_frames, ...) of the cubics through places and rates (k, ...) in the states `rows`, or slopes."""
        between = self.tracking.between
        weights = between.slopes if slopes else between.weights
        pairs = zip(self.ends.tolist(), self.times.tolist(), strict=True)
        by_frame = np.array([weights(step, time) for step, time in pairs])
        new, old = np.searchsorted(self.rows, self.ends), np.searchsorted(self.rows, self.ends - 1)
        out = np.zeros((self.ends.size, *places.shape[1:]))
        for weight, part in zip(by_frame.T, (places[old], rates[old], places[new], rates[new]), strict=True):
            out += weight.reshape(-1, *[1] * (part.ndim - 1)) * part
        return out

    def _places(self, slopes: bool = False) -> FloatArray:
        """Return x or dx/dt (n_frames, n_points, 3)."""
        q, v = self.run.q[self.rows], self.run.v[self.rows]
        return self._between(*self.tracking.points.points_over(q, v, self.theta), slopes)

    def _differences(self) -> FloatArray:
        """Return d = P (x - y) (n_frames, n_points, 3)."""
        return (self._places() - self.tracking.placed(self.frames, self.theta)) @ self.tracking.projector

    def residuals(self) -> FloatArray:
        """Return the residuals of all samples that count, frame after frame, as `Tracking.step_residuals` does."""
        if not self.frames.size:
            return np.zeros(0)
        difference, loss, weights = self._differences(), self.tracking.loss, self.tracking.weights[self.frames]
        if loss is not None:
            difference = bend(loss, difference.reshape(-1, 3)).reshape(difference.shape)
        return (np.sqrt(weights)[:, :, None] * difference)[weights > 0.0].ravel()

    def tangents(self, tangents: StretchTangents, directions: Directions) -> Columns:
        """Return the tangents of `residuals`; row 0 of those of the states is of state ``before``."""
        tracking, rows = self.tracking, self.rows
        if not self.frames.size:
            return Columns(np.zeros(0, dtype=np.int64), np.zeros((0, 0)))
        clock = np.array([] if tracking.clock is None else [tracking.clock], dtype=np.int64)
        placement = tracking.placement
        placing = clock[:0] if placement is None else placement.entries
        own = directions.touching(directions.among(np.concatenate([tracking.points.numbers, clock, placing])))
        index = np.union1d(tangents.index, own)
        theta_dot = np.zeros((index.size, self.theta.size))
        for column, place in zip(own, np.searchsorted(index, own), strict=True):
            theta_dot[place] = directions.column(int(column))
        q_dot, v_dot = np.zeros((2, rows.size, index.size, self.run.q.shape[1]))
        places = np.searchsorted(index, tangents.index)
        q_dot[:, places], v_dot[:, places] = tangents.q[rows - self.before], tangents.v[rows - self.before]
        q, v = self.run.q[rows], self.run.v[rows]
        change = self._between(*tracking.points.jvp_over(q, v, self.theta, q_dot, v_dot, theta_dot))
        if theta_dot[:, clock].any():
            change -= theta_dot[:, clock, None] * self._places(slopes=True)[:, None]
        if placement is not None and theta_dot[:, placing].any():
            slopes = placement.jacobian(tracking.targets[self.frames], self.theta)
            change -= np.einsum("fpik,ck->fcpi", slopes, theta_dot[:, placing])
        change = change @ tracking.projector
        if tracking.loss is not None:
            difference = self._differences()
            matrices = bending(tracking.loss, difference.reshape(-1, 3)).reshape(*difference.shape, 3)
            change = np.einsum("fpij,fcpj->fcpi", matrices, change)
        weights = tracking.weights[self.frames]
        change = np.moveaxis(np.sqrt(weights)[:, None, :, None] * change, 1, 3)[weights > 0.0]
        return Columns(index, change.reshape(-1, index.size))
