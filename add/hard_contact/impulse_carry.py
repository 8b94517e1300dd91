"""The contacts and stops that a step with contact in velocities keeps and hands on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from add.cones import ConeSolution
from add.equations.kinematics import Carry
from add.hard_contact.impulse_rows import NearPairs
from add.hard_contact.step_rows import NearStops
from add.typing import FloatArray, IntArray

#: The marks of an impact: at the beginning of the step, at a time within it, the latter to stay there.
_IMPACT, _TIMED, _RESTS = 1, 2, 3


@final
@dataclass(frozen=True)
class CarriedImpulses:
    """Contacts of a step: for its derivatives, and for where the solver of the next step begins.

    In a `Carry` numbers are one row of the memory; the others are the marks.

    Attributes
    ----------
    near : NearPairs, k of them
    stops : NearStops, m of them
    modes : (k + m,) of the cones
    force : (3 k + m,) in the pairs' axes at the beginning of the step, and of stops [N], [N m]
    margin : (k + m,) how far from another mode
    natural_map : float
        Of the cone problem, scaled, or what redundant rows disagree about.
    """

    near: NearPairs
    stops: NearStops
    modes: IntArray
    force: FloatArray
    margin: FloatArray
    natural_map: float

    @classmethod
    def of(cls, carry: Carry) -> CarriedImpulses:
        """Return what a record keeps."""
        pair, impact, modes, number = carry.marks
        k, m, memory = pair.size, number.size, carry.memory.ravel()
        n, last = k + m, 4 * k + 2 * m  # slopes first, then forces, margins and the natural map
        near = NearPairs(pair, memory[:k], impact >= _IMPACT, impact >= _TIMED, impact == _RESTS)
        stops = NearStops(number, memory[k:n])
        return cls(near, stops, modes, memory[n:last], memory[last : last + n], float(memory[last + n]))

    @classmethod
    def solved(cls, near: NearPairs, stops: NearStops, force: FloatArray, cone: ConeSolution | None) -> CarriedImpulses:
        """Return what a step keeps; ``cone`` is None where nothing is near."""
        if cone is None:
            return cls(near, stops, np.zeros(0, dtype=np.int64), force, np.zeros(0), 0.0)
        return cls(near, stops, cone.modes, force, cone.margins, max(cone.natural_map, cone.disagreement))

    def on(self, pairs: IntArray, stops: IntArray) -> tuple[IntArray, FloatArray]:
        """Return modes and forces of some pairs and stops (by number); those that were not near are separate."""
        k, n = self.near.pair.size, pairs.size
        if np.array_equal(pairs, self.near.pair) and np.array_equal(stops, self.stops.number):
            return self.modes, self.force
        modes, force = np.zeros(n + stops.size, dtype=np.int64), np.zeros(3 * n + stops.size)
        of_pairs = force[: 3 * n].reshape(-1, 3)
        _, here, there = np.intersect1d(pairs, self.near.pair, assume_unique=True, return_indices=True)
        modes[here], of_pairs[here] = self.modes[there], self.force[: 3 * k].reshape(-1, 3)[there]
        _, here, there = np.intersect1d(stops, self.stops.number, assume_unique=True, return_indices=True)
        modes[n + here], force[3 * n + here] = self.modes[k + there], self.force[3 * k + there]
        return modes, force

    def carry(self) -> Carry:
        """Return it as a state carries it."""
        near, stops = self.near, self.stops
        numbers = [near.slope, stops.slope, self.force, self.margin, np.array([self.natural_map])]
        impact = np.where(near.rests, _RESTS, np.where(near.timed, _TIMED, np.where(near.impact, _IMPACT, 0)))
        return Carry(np.concatenate(numbers).reshape(1, -1), (near.pair, impact, self.modes, stops.number))
