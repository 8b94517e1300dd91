"""Given functions of time: constants, tables, splines, sines.

A signal is linear in its coefficients, ``value(t) = weights(t) @ rows``; the rows live in theta, so that every load and
motion is differentiable with one rule, whatever its shape in time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import final

import numpy as np
from scipy.interpolate import CubicSpline

from add.typing import FloatArray


class Signal(ABC):
    """Weights of a signal's rows over time."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows of coefficients."""

    @abstractmethod
    def weights(self, t: float) -> FloatArray:
        """Return (n_rows,) weights at time ``t`` [s]."""

    @abstractmethod
    def rates(self, t: float) -> FloatArray:
        """Return (n_rows,) time derivatives of the weights [1/s]; from the right at a kink."""


@final
@dataclass(frozen=True)
class Constant(Signal):
    """One row, always."""

    @property
    def n_rows(self) -> int:
        """One."""
        return 1

    def weights(self, t: float) -> FloatArray:
        """Return (1,)."""
        return np.ones(1)

    def rates(self, t: float) -> FloatArray:
        """Return zero."""
        return np.zeros(1)


@final
@dataclass(frozen=True)
class Table(Signal):
    """Linear interpolation between rows at ``times``; the end rows are held outside."""

    times: FloatArray

    @property
    def n_rows(self) -> int:
        """One a time."""
        return self.times.size

    def weights(self, t: float) -> FloatArray:
        """Return the two hat functions at ``t``."""
        out = np.zeros(self.times.size)
        i = int(np.searchsorted(self.times, t, side="right"))
        if i == 0:
            out[0] = 1.0
        elif i == self.times.size:
            out[-1] = 1.0
        else:
            s = (t - self.times[i - 1]) / (self.times[i] - self.times[i - 1])
            out[i - 1], out[i] = 1.0 - s, s
        return out

    def rates(self, t: float) -> FloatArray:
        """Return the slopes of the two hat functions at ``t``."""
        out = np.zeros(self.times.size)
        i = int(np.searchsorted(self.times, t, side="right"))
        if 0 < i < self.times.size:
            out[i] = 1.0 / (self.times[i] - self.times[i - 1])
            out[i - 1] = -out[i]
        return out


@final
@dataclass(frozen=True)
class Spline(Signal):
    """Natural cubic spline through rows at ``times``; the end rows are held outside."""

    times: FloatArray
    _basis: CubicSpline = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_basis", CubicSpline(self.times, np.eye(self.times.size), bc_type="natural"))

    @property
    def n_rows(self) -> int:
        """One a time."""
        return self.times.size

    def weights(self, t: float) -> FloatArray:
        """Return the cardinal splines at ``t``."""
        return np.asarray(self._basis(np.clip(t, self.times[0], self.times[-1])))

    def rates(self, t: float) -> FloatArray:
        """Return the slopes of the cardinal splines at ``t``."""
        if not self.times[0] <= t < self.times[-1]:
            return np.zeros(self.times.size)
        return np.asarray(self._basis(t, 1))


@final
@dataclass(frozen=True)
class Sine(Signal):
    """Rows (offset, amplitude): offset + amplitude sin(2 pi f t + phase), f in Hz, phase in rad."""

    frequency: float
    phase: float

    @property
    def n_rows(self) -> int:
        """Offset and amplitude."""
        return 2

    def weights(self, t: float) -> FloatArray:
        """Return (1, sin(2 pi f t + phase))."""
        return np.array([1.0, np.sin(2.0 * np.pi * self.frequency * t + self.phase)])

    def rates(self, t: float) -> FloatArray:
        """Return (0, 2 pi f cos(2 pi f t + phase))."""
        omega = 2.0 * np.pi * self.frequency
        return np.array([0.0, omega * np.cos(omega * t + self.phase)])
