"""The memory of bodies whose stress relaxes, see `add.materials.relaxation`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from add.equations.memory import Memory, Pair, Timing
from add.materials import Elements, Material, StressLoops, stress_loops
from add.typing import FloatArray, IntArray


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

    @property
    def _loops(self) -> StressLoops:
        return stress_loops(self.law)

    def _arguments(self, q: FloatArray, theta: FloatArray) -> tuple[object, ...]:
        elements = Elements(self.cells, self.gradients, self.weights, self.group, self.mean)
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
        self._loops.stress(*self._arguments(q, theta), out)
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
                self._loops.push(*arguments, x_dot, moduli_dot, one)
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
        self._loops.pull(*self._arguments(q, theta), stress.reshape(self.stress.shape), x_bar, moduli_bar)
        q_bar[self._rows] += x_bar
        np.add.at(theta_bar, self.moduli, moduli_bar)
        return out
