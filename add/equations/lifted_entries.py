"""Local entries over rows of X = Phi(q), spread over the coordinates that these rows depend on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from add.equations.kinematics import Weights
from add.equations.lift import Lift, LiftedState
from add.kernels.caching import njit
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class Expansion:
    """Local entries over rows of X, each spread over the coordinates that its row and column depend on.

    Attributes
    ----------
    rows, cols : (k,) in q; those of the curvature last
    entry : (k',) the entry over X
    left, right : (k',) numbers of the entries of P that multiply it
    n_entries : entries over X
    """

    rows: IntArray
    cols: IntArray
    entry: IntArray
    left: IntArray
    right: IntArray
    n_entries: int

    @classmethod
    def of(cls, lift: Lift, rows: IntArray, cols: IntArray) -> Expansion:
        """Spread a pattern over X; rows and columns beyond X (multipliers) move behind q."""
        first, coordinate, number = lift.entries
        n_x = lift.rows.n
        beyond = np.arange(int(max(rows.max(initial=-1), cols.max(initial=-1), n_x - 1)) + 1 - n_x, dtype=np.int64)
        first = np.concatenate([first, first[-1] + 1 + beyond])
        coordinate = np.concatenate([coordinate, lift.dofs.n + beyond])
        number = np.concatenate([number, np.zeros_like(beyond)])
        high, wide = first[rows + 1] - first[rows], first[cols + 1] - first[cols]
        entry = np.repeat(np.arange(rows.size), high * wide)
        within = np.arange(entry.size) - np.repeat(np.cumsum(high * wide) - high * wide, high * wide)
        left = first[rows[entry]] + within // wide[entry]
        right = first[cols[entry]] + within % wide[entry]
        more_rows, more_cols = lift.curvature_pattern()
        return cls(
            np.concatenate([coordinate[left], more_rows]),
            np.concatenate([coordinate[right], more_cols]),
            entry,
            number[left],
            number[right],
            int(rows.size),
        )

    @cached_property
    def _sorted(self) -> tuple[IntArray, IntArray]:
        """Keys of all entries by row and column, sorted, and where they are."""
        keys = self.rows * self._stride + self.cols
        order = np.argsort(keys, kind="stable")
        return keys[order], order

    @property
    def _stride(self) -> int:
        return int(self.cols.max(initial=0)) + 1

    def places(self, dofs: IntArray) -> tuple[IntArray, IntArray]:
        """Return one entry for each place of dense blocks over coordinates (k, m), -1 for none: flat number and entry.

        A place without an entry is left out: nothing can be there.
        """
        wide = dofs.shape[1]
        row, col = np.repeat(dofs, wide, axis=1).ravel(), np.tile(dofs, (1, wide)).ravel()
        keys, order = self._sorted
        wanted = row * self._stride + col
        at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
        there = (row >= 0) & (col >= 0) & (col < self._stride) & (keys[at] == wanted)
        return np.flatnonzero(there), order[at[there]]


def add_expanded(
    data: FloatArray, slots: IntArray, spread: Expansion, at: LiftedState, by: FloatArray, weights: Weights
) -> None:
    """Add the weighted entries ``by`` (3, n_entries) of dr_X/d(X, V, A), spread over q, to ``data[slots]``."""
    factors = np.array([weights.q, weights.v, weights.a])
    _add_expanded(data, slots, spread.entry, spread.left, spread.right, at.p, at.q, by, factors)


@njit(cache=True)
def _add_expanded(data, slots, entry, left, right, p, q, by, weights):
    w_q, w_v, w_a = weights
    for k in range(entry.size):
        e, l, r = entry[k], left[k], right[k]
        value = (w_q * by[0, e] + w_v * by[1, e] + w_a * by[2, e]) * p[r] + w_q * by[1, e] * q[r]
        data[slots[k]] += p[l] * value
