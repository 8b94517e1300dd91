"""Optimisation in phases, with a log from which an interrupted run goes on bit-equal; numbers that phases set."""

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from add.adjoint import Schedule
from add.errors import SolverError
from add.inverse.optimizers import ONE_START, Starts
from add.inverse.problem import InverseProblem, Optimizer
from add.simulation.run import Observer
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class NumberOverride:
    """Values that take the place of some numbers of one experiment's scene.

    Attributes
    ----------
    experiment : str
    index : (k,)
        Places in the scene's numbers; none of them belongs to a parameter.
    values : (k,)
        In the units of the numbers.
    """

    experiment: str
    index: IntArray
    values: FloatArray


def with_overrides(problem: InverseProblem, overrides: tuple[NumberOverride, ...]) -> InverseProblem:
    """Return the problem with other numbers: theta changes, and nothing is built again.

    The ties of theta to the numbers hold, so that a stick stiffness that follows from the normal stiffness follows.
    """
    if not overrides:
        return problem
    numbers = {experiment.name: experiment.numbers.copy() for experiment in problem.experiments}
    for item in (one for one in overrides if one.experiment in numbers):
        numbers[item.experiment][item.index] = item.values
    return replace(problem, experiments=tuple(replace(e, numbers=numbers[e.name]) for e in problem.experiments))


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
        The whole design vector; the gradient of variables that the phase holds is zero. Empty where the optimiser
        asked for the value alone.
    value : float
        Infinite where the simulation failed.
    seconds : float
    memory : tuple of float
        What the optimiser knew after it, besides; a resumed run starts from there.
    """

    phase: str
    index: int
    x: FloatArray
    value: float
    gradient: FloatArray
    seconds: float
    memory: tuple[float, ...] = ()


class EvaluationLog(ABC):
    """A store of evaluations, which a run that was killed replays."""

    @abstractmethod
    def lookup(self, phase: str, index: int, x: FloatArray, *, alone: bool = False) -> LoggedEvaluation | None:
        """Return evaluation number ``index`` if it was made before at the same x, bit by bit.

        ``alone`` : whether it is of the value alone, without a gradient.
        """

    @abstractmethod
    def earlier(self, phase: str, index: int, x: FloatArray) -> list[LoggedEvaluation]:
        """Return all evaluations of a phase that were made before, which began with number ``index`` at ``x``."""

    @abstractmethod
    def store(self, evaluation: LoggedEvaluation) -> None:
        """Keep an evaluation; it must survive a kill when this returns. One kept before is compared with it."""


@final
class MemoryLog(EvaluationLog):
    """Keeps evaluations in memory only."""

    def __init__(self) -> None:
        self.evaluations: list[LoggedEvaluation] = []

    def lookup(self, phase: str, index: int, x: FloatArray, *, alone: bool = False) -> LoggedEvaluation | None:
        """Return nothing: there is no earlier run."""
        return None

    def earlier(self, phase: str, index: int, x: FloatArray) -> list[LoggedEvaluation]:
        """Return nothing: there is no earlier run."""
        return []

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
    window : (start, stop), optional
        Simulation times that count in every experiment [s]; None: the whole run of each.
    max_evaluations : int
    overrides : tuple of NumberOverride
        Numbers of the scene that are others during this phase.
    """

    name: str
    parameters: tuple[str, ...] | None
    window: tuple[float, float] | None
    max_evaluations: int
    overrides: tuple[NumberOverride, ...] = ()


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
    value, gradient : float, (n,)
        Of the last phase: of its window, and with its overrides.
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


class PhaseRun:
    """One phase in progress: what its optimiser asks and what is noted.

    Attributes
    ----------
    problem : InverseProblem
        With the phase's overrides.
    phase : Phase
    start : (n,)
    free : indices of the variables that the phase changes
    lower, upper : (n_free,) bounds of those
    best : LoggedEvaluation or None
    index : int
        Number of the next evaluation, over all phases.
    """

    def __init__(
        self,
        problem: InverseProblem,
        phase: Phase,
        x: FloatArray,
        log: EvaluationLog,
        index: int,
        progress: Progress | None,
        schedule: Schedule | None,
        observers: tuple[Observer, ...],
    ) -> None:
        self.problem, self.phase, self.log = with_overrides(problem, phase.overrides), phase, log
        self.start, self.index, self.first_index = x, index, index
        self.progress, self.schedule, self.observers = progress, schedule, observers
        self.free = problem.index_of(phase.parameters)
        lower, upper = problem.bounds
        self.lower, self.upper = lower[self.free], upper[self.free]
        self.best: LoggedEvaluation | None = None

    @property
    def evaluations(self) -> int:
        """Number of evaluations so far."""
        return self.index - self.first_index

    def whole(self, x_free: FloatArray) -> FloatArray:
        """Return the whole vector."""
        x = self.start.copy()
        x[self.free] = x_free
        return x

    def failed(self, error: SolverError) -> None:
        """Note that a simulation failed; at the very first point of a phase there is nowhere to go back to."""
        if self.best is None:
            raise error
        _log.warning("evaluation %d: %s", self.index, error)

    def require_finite(self, value: float, *derivatives: FloatArray) -> None:
        """Take an objective, or derivatives, that are not finite for a simulation that failed.

        Raises
        ------
        SolverError
            If they are not finite: there is nothing to descend on.
        """
        if not np.isfinite(value):
            raise SolverError(f"the objective is not finite ({value}): look at targets, weights and units")
        if not all(np.isfinite(part).all() for part in derivatives):
            raise SolverError(f"the gradient of the objective, which is {value:g}, is not finite")

    def note(self, evaluation: LoggedEvaluation) -> None:
        """Count an evaluation, and keep it if it is the best."""
        self.index += 1
        better = self.best is None or evaluation.value < self.best.value
        if better:
            self.best = evaluation
        if self.progress:
            self.progress(evaluation, better)

    def result(self, status: str, success: bool, start: float) -> PhaseResult:
        """Return how the phase ended."""
        assert self.best is not None
        return PhaseResult(self.phase.name, status, success, start, self.best.value, self.evaluations)


