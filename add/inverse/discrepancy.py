"""Discrepancy of a model: what a fit leaves over, as a process in time, for motions of the same kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from add.typing import FloatArray

__all__ = ["Discrepancy", "discrepancy"]

#: Stretches of time in which the size is told apart, at most.
MOST_STRETCHES = 20
#: Correlation down to which lags tell the correlation time, and by their line how much of lag 0 is noise.
LEAST = 0.5


@final
@dataclass(frozen=True, eq=False)
class Discrepancy:
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
        own = np.where(self.predicted & (times > 0.0), spread, 0.0)
        return np.sqrt(np.maximum(np.interp(times, self.times, self.sizes) ** 2 - own**2, 0.0))


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
