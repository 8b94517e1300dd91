"""Differentiable maps from one flat vector to another: what stands between an optimiser's x and theta."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

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


@final
@dataclass(frozen=True)
class Ties(DesignMap):
    """From a scene's numbers to theta: copies with factors (k_t = k_n dt), and Lame constants from Young and Poisson.

        theta[target_k] = factor_k s[source_k]
        mu = E / (2 (1 + nu)),   lambda = E nu / ((1 + nu) (1 - 2 nu))

    Attributes
    ----------
    n_in, n_out : int
    source, target : (k,)
    factor : (k,)
    moduli : (m, 4)
        Indices (young, poisson) in s and (mu, lambda) in theta.
    """

    n_in: int
    n_out: int
    source: IntArray
    target: IntArray
    factor: FloatArray
    moduli: IntArray

    def forward(self, x: FloatArray) -> FloatArray:
        """Return theta."""
        theta = np.zeros(self.n_out)
        theta[self.target] = self.factor * x[self.source]
        for young, poisson, mu, lam in self.moduli:
            e, nu = x[young], x[poisson]
            theta[mu] = e / (2.0 * (1.0 + nu))
            theta[lam] = e * nu / ((1.0 + nu) * (1.0 - 2.0 * nu))
        return theta

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
        x_bar = np.bincount(self.source, self.factor * y_bar[self.target], minlength=self.n_in).astype(float)
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
        return y_dot
