"""A limit of steps on rows of X as one on q."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from add.equations.kinematics import Kinematics
from add.equations.lift import Lift
from add.equations.step_limit import StepLimit
from add.typing import FloatArray

#: How often a shortened way is tested again, for its rows of X are not on the way tested before.
MOST_TESTS = 12


@final
@dataclass(frozen=True)
class LiftedLimit(StepLimit):
    """The limit of a way of q by straight ways of X between its ends.

    Attributes
    ----------
    inner : StepLimit
    lift : Lift
    """

    inner: StepLimit
    lift: Lift

    def share(self, q0: FloatArray, q1: FloatArray, theta: FloatArray) -> float:
        """Return the largest known share of the way; see `StepLimit.share`."""
        begin, length = self._rows(q0, theta), 1.0
        for _ in range(MOST_TESTS):
            free = self.inner.share(begin, self._rows(q0 + length * (q1 - q0), theta), theta)
            if free >= 1.0:
                return length
            length *= free
        return 0.0

    def _rows(self, q: FloatArray, theta: FloatArray) -> FloatArray:
        none = np.zeros_like(q)
        return self.lift.kinematics(Kinematics(q, none, none, 0.0, 0), theta).q
