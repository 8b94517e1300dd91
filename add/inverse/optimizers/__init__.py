"""Optimisers of inverse problems, one file each; several starts of one optimisation."""

from dataclasses import dataclass
from typing import final

import numpy as np

from add.inverse.problem import InverseProblem
from add.typing import FloatArray


@final
@dataclass(frozen=True)
class Starts:
    """Points from which an optimiser begins: the given one, and others drawn evenly.

    A variable with both bounds is drawn between them, another one within ``spread`` of the given point; both in x, the
    transformed parameter over its scale.

    Attributes
    ----------
    count : int
        With the given one.
    seed : int
    spread : float
        [-]
    keep : int or None
        How many the optimiser goes on from, those whose objective is lowest; None for all, without asking.
    """

    count: int = 1
    seed: int = 0
    spread: float = 1.0
    keep: int | None = None

    def points(self, problem: InverseProblem, x0: FloatArray) -> list[FloatArray]:
        """Return the points (n,), the given one first."""
        lower, upper = problem.bounds
        bounded = np.isfinite(lower) & np.isfinite(upper)
        low = np.where(bounded, lower, np.maximum(x0 - self.spread, lower))
        high = np.where(bounded, upper, np.minimum(x0 + self.spread, upper))
        rng = np.random.default_rng(self.seed)
        return [x0, *(rng.uniform(low, high) for _ in range(self.count - 1))]

    @property
    def chosen(self) -> bool:
        """Whether some of the points are left out."""
        return self.keep is not None and self.keep < self.count


#: The given point alone.
ONE_START = Starts()
