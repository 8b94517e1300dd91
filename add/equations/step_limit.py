"""How far a trial step may go, on rows of X and on coordinates."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from add.equations.kinematics import Kinematics
from add.equations.lift import Lift
from add.typing import FloatArray


class StepLimit(ABC):
    """A bound on the way from one set of coordinates to another.

    It chooses which solution of a step is found and is no part of its equations: derivatives and replays ask nothing.
    """

    @abstractmethod
    def share(self, q0: FloatArray, q1: FloatArray, theta: FloatArray) -> float:
        """Return the largest known share in [0, 1] of the way from ``q0`` to ``q1``, both (n,), that may be gone."""


#: How often a way that one limit has shortened is shown to the others again.
_MOST_ROUNDS = 8


@final
@dataclass(frozen=True)
class AllLimits(StepLimit):
    """Several limits at once.

    Attributes
    ----------
    limits : StepLimit
    """

    limits: tuple[StepLimit, ...]

    @staticmethod
    def of(limits: Sequence[StepLimit]) -> StepLimit | None:
        """Return the limit that all are together; None for none."""
        return AllLimits(tuple(limits)) if len(limits) > 1 else (limits[0] if limits else None)

    def share(self, q0: FloatArray, q1: FloatArray, theta: FloatArray) -> float:
        """Return the share that all leave: one that has shortened the way is no word on a shorter one of arcs."""
        length = 1.0
        for _ in range(_MOST_ROUNDS):
            before = length
            for limit in self.limits:
                length *= limit.share(q0, q0 + length * (q1 - q0), theta)
                if length == 0.0:
                    return 0.0
            if length == before:
                return length
        return 0.0


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
