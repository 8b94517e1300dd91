"""Uncertainty of fitted parameters: noise, correlated residuals, the spread between takes, the discretisation.

Combinations of parameters that the data hardly see, and which of some candidates would show them, follow from it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from add.inverse import fit_rows
from add.inverse.between_takes import MOST_SHARED, BetweenTakes, CloudCorrelation, between_takes, cloud_correlation
from add.inverse.experiment import Experiment
from add.inverse.problem import InverseProblem
from add.objectives import Tracking, WeightedSum
from add.typing import BoolArray, FloatArray, IntArray

#: Share of the largest singular value below which the data do not see a direction at all.
BLIND = 1e-12
#: Coverage of the intervals.
COVERAGE = 0.95


class Uncertainty(NamedTuple):
    """Uncertainty of a least-squares fit at its minimum; NaN where the data say nothing, or a bound holds a number.

    Attributes
    ----------
    standard_errors : (n,)
        Of the physical values, of everything that was counted: the largest of noise, correlated and takes, and the
        discretisation added in squares.
    covariance : (n, n)
        Of the design variables x, of what the residuals and takes say (without the discretisation).
    rms : float
        Root mean square of the residuals, per marker coordinate [m].
    noise : (n,)
        Standard errors of white noise of the size that is left over.
    correlated : (n,)
        Standard errors where residuals that hang together count for fewer.
    takes : (n,)
        Standard errors of noise and of how the numbers vary between takes; of fewer than four takes from the range of
        what they ask for. NaN where fewer than two takes see the parameter.
    discretisation : (n,)
        What finer steps and meshes would change; NaN where nobody looked.
    freedom : (n,)
        Degrees of freedom of the standard errors.
    rise : (n,)
        What the objective rises by at one such error (without the discretisation), the other numbers fitted anew.
    between : BetweenTakes
        What the takes say of the numbers that they share, in the units of x.
    at_bound : (n,) bool
        Parameters on a bound. They are held, and the others' errors are those for this value.
    correlations : one a take
    rows : one a take
    """

    standard_errors: FloatArray
    covariance: FloatArray
    rms: float
    noise: FloatArray
    correlated: FloatArray
    takes: FloatArray
    discretisation: FloatArray
    freedom: FloatArray
    rise: FloatArray
    between: BetweenTakes
    at_bound: BoolArray
    correlations: tuple[fit_rows.Correlation | CloudCorrelation, ...]
    rows: tuple[fit_rows.FitRows, ...]

    @property
    def statistical(self) -> FloatArray:
        """Standard errors without the discretisation."""
        return np.fmax(np.fmax(self.noise, self.correlated), self.takes)

    @property
    def by_range(self) -> BoolArray:
        """Flags of the numbers whose interval is the range of what few takes ask for, and no 95 %."""
        return self.between.by_range & (np.nan_to_num(self.takes) > np.fmax(self.noise, self.correlated))

    @property
    def half_widths(self) -> FloatArray:
        """Half widths of the 95 % intervals: Student's t times what scatters, and twice the discretisation.

        Where the range of few takes counts it stands in the place of their t quantiles, which would be up to 13: what
        scatters are then the residuals, and twice half the range is added in squares.
        """
        quantile = stdtrit(np.maximum(self.freedom, 1.0), 0.5 + 0.5 * COVERAGE)
        residuals = np.fmax(self.noise, self.correlated)
        beyond = np.sqrt(np.maximum(np.nan_to_num(self.takes) ** 2 - np.nan_to_num(residuals) ** 2, 0.0))
        scatter = np.where(self.by_range, np.hypot(quantile * residuals, 2.0 * beyond), quantile * self.statistical)
        return np.hypot(scatter, 2.0 * np.nan_to_num(self.discretisation))

    @property
    def correlation_matrix(self) -> FloatArray:
        """Correlation of the parameters' errors (n, n); NaN where there is no error."""
        size = np.sqrt(np.diag(self.covariance))
        size = np.where(np.isfinite(self.standard_errors) & (size > 0.0), size, np.nan)
        return self.covariance / (size[:, None] * size)


def on_bounds(problem: InverseProblem, x: FloatArray) -> BoolArray:
    """Return which variables lie on a bound, within round-off of the physical values."""
    ends = np.isclose(problem.values(x), problem.physical_bounds, rtol=1e-9, atol=0.0)
    return np.asarray(ends.any(axis=0))


