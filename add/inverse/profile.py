"""Confidence intervals by profile likelihood: bounds and curvature are in them, where a standard error has neither."""

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import fdtri

from add.errors import SolverError
from add.inverse.problem import InverseProblem
from add.typing import FloatArray

#: Steps of Gauss-Newton for the other parameters at a value of this one.
MOST_STEPS = 12
#: Trial values on each side.
MOST_VALUES = 12
#: The ends of an interval are found to this share of their way from the minimum.
PRECISION = 0.03


@final
@dataclass(frozen=True)
class Interval:
    """A confidence interval of one design variable, in physical units.

    Attributes
    ----------
    lower, upper : its ends
    lower_open, upper_open : the objective stays below the limit up to the bound, or as far as was looked
    evaluations : runs that it took
    """

    lower: float
    upper: float
    lower_open: bool
    upper_open: bool
    evaluations: int


def profile(
    problem: InverseProblem, x: FloatArray, k: int, *, step: float, freedom: float, widening: float = 1.0,
    coverage: float = 0.95,
) -> Interval:  # fmt: skip
    """Return the interval of x_k in which the objective, the others fitted anew, stays below its limit.

    phi_k(v) = min over the others of phi with x_k = v; the ends are where (phi_k - phi) / s^2 reaches the quantile of
    F(1, freedom), with s^2 = phi / (samples - parameters) times the square of what correlated residuals widen (Venzon
    and Moolgavkar 1988; Bates and Watts 1988, ch. 6).

    Parameters
    ----------
    problem : InverseProblem
    x : (n,) where the fit ended
    k : the variable
    step : half width of the interval that the standard error gives, in x: the first trial
    freedom : degrees of freedom of the noise
    widening : standard error over that of white noise

    Raises
    ------
    SolverError
        If the run fails at x.
    """
    search = _Search(problem, x, k)
    best, n_samples = search.constrained(float(x[k]))
    s2 = best / max(n_samples - problem.n, 1) * widening**2
    limit = best + s2 * float(fdtri(1.0, max(freedom, 1.0), coverage))
    lower, upper = problem.bounds
    ends = []
    for sign, bound in ((-1.0, float(lower[k])), (1.0, float(upper[k]))):
        search.others = x.copy()
        ends.append(_end(search, float(x[k]), sign, bound, step, best, limit))
    slots = [_physical(problem, x, k, value) for value, _ in ends]
    return Interval(slots[0], slots[1], ends[0][1], ends[1][1], search.evaluations)


def _physical(problem: InverseProblem, x: FloatArray, k: int, value: float) -> float:
    moved = x.copy()
    moved[k] = value
    return float(problem.values(moved)[k])


class _Search:
    """The objective with one variable held and the others fitted, warm-started from the last fit."""

    def __init__(self, problem: InverseProblem, x: FloatArray, k: int) -> None:
        self.problem, self.k, self.others = problem, k, x.copy()
        self.free = np.setdiff1d(np.arange(problem.n), [k])
        self.evaluations = 0

    def constrained(self, value: float) -> tuple[float, int]:
        """Return the objective at the minimum over the others, and the number of residuals."""
        lower, upper = self.problem.bounds
        x = self.others.copy()
        x[self.k] = value
        point = self.problem.residuals(x)
        self.evaluations += 1
        damping = 0.0
        for _ in range(MOST_STEPS if self.free.size else 0):
            jacobian = self.problem.jacobian(point, self.free)
            normal, slope = jacobian.normal(), jacobian.transposed(point.rho)
            scale = float(np.diag(normal).max()) or 1.0
            matrix = normal + max(damping, 1e-12) * scale * np.eye(self.free.size)
            move = np.linalg.lstsq(matrix, -slope, rcond=None)[0]
            gain = -float(move @ (2.0 * slope + normal @ move))
            if gain <= 1e-4 * point.value / max(point.rho.size - self.problem.n, 1):
                break
            trial = point.x.copy()
            trial[self.free] = np.clip(point.x[self.free] + move, lower[self.free], upper[self.free])
            self.evaluations += 1
            try:
                found = self.problem.residuals(trial)
            except SolverError:
                damping = max(10.0 * damping, 1e-3)
                continue
            if found.value < point.value:
                point, damping = found, 0.1 * damping if damping > 1e-6 else 0.0
            else:
                damping = max(10.0 * damping, 1e-3)
        self.others = point.x.copy()
        return point.value, point.rho.size


def _end(
    search: _Search, start: float, sign: float, bound: float, step: float, best: float, limit: float
) -> tuple[float, bool]:
    """Return where the profile crosses the limit on one side, and whether it does not.

    The root of phi_k - phi is nearly linear in the way from the minimum, which gives the next trial.
    """
    room = abs(bound - start) if np.isfinite(bound) else np.inf
    inside, outside, trial = 0.0, np.inf, min(step, room)
    if trial <= 0.0:
        return start, True
    for _ in range(MOST_VALUES):
        try:
            share = np.sqrt(max(search.constrained(start + sign * trial)[0] - best, 0.0) / (limit - best))
        except SolverError:
            share = np.inf
        if abs(share - 1.0) <= PRECISION:
            return start + sign * trial, False
        if share > 1.0:
            outside = trial
        else:
            inside = trial
            if trial >= room:
                return bound, True
        guess = trial / share if share > 0.0 else 3.0 * trial
        if np.isinf(outside):
            trial = min(guess, 3.0 * trial, room)
        else:
            trial = float(np.clip(guess, inside + 0.1 * (outside - inside), outside - 0.1 * (outside - inside)))
            if outside - inside <= PRECISION * outside:
                return start + sign * 0.5 * (inside + outside), False
    return start + sign * (inside if np.isinf(outside) else 0.5 * (inside + outside)), bool(np.isinf(outside))
