"""The contacts and stops that count in a step, decided from the state before it and from what it would end in."""

import math
from dataclasses import replace
from functools import cached_property
from typing import final

import numpy as np

from add.equations.system import System
from add.hard_contact.geometry import ContactPairs, Touches, touches
from add.hard_contact.impact_times import free_dofs, one_time
from add.hard_contact.impulse_rows import NearPairs, time_of_impact
from add.hard_contact.options import ImpulseOptions
from add.hard_contact.step_rows import Beginning, JointStops, NearStops
from add.typing import BoolArray, FloatArray, IntArray


@final
class NearSearch:
    """Contacts that touch before a step or would be passed through in it; pairs first, then stops.

    What may bounce is left out first. The velocities that the step would end with then say which of it arrives
    (`arrive`), when, and with which speed.

    Attributes
    ----------
    at : Touches of all pairs
    near : (m + s,) which pairs and sides of stops count so far
    arriving : (m,) which pairs have an impact
    """

    def __init__(
        self,
        pairs: ContactPairs,
        stops: JointStops,
        restitution: FloatArray,
        options: ImpulseOptions,
        dt: float,
        whole: float,
        before: Beginning,
        system: System,
    ) -> None:
        self.pairs, self.stops, self.restitution = pairs, stops, restitution
        self.options, self.dt, self.whole, self.before, self.system = options, dt, whole, before, system
        self.at: Touches = touches(pairs, before.rows, before.theta)
        self._stop_gaps = stops.gaps(before.kin.q, before.theta)
        # What rests on the ground approaches it by what gravity does in a step, and must not bounce.
        fast = self.at.normal_velocity < -self.resting
        self._may_bounce = np.asarray((restitution > 0.0) & fast & self._movable[: pairs.n])
        self.arriving: BoolArray = np.zeros(pairs.n, dtype=bool)
        self._free_speed = self.at.normal_velocity
        self._follows = False  # whether impacts drive other pairs together that would bounce
        self.near = self._first()

    @cached_property
    def resting(self) -> float:
        """The speed up to which an approach may be that of a body at rest: twice what gravity does in a whole step."""
        layout = self.system.parameters
        if "gravity" not in layout:
            return 0.0
        return 2.0 * self.whole * math.hypot(*layout.view(self.before.theta, "gravity"))

    @cached_property
    def _movable(self) -> BoolArray:
        """Which pairs and stops can do anything: what is held cannot get out of the way."""
        partition = self.system.partition
        movable: BoolArray = np.ones(self.pairs.n, dtype=bool)
        if partition.prescribed.size:
            free = np.append(self.before.lift.moved_by(partition.is_free), False)
            movable = np.asarray(free[self.pairs.dofs()].any(axis=1))
        return np.concatenate([movable, partition.is_free[self.stops.dof]])

    def _first(self) -> BoolArray:
        at = self.at
        # With what gravity may add: of points on one plane round-off must not choose some.
        closing = np.minimum(at.normal_velocity - self.resting, 0.0)
        ends = np.where(self._may_bounce, np.inf, at.gap + self.dt * closing)
        if self.stops.n:
            stopping = np.minimum(self.stops.sign * self.before.kin.v[self.stops.dof], 0.0)
            ends = np.concatenate([ends, self._stop_gaps + self.dt * stopping])
        return np.asarray(self._movable & (ends <= self.options.touching))

    def _velocity(self, v: FloatArray) -> FloatArray:
        """Return the normal velocities (m,) of all pairs at velocities (n,)."""
        after = touches(self.pairs, replace(self.before.rows, v=self.before.push(v)), self.before.theta)
        return after.normal_velocity

    def arrive(self, v: FloatArray) -> bool:
        """Let those bounce that close their gap with the velocities ``v`` (n,); return whether there are any."""
        if not self._may_bounce.any():
            return False
        self._free_speed = self._velocity(v)
        closed = self.at.gap + self.dt * self._free_speed < 0.0
        self.arriving = np.asarray(self._may_bounce & ((self.at.gap <= self.options.touching) | closed))
        self.near[: self.pairs.n] |= self.arriving
        return bool(self.arriving.any())

    def add_missed(self, v: FloatArray, with_impacts: bool) -> bool:
        """Add what a solution with the velocities ``v`` (n,) would pass through; return whether there was anything.

        Pairs that may bounce count only ``with_impacts``: they arrive, too.
        """
        n = self.pairs.n
        more = self._movable & ~self.near
        if not with_impacts:
            more[:n] &= ~self._may_bounce
        if not more.any():
            return False
        speed = self._velocity(v)
        stopping = self.stops.sign * v[self.stops.dof]
        ends = np.concatenate([self.at.gap + self.dt * speed, self._stop_gaps + self.dt * stopping])
        missed = more & (ends < -1e-6 * self.options.touching)
        self.near |= missed
        self.arriving |= missed[:n] & self._may_bounce
        self._follows |= (
            with_impacts
            and self.options.timed_impacts
            and bool((missed[:n] & (self.restitution > 0.0) & (speed < -self.resting)).any())
        )
        return bool(missed.any())

    def decided(self) -> tuple[NearPairs, NearStops, bool]:
        """Return the near pairs and stops, and whether one body has impacts at several times.

        Decided is who is stabilised, who anticipates, and who bounces when.
        """
        n = self.pairs.n
        number = np.flatnonzero(self.near[n:])
        stops = NearStops(number, self._slope(self._stop_gaps[number]))
        pairs = np.flatnonzero(self.near[:n])
        gap, impact = self.at.gap[pairs], self.arriving[pairs]
        timed, rests, apart = np.zeros(pairs.size, dtype=bool), np.zeros(pairs.size, dtype=bool), False
        if impact.any():
            timed, apart = self._timed(pairs, impact)
            share, target = self._rebound(pairs, timed)
            ends = np.where(timed, 0.0, gap) + (1.0 - share) * self.dt * target
            rests = impact & (ends < 0.0)
            impact &= timed | ~rests
        slope = np.where(impact, 0.0, self._slope(gap))
        return NearPairs(pairs, slope, impact, timed, rests & timed), stops, apart or self._follows

    def _slope(self, gap: FloatArray) -> FloatArray:
        # Corners of a face that are above and below a plane by next to nothing must not contradict each other.
        apart = gap > (self.options.touching if self.dt < self.whole else 0.0)
        slope = np.where(apart, 1.0 / self.dt, self.options.stabilisation / self.whole)
        slope[-slope * gap > self.options.stabilisation_speed] = 0.0
        return slope

    def _timed(self, pairs: IntArray, impact: BoolArray) -> tuple[BoolArray, bool]:
        """Return which impacts happen within the step, and whether one body has several at other times."""
        if not self.options.timed_impacts:
            return np.zeros(pairs.size, dtype=bool), False
        early = self.at.gap[pairs] > self.options.touching
        closed = early & (self.at.gap[pairs] + self.dt * self._free_speed[pairs] < 0.0)
        times = np.where(early, 2.0 * self.dt, 0.0)  # what others drive into its shape has no time of its own
        times[closed] = self._times(pairs, impact & closed)[closed]
        is_free = self.system.partition.is_free
        moving = self.before.lift.bodies_of(self.pairs.dofs()[pairs[impact]])
        alone = impact.copy()
        alone[impact] = one_time(times[impact], free_dofs(moving, is_free), is_free.size, self.dt)
        return alone & closed, bool((impact & ~alone).any())

    def _times(self, pairs: IntArray, asked: BoolArray) -> FloatArray:
        speed = self.at.normal_velocity[pairs]
        return time_of_impact(self.at.gap[pairs], speed, self._free_speed[pairs] - speed, self.dt, asked)

    def _rebound(self, pairs: IntArray, timed: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return tau/dt, and the normal velocity (k,) that a bounce leaves at the end of the step."""
        speed = self.at.normal_velocity[pairs]
        kick, share = self._free_speed[pairs] - speed, self._times(pairs, timed) / self.dt
        return share, -self.restitution[pairs] * (speed + kick * share) + kick * (1.0 - share)
