"""Fits made again: with every take left out, with takes drawn anew, and of own numbers of runs that are predicted."""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from add.errors import InputError, SolverError
from add.inverse.experiment import Experiment
from add.inverse.fit_rows import FitRows, fit_rows, residuals_of
from add.inverse.optimizers import ONE_START
from add.inverse.optimizers.levenberg_marquardt import LevenbergMarquardt
from add.inverse.optimizers.phases import Phase, PhasedOptimizer, PhaseResult
from add.inverse.problem import InverseProblem
from add.inverse.uncertainty import Uncertainty, on_bounds
from add.typing import BoolArray, FloatArray, IntArray

#: Most simulations of a refit with derivatives that are at hand.
MOST_STEPS = 12
#: A refit ends at a step below this share of the standard error of noise, in the norm of J^T J, ...
SMALL = 0.03
#: ... or of the way from where the fit ended, which is an error of the fit and need not be known better.
NEAR = 0.05
#: Evaluations of a fit with derivatives of its own, and the relative decrease at which it ends.
MOST_EVALUATIONS, TOLERANCE = 40, 1e-7


class Refit(NamedTuple):
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
    Each run corrects J along the step before it (Broyden 1965, least change in the norm of J^T J, so that units of the
    numbers do not matter). Two steps in a row that do not lower the objective end that, and Levenberg-Marquardt with
    the problem's own derivatives goes on from there. Numbers on a bound stay.

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
    rho = _residuals(problem, y, len(slopes))
    runs, refused = 1, 0
    while runs < MOST_STEPS and refused < 2:
        step, decrease = _step(problem, y, rho, slopes, held)
        small = SMALL**2 * _value(problem, y, rho) / max(rho.size - problem.n, 1)
        if decrease <= max(small, NEAR**2 * float(((slopes @ (y - x)) ** 2).sum())):
            return Refit(y, _value(problem, y, rho), runs, True)
        trial = np.clip(y + step, lower, upper)
        runs += 1
        try:
            residuals = _residuals(problem, trial, len(slopes))
        except SolverError:
            break
        slopes = _corrected(slopes, trial - y, residuals - rho)
        refused += 1
        if _value(problem, trial, residuals) < _value(problem, y, rho):
            y, rho, refused = trial, residuals, 0
    phase = Phase("refit", None, None, MOST_EVALUATIONS)
    whole = LevenbergMarquardt((phase,), gradient_tolerance=1e-10, objective_tolerance=TOLERANCE).run(problem, y)
    return Refit(whole.x, whole.value, runs + whole.evaluations, whole.phases[0].success)


def first_step(problem: InverseProblem, x: FloatArray, rows: list[FitRows]) -> FloatArray:
    """Return where the first step of such a refit from x leads (n,): about where it ends, by one simulation.

    Raises
    ------
    SolverError
        If the run fails.
    ValueError
        If other frames of the recordings count.
    """
    slopes = _stacked(rows)
    step, _ = _step(problem, x, _residuals(problem, x, len(slopes)), slopes, on_bounds(problem, x))
    return np.asarray(np.clip(x + step, *problem.bounds))


def _stacked(rows: list[FitRows]) -> FloatArray:
    return np.concatenate([item.slopes[item.ordered()] for item in rows])


def _residuals(problem: InverseProblem, x: FloatArray, number: int) -> FloatArray:
    """Return the residuals of all takes at x, as many and ordered as in `_stacked`."""
    out = []
    for experiment in problem.experiments:
        theta = problem.theta(x, experiment)
        out.append(residuals_of(experiment, theta, experiment.simulation.run(theta)))
    rho = np.concatenate(out)
    if rho.size != number:
        raise ValueError(f"the recordings count {rho.size} coordinates here and {number} there: not the same fit")
    return rho


def _corrected(slopes: FloatArray, step: FloatArray, change: FloatArray) -> FloatArray:
    """Return the slopes with the change of the residuals that a step has made, and as they were across it."""
    along = slopes.T @ (slopes @ step)
    length = float(along @ step)
    return slopes + np.outer(change - slopes @ step, along) / length if length > 0.0 else slopes


def _value(problem: InverseProblem, x: FloatArray, rho: FloatArray) -> float:
    own, _ = problem.prior_rows(x)
    return float(rho @ rho + own @ own)


def _step(
    problem: InverseProblem, x: FloatArray, rho: FloatArray, slopes: FloatArray, held: BoolArray
) -> tuple[FloatArray, float]:
    """Return the step of Gauss-Newton over what is not held, and the decrease that it promises."""
    own, rows = problem.prior_rows(x)
    normal, slope = slopes.T @ slopes + (rows.T @ rows).toarray(), slopes.T @ rho + rows.T @ own
    free = np.flatnonzero(~held)
    step = np.zeros_like(x)
    step[free] = -np.linalg.pinv(normal[np.ix_(free, free)], rcond=1e-12, hermitian=True) @ slope[free]
    return step, -float(step @ slope)


#: From this number of takes on, takes are drawn.
FEWEST_TAKES = 4


class Bootstrap(NamedTuple):
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


