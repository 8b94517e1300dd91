"""Activations of muscles and actuators that follow what excites them, as memories."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

from add.equations.memory import Memory, Pair, Timing
from add.equations.signals import Signal
from add.typing import FloatArray, IntArray


@dataclass(frozen=True)
class Following(Memory):
    """A number a that follows a signal u, clipped to a range.

    Attributes
    ----------
    signal : Signal
    rows : (n_rows,)
        Indices in theta of the coefficients of u.
    times : (n_times,)
        Those of its times [s].
    entry : (1,)
        That of the a which a term reads.
    control, limits : (2,)
        Lowest and highest u and a; infinite for none.
    """

    signal: Signal
    rows: IntArray
    times: IntArray
    entry: IntArray
    control: tuple[float, float] = (-np.inf, np.inf)
    limits: tuple[float, float] = (-np.inf, np.inf)

    @property
    def n(self) -> int:
        """One."""
        return 1

    @property
    def entries(self) -> IntArray:
        """That of a."""
        return self.entry

    @abstractmethod
    def followed(self, a: float | None, u: float, times: FloatArray, dt: float) -> tuple[float, FloatArray]:
        """Return a after a step of ``dt`` [s], of None that of a rest, and its slopes by a, u and the times."""

    @final
    def step(self, m: FloatArray | None, theta: FloatArray, step: Timing) -> tuple[float, FloatArray, FloatArray]:
        """Return a at the end of a step, its slopes by a before, u and the times, and the weights of u."""
        weights = self.signal.weights(step.t if m is None else step.t - 0.5 * step.dt)
        asked = float(weights @ theta[self.rows])
        u = min(max(asked, self.control[0]), self.control[1])
        a, by = self.followed(None if m is None else float(m[0]), u, theta[self.times], step.dt)
        if not self.limits[0] <= a <= self.limits[1]:
            a, by = min(max(a, self.limits[0]), self.limits[1]), np.zeros_like(by)
        return a, by, weights if u == asked else 0.0 * weights

    def _pushed(
        self, m: FloatArray | None, m_dot: FloatArray, theta: FloatArray, theta_dot: FloatArray, step: Timing
    ) -> FloatArray:
        """Return the tangents (1, k) of a."""
        _, by, weights = self.step(m, theta, step)
        before = np.zeros(theta_dot.shape[1]) if m is None else m_dot[0]
        return np.asarray(by[0] * before + by[1] * (weights @ theta_dot[self.rows]) + by[2:] @ theta_dot[self.times])[
            None
        ]

    def _pulled(
        self, m: FloatArray | None, theta: FloatArray, bar: FloatArray, theta_bar: FloatArray, step: Timing
    ) -> FloatArray:
        """Return the cotangent (1,) of a before; add those of u and the times to ``theta_bar``."""
        _, by, weights = self.step(m, theta, step)
        theta_bar[self.rows] += bar[0] * by[1] * weights
        theta_bar[self.times] += bar[0] * by[2:]
        return bar * by[0]

    def write(self, m: FloatArray, theta: FloatArray, step: Timing) -> None:
        """See `Memory.write`."""
        theta[self.entries] = self.step(m, theta, step)[0]

    def write_push(
        self, m: FloatArray, m_dot: FloatArray, theta: FloatArray, theta_dot: FloatArray, step: Timing
    ) -> None:
        """See `Memory.write_push`."""
        theta_dot[self.entries] = self._pushed(m, m_dot, theta, theta_dot, step)

    def write_pull(self, m: FloatArray, theta: FloatArray, theta_bar: FloatArray, step: Timing) -> FloatArray:
        """See `Memory.write_pull`."""
        return self._pulled(m, theta, theta_bar[self.entries], theta_bar, step)

    def after(self, m: FloatArray | None, q: FloatArray, theta: FloatArray, step: Timing) -> FloatArray:
        """See `Memory.after`."""
        return np.array([self.step(m, theta, step)[0]])

    def after_push(self, m: FloatArray | None, m_dot: FloatArray, at: Pair, theta: Pair, step: Timing) -> FloatArray:
        """See `Memory.after_push`."""
        return self._pushed(m, m_dot, *theta, step)

    def after_pull(self, m: FloatArray | None, at: Pair, bar: FloatArray, bars: Pair, step: Timing) -> FloatArray:
        """See `Memory.after_pull`."""
        return self._pulled(m, at[1], bar, bars[1], step)


@final
@dataclass(frozen=True)
class Activation(Following):
    """a' = (u - a)/tau of a muscle; tau = t_r (1/2 + 3a/2) while a rises, t_f/(1/2 + 3a/2) while it falls.

    These are Millard et al.'s (2013) as MuJoCo has them. A step takes u at its middle and two exponentials,

        h = u + (a - u) exp(-dt/(2 tau(a))),     a+ = u + (a - u) exp(-dt/tau(h)),

    which is of second order, exact where tau is constant, and never beyond u. a of a state of None is u there; the
    times are t_r and t_f.
    """

    def followed(self, a: float | None, u: float, times: FloatArray, dt: float) -> tuple[float, FloatArray]:
        """See `Following.followed`."""
        if a is None:
            return u, np.array([0.0, 1.0, 0.0, 0.0])
        start, by_a, by_u, rises = a, np.eye(4)[0], np.eye(4)[1], u > a

        def after(x: float, by_x: FloatArray, dt: float) -> tuple[float, FloatArray]:
            bent, own = 0.5 + 1.5 * x, float(times[0 if rises else 1])
            tau = own * bent if rises else own / bent
            slope = 1.5 * (own if rises else -tau / bent) * by_x
            slope = slope + tau / own * np.eye(4)[2 if rises else 3]
            left = np.exp(-dt / tau)
            return u + (start - u) * left, by_u + (by_a - by_u) * left + (start - u) * left * dt / tau**2 * slope

        return after(*after(a, by_a, 0.5 * dt), dt)


@final
@dataclass(frozen=True)
class Lag(Following):
    """a' = (u - a)/tau, exact for the u of the middle of a step; a of a state of None is u there."""

    def followed(self, a: float | None, u: float, times: FloatArray, dt: float) -> tuple[float, FloatArray]:
        """See `Following.followed`."""
        if a is None:
            return u, np.array([0.0, 1.0, 0.0])
        left = float(np.exp(-dt / times[0]))
        return u + (a - u) * left, np.array([left, 1.0 - left, (a - u) * left * dt / times[0] ** 2])


@final
@dataclass(frozen=True)
class Integral(Following):
    """a' = u, by the middle of a step; a of a state of None is zero."""

    def followed(self, a: float | None, u: float, times: FloatArray, dt: float) -> tuple[float, FloatArray]:
        """See `Following.followed`."""
        return (0.0, np.zeros(2)) if a is None else (a + dt * u, np.array([1.0, dt]))
