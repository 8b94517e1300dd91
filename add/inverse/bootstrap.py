"""Bootstrap of a fit over its takes, or over stretches of time where there are few."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from add.inverse.problem import InverseProblem
from add.inverse.uncertainty import Uncertainty
from add.typing import FloatArray, IntArray

__all__ = ["Bootstrap", "bootstrap"]

#: From this number of takes on, takes are drawn.
FEWEST_TAKES = 4


@final
@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Spread of the estimates over draws of blocks with replacement.

    Attributes
    ----------
    over : "takes", or "stretches of time"
    blocks : number of blocks that are drawn from
    standard_errors, lower, upper : (n,)
        Of the physical values: standard deviation, 2.5 % and 97.5 % of the draws.
    values : (draws, n)
        The estimates; NaN for what the data do not see.
    """

    over: str
    blocks: int
    standard_errors: FloatArray
    lower: FloatArray
    upper: FloatArray
    values: FloatArray


def bootstrap(problem: InverseProblem, x: FloatArray, found: Uncertainty, draws: int, seed: int = 0) -> Bootstrap:
    """Return the bootstrap of a fit, each draw fitted by one step of Gauss-Newton (Davison and Hinkley 1997, ch. 2, 8).

    Whole takes are drawn where there are four or more, else stretches that are twice as long as residuals hang
    together. A draw's estimate is x - (sum w_b H_b)^+ sum w_b J_b^T rho_b with the number w_b of times that block b was
    drawn: it costs no run.
    """
    normals, slopes = [], []
    by_takes = len(found.rows) >= FEWEST_TAKES
    for rows, looked in zip(found.rows, found.correlations, strict=True):
        length = rows.frame.max(initial=0) + 1 if by_takes else max(1, round(2.0 * looked.time))
        block: IntArray = (rows.frame - rows.frame.min(initial=0)) // length
        for number in np.unique(block):
            part = rows.slopes[block == number]
            normals.append(part.T @ part)
            slopes.append(part.T @ rows.residual[block == number])
    h, g = np.array(normals), np.array(slopes)
    generator = np.random.default_rng(seed)
    lower, upper = problem.bounds
    values = []
    for _ in range(draws):
        weight = np.bincount(generator.integers(0, len(h), len(h)), minlength=len(h)).astype(float)
        step = np.linalg.pinv(np.tensordot(weight, h, 1), rcond=1e-12, hermitian=True) @ (weight @ g)
        values.append(problem.values(np.clip(x - step, lower, upper)))
    drawn = np.array(values)
    drawn[:, np.isnan(found.noise)] = np.nan
    low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
    over = "takes" if by_takes else "stretches of time"
    return Bootstrap(over, len(h), drawn.std(axis=0, ddof=1), low, high, drawn)
