"""Frames of a recording over states of a run, all at once, interpolated between steps: residuals and tangents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, final

import numpy as np

from add.equations.kinematics import (
    Columns,
    Directions,
    Kinematics,
    State,
    StateTangent,
    StateTangents,
    StretchTangents,
    generic,
)
from add.equations.points import Along, PointMap
from add.objectives.base import StateRows
from add.objectives.placement import Placement
from add.objectives.regularisers import Loss, bend, bending
from add.simulation.run import Trajectory
from add.typing import FloatArray, IntArray

#: Weights of (x_0, v_0, x_1, v_1): positions and velocities at the beginning and at the end of a step.
StepWeights = tuple[float, float, float, float]


def hermite(s: float, dt: float) -> StepWeights:
    """Return the cubic Hermite weights of (x_0, v_0, x_1, v_1) at the fraction ``s`` of a step that ends in x_1."""
    return (
        (1.0 + 2.0 * s) * (1.0 - s) ** 2,
        dt * s * (1.0 - s) ** 2,
        s * s * (3.0 - 2.0 * s),
        dt * s * s * (s - 1.0),
    )


@final
@dataclass(frozen=True)
class Interpolant:
    """Weights of the two states around a time.

    Attributes
    ----------
    dt : float
        Step [s].
    last : int or None
        The step that ends the run, beyond which things go straight on; None: no time lies there.
    """

    dt: float
    last: int | None

    def _outside(self, step: int, time: float) -> float | None:
        """Return how long after step ``step`` a time lies that is not within the run, None if it is within [s]."""
        beyond = time - step * self.dt
        if step == 0 and beyond <= 0.0:
            return beyond
        return beyond if step == self.last and beyond > 0.0 else None

    def _fraction(self, step: int, time: float) -> float:
        return float(min(max((time - (step - 1) * self.dt) / self.dt, 0.0), 1.0))

    def weights(self, step: int, time: float) -> StepWeights:
        """Return the weights of (x_0, v_0, x_1, v_1) at a time of the interval that ends with ``step``."""
        outside = self._outside(step, time)
        if outside is not None:
            # Straight on, so that a frame that the clock moves through an end of the run meets no kink.
            return 0.0, 0.0, 1.0, outside
        return hermite(self._fraction(step, time), self.dt) if step else (0.0, 0.0, 1.0, 0.0)

    def slopes(self, step: int, time: float) -> StepWeights:
        """Return the derivative of `weights` by the time."""
        if step == 0 or self._outside(step, time) is not None:
            return 0.0, 0.0, 0.0, 1.0
        s, dt = self._fraction(step, time), self.dt
        return 6.0 * s * (s - 1.0) / dt, (1.0 - s) * (1.0 - 3.0 * s), 6.0 * s * (1.0 - s) / dt, s * (3.0 * s - 2.0)


def pair(state: State, k: int) -> Kinematics:
    """Return pair k of a state as the maps take it."""
    return Kinematics(state.q[k], state.v[k], state.v[k], state.t, state.step)


@final
@dataclass(frozen=True)
class StateReads:
    """A state, theta, and what is read of them.

    Attributes
    ----------
    state : State
    theta : (n_theta,)
    coordinates, entries : indices of the coordinates and of the entries of theta that may be read
    """

    state: State
    theta: FloatArray
    coordinates: IntArray
    entries: IntArray

    @classmethod
    def of_points(cls, points: PointMap, state: State, theta: FloatArray, entries: IntArray) -> StateReads:
        """Return what points read of a state and of theta, and the entries of theta given beside it."""
        n = state.q.shape[1]
        bar = generic(3 * points.n_points).reshape(-1, 3)
        read, theta_bar = np.zeros(n), np.zeros_like(theta)
        for k in range(2):
            q_bar, v_bar = np.zeros(n), np.zeros(n)
            points.vjp(pair(state, k), theta, bar, bar, Along(q_bar, v_bar, theta_bar))
            read += np.abs(q_bar) + np.abs(v_bar)
        return cls(state, theta, np.flatnonzero(read), np.union1d(np.flatnonzero(theta_bar), entries))

    def columns(
        self,
        along: Callable[[StateTangent, FloatArray], FloatArray],
        size: int,
        tangents: StateTangents,
        directions: Directions,
    ) -> Columns:
        """Return the tangents of ``size`` numbers, which ``along`` gives (size, c) for tangents of the state and theta.

        Where few coordinates are read, the derivative by each of those, times the tangents, is cheaper than one pass a
        direction.
        """
        state, coordinates, dot = self.state, self.coordinates, tangents.dot
        entries = directions.touching(directions.among(self.entries))
        index = np.union1d(tangents.index, entries)
        if not index.size:
            return Columns(index, np.zeros((size, 0)))
        places, own_places = np.searchsorted(index, tangents.index), np.searchsorted(index, entries)
        theta_dot = np.zeros((self.theta.size, index.size))
        for column, place in zip(entries, own_places, strict=True):
            theta_dot[:, place] = directions.column(int(column))
        m, n = state.q.shape
        if tangents.index.size <= 2 * m * coordinates.size:
            q_dot, v_dot = np.zeros((2, m, n, index.size))
            q_dot[:, :, places], v_dot[:, :, places] = dot.q, dot.v
            return Columns(index, along(StateTangent(q_dot, v_dot), theta_dot))
        values = np.zeros((size, index.size))
        if entries.size:
            still = np.zeros((m, n, entries.size))
            values[:, own_places] = along(StateTangent(still, still), theta_dot[:, own_places])
        units = np.zeros((2, m, n, 2, m, coordinates.size))
        for i, k in np.ndindex(2, m):
            units[i, k, coordinates, i, k, np.arange(coordinates.size)] = 1.0
        q_dot, v_dot = units.reshape(2, m, n, -1)
        derivative = along(StateTangent(q_dot, v_dot), np.zeros((self.theta.size, q_dot.shape[2])))
        known = np.stack([dot.q[:, coordinates], dot.v[:, coordinates]]).reshape(q_dot.shape[2], places.size)
        values[:, places] += derivative @ known
        return Columns(index, values)


#: Numbers that the units of a stretch of states may take.
MOST_UNITS = 1 << 22


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
        rows, entries = self.rows, self._direct(directions)
        index = np.union1d(tangents.index, entries)
        if not self.frames.size or not index.size:  # or no direction has set in
            counting = np.count_nonzero(self.tracking.weights[self.frames] > 0.0)
            return Columns(index, np.zeros((3 * counting, index.size)))
        theta_dot = np.zeros((index.size, self.theta.size))
        for column, place in zip(entries, np.searchsorted(index, entries), strict=True):
            theta_dot[place] = directions.column(int(column))
        q_dot, v_dot = np.zeros((2, rows.size, index.size, self.run.q.shape[1]))
        places = np.searchsorted(index, tangents.index)
        q_dot[:, places], v_dot[:, places] = tangents.q[rows - self.before], tangents.v[rows - self.before]
        return Columns(index, self._along(q_dot, v_dot, theta_dot))

    def state_rows(self, coordinates: IntArray, directions: Directions) -> list[StateRows]:
        """Return the derivatives of `residuals` by the pairs around each, state by state; see `LeastSquares`.

        A residual reads the states at both ends of its interval: with units of their own for states of even and of odd
        number, one pass has both. ``coordinates`` are those that it may read.
        """
        if not self.frames.size:
            return []
        rows, n, entries = self.rows, self.run.q.shape[1], self._direct(directions)
        count, places = coordinates.size, np.arange(coordinates.size)
        units = np.zeros((2, rows.size, 2, 2, count, n))  # q and v; state; parity; q and v; coordinate
        for kind in range(2):
            for k, row in enumerate(rows):
                units[kind, k, row % 2, kind, places, coordinates] = 1.0
        still = np.zeros((2, rows.size, entries.size, n))
        q_dot, v_dot = np.concatenate([units.reshape(2, rows.size, -1, n), still], axis=2)
        theta_dot = np.zeros((4 * count + entries.size, self.theta.size))
        for place, column in enumerate(entries):
            theta_dot[4 * count + place] = directions.column(int(column))
        values = self._along(q_dot, v_dot, theta_dot)
        owner = np.repeat(self.ends, 3 * np.count_nonzero(self.tracking.weights[self.frames] > 0.0, axis=1))
        out = []
        for step in np.unique(owner).tolist():
            block = values[owner == step]
            by_state = block[:, : 4 * count].reshape(-1, 2, 2, count)
            bars = np.zeros((2, 2, n, block.shape[0]))  # q and v; pair; coordinate; row
            for pair in range(2):
                bars[:, pair, coordinates] = by_state[:, (step - pair) % 2].transpose(1, 2, 0)
            out.append(StateRows(step, StateTangent(*bars), Columns(entries, block[:, 4 * count :])))
        return out

    def _entries(self) -> tuple[IntArray, IntArray]:
        """Return the entries of theta that are a clock, and those of a placement."""
        clock, placement = self.tracking.clock, self.tracking.placement
        none = np.zeros(0, dtype=np.int64)
        return none if clock is None else np.array([clock]), none if placement is None else placement.entries

    def _direct(self, directions: Directions) -> IntArray:
        """Return the directions that move what residuals read of theta."""
        return directions.touching(directions.among(np.concatenate([self.tracking.points.numbers, *self._entries()])))

    def _along(self, q_dot: FloatArray, v_dot: FloatArray, theta_dot: FloatArray) -> FloatArray:
        """Return the tangents (r, c) of `residuals`; q_dot and v_dot (k, c, n) of the states `rows`."""
        tracking, rows, (clock, placing) = self.tracking, self.rows, self._entries()
        placement = tracking.placement
        at = Along(self.run.q[rows], self.run.v[rows], self.theta)
        change = self._between(*tracking.points.jvp_over(at, Along(q_dot, v_dot, theta_dot)))
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
        return change.reshape(-1, theta_dot.shape[0])


def rows_over(tracking: Tracked, run: Trajectory, theta: FloatArray, directions: Directions) -> list[StateRows]:
    """Return the derivatives of all residuals of a run behind its first state; see `FramesOver.state_rows`."""
    n, points = run.q.shape[1], tracking.points
    # The coordinates that are read, at a state that makes no derivative zero by chance.
    kin = Kinematics(run.q[-1] + 0.01 * generic(n), generic(n), np.zeros(n), 0.0, 0)
    bar, (q_bar, v_bar) = generic(3 * points.n_points).reshape(-1, 3), np.zeros((2, n))
    points.vjp(kin, theta, bar, bar, Along(q_bar, v_bar, np.zeros_like(theta)))
    coordinates, out = np.flatnonzero(np.abs(q_bar) + np.abs(v_bar)), []
    together = max(1, MOST_UNITS // (8 * n * coordinates.size + 1))
    for first in range(0, run.n_steps, together):
        over = FramesOver(tracking, run, theta, first, min(first + together, run.n_steps))
        out += over.state_rows(coordinates, directions)
    return out
