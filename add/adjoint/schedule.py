"""Schedules: the states of the forward run that are kept for the reverse sweep."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np


class Schedule(ABC):
    """Cuts a run into segments; the reverse sweep recomputes a segment from its first state."""

    @abstractmethod
    def segments(self, n_steps: int) -> list[tuple[int, int]]:
        """Return (first, last) state numbers of consecutive segments, covering 0..n_steps."""


@final
@dataclass(frozen=True)
class StoreAll(Schedule):
    """Keep every state and record: no recomputation, memory grows with the run."""

    def segments(self, n_steps: int) -> list[tuple[int, int]]:
        """Return one segment."""
        return [(0, n_steps)]


@final
@dataclass(frozen=True)
class Checkpoints(Schedule):
    """Keep every ``interval``-th state and recompute between them: one more forward run, memory like its square root.

    Attributes
    ----------
    interval : int, optional
        Steps a segment; default the square root of the run's length, which needs least memory.
    """

    interval: int | None = None

    def segments(self, n_steps: int) -> list[tuple[int, int]]:
        """Return segments of ``interval`` steps."""
        size = self.interval or max(1, int(np.ceil(np.sqrt(n_steps))))
        return [(first, min(first + size, n_steps)) for first in range(0, n_steps, size)] or [(0, 0)]
