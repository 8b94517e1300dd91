"""CMA-ES on an inverse problem, within its bounds: what it has found after so many runs and seconds."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from add.errors import SolverError
from add.inverse import InverseProblem
from add.typing import FloatArray


class Search(NamedTuple):
    """The best value after each run, and the processor seconds until then; the best x."""

    best: FloatArray
    seconds: FloatArray
    x: FloatArray


def search(
    problem: InverseProblem, spread: float, most: int, target: float, seed: int = 1, *, diagonal: bool = False
) -> Search | None:
    """Return what CMA-ES finds from the problem's start, None without the package `cma`.

    Parameters
    ----------
    problem : InverseProblem
    spread : float
        Standard deviation of the first samples, in units of x.
    most : int
        Runs.
    target : float
        It ends at a value below.
    seed : int
    diagonal : bool
        Whether the covariance is: for thousands of numbers.
    """
    try:
        import cma
    except ImportError:
        return None
    lower, upper = problem.bounds
    bounds = [[side if np.isfinite(side) else None for side in sides] for sides in (lower, upper)]
    options = {
        "bounds": bounds,
        "maxfevals": most,
        "seed": seed,
        "verbose": -9,
        "ftarget": target,
        "tolfun": 0.0,
        "CMA_diagonal": diagonal,
    }
    values, seconds, begin = list[float](), list[float](), time.process_time()

    def objective(x: FloatArray) -> float:
        try:
            value = problem.value(np.asarray(x))[0]
        except SolverError:
            value = float("inf")
        values.append(value)
        seconds.append(time.process_time() - begin)
        return value

    found, _ = cma.fmin2(objective, list(problem.x0), spread, options)
    return Search(np.minimum.accumulate(values), np.array(seconds), np.asarray(found))
