"""Objectives as the sweeps see them, sums over states, of squares too; where what was recorded is in the scene."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, final

import numpy as np
import scipy.sparse as sp

from add.equations.kinematics import Columns, Directions, State, StateTangent, StateTangents, StretchTangents
from add.kernels.rotation import left_jacobian, rotation_matrix, skew
from add.simulation.run import Trajectory
from add.typing import FloatArray, IntArray


class Objective(ABC):
    """A sum over steps of functions of the state after the step, plus a function of theta.

    A state holds the last two pairs (q, v), so a term may fall between two steps. It never sees the whole trajectory,
    which is what lets stored and checkpointed runs share one code. One that looks back at an earlier state remembers
    it for the time of a run: whoever walks through a run takes the objective from `for_run`, asks `step_value` (or
    residuals) of every state from the first on, and only then `step_pullback`, from the last state to the first.
    """

    def for_run(self) -> "Objective":
        """Return the objective with room for what one run makes it remember; itself if it remembers nothing."""
        return self

    @abstractmethod
    def step_value(self, state: State, theta: FloatArray) -> float:
        """Return the contribution of the interval that ends at ``state.t``; state number 0 is the start."""

    @abstractmethod
    def step_pullback(self, state: State, theta: FloatArray, state_bar: StateTangent, theta_bar: FloatArray) -> None:
        """Add the gradient of `step_value` to ``state_bar`` and ``theta_bar``."""

    def parameter_value(self, theta: FloatArray) -> float:
        """Return the part that depends on theta alone."""
        return 0.0

    def parameter_gradient(self, theta: FloatArray, theta_bar: FloatArray) -> None:
        """Add its gradient to ``theta_bar``."""

    def within(self, start: float, stop: float, *, last: int | None = None) -> "Objective":
        """Return the part whose times lie in [start, stop] [s], of a run that ends with step ``last``.

        The objective itself where nothing in it has a time.
        """
        return self

    def steps(self, theta: FloatArray) -> IntArray | None:
        """Return the numbers of the states that `step_value` may see anything in, in any order; None: all.

        Others need not be asked: a run of thousands of steps with a hundred frames does not walk through Python.
        """
        return None

    @property
    def looks(self) -> bool:
        """Whether any state of a run counts; not those of functions of theta alone."""
        return True

    def off(self, run: Trajectory, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return times (k,) [s], NaN of none, and how far (k,) a run is off its target then; none where it has none.

        In the root of the unit of the objective: m of one in m^2. Reports name its root mean square and its worst.
        """
        return np.zeros(0), np.zeros(0)

    def as_squares(self) -> "list[tuple[float, LeastSquares]]":
        """Return the objective as weighted sums of squares: what Gauss-Newton asks for.

        Raises
        ------
        TypeError
            If it is none.
        """
        raise TypeError(f"{type(self).__name__} is not a sum of squares")


class StateRows(NamedTuple):
    """The derivatives of the r residuals of one state.

    Attributes
    ----------
    step : int
        Number of the state.
    bars : StateTangent
        By its m pairs (q, v), (m, n, r).
    direct : Columns
        By theta along directions, (r, k).
    """

    step: int
    bars: StateTangent
    direct: Columns

    def times(self, factor: float) -> "StateRows":
        """Return the derivatives of the residuals times a factor."""
        bars = StateTangent(factor * self.bars.q, factor * self.bars.v)
        return StateRows(self.step, bars, Columns(self.direct.index, factor * self.direct.values))


