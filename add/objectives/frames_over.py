"""Frames of a recording over states of a run, all at once, interpolated between steps: residuals and tangents."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from add.equations.kinematics import Columns, Directions, Kinematics, State, StateTangent, generic
from add.equations.points import Along, PointMap
from add.objectives.base import LeastSquares, Placement, StateRows
from add.objectives.regularisers import Loss, bend, bending
from add.simulation.run import Trajectory
from add.typing import BoolArray, FloatArray, IntArray

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


class Interpolant(NamedTuple):
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
            return 0.0 if np.isneginf(time) else beyond  # long before the start the run stands there
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
            return 0.0, 0.0, 0.0, float(not np.isneginf(time))
        s, dt = self._fraction(step, time), self.dt
        return 6.0 * s * (s - 1.0) / dt, (1.0 - s) * (1.0 - 3.0 * s), 6.0 * s * (1.0 - s) / dt, s * (3.0 * s - 2.0)


#: Numbers that the units of a stretch of states may take.
MOST_UNITS = 1 << 22


@dataclass(frozen=True)
class Followed(LeastSquares):
    """Points that are compared with targets frame by frame, on a clock of their own.

    Attributes
    ----------
    points : PointMap
        n_points points or directions.
    dt : float
        Time step of the simulation [s].
    times : (n_frames,) increasing [s]
        Without a clock, frames after the end of a run do not count.
    targets : (n_frames, n_points, 3) [m]
    weights : (n_frames, n_points) [-]
    projector : (3, 3)
        P; the identity, chosen axes, or I - d d^T for a line of direction d.
    reference : float, optional
        Compare displacements from those at this time, on the clock of ``times`` [s]: t_ref, which a clock moves with
        the frames. Not after the first of ``times``.
    rests : bool
        Whether t_ref stands for a time at rest before the run, as the frame there does: wherever the clock is, both see
        the start, whatever velocity it has.
    clock : int, optional
        Index in theta of the recording's time at which the simulation starts [s]: frame f then lies at
        times_f + clock_start - theta[clock]. Frames before t = 0 see the start and its velocity, straight back.
    clock_start : float
        The offset for which ``times`` hold [s].
    last : int, optional
        The step that ends the run; a clock needs it. Frames that the clock moves beyond it see that state and its
        velocity, straight on: no offset of the clock makes the objective lose a frame, and none meets a kink at the
        end.
    loss : Loss, optional
        rho; default: the square.
    placement : Placement, optional
        Turns, moves and scales the targets by theta.
    """

    points: PointMap
    dt: float
    times: FloatArray
    targets: FloatArray
    weights: FloatArray
    projector: FloatArray
    reference: float | None = None
    clock: int | None = None
    clock_start: float = 0.0
    last: int | None = None
    loss: Loss | None = None
    placement: Placement | None = None
    rests: bool = False

    def _intervals(self, times: FloatArray) -> IntArray:
        """Number the step that ends each time's interval, t_(k-1) < t <= t_k, with a little room for rounding."""
        steps = np.maximum(np.ceil(times / self.dt - 1e-9), 0.0)
        if self.last is not None and self.clock is not None:
            steps = np.minimum(steps, self.last)
        return steps.astype(np.int64)

    def _shift(self, theta: FloatArray) -> float:
        return 0.0 if self.clock is None else float(self.clock_start - theta[self.clock])

    def simulation_times(self, theta: FloatArray) -> FloatArray:
        """Return the frames' times on the simulation's clock [s]; -inf of that at rest."""
        times = self.times if self.clock is None else self.times + self._shift(theta)
        if not self.rests or self.reference is None:
            return times
        return np.where(self.times <= self.reference, -np.inf, times)

    def placed(self, frames: int | IntArray | slice, theta: FloatArray) -> FloatArray:
        """Return the targets of frames where the placement puts them (..., n_points, 3) [m]."""
        targets = self.targets[frames]
        return targets if self.placement is None else self.placement.places(targets, theta)

    def intervals(self, theta: FloatArray) -> IntArray:
        """Return the numbers (n_frames,) of the steps that end the frames' intervals."""
        return self._of_times if self.clock is None else self._intervals(self.simulation_times(theta))

    @cached_property
    def _of_times(self) -> IntArray:
        return self._intervals(self.times)

    @property
    def between(self) -> Interpolant:
        """The interpolant between two steps; without a clock no frame lies beyond the run."""
        return Interpolant(self.dt, self.last if self.clock is not None else None)


