"""One step of a scene as a differentiable function of state, controls and numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike

from add.equations.kinematics import State, StateTangent
from add.equations.signals import BSplineSignal, Constant, Signal
from add.equations.tangents import Directions, StateTangents
from add.errors import InputError
from add.linalg import one_blas_thread
from add.scene.build.inputs import STATE_Q, STATE_V, Inputs, Values, require_shape
from add.scene.build.numbers import SceneParameters
from add.scene.build.signals import signal_of
from add.scene.spec.scene import SceneSpec
from add.simulation import BDF, Record
from add.simulation.run import Simulation
from add.simulation.step_jacobians import StepDerivatives
from add.solve.step_matrix import Assembler
from add.typing import FloatArray, IntArray

#: Lowest and highest value of a control.
Bounds = tuple[ArrayLike, ArrayLike]


class StepCotangents(NamedTuple):
    """Cotangents of all that a step depends on.

    Attributes
    ----------
    q, v : (m, n)
        Of the state before the step, newest pair first. A run's first state has no history: all is in its first pair.
    control, inputs : name -> cotangent, in the shape of the control or input
    """

    q: FloatArray
    v: FloatArray
    control: dict[str, FloatArray]
    inputs: dict[str, FloatArray]


@final
@dataclass(frozen=True)
class Step:
    """A step that was taken, with its derivatives both ways.

    Attributes
    ----------
    function : StepFunction
    before, state : State
        Before and after.
    record : Record
    values : (n_s,)
        The scene's numbers that it was taken with.
    theta : (n_theta,)
    """

    function: StepFunction
    before: State
    state: State
    record: Record
    values: FloatArray
    theta: FloatArray

    def vjp(self, q_bar: ArrayLike, v_bar: ArrayLike | None = None) -> StepCotangents:
        """Return J^T (q_bar, v_bar); cotangents (m, n) of the pairs of the state after the step, or (n,) of the newest.

        Raises
        ------
        InputError
            If a shape does not fit, or the steps have no derivative.
        """
        function = self.function
        bar = StateTangent.zeros_like(self.state)
        for out, given in ((bar.q, q_bar), (bar.v, v_bar)):
            out += function.pairs(given)
        theta_bar = np.zeros_like(self.theta)
        stepper = function.simulation.differentiable
        with one_blas_thread():
            before = stepper.pullback(function.assembler, self.record, self.theta, bar, theta_bar)
        q, v = before.q, before.v
        if not self.before.step:
            q, v = np.zeros_like(q), np.zeros_like(v)
            q[0], v[0] = stepper.start_pullback(before)
        s_bar = function.numbers.ties.pullback(self.values, theta_bar)
        places = function.control_places(self.before.step)
        control = {name: s_bar[place] for name, place in places.items()}
        return StepCotangents(q, v, control, function.inputs.cotangents(s_bar))

    def jvp(
        self,
        q_dot: ArrayLike | None = None,
        v_dot: ArrayLike | None = None,
        control: Values | None = None,
        inputs: Values | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the tangents (m, n) of the pairs of the state after the step; what is left out does not move."""
        function = self.function
        stepper = function.simulation.differentiable
        s_dot = function.inputs.tangent({name: np.asarray(dot, dtype=float) for name, dot in (inputs or {}).items()})
        function.set_control(s_dot, self.before.step, control or {})
        theta_dot = function.numbers.ties.pushforward(self.values, s_dot)
        q, v = function.pairs(q_dot), function.pairs(v_dot)
        if self.before.step:
            memory = np.zeros((*self.before.carry.memory.shape, 1))
            dot = StateTangent(q[..., None], v[..., None], memory)
        else:
            dot = stepper.start_pushforward(q[0][:, None], v[0][:, None])
        tangents = StateTangents(np.zeros(1, dtype=np.int64), dot)
        directions = Directions.of([theta_dot])
        with one_blas_thread():
            after = stepper.pushforward(function.assembler, self.record, self.theta, tangents, directions).dot
        return after.q[..., 0], after.v[..., 0]

    def jacobians(self) -> tuple[FloatArray, FloatArray]:
        """Return the derivatives of the state after the step by the one before it, and by the controls.

        Returns
        -------
        (2 m n, 2 m n), (2 m n, n_controls)
            A state is (q_0, v_0, q_1, v_1, ...), all pairs, newest first, as in
            `add.simulation.step_jacobians.StepJacobians`; the controls come in the order in which the function was made
            with them. Of a run's first state only the first pair counts.
        """
        function, (m, n) = self.function, self.before.q.shape
        stepper = function.simulation.differentiable
        by_numbers = function.numbers.ties.jacobian(self.values).tocsc()
        places = {name: place.ravel() for name, place in function.control_places(self.before.step).items()}
        along = {name: Directions.of(by_numbers[:, place]) for name, place in places.items()}
        with one_blas_thread():
            found = StepDerivatives(stepper, function.by_terms, self.theta, along, {}).jacobians(self.record)
        by_state = found.transition
        if not self.before.step:
            unit = np.eye(2 * n).reshape(2, n, 2 * n)
            start = stepper.start_pushforward(unit[0], unit[1])
            by_state = np.zeros_like(found.transition)
            by_state[:, : 2 * n] = found.transition @ np.stack([start.q, start.v], axis=1).reshape(2 * m * n, 2 * n)
        by_control = np.zeros((2 * m * n, sum(place.size for place in places.values())))
        first = 0
        for name, place in places.items():
            acting = found.controls[name]
            by_control[:n, first + acting.index], by_control[n : 2 * n, first + acting.index] = acting.q, acting.v
            first += place.size
        return by_state, by_control


