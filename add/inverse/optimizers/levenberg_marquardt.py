"""Gauss-Newton with Levenberg's damping for sums of squares: few evaluations, also for thousands of unknowns."""

import time
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from add.errors import SolverError
from add.inverse.experiment import Residuals
from add.inverse.optimizers.phases import LoggedEvaluation, PhasedOptimizer, PhaseResult, PhaseRun
from add.linalg import one_blas_thread
from add.typing import BoolArray, FloatArray

#: A step this small beside x (a typical change where x is zero) is round-off.
SMALLEST_STEP = 1e-13
#: A step that lowers the objective by less than this part creeps.
SLOW = 0.1
#: Accepted steps, one back on the other, that leave the objective equal to this part: they jump between two ends.
JUMPS, EQUAL = 6, 1e-8
#: Part of the objective that slopes promise and no step keeps, from which on the end is no minimum.
UNKEPT = 0.01


@final
@dataclass(frozen=True)
class LevenbergMarquardt(PhasedOptimizer):
    """Minimises rho(x) . rho(x) by steps (J^T J + damping I) s = -J^T rho within bounds.

    The damping follows the gain, the actual over the predicted decrease (Nielsen 1999): it falls to a third after a
    good step and grows ever faster over bad ones. It is measured in x, whose unit is the parameters' `scale`, and not
    against the diagonal of J^T J: the coefficients of a control that act late hardly move the result, and would be
    thrown about. A trial costs one simulation; only a point that is accepted is differentiated.

    Through an impact the objective is smooth only from far. Which step touches first, and how deep, gives it a kink for
    every length v dt that the start moves: between two kinks the slope is exact and good for that length alone. A few
    steps that fail there raise the damping until the model is good again, by steps shorter than a kink is wide; a
    parameter that hardly bends the objective, as a restitution beside the start of a toss, is then held fast for good,
    for such steps gain half of what they promise and never lower the damping. Hence the *light step*: after a step that
    crept under more than the starting damping, one with the starting damping is tried, whose model looks across the
    kinks. If it fails, it has cost one simulation, the damping is what it was, and twice as many creeping steps pass
    before the next. A small decrease under heavy damping does not end the phase before a light step has failed.

    Variables on a bound that the slope holds there stay, and a step that would cross a bound ends on it, with the
    others solved for again. A simulation that fails counts as a bad step.

    Attributes
    ----------
    phases : tuple of Phase
    damping : float
        At the start of a phase, relative to the largest diagonal entry of J^T J.
    gradient_tolerance, objective_tolerance : float
        On the objective over its value at the start of the phase; zero switches a rule off.
    starts : Starts

    Notes
    -----
    SciPy's `least_squares` takes an SVD of the augmented Jacobian a step, or LSMR, and cannot be resumed. With 2300
    unknowns a step took it 12 s and 2.5 s on one core; the normal equations take 0.6 s. They square the condition
    number, which the damping bounds.
    """

    damping: float = 1e-3
    gradient_tolerance: float = 1e-8
    objective_tolerance: float = 1e-12

    #: It asks for the runs themselves, which it differentiates forward.
    shares_experiments: ClassVar[bool] = False

    def minimise(self, run: PhaseRun) -> PhaseResult:
        """Minimise one phase; see `PhasedOptimizer.minimise`."""
        with one_blas_thread():
            return _Descent(self, run).minimise()


