"""Memories of bodies: numbers beside coordinates and velocities that a step reads, and makes anew at its end.

A memory m stands in entries of theta of its own while a step is solved, so that terms read it as they read every other
number and their derivatives by theta are those by the memory (`add.simulation.composed`). Those entries are zero, or
what a tie makes of them, wherever nothing is remembered: in static equilibrium.

Remembered are stress that relaxes (`add.materials.relaxation`), and activations that follow an excitation.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import numpy as np

from add.equations.signals import Signal
from add.materials import Elements, Material, called
from add.materials.relaxation import pull_remembered_stress, push_remembered_stress, remembered_stress
from add.typing import FloatArray, IntArray

#: Of q and theta.
Pair = tuple[FloatArray, FloatArray]


class Timing(NamedTuple):
    """A step: the time at its end, and its length [s]; of a state of None the time of that state."""

    t: float
    dt: float


class Memory(ABC):
    """The memory of one body over one ``step``; arrays of tangents have one column a direction.

    A state ``m`` of None is that of a body that has been at rest where a run begins for ever.
    """

    @property
    @abstractmethod
    def n(self) -> int:
        """How many numbers it has."""

    @property
    @abstractmethod
    def entries(self) -> IntArray:
        """Entries of theta that stand for it while a step is solved."""

    @abstractmethod
    def write(self, m: FloatArray, theta: FloatArray, step: Timing) -> None:
        """Write ``entries`` of ``theta`` (n_theta,)."""

    @abstractmethod
    def write_push(
        self, m: FloatArray, m_dot: FloatArray, theta: FloatArray, theta_dot: FloatArray, step: Timing
    ) -> None:
        """Write the tangents of ``entries`` into ``theta_dot`` (n_theta, k)."""

    @abstractmethod
    def write_pull(self, m: FloatArray, theta: FloatArray, theta_bar: FloatArray, step: Timing) -> FloatArray:
        """Return the cotangent of m (n,) from those of ``entries``; add what else ``theta_bar`` gets by it."""

    @abstractmethod
    def after(self, m: FloatArray | None, q: FloatArray, theta: FloatArray, step: Timing) -> FloatArray:
        """Return the memory (n,) after a step that ends at ``q`` (n_q,); of None that of a rest there."""

    @abstractmethod
    def after_push(self, m: FloatArray | None, m_dot: FloatArray, at: Pair, theta: Pair, step: Timing) -> FloatArray:
        """Return the tangents (n, k) of `after`; ``at`` and ``theta`` are q and theta with their tangents."""

    @abstractmethod
    def after_pull(self, m: FloatArray | None, at: Pair, bar: FloatArray, bars: Pair, step: Timing) -> FloatArray:
        """Return the cotangent of m (n,) from that of `after` at q and theta; add theirs to ``bars``."""


class _Branch(NamedTuple):
    """The coefficients of one branch, see `add.materials.relaxation`, and their slopes by tau.

    a; c = e a + b, the share of S_n in m_n; e; phi, that of the stress of a rest.
    """

    a: float
    c: float
    e: float
    phi: float


def _branch(tau: float, dt: float) -> tuple[_Branch, _Branch]:
    """Return the coefficients of a branch and their slopes by tau [1/s]."""
    x = dt / tau
    e, phi = np.exp(-x), -np.expm1(-x) / x
    # phi' = (e - phi)/x is all digits lost at small x; its series is x/3 - 1/2 there.
    by_phi = (e - phi) / x if x > 1e-3 else -0.5 + x / 3.0 - x * x / 8.0
    a, by_x = 1.0 - phi, -x / tau
    slopes = _Branch(-by_phi, -e * a - e * by_phi + by_phi + e, -e, by_phi)
    return _Branch(a, e * a + phi - e, e, phi), _Branch(*(by_x * slope for slope in slopes))


@final
@dataclass(frozen=True)
class Relaxation(Memory):
    """The stress that the branches of one body remember; numbers of a branch are those of all points in turn.

    Attributes
    ----------
    first, n_nodes : where the places of its nodes begin in q, and how many there are
    cells, gradients, weights, group, mean, law, moduli : see `add.terms.ElementBatch`; nodes are the body's own
    shares, times : (k,) indices in theta of g_i [-] and tau_i [s]
    relaxed : (1,) index in theta of kappa
    stress : (ne, nq, 6) indices in theta of M
    """

    first: int
    n_nodes: int
    cells: IntArray
    gradients: FloatArray
    weights: FloatArray
    group: IntArray
    mean: IntArray
    law: Material
    moduli: IntArray
    shares: IntArray
    times: IntArray
    relaxed: IntArray
    stress: IntArray

    @property
    def n(self) -> int:
        """Six numbers a point and branch."""
        return self.shares.size * self.stress.size

    @property
    def entries(self) -> IntArray:
        """Entries of kappa and M in theta."""
        return np.concatenate([self.relaxed, self.stress.ravel()])

    def _arguments(self, q: FloatArray, theta: FloatArray) -> tuple[object, ...]:
        elements = Elements(self.cells, self.gradients, self.weights, self.group, self.mean, called(self.law))
        return q[self._rows].copy(), elements, theta[self.moduli]

    @property
    def _rows(self) -> slice:
        return slice(self.first, self.first + 3 * self.n_nodes)

    def _branches(self, theta: FloatArray, step: Timing) -> Iterator[tuple[int, slice, _Branch, _Branch]]:
        """Yield number, numbers in m, coefficients and their slopes by tau of every branch."""
        size = self.stress.size
        for i, tau in enumerate(theta[self.times].tolist()):
            yield i, slice(i * size, (i + 1) * size), *_branch(tau, step.dt)

    def write(self, m: FloatArray, theta: FloatArray, step: Timing) -> None:
        """Write kappa = sum g_i a_i and M = sum g_i m_i."""
        shares = theta[self.shares]
        theta[self.stress.ravel()] = shares @ m.reshape(shares.size, -1)
        theta[self.relaxed] = sum(shares[i] * of.a for i, _, of, _ in self._branches(theta, step))

    def write_push(
        self, m: FloatArray, m_dot: FloatArray, theta: FloatArray, theta_dot: FloatArray, step: Timing
    ) -> None:
        """See `Memory.write_push`."""
        kappa, stress = np.zeros(theta_dot.shape[1]), np.zeros((self.stress.size, theta_dot.shape[1]))
        for i, part, of, by in self._branches(theta, step):
            share, by_share, by_time = theta[self.shares[i]], theta_dot[self.shares[i]], theta_dot[self.times[i]]
            kappa += of.a * by_share + share * by.a * by_time
            stress += share * m_dot[part] + m[part, None] * by_share
        theta_dot[self.relaxed], theta_dot[self.stress.ravel()] = kappa, stress

    def write_pull(self, m: FloatArray, theta: FloatArray, theta_bar: FloatArray, step: Timing) -> FloatArray:
        """See `Memory.write_pull`."""
        kappa, stress, out = theta_bar[self.relaxed][0], theta_bar[self.stress.ravel()], np.empty(self.n)
        for i, part, of, by in self._branches(theta, step):
            share = theta[self.shares[i]]
            out[part] = share * stress
            theta_bar[self.shares[i]] += of.a * kappa + m[part] @ stress
            theta_bar[self.times[i]] += share * by.a * kappa
        return out

    def after(self, m: FloatArray | None, q: FloatArray, theta: FloatArray, step: Timing) -> FloatArray:
        """Return e m + (e a + b) S of every branch; of a rest phi S."""
        now, out = self._stress(q, theta), np.empty(self.n)
        for _, part, of, _ in self._branches(theta, step):
            out[part] = of.phi * now if m is None else of.e * m[part] + of.c * now
        return out

    def _stress(self, q: FloatArray, theta: FloatArray) -> FloatArray:
        out = np.empty(self.stress.shape)
        remembered_stress(*self._arguments(q, theta), out)
        return out.ravel()

    def after_push(self, m: FloatArray | None, m_dot: FloatArray, at: Pair, theta: Pair, step: Timing) -> FloatArray:
        """See `Memory.after_push`."""
        (q, q_dot), (numbers, dots) = at, theta
        k = dots.shape[1]
        rates, one = np.zeros((self.stress.size, k)), np.empty(self.stress.shape)
        arguments = self._arguments(q, numbers)
        for j in range(k):
            x_dot, moduli_dot = q_dot[self._rows, j].copy(), dots[self.moduli, j]
            if x_dot.any() or moduli_dot.any():
                push_remembered_stress(*arguments, x_dot, moduli_dot, one)
                rates[:, j] = one.ravel()
        now, out = self._stress(q, numbers), np.empty((self.n, k))
        for i, part, of, by in self._branches(numbers, step):
            if m is None:
                out[part] = of.phi * rates + np.outer(by.phi * now, dots[self.times[i]])
            else:
                out[part] = of.e * m_dot[part] + of.c * rates
                out[part] += np.outer(by.e * m[part] + by.c * now, dots[self.times[i]])
        return out

    def after_pull(self, m: FloatArray | None, at: Pair, bar: FloatArray, bars: Pair, step: Timing) -> FloatArray:
        """See `Memory.after_pull`."""
        q, theta = at
        now, stress, out = self._stress(q, theta), np.zeros(self.stress.size), np.zeros(self.n)
        q_bar, theta_bar = bars
        for i, part, of, by in self._branches(theta, step):
            if m is None:
                stress += of.phi * bar[part]
                theta_bar[self.times[i]] += by.phi * (now @ bar[part])
            else:
                stress += of.c * bar[part]
                out[part] = of.e * bar[part]
                theta_bar[self.times[i]] += (by.e * m[part] + by.c * now) @ bar[part]
        x_bar, moduli_bar = np.zeros(3 * self.n_nodes), np.zeros(self.moduli.shape)
        pull_remembered_stress(*self._arguments(q, theta), stress.reshape(self.stress.shape), x_bar, moduli_bar)
        q_bar[self._rows] += x_bar
        np.add.at(theta_bar, self.moduli, moduli_bar)
        return out


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

    #: One.
    n: ClassVar[int] = 1

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
