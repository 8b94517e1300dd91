"""Contacts and stops that count in a step, decided from its start and end, and impacts at their own time within it.

A pair that closes its gap at tau in (0, dt] (see `impulse_rows`) has its impact there: with the velocities v_f that the
step would end with without its impacts, and v+ that it ends with,

    q+ = q_0 + tau v_tau + (dt - tau) v+,    v_tau = v_0 + (v_f - v_0) tau/dt

of the bodies of the impact, instead of q_0 + dt v+: free flight before and after are steps of the formula, of lengths
tau and dt - tau. So the place of an impact does not depend on the phase of the step, and neither do its derivatives:
two bodies that move steadily are exact. This is the event-time (saltation) matrix of hybrid systems, to first order in
dt. A step in which one body has impacts at several times is taken in parts (`ImpulseContact`); in the shortest parts
these are at the beginning. A tree of links is one body: an impact of a link moves all of its coordinates.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from add.compiled.impulse_near import MISSED
from add.equations.kinematics import Columns, Directions, StateTangent, ThetaMap, push
from add.equations.system import System
from add.hard_contact.geometry import ContactPairs, LocalBlocks, Touches, touches
from add.hard_contact.impulse_rows import Approach, ImpulseRows, NearPairs, time_of_impact
from add.hard_contact.law import ImpulseOptions
from add.hard_contact.step_rows import Beginning, JointStops, NearStops, StepRows
from add.typing import BoolArray, FloatArray, IntArray

#: Impacts of one body this share of a step apart are one: four corners of a face.
_AT_ONCE = 1e-6


def components(dofs: IntArray, n: int) -> IntArray:
    """Return a number for each pair (k,): equal where pairs act on bodies in common, by their coordinates (k, m)."""
    k = dofs.shape[0]
    pair, place = np.nonzero(dofs >= 0)
    graph = coo_array((np.ones(pair.size), (pair, k + dofs[pair, place])), shape=(k + n, k + n))
    return np.asarray(connected_components(graph, directed=False)[1][:k], dtype=np.int64)


def free_dofs(dofs: IntArray, is_free: BoolArray) -> IntArray:
    """Return coordinates (k, m) with -1 for those that are prescribed: what is driven feels no impact."""
    return np.where((dofs >= 0) & is_free[dofs], dofs, -1)


def one_time(tau: FloatArray, dofs: IntArray, n: int, dt: float) -> BoolArray:
    """Return which impacts (k,) are at one time with all others of the bodies that they meet."""
    _, group = np.unique(components(dofs, n), return_inverse=True)
    first, last = np.full(tau.size, np.inf), np.full(tau.size, -np.inf)
    np.minimum.at(first, group, tau)
    np.maximum.at(last, group, tau)
    return np.asarray((last - first <= _AT_ONCE * dt)[group])


@final
@dataclass(frozen=True)
class ImpactTimes:
    """The timed impacts of a step.

    Attributes
    ----------
    step : StepRows
    is_free : (n,) which coordinates an impact moves
    free : (n,) v_f
    """

    step: StepRows
    is_free: BoolArray
    free: FloatArray

    @property
    def _rows(self) -> ImpulseRows:
        return self.step.contacts

    @cached_property
    def _share(self) -> FloatArray:
        """How the delay of each coordinate (n,) follows from the times (k,): the mean over its pairs."""
        rows, lift = self._rows, self.step.beginning.lift
        n, dofs = self.is_free.size, free_dofs(lift.bodies_of(rows.built.dofs[rows.near.timed]), self.is_free)
        _, group = np.unique(components(dofs, n), return_inverse=True)
        member = group[:, None] == group[None, :]
        mean = member / member.sum(axis=1, keepdims=True)
        out = np.zeros((n, rows.n))
        columns = np.flatnonzero(rows.near.timed)
        for row, of_row in zip(mean, dofs, strict=True):
            out[np.ix_(of_row[of_row >= 0], columns)] = row
        return out

    @cached_property
    def delay(self) -> FloatArray:
        """How long each coordinate (n,) keeps its old velocity [s]."""
        return self._share @ self._rows.tau

    @property
    def _before(self) -> FloatArray:
        return self.step.beginning.kin.v

    @property
    def _change(self) -> FloatArray:
        """The change of the velocities (n,) by the step without its impacts, times the share of the delay."""
        return (self.free - self._before) * (self.delay / self._rows.dt)

    def shift(self, v_after: FloatArray) -> FloatArray:
        """Return q+ less q_0 + dt v+ (n,)."""
        return self.delay * (self._before + self._change - v_after)

    def _by_delay(self, v_after: FloatArray) -> FloatArray:
        return self._before + 2.0 * self._change - v_after

    def pullback(
        self, q_bar: FloatArray, v_after: FloatArray, before: StateTangent, theta_bar: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the cotangents of v+ and v_f from that of q+; add those of the state before and of theta."""
        free_bar = np.zeros_like(q_bar)
        self._pull(self._share.T @ (q_bar * self._by_delay(v_after)), before, free_bar, theta_bar)
        late = self.delay / self._rows.dt
        before.v[0] += self.delay * (1.0 - late) * q_bar
        return -self.delay * q_bar, free_bar + self.delay * late * q_bar

    def _block(self, approach: Approach, index: IntArray) -> LocalBlocks:
        return LocalBlocks(index, self._rows.tau_by(approach)[:, None])

    @cached_property
    def _by_motion(self) -> tuple[LocalBlocks, LocalBlocks, LocalBlocks]:
        """Derivatives of the times by X, by V before and by V_f."""
        rows = self._rows
        return (
            self._block(rows.approach(self.step.beginning.theta, False), rows.built.dofs),
            self._block(rows.approach_by_velocity(free=False), rows.built.dofs),
            self._block(rows.approach_by_velocity(free=True), rows.built.dofs),
        )

    @cached_property
    def _by_centres(self) -> LocalBlocks:
        """Blocks of the derivatives by the centres of mass."""
        return self._block(self._rows.approach(self.step.beginning.theta, True), self._rows.pairs.centres)

    def _pull(self, tau_bar: FloatArray, before: StateTangent, free_bar: FloatArray, theta_bar: FloatArray) -> None:
        """Add the cotangents of the state before, of v_f and of theta from that of the times (k,)."""
        begin = self.step.beginning
        bar, free = StateTangent.zeros(1, begin.n_rows), np.zeros(begin.n_rows)
        for block, out in zip((*self._by_motion, self._by_centres), (bar.q[0], bar.v[0], free, theta_bar), strict=True):
            block.pull(tau_bar[:, None], out)
        begin.add_state(bar, before, theta_bar)
        begin.add_velocity(self.free, free, before.q[0], theta_bar)
        free_bar += begin.pull(free)

    def _times_along(self, x_dot: FloatArray, w_dot: FloatArray, free_dot: FloatArray) -> FloatArray:
        """Return the tangents of the times (k, .) along those of X, of V before and of V_f, (n_x, .) each."""
        by_x, by_w, by_free = self._by_motion
        return np.asarray((by_x.push(x_dot) + by_w.push(w_dot) + by_free.push(free_dot))[:, 0])

    def by_state(self, q_dot: FloatArray, v_dot: FloatArray, v_after: FloatArray, after_dot: FloatArray) -> FloatArray:
        """Return the tangents (n, .) of the shift along those of the state before and of v+, (n, .) each."""
        begin = self.step.beginning
        fast, free = begin.push(v_dot), np.zeros((begin.n_rows, q_dot.shape[1]))
        if not begin.same:
            fast = fast + begin.turned(begin.kin.v, q_dot)
            free = begin.turned(self.free, q_dot)
        late = (self.delay / self._rows.dt)[:, None]
        moved = self._by_delay(v_after)[:, None] * (self._share @ self._times_along(begin.push(q_dot), fast, free))
        return np.asarray(moved + self.delay[:, None] * ((1.0 - late) * v_dot - after_dot))

    def by_free(self, free_dot: FloatArray, v_after: FloatArray) -> FloatArray:
        """Return the tangents (n, .) of the shift along those of v_f (n, .)."""
        times = self._by_motion[2].push(self.step.beginning.push(free_dot))[:, 0]
        late = (self.delay / self._rows.dt)[:, None]
        return np.asarray(
            self._by_delay(v_after)[:, None] * (self._share @ times) + self.delay[:, None] * late * free_dot
        )

    def by_theta(self, v_after: FloatArray, directions: Directions) -> Columns:
        """Return the tangents (n, .) of the shift along directions of theta, at fixed states."""
        begin, by_delay = self.step.beginning, self._by_delay(v_after)

        def jvp(theta_dot: FloatArray, out: FloatArray) -> None:
            tau = self._by_centres.push(theta_dot[:, None])[:, 0, 0]
            if begin.lift.has_parameters:
                place, rate = begin.moved(begin.kin.v, theta_dot)
                free = begin.moved(self.free, theta_dot)[1]
                tau = tau + self._times_along(place[:, None], rate[:, None], free[:, None])[:, 0]
            out += by_delay * (self._share @ tau)

        def vjp(bar: FloatArray, out: FloatArray) -> None:
            nowhere = StateTangent.zeros(1, self.is_free.size)
            self._pull(self._share.T @ (by_delay * bar), nowhere, np.zeros(self.is_free.size), out)

        return push([ThetaMap(jvp, vjp)], self.is_free.size, directions)


