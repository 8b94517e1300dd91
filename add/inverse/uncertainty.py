"""Standard errors of fitted parameters from forward sensitivities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from add.adjoint import sweep
from add.equations.tangents import Directions
from add.inverse.problem import InverseProblem
from add.linalg import one_blas_thread
from add.typing import FloatArray


@final
@dataclass(frozen=True)
class Uncertainty:
    """Gauss-Newton estimate of a fit's uncertainty.

    Attributes
    ----------
    standard_errors : (n,)
        Of the physical values; NaN where the data say nothing.
    covariance : (n, n)
        Of the design variables x.
    rms : float
        Root mean square of the residuals, per marker coordinate [m].
    """

    standard_errors: FloatArray
    covariance: FloatArray
    rms: float


def uncertainty(problem: InverseProblem, x: FloatArray) -> Uncertainty | None:
    """Return the uncertainty of a least-squares fit at its minimum.

    With residuals r(x) and their Jacobian A, cov(x) = s^2 (A^T A)^-1, s^2 = |r|^2 / (samples - parameters); white
    noise of one size is assumed and priors are left out, so that model errors, which are correlated in time, make the
    true errors larger.

    Returns
    -------
    Uncertainty or None
        None where no experiment has a recording or there are too few samples.
    """
    rows, residuals = [], []
    for experiment in problem.experiments:
        if experiment.recording is None:
            continue
        mapping = problem.map_of(experiment)
        theta = mapping.forward(x)
        directions = Directions(mapping.jacobian(x))
        trajectory = experiment.simulation.run(theta)
        parts = [part for _, part in experiment.objective.for_run().as_squares() if part.looks]
        with one_blas_thread():
            for k, tangents in enumerate(sweep(experiment.simulation, trajectory, theta, directions)):
                state = trajectory.state(k)
                for part in parts:
                    residuals.append(part.step_residuals(state, theta))
                    slopes = part.step_residual_tangents(state, theta, tangents, directions)
                    rows.append(np.zeros((slopes.values.shape[0], problem.n)))
                    rows[-1][:, slopes.index] = slopes.values
    if not rows:
        return None
    a, r = np.concatenate(rows), np.concatenate(residuals)
    if r.size <= problem.n:
        return None
    variance = float(r @ r) / (r.size - problem.n)
    # Directions that the data do not see have no finite error.
    _, s, vt = np.linalg.svd(a, full_matrices=False)
    seen = s > 1e-12 * s[0]
    weighted = vt[seen] / s[seen][:, None]
    errors = np.sqrt(variance * (weighted**2).sum(axis=0))
    errors[np.abs(vt[~seen]).max(axis=0, initial=0.0) > 1e-6] = np.nan
    covariance = variance * weighted.T @ weighted
    slope = problem.design.pushforward(x, np.ones(problem.n))
    standard = np.abs(slope) * errors
    total_weight = sum(part.sample_weight for e in problem.experiments for _, part in e.objective.as_squares())
    return Uncertainty(standard, covariance, float(np.sqrt(r @ r / (3.0 * total_weight))))