class LeastSquares(Objective):
    """phi = sum over steps |rho_k|^2 + |rho(theta)|^2.

    A step's residuals see what `Objective.step_value` sees, the state after the step and theta.
    """

    def as_squares(self) -> "list[tuple[float, LeastSquares]]":
        """Return the objective itself, with weight one."""
        return [(1.0, self)]

    @abstractmethod
    def step_residuals(self, state: State, theta: FloatArray) -> FloatArray:
        """Return rho_k (r,) of the interval that ends at ``state``."""

    def step_value(self, state: State, theta: FloatArray) -> float:
        """Return the sum of the squares of the step's residuals."""
        residuals = self.step_residuals(state, theta)
        return float(residuals @ residuals)

    @abstractmethod
    def step_residual_tangents(
        self, state: State, theta: FloatArray, tangents: StateTangents, directions: Directions
    ) -> Columns:
        """Return the tangents (r, k) of `step_residuals`, by the state and by theta itself."""

    def run_residuals(self, run: Trajectory, theta: FloatArray) -> FloatArray:
        """Return the residuals of all states of a run, one behind the other."""
        states = (run.state(k) for k in self._counting_states(run, theta, 0, run.n_steps + 1))
        return np.concatenate([np.zeros(0), *(self.step_residuals(state, theta) for state in states)])

    def _counting_states(self, run: Trajectory, theta: FloatArray, first: int, last: int) -> list[int]:
        """Return which of the states ``first`` to ``last - 1`` of a run may have residuals."""
        seen, begin = self.steps(theta), run.initial.step
        if seen is None:
            return list(range(first, last))
        states: list[int] = np.unique(seen[(seen >= begin + first) & (seen < begin + last)] - begin).tolist()
        return states

    def stretch_residual_tangents(
        self, run: Trajectory, first: int, theta: FloatArray, tangents: StretchTangents, directions: Directions
    ) -> Columns:
        """Return the tangents of the residuals of consecutive states of a run, number ``first`` the first of them."""
        counting = set(self._counting_states(run, theta, first, first + tangents.n))
        of_steps = [
            self.step_residual_tangents(run.state(first + k), theta, dot, directions)
            for k, dot in (enumerate(tangents.states()) if counting else ())
            if first + k in counting
        ]
        return Columns.stacked(of_steps)

    def state_rows(
        self, run: Trajectory, theta: FloatArray, directions: Directions, steps: IntArray | None = None
    ) -> list[StateRows]:
        """Return the derivatives of the residuals of each state of a run that has any.

        Of parts that remember nothing of earlier states (`Objective.for_run`); ``steps`` are the states that are asked,
        default all.
        """
        counting = self._counting_states(run, theta, 0, run.n_steps + 1)
        asked = counting if steps is None else np.intersect1d(steps, counting).tolist()
        if not asked:
            return []
        m, n = run.initial.q.shape
        size = 2 * m * n
        tangents = StateTangents(np.arange(size), StateTangent.of_flat(np.eye(size), m))
        nothing, out = sp.csr_array((theta.size, size)), []
        wide = Directions(sp.csr_array(sp.hstack([nothing, directions.matrix], format="csr")))
        for k in asked:
            tangents_of = self.step_residual_tangents(run.state(k), theta, tangents, wide)
            if not tangents_of.values.size:
                continue
            by_state = tangents_of.index < size
            rows = Columns(tangents_of.index[by_state], tangents_of.values[:, by_state]).dense(size)
            direct = Columns(tangents_of.index[~by_state] - size, tangents_of.values[:, ~by_state])
            out.append(StateRows(k, StateTangent.of_flat(rows.T, m), direct))
        return out

    @property
    def sample_weight(self) -> float:
        """Sum of the weights of the samples, three residuals each; zero where there are no such."""
        return 0.0

    def parameter_residuals(self, theta: FloatArray) -> FloatArray:
        """Return rho(theta) (r,)."""
        return np.zeros(0)

    def parameter_residual_jacobian(self, theta: FloatArray) -> sp.csr_array:
        """Return its derivative (r, n_theta)."""
        return sp.csr_array((0, theta.size))


@final
@dataclass(frozen=True)
class WeightedSum(Objective):
    """sum_i w_i phi_i."""

    weights: tuple[float, ...]
    objectives: tuple[Objective, ...]

    def for_run(self) -> "WeightedSum":
        """Return the sum of the parts for one run."""
        return WeightedSum(self.weights, tuple(part.for_run() for part in self.objectives))

    def within(self, start: float, stop: float, *, last: int | None = None) -> "WeightedSum":
        """Return the sum of what of the parts lies in a window."""
        return WeightedSum(self.weights, tuple(part.within(start, stop, last=last) for part in self.objectives))

    def steps(self, theta: FloatArray) -> IntArray | None:
        """Return the states of all parts."""
        of_parts = [part.steps(theta) for part in self.objectives]
        known = [steps for steps in of_parts if steps is not None]
        return np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *known])) if len(known) == len(of_parts) else None

    @property
    def looks(self) -> bool:
        """Whether any part does."""
        return any(part.looks for part in self.objectives)

    def as_squares(self) -> list[tuple[float, LeastSquares]]:
        """Return the squares of all parts."""
        pairs = zip(self.weights, self.objectives, strict=True)
        return [(w * inner, part) for w, o in pairs for inner, part in o.as_squares()]

    def step_value(self, state: State, theta: FloatArray) -> float:
        """Return the weighted sum."""
        pairs = zip(self.weights, self.objectives, strict=True)
        return sum(w * o.step_value(state, theta) for w, o in pairs)

    def step_pullback(self, state: State, theta: FloatArray, state_bar: StateTangent, theta_bar: FloatArray) -> None:
        """Add the weighted gradients."""
        for w, o in zip(self.weights, self.objectives, strict=True):
            q, v = np.zeros_like(state_bar.q), np.zeros_like(state_bar.v)
            part, theta_part = StateTangent(q, v), np.zeros_like(theta_bar)
            o.step_pullback(state, theta, part, theta_part)
            state_bar.q += w * q
            state_bar.v += w * v
            theta_bar += w * theta_part

    def parameter_value(self, theta: FloatArray) -> float:
        """Return the weighted sum."""
        return sum(w * o.parameter_value(theta) for w, o in zip(self.weights, self.objectives, strict=True))

    def parameter_gradient(self, theta: FloatArray, theta_bar: FloatArray) -> None:
        """Add the weighted gradients."""
        for w, o in zip(self.weights, self.objectives, strict=True):
            part = np.zeros_like(theta_bar)
            o.parameter_gradient(theta, part)
            theta_bar += w * part