def bootstrap(problem: InverseProblem, x: FloatArray, found: Uncertainty, draws: int) -> Bootstrap:
    """Return the bootstrap of a fit, each draw fitted by one step of Gauss-Newton (Davison and Hinkley 1997, ch. 2, 8).

    Whole takes are drawn where there are four or more, else stretches that are twice as long as residuals hang
    together. A draw's estimate is x - s(w) + s(1), s(w) = (sum w_b H_b)^+ sum w_b J_b^T rho_b with the number w_b of
    times that block b was drawn: it costs no run. s(1) is the step that all blocks as they are ask for: none at a
    minimum, but fits end short of it, on a kink, or with priors, and draws scatter about where the fit ended. Residuals
    are smaller than errors, and few blocks tell little: draws whose 90 % lie closer together than those of Student's t
    with the standard error of a number are moved as far.
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
    generator = np.random.default_rng(0)
    lower, upper = problem.bounds

    def asked(weight: FloatArray) -> FloatArray:
        return np.linalg.pinv(np.tensordot(weight, h, 1), rcond=1e-12, hermitian=True) @ (weight @ g)

    whole, moves = asked(np.ones(len(h))), np.zeros((draws, x.size))
    for row in moves:
        weight = np.bincount(generator.integers(0, len(h), len(h)), minlength=len(h)).astype(float)
        row[:] = whole - asked(weight)
    slope = np.abs(problem.design.pushforward(x, np.ones(x.size)))
    low, high = slope * np.percentile(moves, [5.0, 95.0], axis=0)
    least, spread = stdtrit(found.freedom, 0.95) * np.nan_to_num(found.statistical), 0.5 * (high - low)
    moves *= np.maximum(1.0, np.divide(least, spread, out=np.ones(x.size), where=spread > 0.0))
    drawn = np.array([problem.values(np.clip(x + move, lower, upper)) for move in moves])
    drawn[:, np.isnan(found.noise)] = np.nan
    low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
    over = "takes" if by_takes else "stretches of time"
    return Bootstrap(over, len(h), drawn.std(axis=0, ddof=1), low, high, drawn)


#: Orders that are believed.
LOWEST, HIGHEST = 0.5, 4.0


class Extrapolated(NamedTuple):
    """The limit of a sequence, and how far it is known.

    Attributes
    ----------
    error : of the first value: |first - limit|, or where there is no limit to be seen the largest change and the last
    order : observed, assumed where there are two values, None where the changes do not fall
    limit : extrapolated; None where the changes do not fall
    converges : whether the changes fall
    """

    error: float
    order: float | None
    limit: float | None
    converges: bool


def extrapolated(values: list[float], ratio: float, assumed: float, smallest: float = 0.0) -> Extrapolated:
    """Extrapolate a sequence v(h), v(h/r), v(h/r^2), ... (Roache 1998, ch. 5).

    With three values the last three give the order, r^p = (v_(k-1) - v_(k-2)) / (v_k - v_(k-1)), kept within [0.5, 4];
    with two it is assumed. limit = v_k + (v_k - v_(k-1)) / (r^p - 1).

    Parameters
    ----------
    values : from the coarsest on, two or more
    ratio : r > 1
    assumed : order with two values
    smallest : changes below this are round-off of the fits: they do not speak against convergence

    Raises
    ------
    ValueError
        With fewer than two values.
    """
    if len(values) < 2:
        raise ValueError("a change needs two values")
    changes = np.diff(values)
    last = float(changes[-1])
    order = assumed
    if len(values) > 2 and max(abs(last), abs(float(changes[-2]))) > smallest:
        before = float(changes[-2])
        falls = abs(last) < abs(before) and last * before > 0.0
        if not falls and abs(last) > smallest:
            error = max(abs(value - values[0]) for value in values) + abs(last)
            return Extrapolated(float(error), None, None, False)
        order = float(np.clip(np.log(before / last) / np.log(ratio), LOWEST, HIGHEST)) if falls else assumed
    limit = values[-1] + last / (ratio**order - 1.0)
    return Extrapolated(abs(values[0] - limit), order, float(limit), True)


def in_order(problem: InverseProblem, names: Iterable[str]) -> list[Experiment]:
    """Return the experiments of a problem, fitted and validated, in the order of names."""
    every = {experiment.name: experiment for experiment in (*problem.experiments, *problem.validation)}
    return [every[name] for name in names]


def fit_own(
    problem: InverseProblem,
    optimizer: PhasedOptimizer,
    x: FloatArray,
    name: str,
    window: tuple[float, float],
    max_evaluations: int,
) -> tuple[FloatArray, PhaseResult]:
    """Fit the parameters that one experiment has alone over a window of its recording; all others are held.

    Parameters
    ----------
    problem : with the experiment among those of its fit or its validation
    optimizer : whose method is used
    x : (n,) where the fit ended
    name : of the experiment
    window : simulation times that count [s]
    max_evaluations : limit

    Returns
    -------
    x with the entries of those parameters changed, and how the fit ended.

    Raises
    ------
    InputError
        If the experiment has no parameter of its own, or no frame lies in the window.
    SolverError
        If the run fails at x.
    """
    alone = problem.predicting(name)
    starts = tuple(parameter.name for parameter in alone.parameters if set(parameter.targets) == {name})
    if not starts:
        raise InputError("no parameter belongs to this experiment alone", found=f"'{name}'")
    phase = Phase(f"start of {name}", starts, window, max_evaluations)
    fit = replace(optimizer, phases=(phase,), starts=ONE_START).run(alone, x)  # type: ignore[type-var]
    return fit.x, fit.phases[0]
