"""The state of motion that terms see, the weights of a Jacobian, and the history that steppers carry."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import numpy as np

from add.typing import FloatArray, IntArray


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
class Carry:
    """Numbers that a step hands on beside coordinates and velocities: what else the next step depends on.

    Attributes
    ----------
    memory : (m, n_m)
        Numbers that derivatives go through; rows newest first, as many as their owner looks back to.
    marks : tuple of int arrays
        What was decided or counted: never differentiated.
    """

    memory: FloatArray
    marks: tuple[IntArray, ...] = ()


#: A step that hands on coordinates and velocities alone.
NO_CARRY = Carry(np.zeros((0, 0)))


@final
@dataclass(frozen=True)
class State:
    """The numbers that the next step depends on, theta apart: the last m pairs (q, v), and the stepper's own.

    Attributes
    ----------
    t : float
        Time of the newest pair [s].
    step : int
        Steps taken so far.
    q, v : (m, n)
        Coordinates and velocities, newest first.
    carry : Carry
    """

    t: float
    step: int
    q: FloatArray
    v: FloatArray
    carry: Carry = NO_CARRY


@final
@dataclass
class StateTangent:
    """A tangent or cotangent of a `State`: arrays of the shapes of its ``q``, ``v`` and ``carry.memory``."""

    q: FloatArray
    v: FloatArray
    memory: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))

    @classmethod
    def zeros(cls, n_history: int, n: int) -> StateTangent:
        """Return a zero (co)tangent of a state without a memory."""
        return cls(np.zeros((n_history, n)), np.zeros((n_history, n)))

    @classmethod
    def zeros_like(cls, state: State) -> StateTangent:
        """Return a zero (co)tangent of a state."""
        return cls(np.zeros_like(state.q), np.zeros_like(state.v), np.zeros_like(state.carry.memory))
