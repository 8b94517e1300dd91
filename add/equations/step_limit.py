"""How far a trial may go: what Newton's method and its first guesses ask before they move."""

from __future__ import annotations

from abc import ABC, abstractmethod

from add.typing import FloatArray


class StepLimit(ABC):
    """A bound on the way from one set of coordinates to another.

    It chooses which solution of a step is found and is no part of its equations: derivatives and replays ask nothing.
    """

    @abstractmethod
    def share(self, q0: FloatArray, q1: FloatArray, theta: FloatArray) -> float:
        """Return the largest known share in [0, 1] of the way from ``q0`` to ``q1``, both (n,), that may be gone."""
