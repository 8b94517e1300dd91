"""Given functions of time: constants, tables, splines, sines.

A signal is linear in its coefficients, ``value(t) = weights(t) @ rows``; the rows live in theta, so that every load and
motion is differentiable with one rule, whatever its shape in time.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np

from add.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.interpolate import CubicSpline


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

    def acting(self, t: float) -> tuple[slice, FloatArray]:
        """Return rows that all others are without effect beside at time ``t`` [s], and their weights."""
        return slice(None), self.weights(t)

    def windows(self, times: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the first row (k,) that acts at each of many times (k,), and the weights (k, m) from there on."""
        return np.zeros(times.size, dtype=np.int64), np.stack([self.weights(float(t)) for t in times])


class Windowed(Signal):
    """A signal known by the rows that act at given times."""

    @abstractmethod
    def windows(self, times: FloatArray) -> tuple[IntArray, FloatArray]:
        """See `Signal.windows`."""

    def weights(self, t: float) -> FloatArray:
        """Return (n_rows,) weights at time ``t``."""
        out = np.zeros(self.n_rows)
        rows, weights = self.acting(t)
        out[rows] = weights
        return out

    def acting(self, t: float) -> tuple[slice, FloatArray]:
        """Return the rows that act at time ``t`` and their weights."""
        (first,), (weights,) = self.windows(np.array([t]))
        return slice(first, first + weights.size), weights


#: Every coupling asks for it at every residual.
_ONE: FloatArray = np.ones(1)


