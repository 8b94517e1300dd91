"""L-BFGS-B in phases, with a log from which an interrupted run goes on bit-equal."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.optimize import minimize

from add.adjoint import Schedule
from add.design.problem import InverseProblem, Optimizer
from add.errors import SolverError
from add.simulate import Observer
from add.typing import FloatArray

_log = logging.getLogger(__name__)


@final
@dataclass(frozen=True)
class LoggedEvaluation:
    """One evaluation as it is logged.

    Attributes
    ----------
    phase : str
    index : int
        Counted over all phases.
    x, gradient : (n,)
        The whole design vector; the gradient of variables that the phase holds is zero.
    value : float
        Infinite where the simulation failed.
    seconds : float
    """

    phase: str
    index: int
    x: FloatArray
    value: float
    gradient: FloatArray
    seconds: float


class EvaluationLog(ABC):
    """Where evaluations are kept, so that a run that was killed replays them."""

    @abstractmethod
    def lookup(self, phase: str, index: int, x: FloatArray) -> LoggedEvaluation | None:
        """Return evaluation number ``index`` if it was made before at the same x, bit by bit."""

    @abstractmethod
    def store(self, evaluation: LoggedEvaluation) -> None:
        """Keep an evaluation; it must survive a kill when this returns."""


@final
class MemoryLog(EvaluationLog):
    """Keeps evaluations in memory only."""

    def __init__(self) -> None:
        self.evaluations: list[LoggedEvaluation] = []

    def lookup(self, phase: str, index: int, x: FloatArray) -> LoggedEvaluation | None:
        """Return nothing: there is no earlier run."""
        return None

    def store(self, evaluation: LoggedEvaluation) -> None:
        """Append."""
        self.evaluations.append(evaluation)


@final
@dataclass(frozen=True)
class Phase:
    """A stage of a continuation; it starts from the best point of the stage before.

    Attributes
    ----------
    name : str
    parameters : names of the free parameters; None for all
    window : (start, stop)
        Simulation times that count [s].
    max_evaluations : int
    """

    name: str
    parameters: tuple[str, ...] | None
    window: tuple[float, float]
    max_evaluations: int


@final
@dataclass(frozen=True)
class PhaseResult:
    """How a phase ended."""

    name: str
    status: str
    success: bool
    start: float
    end: float
    evaluations: int


@final
@dataclass(frozen=True)
class OptimizationResult:
    """The best point of the last phase and how each phase ended.

    Attributes
    ----------
    x : (n,)
    value : float
    gradient : (n,)
    phases : tuple of PhaseResult
    evaluations : int
    seconds : float
    """

    x: FloatArray
    value: float
    gradient: FloatArray
    phases: tuple[PhaseResult, ...]
    evaluations: int
    seconds: float


#: Called after every evaluation with it and whether it is the best so far.
Progress = Callable[[LoggedEvaluation, bool], None]


@final
@dataclass(frozen=True)
class LBFGSB(Optimizer):
    """L-BFGS-B (SciPy) over the phases.

    The objective is divided by its value at the start of each phase, since the stopping rules of L-BFGS-B are
    absolute below one. A simulation that fails inside a line search counts as a point above the best one, with a
    gradient that leads back; a failure at the very first point is an error.

    Attributes
    ----------
    phases : tuple of Phase
    history : int
        Stored corrections.
    gradient_tolerance, objective_tolerance : float
        On the scaled objective; zero switches a rule off.
    """

    phases: tuple[Phase, ...]
    history: int = 10
    gradient_tolerance: float = 1e-8
    objective_tolerance: float = 1e-12

    def run(  # type: ignore[override]
        self,
        problem: InverseProblem,
        x0: FloatArray | None = None,
        *,
        log: EvaluationLog | None = None,
        progress: Progress | None = None,
        schedule: Schedule | None = None,
        observers: tuple[Observer, ...] = (),
    ) -> OptimizationResult:
        """Minimise.

        Parameters
        ----------
        problem : InverseProblem
        x0 : (n,), optional
            Default: the problem's start.
        log : EvaluationLog, optional
        progress : called after every evaluation
        schedule : Schedule, optional
        observers : called after every simulation step

        Raises
        ------
        SolverError
            If the simulation fails at the start of a phase.
        """
        begin = time.perf_counter()
        x = problem.x0 if x0 is None else np.asarray(x0, dtype=float)
        lower, upper = problem.bounds
        x = np.clip(x, lower, upper)
        log = log or MemoryLog()
        index = 0
        results = []
        best = None
        for phase in self.phases:
            run = _PhaseRun(self, problem, phase, x, log, index, progress, schedule, observers)
            results.append(run.minimise(lower, upper))
            best = run.best
            assert best is not None
            x, index = best.x, run.index
        assert best is not None
        seconds = time.perf_counter() - begin
        return OptimizationResult(best.x, best.value, best.gradient, tuple(results), index, seconds)


class _PhaseRun:
    """One phase in progress."""

    def __init__(
        self,
        settings: LBFGSB,
        problem: InverseProblem,
        phase: Phase,
        x: FloatArray,
        log: EvaluationLog,
        index: int,
        progress: Progress | None,
        schedule: Schedule | None,
        observers: tuple[Observer, ...],
    ) -> None:
        self.settings, self.problem, self.phase, self.log = settings, problem, phase, log
        self.start, self.index, self.first_index = x, index, index
        self.progress, self.schedule, self.observers = progress, schedule, observers
        self.free = problem.index_of(phase.parameters)
        self.best: LoggedEvaluation | None = None
        self.scale = 1.0

    def evaluate(self, x: FloatArray) -> LoggedEvaluation:
        """Return the evaluation at the whole vector x, from the log if it is there."""
        found = self.log.lookup(self.phase.name, self.index, x)
        if found is None:
            begin = time.perf_counter()
            try:
                value, full = self.problem.value_and_grad(
                    x, window=self.phase.window, schedule=self.schedule, observers=self.observers
                )
                gradient = np.zeros_like(full)
                gradient[self.free] = full[self.free]
            except SolverError as error:
                if self.best is None:
                    raise
                _log.warning("evaluation %d: %s", self.index, error)
                value, gradient = np.inf, np.zeros_like(x)
            seconds = time.perf_counter() - begin
            found = LoggedEvaluation(self.phase.name, self.index, x.copy(), float(value), gradient, seconds)
            self.log.store(found)
        self.index += 1
        better = self.best is None or found.value < self.best.value
        if better:
            self.best = found
        if self.progress:
            self.progress(found, better)
        return found

    def function(self, x_free: FloatArray) -> tuple[float, FloatArray]:
        """Return the scaled objective and gradient of the free variables."""
        x = self.start.copy()
        x[self.free] = x_free
        found = self.evaluate(x)
        assert self.best is not None
        if np.isfinite(found.value):
            return found.value / self.scale, found.gradient[self.free] / self.scale
        away = x_free - self.best.x[self.free]
        distance = float(np.linalg.norm(away)) or 1.0
        height = 10.0 * abs(self.best.value) / self.scale + 1.0
        return height, height * away / distance**2

    def minimise(self, lower: FloatArray, upper: FloatArray) -> PhaseResult:
        """Run L-BFGS-B; the best evaluation is kept whatever ends it."""
        first = self.evaluate(self.start)
        self.scale = abs(first.value) or 1.0
        # SciPy asks for the start again: the answer is known.
        pending = [first]

        def function(x_free: FloatArray) -> tuple[float, FloatArray]:
            if pending:
                known = pending.pop()
                if np.array_equal(known.x[self.free], x_free):
                    return known.value / self.scale, known.gradient[self.free] / self.scale
            return self.function(x_free)

        settings = self.settings
        found = minimize(
            function,
            self.start[self.free],
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip(lower[self.free], upper[self.free], strict=True)),
            options={
                "maxcor": settings.history,
                "ftol": settings.objective_tolerance,
                "gtol": settings.gradient_tolerance,
                "maxfun": self.phase.max_evaluations,
                "maxiter": 10 * self.phase.max_evaluations,
                "maxls": 30,
            },
        )
        assert self.best is not None
        return PhaseResult(
            self.phase.name,
            str(found.message),
            bool(found.success),
            first.value,
            self.best.value,
            self.index - self.first_index,
        )
