"""Draws of uncertain numbers: from a covariance on the scales of a fit, from a bootstrap, or within profiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import ndtri

from add.inverse.maps import Linear, Transform
from add.typing import FloatArray

__all__ = ["Drawn", "Uncertain", "draw", "scale_for"]

#: How often numbers that leave their bounds are drawn again.
MOST_ATTEMPTS = 400


def scale_for(transform: Transform, value: float, error: float) -> Transform:
    """Return the scale on which a number is drawn: its own, but linear where the error of a positive one exceeds it.

    What is small beside its error acts in proportion to p; a logarithm would make factors of hundreds of it.
    """
    return Linear() if error > abs(value) else transform


@final
@dataclass(frozen=True, eq=False)
class Uncertain:
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
    """

    values: FloatArray
    transforms: tuple[Transform, ...]
    lower: FloatArray
    upper: FloatArray
    covariance: FloatArray
    shifts: FloatArray
    ends: FloatArray
    replicates: FloatArray

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


@final
@dataclass(frozen=True, eq=False)
class Drawn:
    """Draws of numbers.

    Attributes
    ----------
    values : (n_draws, n) physical, within the bounds
    moves : (n_draws, n)
        dp/dy (y - y_0): the moves of p to which a linear band answers.
    outside : (n,)
        Share of what was drawn at first that left the bounds of each number.
    held : share of the draws for which nothing within the bounds was found, so that the bounds hold them
    """

    values: FloatArray
    moves: FloatArray
    outside: FloatArray
    held: float


def draw(parts: Sequence[Uncertain], n_draws: int, seed: int) -> Drawn:
    """Draw the numbers of several fits, which know nothing of each other.

    y = y_0 + L z, L L^T = dy/dp cov(p) dy/dp, z normal: symmetric where the fit was, so that log-transformed numbers
    stay positive. Within ends of an interval each side has its own size (a two-piece normal, Wallis 2014), with the
    same correlations. Replicates are drawn with replacement; shifts are added to them. Where a number leaves the bounds
    of the fit, all of that fit are drawn again: a truncated normal, which keeps what numbers balance between them.

    Parameters
    ----------
    parts : of n numbers in all
    n_draws : at least one
    seed : of NumPy's default generator
    """
    generator = np.random.default_rng(seed)
    found = [_drawn(part, n_draws, generator) for part in parts]
    values, moves = (np.concatenate([getattr(item, name) for item in found], axis=1) for name in ("values", "moves"))
    return Drawn(values, moves, np.concatenate([item.outside for item in found]), max(item.held for item in found))


def _drawn(part: Uncertain, n_draws: int, generator: np.random.Generator) -> Drawn:
    n, slopes, y0 = part.values.size, part.slopes, part.scale(part.values)
    values, moves, outside = np.zeros((n_draws, n)), np.zeros((n_draws, n)), np.zeros(n)
    left = np.arange(n_draws)
    for attempt in range(MOST_ATTEMPTS):
        moved = _moved(part, left.size, generator)
        free = part.physical(y0 + moved)
        out = (free < part.lower) | (free > part.upper)
        if attempt == 0:
            outside = out.mean(axis=0)
        # The last attempt has to do.
        values[left], moves[left] = np.clip(free, part.lower, part.upper), moved * slopes
        left = left[out.any(axis=1)]
        if not left.size:
            break
    return Drawn(values, moves, outside, left.size / n_draws)


def _moved(part: Uncertain, n_draws: int, generator: np.random.Generator) -> FloatArray:
    """Return y - y_0 of as many draws, wherever they end."""
    n, slopes, y0 = part.values.size, part.slopes, part.scale(part.values)
    per_y = np.divide(1.0, slopes, out=np.zeros(n), where=slopes != 0.0)
    size, axes = np.linalg.eigh(per_y[:, None] * part.covariance * per_y)
    moved = generator.normal(size=(n_draws, n)) @ (np.sqrt(np.maximum(size, 0.0))[:, None] * axes.T)
    deviation = np.sqrt(np.maximum(np.diag(part.covariance), 0.0)) * per_y
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
