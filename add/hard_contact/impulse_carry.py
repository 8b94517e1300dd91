"""The contacts that a step with contact in velocities keeps and hands on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from add.cones import ConeSolution
from add.equations.kinematics import Carry
from add.hard_contact.impulse_rows import NearPairs
from add.typing import FloatArray, IntArray

#: The mark of an impact that has a time within the step; without, it is 1.
_TIMED = 2


@final
@dataclass(frozen=True)
class CarriedImpulses:
    """Contacts of a step: for its derivatives, and for where the solver of the next step begins.

    In a `Carry` numbers are one row of the memory; the others are the marks.

    Attributes
    ----------
    near : NearPairs
    modes : (k,) of the cones
    force : (3 k,) in the pairs' axes at the beginning of the step [N]
    margin : (k,) how far from another mode
    natural_map : float
        Of the cone problem, scaled.
    """

    near: NearPairs
    modes: IntArray
    force: FloatArray
    margin: FloatArray
    natural_map: float

    @classmethod
    def of(cls, carry: Carry) -> CarriedImpulses:
        """Return what a record keeps."""
        pair, impact, modes = carry.marks
        k, memory = pair.size, carry.memory.ravel()
        near = NearPairs(pair, memory[:k], impact > 0, impact == _TIMED)
        return cls(near, modes, memory[k : 4 * k], memory[4 * k : 5 * k], float(memory[5 * k]))

    @classmethod
    def solved(cls, near: NearPairs, force: FloatArray, cone: ConeSolution | None) -> CarriedImpulses:
        """Return what a step keeps; ``cone`` is None where nothing is near."""
        if cone is None:
            return cls(near, np.zeros(0, dtype=np.int64), force, np.zeros(0), 0.0)
        return cls(near, cone.modes, force, cone.margins, cone.natural_map)

    def on(self, pairs: IntArray) -> tuple[IntArray, FloatArray]:
        """Return modes and forces of some pairs (by number); those that were not near are separate."""
        modes, force = np.zeros(pairs.size, dtype=np.int64), np.zeros((pairs.size, 3))
        _, here, there = np.intersect1d(pairs, self.near.pair, assume_unique=True, return_indices=True)
        modes[here], force[here] = self.modes[there], self.force.reshape(-1, 3)[there]
        return modes, force.ravel()

    def carry(self) -> Carry:
        """Return it as a state carries it."""
        near = self.near
        memory = np.concatenate([near.slope, self.force, self.margin, [self.natural_map]]).reshape(1, -1)
        impact = np.where(near.timed, _TIMED, near.impact.astype(np.int64))
        return Carry(memory, (near.pair, impact, self.modes))
