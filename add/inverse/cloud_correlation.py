"""Correlation of a cloud's residuals, over the surface and in time, and how many samples they are worth."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import chdtrc

from add.inverse.fit_rows import FEWEST_FRAMES, LEVEL, OUT, FitRows
from add.typing import FloatArray, IntArray

#: Distances at which the correlation is looked at, up to half the extent of what was seen.
BINS = 10
#: Lengths that are tried between the shortest of these distances and the extent.
LENGTHS = 30
#: Points of a frame that are compared: enough for all distances, and few enough for a table of pairs.
MOST_POINTS = 400
#: The same between frames, of which there are more pairs.
FEWER_POINTS = 150


@final
@dataclass(frozen=True, eq=False)
class CloudCorrelation:
    """Correlation of the residuals of one take's clouds.

    Two points of one frame, at the distance d on the body at rest, have the correlation a exp(-d/l); points of frames
    that are k apart a exp(-d/l) rho_k. The share 1 - a is noise of each point alone.

    Attributes
    ----------
    n_frames, n_samples : frames, and points in them
    tested : whether there were pairs enough to tell
    p_value : of independent residuals (sum over the distances of pairs times squared correlation)
    time : tau = 1 + 2 sum |rho_k|, the frames that one independent frame takes; 1 where there are too few to tell
    share : a
    length : l [m]
    correlated : sum over the frames of all entries of their correlation matrices, with a times tau
    """

    n_frames: int
    n_samples: int
    tested: bool
    p_value: float
    time: float
    share: float
    length: float
    correlated: float

    @property
    def is_white(self) -> bool:
        """Whether nothing speaks against independent residuals."""
        return not self.tested or self.p_value >= LEVEL

    @property
    def effective(self) -> float:
        """Number of independent residuals, m^2 / sum of the correlations: those that a mean of all is worth."""
        return float(self.n_samples) if self.is_white else self.n_samples**2 / self.correlated

    def meat(self, rows: FitRows) -> FloatArray:
        """Return a bound of J^T cov(rho) J (n, n): sum_f J_f^T s^2 ((1 - a) I + tau a exp(-d/l)) J_f.

        For every J: |sum_k rho_k J_f J_(f+k)| <= sum_k |rho_k| J_f J_f, as in `Correlation.meat`.
        """
        size = float(rows.residual @ rows.residual) / rows.residual.size
        total = np.zeros((rows.slopes.shape[1],) * 2)
        for at in _frames(rows):
            slopes = rows.slopes[at]
            near = np.exp(-cdist(rows.places[at], rows.places[at]) / self.length)
            total += (1.0 - self.share) * slopes.T @ slopes + self.time * self.share * slopes.T @ near @ slopes
        return size * total


def cloud_correlation(rows: FitRows) -> CloudCorrelation:
    """Return the correlation of one take's residuals, whose rows have places on the body at rest."""
    frames = list(_frames(rows))
    n, size = rows.residual.size, float(np.sqrt(np.mean(rows.residual**2)))
    extent = float(np.linalg.norm(np.ptp(rows.places, axis=0)))
    if not extent or not size:
        return CloudCorrelation(len(frames), n, False, np.nan, 1.0, 0.0, 1.0, float(n))
    unit = rows.residual / size
    edges = np.linspace(0.0, 0.5 * extent, BINS + 1)
    sums, pairs, away = np.zeros(BINS), np.zeros(BINS), np.zeros(BINS)
    chosen = [at[:: -(-at.size // MOST_POINTS)] for at in frames]
    for at in chosen:
        i, j = np.triu_indices(at.size, 1)
        apart = cdist(rows.places[at], rows.places[at])[i, j]
        k = np.digitize(apart, edges) - 1
        inside = k < BINS
        k, product = k[inside], (unit[at][i] * unit[at][j])[inside]
        sums += np.bincount(k, product, BINS)
        pairs += np.bincount(k, minlength=BINS)
        away += np.bincount(k, apart[inside], BINS)
    some = pairs > 0
    found, distance = sums[some] / pairs[some], away[some] / pairs[some]
    p_value = float(chdtrc(int(some.sum()), float((pairs[some] * found**2).sum())))
    share, length = _decay(distance, found, pairs[some], extent)
    time = _over_time(rows, unit, chosen, share, length) if len(frames) >= FEWEST_FRAMES and share else 1.0
    total = sum(np.exp(-cdist(rows.places[at], rows.places[at]) / length).sum() for at in frames)
    correlated = (1.0 - share) * n + time * share * float(total)
    return CloudCorrelation(len(frames), n, True, p_value, time, share, length, correlated)


def _frames(rows: FitRows) -> Iterator[IntArray]:
    """Yield the indices of the rows of each frame."""
    for frame in np.unique(rows.frame):
        yield np.flatnonzero(rows.frame == frame)


def _decay(distance: FloatArray, found: FloatArray, pairs: FloatArray, extent: float) -> tuple[float, float]:
    """Return share and length of the least-squares a exp(-d/l), 0 <= a <= 1, through correlations at distances."""
    best = (np.inf, 0.0, extent)
    for length in np.geomspace(0.5 * max(float(distance.min()), 1e-6 * extent), extent, LENGTHS):
        near = np.exp(-distance / length)
        share = float(np.clip((pairs * near) @ found / ((pairs * near) @ near), 0.0, 1.0))
        misfit = float(pairs @ (found - share * near) ** 2)
        if misfit < best[0]:
            best = (misfit, share, float(length))
    return best[1:]


def _over_time(rows: FitRows, unit: FloatArray, frames: list[IntArray], share: float, length: float) -> float:
    """Return tau from the correlations of points near each other in frames that are apart."""
    places = [rows.places[at[:: -(-at.size // FEWER_POINTS)]] for at in frames]
    values = [unit[at[:: -(-at.size // FEWER_POINTS)]] for at in frames]
    own = [share * np.exp(-cdist(at, at) / length) + (1.0 - share) * np.eye(len(at)) for at in places]
    lags = len(frames) // 2
    rho, worth = np.ones(lags + 1), np.ones(lags + 1)
    for lag in range(1, lags + 1):
        product = expected = variance = 0.0
        for k in range(len(frames) - lag):
            apart = cdist(places[k], places[k + lag])
            near = np.where(apart < length, share * np.exp(-apart / length), 0.0)
            product += float(values[k] @ near @ values[k + lag])
            expected += float((near**2).sum())
            variance += float(((own[k] @ near) * (near @ own[k + lag])).sum())
        # Residuals of two frames that know nothing of each other give the sum this variance: as so many pairs would.
        rho[lag], worth[lag] = (product / expected, expected**2 / variance) if expected else (0.0, 1.0)
    return _integrated(rho, worth, len(frames))


def _integrated(rho: FloatArray, worth: FloatArray, n_frames: int) -> float:
    """Return 1 + 2 sum |rho_k| over the first lags that stand out of noise, and 2 |rho_L| r / (1 - r) for those beyond.

    L is the last of them and r = |rho_L|^(1/L): correlations that fall like a power go on to fall so. Without the rest
    records of some tens of frames give half of tau, because what is left of it is too small to stand out.
    """
    small = np.flatnonzero(np.abs(rho[1:]) <= OUT / np.sqrt(worth[1:]))
    last = int(small[0]) if small.size else rho.size - 1
    if last == 0:
        return 1.0
    rate = min(float(np.abs(rho[last])) ** (1.0 / last), 0.99)
    total = 1.0 + 2.0 * float(np.abs(rho[1 : last + 1]).sum()) + 2.0 * float(np.abs(rho[last])) * rate / (1.0 - rate)
    return float(np.clip(total, 1.0, 0.5 * n_frames))
