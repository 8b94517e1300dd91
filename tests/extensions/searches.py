"""An optimiser of its own: steps against the gradient, as long as the last two gradients say."""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np

from add.extensions import OptimizerExtension, Positive
from add.inverse.optimizers.phases import PhasedOptimizer, with_gradient


@final
@dataclass(frozen=True)
class SpectralGradient(PhasedOptimizer):
    """x <- x - g s.s/(s.y), s and y the last changes of x and g (Barzilai and Borwein 1988)."""

    first: float = 0.1
    shares_experiments: ClassVar[bool] = True

    def minimise(self, run):
        """Descend until the evaluations are used up or the gradient is small."""
        evaluation = with_gradient(run, run.start)
        start, x, g = evaluation.value, run.start[run.free], evaluation.gradient[run.free]
        length = self.first / np.abs(g).max()
        for _ in range(run.phase.max_evaluations - 1):
            new_x = np.clip(x - length * g, run.lower, run.upper)
            new_g = with_gradient(run, run.whole(new_x)).gradient[run.free]
            s, y = new_x - x, new_g - g
            length = s @ s / abs(s @ y) if s @ y else self.first
            x, g = new_x, new_g
            if np.abs(g).max() <= 1e-9 * start:
                return run.result("the gradient is small", True, start)
        return run.result("the evaluations are used up", True, start)


class SpectralSearch(OptimizerExtension):
    """Barzilai and Borwein's method.

    Attributes
    ----------
    first : length of the first step, in the scaled parameters
    """

    type: Literal["spectral-gradient"] = "spectral-gradient"
    first: Positive = 0.1

    def optimizer(self, phases, starts):
        """Return the optimiser."""
        return SpectralGradient(phases, self.first, starts=starts)
