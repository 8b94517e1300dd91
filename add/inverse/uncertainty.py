"""Uncertainty of fitted parameters: noise, correlated residuals, the spread between takes, the discretisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from scipy.special import stdtrit

from add.inverse.cloud_correlation import CloudCorrelation, cloud_correlation
from add.inverse.correlation import Correlation, correlation
from add.inverse.fit_rows import FitRows, clouds_of, fit_rows
from add.inverse.problem import InverseProblem
from add.typing import BoolArray, FloatArray

__all__ = ["Uncertainty", "on_bounds", "uncertainty", "uncertainty_of_rows", "with_discretisation"]

#: Share of the largest singular value below which the data do not see a direction at all.
BLIND = 1e-12
#: Coverage of the intervals.
COVERAGE = 0.95


@final
@dataclass(frozen=True, eq=False)
class Uncertainty:
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
        Standard errors from the spread between takes (jackknife); NaN where fewer than two takes see the parameter.
    discretisation : (n,)
        What finer steps and meshes would change; NaN where nobody looked.
    freedom : (n,)
        Degrees of freedom of the standard errors.
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
    at_bound: BoolArray
    correlations: tuple[Correlation | CloudCorrelation, ...]
    rows: tuple[FitRows, ...]

    @property
    def statistical(self) -> FloatArray:
        """Standard errors without the discretisation."""
        return np.fmax(np.fmax(self.noise, self.correlated), self.takes)

    @property
    def half_widths(self) -> FloatArray:
        """Half widths of the 95 % intervals: Student's t times what scatters, and twice the discretisation."""
        scatter = stdtrit(np.maximum(self.freedom, 1.0), 0.5 + 0.5 * COVERAGE) * self.statistical
        return np.hypot(scatter, 2.0 * np.nan_to_num(self.discretisation))

    @property
    def correlation_matrix(self) -> FloatArray:
        """Correlation of the parameters' errors (n, n); NaN where there is no error."""
        size = np.sqrt(np.diag(self.covariance))
        size = np.where(np.isfinite(self.standard_errors) & (size > 0.0), size, np.nan)
        return self.covariance / (size[:, None] * size)


def on_bounds(problem: InverseProblem, x: FloatArray) -> BoolArray:
    """Return which variables lie on a bound, within round-off of the physical values."""
    values = problem.values(x)
    lower = np.concatenate([np.full(p.n, p.lower) for p in problem.parameters])
    upper = np.concatenate([np.full(p.n, p.upper) for p in problem.parameters])
    return np.isclose(values, lower, rtol=1e-9, atol=0.0) | np.isclose(values, upper, rtol=1e-9, atol=0.0)


def uncertainty(problem: InverseProblem, x: FloatArray) -> Uncertainty | None:
    """Return the uncertainty of a least-squares fit at its minimum.

    With residuals rho(x) weighted as in the objective and J = d rho/dx, cov(x) = H^-1 M H^-1, H = J^T J. White noise of
    one size s_e a take gives M = sum_e s_e^2 J_e^T J_e, s_e^2 = |rho_e|^2 / (samples - their share of the parameters).
    Where a test says that a take's residuals are not white, `Correlation.meat` takes the place of its summand, and the
    larger of the two errors counts. Where several takes see a parameter, the jackknife over takes (leave one out, one
    Gauss-Newton step) counts if it is larger yet. Priors are left out.

    Returns
    -------
    Uncertainty or None
        None where no experiment has a recording or a cloud, or there are too few samples.

    Raises
    ------
    SolverError
        If a run fails at x.
    """
    rows = [fit_rows(problem, x, item) for item in problem.experiments if item.recording is not None or clouds_of(item)]
    total = sum(p.sample_weight for e in problem.experiments for _, p in e.objective.as_squares())
    return uncertainty_of_rows(problem, x, rows, total)


