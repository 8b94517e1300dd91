"""Robust losses: samples that are far off, such as swapped markers, count less than their square."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

from add.typing import FloatArray


@dataclass(frozen=True)
class Loss(ABC):
    """rho(s^2) of a distance s, which is s^2 for s << k (Triggs et al. 2000, appendix; Huber 1964).

    Attributes
    ----------
    scale : float
        k, the distance from which on a sample counts less [m].
    """

    scale: float

    @abstractmethod
    def value(self, squared: FloatArray) -> FloatArray:
        """Return rho(s^2) [m^2]."""

    @abstractmethod
    def slope(self, squared: FloatArray) -> FloatArray:
        """Return d rho / d s^2, in (0, 1] [-]."""


@final
@dataclass(frozen=True)
class Huber(Loss):
    """s^2 up to k, 2 k s - k^2 beyond: as a sum of distances far off."""

    def value(self, squared: FloatArray) -> FloatArray:
        k = self.scale
        return np.where(squared <= k * k, squared, 2.0 * k * np.sqrt(squared) - k * k)

    def slope(self, squared: FloatArray) -> FloatArray:
        return np.minimum(1.0, self.scale / np.sqrt(np.maximum(squared, np.finfo(float).tiny)))


@final
@dataclass(frozen=True)
class SoftL1(Loss):
    """2 k^2 (sqrt(1 + s^2 / k^2) - 1): Huber's without its corner in the second derivative."""

    def value(self, squared: FloatArray) -> FloatArray:
        ratio = squared / self.scale**2
        return 2.0 * squared / (np.sqrt(1.0 + ratio) + 1.0)

    def slope(self, squared: FloatArray) -> FloatArray:
        return 1.0 / np.sqrt(1.0 + squared / self.scale**2)


@final
@dataclass(frozen=True)
class Cauchy(Loss):
    """k^2 ln(1 + s^2 / k^2): a sample that is far off hardly pulls at all, and there may be several minima."""

    def value(self, squared: FloatArray) -> FloatArray:
        return self.scale**2 * np.log1p(squared / self.scale**2)

    def slope(self, squared: FloatArray) -> FloatArray:
        return 1.0 / (1.0 + squared / self.scale**2)


def _root(loss: Loss, d: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return g(s^2) = sqrt(rho / s^2) and dg / d s^2 of vectors d (n, 3); 1 and 0 at the origin."""
    squared = (d * d).sum(axis=1)
    safe = np.where(squared > 0.0, squared, 1.0)
    g = np.where(squared > 0.0, np.sqrt(loss.value(squared) / safe), 1.0)
    # Differences of nearly equal numbers: below 1e-6 of the scale the vectors that multiply this are smaller still.
    far = squared > 1e-12 * loss.scale**2
    return g, np.where(far, (loss.slope(squared) - g * g) / (2.0 * g * safe), 0.0)


def bend(loss: Loss, d: FloatArray) -> FloatArray:
    """Return residuals r = g d (n, 3), of which r . r = rho(|d|^2)."""
    return _root(loss, d)[0][:, None] * d


def bending(loss: Loss, d: FloatArray) -> FloatArray:
    """Return d r / d d = g I + 2 (dg / d s^2) d d^T, (n, 3, 3), of vectors of any length."""
    g, slope = _root(loss, d)
    return g[:, None, None] * np.eye(d.shape[1]) + 2.0 * slope[:, None, None] * d[:, :, None] * d[:, None, :]