@final
@dataclass(frozen=True)
class Constant(Signal):
    """One row, always."""

    #: One.
    n_rows: ClassVar[int] = 1

    def weights(self, t: float) -> FloatArray:
        """Return (1,); not to be written to."""
        return _ONE

    def rates(self, t: float) -> FloatArray:
        """Return zero."""
        return np.zeros(1)

    def windows(self, times: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return ones."""
        return np.zeros(times.size, dtype=np.int64), np.ones((times.size, 1))


@final
@dataclass(frozen=True)
class Ramp(Signal):
    """One row, a velocity: t times the row."""

    #: One.
    n_rows: ClassVar[int] = 1

    def weights(self, t: float) -> FloatArray:
        """Return (t,)."""
        return np.array([t])

    def rates(self, t: float) -> FloatArray:
        """Return (1,)."""
        return np.ones(1)


@final
@dataclass(frozen=True)
class Table(Windowed):
    """Linear interpolation between rows at ``times``; the end rows are held outside."""

    times: FloatArray

    @property
    def n_rows(self) -> int:
        """One a time."""
        return self.times.size

    def windows(self, times: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the row before each time, and the weights of it and the next."""
        if self.times.size == 1:
            return np.zeros(times.size, dtype=np.int64), np.ones((times.size, 1))
        first = np.clip(np.searchsorted(self.times, times, side="right") - 1, 0, self.times.size - 2)
        share = (times - self.times[first]) / (self.times[first + 1] - self.times[first])
        share = np.clip(share, 0.0, 1.0)
        return first, np.stack([1.0 - share, share], axis=1)

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
class Spline(Windowed):
    """Natural cubic spline through rows at ``times``; the end rows are held outside."""

    times: FloatArray
    _basis: "CubicSpline" = field(init=False, repr=False)

    def __post_init__(self) -> None:
        from scipy.interpolate import CubicSpline

        object.__setattr__(self, "_basis", CubicSpline(self.times, np.eye(self.times.size), bc_type="natural"))

    @property
    def n_rows(self) -> int:
        """One a time."""
        return self.times.size

    def windows(self, times: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the cardinal splines at all times together."""
        return np.zeros(times.size, dtype=np.int64), np.asarray(
            self._basis(np.clip(times, self.times[0], self.times[-1]))
        )

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

    #: Offset and amplitude.
    n_rows: ClassVar[int] = 2

    def weights(self, t: float) -> FloatArray:
        """Return (1, sin(2 pi f t + phase))."""
        return np.array([1.0, np.sin(2.0 * np.pi * self.frequency * t + self.phase)])

    def rates(self, t: float) -> FloatArray:
        """Return (0, 2 pi f cos(2 pi f t + phase))."""
        omega = 2.0 * np.pi * self.frequency
        return np.array([0.0, omega * np.cos(omega * t + self.phase)])


@final
@dataclass(frozen=True)
class BSplineSignal(Windowed):
    """A control: n rows, each of which acts for a while only, so that thousands cost no more than a few.

    The time from ``start`` to ``end`` is cut into equal intervals; outside, the values at the ends are held.

    - degree 0: one row an interval, n intervals, constant in each. An interval holds its end and not its beginning: a
      step that ends with it is driven by its row, as implicit steps want it.
    - degree 1: one row a knot, n - 1 intervals, linear in each.
    - degree 3: n - 3 intervals, the B-spline with clamped ends: twice differentiable, within the rows' range, and at
      the ends equal to the first and the last row.

    Attributes
    ----------
    degree : int
        0, 1 or 3.
    n_rows : int
        Above the degree.
    start, end : float
        [s]
    """

    degree: int
    n: int
    start: float
    end: float
    _knots: FloatArray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.degree not in (0, 1, 3) or self.n <= self.degree or not self.start < self.end:
            raise ValueError("a control needs degree 0, 1 or 3, more rows than its degree, and start < end")
        inner = np.linspace(self.start, self.end, self.n_intervals + 1)
        ends = np.full(self.degree, self.start), np.full(self.degree, self.end)
        object.__setattr__(self, "_knots", np.concatenate([ends[0], inner, ends[1]]))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.n

    @property
    def n_intervals(self) -> int:
        """Number of equal intervals from start to end."""
        return self.n - self.degree

    def intervals(self, times: FloatArray) -> IntArray:
        """Return the intervals of times (k,); outside, the nearest ones."""
        s = (times - self.start) / (self.end - self.start) * self.n_intervals
        # The ends of steps are multiples of dt up to round-off.
        k = np.ceil(s - 1e-9) - 1 if self.degree == 0 else np.floor(s)
        return np.clip(k.astype(np.int64), 0, self.n_intervals - 1)

    def windows(self, times: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the degree + 1 B-splines that act at each time."""
        return self._splines(times, self.degree)

    def _splines(self, times: FloatArray, degree: int) -> tuple[IntArray, FloatArray]:
        """Return the intervals of times and the B-splines of one degree that are not zero there (Cox-de Boor)."""
        t, first = np.clip(times, self.start, self.end), self.intervals(times)
        i, values = first + self.degree, np.ones((times.size, 1))
        for p in range(1, degree + 1):
            knots = self._knots[i[:, None] + np.arange(1 - p, 1 + p)]
            left, right = knots[:, :p], knots[:, p:]
            share = values / (right - left)
            values = np.zeros((times.size, p + 1))
            values[:, :-1] = (right - t[:, None]) * share
            values[:, 1:] += (t[:, None] - left) * share
        return first, values

    def rates(self, t: float) -> FloatArray:
        """Return the slopes of the B-splines at ``t``, from those of one degree less; zero outside."""
        out = np.zeros(self.n)
        if self.degree == 0 or not self.start <= t < self.end:
            return out
        (first,), (below,) = self._splines(np.array([t]), self.degree - 1)
        p, i = self.degree, first + self.degree
        share = p * below / (self._knots[i + 1 : i + 1 + p] - self._knots[i + 1 - p : i + 1])
        out[first : first + p] -= share
        out[first + 1 : first + p + 1] += share
        return out


@final
@dataclass(frozen=True)
class SignalParameter:
    """A signal and the name of its coefficients in theta.

    Attributes
    ----------
    signal : Signal
    parameter : name of the block
    begins : its value at t = 0 as the scene says it, for what is decided at build; none where nobody asks
    """

    signal: Signal
    parameter: str
    begins: tuple[float, ...] = ()


def constant(parameter: str) -> SignalParameter:
    """Return a constant signal under this name."""
    return SignalParameter(Constant(), parameter)
