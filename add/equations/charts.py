"""Changes of chart of rotation vectors: a body that turns beyond pi goes on from the other side.

    phi(w) = w (1 - 2 pi / |w|),   w_dot <- D w_dot,   D = (1 - 2 pi / |w|) I + 2 pi w w^T / |w|^3

exp([phi(w)]x) = exp([w]x), so nothing physical changes. All pairs of a state's history change together, by the same
branch, also where |w| is still below pi: a BDF formula needs one chart. What else a state carries has no rotations in
it, or has them in world axes, and stays.

Tangents of rotation vectors as twists.

The increment of a rotation vector is a small rotation in the body's own axes, and its rate the
angular velocity there:

    phi = J_r(w) dw,   d omega = J_r(w) d(w_dot) + d(J_r(w) w_dot)/dw dw,   omega = J_r(w) w_dot
"""

from dataclasses import dataclass, replace
from enum import Enum
from typing import final

import numpy as np

from add.equations.kinematics import State, StateTangent
from add.errors import InputError
from add.kernels.rotation import (
    beyond_pi,
    change_chart,
    change_chart_pullback,
    fill_jacobian,
    jacobian_coefficients,
    turn_derivative,
)
from add.typing import FloatArray, IntArray


def beyond(q: FloatArray, rotations: IntArray) -> IntArray:
    """Return the ``rotations`` (first coordinates of rotation vectors) whose length in ``q`` is above pi."""
    return rotations[beyond_pi(q, rotations)] if rotations.size else rotations


def _derivative(w: FloatArray) -> FloatArray:
    """Return D (3, 3), which is symmetric."""
    t = np.linalg.norm(w)
    return (1.0 - 2.0 * np.pi / t) * np.eye(3) + 2.0 * np.pi / t**3 * np.outer(w, w)


def _second_derivative(w: FloatArray, h: FloatArray) -> FloatArray:
    """Return d(D h)/dw (3, 3), which is symmetric."""
    t = np.linalg.norm(w)
    wh = w @ h
    sides = np.outer(h, w) + np.outer(w, h) + wh * np.eye(3) - 3.0 * wh / t**2 * np.outer(w, w)
    return 2.0 * np.pi / t**3 * sides


def change(state: State, rotations: IntArray) -> State:
    """Return the state in the other chart of ``rotations``."""
    q, v = state.q.copy(), state.v.copy()
    for first in rotations:
        change_chart(first, q, v)
    return replace(state, q=q, v=v)


def pullback(state: State, rotations: IntArray, bar: StateTangent) -> StateTangent:
    """Pull cotangents, arrays (m, n) or (m, n, r) for r of them, back through `change`; ``state`` is the one before."""
    if bar.q.ndim > 2:
        return _through(state, rotations, bar, back=True)
    out = replace(bar, q=bar.q.copy(), v=bar.v.copy())
    for first in rotations:
        change_chart_pullback(first, state.q, state.v, out.q, out.v)
    return out


def pushforward(state: State, rotations: IntArray, dot: StateTangent) -> StateTangent:
    """Push a tangent, arrays (m, n) or (m, n, k) for k directions, forward through `change`."""
    return _through(state, rotations, dot, back=False)


def _through(state: State, rotations: IntArray, along: StateTangent, *, back: bool) -> StateTangent:
    """Return tangents times the derivative of `change`, or its transpose: D and its derivative are symmetric."""
    out = replace(along, q=along.q.copy(), v=along.v.copy())
    for k, first in np.ndindex(along.q.shape[0], rotations.size):
        at = k, slice(rotations[first], rotations[first] + 3)
        D, bent = _derivative(state.q[at]), _second_derivative(state.q[at], state.v[at])
        out.q[at], out.v[at] = D @ along.q[at], D @ along.v[at]
        (out.q if back else out.v)[at] += bent @ (along.v if back else along.q)[at]
    return out


# --- Tangents of rotation vectors as twists ---------------------------------------------------------------------------


class Chart(Enum):
    """Increments of rotations."""

    COORDINATES = "coordinates"
    TWIST = "twist"

    @classmethod
    def named(cls, name: "str | Chart") -> "Chart":
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
    def at(cls, state: State, rotations: IntArray) -> "Twists":
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
