"""Descent along the gradient with momentum, Adam and L-BFGS-B: for objectives that are rough, and for smooth ones."""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np

from add.inverse.optimizers.phases import PhasedOptimizer, PhaseResult, PhaseRun, with_gradient
from add.typing import FloatArray


@final
@dataclass(frozen=True)
class RateSchedule:
    """The rate of evaluation k: rate * decay^floor(k / every).

    Attributes
    ----------
    rate : float
        In x, whose unit is the parameters' scale [-].
    decay : float
        One: the rate stays.
    every : int
    """

    rate: float
    decay: float = 1.0
    every: int = 1

    def __call__(self, k: int) -> float:
        """Return the rate of evaluation k of a phase, from 0."""
        return float(self.rate * self.decay ** (k // self.every))


@dataclass(frozen=True)
class _Descent(PhasedOptimizer):
    """Steps against the gradient, each from one evaluation, without a line search.

    The objective is divided by its value at the start of each phase. A step that leaves the bounds ends on them. After
    a simulation that failed the way goes on half way back to the best point, at rest. What is returned is the best
    point that was met.

    Attributes
    ----------
    phases : tuple of Phase
    schedule : RateSchedule
    gradient_tolerance : float
        On the scaled objective; zero switches the rule off.
    starts : Starts
    """

    schedule: RateSchedule
    gradient_tolerance: float = field(default=0.0, kw_only=True)

    #: It asks for values and gradients.
    shares_experiments: ClassVar[bool] = True

    @abstractmethod
    def direction(self, gradient: FloatArray, memory: tuple[FloatArray, ...], k: int) -> tuple[FloatArray, Any]:
        """Return the step for the rate one, and the memory of the next; ``memory`` is empty after a start at rest."""

    @final
    def minimise(self, run: PhaseRun) -> PhaseResult:
        """Descend until the projected gradient is small or the evaluations are used up."""
        x, memory, rested = run.start[run.free], (), 0
        first: float | None = None
        for k in range(run.phase.max_evaluations):
            evaluation = with_gradient(run, run.whole(x))
            assert run.best is not None
            if not np.isfinite(evaluation.value):
                x, memory, rested = 0.5 * (x + run.best.x[run.free]), (), k + 1
                continue
            first = evaluation.value if first is None else first
            gradient = evaluation.gradient[run.free] / (abs(first) or 1.0)
            projected = x - np.clip(x - gradient, run.lower, run.upper)
            if np.abs(projected).max(initial=0.0) <= self.gradient_tolerance:
                return run.result("the projected gradient is small", True, first)
            step, memory = self.direction(gradient, memory, k - rested)
            x = np.clip(x + self.schedule(k) * step, run.lower, run.upper)
        assert first is not None
        return run.result("the evaluations are used up", True, first)


@final
@dataclass(frozen=True)
class GradientDescent(_Descent):
    """m <- momentum m + g, x <- x - rate m (heavy ball; Polyak 1964).

    Attributes
    ----------
    momentum : float
        In [0, 1).
    """

    momentum: float = 0.9

    def direction(self, gradient: FloatArray, memory: tuple[FloatArray, ...], k: int) -> tuple[FloatArray, Any]:
        """Return the step of the heavy ball."""
        m = gradient + self.momentum * memory[0] if memory else gradient
        return -m, (m,)


@final
@dataclass(frozen=True)
class Adam(_Descent):
    """Steps by running means of the gradient and its square (Kingma and Ba 2015), both corrected for their start.

    m <- beta1 m + (1 - beta1) g,  s <- beta2 s + (1 - beta2) g^2,  x <- x - rate m_hat / (sqrt(s_hat) + epsilon)

    A rate of the schedule is about the length of a step in each variable.

    Attributes
    ----------
    beta1, beta2 : float
        In [0, 1).
    epsilon : float
    """

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def direction(self, gradient: FloatArray, memory: tuple[FloatArray, ...], k: int) -> tuple[FloatArray, Any]:
        """Return Adam's step."""
        m, s = memory if memory else (np.zeros_like(gradient), np.zeros_like(gradient))
        m = self.beta1 * m + (1.0 - self.beta1) * gradient
        s = self.beta2 * s + (1.0 - self.beta2) * gradient**2
        m_hat, s_hat = m / (1.0 - self.beta1 ** (k + 1)), s / (1.0 - self.beta2 ** (k + 1))
        return -m_hat / (np.sqrt(s_hat) + self.epsilon), (m, s)


# --- L-BFGS-B over the phases of an optimisation ----------------------------------------------------------------------


@final
@dataclass(frozen=True)
class LBFGSB(PhasedOptimizer):
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
    starts : Starts
    """

    history: int = 10
    gradient_tolerance: float = 1e-8
    objective_tolerance: float = 1e-12

    #: It asks for values and gradients.
    shares_experiments: ClassVar[bool] = True

    def minimise(self, run: PhaseRun) -> PhaseResult:
        """Run L-BFGS-B; the best evaluation is kept whatever ends it."""
        first = with_gradient(run, run.start)
        scale = abs(first.value) or 1.0
        from scipy.optimize import minimize

        # SciPy asks for the start again: the answer is known.
        pending = [first]

        def function(x_free: FloatArray) -> tuple[float, FloatArray]:
            if pending:
                known = pending.pop()
                if np.array_equal(known.x[run.free], x_free):
                    return known.value / scale, known.gradient[run.free] / scale
            return _scaled(run, x_free, scale)

        end = minimize(
            function,
            run.start[run.free],
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip(run.lower, run.upper, strict=True)),
            options={
                "maxcor": self.history,
                "ftol": self.objective_tolerance,
                "gtol": self.gradient_tolerance,
                "maxfun": run.phase.max_evaluations,
                "maxiter": 10 * run.phase.max_evaluations,
                "maxls": 30,
            },
        )
        return run.result(_ended(str(end.message)), bool(end.success), first.value)


#: Parts of what L-BFGS-B says, in any of its versions -> how it ended.
_ENDS = {
    "PROJECTED": "the projected gradient is below its tolerance",
    "REDUCTION": "the decrease is below its tolerance",
    "EXCEEDS": "the limit of evaluations is reached",
    "LIMIT": "the limit of evaluations is reached",
    "ABNORMAL": "the line search finds no lower point along the gradient: round-off, or a kink such as an impact's",
}


def _ended(message: str) -> str:
    """Return how L-BFGS-B ended, in the words of the other optimisers."""
    said = message.upper()
    return next((text for part, text in _ENDS.items() if part in said), f"L-BFGS-B ended: {message.lower()}")


def _scaled(run: PhaseRun, x_free: FloatArray, scale: float) -> tuple[float, FloatArray]:
    """Return the scaled objective and gradient of the free variables."""
    evaluation = with_gradient(run, run.whole(x_free))
    assert run.best is not None
    if np.isfinite(evaluation.value):
        return evaluation.value / scale, evaluation.gradient[run.free] / scale
    away = x_free - run.best.x[run.free]
    distance = float(np.linalg.norm(away)) or 1.0
    height = 10.0 * abs(run.best.value) / scale + 1.0
    return height, height * away / distance**2
