"""One step of a scene as a differentiable function of state, controls and numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike

from add.equations.kinematics import Directions, State, StateTangent, StateTangents
from add.errors import InputError
from add.linalg import one_blas_thread
from add.scene.build.inputs import Values, arrays_of
from add.scene.build.numbers import SceneParameters
from add.scene.build.step_arguments import Bounds, StepArguments
from add.scene.spec.scene import SceneSpec
from add.simulation import BDF, Record
from add.simulation.run import Simulation
from add.simulation.start import given_state
from add.simulation.step_jacobians import StepDerivatives
from add.simulation.stepper import TakenStep
from add.simulation.substeps import whole_steps
from add.solve.step_matrix import Assembler
from add.typing import FloatArray, as_numbers


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

    function: "StepFunction"
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
            before = stepper.pullback(TakenStep(function.assembler, self.record, self.theta), bar, theta_bar)
        q, v = before.q, before.v
        if not self.before.step:
            q, v = np.zeros_like(q), np.zeros_like(v)
            q[0], v[0] = stepper.start_pullback(before)
        s_bar = function.numbers.ties.pullback(self.values, theta_bar)
        places = function.arguments.places(self.before.step)
        control = {name: s_bar[place] for name, place in places.items()}
        return StepCotangents(q, v, control, function.arguments.inputs.cotangents(s_bar))

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
        s_dot = function.arguments.tangent(self.before.step, control or {}, inputs or {})
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
            step = TakenStep(function.assembler, self.record, self.theta)
            after = stepper.pushforward(step, tangents, directions).dot
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
        places = {name: place.ravel() for name, place in function.arguments.places(self.before.step).items()}
        along = {name: Directions.of(by_numbers[:, place]) for name, place in places.items()}
        with one_blas_thread():
            matrices = StepDerivatives(stepper, function.by_terms, self.theta, along, {}).jacobians(self.record)
        by_state = matrices.transition
        if not self.before.step:
            unit = np.eye(2 * n).reshape(2, n, 2 * n)
            start = stepper.start_pushforward(unit[0], unit[1])
            by_state = np.zeros_like(matrices.transition)
            by_state[:, : 2 * n] = matrices.transition @ np.stack([start.q, start.v], axis=1).reshape(2 * m * n, 2 * n)
        by_control = np.zeros((2 * m * n, sum(place.size for place in places.values())))
        first = 0
        for name, place in places.items():
            acting = matrices.controls[name]
            by_control[:n, first + acting.index], by_control[n : 2 * n, first + acting.index] = acting.q, acting.v
            first += place.size
        return by_state, by_control


@final
class StepFunction:
    """Steps of a scene that some of its signals control and some of its numbers are inputs of.

    One is for one thread: it keeps the workspace of a run, which no number depends on. Steps are whole ones: those that
    a run divides (`time.substeps`) hand on more than pairs of coordinates and velocities.

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
        self.simulation, self.numbers = replace(simulation, stepper=whole_steps(simulation.stepper)), numbers
        self.arguments = StepArguments(scene, simulation, numbers, controls, inputs, bounds or {})
        self.assembler: Assembler = simulation.assembler()

    @cached_property
    def by_terms(self) -> Assembler:
        """The workspace of derivatives, without compiled steps."""
        return Assembler(self.simulation.system, self.simulation.solver(self.simulation.system.n_unknowns))

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
        pair = (q, v) if step else (q[0], v[0])
        return given_state(self.simulation.stepper, self.simulation.system.n, pair, step)

    def pairs(self, given: ArrayLike | None) -> FloatArray:
        """Return a (co)tangent of a state's pairs (m, n); given (n,), of the newest alone."""
        shape = self.simulation.stepper.n_history, self.simulation.system.n
        array = np.zeros(shape) if given is None else as_numbers("state", given)
        if array.shape not in (shape, shape[1:]):
            raise InputError(
                "one number a coordinate and pair", found=f"shape {array.shape}",
                expected=f"{shape}, or {shape[1:]} of the newest pair",
            )  # fmt: skip
        if not np.isfinite(array).all():
            raise InputError("a derivative of a state is not finite", found="nan or inf", expected="finite numbers")
        return self.arguments.inputs.pairs(array)

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
        arrays = arrays_of(inputs or {})
        self.arguments.require({}, {name: array.shape for name, array in arrays.items()})
        for name in ("q", "v"):
            if not np.isfinite(getattr(state, name)).all():
                raise InputError("the state is not finite", place=f"state.{name}", found="nan or inf")
        values, thetas = self.arguments.base({name: array[None] for name, array in arrays.items()}, 1)
        rows = {name: as_numbers(f"signals.{name}", row)[None] for name, row in (control or {}).items()}
        self.arguments.drive(values, thetas, np.array([state.step]), rows)
        return self.taken(state, values[0], thetas[0])

    def taken(self, state: State, values: FloatArray, theta: FloatArray) -> Step:
        """Take one step with the scene's numbers (n_s,) and theta (n_theta,), those of `StepArguments.drive`.

        Raises
        ------
        SolverError
            If the step has no solution near by.
        """
        after, record = self.simulation.step(state, theta, assembler=self.assembler)
        return Step(self, state, after, record, values, theta)
