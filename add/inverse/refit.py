"""The fit of another discretisation, from the derivatives of this one: a few simulations, no sensitivities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from add.errors import SolverError
from add.inverse.fit_rows import FitRows, fit_rows, residuals_of
from add.inverse.optimizers.levenberg_marquardt import LevenbergMarquardt
from add.inverse.optimizers.phases import Phase
from add.inverse.problem import InverseProblem
from add.inverse.uncertainty import on_bounds
from add.typing import BoolArray, FloatArray

__all__ = ["Refit", "derivatives", "refit"]

#: Most simulations of a refit with derivatives that are at hand.
MOST_STEPS = 12
#: A refit ends at a step below this share of the standard error of noise, in the norm of J^T J.
SMALL = 0.03
#: Evaluations of a fit with derivatives of its own, and the relative decrease at which it ends.
MOST_EVALUATIONS, TOLERANCE = 40, 1e-7


@final
@dataclass(frozen=True, eq=False)
class Refit:
    """The numbers that a fit with another discretisation comes to.

    Attributes
    ----------
    x : (n,)
    value : objective there
    runs : simulations of the takes
    converged : whether the steps became small
    """

    x: FloatArray
    value: float
    runs: int
    converged: bool


def derivatives(problem: InverseProblem, x: FloatArray) -> list[FitRows]:
    """Return the rows of every take at x."""
    return [fit_rows(problem, x, item) for item in problem.experiments]


def refit(problem: InverseProblem, x: FloatArray, rows: list[FitRows], start: FloatArray | None = None) -> Refit:
    """Minimise the objective of a problem by Newton-like steps with the J^T J of another discretisation.

    The steps -(J^T J)^-1 J^T rho end where J^T rho = 0: at the minimum as far as J, taken on the coarser mesh, spans
    what the finer residuals' own derivatives span (a difference of second order in what the discretisation changes).
    A step that does not lower the objective ends that, and Levenberg-Marquardt with the problem's own derivatives goes
    on from there. Numbers on a bound stay.

    Parameters
    ----------
    problem : with the other step or mesh, the same recordings and parameters
    x : (n,) where the fit ended
    rows : of `derivatives`, at x
    start : (n,) to begin from, default: x

    Raises
    ------
    SolverError
        If the run fails at the start.
    """
    held = on_bounds(problem, x)
    lower, upper = problem.bounds
    slopes = _stacked(rows)
    y = x.copy() if start is None else start.copy()
    rho = _residuals(problem, y)
    if rho.size != len(slopes):
        raise ValueError(f"the recordings count {rho.size} coordinates here and {len(slopes)} there: not the same fit")
    runs = 1
    while runs < MOST_STEPS:
        step, decrease = _step(problem, y, rho, slopes, held)
        if decrease <= SMALL**2 * _value(problem, y, rho) / max(rho.size - problem.n, 1):
            return Refit(y, _value(problem, y, rho), runs, True)
        trial = np.clip(y + step, lower, upper)
        runs += 1
        try:
            found = _residuals(problem, trial)
        except SolverError:
            break
        if _value(problem, trial, found) >= _value(problem, y, rho):
            break
        y, rho = trial, found
    phase = Phase("refit", None, None, MOST_EVALUATIONS)
    whole = LevenbergMarquardt((phase,), gradient_tolerance=1e-10, objective_tolerance=TOLERANCE).run(problem, y)
    return Refit(whole.x, whole.value, runs + whole.evaluations, whole.phases[0].success)


def _stacked(rows: list[FitRows]) -> FloatArray:
    return np.concatenate([item.slopes[item.ordered()] for item in rows])


def _residuals(problem: InverseProblem, x: FloatArray) -> FloatArray:
    """Return the residuals of all takes at x, ordered as in `_stacked`."""
    out = []
    for experiment in problem.experiments:
        theta = problem.theta(x, experiment)
        out.append(residuals_of(experiment, theta, experiment.simulation.run(theta)))
    return np.concatenate(out)


def _value(problem: InverseProblem, x: FloatArray, rho: FloatArray) -> float:
    values = problem.values(x)
    return float(rho @ rho) + sum(prior.value(values) for prior in problem.priors)


def _step(
    problem: InverseProblem, x: FloatArray, rho: FloatArray, slopes: FloatArray, held: BoolArray
) -> tuple[FloatArray, float]:
    """Return the step of Gauss-Newton over what is not held, and the decrease that it promises."""
    normal, slope = slopes.T @ slopes, slopes.T @ rho
    of_p = problem.design.jacobian(x)
    for prior in problem.priors:
        of_x = (prior.residual_jacobian(problem.n) @ of_p).toarray()
        normal += of_x.T @ of_x
        slope += of_x.T @ prior.residuals(problem.values(x))
    free = np.flatnonzero(~held)
    step = np.zeros_like(x)
    step[free] = -np.linalg.pinv(normal[np.ix_(free, free)], rcond=1e-12, hermitian=True) @ slope[free]
    return step, -float(step @ slope)