@dataclass(frozen=True)
class PhasedOptimizer(Optimizer):
    """An optimiser that goes through phases, each from the best point of the one before, from one start or several."""

    phases: tuple[Phase, ...]
    starts: Starts = field(default=ONE_START, kw_only=True)

    @abstractmethod
    def minimise(self, run: PhaseRun) -> PhaseResult:
        """Minimise one phase; the best evaluation stays in ``run`` whatever ends it."""

    @final
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
        """Minimise; with several `starts`, from each in turn, and return the one that ends lowest.

        Where only some of the starts are kept, each is simulated once before, as the first phase sees it.

        Parameters
        ----------
        problem : InverseProblem
        x0 : (n,), optional
            Default: the problem's start.
        log : EvaluationLog, optional
        progress : called after every evaluation
        schedule : Schedule, optional
            Of the reverse sweep.
        observers : called after every simulation step

        Raises
        ------
        SolverError
            If the simulation fails at the start of a phase.
        """
        begin = time.perf_counter()
        x = problem.x0 if x0 is None else np.asarray(x0, dtype=float)
        x = np.clip(x, *problem.bounds)
        log = log or MemoryLog()
        starts = self.starts.points(problem, x)
        index = 0
        if self.starts.chosen:
            first = replace(self.phases[0], name=f"{self.phases[0].name} (starts)")
            screen = PhaseRun(problem, first, x, log, 0, progress, schedule, observers)
            starts, index = lowest(screen, starts, self.starts.keep or 1), screen.index
        lowest_start: tuple[LoggedEvaluation, list[PhaseResult]] | None = None
        for number, start in enumerate(starts):
            results = []
            best, x = None, start
            try:
                for phase in self.phases:
                    if number:  # the log tells the starts apart by the names of their phases
                        phase = replace(phase, name=f"{phase.name} (start {number + 1})")
                    run = PhaseRun(problem, phase, x, log, index, progress, schedule, observers)
                    results.append(self.minimise(run))
                    best = run.best
                    assert best is not None
                    x, index = best.x, run.index
            except SolverError as error:
                if not number:
                    raise
                _log.warning("start %d of %d: %s", number + 1, len(starts), error)
                index = run.index
                continue
            assert best is not None
            if lowest_start is None or best.value < lowest_start[0].value:
                lowest_start = best, results
        assert lowest_start is not None
        best, results = lowest_start
        seconds = time.perf_counter() - begin
        return OptimizationResult(best.x, best.value, best.gradient, tuple(results), index, seconds)


def with_gradient(run: PhaseRun, x: FloatArray) -> LoggedEvaluation:
    """Return value and gradient at the whole vector x, from the log if they are there."""
    evaluation = run.log.lookup(run.phase.name, run.index, x)
    if evaluation is None:
        begin = time.perf_counter()
        gradient = np.zeros_like(x)
        try:
            value, full = run.problem.value_and_grad(
                x, window=run.phase.window, schedule=run.schedule, observers=run.observers
            )
            run.require_finite(value, full[run.free])
            gradient[run.free] = full[run.free]
        except SolverError as error:
            run.failed(error)
            value = np.inf
        seconds = time.perf_counter() - begin
        evaluation = LoggedEvaluation(run.phase.name, run.index, x.copy(), float(value), gradient, seconds)
        run.log.store(evaluation)
    run.note(evaluation)
    return evaluation


def lowest(run: PhaseRun, points: list[FloatArray], n: int) -> list[FloatArray]:
    """Return the ``n`` points with the lowest objective, the lowest first.

    Raises
    ------
    SolverError
        If the simulation fails at every point: that of the first one.
    """
    values: list[float] = []
    failure: SolverError | None = None
    for x in points:
        evaluation = run.log.lookup(run.phase.name, run.index, x, alone=True)
        if evaluation is None:
            begin, value = time.perf_counter(), np.inf
            try:
                there = float(run.problem.value(x, window=run.phase.window, observers=run.observers)[0])
                run.require_finite(there)
                value = there
            except SolverError as error:
                _log.warning("start %d of %d: %s", len(values) + 1, len(points), error)
                failure = failure or error
            seconds = time.perf_counter() - begin
            evaluation = LoggedEvaluation(run.phase.name, run.index, x.copy(), value, np.zeros(0), seconds)
            run.log.store(evaluation)
        run.note(evaluation)
        values.append(evaluation.value)
    if failure is not None and not np.isfinite(values).any():
        raise failure
    # A start that failed has nothing to offer, though fewer than `n` are left.
    order = [k for k in np.argsort(values, kind="stable") if np.isfinite(values[k])]
    return [points[k] for k in order[:n]]
