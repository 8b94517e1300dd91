"""Tangents of rotation vectors as twists.

The increment of a rotation vector is a small rotation in the body's own axes, and its rate the
angular velocity there:

    phi = J_r(w) dw,   d omega = J_r(w) d(w_dot) + d(J_r(w) w_dot)/dw dw,   omega = J_r(w) w_dot
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import final

import numpy as np

from add.equations.kinematics import State
from add.errors import InputError
from add.kernels.rotation import fill_jacobian, jacobian_coefficients, turn_derivative
from add.typing import FloatArray, IntArray


class Chart(Enum):
    """Increments of rotations."""

    COORDINATES = "coordinates"
    TWIST = "twist"

    @classmethod
    def named(cls, name: str | Chart) -> Chart:
        """Return the chart of this name."""
        try:
            return cls(name)
        except ValueError:
            choices = " or ".join(repr(chart.value) for chart in cls)
            raise InputError("no such chart", place="chart", found=repr(name), expected=choices) from None


@final
@dataclass(frozen=True)
class Twists:
    """The map T of tangents of the pairs of a state (2 m n, k) to twists: [J, 0; D, J] on each (dw, d w_dot).

    Attributes
    ----------
    index : (b, 6) rows of dw and d w_dot of each rotation vector in each pair
    matrices, inverses : (b, 6, 6)
    """

    index: IntArray
    matrices: FloatArray
    inverses: FloatArray

    @classmethod
    def at(cls, state: State, rotations: IntArray) -> Twists:
        """Return the map at a state, of the rotation vectors that begin at ``rotations``."""
        m, n = state.q.shape
        matrices = np.zeros((m, rotations.size, 6, 6))
        numbers, J, D = np.empty(6), np.empty((3, 3)), np.empty((3, 3))
        for k in range(m):
            for first, matrix in zip(rotations.tolist(), matrices[k], strict=True):
                w, w_dot = state.q[k, first : first + 3], state.v[k, first : first + 3]
                jacobian_coefficients(w @ w, numbers)
                fill_jacobian(-1.0, w, numbers, J)
                turn_derivative(-1.0, w, w_dot, numbers, D)
                matrix[:3, :3], matrix[3:, 3:], matrix[3:, :3] = J, J, D
        pairs = 2 * n * np.arange(m)[:, None, None, None] + n * np.arange(2)[:, None]
        index = pairs + rotations[:, None, None] + np.arange(3)
        flat = matrices.reshape(-1, 6, 6)
        return cls(index.reshape(-1, 6), flat, np.asarray(np.linalg.inv(flat), dtype=float))

    def apply(self, x: FloatArray) -> FloatArray:
        """Return T x."""
        return self._times(self.matrices, x)

    def inverse(self, x: FloatArray) -> FloatArray:
        """Return T^-1 x."""
        return self._times(self.inverses, x)

    def transposed(self, x: FloatArray) -> FloatArray:
        """Return T^T x."""
        return self._times(self.matrices.transpose(0, 2, 1), x)

    def inverse_transposed(self, x: FloatArray) -> FloatArray:
        """Return T^-T x."""
        return self._times(self.inverses.transpose(0, 2, 1), x)

    def _times(self, matrices: FloatArray, x: FloatArray) -> FloatArray:
        out = x.copy()
        out[self.index] = matrices @ x[self.index]
        return out
