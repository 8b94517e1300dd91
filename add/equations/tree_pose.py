"""How a tree of links starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from add.equations.initial import Pose, RigidPose
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class TreePose(Pose):
    """Coordinates and their rates as they are in theta, after those of a free base.

    Attributes
    ----------
    start, n : int
        The tree's coordinates.
    base : RigidPose, optional
        Of the first six.
    value, rate : (k,) indices into theta of the others
    """

    start: int
    n: int
    base: RigidPose | None
    value: IntArray
    rate: IntArray

    @property
    def coordinates(self) -> slice:
        """The tree's coordinates."""
        return slice(self.start, self.start + self.n)

    @property
    def _own(self) -> slice:
        return slice(self.start + self.n - self.value.size, self.start + self.n)

    def evaluate(self, theta: FloatArray, q: FloatArray, v: FloatArray) -> None:
        """Fill the tree's part of q0 and v0 (n,)."""
        if self.base is not None:
            self.base.evaluate(theta, q, v)
        q[self._own], v[self._own] = theta[self.value], theta[self.rate]

    def jvp(self, theta: FloatArray, theta_dot: FloatArray, q_dot: FloatArray, v_dot: FloatArray) -> None:
        """Fill the tree's part of the tangents."""
        if self.base is not None:
            self.base.jvp(theta, theta_dot, q_dot, v_dot)
        q_dot[self._own], v_dot[self._own] = theta_dot[self.value], theta_dot[self.rate]

    def vjp(self, theta: FloatArray, q_bar: FloatArray, v_bar: FloatArray, out: FloatArray) -> None:
        """Add the cotangent of theta to ``out``."""
        if self.base is not None:
            self.base.vjp(theta, q_bar, v_bar, out)
        np.add.at(out, self.value, q_bar[self._own])
        np.add.at(out, self.rate, v_bar[self._own])
