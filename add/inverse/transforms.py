"""Scalar transforms between what an optimiser sees and what a parameter is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

from add.typing import FloatArray


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
        """Return exp(y)."""
        return np.exp(y)

    def inverse(self, p: FloatArray) -> FloatArray:
        """Return ln p; -inf for 0 and below."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(p > 0.0, np.log(np.maximum(p, 0.0)), -np.inf)

    def slope(self, y: FloatArray) -> FloatArray:
        """Return exp(y)."""
        return np.exp(y)


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
