"""Predicted motion of markers with what the uncertainty of fitted numbers makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.sparse as sp

from add.adjoint import sweep
from add.equations.points import PointMap
from add.equations.tangents import Directions
from add.linalg import one_blas_thread
from add.objectives import Tracking
from add.simulation.run import Simulation, Trajectory
from add.typing import FloatArray

__all__ = ["Prediction", "places", "predict"]


@final
@dataclass(frozen=True, eq=False)
class Prediction:
    """Places of markers over time with their uncertainty.

    Attributes
    ----------
    times : (nf,) [s]
    positions : (nf, nm, 3) [m]
    errors : (nf, nm, 3)
        Standard deviation of each coordinate, from the parameters alone [m].
    slopes : (nf, nm, 3, n)
        Derivatives by the parameters.
    """

    times: FloatArray
    positions: FloatArray
    errors: FloatArray
    slopes: FloatArray


def predict(
    simulation: Simulation,
    theta: FloatArray,
    markers: PointMap,
    times: FloatArray,
    of_parameters: sp.csr_array,
    covariance: FloatArray,
) -> Prediction:
    """Run a simulation and carry the covariance of parameters to the markers, x(p) = x + S dp, cov = S cov(p) S^T.

    Parameters
    ----------
    simulation, theta : to be run
    markers : PointMap
    times : (nf,) within the run [s]
    of_parameters : (n_theta, n) sparse
        d theta / d p.
    covariance : (n, n) of p

    Raises
    ------
    SolverError
        If the run fails.
    """
    shape = (times.size, markers.n_points, 3)
    sampler = _sampler(simulation, markers, times)
    directions = Directions(of_parameters)
    run = simulation.run(theta)
    slopes = np.zeros((*shape, covariance.shape[0]))
    with one_blas_thread():
        for k, tangents in enumerate(sweep(simulation, run, theta, directions)):
            state = run.state(k)
            frames = sampler.frames(state, theta)
            if not frames.size:
                continue
            found = sampler.step_residual_tangents(state, theta, tangents, directions)
            rows = np.zeros((found.values.shape[0], covariance.shape[0]))
            rows[:, found.index] = found.values
            slopes[frames] = rows.reshape(frames.size, *shape[1:], -1)
    variance = np.einsum("...i,ij,...j->...", slopes, covariance, slopes, optimize=True)
    return Prediction(times, places(simulation, run, theta, markers, times), np.sqrt(np.maximum(variance, 0.0)), slopes)


def places(
    simulation: Simulation, run: Trajectory, theta: FloatArray, markers: PointMap, times: FloatArray
) -> FloatArray:
    """Return where markers are in a run at times (nf,) within it, (nf, nm, 3) [m]."""
    # With targets of zero and weights of one the residuals are the places themselves.
    found = _sampler(simulation, markers, times).run_residuals(run, theta)
    return found.reshape(times.size, markers.n_points, 3)


def _sampler(simulation: Simulation, markers: PointMap, times: FloatArray) -> Tracking:
    shape = (times.size, markers.n_points)
    return Tracking(markers, simulation.stepper.dt, times, np.zeros((*shape, 3)), np.ones(shape), np.eye(3))
