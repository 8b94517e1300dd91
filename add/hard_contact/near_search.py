"""The contacts and stops that count in a step, decided from the state before it."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import final

import numpy as np

from add.equations.system import System
from add.hard_contact.beginning import Beginning
from add.hard_contact.geometry import touches
from add.hard_contact.impact_times import free_dofs, one_time
from add.hard_contact.impulse_options import ImpulseOptions
from add.hard_contact.impulse_rows import NearPairs
from add.hard_contact.pairs import ContactPairs
from add.hard_contact.stop_rows import JointStops, NearStops
from add.kernels.contact_places import Touches
from add.typing import BoolArray, FloatArray, IntArray


@final
class NearSearch:
    """Contacts that touch before a step or would be passed through in it; pairs first, then stops.

    Attributes
    ----------
    at : Touches of all pairs
    near : (m + s,) which pairs and sides of stops count so far
    """

    def __init__(
        self,
        pairs: ContactPairs,
        stops: JointStops,
        restitution: FloatArray,
        options: ImpulseOptions,
        dt: float,
        before: Beginning,
        system: System,
    ) -> None:
        self.pairs, self.stops, self.restitution = pairs, stops, restitution
        self.options, self.dt, self.before, self.system = options, dt, before, system
        self.at: Touches = touches(pairs, before.rows, before.theta)
        self._stop_gaps = stops.gaps(before.kin.q, before.theta)
        self.near = self._first()

    @cached_property
    def resting(self) -> float:
        """The speed up to which an approach may be that of a body at rest: twice what gravity does in a step."""
        layout = self.system.parameters
        if "gravity" not in layout:
            return 0.0
        return 2.0 * self.dt * math.hypot(*layout.view(self.before.theta, "gravity"))

    @cached_property
    def _may(self) -> BoolArray:
        """Whether pairs and stops may come to act in this step at all."""
        at, options = self.at, self.options
        waits = (self.restitution > 0.0) & (at.gap > options.touching)
        if options.timed_impacts:  # what is slow comes to rest at the gap's end
            waits &= (at.normal_velocity < -self.resting) & (at.gap + self.dt * at.normal_velocity > 0.0)
        # What is held cannot get out of the way.
        partition = self.system.partition
        if partition.prescribed.size:
            free = np.append(self.before.lift.moved_by(partition.is_free), False)
            waits |= ~free[self.pairs.dofs()].any(axis=1)
        return np.concatenate([~waits, partition.is_free[self.stops.dof]])

    def _first(self) -> BoolArray:
        at = self.at
        # With what gravity may add: of points on one plane round-off must not choose some.
        closing = np.minimum(at.normal_velocity - self.resting, 0.0)
        ends = at.gap + self.dt * closing
        if self.stops.n:
            stopping = np.minimum(self.stops.sign * self.before.kin.v[self.stops.dof], 0.0)
            ends = np.concatenate([ends, self._stop_gaps + self.dt * stopping])
        return np.asarray(self._may & (ends <= self.options.touching))

    def add_missed(self, v: FloatArray) -> bool:
        """Add what a solution with the velocities ``v`` (n,) would pass through; return whether there was anything."""
        more = self._may & ~self.near
        if not more.any():
            return False
        after = touches(self.pairs, replace(self.before.rows, v=self.before.push(v)), self.before.theta)
        ends = np.concatenate([
            self.at.gap + self.dt * after.normal_velocity,
            self._stop_gaps + self.dt * self.stops.sign * v[self.stops.dof],
        ])  # fmt: skip
        missed = more & (ends < -1e-6 * self.options.touching)
        self.near |= missed
        return bool(missed.any())

    def decided(self) -> tuple[NearPairs, NearStops]:
        """Return the near pairs and stops: who is stabilised, who anticipates, and who bounces."""
        n = self.pairs.n
        number = np.flatnonzero(self.near[n:])
        return self._decided_pairs(np.flatnonzero(self.near[:n])), NearStops(
            number, self._slope(self._stop_gaps[number])
        )

    def _slope(self, gap: FloatArray) -> FloatArray:
        options, dt = self.options, self.dt
        slope = np.where(gap > 0.0, 1.0 / dt, options.stabilisation / dt)
        slope[-slope * gap > options.stabilisation_speed] = 0.0
        return slope

    def _decided_pairs(self, pairs: IntArray) -> NearPairs:
        options, dt = self.options, self.dt
        gap, approach = self.at.gap[pairs], self.at.normal_velocity[pairs]
        # What rests on the ground approaches it by what gravity does in a step, and must not bounce.
        bounces = (self.restitution[pairs] > 0.0) & (approach < -self.resting)
        timed = bounces & (gap > 0.0) & (gap + dt * approach <= 0.0) & options.timed_impacts
        impact = bounces & (gap <= options.touching) | timed
        if timed.any():
            is_free = self.system.partition.is_free
            moving = self.before.lift.bodies_of(self.pairs.dofs()[pairs[impact]])
            times = np.maximum(-gap[impact] / approach[impact], 0.0)
            timed[impact] &= one_time(times, free_dofs(moving, is_free), is_free.size, dt)
        # What bounces leaves the shape by itself.
        return NearPairs(pairs, np.where(impact, 0.0, self._slope(gap)), impact, timed)
