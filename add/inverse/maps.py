"""Differentiable maps from one flat vector to another: what stands between an optimiser's x and theta.

The parameters that an optimiser changes stand here, too, and what is known of them beforehand.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import scipy.sparse as sp

from add.typing import FloatArray, IntArray


class Transform(ABC):
    """p = forward(y), elementwise and increasing."""

    @abstractmethod
    def forward(self, y: FloatArray) -> FloatArray:
        """Return the physical values."""

    @abstractmethod
    def inverse(self, p: FloatArray) -> FloatArray:
        """Return y with forward(y) = p; -inf and inf stay."""

    @abstractmethod
    def slope(self, y: FloatArray) -> FloatArray:
        """Return dp/dy."""


@final
@dataclass(frozen=True)
class Linear(Transform):
    """p = y."""

    def forward(self, y: FloatArray) -> FloatArray:
        """Return y."""
        return y.copy()

    def inverse(self, p: FloatArray) -> FloatArray:
        """Return p."""
        return p.copy()

    def slope(self, y: FloatArray) -> FloatArray:
        """Return one."""
        return np.ones_like(y)


@final
@dataclass(frozen=True)
class Log(Transform):
    """p = exp(y): positive, steps are relative."""

    def forward(self, y: FloatArray) -> FloatArray:
        """Return exp(y); inf where it is beyond all floats: a search may try such a step, which then fails."""
        with np.errstate(over="ignore"):
            return np.exp(y)

    def inverse(self, p: FloatArray) -> FloatArray:
        """Return ln p; -inf for 0 and below."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(p > 0.0, np.log(np.maximum(p, 0.0)), -np.inf)

    def slope(self, y: FloatArray) -> FloatArray:
        """Return exp(y), as `forward` does."""
        return self.forward(y)


