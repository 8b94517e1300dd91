"""Numbers of a scene that theta has as multiples and that no rule reads: set, and pulled back, for many members."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from add.inverse.maps import Composed
from add.ties.base import Extended, Tie
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class Copies:
    """theta[target] = factor s[source], and nothing else depends on these entries of s.

    Attributes
    ----------
    source, target, factor : (k,)
    """

    source: IntArray
    target: IntArray
    factor: FloatArray

    def write(self, values: FloatArray, thetas: FloatArray) -> None:
        """Set the entries of theta (b, n_theta) for the numbers (b, n_s)."""
        thetas[:, self.target] = self.factor * values[:, self.source]

    def pullback(self, theta_bars: FloatArray, n: int) -> FloatArray:
        """Return the cotangents (b, n) of the numbers, zero of all others, as `Composed.pullback` to the bit."""
        b = theta_bars.shape[0]
        places = n * np.arange(b)[:, None] + self.source
        shares = self.factor * theta_bars[:, self.target]
        summed = np.bincount(places.ravel(), shares.ravel(), minlength=b * n)
        return np.asarray(summed, dtype=float).reshape(b, n)


def copies_of(ties: Composed, places: IntArray) -> Copies | None:
    """Return the copies of the numbers at ``places`` of s; None if a rule reads one, or sets an entry that has one."""
    extended = ties.maps[0]
    assert isinstance(extended, Extended)
    own = np.isin(extended.source, places)
    used = np.concatenate([np.ravel(places), extended.n_in + extended.target[own]])
    for tie in ties.maps[1:]:
        if isinstance(tie, Tie) and (np.isin(tie.inputs, used).any() or np.isin(tie.outputs, used).any()):
            return None
    return Copies(extended.source[own], extended.target[own], extended.factor[own])
