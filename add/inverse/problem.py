"""The inverse problem: experiments that share parameters, and the value and gradient an optimiser sees."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, final

import numpy as np
import scipy.sparse as sp

from add.adjoint import Schedule, value_and_gradient
from add.adjoint.forward import stretches
from add.adjoint.reverse import Evaluation, evaluate
from add.equations.kinematics import Columns, Directions, StretchTangents
from add.errors import InputError
from add.inverse.along_time import along_time, may_go_backward, observed
from add.inverse.experiment import (
    EvaluationRequest,
    Evaluator,
    Experiment,
    Jacobian,
    NormalEquations,
    Residuals,
    WholeNormal,
)
from add.inverse.maps import Composed, DesignParameter, Injection, Prior, Transformed
from add.linalg import one_blas_thread
from add.simulation.run import Observer, Replay, Trajectory
from add.summary import Summarised, Summary
from add.typing import FloatArray, IntArray, as_vector


class Valued(NamedTuple):
    """Objective and gradient at x, with its parts by experiment."""

    value: float
    gradient: FloatArray
    parts: Mapping[str, float]


class Optimizer(ABC):
    """Something that minimises an inverse problem."""

    @property
    @abstractmethod
    def shares_experiments(self) -> bool:
        """Whether it asks for values and gradients alone, so that experiments may be evaluated in other processes."""

    @abstractmethod
    def run(self, problem: "InverseProblem", x0: FloatArray | None = None, **options: Any) -> Any:
        """Minimise from ``x0`` (default: the problem's start)."""


@final
@dataclass(frozen=True, repr=False)
class InverseProblem(Summarised):
    """minimise sum over experiments of phi(run(theta(x))) + priors.

    Attributes
    ----------
    experiments, parameters, priors : tuples
    optimizer : Optimizer, optional
    evaluator : Evaluator, optional
        Default: this process.
    validation : tuple of Experiment
        Runs that the objective does not count: they are predicted.
    design : Transformed
        x -> physical values.
    """

    experiments: tuple[Experiment, ...]
    parameters: tuple[DesignParameter, ...]
    priors: tuple[Prior, ...] = ()
    optimizer: Optimizer | None = None
    evaluator: Evaluator | None = None
    validation: tuple[Experiment, ...] = ()
    design: Transformed = field(init=False, repr=False)

    def __post_init__(self) -> None:
        transforms = tuple(p.transform for p in self.parameters for _ in range(p.n))
        scale = np.concatenate([np.full(p.n, p.scale) for p in self.parameters])
        object.__setattr__(self, "design", Transformed(transforms, scale))

    def summary(self) -> Summary:
        """Return a few lines: parameters with their starts, experiments, optimiser."""
        rows = [(p.name, f"{np.array2string(np.asarray(p.start), precision=6)} {p.unit}") for p in self.parameters]
        rows.append(("experiments", ", ".join(experiment.name for experiment in self.experiments)))
        rows.append(("optimizer", type(self.optimizer).__name__ if self.optimizer else "none"))
        return Summary(f"InverseProblem of {self.n} design variables", tuple(rows))

    @property
    def n(self) -> int:
        """Number of design variables."""
        return self.design.scale.size

    @property
    def x0(self) -> FloatArray:
        """The start."""
        return self.design.inverse(np.concatenate([p.start for p in self.parameters]))

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds on x."""
        lower, upper = self.physical_bounds
        return self.design.inverse(lower), self.design.inverse(upper)

    @property
    def physical_bounds(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds on the physical values."""
        lower, upper = np.array([(p.lower, p.upper) for p in self.parameters for _ in range(p.n)]).T
        return lower, upper

    def labels(self) -> list[str]:
        """Return one name a design variable."""
        return [p.name if p.entries == (0,) else f"{p.name}[{i}]" for p in self.parameters for i in p.entries]

    def units(self) -> list[str]:
        """Return one unit a design variable."""
        return [p.unit for p in self.parameters for _ in range(p.n)]

    def index_of(self, names: tuple[str, ...] | None) -> IntArray:
        """Return the variables of the named parameters, as far as an experiment of the fit has them; all for None."""
        counting = {experiment.name for experiment in self.experiments}
        fitted = [p for p in self.parameters if counting & p.targets.keys()]
        if names is None:
            return np.concatenate([np.arange(p.first, p.first + p.n) for p in fitted])
        chosen = [p for p in fitted if any(p.answers_to(name) for name in names)]
        missing = [name for name in names if not any(p.answers_to(name) for p in self.parameters)]
        if missing:
            raise InputError("there is no such parameter", found=missing[0], expected=", ".join(self.labels()))
        if not chosen:
            raise InputError("belongs to an experiment that is only validated", found=", ".join(names))
        return np.concatenate([np.arange(p.first, p.first + p.n) for p in chosen])

    def predicting(self, name: str) -> "InverseProblem":
        """Return the problem of one run alone, of the fit or not, with all parameters."""
        chosen = [item for item in (*self.experiments, *self.validation) if item.name == name]
        return replace(self, experiments=tuple(chosen), validation=(), evaluator=None)

    def map_of(self, experiment: Experiment) -> Composed:
        """Return x -> theta of one experiment."""
        source, target = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        for parameter in self.parameters:
            for index in parameter.targets.get(experiment.name, ()):
                source.append(np.arange(parameter.first, parameter.first + parameter.n))
                target.append(index)
        placed = Injection(experiment.numbers, np.concatenate(source), np.concatenate(target), self.n)
        return Composed((self.design, placed, experiment.ties))

    def values(self, x: FloatArray) -> FloatArray:
        """Return the physical values of x."""
        return self.design.forward(as_vector("x", x, self.n))

    def value_of(self, k: int, number: float, x: FloatArray) -> float:
        """Return the physical value of variable k where it is ``number`` and the others are those of x."""
        moved = x.copy()
        moved[k] = number
        return float(self.values(moved)[k])

    def prior_rows(self, x: FloatArray) -> tuple[FloatArray, sp.csr_array]:
        """Return the residuals of all priors at x, and their derivative by x."""
        p, of_p = self.values(x), self.design.jacobian(x)
        rho = [np.zeros(0), *(prior.residuals(p) for prior in self.priors)]
        rows = [sp.csr_array((0, self.n)), *(prior.residual_jacobian(self.n) @ of_p for prior in self.priors)]
        return np.concatenate(rho), sp.csr_array(sp.vstack(rows))

    def theta(self, x: FloatArray, experiment: Experiment) -> FloatArray:
        """Return theta of one experiment."""
        return self.map_of(experiment).forward(as_vector("x", x, self.n))

    def value_and_grad(
        self,
        x: FloatArray,
        *,
        window: tuple[float, float] | None = None,
        schedule: Schedule | None = None,
        observers: tuple[Observer, ...] = (),
    ) -> tuple[float, FloatArray]:
        """Return the objective and its gradient at x."""
        result = self.evaluate(x, window=window, schedule=schedule, observers=observers)
        return result.value, result.gradient

    def evaluate(
        self,
        x: FloatArray,
        *,
        window: tuple[float, float] | None = None,
        schedule: Schedule | None = None,
        observers: tuple[Observer, ...] = (),
    ) -> Valued:
        """Return value, gradient and parts.

        Parameters
        ----------
        x : (n,)
        window : (start, stop), optional
            Simulation times that count [s]; the runs end with it.
        schedule : Schedule, optional
            Of the reverse sweep.
        observers : called after every forward step

        Raises
        ------
        SolverError
            If a run fails at x.
        """
        x = as_vector("x", x, self.n)
        rho, rows = self.prior_rows(x)
        value, gradient = float(rho @ rho), 2.0 * rows.T @ rho
        maps = [self.map_of(experiment) for experiment in self.experiments]
        asked = [EvaluationRequest(k, mapping.forward(x), window, schedule) for k, mapping in enumerate(maps)]
        if self.evaluator is not None and not observers:
            evaluations = self.evaluator.evaluate(asked)
        else:
            evaluations = [self.evaluate_experiment(item, observers=observers) for item in asked]
        parts = {}
        for experiment, mapping, part in zip(self.experiments, maps, evaluations, strict=True):
            parts[experiment.name] = part.value
            value += part.value
            gradient += mapping.pullback(x, part.gradient)
        return Valued(value, gradient, parts)

    def evaluate_experiment(self, asked: EvaluationRequest, *, observers: tuple[Observer, ...] = ()) -> Evaluation:
        """Return value and gradient by theta of one experiment.

        Raises
        ------
        SolverError
            If the run fails.
        """
        experiment = self.experiments[asked.experiment]
        objective, n_steps = experiment.within(asked.window)
        return value_and_gradient(
            experiment.simulation,
            objective,
            asked.theta,
            n_steps=n_steps,
            schedule=asked.schedule or experiment.schedule,
            observers=observers,
        )

    def residuals(
        self,
        x: FloatArray,
        *,
        window: tuple[float, float] | None = None,
        replay: Mapping[str, Replay] | None = None,
        observers: tuple[Observer, ...] = (),
    ) -> Residuals:
        """Return the residuals at x, rho . rho = `value`, with the runs that they were found on.

        Raises
        ------
        SolverError
            If a run fails at x.
        InputError
            If the objective is no sum of squares.
        """
        x = as_vector("x", x, self.n)
        of_runs, of_parameters = [np.zeros(0)], [self.prior_rows(x)[0]]
        runs = {}
        for experiment in self.experiments:
            theta = self.theta(x, experiment)
            parts, n_steps = experiment.squares_within(window)
            run = experiment.simulation.run(
                theta,
                n_steps=n_steps,
                replay=replay[experiment.name] if replay else None,
                observers=observers,
            )
            runs[experiment.name] = run
            of_runs += [root * part.run_residuals(run, theta) for root, part in parts]
            of_parameters += [root * part.parameter_residuals(theta) for root, part in parts]
        seen = sum(part.size for part in of_runs)
        return Residuals(x.copy(), np.concatenate(of_runs + of_parameters), runs, window, seen)

    def jacobian(self, point: Residuals, free: IntArray | None = None) -> Jacobian:
        """Return the derivative of the residuals, by the ``free`` entries of x (default: all), from forward tangents.

        The decisions of the point's runs are held, as in the reverse sweep: 2 J^T rho is `value_and_grad`'s gradient.
        """
        x = point.x
        free = np.arange(self.n) if free is None else free
        dense, along = [np.zeros((0, free.size))], []
        for experiment in self.experiments:
            mapping = self.map_of(experiment)
            theta, run = mapping.forward(x), point.runs[experiment.name]
            directions = Directions(mapping.jacobian(x)[:, free])
            along.append(directions)
            parts, _ = experiment.squares_within(point.window)
            by_part: list[list[Columns]] = [[] for _ in parts]
            with one_blas_thread():
                number = 0
                for dot in stretches(experiment.simulation, run, theta, directions):
                    for (_, part), out in zip(parts, by_part, strict=True):
                        if isinstance(dot, StretchTangents):
                            out.append(part.stretch_residual_tangents(run, number, theta, dot, directions))
                        else:
                            out.append(part.step_residual_tangents(run.state(number), theta, dot, directions))
                    number += dot.n if isinstance(dot, StretchTangents) else 1
            for (root, _), out in zip(parts, by_part, strict=True):
                dense += [root * columns.dense(free.size) for columns in out]
        return Jacobian(np.concatenate(dense), self._by_numbers(point, free, *along))

    def normal_equations(self, point: Residuals, free: IntArray, *, backward: bool = True) -> NormalEquations:
        """Return J^T J and J^T rho by the ``free`` entries of x; see `WholeNormal` and `AlongTime`.

        Forward, tangents of all n numbers go through the steps. Backward, cotangents of what later residuals see do
        (`add.adjoint.forward`), which take fewer solves, but are looked through again and again: that pays as long as
        they are at most a quarter of n. It is tried, unless not ``backward``, with one run, whose states have no more
        residuals than that on average, and whose rows, not yet looked through, have room (`may_go_backward`).
        """
        if backward and len(self.experiments) == 1 and may_go_backward(point, free.size // 4):
            (experiment,) = self.experiments
            mapping = self.map_of(experiment)
            directions = Directions(mapping.jacobian(point.x)[:, free])
            run = observed(experiment, point, mapping.forward(point.x), directions, free.size // 4)
            if run is not None:
                return along_time(run, self._by_numbers(point, free, directions), point.rho[point.of_runs :])
        jacobian = self.jacobian(point, free)
        return WholeNormal(jacobian, jacobian.transposed(point.rho))

    def _by_numbers(self, point: Residuals, free: IntArray, *directions: Directions) -> sp.csr_array:
        """Return the derivative of the residuals of the numbers alone; ``directions`` of theta of each experiment."""
        rows = [self.prior_rows(point.x)[1][:, free]]
        for experiment, along in zip(self.experiments, directions, strict=True):
            theta = self.theta(point.x, experiment)
            parts, _ = experiment.squares_within(point.window)
            rows += [root * (part.parameter_residual_jacobian(theta) @ along.matrix) for root, part in parts]
        return sp.csr_array(sp.vstack(rows))

    def residuals_and_jacobian(
        self, x: FloatArray, *, window: tuple[float, float] | None = None
    ) -> tuple[FloatArray, Jacobian]:
        """Return rho (m,) and J = d rho / dx: rho . rho is the objective and 2 J^T rho its gradient."""
        point = self.residuals(x, window=window)
        return point.rho, self.jacobian(point)

    def optimize(self, x0: FloatArray | None = None, **options: Any) -> Any:
        """Minimise with the problem's optimiser; see `add.inverse.LBFGSB.run` for options and result."""
        if self.optimizer is None:
            raise InputError(
                "this problem was made without an optimiser", expected="InverseProblem(..., optimizer=...)"
            )
        return self.optimizer.run(self, x0, **options)

    def value(
        self,
        x: FloatArray,
        *,
        window: tuple[float, float] | None = None,
        replay: Mapping[str, Replay] | None = None,
        observers: tuple[Observer, ...] = (),
    ) -> tuple[float, dict[str, Trajectory]]:
        """Return the objective and the runs it was found on."""
        x = as_vector("x", x, self.n)
        rho, _ = self.prior_rows(x)
        value, runs = float(rho @ rho), {}
        for experiment in self.experiments:
            objective, n_steps = experiment.within(window)
            part, runs[experiment.name] = evaluate(
                experiment.simulation,
                objective,
                self.theta(x, experiment),
                n_steps=n_steps,
                replay=replay[experiment.name] if replay else None,
                observers=observers,
            )
            value += part
        return value, runs
