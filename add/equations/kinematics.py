"""The state of motion that terms see, the weights of a Jacobian, and the history that steppers carry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from add.typing import FloatArray


@final
@dataclass(frozen=True)
class Kinematics:
    """Coordinates, their rates and the time at which a residual is evaluated.

    Attributes
    ----------
    q, v, a : (n,)
        Coordinates [m], velocities [m/s], accelerations [m/s2].
    t : float
        Time [s].
    step : int
        Number of the step that ends at ``t``.
    """

    q: FloatArray
    v: FloatArray
    a: FloatArray
    t: float
    step: int


@final
@dataclass(frozen=True)
class Weights:
    """Factors of dr/dq, dr/dv and dr/da in a Jacobian; (1, c, c^2) is a BDF step's.

    ``multiplier`` is the factor of dr/d(multiplier): one in a step's matrix, zero in derivatives by the state.
    """

    q: float
    v: float
    a: float
    multiplier: float = 0.0


@final
@dataclass(frozen=True)
class State:
    """What a step hands to the next: the last m pairs (q, v), newest first.

    Attributes
    ----------
    t : float
        Time of the newest pair [s].
    step : int
        Steps taken so far.
    q, v : (m, n)
        Coordinates and velocities, newest first.
    """

    t: float
    step: int
    q: FloatArray
    v: FloatArray


@final
@dataclass
class StateTangent:
    """A tangent or cotangent of a `State`: arrays of the shapes of its ``q`` and ``v``."""

    q: FloatArray
    v: FloatArray

    @classmethod
    def zeros(cls, n_history: int, n: int) -> StateTangent:
        """Return a zero (co)tangent."""
        return cls(np.zeros((n_history, n)), np.zeros((n_history, n)))