def uncertainty_of_rows(
    problem: InverseProblem, x: FloatArray, rows: Sequence[FitRows], total_weight: float
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
    inverse = (vt[seen].T / size[seen] ** 2) @ vt[seen]
    blind = (np.abs(vt[~seen]).max(axis=0, initial=0.0) > 1e-6) | held
    found = [cloud_correlation(item) if item.of_clouds else correlation(item) for item in rows]
    white, wide = np.zeros((n, n)), np.zeros((n, n))
    effective = 0.0
    for item, looked in zip(free, found, strict=True):
        normal = item.slopes.T @ item.slopes
        share = float(np.trace(inverse @ normal)) * n / max(int(seen.sum()), 1)
        noise = float(item.residual @ item.residual) / max(item.residual.size - share, 1.0) * normal
        white += noise
        if looked.is_white:
            wide += noise
        else:
            left = max(looked.effective - share, 1.0)
            wide += looked.effective / left * looked.meat(item) if looked.effective > share else looked.meat(item)
        effective += looked.effective
    of_noise, of_wide = inverse @ white @ inverse, inverse @ wide @ inverse
    slope = np.abs(problem.design.pushforward(x, np.ones(n)))
    errors = {key: _errors(value, slope, blind) for key, value in (("noise", of_noise), ("wide", of_wide))}
    takes, shared = _between_takes(free, seen, size, slope, blind)
    statistical = np.fmax(np.fmax(errors["noise"], errors["wide"]), takes)
    freedom = np.full(n, max(1.0, effective - int(seen.sum())))
    freedom = np.where(np.nan_to_num(takes) >= np.fmax(errors["noise"], errors["wide"]), shared, freedom)
    # The correlations are those of the wider covariance, the sizes those that count.
    widest = np.sqrt(np.diag(of_wide))
    factor = np.where(
        widest > 0.0, np.nan_to_num(statistical) / np.where(slope * widest > 0.0, slope * widest, 1.0), 0.0
    )
    return Uncertainty(
        statistical,
        factor[:, None] * of_wide * factor,
        float(np.sqrt(sum(item.raw_squares for item in rows) / (3.0 * total_weight))),
        errors["noise"],
        errors["wide"],
        takes,
        np.full(n, np.nan),
        freedom,
        held,
        tuple(found),
        tuple(free),
    )


def _errors(covariance: FloatArray, slope: FloatArray, blind: BoolArray) -> FloatArray:
    """Return the standard errors of the physical values."""
    return np.where(blind, np.nan, slope * np.sqrt(np.maximum(np.diag(covariance), 0.0)))


def _between_takes(
    rows: Sequence[FitRows], seen: BoolArray, size: FloatArray, slope: FloatArray, blind: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Return the jackknife's standard errors over takes, and its degrees of freedom.

    Leaving out take k moves x by (H - H_k)^+ J_k^T rho_k; the variance is (K - 1)/K sum (delta_k - mean)^2.
    """
    n = slope.size
    sees = np.array([(item.slopes != 0.0).any(axis=0) for item in rows])
    number = sees.sum(axis=0)
    if len(rows) < 2:
        return np.full(n, np.nan), np.ones(n)
    normals = [item.slopes.T @ item.slopes for item in rows]
    total = sum(normals, np.zeros((n, n)))
    moved = np.array(
        [
            np.linalg.pinv(total - normal, rcond=BLIND, hermitian=True) @ (item.slopes.T @ item.residual)
            for item, normal in zip(rows, normals, strict=True)
        ]
    )
    spread = np.sqrt((len(rows) - 1.0) / len(rows) * ((moved - moved.mean(axis=0)) ** 2).sum(axis=0))
    return np.where((number < 2) | blind, np.nan, slope * spread), np.maximum(number - 1.0, 1.0)


def with_discretisation(found: Uncertainty, changes: FloatArray) -> Uncertainty:
    """Return the uncertainty with what the discretisation contributes added in squares.

    Parameters
    ----------
    found : Uncertainty
    changes : (n,)
        Standard errors that finer steps and meshes ask for, in physical units; NaN where nobody looked.
    """
    total = np.hypot(found.statistical, np.nan_to_num(changes))
    return replace(found, standard_errors=total, discretisation=changes)
