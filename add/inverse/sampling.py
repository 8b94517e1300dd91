"""Draws of uncertain numbers: from a covariance on the scales of a fit, from a bootstrap, or within profiles."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

from add.inverse.maps import Linear, Transform
from add.typing import FloatArray

#: Variance of numbers together, in units of their own, below which it is round-off.
FLAT = 1e-9


def scale_for(transform: Transform, value: float, error: float) -> Transform:
    """Return the scale on which a number is drawn: its own, but linear where the error of a positive one exceeds it.

    What is small beside its error acts in proportion to p; a logarithm would make factors of hundreds of it.
    """
    return Linear() if error > abs(value) else transform


class Uncertain(NamedTuple):
    """Numbers of one fit with what is known of their errors, on the scales y = T^-1(p) that they were fitted on.

    Attributes
    ----------
    values : (n,) physical
    transforms : n transforms T, p = T(y)
    lower, upper : (n,)
        Physical bounds of the fit.
    covariance : (n, n)
        Of p, linear about the values: what the residuals and takes say; zero rows where nothing is known.
    shifts : (k, n)
        By how much each of k causes, such as the steps, moves all numbers p together; each of one standard deviation.
    ends : (n, 2)
        Ends of 95 % intervals of p that take the place of the covariance's own sizes, as profiles give; NaN for none.
    replicates : (m, n)
        Estimates of a bootstrap, which take the place of the covariance; NaN where it has none; m = 0 without one.
    freedom : (n,)
        Degrees of freedom of the covariance: 90 % of the draws by it lie as far out as 90 % of Student's t.
    """

    values: FloatArray
    transforms: tuple[Transform, ...]
    lower: FloatArray
    upper: FloatArray
    covariance: FloatArray
    shifts: FloatArray
    ends: FloatArray
    replicates: FloatArray
    freedom: FloatArray | float = np.inf

    @property
    def linear(self) -> FloatArray:
        """Covariance of p (n, n) with the shifts: what a linear band carries over."""
        return self.covariance + self.shifts.T @ self.shifts

    def scale(self, p: FloatArray) -> FloatArray:
        """Return y (..., n) of physical values (..., n)."""
        return self._each("inverse", p)

    def physical(self, y: FloatArray) -> FloatArray:
        """Return p (..., n), not yet within its bounds."""
        return self._each("forward", y)

    @property
    def slopes(self) -> FloatArray:
        """The slopes dp/dy (n,) at the values."""
        return self._each("slope", self.scale(self.values))

    def _each(self, method: str, values: FloatArray) -> FloatArray:
        out = np.empty_like(values)
        for k, transform in enumerate(self.transforms):
            out[..., k] = getattr(transform, method)(values[..., k])
        return out


class Drawn(NamedTuple):
    """Draws of numbers.

    Attributes
    ----------
    values : (n_draws, n) physical, within the bounds
    moves : (n_draws, n)
        dp/dy (y - y_0): the moves of p to which a linear band answers.
    outside : (n,)
        Share of what was drawn at first that left the bounds of each number.
    """

    values: FloatArray
    moves: FloatArray
    outside: FloatArray


def draw(parts: Sequence[Uncertain], n_draws: int, seed: int) -> Drawn:
    """Draw the numbers of several fits, which know nothing of each other.

    y = y_0 + L z, L L^T = dy/dp cov(p) dy/dp, z normal: symmetric where the fit was, so that log-transformed numbers
    stay positive. Within ends of an interval each side has its own size (a two-piece normal, Wallis 2014), with the
    same correlations. Replicates are drawn with replacement; shifts are added to them. Where a number leaves the bounds
    of the fit, the draw is what a fit within them would have ended at: the nearest point in the metric of the draws'
    covariance, so that others make up for it. (Drawn again, all of four dampings that share one loss are above zero,
    and lose more together than was found.)

    Parameters
    ----------
    parts : of n numbers in all
    n_draws : at least one
    seed : of NumPy's default generator
    """
    generator = np.random.default_rng(seed)
    draws = [_drawn(part, n_draws, generator) for part in parts]
    values, moves = (np.concatenate([getattr(item, name) for item in draws], axis=1) for name in ("values", "moves"))
    return Drawn(values, moves, np.concatenate([item.outside for item in draws]))


def _drawn(part: Uncertain, n_draws: int, generator: np.random.Generator) -> Drawn:
    from scipy.optimize import lsq_linear

    slopes, y0 = part.slopes, part.scale(part.values)
    moved = _moved(part, n_draws, generator)
    free = part.physical(y0 + moved)
    out = (free < part.lower) | (free > part.upper)
    spread = np.atleast_2d(np.cov(moved, rowvar=False))
    loose = np.flatnonzero(np.diag(spread) > 0.0)
    if loose.size:
        # In units of their own deviations, so that round-off is the same for all.
        unit = np.sqrt(np.diag(spread))[loose]
        size, axes = np.linalg.eigh(spread[np.ix_(loose, loose)] / np.outer(unit, unit))
        root = (axes / np.sqrt(np.maximum(size, FLAT))).T / unit
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = [part.scale(bound)[loose] - y0[loose] for bound in (part.lower, part.upper)]
        around = np.minimum(ends[0], 0.0), np.maximum(ends[1], 0.0)
        for k in np.flatnonzero(out[:, loose].any(axis=1)):
            moved[k, loose] = lsq_linear(root, root @ moved[k, loose], around, method="bvls").x
    values = np.clip(part.physical(y0 + moved), part.lower, part.upper)
    return Drawn(values, moved * slopes, out.mean(axis=0))


def _moved(part: Uncertain, n_draws: int, generator: np.random.Generator) -> FloatArray:
    """Return y - y_0 of as many draws, wherever they end."""
    n, slopes, y0 = part.values.size, part.slopes, part.scale(part.values)
    per_y = np.divide(1.0, slopes, out=np.zeros(n), where=slopes != 0.0)
    size, axes = np.linalg.eigh(per_y[:, None] * part.covariance * per_y)
    moved = generator.normal(size=(n_draws, n)) @ (np.sqrt(np.maximum(size, 0.0))[:, None] * axes.T)
    deviation = np.sqrt(np.maximum(np.diag(part.covariance), 0.0)) * per_y
    # What ends of profiles replace has their own Student's t.
    moved *= np.where(np.isfinite(part.ends).all(axis=1), 1.0, stdtrit(part.freedom, 0.95) / ndtri(0.95))
    reach = np.abs(part.scale(part.ends.T) - y0).T / float(ndtri(0.975))
    for k in np.flatnonzero(np.isfinite(reach).all(axis=1)):
        unit = moved[:, k] / deviation[k] if deviation[k] > 0.0 else generator.normal(size=n_draws)
        moved[:, k] = unit * np.where(unit < 0.0, reach[k, 0], reach[k, 1])
    if part.replicates.size:
        known = np.isfinite(part.replicates).all(axis=0)
        rows = part.scale(part.replicates)[generator.integers(0, len(part.replicates), n_draws)]
        moved[:, known] = rows[:, known] - y0[known]
    moved += generator.normal(size=(n_draws, len(part.shifts))) @ (part.shifts * per_y)
    return moved


# --- Discrepancy of a model: what a fit leaves over, as a process in time, for motions of the same kind ---------------

#: Stretches of time in which the size is told apart, at most.
MOST_STRETCHES = 20
#: Correlation down to which lags tell the correlation time, and by their line how much of lag 0 is noise.
LEAST = 0.5


class Discrepancy(NamedTuple):
    """A correlated misfit: residual = delta(t) + e, delta Gaussian with a size that changes over time, e white.

    Attributes
    ----------
    times, sizes : (k,)
        Standard deviation of delta of one coordinate at times since the start, or since what the start has seen [s],
        [m] or [rad].
    correlation_time : tau of exp(-lag / tau) [s]
    noise : standard deviation of e
    takes : number of takes it was estimated from
    predicted : whether these were predicted, and not fitted
    """

    times: FloatArray
    sizes: FloatArray
    correlation_time: float
    noise: float
    takes: int
    predicted: bool

    def beyond(self, spread: FloatArray, times: FloatArray) -> FloatArray:
        """Return the size at times (nf,), that of the last stretch behind it, which a motion's own spread leaves.

        What predicted takes leave over has the errors of numbers and starts in it, which samples have too: they count
        once, delta^2 - spread^2. What is left over of what a fit, or a start, has seen has them not.

        Parameters
        ----------
        spread : (nf,) standard deviation of a coordinate of the samples
        times : (nf,) since the start, or since what it has seen [s]
        """
        known = np.where(self.predicted & (times > 0.0), spread, 0.0)
        return np.sqrt(np.maximum(np.interp(times, self.times, self.sizes) ** 2 - known**2, 0.0))


def discrepancy(takes: Sequence[tuple[FloatArray, FloatArray]], *, predicted: bool = False) -> Discrepancy:
    """Return the discrepancy that the residuals of a fit show (Kennedy and O'Hagan 2001, with the fit's numbers held).

    c(l) = s^2 exp(-l / tau) + e^2 [l = 0] is the covariance at lag l, pooled over takes and coordinates: tau and s^2 by
    a line through ln c(l) over the first lags, the nugget e^2 by what c(0) is above it. The variance of each stretch of
    time is that of its residuals, less e^2, which is at most the least of them.

    Parameters
    ----------
    takes : (times (nf,) since the start, or since what it has seen [s], residuals (nf, n_series), NaN where not seen)
        One a take.
    predicted : see `Discrepancy`
    """
    step = float(np.median(np.concatenate([np.diff(times) for times, _ in takes])))
    longest = max(2, min(len(times) for times, _ in takes) // 4)
    sums, pairs = np.zeros(longest), np.zeros(longest)
    for _, residuals in takes:
        for lag in range(longest):
            product = residuals[: len(residuals) - lag] * residuals[lag:]
            sums[lag] += np.nansum(product)
            pairs[lag] += np.isfinite(product).sum()
    c = sums / np.maximum(pairs, 1.0)
    below = np.flatnonzero(c[1:] < LEAST * c[0])
    lags = np.arange(1, 1 + (below[0] if below.size else longest - 1))
    share, tau = 0.0, 0.0
    if lags.size:
        slope, height = np.polyfit(lags, np.log(c[lags] / c[0]), 1) if lags.size > 1 else (-np.inf, 0.0)
        share = float(min(np.exp(height), 1.0)) if lags.size > 1 else float(c[1] / c[0])
        tau = float(step / max(-slope, 1.0 / (2 * longest))) if lags.size > 1 else step
    times = np.concatenate([np.repeat(t, r.shape[1]) for t, r in takes])
    squares = np.concatenate([r.ravel() ** 2 for _, r in takes])
    times, squares = times[np.isfinite(squares)], squares[np.isfinite(squares)]
    number = int(np.clip(longest, 1, MOST_STRETCHES))
    first, end = min(float(times.min()), 0.0), max(float(times.max()), 1e-300)
    before = int(np.ceil(number * -first / (end - first)))  # a stretch ends where a start has seen all it has
    edges = np.union1d(np.linspace(first, 0.0, before + 1), np.linspace(0.0, end, max(number - before, 1) + 1))
    stretch = np.clip(np.searchsorted(edges, times) - 1, 0, edges.size - 2)
    filled = np.unique(stretch)
    variance = np.array([squares[stretch == k].mean() for k in filled])
    # White noise is there at all times, and no more than all that is left over where that is least.
    noise = float(np.sqrt(min(c[0] * (1.0 - share), variance.min())))
    sizes = np.sqrt(np.maximum(variance - noise**2, 0.0))
    return Discrepancy(0.5 * (edges[filled] + edges[filled + 1]), sizes, tau, noise, len(takes), predicted)
