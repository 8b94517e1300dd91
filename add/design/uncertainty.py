"""Standard errors of fitted parameters from forward sensitivities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from add.adjoint import forward_tangents
from add.design.problem import InverseProblem
from add.objectives import Tracking
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
        directions = [mapping.pushforward(x, column) for column in np.eye(problem.n)]
        trajectory = experiment.simulation.run(theta)
        tangents = forward_tangents(experiment.simulation, trajectory, theta, directions)
        for part in experiment.objective.objectives:
            if not isinstance(part, Tracking):
                continue
            for k, dots in enumerate(tangents.states):
                state = trajectory.state(k)
                found = part.residuals(state, theta)
                if not found:
                    continue
                slopes = [
                    part.residual_tangents(state, theta, dot, direction)
                    for dot, direction in zip(dots, directions, strict=True)
                ]
                for i, (frame, residual) in enumerate(found):
                    seen = part.weights[frame] > 0.0
                    residuals.append(residual[seen].ravel())
                    rows.append(np.stack([slope[i][seen].ravel() for slope in slopes], axis=1))
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
    total_weight = sum(
        part.weights.sum() for e in problem.experiments for part in e.objective.objectives if isinstance(part, Tracking)
    )
    return Uncertainty(standard, covariance, float(np.sqrt(r @ r / (3.0 * total_weight))))
