"""A run, the controls that act in it and what it is judged by, stage by stage."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import final

import numpy as np
import scipy.sparse as sp

from add.control.costs import CoordinateCost, StageModel, StepModel, difference
from add.equations.charts import Chart, Twists
from add.equations.kinematics import Directions, State, StateTangent, StateTangents
from add.errors import InputError
from add.inverse.experiment import Experiment
from add.inverse.maps import Linear
from add.inverse.problem import InverseProblem
from add.linalg import one_blas_thread
from add.objectives.base import LeastSquares, WeightedSum
from add.simulation import Step, StepDerivatives
from add.simulation.run import Trajectory
from add.simulation.step_jacobians import rotation_vectors
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class Rollout:
    """A run with its controls and its value.

    Attributes
    ----------
    x : (n,)
    theta : (n_theta,)
    steps : one a step
    value : float
    """

    x: FloatArray
    theta: FloatArray
    steps: tuple[Step, ...]
    value: float

    @property
    def states(self) -> list[State]:
        """The state before each step, and the last."""
        return [*(step.before for step in self.steps), self.steps[-1].after]

    @property
    def trajectory(self) -> Trajectory:
        """The run as `Simulation.run` returns it."""
        states = self.states
        q, v, t = (np.array([x for x in parts]) for parts in zip(*((s.q[0], s.v[0], s.t) for s in states), strict=True))
        return Trajectory(t, q, v, None, [step.record for step in self.steps], states[0])


#: The change of the controls of a stage, from its number and the state that it begins with.
Feedback = Callable[[int, State], FloatArray]

#: The state to go on from before a step, given its number and the end of the step before it.
Onward = Callable[[int, State], State | None]

#: The stages of a run, their models, and slope and curvature of the cost of its last state.
Models = tuple[list["Stage"], list[StageModel], tuple[FloatArray, FloatArray]]


@final
@dataclass(frozen=True)
class ControlProblem:
    """An inverse problem whose variables are controls, each of which acts in one stage of the run.

    A stage is a row of a control of degree 0: one step, or several. What is minimised is the problem's own objective,
    so that `InverseProblem.optimize` and these methods are judged by one number.

    Attributes
    ----------
    problem : InverseProblem
        Of one experiment; all parameters are controls of degree 0, with their bounds.
    costs : (weight, LeastSquares)
        Added to the objective, e.g. `CoordinateCost`.

    Raises
    ------
    InputError
        If the problem has several experiments, a validation, a prior or residual that couples stages, or an objective
        that is no sum of squares; or if a cost is of rotation vectors.
    """

    problem: InverseProblem
    costs: tuple[tuple[float, LeastSquares], ...] = ()
    _squares: tuple[tuple[float, LeastSquares], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.problem.experiments) != 1:
            raise InputError("optimal control is of one run", found=f"{len(self.problem.experiments)} experiments")
        simulation = self.experiment.simulation
        simulation.differentiable  # noqa: B018  refused at once
        turning = (rotation_vectors(simulation.system)[:, None] + np.arange(3)).ravel()
        for _, cost in self.costs:
            if isinstance(cost, CoordinateCost) and np.intersect1d(cost.index, turning).size:
                raise InputError(
                    "a cost of rotation vectors jumps where these change their chart",
                    found=f"coordinates {np.intersect1d(cost.index, turning).tolist()}", expected="a marker's place",
                )  # fmt: skip
        squares, _ = self.experiment.squares_within(None)
        object.__setattr__(self, "_squares", (*squares, *((float(np.sqrt(w)), part) for w, part in self.costs)))

    @property
    def experiment(self) -> Experiment:
        """The run."""
        return self.problem.experiments[0]

    @cached_property
    def rotations(self) -> IntArray:
        """First coordinates of the rotation vectors."""
        return rotation_vectors(self.experiment.simulation.system)

    @cached_property
    def _map(self) -> Callable[[FloatArray], FloatArray]:
        return self.problem.map_of(self.experiment).forward

    def theta(self, x: FloatArray) -> FloatArray:
        """Return theta of the run."""
        return self._map(x)

    def directions(self, x: FloatArray) -> sp.csc_array:
        """Return d theta / dx."""
        return self._fixed if self.is_linear else self.problem.map_of(self.experiment).jacobian(x).tocsc()

    @cached_property
    def _fixed(self) -> sp.csc_array:
        return self.problem.map_of(self.experiment).jacobian(self.problem.x0).tocsc()

    @cached_property
    def is_linear(self) -> bool:
        """Whether controls enter theta without a transform."""
        return all(isinstance(transform, Linear) for transform in self.problem.design.transforms)

    # --- value --------------------------------------------------------------------------------------------------------

    def own_residuals(self, x: FloatArray, theta: FloatArray) -> tuple[FloatArray, sp.csr_array]:
        """Return the residuals of the controls alone, and their derivative by x."""
        directions, (own, of_own) = self.directions(x), self.problem.prior_rows(x)
        rho, rows = [own], [of_own]
        for root, part in self._squares:
            rho.append(root * part.parameter_residuals(theta))
            rows.append(root * (part.parameter_residual_jacobian(theta) @ directions))
        return np.concatenate(rho), sp.csr_array(sp.vstack(rows, format="csr"))

    def run(
        self,
        x: FloatArray,
        stages: "Sequence[Stage]" = (),
        feedback: Feedback | None = None,
        onward: Onward | None = None,
    ) -> Rollout:
        """Run with controls x, changed by a feedback stage by stage.

        ``onward`` is given the number and the end of every step and returns the state to go on from, None for its end.

        Raises
        ------
        SolverError
            If a step fails.
        """
        simulation = self.experiment.simulation
        x, theta = x.copy(), np.array(self.theta(x))
        directions = self.directions(x) if self.is_linear else None
        begins = {stage.first: k for k, stage in enumerate(stages)} if feedback else {}
        parts = [(root * root, part.for_run()) for root, part in self._squares]
        objective = WeightedSum(tuple(w for w, _ in parts), tuple(part for _, part in parts))
        seen = objective.steps(theta)
        counted = None if seen is None else frozenset(seen.tolist())
        steps: list[Step] = []
        with one_blas_thread():
            assembler = simulation.assembler()
            state, _ = simulation.begin(assembler, theta)
            value = objective.step_value(state, theta)
            for k in range(simulation.n_steps):
                if onward is not None and k:
                    state = onward(k, state) or state
                if feedback is not None and k in begins:
                    index = stages[begins[k]].index
                    change = feedback(begins[k], state)
                    x[index] += change
                    if directions is None:
                        theta[:] = self.theta(x)
                    else:
                        _add_columns(directions, index, change, theta)
                after, record = simulation.stepper.step(assembler, state, theta)
                steps.append(Step(state, record, after))
                state = after
                if counted is None or state.step in counted:
                    value += objective.step_value(state, theta)
            rho, _ = self.own_residuals(x, theta)
        return Rollout(x, theta, tuple(steps), value + float(rho @ rho))

    def _remembering(self) -> list[tuple[float, LeastSquares]]:
        """Return the parts of the objective with room for what one run makes them remember."""
        parts = ((root, part.for_run()) for root, part in self._squares)
        return [(root, part) for root, part in parts if isinstance(part, LeastSquares)]

    # --- models -------------------------------------------------------------------------------------------------------

    def linearised(self, rollout: Rollout) -> list[tuple[FloatArray, IntArray, FloatArray]]:
        """Return A (s, s), the variables that act and B (s, k) of every step, in twists."""
        simulation = self.experiment.simulation
        inner = simulation.step_derivatives(rollout.theta)
        along = {"x": Directions.of(sp.csr_array(self.directions(rollout.x)))}
        derivatives = StepDerivatives(inner.stepper, inner.assembler, inner.theta, along, {}, Chart.TWIST)
        out = []
        with one_blas_thread():
            for step in rollout.steps:
                jacobians = derivatives.jacobians(step)
                control = jacobians.controls["x"]
                B = np.zeros((jacobians.transition.shape[0], control.index.size))
                n = jacobians.n
                B[:n], B[n : 2 * n] = control.q, control.v
                out.append((jacobians.transition, control.index, B))
        return out

    def state_costs(self, rollout: Rollout) -> list[tuple[FloatArray, FloatArray]]:
        """Return the gradient and the Gauss-Newton Hessian of the cost of every state, in twists."""
        theta, states = rollout.theta, rollout.states
        m, n = states[0].q.shape
        size = 2 * m * n
        parts = [(root, part, part.steps(theta)) for root, part in self._remembering()]
        tangents = StateTangents(np.arange(size), StateTangent.of_flat(np.eye(size), m))
        still = Directions(sp.csr_array((theta.size, size)))
        out = []
        for state in states:
            gradient, hessian = np.zeros(size), np.zeros((size, size))
            for root, part, seen in parts:
                if seen is not None and state.step not in seen:
                    continue
                rho = root * part.step_residuals(state, theta)
                columns = part.step_residual_tangents(state, theta, tangents, still)
                if not rho.size:
                    continue
                rows = root * columns.dense(size)
                if self.rotations.size:
                    rows = Twists.at(state, self.rotations).inverse_transposed(rows.T).T
                gradient += 2.0 * rows.T @ rho
                hessian += 2.0 * rows.T @ rows
            out.append((gradient, hessian))
        return out

    def models(
        self, rollout: Rollout, stages: "Sequence[Stage] | None", gaps: dict[int, FloatArray] | None = None
    ) -> Models:
        """Return the stages, their models about a run, and the model of the cost of its last state."""
        steps, costs = self.linearised(rollout), self.state_costs(rollout)
        used = list(stages) if stages else stages_of([index for _, index, _ in steps], rollout.x.size)
        rho, rows = self.own_residuals(rollout.x, rollout.theta)
        hessian = sp.csr_array(2.0 * rows.T @ rows)
        gradient = 2.0 * rows.T @ rho
        require_separate(hessian, used)
        lower, upper = self.problem.bounds
        models = []
        for stage in used:
            inner = []
            for k in range(stage.first, stage.last):
                A, index, own = steps[k]
                B = np.zeros((A.shape[0], stage.index.size))
                shared = np.isin(index, stage.index)
                B[:, np.searchsorted(stage.index, index[shared])] = own[:, shared]
                inner.append(StepModel(A, B, (gaps or {}).get(k + 1), *costs[k]))
            at = stage.index
            models.append(
                StageModel(
                    tuple(inner),
                    gradient[at],
                    hessian[at][:, at].toarray(),
                    lower[at] - rollout.x[at],
                    upper[at] - rollout.x[at],
                )
            )
        return used, models, costs[-1]

    def change(self, state: State, nominal: State) -> FloatArray:
        """Return the difference of two states as twists."""
        return difference(state, nominal, self.rotations)


def _add_columns(matrix: sp.csc_array, index: IntArray, by: FloatArray, out: FloatArray) -> None:
    """Add the columns ``index`` times ``by`` to ``out``; slices of the matrix would take longer than a step."""
    for column, factor in zip(index.tolist(), by, strict=True):
        part = slice(*matrix.indptr[column : column + 2])
        out[matrix.indices[part]] += matrix.data[part] * factor


@final
@dataclass(frozen=True)
class Stage:
    """Consecutive steps in which the same controls act.

    Attributes
    ----------
    first, last : int
        Its steps, from ``first`` to before ``last``.
    index : (k,) increasing
        Its variables; none where nothing acts.
    """

    first: int
    last: int
    index: IntArray


def stages_of(acting: Sequence[IntArray], n: int) -> list[Stage]:
    """Return the stages of a run from the variables that act in its steps.

    Raises
    ------
    InputError
        If a variable acts in steps beside those of its stage: controls of degree 0 do not.
    """
    stages: list[Stage] = []
    for k, index in enumerate(acting):
        if stages and np.array_equal(index, stages[-1].index):
            stages[-1] = Stage(stages[-1].first, k + 1, index)
        else:
            stages.append(Stage(k, k + 1, index))
    owners = np.concatenate([np.zeros(0, dtype=np.int64), *(stage.index for stage in stages)])
    values, counts = np.unique(owners, return_counts=True)
    if (counts > 1).any():
        raise InputError(
            "a variable acts in several stages of the run", found=f"variable {int(values[counts > 1][0])}",
            expected='controls of degree 0 ("basis": "constant"), each row of which acts for a while and not before or '
            "after",
        )  # fmt: skip
    if not values.size:
        raise InputError("no variable acts in the run", found=f"{n} variables")
    return stages


def require_separate(hessian: sp.csr_array, stages: Sequence[Stage]) -> None:
    """Refuse a cost of controls that couples stages."""
    owner = np.full(hessian.shape[0], -1)
    for k, stage in enumerate(stages):
        owner[stage.index] = k
    rows, cols = hessian.nonzero()
    wrong = (owner[rows] != owner[cols]) & (owner[rows] >= 0) & (owner[cols] >= 0)
    if wrong.any():
        raise InputError(
            "a cost couples the controls of several stages, which a backward pass over stages cannot see",
            found=f"variables {int(rows[wrong][0])} and {int(cols[wrong][0])}",
            expected='"proximity" instead of "smoothness", or another optimizer',
        )
