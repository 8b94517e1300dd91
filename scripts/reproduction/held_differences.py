"""Gradients of runs beside central differences with every contact decision held, as `add check --gradient` has them."""

from __future__ import annotations

import numpy as np

from add.errors import SolverError
from add.inverse import InverseProblem
from add.typing import FloatArray


def gradient_error(
    problem: InverseProblem, x: FloatArray, steps: tuple[float, ...] = (1e-3, 1e-4, 1e-5, 1e-6)
) -> float:
    """Return the largest error of the gradient at x over its norm, by the best of a few differences an entry.

    Newton's tolerance should be tight: differences of runs see it as noise. A difference that held decisions make
    impossible does not count; the error is infinite where all do.
    """
    gradient = problem.value_and_grad(x)[1]
    replay = {name: run.replay for name, run in problem.value(x)[1].items()}
    worst = 0.0
    for k, exact in enumerate(gradient):
        unit = np.zeros_like(x)
        unit[k] = 1.0
        best = np.inf
        for h in steps:
            try:
                ends = [problem.value(x + sign * h * unit, replay=replay)[0] for sign in (1.0, -1.0)]
            except SolverError:
                continue
            best = min(best, abs((ends[0] - ends[1]) / (2.0 * h) - exact))
        worst = max(worst, best)
    return worst / float(np.linalg.norm(gradient))


def slope_error(problem: InverseProblem, x: FloatArray, steps: tuple[float, ...] = (1e-5, 1e-6, 1e-7, 1e-8)) -> float:
    """Return the relative error of the slope along the gradient at x, by the best of a few differences.

    For many parameters; Newton's tolerance should be tight. A difference that held decisions make impossible does not
    count; the error is infinite where all do.
    """
    gradient = problem.value_and_grad(x)[1]
    exact = float(np.linalg.norm(gradient))
    replay = {name: run.replay for name, run in problem.value(x)[1].items()}
    along, best = gradient / exact, np.inf
    for h in steps:
        try:
            ends = [problem.value(x + sign * h * along, replay=replay)[0] for sign in (1.0, -1.0)]
        except SolverError:
            continue
        best = min(best, abs((ends[0] - ends[1]) / (2.0 * h) - exact) / exact)
    return float(best)
