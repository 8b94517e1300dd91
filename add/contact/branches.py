"""Decisions of penalty contact: rows of pairs that touch, and which of them are held."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import final

import numpy as np

from add.contact.coefficients import FrictionLaw, PairParameters
from add.contact.sticking import StickingPairs
from add.equations.kinematics import Kinematics
from add.equations.term import Candidates, Decision, StickingTerm
from add.kernels import sticking_rows as kernel
from add.kernels.contact_pairs import ACTIVE, BITS, HELD, PAIR, PULLS, RELEASED, SLIP, TOTAL, Law
from add.typing import BoolArray, FloatArray, IntArray

#: The decision that nothing touches.
NO_CONTACT: Decision = np.zeros((0, 3), dtype=np.int64)


class PairContact(StickingTerm):
    """Contact of points with shapes. A decision has a row (pair, feature, bits) for each pair that touches or is held.

    Rows are sorted by pair = point * n_shapes + shape; bits are those of `add.kernels.contact_pairs`. The attributes
    below are fields of both kinds of contact, and described there.
    """

    pairs: PairParameters
    law: FrictionLaw
    total_normal: bool
    pulls: bool

    @property
    @abstractmethod
    def n_shapes(self) -> int:
        """Number of shapes."""

    @cached_property
    def kernel_law(self) -> Law:
        """The law as the kernels take it."""
        return Law(self.law.kernel, TOTAL * self.total_normal | PULLS * self.pulls)

    @final
    def touching_pairs(self, decision: Decision) -> tuple[IntArray, IntArray]:
        """Return points and shapes (k,) of the pairs that touch."""
        point, shape = np.divmod(decision[decision[:, BITS] & ACTIVE != 0, PAIR], self.n_shapes)
        return point, shape

    @property
    @final
    def is_hybrid(self) -> bool:
        """Whether the law is hybrid."""
        return self.law is FrictionLaw.HYBRID

    @property
    @final
    def sticking(self) -> PairContact | None:
        """The term itself under the hybrid law; None under the others, which never hold a pair."""
        return self if self.is_hybrid else None

    @final
    def hold(self, decision: Decision) -> Decision:
        """Return the decision with all pairs held that touch and do not slip."""
        return kernel.with_held(decision, False)

    @final
    def touching(self, decision: Decision) -> Decision:
        """Return the decision with all pairs held that touch; what comes to touch sticks stiffly."""
        return kernel.with_held(decision, True)

    @final
    def all_held(self, decision: Decision) -> bool:
        """Return whether all pairs are held that touch."""
        return bool(kernel.all_held(decision))

    @final
    def at_rest(self, kin: Kinematics, theta: FloatArray) -> Decision | None:
        """Return the branch at ``kin`` with all pairs held that touch; None if one of them slides."""
        decision = self.touching(self.decide(kin, theta))
        hold = self.held(decision)
        return decision if hold is None or hold.rest(kin, theta) else None

    @final
    def held(self, decision: Decision, candidates: Candidates | None = None) -> StickingPairs | None:
        """Return the equations of the pairs that are held."""
        rows = decision[_held(decision)]
        return self._hold(decision, rows, candidates) if rows.size else None

    @abstractmethod
    def _hold(self, decision: Decision, rows: Decision, candidates: Candidates | None) -> StickingPairs:
        """Return the equations of the pairs that are held, one row (k, 3) of the decision at least."""

    @final
    def release(self, decision: Decision, rows: BoolArray) -> Decision:
        """Return the decision with some of the held pairs released, which ``rows`` (k,) picks in their order."""
        out = decision.copy()
        free = np.flatnonzero(_held(decision))[rows]
        out[free, BITS] = out[free, BITS] & ~HELD | RELEASED
        return out

    @final
    def without(self, decision: Decision, rows: BoolArray) -> Decision:
        """Return the decision without some of its holds, as if they had never been."""
        out = self.release(decision, rows)
        out[:, BITS] &= ~RELEASED
        return out[out[:, BITS] != 0]

    @final
    def is_held(self, decision: Decision, other: Decision) -> BoolArray:
        """Return which of the pairs held in ``decision`` are held in another one, too."""
        return np.isin(decision[_held(decision), PAIR], other[_held(other), PAIR], assume_unique=True)

    @final
    def changes(self, decision: Decision, other: Decision) -> int:
        """Return how many pairs differ between two decisions."""
        rows, counts = np.unique(np.concatenate([decision, other]), axis=0, return_counts=True)
        return int(np.unique(rows[counts == 1, PAIR]).size)

    @final
    def describe(self, decision: Decision) -> dict[str, int]:
        """Return how many pairs touch and, where the law has branches, how many stick and slip.

        Under the hybrid law some creep: neither held nor slipping.
        """
        bits = decision[:, BITS]
        touching = bits & ACTIVE != 0
        counts = {"touching": int(touching.sum())}
        if self.law in (FrictionLaw.LINEAR, FrictionLaw.HYBRID):
            slipping = touching & (bits & SLIP != 0)
            held = touching & (bits & HELD != 0)
            sticking = held if self.is_hybrid else touching & ~slipping
            counts |= {"sticking": int(sticking.sum()), "slipping": int(slipping.sum())}
            if self.is_hybrid:
                counts["creeping"] = int((touching & ~slipping & ~held).sum())
        return counts

    @final
    def forces(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return (n,) generalised contact forces [N, N m]."""
        out = np.zeros_like(kin.q)
        self.decided_residual(kin, theta, out)
        return -out

    @final
    def stiffnesses(self) -> IntArray:
        """Return the indices of all stiffnesses and dampings."""
        return self.pairs.stiffnesses()


def _held(decision: Decision) -> BoolArray:
    """Return which rows are held."""
    return np.asarray(decision[:, BITS] & HELD != 0)