def uncertainty(problem: InverseProblem, x: FloatArray) -> Uncertainty | None:
    """Return the uncertainty of a least-squares fit at its minimum.

    With residuals rho(x) weighted as in the objective and J = d rho/dx, cov(x) = H^-1 M H^-1, H = J^T J. White noise of
    one size s_e a take gives M = sum_e s_e^2 J_e^T J_e, s_e^2 = |rho_e|^2 / (samples - their share of the parameters).
    Where a test says that a take's residuals are not white, `Correlation.meat` takes the place of its summand, and the
    larger of the two errors counts. Where several takes see a parameter, it may vary from take to take: `between_takes`
    adds sum_k H_k B H_k to M, each take by its own information. Priors are left out.

    Returns
    -------
    Uncertainty or None
        None where no experiment has a recording or a cloud, or there are too few samples.

    Raises
    ------
    SolverError
        If a run fails at x.
    """
    seen = [item for item in problem.experiments if item.recording is not None or fit_rows.clouds_of(item)]
    rows = [fit_rows.fit_rows(problem, x, item, scores=True) for item in seen]
    total = sum(p.sample_weight for e in problem.experiments for _, p in e.objective.as_squares())
    return uncertainty_of_rows(problem, x, rows, total)


def uncertainty_of_rows(
    problem: InverseProblem, x: FloatArray, rows: Sequence[fit_rows.FitRows], total_weight: float
) -> Uncertainty | None:
    """Return the uncertainty from residuals that are at hand; see `uncertainty`.

    Parameters
    ----------
    problem, x : of the fit
    rows : one a take
    total_weight : sum of the weights of all samples
    """
    n = problem.n
    count = sum(item.residual.size for item in rows)
    if count <= n:
        return None
    held = on_bounds(problem, x)
    free = [item.without(held) for item in rows]
    _, size, vt = np.linalg.svd(np.concatenate([item.slopes for item in free]), full_matrices=False)
    seen = size > BLIND * size[0]
    root = vt[seen].T / size[seen]
    inverse = root @ root.T
    blind = (np.abs(vt[~seen]).max(axis=0, initial=0.0) > 1e-6) | held
    looks: list[fit_rows.Correlation | CloudCorrelation] = []
    white, wide, framed, by_take = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n)), []
    variance, unsure = np.zeros(n), np.zeros(n)
    for whole in free:
        item, of_first = fit_rows.about_first(whole)
        looks.append(looked := _looked(item))
        moved = item.slopes @ inverse
        leverage = (moved * item.slopes).sum(axis=1)
        share = float(leverage.sum())
        size, left, of = _white(item, leverage)
        at_white = (item.slopes.T * size[of]) @ item.slopes
        meat = at_white if looked.is_white else _wide(item, looked, share)
        of_each = np.zeros((left.size, n))
        np.add.at(of_each, of, size[of][:, None] * moved**2)
        if not looked.is_white:
            of_each = np.diag(inverse @ meat @ inverse)[None]
            left = np.array([max(looked.effective - share, 1.0)])
        variance += of_each.sum(axis=0)
        unsure += (of_each**2 / left[:, None]).sum(axis=0)
        few = item.of_clouds or n > MOST_SHARED or looked.n_frames - share < fit_rows.FEWEST_FRAMES
        white += at_white + of_first
        wide += meat + of_first
        framed += inverse @ of_first @ inverse + (inverse @ meat @ inverse if few else fit_rows.of_frames(item, root))
        if len(rows) > 1:  # what a take would leave over by itself: how it differs from others is no noise of its own
            by_take.append(_by_itself(item) + of_first)
    effective = sum(looked.effective for looked in looks)
    between = between_takes(free if by_take else (), by_take, blind)
    by_takes = sum(by_take, np.zeros((n, n)))
    of_noise, of_wide, of_takes = (inverse @ meat @ inverse for meat in (white, wide, by_takes))
    of_all = of_takes + inverse @ between.meat @ inverse
    slope = np.abs(problem.design.pushforward(x, np.ones(n)))
    errors = {
        key: np.where(blind, np.nan, slope * np.sqrt(np.maximum(np.diag(of), 0.0)))
        for key, of in {"noise": of_noise, "wide": of_wide, "framed": framed, "own": of_takes, "all": of_all}.items()
    }
    errors["wide"] = np.fmax(errors["wide"], errors["framed"])
    takes = np.where(between.by_range, np.hypot(errors["own"], slope * between.half_range), errors["all"])
    takes = np.where(between.told, takes, np.nan)
    statistical = np.fmax(np.fmax(errors["noise"], errors["wide"]), takes)
    told = unsure > 0.0  # the degrees of freedom of a sum of variances are those of Satterthwaite (1946)
    known = max(1.0, effective - int(seen.sum()))
    freedom = np.where(told, variance**2 / np.where(told, unsure, 1.0), known)
    counts = np.nan_to_num(takes) >= np.fmax(errors["noise"], errors["wide"])
    varied = between.told & ~between.by_range & counts
    freedom = np.where(varied, _freedom(between, inverse, free, of_takes, freedom), freedom)
    # The correlations are those of one covariance, the sizes those that count.
    of_all = of_all if between.told.any() else of_wide
    widest = np.sqrt(np.maximum(np.diag(of_all), 0.0))
    factor = np.where(
        widest > 0.0, np.nan_to_num(statistical) / np.where(slope * widest > 0.0, slope * widest, 1.0), 0.0
    )
    return Uncertainty(
        statistical,
        factor[:, None] * of_all * factor,
        float(np.sqrt(sum(item.raw_squares for item in rows) / (3.0 * total_weight))),
        errors["noise"],
        errors["wide"],
        takes,
        np.full(n, np.nan),
        freedom,
        (statistical / np.where(blind, 1.0, slope)) ** 2 / np.where(blind, 1.0, np.diag(inverse)),
        between,
        held,
        tuple(looks),
        tuple(free),
    )


