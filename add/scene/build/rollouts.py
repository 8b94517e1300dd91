"""Runs of a scene as differentiable functions of its numbers, by their paths: one, or many at once."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike

from add.adjoint import Batch, rollout_batch
from add.equations.kinematics import State, StateTangent
from add.errors import InputError
from add.scene.build.inputs import STATE_Q, STATE_V, Inputs, Values, arrays_of, of_member
from add.scene.build.numbers import SceneParameters
from add.simulation.run import Simulation, Trajectory
from add.typing import FloatArray, as_numbers


class States(NamedTuple):
    """Coordinates and velocities as functions of a framework return them.

    Of all states of a run (k + 1, n), or the pairs of one state (m, n); of a batch with its axes before these.
    """

    q: Any
    v: Any


@final
@dataclass(frozen=True)
class SceneBatch:
    """Runs of a scene with other numbers.

    Attributes
    ----------
    batch : Batch
    inputs : Inputs
    values : (b, n_s) the scene's numbers of every member
    """

    batch: Batch
    inputs: Inputs
    values: FloatArray

    def require_whole(self) -> None:
        """Raise the error of the first member that failed; of a batch it names the member."""
        for error in self.batch.failures.values():
            raise error if len(self.values) > 1 else (error.__cause__ or error)

    def pullback(self, q_bar: FloatArray, v_bar: FloatArray) -> dict[str, FloatArray]:
        """Pull cotangents (b, k + 1, n) of all states back to the inputs, in the shapes that these had.

        Those of a member that failed are NaN.
        """
        bars = self.batch.pullback(q_bar, v_bar)
        ties = self.inputs.numbers.ties
        out = self.inputs.cotangents(
            np.stack([ties.pullback(s, bar) for s, bar in zip(self.values, bars.theta, strict=True)])
        )
        if self.inputs.state is not None:
            q, v = (bars.q, bars.v) if len(self.inputs.state) == 2 else self._of_one_time(bars.q, bars.v)
            out |= {STATE_Q: q, STATE_V: v}
        return out

    @property
    def _history_made(self) -> bool:
        """Whether a straight history was made for coordinates of one time with steps behind them."""
        given = self.inputs.state is not None and len(self.inputs.state) == 1
        return given and self.batch.trajectories[0].initial.step > 0

    def _of_one_time(self, q_bar: FloatArray, v_bar: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the cotangents (b, n) of coordinates of one time from those (b, m, n) of all pairs."""
        if not self._history_made:  # a start: all is in its first pair
            return q_bar[:, 0], v_bar[:, 0]
        back = self.batch.simulation.differentiable.start_pullback
        both = [back(StateTangent(*bars)) for bars in zip(q_bar, v_bar, strict=True)]
        return np.stack([q for q, _ in both]), np.stack([v for _, v in both])

    def pushforward(self, tangents: Values) -> tuple[FloatArray, FloatArray]:
        """Push tangents of the inputs forward; an input that is not among them does not move.

        Parameters
        ----------
        tangents : name of an input -> (b, ...)

        Returns
        -------
        (b, k + 1, n), (b, k + 1, n)
            Tangents of coordinates and velocities; those of a member that failed are NaN.
        """
        arrays = arrays_of(tangents)
        b, ties = self.values.shape[0], self.inputs.numbers.ties
        for name, array in arrays.items():
            if not array.ndim or array.shape[0] != b:
                raise InputError("one row a member", place=name, found=f"shape {array.shape}", expected=f"({b}, ...)")
        members = [{name: array[k] for name, array in arrays.items()} for k in range(b)]
        s_dots = [self.inputs.tangent(dots) for dots in members]
        theta_dots = np.stack([ties.pushforward(s, dot) for s, dot in zip(self.values, s_dots, strict=True)])
        if self.inputs.state is None:
            return self.batch.pushforward(theta_dots)
        still = np.zeros(self.inputs.state)
        given = [[dots.get(name, still) for name in (STATE_Q, STATE_V)] for dots in members]
        if self._history_made:
            on = self.batch.simulation.differentiable.start_pushforward
            both = [(dot.q, dot.v) for dot in (on(*pair) for pair in given)]
        else:
            both = [(self.inputs.pairs(q), self.inputs.pairs(v)) for q, v in given]
        return self.batch.pushforward(theta_dots, np.stack([q for q, _ in both]), np.stack([v for _, v in both]))


