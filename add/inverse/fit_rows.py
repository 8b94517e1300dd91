"""Residuals of a fit with their derivatives, each labelled by its take, its frame and its series."""

from dataclasses import dataclass, field, replace
from typing import final

import numpy as np
from scipy.special import chdtrc

from add.adjoint import sweep
from add.equations.kinematics import Directions, State
from add.inverse.experiment import Experiment
from add.inverse.problem import InverseProblem
from add.linalg import one_blas_thread
from add.objectives import Tracking
from add.objectives.beyond_markers import CloudTracking, WhitenedTracking
from add.simulation.run import Trajectory
from add.typing import BoolArray, FloatArray, IntArray

#: Objectives that compare a run with a recording, frame by frame.
Looking = Tracking | WhitenedTracking | CloudTracking


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
    from_first : whether displacements count from the first frame, whose noise is then in all others
    """

    name: str
    frame: IntArray
    series: IntArray
    markers: tuple[str, ...]
    residual: FloatArray
    slopes: FloatArray
    raw_squares: float
    places: FloatArray = field(default_factory=lambda: np.zeros((0, 3)))
    from_first: bool = False

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

    def without(self, held: BoolArray) -> "FitRows":
        """Return the rows with the slopes by the variables that ``held`` marks set to zero."""
        return replace(self, slopes=np.where(held, 0.0, self.slopes))


def about_first(rows: FitRows) -> tuple[FitRows, FloatArray]:
    """Return rows without the noise of the frame from which displacements count, and J^T cov(rho) J (n, n) of that.

    It is the mean of a series, whose variance is that of a sample, or what the means are where these are larger.
    """
    if not rows.from_first:
        return rows, np.zeros((rows.slopes.shape[1],) * 2)
    _, columns, count = np.unique(rows.series, return_inverse=True, return_counts=True)
    mean = np.bincount(columns, rows.residual) / count
    rest = (rows.residual - mean[columns]) * np.sqrt(columns.size / max(columns.size - count.size, 1))
    pulls = np.zeros((count.size, rows.slopes.shape[1]))
    np.add.at(pulls, columns, rows.slopes)
    return replace(rows, residual=rest), max(np.mean(rest**2), np.mean(mean**2)) * pulls.T @ pulls


def of_frames(rows: FitRows, root: FloatArray) -> FloatArray:
    """Return cov(x) (n, n) for errors of any covariance within a frame: V sum_t g_t g_t^T V^T, each frame left out.

    g_t = (I - A_t^T A_t)^-1 A_t^T rho_t, A_t = J_t V (Bell and McCaffrey 2002, their jackknife): axes or markers that
    are not equally noisy, noise that they share, and directions and poses, which have fewer errors than coordinates.

    Parameters
    ----------
    rows : of one take
    root : (n, r), V with V V^T = (J^T J)^-1 of all takes
    """
    slopes, residual = rows.table(rows.slopes) @ root, rows.table(rows.residual)
    own = np.eye(root.shape[1]) - slopes.transpose(0, 2, 1) @ slopes
    pulls = np.linalg.pinv(own, rcond=1e-6, hermitian=True) @ np.einsum("tir,ti->tr", slopes, residual)[:, :, None]
    moved = root @ pulls[:, :, 0].T
    return np.asarray(moved @ moved.T)


#: Least mean curvature of a robust loss that is believed.
LEAST = 1e-3


#: Frame and series of no row.
_NO_LABELS = np.zeros((2, 0), dtype=np.int64)


def _labels(part: Looking, state: State, theta: FloatArray, first: int) -> IntArray:
    """Return frame and series (2, r) of the rows of one step, in the order of `step_residuals`."""
    labels = [_NO_LABELS]
    for frame in part.frames(state, theta):
        if isinstance(part, WhitenedTracking):
            rows = part.rows(int(frame))
        elif isinstance(part, CloudTracking):
            rows = np.arange(len(part.clouds[frame]))
        else:
            rows = (3 * np.flatnonzero(part.weights[frame] > 0.0)[:, None] + np.arange(3)).ravel()
        labels.append(np.stack([np.full(rows.size, frame), first + rows]))
    return np.concatenate(labels, axis=1)


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


def _seen_as(part: Looking) -> tuple[Looking, Looking]:
    """Return the part that has scores in place of residuals, and that of the distances; itself without a loss."""
    if part.loss is None:
        return part, part
    return replace(part, loss=replace(part.loss, scores=True)), replace(part, loss=None)  # type: ignore[type-var]


def _scored(of: IntArray, psi: FloatArray, slopes: FloatArray, curved: FloatArray) -> None:
    """Make scores psi and slopes A of parts (m,) residuals psi / sqrt(c) and slopes sqrt(c) A; ``curved`` is psi' A.

    A^T psi is then the slope of the objective, c A^T A its expected curvature, c being the mean of psi' (over samples,
    as the numbers see them: a.psi' a / a.a of the columns a), and psi as white noise gives the covariance
    E psi^2 / (E psi')^2 (A^T A)^-1 (Huber 1981, ch. 7.6).
    """
    for part in np.unique(of):
        at = of == part
        size = (slopes[at] ** 2).sum(axis=0)
        mean = ((slopes[at] * curved[at]).sum(axis=0) / np.where(size > 0.0, size, 1.0))[size > 0.0]
        root = np.sqrt(max(float(mean.mean()), LEAST)) if mean.size else 1.0
        psi[at] /= root
        slopes[at] *= root


def fit_rows(problem: InverseProblem, x: FloatArray, experiment: Experiment, *, scores: bool = False) -> FitRows:
    """Return the residuals of one experiment at x and their derivatives, by one run and one forward sweep.

    With ``scores`` those of robust losses are scores, whose covariance is known (`_scored`).

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
    labels = [_NO_LABELS]
    values: list[FloatArray] = [np.zeros(0)]
    slopes: list[FloatArray] = [np.zeros((0, problem.n))]
    curved: list[FloatArray] = [np.zeros((0, problem.n))]
    places: list[FloatArray] = [np.zeros((0, 3))]
    squares = 0.0
    with one_blas_thread():
        for k, tangents in enumerate(sweep(experiment.simulation, trajectory, theta, directions)):
            state = trajectory.state(k)
            for (root, part), offset in zip(parts, first, strict=False):
                residual = part.step_residuals(state, theta)
                squares += float(residual @ residual)
                bent, plain = _seen_as(part) if scores else (part, part)
                values.append(root * (residual if bent is part else bent.step_residuals(state, theta)))
                columns = plain.step_residual_tangents(state, theta, tangents, directions)
                slopes.append(root * columns.dense(problem.n))
                if bent is not plain:
                    columns = bent.step_residual_tangents(state, theta, tangents, directions)
                curved.append(root * columns.dense(problem.n))
                labels.append(_labels(part, state, theta, offset))
                if isinstance(part, CloudTracking):
                    places.append(part.step_places(state, theta, trajectory.kinematics(0)))
    frame, series = np.concatenate(labels, axis=1)
    rho, moved = np.concatenate(values), np.concatenate(slopes)
    _scored(np.searchsorted(first, series, side="right"), rho, moved, np.concatenate(curved))
    names = experiment.recording.names if experiment.recording is not None else ()
    if any(isinstance(part, WhitenedTracking) for _, part in parts):
        names = ()  # rows are combinations of the coordinates of all
    # A frame that stands for the rest, a step before t = 0, has no noise.
    origins, says = _origins(parts), _says(parts, frame)
    return FitRows(
        experiment.name, frame[says], series[says], names, rho[says], moved[says], squares, np.concatenate(places),
        bool(origins) and not np.isclose(min(origins), -experiment.simulation.stepper.dt, rtol=1e-9, atol=0.0),
    )  # fmt: skip


def residuals_of(experiment: Experiment, theta: FloatArray, trajectory: Trajectory) -> FloatArray:
    """Return the weighted residuals of a run, ordered by series and frame, whatever the step of the run."""
    parts = _parts(experiment)
    first = np.cumsum([0, *(_width(part) for _, part in parts)])
    values, labels = [np.zeros(0)], [_NO_LABELS]
    for state in trajectory.states():
        for (root, part), offset in zip(parts, first, strict=False):
            values.append(root * part.step_residuals(state, theta))
            labels.append(_labels(part, state, theta, offset))
    frame, series = np.concatenate(labels, axis=1)
    says = _says(parts, frame)
    return np.concatenate(values)[says][np.lexsort((frame[says], series[says]))]


def _origins(parts: list[tuple[float, Looking]]) -> list[float]:
    return [part.reference for _, part in parts if isinstance(part, Tracking) and part.reference is not None]


def _says(parts: list[tuple[float, Looking]], frame: IntArray) -> BoolArray:
    """Return which rows count: none is off at the frame from which displacements do."""
    return frame > 0 if _origins(parts) else np.ones(frame.size, dtype=bool)


# --- Correlation of the residuals of a fit, in time and between markers, and how many samples they are worth ----------

#: A record with fewer frames says nothing about correlation in time.
FEWEST_FRAMES = 8
#: Probability below which white residuals are given up.
LEVEL = 0.05
#: Standard errors of noise beyond which the correlation at a lag counts.
OUT = 2.5
#: Lags that are looked at, in integrated times.
WINDOW = 6.0


@dataclass(frozen=True, eq=False)
class Whiteness:
    """Whether the residuals of one take are independent.

    Attributes
    ----------
    n_frames, n_samples : frames, and residuals in them
    tested : whether there were enough to tell
    p_value : of independent residuals
    time : tau, the frames that one independent frame takes
    """

    n_frames: int
    n_samples: int
    tested: bool
    p_value: float
    time: float

    @property
    def is_white(self) -> bool:
        """Whether nothing speaks against independent residuals."""
        return not self.tested or self.p_value >= LEVEL


@final
@dataclass(frozen=True, eq=False)
class Correlation(Whiteness):
    """Correlation of the residuals of one take.

    Attributes
    ----------
    p_value : of white noise, independent from frame to frame (portmanteau test of Box and Pierce 1970 over all series)
    time : tau, the frames that one independent frame takes: 1 + 2 sum |rho_l| over the lags that stand out of noise
    shared : (s, s) correlation between the series, shrunk towards none by what noise alone would show
    per_marker : tau of each marker alone
    """

    shared: FloatArray
    per_marker: FloatArray

    @property
    def effective(self) -> float:
        """Number of independent residuals: samples / tau, less for series that move together (s^2 / |C|_F^2)."""
        if self.is_white:
            return float(self.n_samples)
        series = self.shared.shape[0]
        return self.n_samples / self.time * series / float((self.shared**2).sum())

    def meat(self, rows: FitRows) -> FloatArray:
        """Return a bound of J^T cov(rho) J (n, n) for these residuals.

        For every J: |sum_l rho_l J_t J_(t+l)| <= sum_l |rho_l| J_t J_t, so that tau multiplies what one frame gives, in
        which the series' covariance stands in full.
        """
        slopes, residual = rows.table(rows.slopes), rows.table(rows.residual)
        seen = rows.table(np.ones(rows.residual.size)) > 0.0
        size = np.sqrt((residual**2).sum(axis=0) / np.maximum(seen.sum(axis=0), 1))
        covariance = size[:, None] * self.shared * size
        return self.time * np.asarray(np.einsum("tin,ij,tjm->nm", slopes, covariance, slopes, optimize=True))


def correlation(rows: FitRows) -> Correlation:
    """Return the correlation of one take's residuals."""
    values = rows.table(rows.residual)
    seen = rows.table(np.ones(rows.residual.size)) > 0.0
    scale = np.sqrt((values**2).sum(axis=0) / np.maximum(seen.sum(axis=0), 1))
    unit = values / np.where(scale > 0.0, scale, 1.0)
    n_frames, n_series = unit.shape
    markers = [np.flatnonzero(np.unique(rows.series) // 3 == k) for k in np.unique(rows.series // 3)]
    if n_frames < FEWEST_FRAMES or not scale.any():
        return Correlation(n_frames, rows.residual.size, False, np.nan, 1.0, np.eye(n_series), np.ones(len(markers)))
    shared = _between_series(unit, seen, 1.0)
    independent = n_series**2 / float((shared**2).sum())
    rho, pairs = _over_time(unit, seen)
    pairs = pairs * independent / n_series
    lags = min(10, n_frames // 4)
    p_value = float(chdtrc(lags, float((pairs[1 : lags + 1] * rho[1 : lags + 1] ** 2).sum())))
    time = _integrated(rho, pairs, n_frames)
    shared = _between_series(unit, seen, time)
    each = [_integrated(*_over_time(unit[:, k], seen[:, k]), n_frames) for k in markers]
    return Correlation(n_frames, rows.residual.size, True, p_value, time, shared, np.array(each))


def _over_time(unit: FloatArray, seen: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return the autocorrelation (lags,) pooled over series of unit size, and the pairs that each lag has."""
    lags = unit.shape[0] // 2
    rho, pairs = np.zeros(lags + 1), np.zeros(lags + 1)
    for lag in range(lags + 1):
        first, second = slice(0, unit.shape[0] - lag), slice(lag, None)
        pairs[lag] = (seen[first] & seen[second]).sum()
        rho[lag] = float((unit[first] * unit[second]).sum()) / max(pairs[lag], 1.0)
    return rho / (rho[0] or 1.0), pairs


def _integrated(rho: FloatArray, pairs: FloatArray, n_frames: int) -> float:
    """Return 1 + 2 sum |rho_l| over lags that stand out of noise, at most half the frames.

    The noise of rho_l is that of Bartlett (1946), which grows with the correlations at shorter lags. Lags beyond six
    times the sum so far are noise to all that is known (Sokal 1997, with |rho| for rho, so that what swings counts).
    """
    error = np.sqrt((1.0 + 2.0 * np.concatenate([[0.0], np.cumsum(rho[1:-1] ** 2)])) / np.maximum(pairs[1:], 1.0))
    weights = 1.0 - np.arange(1, rho.size) / n_frames
    sums = 1.0 + 2.0 * np.cumsum(weights * np.abs(rho[1:]) * (np.abs(rho[1:]) > OUT * error))
    far = np.flatnonzero(np.arange(1, rho.size) >= WINDOW * sums)
    time = sums[far[0] if far.size else -1] if sums.size else 1.0
    return float(np.clip(time, 1.0, max(1.0, 0.5 * n_frames)))


def _between_series(unit: FloatArray, seen: BoolArray, time: float) -> FloatArray:
    """Return the correlation between series, shrunk by the share that noise of so few frames explains.

    The weight of the identity is that of Schaefer and Strimmer (2005) for equal variances of the entries.
    """
    together = np.maximum(seen.T.astype(float) @ seen.astype(float), 1.0)
    correlation = unit.T @ unit / together
    np.fill_diagonal(correlation, 1.0)
    off = ~np.eye(correlation.shape[0], dtype=bool)
    noise = float((time / together[off]).sum())
    strength = float((correlation[off] ** 2).sum())
    keep = max(0.0, 1.0 - noise / strength) if strength > 0.0 else 0.0
    return np.where(off, keep * np.clip(correlation, -1.0, 1.0), correlation)
