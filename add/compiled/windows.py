"""Signals at many steps at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from add.equations.signals import Signal
from add.kernels.arena import Signals
from add.typing import FloatArray

#: Steps whose signals are evaluated together. Chunks begin at multiples, so that a step meets the same numbers
#: whatever the step that a run began with.
CHUNK = 64


def windows(signals: Sequence[Signal], times: FloatArray) -> Signals:
    """Return the signals at each of the times (k,): weights (k, m) and tables (k, s, 3)."""
    k = times.size
    table = np.zeros((k, len(signals), 3), dtype=np.int64)
    parts, begin = [np.zeros((k, 0))], 0
    for i, signal in enumerate(signals):
        first, weights = signal.windows(times)
        table[:, i, 0], table[:, i, 1], table[:, i, 2] = first, begin, weights.shape[1]
        parts.append(weights)
        begin += weights.shape[1]
    return Signals(np.ascontiguousarray(np.concatenate(parts, axis=1)), table)