@final
class StepFunction:
    """Steps of a scene that some of its signals control and some of its numbers are inputs of.

    One is for one thread: it keeps the workspace of a run, which no number depends on.

    Parameters
    ----------
    scene : SceneSpec
    simulation : Simulation
    numbers : SceneParameters
    controls : names of signals
        Each of type "constant", or "control" with the basis "constant", of which a step has one row.
    inputs : names of other inputs, see `add.scene.build.rollouts.rollouts`
    bounds : name of a control -> (low, high), optional
        Numbers, or a number each: controls outside are refused.

    Raises
    ------
    InputError
        If a name is none, a signal has no row for a step, or bounds do not fit.
    """

    def __init__(
        self,
        scene: SceneSpec,
        simulation: Simulation,
        numbers: SceneParameters,
        controls: tuple[str, ...] = (),
        inputs: tuple[str, ...] = (),
        bounds: Mapping[str, Bounds] | None = None,
    ) -> None:
        for name in (STATE_Q, STATE_V):
            if name in inputs:
                raise InputError("the state is an argument of a step of its own", place=name)
        self.simulation, self.numbers = simulation, numbers
        self.signals = {name: _controlling(scene, name) for name in controls}
        self.inputs = Inputs.of(simulation, numbers, {name: numbers.place(name).shape for name in inputs})
        self._input_shapes = {name: place.shape for name, place in self.inputs.places.items()}
        self.assembler: Assembler = simulation.assembler()
        self._rows = {name: _rows(numbers, name, signal) for name, signal in self.signals.items()}
        self.bounds = {name: self._spread(name, pair) for name, pair in (bounds or {}).items()}
        taken = {i for place in self.inputs.places.values() for i in place.ravel().tolist()}
        for name, rows in self._rows.items():
            if taken & set(rows.ravel().tolist()):
                raise InputError(
                    "this signal is a control and an input", place=f"signals.{name}", expected="one of them"
                )

    def _spread(self, name: str, pair: Bounds) -> tuple[FloatArray, FloatArray]:
        """Return the bounds of a control in its shape."""
        self.require_names((name,), self.inputs.places)
        shape = self._rows[name].shape[1:]
        try:
            low, high = (np.broadcast_to(np.asarray(bound, dtype=float), shape) for bound in pair)
        except (TypeError, ValueError):
            raise InputError(
                "bounds do not fit the control", place=f"signals.{name}", found=f"{pair}",
                expected=f"(low, high), each a number or of shape {shape}",
            ) from None  # fmt: skip
        if not (low < high).all():
            raise InputError("bounds are (low, high)", place=name, found=f"{pair}", expected="low below high")
        return low, high

    def _require_within(self, control: Values) -> None:
        for name, (low, high) in self.bounds.items():
            if name in control:
                row = np.asarray(control[name], dtype=float)
                if not ((row >= low) & (row <= high)).all():
                    raise InputError(
                        "an action is outside its bounds, or not finite", place=f"signals.{name}",
                        found=f"{row.tolist()}", expected=f"{low.tolist()} to {high.tolist()}",
                    )  # fmt: skip

    @cached_property
    def by_terms(self) -> Assembler:
        """The workspace of derivatives, without compiled steps."""
        return Assembler(self.simulation.system, self.simulation.solver(self.simulation.system.n_unknowns))

    def control_places(self, step: int) -> dict[str, IntArray]:
        """Return name -> indices in the scene's numbers of the rows that drive the step after ``step`` steps."""
        t = (step + 1) * self.simulation.stepper.dt
        return {
            name: self._rows[name][signal.interval(t) if isinstance(signal, BSplineSignal) else 0]
            for name, signal in self.signals.items()
        }

    def set_control(self, s: FloatArray, step: int, control: Mapping[str, ArrayLike]) -> None:
        """Write controls, or their tangents, into the scene's numbers."""
        places = self.control_places(step)
        rows = {name: np.asarray(value, dtype=float) for name, value in control.items()}
        self.require({name: row.shape for name, row in rows.items()}, self._input_shapes)
        for name, row in rows.items():
            if not np.isfinite(row).all():
                raise InputError("a control is not a finite number", place=f"signals.{name}", found=f"{row.tolist()}")
            s[places[name]] = row

    def require_names(self, control: Iterable[str], inputs: Iterable[str]) -> None:
        """Refuse controls that the function has not, and other inputs than it has."""
        for name in control:
            if name not in self._rows:
                raise InputError("this signal is no control of the step", place=name, expected=", ".join(self._rows))
        if set(inputs) != self.inputs.places.keys():
            raise InputError(
                "these are not the inputs that the step was made with",
                found=", ".join(inputs) or "none",
                expected=", ".join(self.inputs.places) or "none",
            )

    def require(self, control: Mapping[str, tuple[int, ...]], inputs: Mapping[str, tuple[int, ...]]) -> None:
        """Refuse names and shapes of controls and inputs that are not those of the function."""
        self.require_names(control, inputs)
        for name, shape in control.items():
            if shape != self._rows[name].shape[1:]:
                raise InputError(
                    "the values of a control do not fit", place=f"signals.{name}", found=f"shape {shape}",
                    expected=f"shape {self._rows[name].shape[1:]}",
                )  # fmt: skip
        for name, shape in inputs.items():
            require_shape(name, shape, self.inputs.places[name].shape)

    def require_pairs(self) -> None:
        """Refuse steps that hand on more than pairs of coordinates and velocities."""
        if not isinstance(self.simulation.stepper, BDF):
            raise InputError(
                "these steps hand on more than coordinates and velocities",
                found=type(self.simulation.stepper).__name__,
                expected="contact by a penalty law, or whole rollouts",
            )

    def state(self, q: FloatArray, v: FloatArray, step: int) -> State:
        """Return the state of pairs (m, n) with this many steps behind them; a run's first has one pair that counts."""
        if step < 0:
            raise InputError("a state has steps behind it, or none", found=step)
        return self.simulation.state(q, v, step=step) if step else self.simulation.state(q[0], v[0])

    def pairs(self, given: ArrayLike | None) -> FloatArray:
        """Return a (co)tangent of a state's pairs (m, n); given (n,), of the newest alone."""
        shape = self.simulation.stepper.n_history, self.simulation.system.n
        out = np.zeros(shape)
        if given is not None:
            array = np.asarray(given, dtype=float)
            if array.shape not in (shape, shape[1:]):
                raise InputError(
                    "one number a coordinate and pair", found=f"shape {array.shape}",
                    expected=f"{shape}, or {shape[1:]} of the newest pair",
                )  # fmt: skip
            out[: 1 if array.ndim == 1 else None] = array
        return out

    def __call__(self, state: State, control: Values | None = None, inputs: Values | None = None) -> Step:
        """Take one step.

        Parameters
        ----------
        state : State
            Of `Simulation.state`, of a run (`Trajectory.state`), or of the step before (`Step.state`).
        control : name of a signal -> the row that drives this step
            A signal that is not among them keeps the scene's.
        inputs : name -> value
            All inputs that the function was made with.

        Raises
        ------
        InputError
            If a name is none, a shape does not fit, or a number is not finite or impossible.
        SolverError
            If the step has no solution near by.
        """
        arrays = {name: np.asarray(value, dtype=float) for name, value in (inputs or {}).items()}
        self.require({}, {name: array.shape for name, array in arrays.items()})
        for name in ("q", "v"):
            if not np.isfinite(getattr(state, name)).all():
                raise InputError("the state is not finite", place=f"state.{name}", found="nan or inf")
        values = self.inputs.scene_values(arrays)
        self.set_control(values, state.step, control or {})
        self._require_within(control or {})
        theta = self.numbers.ties.forward(values)
        after, record = self.simulation.step(state, theta, assembler=self.assembler)
        return Step(self, state, after, record, values, theta)


def _controlling(scene: SceneSpec, name: str) -> Signal:
    """Return a signal that one row drives in each step."""
    if name not in scene.signals:
        raise InputError(
            "no such signal", place=f"signals.{name}", expected=", ".join(scene.signals) or "a scene with signals"
        )
    made = signal_of(scene.signals[name], scene.time.end, f"signals.{name}")
    if isinstance(made, Constant) or (isinstance(made, BSplineSignal) and made.degree == 0):
        return made
    raise InputError(
        "this signal has no row for a step: its rows act together",
        place=f"signals.{name}",
        found=type(made).__name__,
        expected="type 'constant', or 'control' with the basis 'constant'; the rows of others are inputs of a rollout",
    )


def _rows(numbers: SceneParameters, name: str, signal: Signal) -> IntArray:
    """Return the indices of a signal's rows in the scene's numbers (rows, ...)."""
    if isinstance(signal, Constant):
        return numbers.place(f"signals.{name}.value")[None]
    return numbers.place(f"signals.{name}.values")