def seen_at(objective: Objective, theta: FloatArray) -> Callable[[int], Objective | None]:
    """Return the function that says what of an objective may see anything in the state of a number, None: nothing.

    Of a sum those parts alone: twenty targets at twenty times are asked once each, not at every step.
    """
    parts = objective.objectives if isinstance(objective, WeightedSum) else (objective,)
    of_parts = [part.steps(theta) for part in parts]
    counted = [None if steps is None else frozenset(steps.tolist()) for steps in of_parts]

    @functools.cache
    def at(step: int) -> Objective | None:
        kept = [k for k, steps in enumerate(counted) if steps is None or step in steps]
        if not isinstance(objective, WeightedSum) or len(kept) == len(parts):
            return objective if kept else None
        weights = objective.weights
        return WeightedSum(tuple(weights[k] for k in kept), tuple(parts[k] for k in kept)) if kept else None

    return at


def total(objective: Objective, states: Iterable[State], theta: FloatArray) -> float:
    """Return the objective of a stored run."""
    objective = objective.for_run()
    value, at = objective.parameter_value(theta), seen_at(objective, theta)
    # One after the other, as gradients add them: `sum` compensates from Python 3.12 on, and its last digit differs.
    for state in states:
        if (seen := at(state.step)) is not None:
            value += seen.step_value(state, theta)
    return value


# --- Where recorded points are ----------------------------------------------------------------------------------------


def _all() -> FloatArray:
    return np.ones(1)


@final
@dataclass(frozen=True)
class Placement:
    """y' = c + t + s R(w) (y - c): recorded points y in the scene, by seven entries of theta.

    R(w) = exp([w]x). Directions turn alone, and displacements turn and scale alone: for them t and c, or s too, are
    left out. The scale belongs to the recording, so that noise pulls a fitted one down by the share (noise / extent of
    the points)^2: 1e-4 for 1 mm on 100 mm.

    Attributes
    ----------
    turn : (3,) indices of w in theta [rad]
    move : (3,) indices of t in theta [m]
    scale : index of s in theta [-]
    about : (3,) c, the point that rotation and scale leave where it is [m]
    moves : (n_points,) or (1,), 1 for places, 0 for directions and displacements
    scales : (n_points,) or (1,), 1 for places and displacements, 0 for directions
    """

    turn: IntArray
    move: IntArray
    scale: int
    about: FloatArray
    moves: FloatArray = field(default_factory=_all)
    scales: FloatArray = field(default_factory=_all)

    @property
    def entries(self) -> IntArray:
        """Indices (7,) of w, t and s in theta."""
        return np.array([*self.turn, *self.move, self.scale])

    def _arms(self, y: FloatArray, theta: FloatArray) -> FloatArray:
        """Return R (y - c)."""
        arms = y - self.moves[:, None] * self.about
        return np.asarray(arms @ rotation_matrix(theta[self.turn]).T)

    def _factors(self, theta: FloatArray) -> FloatArray:
        return np.asarray((1.0 + self.scales * (theta[self.scale] - 1.0))[:, None])

    def places(self, y: FloatArray, theta: FloatArray) -> FloatArray:
        """Return y' of points (..., n_points, 3) [m]."""
        shift = self.moves[:, None] * (self.about + theta[self.move])
        return np.asarray(shift + self._factors(theta) * self._arms(y, theta))

    def recorded(self, places: FloatArray, theta: FloatArray) -> FloatArray:
        """Return the y (..., n_points, 3) whose y' are these places [m]."""
        arms = (places - self.moves[:, None] * (self.about + theta[self.move])) / self._factors(theta)
        return np.asarray(arms @ rotation_matrix(theta[self.turn]) + self.moves[:, None] * self.about)

    def jacobian(self, y: FloatArray, theta: FloatArray) -> FloatArray:
        """Return d y' / d `entries` (..., n_points, 3, 7): d(R a) = (J_l(w) dw) x R a, J_l the left Jacobian."""
        arms = self._arms(y, theta)
        out = np.zeros((*arms.shape, 7))
        spins = left_jacobian(theta[self.turn])
        # e_k x a for every axis k, as columns.
        across = np.stack([np.asarray(arms @ skew(axis).T) for axis in np.eye(3)], axis=-1)
        out[..., :3] = self._factors(theta)[..., None] * (across @ spins)
        out[..., 3:6] = self.moves[:, None, None] * np.eye(3)
        out[..., 6] = self.scales[:, None] * arms
        return out

    def pull(self, y: FloatArray, bar: FloatArray, theta: FloatArray, theta_bar: FloatArray) -> None:
        """Add the pull-back of the cotangent ``bar`` of y'."""
        theta_bar[self.entries] += bar.ravel() @ self.jacobian(y, theta).reshape(-1, 7)


@final
@dataclass
class Origin:
    """The places of the points of one run at the time from which displacements count.

    Attributes
    ----------
    place : (n_points, 3), None before the run gets there [m]
    bar : (n_points, 3)
        Sum of the cotangents of ``place`` from all frames that were pulled back.
    tangents : tangents of ``place`` that Gauss-Newton keeps, None before the run gets there
    """

    place: FloatArray | None = None
    bar: FloatArray | None = None
    tangents: Columns | None = None