def _looked(item: fit_rows.FitRows) -> fit_rows.Correlation | CloudCorrelation:
    return cloud_correlation(item) if item.of_clouds else fit_rows.correlation(item)


def _white(item: fit_rows.FitRows, leverage: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return s^2 of white residuals, one size a series, its degrees of freedom, and which series each row is of (m,).

    Axes and markers are not equally noisy. All are one series of clouds, and where a series has nothing to spare.
    """
    of: IntArray = np.unique(item.series, return_inverse=True)[1]
    left = np.bincount(of, 1.0 - leverage).astype(float)
    if item.of_clouds or left.min() < 1.0:
        of, left = np.zeros_like(of), np.array([max(left.sum(), 1.0)])
    return np.bincount(of, item.residual**2) / left, left, of


def _wide(item: fit_rows.FitRows, looked: fit_rows.Correlation | CloudCorrelation, share: float) -> FloatArray:
    """Return J^T cov(rho) J of correlated residuals that ``share`` parameters were fitted to."""
    left = max(looked.effective - share, 1.0)
    return looked.meat(item) * (looked.effective / left if looked.effective > share else 1.0)


def _by_itself(item: fit_rows.FitRows) -> FloatArray:
    """Return J^T cov(rho) J of the residuals that one step of Gauss-Newton on this take alone leaves."""
    u, size, _ = np.linalg.svd(item.slopes, full_matrices=False)
    u = u[:, size > BLIND * size.max(initial=0.0)]
    alone = replace(item, residual=item.residual - u @ (u.T @ item.residual))
    looked = _looked(alone)
    if not looked.is_white:
        return _wide(alone, looked, u.shape[1])
    squared, _, of = _white(alone, (u**2).sum(axis=1))
    return np.asarray((alone.slopes.T * squared[of]) @ alone.slopes)


def _freedom(
    between: BetweenTakes,
    inverse: FloatArray,
    rows: Sequence[fit_rows.FitRows],
    of_noise: FloatArray,
    effective: FloatArray,
) -> FloatArray:
    """Return the degrees of freedom (n,) of the variances of noise and takes together (Satterthwaite 1946)."""
    within = np.maximum(np.diag(of_noise), 0.0)
    shares = sum(((inverse @ (item.slopes.T @ item.slopes)) ** 2 for item in rows), np.zeros_like(inverse))
    varies = np.flatnonzero(between.variance > 0.0)
    spread = np.linalg.pinv(between.precision[np.ix_(varies, varies)], rcond=1e-9, hermitian=True)
    of_variance = np.einsum("pi,ij,pj->p", shares[:, varies], spread, shares[:, varies], optimize=True)
    total = shares @ between.variance + within
    unsure = 0.5 * of_variance + within**2 / effective
    return np.where(unsure > 0.0, total**2 / np.where(unsure > 0.0, unsure, 1.0), effective)


def with_discretisation(found: Uncertainty, changes: FloatArray) -> Uncertainty:
    """Return the uncertainty with what the discretisation contributes added in squares.

    Parameters
    ----------
    found : Uncertainty
    changes : (n,)
        Standard errors that finer steps and meshes ask for, in physical units; NaN where nobody looked.
    """
    total = np.hypot(found.statistical, np.nan_to_num(changes))
    return found._replace(standard_errors=total, discretisation=changes)


#: A direction is weak if x is uncertain along it by this much, in typical changes of the parameters (their `scale`).
WEAK = 0.5
#: Weights of a combination below this share of the largest are left out when it is named.
NAMED = 0.15


class Weak(NamedTuple):
    """A direction of x along which the objective is flat.

    Attributes
    ----------
    direction : (n,) of length one
    spread : standard deviation of x along it; infinite where the data do not see it at all
    singular_value : |J direction| over the largest singular value
    """

    direction: FloatArray
    spread: float
    singular_value: float

    def members(self) -> list[int]:
        """Return the variables that take part, the largest first."""
        size = np.abs(self.direction)
        return [int(k) for k in np.argsort(-size) if size[k] >= NAMED * size.max()]


def weak_directions(found: Uncertainty) -> list[Weak]:
    """Return the weak directions, the worst first, from the singular values of J.

    A direction's spread is that of the covariance, which knows of correlated residuals; parameters on a bound are left
    out.
    """
    free = np.flatnonzero(~found.at_bound)
    slopes = np.concatenate([item.slopes for item in found.rows])[:, free]
    _, size, vt = np.linalg.svd(slopes, full_matrices=False)
    if not size.size:
        return []
    if size[0] == 0.0:  # no sample depends on any of them: each by itself, in their own order
        return [Weak(row, np.inf, 0.0) for row in np.eye(found.at_bound.size)[free]]
    covariance = found.covariance[np.ix_(free, free)]
    out = []
    for value, row in zip(size, vt, strict=True):
        blind = value <= BLIND * size[0]
        spread = np.inf if blind else float(np.sqrt(max(row @ covariance @ row, 0.0)))
        if spread > WEAK:
            direction = np.zeros(found.at_bound.size)
            direction[free] = row * np.sign(row[np.abs(row).argmax()])
            out.append(Weak(direction, spread, float(value / size[0])))
    return sorted(out, key=lambda item: -item.spread)


def as_candidate(experiment: Experiment, tracking: Tracking, theta: FloatArray | None = None) -> Experiment:
    """Return an experiment that sees every sample of a tracking with weight one, be it recorded or not.

    With ``theta``, what it sees is that run: where a recording's place is a parameter, samples depend on it.
    """
    seen = replace(tracking, weights=np.ones(tracking.weights.shape), loss=None, reference=None)
    if theta is not None and tracking.placement is not None:
        if tracking.reference is not None:  # positions are seen here: where the recording lies is not known
            seen = replace(seen, placement=None)
        else:
            targets = seen.targets.copy()
            for state in experiment.simulation.run(theta).states():
                for frame in seen.frames(state, theta):
                    targets[frame] = tracking.placement.recorded(seen.observed(state, int(frame), theta), theta)
            seen = replace(seen, targets=targets)
    return replace(experiment, objective=WeightedSum((1.0,), (seen,)), tracking=seen)


def remedies(weak: Weak, candidates: Mapping[str, fit_rows.FitRows], rms: float) -> list[tuple[str, float]]:
    """Return the spread along a weak direction with each candidate's samples added, the best first.

    Parameters
    ----------
    weak : Weak
    candidates : name -> its rows, with weight one a sample
    rms : noise of a marker's coordinate [m]
    """
    known = 0.0 if np.isinf(weak.spread) else weak.spread**-2
    out = []
    for name, rows in candidates.items():
        more = float(((rows.slopes @ weak.direction) ** 2).sum()) / max(rms, 1e-300) ** 2
        together = known + more
        out.append((name, together**-0.5 if together > 0.0 else np.inf))
    return sorted(out, key=lambda item: item[1])