class _Descent:
    """One phase in progress: the accepted point with its derivatives, and the damping."""

    def __init__(self, settings: LevenbergMarquardt, run: PhaseRun) -> None:
        self.settings, self.run = settings, run
        self.growth, self.backward = 2.0, True
        self.wait, self.pause, self.refused = 1, 1, False
        self.last_decrease: float | None = None
        self.path: list[tuple[FloatArray, float]] = []
        known = run.log.earlier(run.phase.name, run.index, run.start)
        if known:
            self._resume(known)
        else:
            self._begin()

    def _begin(self) -> None:
        run, begin = self.run, time.perf_counter()
        try:
            point = self._residuals(run.start)
            self._differentiate(point)
        except SolverError as error:
            run.failed(error)
            raise
        self.start_value = point.value
        self.damping = self.starting_damping
        self._store(point.x, point.value, begin, accepted=True)

    def _resume(self, known: list[LoggedEvaluation]) -> None:
        """Go on from the last accepted point, which is made again and compared with the log."""
        self.start_value = known[0].value
        accepted = []
        for evaluation in known:
            self.run.note(evaluation)
            if evaluation.memory[0]:
                accepted.append(evaluation)
        _, self.damping, self.growth, *light = known[-1].memory
        if light:  # runs of before had no light steps
            self.wait, self.pause, self.refused = int(light[0]), int(light[1]), bool(light[2])
        failed = next(k for k, evaluation in enumerate(reversed(known)) if evaluation.memory[0])
        if len(accepted) > 1 and failed <= self.refused:  # a light step that failed says nothing of the last one
            self.last_decrease = accepted[-2].value - accepted[-1].value
        self.path = [(item.x[self.run.free], item.value) for item in accepted[-JUMPS - 2 : -1]]
        last = accepted[-1]
        point = self._residuals(last.x)
        self._differentiate(point)
        gradient = self._whole_gradient()
        self.run.log.store(
            LoggedEvaluation(last.phase, last.index, last.x, point.value, gradient, last.seconds, last.memory)
        )

    def _residuals(self, x: FloatArray) -> Residuals:
        return self.run.problem.residuals(x, window=self.run.phase.window, observers=self.run.observers)

    def _differentiate(self, point: Residuals) -> None:
        self.run.require_finite(point.value)
        normal = self.run.problem.normal_equations(point, self.run.free, backward=self.backward)
        self.backward = normal.backward  # what did not pay once is not tried again
        self.run.require_finite(point.value, normal.slope, np.array(normal.largest))
        self.x, self.value, self.normal = point.x[self.run.free], point.value, normal
        self.path = [*self.path[-JUMPS - 1 :], (self.x, self.value)]

    @property
    def slope(self) -> FloatArray:
        """J^T rho."""
        return self.normal.slope

    def _whole_gradient(self) -> FloatArray:
        gradient = np.zeros_like(self.run.start)
        gradient[self.run.free] = 2.0 * self.slope
        return gradient

    def _store(self, x: FloatArray, value: float, begin: float, *, accepted: bool) -> None:
        run = self.run
        gradient = self._whole_gradient() if accepted else np.zeros(0)
        memory = (float(accepted), self.damping, self.growth, float(self.wait), float(self.pause), float(self.refused))
        seconds = time.perf_counter() - begin
        evaluation = LoggedEvaluation(run.phase.name, run.index, x.copy(), value, gradient, seconds, memory)
        run.log.store(evaluation)
        run.note(evaluation)

    @property
    def held(self) -> BoolArray:
        """Variables on a bound, with a slope that would push them through it."""
        run = self.run
        return ((self.x <= run.lower) & (self.slope > 0.0)) | ((self.x >= run.upper) & (self.slope < 0.0))

    def minimise(self) -> PhaseResult:
        """Step until a rule ends it."""
        status, success = None, True
        while status is None:
            scale = self.start_value or 1.0
            least = self.settings.objective_tolerance * scale
            small = self.last_decrease is not None and self.last_decrease <= least
            may_be_light = self.damping > self.starting_damping and not self.refused
            if 2.0 * np.abs(self.slope[~self.held]).max(initial=0.0) <= self.settings.gradient_tolerance * scale:
                status = "the projected gradient is below its tolerance"
            elif small and not may_be_light:
                status = "the decrease is below its tolerance"
            elif self._jumps:
                status, success = (
                    "steps jump between two ends of equal objective, as where an impact falls into one step or the "
                    "next: a larger optimizer.damping, or smaller time.dt, leads between them",
                    False,
                )
            elif self.run.evaluations >= self.run.phase.max_evaluations:
                status, success = "the limit of evaluations is reached", False
            else:
                kept = self.damping
                step, predicted = self._step()
                light = may_be_light and (self.wait <= 0 or small or predicted <= least)
                if light:
                    self.damping = self.starting_damping
                    step, predicted = self._step()
                if predicted <= least:
                    status, success = self._small_step(least)
                elif np.all(np.abs(step) <= SMALLEST_STEP * np.maximum(np.abs(self.x), 1.0)):
                    status = "the step is round-off"
                else:
                    self._try(step, predicted, kept if light else None)
        return self.run.result(status, success, self.start_value)

    @property
    def _jumps(self) -> bool:
        """Whether each of the last accepted steps led back over the one before, and none changed the objective."""
        if len(self.path) < JUMPS + 1:
            return False
        places = np.array([x for x, _ in self.path[-JUMPS - 1 :]])
        values = np.array([value for _, value in self.path[-JUMPS - 1 :]])
        steps = np.diff(places, axis=0)
        back = np.einsum("ki,ki->k", steps[1:], steps[:-1])
        length = np.linalg.norm(steps, axis=1)
        return bool(
            (back < -0.9 * length[1:] * length[:-1]).all()
            and length.min() > 0.5 * length.max()
            and np.abs(np.diff(values)).max() <= EQUAL * np.abs(values).max()
        )

    def _small_step(self, least: float) -> tuple[str, bool]:
        """Say whether a step is short since little is left, or since none of those tried led down.

        Refused steps make the next ones shorter, until what they promise is below any tolerance: where the objective
        jumps, that is no minimum.
        """
        refused, kept = self.growth > 2.0, (self.damping, self.growth)
        self.damping = min(self.damping, self.starting_damping)
        promised = self._step()[1] if refused else 0.0
        self.damping, self.growth = kept
        if promised <= max(least, UNKEPT * self.value):
            return "the predicted decrease is below its tolerance", True
        return (
            f"no step leads down, though the slopes promise {promised / self.value:.1%} of the objective: it jumps, as "
            "where an impact moves from one step to the next, or its slopes are of another branch; smaller time.dt "
            "leads on",
            False,
        )

    @property
    def starting_damping(self) -> float:
        """The damping of a phase that starts here."""
        return self.settings.damping * (self.normal.largest or 1.0)

    def _try(self, step: FloatArray, predicted: float, kept: float | None) -> None:
        """Simulate at the end of a step and accept it if the objective fell.

        Parameters
        ----------
        step, predicted : from `_step`
        kept : float or None
            Of a light step: the damping to which one that fails goes back.
        """
        run, begin = self.run, time.perf_counter()
        # A step that ends on a bound is to end there to the last bit: that is how a held variable is known.
        x_free = np.where(step <= run.lower - self.x, run.lower, self.x + step)
        x = run.whole(np.where(step >= run.upper - self.x, run.upper, x_free))
        value, decrease = np.inf, -np.inf
        try:
            point = self._residuals(x)
            value, decrease = point.value, self.value - point.value
            if decrease > 0.0:
                self._differentiate(point)
        except SolverError as error:
            run.failed(error)
            value, decrease = np.inf, -np.inf
        if decrease > 0.0:
            self.last_decrease = decrease
            self.damping *= max(1.0 / 3.0, 1.0 - (2.0 * decrease / predicted - 1.0) ** 3)
            self.growth = 2.0
            self.refused = False
            if kept is not None:
                self.wait = self.pause = 1
            elif decrease < SLOW * (value + decrease):
                self.wait -= 1
        elif kept is not None:
            self.damping, self.refused = kept, True
            self.pause *= 2
            self.wait = self.pause
        else:
            self.last_decrease = None
            self._grow()
        self._store(x, value, begin, accepted=decrease > 0.0)

    def _grow(self) -> None:
        self.damping *= self.growth
        self.growth *= 2.0

    def _step(self) -> tuple[FloatArray, float]:
        """Return the step and the decrease that it promises; round-off in the solve is met with more damping."""
        while np.isfinite(self.damping):
            step = self._damped()
            if step is not None:
                predicted = -float(step @ (2.0 * self.slope + self.normal.product(step)))
                if predicted > 0.0 or not step.any():
                    return step, predicted
            self._grow()
        return np.zeros_like(self.x), 0.0

    def _damped(self) -> FloatArray | None:
        """Return the minimiser of the damped model within the bounds, found by adding bounds that it would cross."""
        lower, upper = self.run.lower - self.x, self.run.upper - self.x
        step, free = np.zeros_like(self.x), ~self.held
        while free.any():
            step[free] = 0.0
            change = self.normal.solve(free, self.damping, -(self.slope + self.normal.product(step)))
            if change is None:
                return None
            step[free] = change[free]
            crossed = free & ((step < lower) | (step > upper))
            if not crossed.any():
                break
            step[crossed] = np.clip(step[crossed], lower[crossed], upper[crossed])
            free &= ~crossed
        return step