@final
@dataclass(frozen=True)
class Rollout:
    """One run of a scene as a function of named inputs, with its derivatives both ways.

    Attributes
    ----------
    runs : SceneBatch
        Of this run alone.
    """

    runs: SceneBatch

    @property
    def trajectory(self) -> Trajectory:
        """The run."""
        return self.runs.batch.trajectories[0]

    @property
    def t(self) -> FloatArray:
        """Times (k + 1,) [s]."""
        return self.trajectory.t

    @property
    def q(self) -> FloatArray:
        """Coordinates of all states (k + 1, n)."""
        return self.trajectory.q

    @property
    def v(self) -> FloatArray:
        """Velocities of all states (k + 1, n)."""
        return self.trajectory.v

    def vjp(self, q_bar: ArrayLike, v_bar: ArrayLike | None = None) -> dict[str, FloatArray]:
        """Return J^T (q_bar, v_bar) as a cotangent for each input, in its shape.

        Parameters
        ----------
        q_bar, v_bar : (k + 1, n)
            Derivatives of any number by the states; ``v_bar`` none where it does not depend on velocities.

        Raises
        ------
        InputError
            If a shape does not fit, or the steps have no derivative.
        """
        q_bar = as_numbers("q_bar", q_bar)
        v_bar = np.zeros_like(q_bar) if v_bar is None else as_numbers("v_bar", v_bar)
        return {name: bar[0] for name, bar in self.runs.pullback(q_bar[None], v_bar[None]).items()}

    def jvp(self, tangents: Values) -> tuple[FloatArray, FloatArray]:
        """Return J times a tangent of the inputs: tangents (k + 1, n) of `q` and `v`.

        Parameters
        ----------
        tangents : name of an input -> its tangent
            An input that is not among them does not move.

        Raises
        ------
        InputError
            If a name is no input, a shape does not fit, or the steps have no derivative.
        """
        q_dot, v_dot = self.runs.pushforward({name: as_numbers(name, dot)[None] for name, dot in tangents.items()})
        return q_dot[0], v_dot[0]


def rollout(
    simulation: Simulation,
    numbers: SceneParameters,
    inputs: Values,
    *,
    n_steps: int | None = None,
    step: int | None = None,
) -> Rollout:
    """Run a scene once with other numbers.

    Parameters
    ----------
    simulation : Simulation
    numbers : SceneParameters
        The scene's.
    inputs : name -> value
        See `rollouts`; here without rows.
    n_steps, step : see `rollouts`

    Raises
    ------
    InputError
        If a name is no input, a shape does not fit, or a number is not finite or impossible.
    SolverError
        If a step fails.
    """
    arrays = {name: as_numbers(name, value)[None] for name, value in inputs.items()}
    runs = _run(simulation, numbers, arrays, 1, step=step, n_steps=n_steps, workers=1)
    runs.require_whole()
    return Rollout(runs)


def rollouts(
    simulation: Simulation,
    numbers: SceneParameters,
    inputs: Values,
    states: Sequence[State] | None = None,
    *,
    n_steps: int | None = None,
    step: int | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
) -> SceneBatch:
    """Run a scene many times, with other numbers each time.

    Parameters
    ----------
    simulation : Simulation
    numbers : SceneParameters
        The scene's.
    inputs : name -> its values, a row a member, (b,) or (b, ...)
        The path of any number that may be a parameter, in its shape in the scene: ``bodies.cube.velocity``,
        ``signals.push.values``, ``signals.push.values.3``; all others keep the scene's values. ``state.q`` and
        ``state.v``: coordinates and velocities to begin with, (b, n), or with a history, newest first, (b, m, n). A
        run of (b, n) begins at t = 0, with the signals' values there, unless ``step`` is given.
    states, n_steps, workers, executor : see `add.adjoint.batch.rollout_batch`
    step : int, optional
        Number of steps behind the given coordinates, t = step dt; with a history it must be given. See
        `Simulation.state`.

    Raises
    ------
    InputError
        If a path is none, a shape does not fit, or a number is not finite or impossible.
    """
    arrays = arrays_of(inputs)
    sizes = {path: array.shape[0] if array.ndim else 0 for path, array in arrays.items()}
    if len(set(sizes.values())) != 1 or not all(sizes.values()):
        raise InputError("every input has a row a member", found=f"rows: {sizes}", expected="equal numbers above zero")
    b = next(iter(sizes.values()))
    return _run(simulation, numbers, arrays, b, states, step, n_steps=n_steps, workers=workers, executor=executor)


def _run(
    simulation: Simulation, numbers: SceneParameters, arrays: Mapping[str, FloatArray], b: int,
    states: Sequence[State] | None = None, step: int | None = None, **how: Any,
) -> SceneBatch:  # fmt: skip
    """Run members whose inputs are rows of arrays; ``how`` is of `add.adjoint.batch.rollout_batch`."""
    places = Inputs.of(simulation, numbers, {name: array.shape[1:] for name, array in arrays.items()})
    if states is not None and places.state is not None:
        raise InputError("the initial states are given twice", place=STATE_Q, expected="inputs, or `states`")
    values, given = places.rows(arrays, b), list(states) if states is not None else []
    thetas = np.stack([numbers.ties.forward(row) for row in values])
    for k in range(b if places.state is not None else 0):
        try:
            state = places.initial({name: arrays[name][k] for name in (STATE_Q, STATE_V)}, step)
            assert state is not None
            places.require_motion(state, thetas[k])
        except InputError as error:
            error.place = of_member(k, b, error.place or STATE_Q)
            raise
        given.append(state)
    return SceneBatch(rollout_batch(simulation, thetas, given or None, **how), places, values)
