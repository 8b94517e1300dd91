"""L-BFGS-B over the phases of an optimisation."""

from dataclasses import dataclass
from typing import final

import numpy as np

from add.inverse.optimizers.phases import Phase, PhasedOptimizer, PhaseResult, PhaseRun, with_gradient
from add.inverse.optimizers.starts import ONE_START, Starts
from add.typing import FloatArray


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

    phases: tuple[Phase, ...]
    history: int = 10
    gradient_tolerance: float = 1e-8
    objective_tolerance: float = 1e-12
    starts: Starts = ONE_START

    @property
    def shares_experiments(self) -> bool:
        """It asks for values and gradients."""
        return True

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

        found = minimize(
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
        return run.result(_ended(str(found.message)), bool(found.success), first.value)


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
    found = with_gradient(run, run.whole(x_free))
    assert run.best is not None
    if np.isfinite(found.value):
        return found.value / scale, found.gradient[run.free] / scale
    away = x_free - run.best.x[run.free]
    distance = float(np.linalg.norm(away)) or 1.0
    height = 10.0 * abs(run.best.value) / scale + 1.0
    return height, height * away / distance**2