@final
@dataclass(frozen=True)
class Softplus(Transform):
    """p = ln(1 + exp(y)): positive, but nearly linear away from zero."""

    def forward(self, y: FloatArray) -> FloatArray:
        """Return ln(1 + exp(y))."""
        return np.logaddexp(0.0, y)

    def inverse(self, p: FloatArray) -> FloatArray:
        """Return ln(exp(p) - 1); -inf for 0 and below."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(p > 0.0, p + np.log(-np.expm1(-np.maximum(p, 0.0))), -np.inf)

    def slope(self, y: FloatArray) -> FloatArray:
        """Return the logistic function of y."""
        return np.exp(-np.logaddexp(0.0, -y))


class DesignMap(ABC):
    """y = f(x) with its derivative in both directions."""

    @abstractmethod
    def forward(self, x: FloatArray) -> FloatArray:
        """Return f(x)."""

    @abstractmethod
    def pullback(self, x: FloatArray, y_bar: FloatArray) -> FloatArray:
        """Return (df/dx)^T y_bar."""

    @abstractmethod
    def jacobian(self, x: FloatArray) -> sp.csr_array:
        """Return df/dx, sparse."""

    @final
    def pushforward(self, x: FloatArray, x_dot: FloatArray) -> FloatArray:
        """Return df/dx x_dot."""
        return np.asarray(self.jacobian(x) @ x_dot)


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

    @cached_property
    def _entries(self) -> dict[Transform, list[int]]:
        """Return the entries of each transform."""
        entries: dict[Transform, list[int]] = {}
        for i, transform in enumerate(self.transforms):
            entries.setdefault(transform, []).append(i)
        return entries

    def _each(self, method: str, y: FloatArray) -> FloatArray:
        values = np.empty(len(self.transforms))
        for transform, entries in self._entries.items():
            values[entries] = getattr(transform, method)(y[entries])
        return values

    def forward(self, x: FloatArray) -> FloatArray:
        """Return the physical values."""
        return self._each("forward", self.scale * x)

    def inverse(self, p: FloatArray) -> FloatArray:
        """Return x of physical values; infinite bounds stay infinite."""
        return self._each("inverse", p) / self.scale

    def pullback(self, x: FloatArray, y_bar: FloatArray) -> FloatArray:
        """Scale by the slopes."""
        return self.scale * self._each("slope", self.scale * x) * y_bar

    def jacobian(self, x: FloatArray) -> sp.csr_array:
        """Return the slopes on the diagonal."""
        return sp.diags_array(self.scale * self._each("slope", self.scale * x), format="csr")


@final
@dataclass(frozen=True)
class Injection(DesignMap):
    """Puts entries into a base vector: y = base, y[target_k] = factor_k x[source_k]; a source may serve many targets.

    Attributes
    ----------
    base : (n_out,)
    source, target : (k,)
    n_in : int
    factor : (k,), or one for all
    """

    base: FloatArray
    source: IntArray
    target: IntArray
    n_in: int
    factor: FloatArray | float = 1.0

    def forward(self, x: FloatArray) -> FloatArray:
        """Return the filled vector."""
        y = self.base.copy()
        self.write(x, y)
        return y

    def write(self, x: FloatArray, y: FloatArray) -> None:
        """Set the entries of y (..., n_out) for x (..., n_in)."""
        y[..., self.target] = self.factor * x[..., self.source]

    def pullback(self, x: FloatArray, y_bar: FloatArray) -> FloatArray:
        """Sum over the targets of each source; y_bar (..., n_out), every row of which gives the same bits alone."""
        shares = self.factor * y_bar[..., self.target]
        rows = np.arange(np.prod(shares.shape[:-1], dtype=int)).reshape(*shares.shape[:-1], 1)
        places = self.n_in * rows + self.source
        summed = np.bincount(places.ravel(), shares.ravel(), minlength=rows.size * self.n_in)
        return summed.astype(float).reshape(*shares.shape[:-1], self.n_in)

    def jacobian(self, x: FloatArray) -> sp.csr_array:
        """Return the factors where entries are placed."""
        factors = np.broadcast_to(self.factor, self.source.size)
        return sp.csr_array((factors, (self.target, self.source)), shape=(self.base.size, self.n_in))


@final
@dataclass(frozen=True)
class DesignParameter:
    """A physical number, or vector, that the optimiser changes.

    Attributes
    ----------
    name, unit : str
    first : int
        Its first entry in x.
    start : (n,)
        Physical values to start from.
    transform : Transform
    scale : float
        Typical change in the transformed unit; x = transform^-1(p) / scale.
    lower, upper : float
        Physical bounds.
    entries : (n,)
        Which entries of the scene's vector these are.
    targets : experiment name -> index arrays (n,) into that scene's numbers
        Several arrays share the value.
    """

    name: str
    unit: str
    first: int
    start: FloatArray
    transform: Transform
    scale: float
    lower: float
    upper: float
    entries: tuple[int, ...]
    targets: Mapping[str, tuple[IntArray, ...]]

    @property
    def n(self) -> int:
        """Number of scalars."""
        return self.start.size

    def answers_to(self, name: str) -> bool:
        """Whether a name means this parameter.

        A parameter of one experiment carries its name behind an @. Its path, or one of the paths that share the value,
        means the parameters of that path in all experiments; with @experiment, that of one.
        """
        paths, _, of = self.name.partition("@")
        path, at, experiment = name.partition("@")
        return path in (paths, *paths.split("+")) and (not at or experiment == of)

    @property
    def slice(self) -> slice:
        """Its place in x."""
        return slice(self.first, self.first + self.n)


@final
@dataclass(frozen=True)
class Prior:
    """weight * sum ((p - mean) / sigma)^2 over entries of the physical values [-]."""

    index: IntArray
    mean: float
    sigma: float
    weight: float

    def residuals(self, p: FloatArray) -> FloatArray:
        """Return rho, whose square it is."""
        return np.sqrt(self.weight) * (p[self.index] - self.mean) / self.sigma

    def residual_jacobian(self, n: int) -> sp.csr_array:
        """Return its derivative by the physical values (r, n)."""
        values = np.full(self.index.size, np.sqrt(self.weight) / self.sigma)
        return sp.csr_array((values, (np.arange(self.index.size), self.index)), shape=(self.index.size, n))
