"""No touching: points of bodies stay outside shapes whose law is infinite where they touch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from add.contact.branches import PairContact
from add.contact.limits import MOST_TESTS, MOST_TURN
from add.equations.step_limit import StepLimit
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class PointLimit(StepLimit):
    """Every point keeps a tenth of its gap to every shape that it may meet.

    Ways are straight in the frames of shapes. Bodies turn on arcs: a shortened way is tested again, and none turns
    further than `add.contact.limits.MOST_TURN` in one trial.

    Attributes
    ----------
    contact : PairContact
    turning : (m,)
        First coordinates of the rotation vectors of the bodies that have points or shapes.
    """

    contact: PairContact
    turning: IntArray

    def share(self, q0: FloatArray, q1: FloatArray, theta: FloatArray) -> float:
        """Return the share of the way that is free; see `StepLimit.share`."""
        turns = (q1 - q0)[self.turning[:, None] + np.arange(3)]
        angle = float(np.linalg.norm(turns, axis=1).max(initial=0.0))
        length = min(1.0, MOST_TURN / angle) if angle > 0.0 else 1.0
        for _ in range(MOST_TESTS):
            free = self.contact.free_share(q0, q0 + length * (q1 - q0), theta)
            if free >= 1.0 or (free > 0.0 and not angle):
                return length * free
            length *= free
            if length == 0.0:
                break
        return 0.0
