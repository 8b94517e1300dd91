"""Measures of one place over a window of time (soft minimum, mean), and of each step from a recorded state."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self, final

import numpy as np

from add.equations import charts
from add.equations.kinematics import Columns, Directions, Kinematics, State, StateTangent, StateTangents
from add.equations.points import Along, PointMap
from add.errors import SolverError
from add.kernels.distance import signed_distance
from add.objectives.base import LeastSquares, Objective, total
from add.simulation.run import Trajectory
from add.typing import BoolArray, FloatArray, IntArray


class Measure(ABC):
    """A function of a place and the time that is nowhere below zero, once differentiable [m^2]."""

    @abstractmethod
    def value(self, x: FloatArray, t: float) -> float:
        """Return the measure of a place (3,) [m] at time t [s]."""

    @abstractmethod
    def gradient(self, x: FloatArray, t: float) -> FloatArray:
        """Return its derivative by the place (3,) [m]."""


@final
@dataclass(frozen=True)
class SquaredDistance(Measure):
    """|P (x - y)|^2.

    Attributes
    ----------
    target : (3,) y [m]
    projector : (3, 3) P, symmetric
    """

    target: FloatArray
    projector: FloatArray

    def value(self, x: FloatArray, t: float) -> float:
        """Return the squared distance."""
        d = self.projector @ (x - self.target)
        return float(d @ d)

    def gradient(self, x: FloatArray, t: float) -> FloatArray:
        """Return 2 P (x - y)."""
        return np.asarray(2.0 * self.projector @ (x - self.target))


class Surface(NamedTuple):
    """An obstacle of the world with a given velocity; kind and size as in `add.kernels.distance`, no mesh."""

    kind: int
    size: FloatArray
    rotation: FloatArray
    position: FloatArray
    velocity: FloatArray

    def gap(self, x: FloatArray, t: float) -> tuple[float, FloatArray]:
        """Return the signed distance of a place [m], negative inside, and its derivative by the place."""
        normal, hessian = np.zeros(3), np.zeros((3, 3))
        local = self.rotation.T @ (x - self.position - t * self.velocity)
        gap, _ = signed_distance(self.kind, self.size, local, -1, normal, hessian)
        return float(gap), self.rotation @ normal


@final
@dataclass(frozen=True)
class Gap(Measure):
    """max(sign (g - reach), 0)^2, g the signed distance from a surface.

    With sign 1, how far a ball of radius ``reach`` about the place is from touching; with -1, how much closer it is.
    """

    surface: Surface
    reach: float
    sign: float

    def value(self, x: FloatArray, t: float) -> float:
        """Return the square."""
        return max(self.sign * (self.surface.gap(x, t)[0] - self.reach), 0.0) ** 2

    def gradient(self, x: FloatArray, t: float) -> FloatArray:
        """Return 2 sign max(sign (g - reach), 0) n."""
        gap, normal = self.surface.gap(x, t)
        return 2.0 * self.sign * max(self.sign * (gap - self.reach), 0.0) * normal


@dataclass(frozen=True)
class _OverTime(Objective):
    """A measure of one point at the ends of the steps ``first`` to ``last``."""

    points: PointMap
    measure: Measure
    dt: float
    first: int
    last: int

    def over(self, first: int, last: int) -> Self:
        """Return the objective over other steps."""
        return replace(self, first=first, last=last)

    @final
    def steps(self, theta: FloatArray) -> IntArray:
        """Return the steps that count."""
        return np.arange(self.first, self.last + 1)

    @property
    @final
    def looks(self) -> bool:
        """Whether any step counts."""
        return self.first <= self.last

    @final
    def within(self, start: float, stop: float, *, last: int | None = None) -> Objective:
        """Return the objective over what of its steps lies in a window."""
        first, stop_step = steps_within(self.dt, start, stop)
        ends = [self.last, stop_step] + ([] if last is None else [last])
        return self.over(max(self.first, first), min(ends))

    @final
    def off(self, run: Trajectory, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the root of the objective, at no time."""
        return np.full(1, np.nan), np.sqrt(np.maximum([total(self, run.states(), theta)], 0.0))

    def _kin(self, state: State) -> Kinematics:
        return Kinematics(state.q[0], state.v[0], state.v[0], state.t, state.step)

    def _point(self, state: State, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        x, v = self.points.points(self._kin(state), theta)
        return x[0], v[0]

    def _pull(self, state: State, theta: FloatArray, factor: float, bar: StateTangent, theta_bar: FloatArray) -> None:
        """Add ``factor`` times the gradient of the measure."""
        x, _ = self._point(state, theta)
        x_bar = factor * self.measure.gradient(x, state.t)[None]
        self.points.vjp(self._kin(state), theta, x_bar, np.zeros((1, 3)), Along(bar.q[0], bar.v[0], theta_bar))


@final
@dataclass
class SoftMinimumMemory:
    """The measures of one run by their steps."""

    values: dict[int, float] = field(default_factory=dict)

    def minimum(self, temperature: float) -> float:
        """Return the soft minimum so far; zero of nothing."""
        if not self.values:
            return 0.0
        d = np.array(list(self.values.values()))
        lowest = d.min()
        return float(lowest - temperature * np.log(np.exp((lowest - d) / temperature).mean()))


@final
@dataclass(frozen=True)
class SoftMinimum(_OverTime):
    """phi = -tau ln(mean over steps of exp(-d_k / tau)), d_k the measure at the end of step k.

    It is between the lowest d_k and their mean, and d phi / d d_k = exp(-d_k / tau) / sum_j exp(-d_j / tau).

    Attributes
    ----------
    points : PointMap
        Of one point.
    measure : Measure
    dt : float [s]
    first, last : int
        Numbers of the steps that count; 0 is the start.
    temperature : float
        tau [m^2].
    along : (3,), optional
        Only steps count at whose end the point moves along this direction: of a throw that may come down, those on
        which it does. Which steps they are is held by the derivative. A run without one is an error, at its last step.
    """

    temperature: float
    along: FloatArray | None = None
    memory: SoftMinimumMemory | None = field(default=None, repr=False, compare=False)

    def for_run(self) -> "SoftMinimum":
        """Return the objective with room for the measures of one run."""
        return replace(self, memory=SoftMinimumMemory())

    def step_value(self, state: State, theta: FloatArray) -> float:
        """Return by how much the step changes the soft minimum of all steps so far."""
        if not self.first <= state.step <= self.last:
            return 0.0
        memory = self._memory()
        before = memory.minimum(self.temperature)
        x, v = self._point(state, theta)
        if self.along is None or float(v @ self.along) > 0.0:
            memory.values[state.step] = self.measure.value(x, state.t)
        elif state.step == self.last and not memory.values:
            raise SolverError(
                f"objective: the point never moves along {self.along.tolist()} between {self.first * self.dt:g} and "
                f"{self.last * self.dt:g} s, so that no step counts; another start, or no 'moving'"
            )
        return memory.minimum(self.temperature) - before

    def step_pullback(self, state: State, theta: FloatArray, state_bar: StateTangent, theta_bar: FloatArray) -> None:
        """Add the gradient of the soft minimum by this state."""
        values = self._memory().values
        if state.step in values:
            d = np.array(list(values.values()))
            share = np.exp((d.min() - values[state.step]) / self.temperature)
            total = np.exp((d.min() - d) / self.temperature).sum()
            self._pull(state, theta, float(share / total), state_bar, theta_bar)

    def _memory(self) -> SoftMinimumMemory:
        if self.memory is None:
            raise ValueError("a soft minimum remembers its run: ask `for_run` for the objective of one")
        return self.memory


@final
@dataclass(frozen=True)
class MeanOverTime(_OverTime):
    """phi = mean over steps of the measure. Attributes as those of `SoftMinimum`; ``count`` steps make the mean."""

    count: int

    def over(self, first: int, last: int) -> "MeanOverTime":
        """Return the mean over other steps."""
        return replace(self, first=first, last=last, count=max(last - first + 1, 1))

    def step_value(self, state: State, theta: FloatArray) -> float:
        """Return the step's share."""
        if not self.first <= state.step <= self.last:
            return 0.0
        return self.measure.value(self._point(state, theta)[0], state.t) / self.count

    def step_pullback(self, state: State, theta: FloatArray, state_bar: StateTangent, theta_bar: FloatArray) -> None:
        """Add the gradient of the step's share."""
        if self.first <= state.step <= self.last:
            self._pull(state, theta, 1.0 / self.count, state_bar, theta_bar)


def steps_within(dt: float, start: float, stop: float) -> tuple[int, int]:
    """Return the first and the last step that end in [start, stop] [s], with a little room for rounding."""
    return max(int(np.ceil(start / dt - 1e-9)), 0), int(np.floor(stop / dt + 1e-9))


# --- Predictions of single steps against the recorded states that they should end in ----------------------------------
#     phi = 1/N sum_k  w_q |q_k - q^_k|^2 + w_v |v_k - v^_k|^2 + w_a |(v_k - v^_k)/dt|^2
#
# x_k is the end of the step from the recorded x^_(k-1) (see `add.simulation.composed`), so that no error grows from
# step to step and no impact is met late. Noise of the recording is in the start of every step, too: the estimate is
# biased, where a fit of the whole trajectory is not.


class CoordinateErrors(LeastSquares):
    """phi = sum over steps of squares of weighted differences of coordinates ``index`` (r,) and of their velocities."""

    index: IntArray

    @abstractmethod
    def targets(self, state: State) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Return the targets (r,) of q and v, and the roots (2 r,) of the weights; None of a state without."""

    @final
    def step_residuals(self, state: State, theta: FloatArray) -> FloatArray:
        """Return the weighted differences (2 r,): of the coordinates, then of the velocities."""
        found = self.targets(state)
        if found is None:
            return np.zeros(0)
        q, v, roots = found
        return roots * np.concatenate([state.q[0, self.index] - q, state.v[0, self.index] - v])

    @final
    def step_pullback(self, state: State, theta: FloatArray, state_bar: StateTangent, theta_bar: FloatArray) -> None:
        """Add its gradient."""
        found = self.targets(state)
        if found is not None:
            place, speed = np.split(2.0 * found[2] * self.step_residuals(state, theta), 2)
            state_bar.q[0, self.index] += place
            state_bar.v[0, self.index] += speed

    @final
    def step_residual_tangents(
        self, state: State, theta: FloatArray, tangents: StateTangents, directions: Directions
    ) -> Columns:
        """Return the tangents (2 r, k) of `step_residuals`."""
        found = self.targets(state)
        if found is None:
            return Columns.none()
        rows = np.concatenate([tangents.dot.q[0, self.index], tangents.dot.v[0, self.index]])
        order = np.argsort(tangents.index)
        return Columns(tangents.index[order], found[2][:, None] * rows[:, order])


@final
@dataclass(frozen=True)
class OneStep(CoordinateErrors):
    """Mean over the steps k of the squared errors of a prediction.

    Attributes
    ----------
    q, v : (n_steps + 1, n)
        Recorded states at the steps.
    index : (r,)
        Coordinates that count.
    rotations : (b,)
        First coordinates of all rotation vectors: their ends are compared in one chart.
    by_place, by_speed : (r,)
        Roots of the weights of q and of v, where w_v is w_v + w_a/dt^2.
    counts : (n_steps + 1,) bool
        Which steps count, by the number of the state in which they end.
    dt : float
        Step [s].
    """

    q: FloatArray
    v: FloatArray
    index: IntArray
    rotations: IntArray
    by_place: FloatArray
    by_speed: FloatArray
    counts: BoolArray
    dt: float

    def within(self, start: float, stop: float, *, last: int | None = None) -> "OneStep":
        """Return the mean over the steps that end in [start, stop]."""
        t = self.dt * np.arange(self.counts.size)
        return replace(self, counts=self.counts & (t >= start - 1e-9) & (t <= stop + 1e-9))

    @property
    def looks(self) -> bool:
        """Whether any step counts."""
        return bool(self.counts[1:].any())

    def _target(self, state: State) -> tuple[FloatArray, FloatArray]:
        """Return the recorded state, with rotation vectors in the charts of ``state``."""
        q, v = self.q[state.step], self.v[state.step]
        if not self.rotations.size:
            return q, v
        at = self.rotations[:, None] + np.arange(3)
        far = np.linalg.norm(state.q[0][at] - q[at], axis=1) > np.pi
        if not far.any():
            return q, v
        other = charts.change(State(state.t, state.step, q[None], v[None]), self.rotations[far])
        return other.q[0], other.v[0]

    def targets(self, state: State) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Return the recorded coordinates and velocities of a step that counts, and the roots of the weights."""
        if not 0 < state.step < self.counts.size or not self.counts[state.step]:
            return None
        q, v = self._target(state)
        roots = np.concatenate([self.by_place, self.by_speed]) / np.sqrt(self.counts[1:].sum())
        return q[self.index], v[self.index], roots
