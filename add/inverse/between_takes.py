"""How far numbers that takes share vary from take to take, and how far residuals of a cloud correlate."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import chdtrc, chdtri

from add.inverse.fit_rows import FEWEST_FRAMES, OUT, FitRows, Whiteness
from add.typing import BoolArray, FloatArray, IntArray

#: Information about a number, beside that of the take that knows most, from which on a take counts as seeing it.
SEES = 0.05
#: Probability with which the noise of a take is no larger than it is taken for where that is judged.
SURELY = 0.95
#: Share of a number's variance that must be left over between takes for these to say how it varies.
TOLD = 0.05
#: From this number of takes on a variance is estimated; of fewer the range counts.
FEWEST_TAKES = 4
#: Most numbers whose variances are looked for; the work grows with their third power, times the takes.
MOST_SHARED = 60
#: Iterations for the variances, and the relative change that ends them.
ITERATIONS, SETTLED = 500, 1e-5


class BetweenTakes(NamedTuple):
    """How shared numbers vary from take to take, in the units of x; NaN where takes do not tell.

    Attributes
    ----------
    meat : (n, n)
        Sum over takes of H_k B H_k: what the variation adds to the covariance of the slope of the objective.
    variance : (n,)
        tau^2 of every number, the diagonal of B; 0 where takes do not tell.
    precision : (n, n)
        Information about these variances (restricted likelihood); 0 where takes do not tell.
    sees : (K, n) bool
        Which take sees which number.
    told : (n,) bool
        Whether two takes or more say how it varies.
    own, own_errors : (K, n)
        What each take asks for beyond the common value, and the standard error of that.
    """

    meat: FloatArray
    variance: FloatArray
    precision: FloatArray
    sees: BoolArray
    told: BoolArray
    own: FloatArray
    own_errors: FloatArray

    @property
    def number(self) -> IntArray:
        """Number of takes that see each number (n,)."""
        return self.sees.sum(axis=0)

    @property
    def by_range(self) -> BoolArray:
        """Numbers that so few takes see that their range counts, and no variance (n,)."""
        return self.told & (self.number < FEWEST_TAKES)

    @property
    def half_range(self) -> FloatArray:
        """Half the range of what takes ask for, without what their own noise explains (n,)."""
        noise = np.where(self.sees, self.own_errors, 0.0)
        beyond = np.sign(self.own) * np.sqrt(np.maximum(self.own**2 - noise**2, 0.0))
        high = np.where(self.sees, beyond, -np.inf).max(axis=0, initial=-np.inf)
        low = np.where(self.sees, beyond, np.inf).min(axis=0, initial=np.inf)
        return np.where(self.told, 0.5 * (high - low), np.nan)

    @property
    def bars_apart(self) -> FloatArray:
        """Largest difference between two takes over its standard error, their own noise (n,)."""
        largest = np.zeros(self.told.size)
        for k in range(len(self.own)):
            for j in range(k):
                both = self.sees[k] & self.sees[j] & self.told
                bar = np.hypot(self.own_errors[k], self.own_errors[j])
                apart = np.abs(self.own[k] - self.own[j])
                largest = np.where(both, np.fmax(largest, apart / np.where(bar > 0.0, bar, np.inf)), largest)
        return largest


def between_takes(rows: Sequence[FitRows], meats: Sequence[FloatArray], blind: BoolArray) -> BetweenTakes:
    """Return how numbers vary between takes, x_k = x + b_k with b_k ~ N(0, B), B diagonal.

    Take k has H_k = J_k^T J_k and the slope g_k = J_k^T rho_k at the common minimum, with the covariance M_k by its own
    noise. Numbers that one take has for itself are eliminated from both (Schur's complement), which leaves its
    information S_k and slope u_k about those that are shared: u_k = S_k (x - x_k) + noise of covariance c_k S_k. B
    maximises the restricted likelihood of the u_k (Harville 1977), by the iteration of Zhou, Hu, Qiao, Cho, Lange
    (J. Comput. Graph. Stat. 2019): tau_j^2 grows by the square root of the squared slope over what it should be. What a
    take hardly sees is eliminated from that take, too, which then says nothing of how it varies: the noise of a few
    frames is not known so well that its large deviations could be told from variation.

    With a = S^-1 e_p, S = sum S_k, take k pulls the estimate of number p by -a.u_k, and its share of the information is
    q_k = a.S_k a / a.S a; what it asks for is their quotient. Of p's variance the share that is left between takes is
    1 - sum_k |S_k a|^2 in the norm of S^-1, over a.S a: 0 where one take sees it, 1 - 1/K where K see it alike.

    Parameters
    ----------
    rows : one a take, slopes of what is held zero
    meats : one a take, M_k (n, n), of the residuals that the take would leave over by itself
    blind : (n,)
        Numbers that all takes together do not see.
    """
    n, count = blind.size, len(rows)
    if count < 2:
        return _nothing(n, count)
    normals = np.array([item.slopes.T @ item.slopes for item in rows]).reshape(count, n, n)
    has = np.array([(item.slopes != 0.0).any(axis=0) for item in rows]).reshape(count, n)
    shared = np.flatnonzero((has.sum(axis=0) >= 2) & ~blind)
    out = _nothing(n, count)
    if not shared.size or shared.size > MOST_SHARED:
        return out
    info, slope, noise = _reduced(rows, normals, meats, has, shared)
    unit = 1.0 / np.sqrt(np.diagonal(info.sum(axis=0)))  # diag S = 1: numbers of any unit alike
    info, slope = unit[:, None] * info * unit, slope * unit
    a = np.linalg.inv(info.sum(axis=0))  # symmetric: column p is a_p
    by = np.einsum("kij,jp->kpi", info, a)  # S_k a_p
    known = np.diag(a).copy()  # a.S a
    q = np.einsum("kpi,ip->kp", by, a) / known
    left = 1.0 - np.einsum("kpi,ij,kpj->p", by, a, by, optimize=True) / known
    noise = np.maximum(noise, 1e-12 * noise.max())
    # The noise of a few residuals may look small by chance: what a take sees is judged by the largest likely one.
    left_over = np.maximum([item.residual.size - int(own.sum()) for item, own in zip(rows, has, strict=True)], 1.0)
    precise = q / np.where(noise > 0.0, noise * left_over / chdtri(left_over, SURELY), 1.0)[:, None]
    sees = precise >= SEES * precise.max(axis=0)
    told = (left > TOLD) & (sees.sum(axis=0) >= 2) & (noise.max() > 0.0)
    safe = np.where(q > 0.0, q, 1.0)
    own = np.where(sees, -(slope @ a) / safe, np.nan)
    errors = np.where(sees, np.sqrt(noise[:, None] * known / safe), np.nan)
    seeing = [_eliminated(s, u, known_by) for s, u, known_by in zip(info, slope, sees, strict=True)]
    info, slope = (np.array(parts) for parts in zip(*seeing, strict=True))
    variance, precision = _variances(info, slope, noise, told)
    out.variance[shared] = variance * unit**2
    out.precision[np.ix_(shared, shared)] = precision / np.outer(unit**2, unit**2)
    out.sees[:, shared], out.told[shared] = sees, told
    out.own[:, shared], out.own_errors[:, shared] = own * unit, errors * unit
    out.meat[...] = np.einsum("kij,j,kjl->il", normals, out.variance, normals, optimize=True)
    return out


def _nothing(n: int, count: int) -> BetweenTakes:
    none, no = np.full((count, n), np.nan), np.zeros((count, n), bool)
    return BetweenTakes(
        np.zeros((n, n)), np.zeros(n), np.zeros((n, n)), no, np.zeros(n, bool), none, none.copy()
    )  # fmt: skip


def _reduced(
    rows: Sequence[FitRows], normals: FloatArray, meats: Sequence[FloatArray], has: BoolArray, shared: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return S_k (K, s, s), u_k (K, s) and c_k (K,) about the shared numbers alone."""
    info, slope, noise = [], [], []
    for item, normal, meat, sees in zip(rows, normals, meats, has, strict=True):
        others = np.setdiff1d(np.flatnonzero(sees), shared)
        onto = np.eye(normal.shape[0])[shared]
        if others.size:
            inner = np.linalg.pinv(normal[np.ix_(others, others)], rcond=1e-12, hermitian=True)
            onto[:, others] -= normal[np.ix_(shared, others)] @ inner
        reduced = onto @ normal @ onto.T
        info.append(0.5 * (reduced + reduced.T))
        slope.append(onto @ (item.slopes.T @ item.residual))
        size, vectors = np.linalg.eigh(info[-1])
        good = size > 1e-10 * max(float(size.max(initial=0.0)), 1e-300)
        spread = np.einsum("ip,ij,jp->p", vectors, onto @ meat @ onto.T, vectors)[good]
        noise.append(float((spread / size[good]).mean()) if good.any() else 0.0)
    return np.array(info), np.array(slope), np.array(noise)


def _eliminated(info: FloatArray, slope: FloatArray, kept: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return information and slope of a take about what is kept, the rest free; zero for the rest."""
    onto = np.diag(kept.astype(float))
    rest = np.flatnonzero(~kept)
    if rest.size:
        inner = np.linalg.pinv(info[np.ix_(rest, rest)], rcond=1e-12, hermitian=True)
        onto[:, rest] = -np.where(kept[:, None], info[:, rest] @ inner, 0.0)
    out = onto @ info @ onto.T
    return 0.5 * (out + out.T), onto @ slope


def _variances(
    info: FloatArray, slope: FloatArray, noise: FloatArray, told: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Return tau^2 (s,) by restricted likelihood and the information about them (s, s); zero where not told."""
    count, s = slope.shape
    if not told.any():
        return np.zeros(s), np.zeros((s, s))
    weight, asked = info / noise[:, None, None], -slope / noise[:, None]

    def at(variance: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return W_k = (N_k^-1 + B)^-1, the covariance C of the common value, and t_k = W_k (x_k - x)."""
        turned = np.linalg.inv(np.eye(s) + weight * variance)  # (I + N_k B)^-1
        w = turned @ weight
        c = np.linalg.pinv(w.sum(axis=0), rcond=1e-12, hermitian=True)
        pulls = np.einsum("kij,kj->ki", turned, asked)
        return w, c, pulls - w @ (c @ pulls.sum(axis=0))

    seen = np.maximum(np.einsum("kjj->j", weight**2), 1e-300)
    variance = np.where(told, np.maximum((asked**2).sum(axis=0) / seen, 1e-300), 0.0)
    least = 1e-9 * variance
    for _ in range(ITERATIONS):
        w, c, t = at(variance)
        expected = np.einsum("kjj->j", w) - np.einsum("kji,il,klj->j", w, c, w, optimize=True)
        grown = variance * np.sqrt((t**2).sum(axis=0) / np.where(expected > 0.0, expected, np.inf))
        settled = np.abs(grown - variance) <= SETTLED * np.maximum(variance, 1e3 * least)
        variance = np.where(grown > least, grown, 0.0)
        if settled.all():
            break
    w, c, _ = at(variance)
    across = -np.einsum("kij,jl,mln->kimn", w, c, w, optimize=True)
    for k in range(count):
        across[k, :, k, :] += w[k]
    precision = 0.5 * np.einsum("kiml,kiml->il", across, across)
    return variance, np.where(told[:, None] & told, precision, 0.0)


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
class CloudCorrelation(Whiteness):
    """Correlation of the residuals of one take's clouds.

    Two points of one frame, at the distance d on the body at rest, have the correlation a exp(-d/l); points of frames
    that are k apart a exp(-d/l) rho_k. The share 1 - a is noise of each point alone.

    Attributes
    ----------
    p_value : of independent residuals (sum over the distances of pairs times squared correlation)
    time : tau = 1 + 2 sum |rho_k|, the frames that one independent frame takes; 1 where there are too few to tell
    share : a
    length : l [m]
    correlated : sum over the frames of all entries of their correlation matrices, with a times tau
    """

    share: float
    length: float
    correlated: float

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
    unknown = CloudCorrelation(len(frames), n, False, np.nan, 1.0, 0.0, 1.0, float(n))
    if not extent or not size:
        return unknown
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
    if not some.any():  # a point a frame, or all far apart
        return unknown
    correlation, distance = sums[some] / pairs[some], away[some] / pairs[some]
    p_value = float(chdtrc(int(some.sum()), float((pairs[some] * correlation**2).sum())))
    share, length = _decay(distance, correlation, pairs[some], extent)
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
    correlations = [share * np.exp(-cdist(at, at) / length) + (1.0 - share) * np.eye(len(at)) for at in places]
    lags = len(frames) // 2
    rho, worth = np.ones(lags + 1), np.ones(lags + 1)
    for lag in range(1, lags + 1):
        product = expected = variance = 0.0
        for k in range(len(frames) - lag):
            apart = cdist(places[k], places[k + lag])
            near = np.where(apart < length, share * np.exp(-apart / length), 0.0)
            product += float(values[k] @ near @ values[k + lag])
            expected += float((near**2).sum())
            variance += float(((correlations[k] @ near) * (near @ correlations[k + lag])).sum())
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
