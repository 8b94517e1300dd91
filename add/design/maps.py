"""Differentiable maps from one flat vector to another: what stands between an optimiser's x and theta."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import final

import numpy as np
import scipy.sparse as sp

from add.contact.restitution import (
    clipped_damping_derivatives,
    clipped_damping_from_restitution,
    damping_derivatives,
    damping_from_restitution,
    effective_mass,
)
from add.design.transforms import Transform
from add.typing import FloatArray, IntArray


class DesignMap(ABC):
    """y = f(x) with its derivative in both directions."""

    @abstractmethod
    def forward(self, x: FloatArray) -> FloatArray:
        """Return f(x)."""

    @abstractmethod
    def pullback(self, x: FloatArray, y_bar: FloatArray) -> FloatArray:
        """Return (df/dx)^T y_bar."""

    @abstractmethod
    def pushforward(self, x: FloatArray, x_dot: FloatArray) -> FloatArray:
        """Return df/dx x_dot."""

    @abstractmethod
    def jacobian(self, x: FloatArray) -> sp.csr_array:
        """Return df/dx, sparse."""


@final
@dataclass(frozen=True)
class Composed(DesignMap):
    """The maps one after the other, the first applied first."""

    maps: tuple[DesignMap, ...]

    def forward(self, x: FloatArray) -> FloatArray:
        """Return f_n(... f_1(x))."""
        for part in self.maps:
            x = part.forward(x)
        return x

    def pullback(self, x: FloatArray, y_bar: FloatArray) -> FloatArray:
        """Apply the chain rule backwards."""
        inputs = [x]
        for part in self.maps[:-1]:
            inputs.append(part.forward(inputs[-1]))
        for part, value in zip(reversed(self.maps), reversed(inputs), strict=True):
            y_bar = part.pullback(value, y_bar)
        return y_bar

    def pushforward(self, x: FloatArray, x_dot: FloatArray) -> FloatArray:
        """Apply the chain rule forwards."""
        for part in self.maps:
            x, x_dot = part.forward(x), part.pushforward(x, x_dot)
        return x_dot

    def jacobian(self, x: FloatArray) -> sp.csr_array:
        """Multiply the derivatives."""
        product = sp.eye_array(x.size, format="csr")
        for part in self.maps:
            x, product = part.forward(x), part.jacobian(x) @ product
        return product


@final
@dataclass(frozen=True)
class Transformed(DesignMap):
    """p_i = T_i(scale_i x_i).

    Attributes
    ----------
    transforms : tuple of Transform, one an entry
    scale : (n,)
    """

    transforms: tuple[Transform, ...]
    scale: FloatArray

    def _each(self, method: str, y: FloatArray) -> FloatArray:
        values = [getattr(t, method)(y[i : i + 1])[0] for i, t in enumerate(self.transforms)]
        return np.array(values, dtype=float)

    def forward(self, x: FloatArray) -> FloatArray:
        """Return the physical values."""
        return self._each("forward", self.scale * x)

    def inverse(self, p: FloatArray) -> FloatArray:
        """Return x of physical values; infinite bounds stay infinite."""
        return self._each("inverse", p) / self.scale

    def pullback(self, x: FloatArray, y_bar: FloatArray) -> FloatArray:
        """Scale by the slopes."""
        return self.scale * self._each("slope", self.scale * x) * y_bar

    def pushforward(self, x: FloatArray, x_dot: FloatArray) -> FloatArray:
        """Scale by the slopes."""
        return self.scale * self._each("slope", self.scale * x) * x_dot

    def jacobian(self, x: FloatArray) -> sp.csr_array:
        """Return the slopes on the diagonal."""
        return sp.diags_array(self.scale * self._each("slope", self.scale * x), format="csr")


@final
@dataclass(frozen=True)
class Placed(DesignMap):
    """Puts entries into a base vector: y = base, y[target_k] = x[source_k]; a source may serve many targets.

    Attributes
    ----------
    base : (n_out,)
    source, target : (k,)
    n_in : int
    """

    base: FloatArray
    source: IntArray
    target: IntArray
    n_in: int

    def forward(self, x: FloatArray) -> FloatArray:
        """Return the filled vector."""
        y = self.base.copy()
        y[self.target] = x[self.source]
        return y

    def pullback(self, x: FloatArray, y_bar: FloatArray) -> FloatArray:
        """Sum over the targets of each source."""
        return np.bincount(self.source, y_bar[self.target], minlength=self.n_in).astype(float)

    def pushforward(self, x: FloatArray, x_dot: FloatArray) -> FloatArray:
        """Place the tangents."""
        y_dot = np.zeros_like(self.base)
        y_dot[self.target] = x_dot[self.source]
        return y_dot

    def jacobian(self, x: FloatArray) -> sp.csr_array:
        """Return ones where an entry is placed."""
        ones = np.ones(self.source.size)
        return sp.csr_array((ones, (self.target, self.source)), shape=(self.base.size, self.n_in))


@final
@dataclass(frozen=True)
class Ties(DesignMap):
    """From a scene's numbers to theta: copies with factors (k_t = k_n dt), and Lame constants from Young and Poisson.

        theta[target_k] = factor_k s[source_k]
        mu = E / (2 (1 + nu)),   lambda = E nu / ((1 + nu) (1 - 2 nu))
        k_d = `clipped_damping_from_restitution`(e, k_n, m), m the effective mass

    Attributes
    ----------
    n_in, n_out : int
    source, target : (k,)
    factor : (k,)
    moduli : (m, 4)
        Indices (young, poisson) in s and (mu, lambda) in theta.
    rebounds : (r, 6)
        Index of a restitution e in s; of k_n, both masses (-1: does not move) and k_d in theta; points that touch.
    base : (n_out,), optional
        What theta is where nothing of s sets it; zero by default.
    pulls : bool
        Whether contacts may pull: then the k_d of a restitution is that of Eq. 22.
    """

    n_in: int
    n_out: int
    source: IntArray
    target: IntArray
    factor: FloatArray
    moduli: IntArray
    rebounds: IntArray = field(default_factory=lambda: np.zeros((0, 6), dtype=np.int64))
    base: FloatArray | None = None
    pulls: bool = False

    def forward(self, x: FloatArray) -> FloatArray:
        """Return theta."""
        theta = np.zeros(self.n_out) if self.base is None else self.base.copy()
        theta[self.target] = self.factor * x[self.source]
        for young, poisson, mu, lam in self.moduli:
            e, nu = x[young], x[poisson]
            theta[mu] = e / (2.0 * (1.0 + nu))
            theta[lam] = e * nu / ((1.0 + nu) * (1.0 - 2.0 * nu))
        for rebound, k_n, a, b, k_d, n in self.rebounds:
            mass = effective_mass(theta[a], theta[b] if b >= 0 else None)
            formula = damping_from_restitution if self.pulls else clipped_damping_from_restitution
            theta[k_d] = formula(x[rebound], theta[k_n], mass, int(n))
        return theta

    def _rebound_slopes(self, x: FloatArray) -> sp.csr_array:
        """Return d theta / d (e, theta without k_d), (n_out, n_in + n_out): ones, and the slopes of every k_d."""
        theta = self.forward(x)
        rows, cols, values = [], [], []
        for rebound, k_n, a, b, k_d, n in self.rebounds:
            m_a, m_b = theta[a], theta[b] if b >= 0 else None
            derivatives = damping_derivatives if self.pulls else clipped_damping_derivatives
            slopes = derivatives(x[rebound], theta[k_n], effective_mass(m_a, m_b), int(n))
            rows += [k_d, k_d, k_d]
            cols += [rebound, self.n_in + k_n, self.n_in + a]
            by_a = 1.0 if m_b is None else (m_b / (m_a + m_b)) ** 2
            values += [slopes.restitution, slopes.stiffness, slopes.mass * by_a]
            if m_b is not None:
                rows.append(k_d)
                cols.append(self.n_in + b)
                values.append(slopes.mass * (m_a / (m_a + m_b)) ** 2)
        kept = np.setdiff1d(np.arange(self.n_out), self.rebounds[:, 4])
        places = np.concatenate([rows, kept]).astype(int), np.concatenate([cols, self.n_in + kept]).astype(int)
        entries = np.concatenate([values, np.ones(kept.size)])
        return sp.csr_array((entries, places), shape=(self.n_out, self.n_in + self.n_out))

    @staticmethod
    def _slopes(e: float, nu: float) -> tuple[float, float, float, float]:
        """Return dmu/dE, dmu/dnu, dlambda/dE, dlambda/dnu."""
        d = (1.0 + nu) * (1.0 - 2.0 * nu)
        return (
            0.5 / (1.0 + nu),
            -0.5 * e / (1.0 + nu) ** 2,
            nu / d,
            e * (1.0 + 2.0 * nu * nu) / d**2,
        )

    def pullback(self, x: FloatArray, y_bar: FloatArray) -> FloatArray:
        """Apply the transposed derivative."""
        direct = np.zeros(self.n_in)
        if self.rebounds.size:
            both = self._rebound_slopes(x).T @ y_bar
            direct, y_bar = both[: self.n_in], both[self.n_in :]
        x_bar = direct + np.bincount(self.source, self.factor * y_bar[self.target], minlength=self.n_in).astype(float)
        for young, poisson, mu, lam in self.moduli:
            mu_e, mu_nu, lam_e, lam_nu = self._slopes(x[young], x[poisson])
            x_bar[young] += mu_e * y_bar[mu] + lam_e * y_bar[lam]
            x_bar[poisson] += mu_nu * y_bar[mu] + lam_nu * y_bar[lam]
        return x_bar

    def pushforward(self, x: FloatArray, x_dot: FloatArray) -> FloatArray:
        """Apply the derivative."""
        y_dot = np.zeros(self.n_out)
        y_dot[self.target] = self.factor * x_dot[self.source]
        for young, poisson, mu, lam in self.moduli:
            mu_e, mu_nu, lam_e, lam_nu = self._slopes(x[young], x[poisson])
            y_dot[mu] = mu_e * x_dot[young] + mu_nu * x_dot[poisson]
            y_dot[lam] = lam_e * x_dot[young] + lam_nu * x_dot[poisson]
        return self._rebound_slopes(x) @ np.concatenate([x_dot, y_dot]) if self.rebounds.size else y_dot

    def jacobian(self, x: FloatArray) -> sp.csr_array:
        """Return the factors and the slopes of the moduli."""
        rows, cols, values = [self.target], [self.source], [self.factor]
        for young, poisson, mu, lam in self.moduli.tolist():
            rows.append(np.array([mu, mu, lam, lam]))
            cols.append(np.array([young, poisson, young, poisson]))
            values.append(np.array(self._slopes(x[young], x[poisson])))
        entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(cols))
        linear = sp.csr_array(entries, shape=(self.n_out, self.n_in))
        if not self.rebounds.size:
            return linear
        return sp.csr_array(self._rebound_slopes(x) @ sp.vstack([sp.eye_array(self.n_in), linear]))
