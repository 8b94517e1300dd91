"""Measures of one place: how far it is from a target, or from the surface of an obstacle."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

from add.kernels.distance import signed_distance
from add.typing import FloatArray


class Measure(ABC):
    """A function of a place and the time that is nowhere below zero, once differentiable [m^2]."""

    @abstractmethod
    def value(self, x: FloatArray, t: float) -> float:
        """Return the measure of a place (3,) [m] at time t [s]."""

    @abstractmethod
    def gradient(self, x: FloatArray, t: float) -> FloatArray:
        """Return its derivative by the place (3,) [m]."""


@final
@dataclass(frozen=True)
class SquaredDistance(Measure):
    """|P (x - y)|^2.

    Attributes
    ----------
    target : (3,) y [m]
    projector : (3, 3) P, symmetric
    """

    target: FloatArray
    projector: FloatArray

    def value(self, x: FloatArray, t: float) -> float:
        """Return the squared distance."""
        d = self.projector @ (x - self.target)
        return float(d @ d)

    def gradient(self, x: FloatArray, t: float) -> FloatArray:
        """Return 2 P (x - y)."""
        return np.asarray(2.0 * self.projector @ (x - self.target))


@final
@dataclass(frozen=True)
class Surface:
    """An obstacle of the world with a given velocity; kind and size as in `add.kernels.distance`, no mesh."""

    kind: int
    size: FloatArray
    rotation: FloatArray
    position: FloatArray
    velocity: FloatArray

    def gap(self, x: FloatArray, t: float) -> tuple[float, FloatArray]:
        """Return the signed distance of a place [m], negative inside, and its derivative by the place."""
        normal, hessian = np.zeros(3), np.zeros((3, 3))
        own = self.rotation.T @ (x - self.position - t * self.velocity)
        gap, _ = signed_distance(self.kind, self.size, own, -1, normal, hessian)
        return float(gap), self.rotation @ normal


@final
@dataclass(frozen=True)
class Separation(Measure):
    """max(g - r, 0)^2: how far a ball of radius r about the place is from touching."""

    surface: Surface
    radius: float

    def value(self, x: FloatArray, t: float) -> float:
        """Return the squared gap, zero where it touches."""
        return max(self.surface.gap(x, t)[0] - self.radius, 0.0) ** 2

    def gradient(self, x: FloatArray, t: float) -> FloatArray:
        """Return 2 max(g - r, 0) n."""
        gap, normal = self.surface.gap(x, t)
        return 2.0 * max(gap - self.radius, 0.0) * normal


@final
@dataclass(frozen=True)
class Nearness(Measure):
    """max(margin - (g - r), 0)^2: how much a ball of radius r about the place is closer than the margin."""

    surface: Surface
    radius: float
    margin: float

    def value(self, x: FloatArray, t: float) -> float:
        """Return the squared lack of distance."""
        return max(self.margin + self.radius - self.surface.gap(x, t)[0], 0.0) ** 2

    def gradient(self, x: FloatArray, t: float) -> FloatArray:
        """Return -2 max(margin - (g - r), 0) n."""
        gap, normal = self.surface.gap(x, t)
        return -2.0 * max(self.margin + self.radius - gap, 0.0) * normal