def resting_speed(system: System, theta: FloatArray, dt: float) -> float:
    """Return the speed up to which an approach may be that of a body at rest: twice what gravity does in a step."""
    layout = system.parameters
    return 2.0 * dt * math.hypot(*layout.view(theta, "gravity")) if "gravity" in layout else 0.0


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
        movable: BoolArray,
    ) -> None:
        self.pairs, self.stops, self.restitution = pairs, stops, restitution
        self.options, self.dt, self.whole, self.before, self.system = options, dt, whole, before, system
        self._movable = movable
        self.at = Touches.far(pairs, before.rows, before.theta)
        # What is not near enough to come in at twice these speeds is not known, until a solution is faster than that.
        self._known = np.zeros(pairs.n, dtype=bool)
        self._free_speed = np.zeros(pairs.n)
        self._may_bounce: BoolArray = np.zeros(pairs.n, dtype=bool)
        self._know(self.at.in_reach(before.rows, dt, 2.0, self.resting, options.touching))
        self._stop_gaps = stops.gaps(before.kin.q, before.theta)
        self.arriving: BoolArray = np.zeros(pairs.n, dtype=bool)
        self._follows = False  # whether impacts drive other pairs together that would bounce
        self.near = self._first()

    @cached_property
    def resting(self) -> float:
        """See `resting_speed`."""
        return resting_speed(self.system, self.before.theta, self.whole)

    def _know(self, reached: IntArray) -> None:
        """Evaluate those of some pairs that are not known yet."""
        new = reached[~self._known[reached]]
        self.at.measure(new, self.before.rows, self.before.theta)
        self._known[new] = True
        speed = self.at.normal_velocity[new]
        # What rests on the ground approaches it by what gravity does in a step, and must not bounce.
        self._may_bounce[new] = (self.restitution[new] > 0.0) & (speed < -self.resting) & self._movable[new]
        self._free_speed[new] = speed

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
        """Return the normal velocities (m,) of all pairs at velocities (n,), zero of those that stay far away."""
        rows = replace(self.before.rows, v=self.before.push(v))
        self._know(self.at.in_reach(rows, self.dt, 1.0, 0.0, self.options.touching))
        out, known = np.zeros(self.pairs.n), np.flatnonzero(self._known)
        out[known] = touches(self.pairs.select(known), rows, self.before.theta).normal_velocity
        return out

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
        missed = more & (ends < -MISSED * self.options.touching)
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
