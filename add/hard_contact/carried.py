"""Contacts that a step with exact contact hands on: the pairs that were near it, their branches and forces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from add.equations.kinematics import Carry
from add.hard_contact.law import Branch
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class CarriedContacts:
    """Pairs near a step, in the numbering of its `ContactPairs`.

    In a `Carry` the forces are one row of the memory; pairs, branches and ``calm`` are the marks.

    Attributes
    ----------
    pair : (k,)
    branch : (k,) of `Branch`
    force : (k, 3) on the points [N]
    calm : int
        Steps since a pair touched that had not touched before.
    """

    pair: IntArray
    branch: IntArray
    force: FloatArray
    calm: int

    @classmethod
    def of(cls, carry: Carry) -> CarriedContacts | None:
        """Return what a state carries; None at the start of a run, where no step has been taken."""
        if not carry.marks:
            return None
        pair, branch, calm = carry.marks
        return cls(pair, branch, carry.memory.reshape(-1, 3), int(calm[0]))

    def carry(self) -> Carry:
        """Return them as a state carries them."""
        return Carry(self.force.reshape(1, -1), (self.pair, self.branch, np.array([self.calm], dtype=np.int64)))

    @property
    def touching(self) -> IntArray:
        """Pairs that touch."""
        return self.pair[self.branch != Branch.SEPARATE]

    def forces(self, n_pairs: int) -> FloatArray:
        """Return the forces (n_pairs, 3) of all pairs; nothing but a touching pair has any."""
        out = np.zeros((n_pairs, 3))
        out[self.pair] = self.force
        return out
