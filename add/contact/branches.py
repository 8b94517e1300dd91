"""What all penalty contact decides alike: codes for pairs of points and shapes, and which of them are held."""

from __future__ import annotations

from abc import abstractmethod
from typing import final

import numpy as np

from add.contact.coefficients import FrictionLaw, PairParameters
from add.contact.sticking import StickingPairs
from add.equations.kinematics import Kinematics
from add.equations.term import DecidingTerm, Decision
from add.kernels import sticking_rows as kernel
from add.kernels.contact_nodes import ACTIVE, HELD, PULLS, RELEASED, SLIP
from add.kernels.sticking import held_pairs
from add.typing import BoolArray, FloatArray, IntArray

_NO_PAIRS = np.zeros((0, 2), dtype=np.int64)


class PairContact(DecidingTerm):
    """Contact of points (rows of a decision) with shapes (columns); bits of `add.kernels.contact_nodes`.

    The attributes below are fields of both kinds of contact, and described there.
    """

    pairs: PairParameters
    law: FrictionLaw
    total_normal: bool
    pulls: bool

    @property
    @final
    def normal_bits(self) -> int:
        """What limits friction, as the kernels take it for ``coulomb_total``."""
        return int(self.total_normal) | (PULLS if self.pulls else 0)

    @property
    @final
    def is_hybrid(self) -> bool:
        """Whether the law is hybrid."""
        return self.law is FrictionLaw.HYBRID

    @final
    def hold(self, decision: Decision) -> Decision:
        """Return the decision with all pairs held that touch and do not slip."""
        return kernel.with_held(decision, False) if self.is_hybrid else decision

    @final
    def touching(self, decision: Decision) -> Decision:
        """Return the decision with all pairs held that touch; what comes to touch sticks stiffly."""
        return kernel.with_held(decision, True) if self.is_hybrid else decision

    @final
    def all_held(self, decision: Decision) -> bool:
        """Return whether all pairs are held that touch."""
        return not self.is_hybrid or bool(kernel.all_held(decision))

    @final
    def at_rest(self, kin: Kinematics, theta: FloatArray) -> Decision | None:
        """Return the branch at ``kin`` with all pairs held that touch; None if one of them slides."""
        if not self.is_hybrid:
            return None
        codes = self.touching(self.decide(kin, theta))
        hold = self.held(codes)
        return codes if hold is None or hold.rest(kin, theta) else None

    @final
    def held(self, decision: Decision) -> StickingPairs | None:
        """Return the equations of the pairs that are held."""
        pairs = held_pairs(decision) if self.is_hybrid else _NO_PAIRS
        return self._hold(decision, pairs) if pairs.size else None

    @abstractmethod
    def _hold(self, decision: Decision, pairs: IntArray) -> StickingPairs:
        """Return the equations of the pairs (k, 2) that are held, one at least."""

    @final
    def release(self, decision: Decision, rows: BoolArray) -> Decision:
        """Return the decision with some of the held pairs released, which ``rows`` (k,) picks in their order."""
        out = decision.copy()
        held = out[decision & HELD != 0]
        held[rows] = held[rows] & ~HELD | RELEASED
        out[decision & HELD != 0] = held
        return out

    @final
    def without(self, decision: Decision, rows: BoolArray) -> Decision:
        """Return the decision without some of its holds, as if they had never been."""
        return self.release(decision, rows) & ~RELEASED

    @final
    def is_held(self, decision: Decision, other: Decision) -> BoolArray:
        """Return which of the pairs held in ``decision`` are held in another one, too."""
        return np.asarray(other[decision & HELD != 0] & HELD != 0)

    @final
    def describe(self, decision: Decision) -> dict[str, int]:
        """Return how many pairs touch and, where the law has branches, how many stick and slip.

        Under the hybrid law some creep: neither held nor slipping.
        """
        touching = decision & ACTIVE != 0
        counts = {"touching": int(touching.sum())}
        if self.law in (FrictionLaw.LINEAR, FrictionLaw.HYBRID):
            slipping = touching & (decision & SLIP != 0)
            held = touching & (decision & HELD != 0)
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