class FramesOver(NamedTuple):
    """Points at times between consecutive states: of a run, of positions, or of one step, of displacements as well.

    Attributes
    ----------
    tracking : Followed
    theta : (n_theta,)
    rows : (k,) numbers of the states around the times
    q, v : (k, n) these
    times : (f,) on the simulation's clock [s]
    ends : (f,) number of the state that ends the interval of each
    frames : (f,) which frames of the recording lie there
    origin : (n_points, 3) from which displacements count, or zero [m]
    """

    tracking: Followed
    theta: FloatArray
    rows: IntArray
    q: FloatArray
    v: FloatArray
    times: FloatArray
    ends: IntArray
    frames: IntArray
    origin: FloatArray | float = 0.0

    @classmethod
    def of_run(cls, tracking: Followed, run: Trajectory, theta: FloatArray, before: int, last: int) -> "FramesOver":
        """Return the frames of a run from t = 0 that lie after state ``before``, and not after state ``last``."""
        interval = tracking.intervals(theta)
        frames = np.arange(*np.searchsorted(interval, [before + 1, last + 1]))
        times, ends = tracking.simulation_times(theta)[frames], interval[frames]
        rows = np.union1d(ends - 1, ends)
        return cls(tracking, theta, rows, run.q[rows], run.v[rows], times, ends, frames)

    @classmethod
    def of_step(
        cls,
        tracking: Followed,
        state: State,
        theta: FloatArray,
        times: FloatArray,
        frames: IntArray | None = None,
        origin: FloatArray | float = 0.0,
    ) -> "FramesOver":
        """Return times of the interval that ends at ``state``, with the frames that lie there if these are asked."""
        rows, ends = state.step + np.array([-1, 0]), np.full(times.size, state.step)
        frames = np.zeros(0, dtype=np.int64) if frames is None else frames
        return cls(tracking, theta, rows, state.q[1::-1], state.v[1::-1], times, ends, frames, origin)

    def _between(self, places: FloatArray, rates: FloatArray, slopes: bool = False) -> FloatArray:
        """Return (f, ...) of the cubics through places and rates (k, ...) in the states `rows`, or slopes."""
        between = self.tracking.between
        weights = between.slopes if slopes else between.weights
        pairs = zip(self.ends.tolist(), self.times.tolist(), strict=True)
        by_frame = np.array([weights(step, time) for step, time in pairs])
        if len(places) == 2:
            parts = np.array([places[0], rates[0], places[1], rates[1]])
            return np.asarray(by_frame @ parts.reshape(4, -1)).reshape(-1, *places.shape[1:])
        new, old = np.searchsorted(self.rows, self.ends), np.searchsorted(self.rows, self.ends - 1)
        out = np.zeros((self.ends.size, *places.shape[1:]))
        for weight, part in zip(by_frame.T, (places[old], rates[old], places[new], rates[new]), strict=True):
            out += weight.reshape(-1, *[1] * (part.ndim - 1)) * part
        return out

    def places(self, slopes: bool = False) -> FloatArray:
        """Return x [m] or dx/dt [m/s] (f, n_points, 3)."""
        points, theta = self.tracking.points, self.theta
        if len(self.q) > 2:
            return self._between(*points.points_over(self.q, self.v, theta), slopes)
        found = [points.points(Kinematics(q, v, v, 0.0, 0), theta) for q, v in zip(self.q, self.v, strict=True)]
        return self._between(np.array([x for x, _ in found]), np.array([rate for _, rate in found]), slopes)

    def differences(self) -> FloatArray:
        """Return d = P (x - x_ref - y) (f, n_points, 3) [m]."""
        placed = self.tracking.placed(self.frames, self.theta)
        return (self.places() - self.origin - placed) @ self.tracking.projector

    def residuals(self) -> FloatArray:
        """Return the residuals of all samples that count, frame after frame."""
        if not self.frames.size:
            return np.zeros(0)
        difference, loss, weights = self.differences(), self.tracking.loss, self.tracking.weights[self.frames]
        if loss is not None:
            difference = bend(loss, difference.reshape(-1, 3)).reshape(difference.shape)
        return (np.sqrt(weights)[:, :, None] * difference)[weights > 0.0].ravel()

    def tangents(
        self, own: IntArray, q_dot: FloatArray, v_dot: FloatArray, directions: Directions, *, places: bool = False
    ) -> Columns:
        """Return the tangents of `residuals`, or of `places` as if they had no weights, by the states and by theta.

        Where few coordinates of one step are read, the derivative by each of those, times the tangents, is cheaper than
        one pass a direction.

        Parameters
        ----------
        own : (c,) directions that move the states
        q_dot, v_dot : (k, c, n) tangents of the states `rows`
        """
        entries = self._direct(directions)
        index = np.union1d(own, entries)
        if not self.times.size or not index.size:  # or no direction has set in
            counting = self.times.size * self.tracking.points.n_points if places else self._counting().sum()
            return Columns(index, np.zeros((3 * counting, index.size)))
        (k, n), at, at_entries = self.q.shape, np.searchsorted(index, own), np.searchsorted(index, entries)
        if k == 2 and own.size > 4:
            coordinates = coordinates_read(self.tracking.points, self.q[-1], self.theta)
            count = 4 * coordinates.size
            if own.size > count > 0:
                by_units = self._by_units(coordinates, entries, directions, places)
                known = np.array([(q_dot[row], v_dot[row]) for row in self.rows % 2])[..., coordinates]
                values = np.zeros((by_units.shape[0], index.size))
                values[:, at_entries] = by_units[:, count:]
                values[:, at] += by_units[:, :count] @ known.transpose(0, 1, 3, 2).reshape(count, own.size)
                return Columns(index, values)
        theta_dot = np.zeros((index.size, self.theta.size))
        for column, place in zip(entries, at_entries, strict=True):
            theta_dot[place] = directions.column(int(column))
        dots = np.zeros((2, k, index.size, n))
        dots[0][:, at], dots[1][:, at] = q_dot, v_dot
        return Columns(index, self._along(dots[0], dots[1], theta_dot, places))

    def state_rows(self, coordinates: IntArray, directions: Directions) -> list[StateRows]:
        """Return the derivatives of `residuals` by the pairs around each, state by state; see `LeastSquares`.

        ``coordinates`` are those that a residual may read.
        """
        if not self.frames.size:
            return []
        n, entries, count = self.q.shape[1], self._direct(directions), coordinates.size
        values = self._by_units(coordinates, entries, directions)
        owner = np.repeat(self.ends, 3 * self._counting().sum(axis=1))
        out = []
        for step in np.unique(owner).tolist():
            block = values[owner == step]
            by_state = block[:, : 4 * count].reshape(-1, 2, 2, count)
            bars = np.zeros((2, 2, n, block.shape[0]))  # q and v; pair; coordinate; row
            for pair in range(2):
                bars[:, pair, coordinates] = by_state[:, (step - pair) % 2].transpose(1, 2, 0)
            out.append(StateRows(step, StateTangent(*bars), Columns(entries, block[:, 4 * count :])))
        return out

    def _counting(self) -> BoolArray:
        """Whether the samples (f, n_points) of the frames count."""
        return self.tracking.weights[self.frames] > 0.0

    def _by_units(
        self, coordinates: IntArray, entries: IntArray, directions: Directions, places: bool = False
    ) -> FloatArray:
        """Return the derivatives (r, 4 c + e) by c coordinates of the states, and along e directions of theta.

        A residual reads the states at both ends of its interval: with units of their own for states of even and of odd
        number, one pass has both. Those of q and of v of even ones come first.
        """
        rows, (k, n), count = self.rows, self.q.shape, coordinates.size
        units = np.zeros((2, k, 2, 2, count, n))  # q and v; state; parity; q and v; coordinate
        for kind in range(2):
            for j, row in enumerate(rows):
                units[kind, j, row % 2, kind, np.arange(count), coordinates] = 1.0
        dots = np.concatenate([units.reshape(2, k, -1, n), np.zeros((2, k, entries.size, n))], axis=2)
        theta_dot = np.zeros((4 * count + entries.size, self.theta.size))
        for place, column in enumerate(entries):
            theta_dot[4 * count + place] = directions.column(int(column))
        return self._along(dots[0], dots[1], theta_dot, places)

    def _entries(self) -> tuple[IntArray, IntArray]:
        """Return the entries of theta that are a clock, and those of a placement."""
        clock, placement = self.tracking.clock, self.tracking.placement
        none = np.zeros(0, dtype=np.int64)
        return none if clock is None else np.array([clock]), none if placement is None else placement.entries

    def _direct(self, directions: Directions) -> IntArray:
        """Return the directions that move what residuals read of theta."""
        return directions.touching(directions.among(np.concatenate([self.tracking.points.numbers, *self._entries()])))

    def _along(self, q_dot: FloatArray, v_dot: FloatArray, theta_dot: FloatArray, places: bool) -> FloatArray:
        """Return the tangents (r, c) of `residuals` or `places`; q_dot and v_dot (k, c, n) of the states `rows`."""
        tracking, (clock, placing) = self.tracking, self._entries()
        placement = tracking.placement
        at = Along(self.q, self.v, self.theta)
        change = self._between(*tracking.points.jvp_over(at, Along(q_dot, v_dot, theta_dot)))
        if theta_dot[:, clock].any():
            change -= theta_dot[:, clock, None] * self.places(slopes=True)[:, None]
        if places:
            return np.moveaxis(change, 1, 3).reshape(-1, theta_dot.shape[0])
        if placement is not None and theta_dot[:, placing].any():
            slopes = placement.jacobian(tracking.targets[self.frames], self.theta)
            change -= np.einsum("fpik,ck->fcpi", slopes, theta_dot[:, placing])
        return self._seen(change)

    def _seen(self, change: FloatArray) -> FloatArray:
        """Return the tangents (r, c) of `residuals` along those of the differences (f, c, n_points, 3)."""
        tracking = self.tracking
        change = change @ tracking.projector
        if tracking.loss is not None:
            difference = self.differences()
            matrices = bending(tracking.loss, difference.reshape(-1, 3)).reshape(*difference.shape, 3)
            change = np.einsum("fpij,fcpj->fcpi", matrices, change)
        roots = np.sqrt(tracking.weights[self.frames])[:, None, :, None]
        change = np.moveaxis(roots * change, 1, 3)[self._counting()]
        return change.reshape(3 * change.shape[0], change.shape[2])

    def by_origin(self, origin: Columns) -> Columns:
        """Return the tangents of `residuals` along those (3 n_points, c) of the place from which they count."""
        moved = origin.values.reshape(-1, 3, origin.index.size).transpose(2, 0, 1)
        return Columns(origin.index, -self._seen(np.broadcast_to(moved, (self.times.size, *moved.shape))))


def coordinates_read(points: PointMap, q: FloatArray, theta: FloatArray) -> IntArray:
    """Return the coordinates that points read, at a state near q (n,) that makes no derivative zero by chance."""
    n = q.size
    kin = Kinematics(q + 0.01 * generic(n), generic(n), np.zeros(n), 0.0, 0)
    bar, (q_bar, v_bar) = generic(3 * points.n_points).reshape(-1, 3), np.zeros((2, n))
    points.vjp(kin, theta, bar, bar, Along(q_bar, v_bar, np.zeros_like(theta)))
    return np.flatnonzero(np.abs(q_bar) + np.abs(v_bar))


def rows_over(tracking: Followed, run: Trajectory, theta: FloatArray, directions: Directions) -> list[StateRows]:
    """Return the derivatives of all residuals of a run behind its first state; see `FramesOver.state_rows`."""
    coordinates, out = coordinates_read(tracking.points, run.q[-1], theta), []
    together = max(1, MOST_UNITS // (8 * run.q.shape[1] * coordinates.size + 1))
    for first in range(0, run.n_steps, together):
        over = FramesOver.of_run(tracking, run, theta, first, min(first + together, run.n_steps))
        out += over.state_rows(coordinates, directions)
    return out
