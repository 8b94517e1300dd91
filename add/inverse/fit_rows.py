"""Residuals of a fit with their derivatives, each labelled by its take, its frame and its series."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from add.adjoint import sweep
from add.equations.kinematics import Directions
from add.inverse.experiment import Experiment
from add.inverse.problem import InverseProblem
from add.linalg import one_blas_thread
from add.objectives import LeastSquares, Tracking
from add.objectives.cloud import CloudTracking
from add.objectives.whitened import WhitenedTracking
from add.simulation.run import Trajectory
from add.typing import BoolArray, FloatArray, IntArray

#: Objectives that compare a run with a recording, frame by frame.
Looking = Tracking | WhitenedTracking | CloudTracking

__all__ = ["FitRows", "clouds_of", "fit_rows", "residuals_of"]


@final
@dataclass(frozen=True, eq=False)
class FitRows:
    """Residuals of one take, rho = root * (simulated - recorded), and their derivatives by x.

    Attributes
    ----------
    name : of the experiment
    frame : (m,) number of the recorded frame
    series : (m,) number of the coordinate of a marker that the residual belongs to
    markers : names of the markers of a recording; series 3 k + i is coordinate i of marker k
    residual : (m,) weighted as the objective weights them
    slopes : (m, n)
    raw_squares : sum of the squares before the factors of the objective's parts
    places : (m, 3) of points of clouds on the body as it was at t = 0 [m]; none for markers
    """

    name: str
    frame: IntArray
    series: IntArray
    markers: tuple[str, ...]
    residual: FloatArray
    slopes: FloatArray
    raw_squares: float
    places: FloatArray = field(default_factory=lambda: np.zeros((0, 3)))

    @property
    def of_clouds(self) -> bool:
        """Whether the residuals are those of points, which no frame has again."""
        return len(self.places) > 0

    def table(self, values: FloatArray) -> FloatArray:
        """Return values (m, ...) of the residuals as (frames, series, ...), zero where there is none."""
        frames, rows = np.unique(self.frame, return_inverse=True)
        kinds, columns = np.unique(self.series, return_inverse=True)
        out = np.zeros((frames.size, kinds.size, *values.shape[1:]))
        out[rows, columns] = values
        return out

    def ordered(self) -> IntArray:
        """Return the order of the rows by series and frame, which does not depend on the steps of the run."""
        return np.lexsort((self.frame, self.series))

    def without(self, held: BoolArray) -> FitRows:
        """Return the rows with the slopes by the variables that ``held`` marks set to zero."""
        return replace(self, slopes=np.where(held, 0.0, self.slopes))


def _labels(part: LeastSquares, frames: IntArray, first: int) -> tuple[IntArray, IntArray]:
    """Return frame and series of the rows of one step, in the order of `step_residuals`."""
    assert isinstance(part, Looking)
    number, series = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for frame in frames:
        if isinstance(part, WhitenedTracking):
            rows = part.rows(int(frame))
        elif isinstance(part, CloudTracking):
            rows = np.arange(len(part.clouds[frame]))
        else:
            rows = (3 * np.flatnonzero(part.weights[frame] > 0.0)[:, None] + np.arange(3)).ravel()
        number.append(np.full(rows.size, frame))
        series.append(first + rows)
    return np.concatenate(number), np.concatenate(series)


def _width(part: Looking) -> int:
    """Return how many rows a frame has at most."""
    if isinstance(part, CloudTracking):
        return max(map(len, part.clouds))
    return part.matrices.shape[1] if isinstance(part, WhitenedTracking) else 3 * part.points.n_points


def _parts(experiment: Experiment) -> list[tuple[float, Looking]]:
    """Return what of an objective looks at a run, with the roots of its weights."""
    pairs, _ = experiment.squares_within(None)
    return [(root, part) for root, part in pairs if part.looks and isinstance(part, Looking)]


def clouds_of(experiment: Experiment) -> bool:
    """Whether an experiment is compared with point clouds."""
    return any(isinstance(part, CloudTracking) for _, part in _parts(experiment))


def fit_rows(problem: InverseProblem, x: FloatArray, experiment: Experiment) -> FitRows:
    """Return the residuals of one experiment at x and their derivatives, by one run and one forward sweep.

    Raises
    ------
    SolverError
        If the run fails.
    """
    mapping = problem.map_of(experiment)
    theta = mapping.forward(x)
    directions = Directions(mapping.jacobian(x))
    trajectory = experiment.simulation.run(theta)
    parts = _parts(experiment)
    first = np.cumsum([0, *(_width(part) for _, part in parts)])
    labels: list[tuple[IntArray, IntArray]] = []
    values: list[FloatArray] = [np.zeros(0)]
    slopes: list[FloatArray] = [np.zeros((0, problem.n))]
    places: list[FloatArray] = [np.zeros((0, 3))]
    squares = 0.0
    with one_blas_thread():
        for k, tangents in enumerate(sweep(experiment.simulation, trajectory, theta, directions)):
            state = trajectory.state(k)
            for (root, part), offset in zip(parts, first, strict=False):
                residual = part.step_residuals(state, theta)
                found = part.step_residual_tangents(state, theta, tangents, directions)
                squares += float(residual @ residual)
                values.append(root * residual)
                slopes.append(np.zeros((residual.size, problem.n)))
                slopes[-1][:, found.index] = root * found.values
                labels.append(_labels(part, part.frames(state, theta), int(offset)))
                if isinstance(part, CloudTracking):
                    places.append(part.step_places(state, theta, trajectory.kinematics(0)))
    frame, series = (np.concatenate([pair[i] for pair in labels] or [np.zeros(0, dtype=np.int64)]) for i in range(2))
    names = experiment.recording.names if experiment.recording is not None else ()
    if any(isinstance(part, WhitenedTracking) for _, part in parts):
        names = ()  # rows are combinations of the coordinates of all
    return FitRows(
        experiment.name, frame, series, names, np.concatenate(values), np.concatenate(slopes), squares,
        np.concatenate(places),
    )  # fmt: skip


def residuals_of(experiment: Experiment, theta: FloatArray, trajectory: Trajectory) -> FloatArray:
    """Return the weighted residuals of a run, ordered by series and frame, whatever the step of the run."""
    parts = _parts(experiment)
    first = np.cumsum([0, *(_width(part) for _, part in parts)])
    values, labels = [np.zeros(0)], []
    for state in trajectory.states():
        for (root, part), offset in zip(parts, first, strict=False):
            values.append(root * part.step_residuals(state, theta))
            labels.append(_labels(part, part.frames(state, theta), int(offset)))
    frame, series = (np.concatenate([pair[i] for pair in labels] or [np.zeros(0, dtype=np.int64)]) for i in range(2))
    return np.concatenate(values)[np.lexsort((frame, series))]
