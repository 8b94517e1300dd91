"""Bands of sampled motions, and intervals of numbers by profile likelihood."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.spatial.transform import Rotation
from scipy.special import betaincinv, fdtri, ndtri

from add.adjoint import sweep
from add.equations.kinematics import Directions
from add.equations.points import PointMap
from add.errors import SolverError
from add.inverse.problem import InverseProblem
from add.linalg import one_blas_thread
from add.objectives import Tracking
from add.simulation.run import Simulation, Trajectory
from add.typing import BoolArray, FloatArray

#: A linear band holds where its width is that of the samples to these factors, and its centre within this share of it.
NARROWEST, WIDEST, SHIFT = 0.8, 1.25, 0.25
#: Coordinates with less than this share of the largest spread at a time say nothing of a band.
SMALL = 0.05


class Bands(NamedTuple):
    """Quantiles of coordinates over time.

    Attributes
    ----------
    reference : (nf, ..., c)
        What the coordinates count from: zero for places; for what turns the mean angle, direction, or rotation (as a
        rotation vector), from which they are angles [rad].
    quantiles : (n_levels, nf, ..., c)
    """

    reference: FloatArray
    quantiles: FloatArray


def levels(share: float) -> FloatArray:
    """Return the levels of quantiles of a band that holds this share, of the 50 % band and of the median, rising."""
    outer = 0.5 * (1.0 - share)
    return np.unique([outer, 0.25, 0.5, 0.75, 1.0 - outer])


def place_bands(samples: FloatArray, at: FloatArray) -> Bands:
    """Return the quantiles of samples (n, nf, ..., c) at levels ``at``."""
    return Bands(np.zeros(samples.shape[1:]), np.quantile(samples, at, axis=0))


def angle_bands(samples: FloatArray, at: FloatArray) -> Bands:
    """Return the quantiles of angles (n, nf, c) about their circular mean, which is continuous in time.

    The mean is arg sum exp(i a), and deviations are wrapped to [-pi, pi] (Mardia and Jupp 2000, ch. 2): a turn more
    or less is no difference.
    """
    mean = np.unwrap(np.angle(np.exp(1j * samples).mean(axis=0)), axis=0)
    return Bands(mean, np.quantile(wrapped(samples - mean), at, axis=0))


def wrapped(angles: FloatArray) -> FloatArray:
    """Return angles within [-pi, pi] [rad]."""
    return np.asarray(np.angle(np.exp(1j * angles)))


def direction_bands(samples: FloatArray, at: FloatArray) -> Bands:
    """Return the quantiles of unit vectors (n, nf, ..., 3) on the tangent plane at their mean direction [rad]."""
    mean = samples.mean(axis=0)
    length = np.linalg.norm(mean, axis=-1, keepdims=True)
    mean = np.where(length > 1e-12, mean / np.maximum(length, 1e-12), samples[0])
    return Bands(mean, np.quantile(on_tangent(samples, mean), at, axis=0))


def on_tangent(directions: FloatArray, mean: FloatArray) -> FloatArray:
    """Return the logarithms of unit vectors (..., 3) at a mean: across it, as long as the angle to it [rad]."""
    along = (directions * mean).sum(axis=-1, keepdims=True)
    across = directions - along * mean
    sine = np.linalg.norm(across, axis=-1, keepdims=True)
    # Half a turn away any way round is as good as another.
    return np.where(sine > 1e-12, across * np.arctan2(sine, along) / np.maximum(sine, 1e-12), 0.0)


def rotation_bands(samples: FloatArray, at: FloatArray) -> Bands:
    """Return the quantiles of rotations (n, nf, nb, 3), as rotation vectors, about their mean (Moakher 2002) [rad]."""
    shape = samples.shape[1:]
    mean, quantiles = np.zeros(shape), np.zeros((at.size, *shape))
    for place in np.ndindex(*shape[:-1]):
        turns = Rotation.from_rotvec(samples[(slice(None), *place)])
        middle = turns.mean()
        mean[place] = middle.as_rotvec()
        quantiles[(slice(None), *place)] = np.quantile((turns * middle.inv()).as_rotvec(), at, axis=0)
    return Bands(mean, quantiles)


def linear_holds(samples: FloatArray, linear: FloatArray, floor: float, share: float = 0.9) -> BoolArray:
    """Return at which times (nf,) the bands of linearised draws are those of the draws themselves.

    Both are taken of the same draws, so that what a finite number of them leaves open is in both.

    Parameters
    ----------
    samples, linear : (n, nf, ..., 3)
    floor : half width below which a band is none [m]
    share : of the draws that a band holds
    """
    axes = tuple(range(1, samples.ndim - 1))
    at = [0.5 * (1.0 - share), 0.5, 0.5 * (1.0 + share)]
    low, middle, high = np.quantile(samples, at, axis=0)
    low_1, middle_1, high_1 = np.quantile(linear, at, axis=0)
    half, half_1 = 0.5 * (high - low), 0.5 * (high_1 - low_1)
    largest = np.maximum(half, half_1)
    # A band that bends has its median in place, and not its middle; one with two humps the other way round.
    shift = np.maximum(np.abs(middle - middle_1), 0.5 * np.abs(low + high - low_1 - high_1))
    counts = largest > np.maximum(SMALL * largest.max(axis=axes, keepdims=True), floor)
    wide = half_1 * NARROWEST <= half
    narrow = half <= half_1 * WIDEST
    return np.asarray(~(counts & ~(wide & narrow & (shift < SHIFT * half_1))).any(axis=axes))


def widened(bands: Bands, at: FloatArray, noise: FloatArray) -> FloatArray:
    """Return quantiles (n_levels, nf, ..., c) of motions that are seen with normal noise.

    Widths add in squares about the median, which is exact for normal samples.

    Parameters
    ----------
    bands, at : of the motion
    noise : broadcasts to (nf, ..., c), one standard deviation
    """
    middle = bands.quantiles[np.searchsorted(at, 0.5)]
    moved = bands.quantiles - middle
    of_noise = ndtri(at).reshape(-1, *[1] * (moved.ndim - 1)) * noise
    return np.asarray(middle + np.copysign(np.hypot(moved, of_noise), of_noise))


def interval_score(lower: FloatArray, upper: FloatArray, seen: FloatArray, share: float) -> FloatArray:
    """Return the score of central intervals (Gneiting and Raftery 2007, Eq. 43); smaller is better, in their unit.

    S = (u - l) + 2/a (l - x) [x < l] + 2/a (x - u) [x > u] of an interval that is to hold the share 1 - a.
    """
    miss = np.maximum(lower - seen, 0.0) + np.maximum(seen - upper, 0.0)
    return np.asarray(upper - lower + 2.0 / (1.0 - share) * miss)


def share_interval(count: int, total: int) -> tuple[float, float]:
    """Return the exact 95 % interval of a probability that came true ``count`` of ``total`` times (Clopper-Pearson)."""
    tail = 0.025
    low = 0.0 if count == 0 else float(betaincinv(count, total - count + 1, tail))
    high = 1.0 if count == total else float(betaincinv(count + 1, total - count, 1.0 - tail))
    return low, high


class Prediction(NamedTuple):
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
    simulation: Simulation, theta: FloatArray, markers: Tracking, of_parameters: sp.csr_array, covariance: FloatArray
) -> Prediction:
    """Run a simulation and carry the covariance of parameters to the markers, x(p) = x + S dp, cov = S cov(p) S^T.

    Parameters
    ----------
    simulation, theta : to be run
    markers : of `sampler`
    of_parameters : (n_theta, n) sparse
        d theta / d p.
    covariance : (n, n) of p

    Raises
    ------
    SolverError
        If the run fails.
    """
    shape, directions = markers.targets.shape, Directions(of_parameters)
    run = simulation.run(theta)
    slopes = np.zeros((*shape, covariance.shape[0]))
    with one_blas_thread():
        for k, tangents in enumerate(sweep(simulation, run, theta, directions)):
            state = run.state(k)
            frames = markers.frames(state, theta)
            if not frames.size:
                continue
            columns = markers.step_residual_tangents(state, theta, tangents, directions)
            slopes[frames] = columns.dense(covariance.shape[0]).reshape(frames.size, *shape[1:], -1)
    variance = np.einsum("...i,ij,...j->...", slopes, covariance, slopes, optimize=True)
    seen = places(markers, run, theta)
    return Prediction(markers.times, seen, np.sqrt(np.maximum(variance, 0.0)), slopes)


def places(markers: Tracking, run: Trajectory, theta: FloatArray) -> FloatArray:
    """Return where the markers of a `sampler` are in a run at its times, (nf, nm, 3) [m]."""
    return markers.run_residuals(run, theta).reshape(markers.targets.shape)


def sampler(simulation: Simulation, markers: PointMap, times: FloatArray, clock: tuple[int, float] | None) -> Tracking:
    """Return what looks at markers at times (nf,) within a run [s]: its residuals are the places themselves.

    Parameters
    ----------
    clock : of a recording: index in theta of the time at which it begins, and the value for which its times hold [s]
    """
    shape = (times.size, markers.n_points)
    index, start = clock if clock is not None else (None, 0.0)
    last = None if clock is None else simulation.n_steps
    return Tracking(
        markers, simulation.stepper.dt, times, np.zeros((*shape, 3)), np.ones(shape), np.eye(3),
        clock=index, clock_start=start, last=last,
    )  # fmt: skip


# --- Intervals by profile likelihood: bounds and curvature are in them, where a standard error has neither ------------

#: Steps of Gauss-Newton for the other parameters at a value of this one.
MOST_STEPS = 12
#: Trial values on each side.
MOST_VALUES = 12
#: The ends of an interval are found to this share of their way from the minimum.
PRECISION = 0.03


class Interval(NamedTuple):
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
    problem: InverseProblem, x: FloatArray, k: int, *, step: float, freedom: float, rise: float, coverage: float = 0.95
) -> Interval:
    """Return the interval of x_k in which the objective, the others fitted anew, stays below its limit.

    phi_k(v) = min over the others of phi with x_k = v; the ends are where (phi_k - phi) / rise reaches the quantile of
    F(1, freedom) (Venzon and Moolgavkar 1988; Bates and Watts 1988, ch. 6).

    Parameters
    ----------
    problem : InverseProblem
    x : (n,) where the fit ended
    k : the variable
    step : half width of the interval that the standard error gives, in x: the first trial
    freedom : degrees of freedom of the noise
    rise : of phi_k at one standard error; phi / (samples - parameters) of white noise

    Raises
    ------
    SolverError
        If the run fails at x.
    """
    search = _Search(problem, x, k)
    best = search.constrained(float(x[k]))
    limit = best + rise * float(fdtri(1.0, max(freedom, 1.0), coverage))
    lower, upper = problem.bounds
    ends = []
    for sign, bound in ((-1.0, float(lower[k])), (1.0, float(upper[k]))):
        search.others = x.copy()
        ends.append(_end(search, float(x[k]), sign, bound, step, best, limit))
    slots = [problem.value_of(k, value, x) for value, _ in ends]
    return Interval(slots[0], slots[1], ends[0][1], ends[1][1], search.evaluations)


class _Search:
    """The objective with one variable held and the others fitted, warm-started from the last fit."""

    def __init__(self, problem: InverseProblem, x: FloatArray, k: int) -> None:
        self.problem, self.k, self.others = problem, k, x.copy()
        self.free = np.setdiff1d(np.arange(problem.n), [k])
        self.evaluations = 0

    def constrained(self, value: float) -> float:
        """Return the objective at the minimum over the others."""
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
                trial_point = self.problem.residuals(trial)
            except SolverError:
                damping = max(10.0 * damping, 1e-3)
                continue
            if trial_point.value < point.value:
                point, damping = trial_point, 0.1 * damping if damping > 1e-6 else 0.0
            else:
                damping = max(10.0 * damping, 1e-3)
        self.others = point.x.copy()
        return point.value


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
            share = np.sqrt(max(search.constrained(start + sign * trial) - best, 0.0) / (limit - best))
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
