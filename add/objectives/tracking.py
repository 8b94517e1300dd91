"""Points of bodies against targets at given times: markers, points, lines and poses are all of this form."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from add.initial import InitialState
from add.kinematics import Kinematics, State, StateTangent
from add.maps import PointMap
from add.objectives.base import Objective
from add.typing import FloatArray, IntArray


def hermite(s: float, dt: float) -> tuple[float, float, float, float]:
    """Return the cubic Hermite weights of (x_0, v_0, x_1, v_1) at the fraction ``s`` of a step that ends in x_1."""
    return (
        (1.0 + 2.0 * s) * (1.0 - s) ** 2,
        dt * s * (1.0 - s) ** 2,
        s * s * (3.0 - 2.0 * s),
        dt * s * s * (s - 1.0),
    )


def _pair(state: State, k: int) -> Kinematics:
    """Return pair k of a state as the maps take it."""
    return Kinematics(state.q[k], state.v[k], state.v[k], state.t, state.step)


def _start(reference: InitialState, theta: FloatArray) -> Kinematics:
    """Return the first state as the maps take it."""
    q, v = reference.evaluate(theta)
    return Kinematics(q, v, v, 0.0, 0)


@final
@dataclass(frozen=True)
class Tracking(Objective):
    """phi = sum_fp w_fp (x_p(t_f) - y_fp)^T P (x_p(t_f) - y_fp) [m^2].

    Between two steps x is interpolated by the cubic through positions and velocities, so that recording and
    simulation keep their own clocks. Samples of weight zero (missing, masked) do not count and may hold NaN.

    Attributes
    ----------
    points : PointMap
        n_points points or directions.
    dt : float
        Time step of the simulation [s].
    times : (n_frames,) increasing [s]
        Frames after the end of a run do not count.
    targets : (n_frames, n_points, 3) [m]
    weights : (n_frames, n_points) [-]
    projector : (3, 3)
        P; the identity, chosen axes, or I - d d^T for a line of direction d.
    reference : InitialState, optional
        Compare displacements: targets are then displacements from the first state of the run.
    clock : int, optional
        Index in theta of the recording's time at which the simulation starts [s]: frame f then lies at
        times_f + clock_start - theta[clock], and frames before t = 0 see the start and its velocity, straight back.
    clock_start : float
        The offset for which ``times`` hold [s].
    """

    points: PointMap
    dt: float
    times: FloatArray
    targets: FloatArray
    weights: FloatArray
    projector: FloatArray
    reference: InitialState | None = None
    clock: int | None = None
    clock_start: float = 0.0
    _interval: IntArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_interval", self._intervals(self.times))
        object.__setattr__(self, "targets", np.where(self.weights[:, :, None] > 0.0, self.targets, 0.0))

    def within(self, start: float, stop: float, *, mean: bool = True) -> Tracking:
        """Return the objective of the frames in [start, stop].

        ``mean`` makes the weights of what is left sum to one.
        """
        kept = (self.times >= start - 1e-9) & (self.times <= stop + 1e-9)
        weights = self.weights[kept]
        if mean and weights.sum() > 0.0:
            weights = weights * (self.weights.sum() / weights.sum())
        return replace(self, times=self.times[kept], targets=self.targets[kept], weights=weights)

    def _intervals(self, times: FloatArray) -> IntArray:
        """Number the step that ends each frame's interval, t_(k-1) < t_f <= t_k, with a little room for rounding."""
        return np.maximum(np.ceil(times / self.dt - 1e-9), 0.0).astype(np.int64)

    def simulation_times(self, theta: FloatArray) -> FloatArray:
        """Return the frames' times on the simulation's clock [s]."""
        if self.clock is None:
            return self.times
        return self.times + (self.clock_start - theta[self.clock])

    def frames(self, state: State, theta: FloatArray) -> IntArray:
        """Return the frames of the interval that ends at ``state``."""
        interval = self._interval if self.clock is None else self._intervals(self.simulation_times(theta))
        first, last = np.searchsorted(interval, [state.step, state.step + 1])
        return np.arange(first, last)

    def _fraction(self, state: State, frame: int, theta: FloatArray) -> float:
        time = self.times[frame]
        if self.clock is not None:
            time = time + (self.clock_start - theta[self.clock])
        return float(min(max((time - (state.step - 1) * self.dt) / self.dt, 0.0), 1.0))

    def _coefficients(self, state: State, frame: int, theta: FloatArray) -> tuple[float, float, float, float]:
        if state.step == 0:
            # Straight on into the past, so that a frame that the clock moves through t = 0 meets no kink.
            return 0.0, 0.0, 1.0, float(min(self.simulation_times(theta)[frame], 0.0))
        return hermite(self._fraction(state, frame, theta), self.dt)

    def observed_velocity(self, state: State, frame: int, theta: FloatArray) -> FloatArray:
        """Return d observed / dt (n_points, 3) of the interpolant [m/s]."""
        if state.step == 0:
            return self._combine(state, (0.0, 0.0, 0.0, 1.0), theta)
        s, dt = self._fraction(state, frame, theta), self.dt
        slopes = (6.0 * s * (s - 1.0) / dt, (1.0 - s) * (1.0 - 3.0 * s), 6.0 * s * (1.0 - s) / dt, s * (3.0 * s - 2.0))
        return self._combine(state, slopes, theta)

    def _combine(self, state: State, coefficients: tuple[float, float, float, float], theta: FloatArray) -> FloatArray:
        x0, v0, x1, v1 = coefficients
        position, velocity = self.points.points(_pair(state, 0), theta)
        if x0 == 0.0 and v0 == 0.0:
            return x1 * position + v1 * velocity
        old_position, old_velocity = self.points.points(_pair(state, 1), theta)
        return x0 * old_position + v0 * old_velocity + x1 * position + v1 * velocity

    def _offset(self, theta: FloatArray) -> FloatArray | float:
        if self.reference is None:
            return 0.0
        return self.points.points(_start(self.reference, theta), theta)[0]

    def observed(self, state: State, frame: int, theta: FloatArray) -> FloatArray:
        """Return the points' positions (n_points, 3) at a frame of this interval."""
        return self._combine(state, self._coefficients(state, frame, theta), theta)

    def residuals(self, state: State, theta: FloatArray) -> list[tuple[int, FloatArray]]:
        """Return (frame, sqrt(w) P (x - y) (n_points, 3)) for the frames of this interval [m]."""
        frames = self.frames(state, theta)
        if not frames.size:
            return []
        offset = self._offset(theta)
        out = []
        for frame in frames:
            difference = self.observed(state, frame, theta) - offset - self.targets[frame]
            out.append((int(frame), np.sqrt(self.weights[frame])[:, None] * (difference @ self.projector)))
        return out

    def step_value(self, state: State, theta: FloatArray) -> float:
        """Return the part of the frames of this interval."""
        return sum(float(np.vdot(r, r)) for _, r in self.residuals(state, theta))

    def step_pullback(self, state: State, theta: FloatArray, state_bar: StateTangent, theta_bar: FloatArray) -> None:
        """Add 2 w P (x - y), spread over the two states and the first one."""
        for frame, residual in self.residuals(state, theta):
            bar = 2.0 * np.sqrt(self.weights[frame])[:, None] * residual
            x0, v0, x1, v1 = self._coefficients(state, frame, theta)
            for k, x, v in ((0, x1, v1), (1, x0, v0)):
                if x != 0.0 or v != 0.0:
                    kin = _pair(state, k)
                    self.points.vjp(kin, theta, x * bar, v * bar, state_bar.q[k], state_bar.v[k], theta_bar)
            if self.reference is not None:
                q_bar, v_bar = np.zeros_like(state_bar.q[0]), np.zeros_like(state_bar.v[0])
                kin = _start(self.reference, theta)
                self.points.vjp(kin, theta, -bar, np.zeros_like(bar), q_bar, v_bar, theta_bar)
                self.reference.vjp(theta, q_bar, v_bar, theta_bar)
            if self.clock is not None:
                theta_bar[self.clock] -= np.vdot(bar, self.observed_velocity(state, frame, theta))

    def residual_tangents(
        self, state: State, theta: FloatArray, tangent: StateTangent, theta_dot: FloatArray
    ) -> list[FloatArray]:
        """Return the tangents of `residuals`."""
        frames = self.frames(state, theta)
        if not frames.size:
            return []
        offset: FloatArray | float = 0.0
        if self.reference is not None:
            q_dot, v_dot = self.reference.jvp(theta, theta_dot)
            offset = self.points.jvp(_start(self.reference, theta), theta, q_dot, v_dot, theta_dot)[0]
        (x_now, v_now), (x_old, v_old) = (
            self.points.jvp(_pair(state, k), theta, tangent.q[k], tangent.v[k], theta_dot) for k in range(2)
        )
        out = []
        for frame in frames:
            x0, v0, x1, v1 = self._coefficients(state, frame, theta)
            change = x0 * x_old + v0 * v_old + x1 * x_now + v1 * v_now - offset
            if self.clock is not None:
                change = change - theta_dot[self.clock] * self.observed_velocity(state, frame, theta)
            out.append(np.sqrt(self.weights[frame])[:, None] * (change @ self.projector))
        return out

    @property
    def n_samples(self) -> int:
        """Number of samples (point and frame) that count."""
        return int((self.weights > 0.0).sum())


def at_steps(times: FloatArray, dt: float, start: float, stop: float) -> FloatArray:
    """Return the multiples of ``dt`` in [start, stop] up to the last of ``times``."""
    steps = np.arange(int(np.ceil(start / dt - 1e-9)), int(np.floor(stop / dt + 1e-9)) + 1)
    return steps[steps * dt <= times[-1] + 1e-9] * dt
