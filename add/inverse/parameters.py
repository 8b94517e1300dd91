"""The parameters that an optimiser changes, and what is known of them beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.sparse as sp

from add.inverse.maps import Transform
from add.typing import FloatArray, IntArray


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
        paths, _, own = self.name.partition("@")
        path, at, experiment = name.partition("@")
        return path in (paths, *paths.split("+")) and (not at or experiment == own)

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

    def value(self, p: FloatArray) -> float:
        """Return the penalty."""
        return self.weight * float((((p[self.index] - self.mean) / self.sigma) ** 2).sum())

    def gradient(self, p: FloatArray, out: FloatArray) -> None:
        """Add the gradient by the physical values."""
        out[self.index] += 2.0 * self.weight * (p[self.index] - self.mean) / self.sigma**2

    def residuals(self, p: FloatArray) -> FloatArray:
        """Return rho with value = rho . rho."""
        return np.sqrt(self.weight) * (p[self.index] - self.mean) / self.sigma

    def residual_jacobian(self, n: int) -> sp.csr_array:
        """Return its derivative by the physical values (r, n)."""
        values = np.full(self.index.size, np.sqrt(self.weight) / self.sigma)
        return sp.csr_array((values, (np.arange(self.index.size), self.index)), shape=(self.index.size, n))
