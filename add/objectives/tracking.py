"""Points of bodies against targets at given times: markers, points, lines and poses are all of this form."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from add.equations.kinematics import (
    Columns,
    Directions,
    Kinematics,
    State,
    StateTangent,
    StateTangents,
    StretchTangents,
)
from add.equations.points import Along
from add.objectives.base import Origin, StateRows
from add.objectives.frames_over import Followed, FramesOver, rows_over
from add.simulation.run import Trajectory
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class Tracking(Followed):
    """phi = sum_fp w_fp rho(d^T d), d = P (x_p(t_f) - x_p(t_ref) - y_fp) [m^2]; rho(s^2) = s^2 without a loss.

    x_p(t_ref), from which displacements count, is left out where positions are compared. Between two steps x is
    interpolated by the cubic through positions and velocities, so that recording and simulation keep their own clocks.
    Samples of weight zero (missing, masked) do not count and may hold NaN. Fields and their meaning are those of
    `add.objectives.frames_over.Followed`.
    """

    origin: Origin | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.clock is not None and self.last is None:
            raise ValueError("frames that a clock moves beyond the end would not count: 'last' says which step ends it")
        object.__setattr__(self, "targets", np.where(self.weights[:, :, None] > 0.0, self.targets, 0.0))

    def for_run(self) -> "Tracking":
        """Return the tracking with room for the place from which displacements count."""
        return self if self.reference is None else replace(self, origin=Origin())

    def within(self, start: float, stop: float, *, mean: bool = True, last: int | None = None) -> "Tracking":
        """Return the objective of the frames in [start, stop], of a run that ends with step ``last`` (default: as is).

        ``mean`` makes the weights of what is left sum to one. Displacements count from where they did.
        """
        kept = (self.times >= start - 1e-9) & (self.times <= stop + 1e-9)
        weights = self.weights[kept]
        if mean and weights.sum() > 0.0:
            weights = weights * (self.weights.sum() / weights.sum())
        last = self.last if last is None else last
        return replace(self, times=self.times[kept], targets=self.targets[kept], weights=weights, last=last)

    def reference_time(self, theta: FloatArray) -> float:
        """Return the time from which displacements count, on the simulation's clock [s]."""
        assert self.reference is not None
        return -np.inf if self.rests else self.reference + self._shift(theta)

    def _starts_at(self, state: State, theta: FloatArray) -> bool:
        """Whether displacements count from the interval that ends at ``state``."""
        if self.reference is None:
            return False
        return int(self._intervals(np.array(self.reference_time(theta)))) == state.step

    def steps(self, theta: FloatArray) -> IntArray:
        """Return the steps that end the frames' intervals, and that from which displacements count."""
        frames = self.intervals(theta)
        if self.reference is None:
            return np.unique(frames)
        return np.unique([*frames, int(self._intervals(np.array(self.reference_time(theta))))])

    def frames(self, state: State, theta: FloatArray) -> IntArray:
        """Return the frames of the interval that ends at ``state``."""
        first, last = np.searchsorted(self.intervals(theta), [state.step, state.step + 1])
        return np.arange(first, last)

    def observed(self, state: State, frame: int, theta: FloatArray) -> FloatArray:
        """Return the points' positions (n_points, 3) at a frame of this interval."""
        return FramesOver.of_step(self, state, theta, self.simulation_times(theta)[[frame]]).places()[0]

    def _over(self, state: State, theta: FloatArray) -> FramesOver:
        """Return the frames of the interval that ends at ``state``; remember from where displacements count."""
        if self._starts_at(state, theta):
            self._memory().place = self._start(state, theta).places()[0]
        frames, origin = self.frames(state, theta), 0.0 if self.reference is None else self._memory().place
        if origin is None:
            assert not frames.size, "the reference is not after the first frame"
            origin = 0.0
        return FramesOver.of_step(self, state, theta, self.simulation_times(theta)[frames], frames, origin)

    def _start(self, state: State, theta: FloatArray) -> FramesOver:
        """Return the time from which displacements count."""
        return FramesOver.of_step(self, state, theta, np.array([self.reference_time(theta)]))

    def _memory(self) -> Origin:
        if self.origin is None:
            raise ValueError("displacements count from an earlier state: ask the tracking that for_run() returns")
        return self.origin

    def origin_of(self, states: Iterable[State], theta: FloatArray) -> FloatArray | None:
        """Return the places of the points from which displacements count (n_points, 3), None for positions.

        Parameters
        ----------
        states : of the run, the first one first
        theta : (n_theta,)
        """
        walked = self.for_run()
        for state in states:
            walked.differences(state, theta)
        return None if walked.origin is None else walked.origin.place

    def differences(self, state: State, theta: FloatArray) -> list[tuple[int, FloatArray]]:
        """Return (frame, d = P (x - x_ref - y) (n_points, 3)) for the frames of this interval [m]."""
        over = self._over(state, theta)
        return list(zip(over.frames.tolist(), over.differences(), strict=True)) if over.frames.size else []

    def off(self, run: Trajectory, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the times (k,) of the samples that count and that a run sees, and their distances |d| [m]."""
        walked = self.for_run()
        found = [pair for state in run.states() for pair in walked.differences(state, theta)]
        frames = np.array([frame for frame, _ in found], dtype=np.int64)
        seen, points = np.nonzero(self.weights[frames])
        off = np.array([d for _, d in found]).reshape(-1, *self.targets.shape[1:])[seen, points]
        return self.times[frames[seen]], np.linalg.norm(off, axis=1)

    def step_pullback(self, state: State, theta: FloatArray, state_bar: StateTangent, theta_bar: FloatArray) -> None:
        """Add 2 w rho' d, spread over the two states; over those of x_ref when the run is back there."""
        times = self.simulation_times(theta)
        for frame, difference in self.differences(state, theta):
            root = np.sqrt(self.weights[frame])[:, None]
            bar = 2.0 * root * (root * difference)
            if self.loss is not None:
                bar *= self.loss.slope((difference * difference).sum(axis=1))[:, None]
            self.pull(state, times[frame], bar, theta, state_bar, theta_bar)
            if self.placement is not None:
                self.placement.pull(self.targets[frame], -bar, theta, theta_bar)
            if self.reference is not None:
                memory = self._memory()
                memory.bar = -bar if memory.bar is None else memory.bar - bar
        if self._starts_at(state, theta):
            bar_of_place = self._memory().bar
            if bar_of_place is not None:
                self.pull(state, self.reference_time(theta), bar_of_place, theta, state_bar, theta_bar)

    def pull(
        self,
        state: State,
        time: float,
        bar: FloatArray,
        theta: FloatArray,
        state_bar: StateTangent,
        theta_bar: FloatArray,
    ) -> None:
        """Add the pull-back of the cotangent ``bar`` of the points at a time of this interval."""
        x0, v0, x1, v1 = self.between.weights(state.step, time)
        for k, x, v in ((0, x1, v1), (1, x0, v0)):
            if x != 0.0 or v != 0.0:
                kin = Kinematics(state.q[k], state.v[k], state.v[k], state.t, state.step)
                self.points.vjp(kin, theta, x * bar, v * bar, Along(state_bar.q[k], state_bar.v[k], theta_bar))
        if self.clock is not None:
            rates = FramesOver.of_step(self, state, theta, np.array([time])).places(slopes=True)
            theta_bar[self.clock] -= np.vdot(bar, rates)

    def step_residuals(self, state: State, theta: FloatArray) -> FloatArray:
        """Return sqrt(w) sqrt(rho / d^T d) d of all samples of the interval that count, frame after frame [m]."""
        return self._over(state, theta).residuals()

    def run_residuals(self, run: Trajectory, theta: FloatArray) -> FloatArray:
        """Return the residuals of all states of a run, one behind the other; displacements state by state."""
        if self.reference is not None or run.initial.step:
            return super().run_residuals(run, theta)
        rest = FramesOver.of_run(self, run, theta, 0, run.n_steps)
        return np.concatenate([self.step_residuals(run.initial, theta), rest.residuals()])

    def stretch_residual_tangents(
        self, run: Trajectory, first: int, theta: FloatArray, tangents: StretchTangents, directions: Directions
    ) -> Columns:
        """Return the tangents of the residuals of consecutive states of a run; of displacements state by state."""
        if self.reference is not None or run.initial.step:
            return super().stretch_residual_tangents(run, first, theta, tangents, directions)
        over = FramesOver.of_run(self, run, theta, first - 1, first + tangents.n - 1)
        rows = over.rows - (first - 1)
        return over.tangents(tangents.index, tangents.q[rows], tangents.v[rows], directions)

    def state_rows(
        self, run: Trajectory, theta: FloatArray, directions: Directions, steps: IntArray | None = None
    ) -> list[StateRows]:
        """Return the derivatives of the residuals state by state; see `LeastSquares.state_rows`."""
        if self.reference is not None or run.initial.step or steps is not None:
            return super().state_rows(run, theta, directions, steps)
        found_rows = rows_over(self, run, theta, directions)
        # Where a chart changed, a state has its older pair in another chart than the run has it.
        turned = [x.step for x in found_rows if x.bars.q[1].any() and run.records[x.step - 1].charts.size]
        alone = super().state_rows(run, theta, directions, np.array([0, *turned]))
        return sorted([*alone, *(x for x in found_rows if x.step not in turned)], key=lambda rows: rows.step)

    def step_residual_tangents(
        self, state: State, theta: FloatArray, tangents: StateTangents, directions: Directions
    ) -> Columns:
        """Return the tangents of `step_residuals`; of displacements, from the first state of the run on."""
        q_dot, v_dot = (np.moveaxis(part[1::-1], 2, 1) for part in (tangents.dot.q, tangents.dot.v))
        over = self._over(state, theta)
        if self._starts_at(state, theta):
            start = self._start(state, theta)
            self._memory().tangents = start.tangents(tangents.index, q_dot, v_dot, directions, places=True)
        if not (self.weights[over.frames] > 0.0).any():
            return Columns.none()
        found = over.tangents(tangents.index, q_dot, v_dot, directions)
        origin = None if self.reference is None else self._memory().tangents
        return Columns.summed(found, over.by_origin(origin)) if origin is not None and origin.index.size else found

    @property
    def looks(self) -> bool:
        """Whether any sample counts."""
        return self.n_samples > 0

    @property
    def sample_weight(self) -> float:
        """Sum of the weights of all samples."""
        return float(self.weights.sum())

    @property
    def n_samples(self) -> int:
        """Number of samples (point and frame) that count; displacements from a frame say nothing at that frame."""
        counting = np.ones(self.times.size, dtype=bool) if self.reference is None else self.times != self.reference
        return int((self.weights[counting] > 0.0).sum())
