"""Coefficients between a body and a shape: friction law, stiffnesses, coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import final

import numpy as np

from add.typing import BoolArray, FloatArray, IntArray


class FrictionLaw(IntEnum):
    """Friction against the relative tangential velocity."""

    NONE = 0
    LINEAR = 1
    TANH = 2
    #: The linear law, then equations that hold what sticks in it.
    HYBRID = 3

    @property
    def kernel(self) -> int:
        """The law of what is not held."""
        return int(FrictionLaw.LINEAR if self is FrictionLaw.HYBRID else self)


@final
@dataclass(frozen=True)
class PairParameters:
    """Coefficients between a group of points (row) and a group of shapes (column): the tables of contact classes.

    Attributes
    ----------
    k_n, k_d, k_t, c_f : (R, C)
        Indices in theta: stiffness [N/m, or N/m^3 per area], damping [N s/m], stick stiffness [N s/m], friction [-].
    onset : (R, C)
        Depth over which the stiffness grows from zero [m]; 0 is the paper's kink.
    ramp : (R, C)
        Depth over which the damping grows [m]; 0 is the paper's jump.
    enabled : (R, C) bool or int
        Whether they meet: 0 never, 1 always, 2 only where the body of the points comes behind that of the shape.
    """

    k_n: IntArray
    k_d: IntArray
    k_t: IntArray
    c_f: IntArray
    onset: FloatArray
    ramp: FloatArray
    enabled: BoolArray | IntArray

    def stiffnesses(self) -> IntArray:
        """Return the indices in theta of k_n, k_d and k_t of all groups that may touch."""
        tables = (self.k_n, self.k_d, self.k_t)
        return np.unique(np.concatenate([table[self.enabled != 0] for table in tables])).astype(np.int64)
