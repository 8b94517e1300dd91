"""Impacts at their own time within a step.

A pair that closes its gap at tau = -g_0/w_n- in (0, dt] has its impact there: with the velocities v+ of the step, which
restitution gives,

    q+ = q_0 + tau v_0 + (dt - tau) v+          of the bodies of the impact, instead of  q_0 + dt v+

so that the place of an impact does not depend on the phase of the step, and neither do its derivatives: two bodies that
move steadily are exact. What a step without contacts does to w_n, the kick w_f - w_n-, acts in parts before and after
the impact:

    w_n+ = -e (w_n- + kick tau/dt) + kick (1 - tau/dt)

This is the event-time (saltation) matrix of hybrid systems, to first order in dt. Bodies with impacts at several times
within one step keep q_0 + dt v+ for it, and bounce without a kick. A tree of links is one body: an impact of a link
moves all of its coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from add.equations.kinematics import StateTangent
from add.equations.tangents import Columns, Directions, ThetaMap, push
from add.hard_contact.impulse_rows import ImpulseRows
from add.hard_contact.step_rows import StepRows
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
    """

    step: StepRows
    is_free: BoolArray

    @property
    def _rows(self) -> ImpulseRows:
        return self.step.contacts

    @property
    def any(self) -> bool:
        """Whether there is one."""
        return bool(self._rows.near.timed.any())

    @cached_property
    def _share(self) -> FloatArray:
        """How the delay of each coordinate (n,) follows from the times (k,): the mean over its pairs."""
        rows, lift = self._rows, self.step.beginning.lift
        n, dofs = self.is_free.size, free_dofs(lift.bodies_of(rows.dofs[rows.near.timed]), self.is_free)
        _, group = np.unique(components(dofs, n), return_inverse=True)
        member = group[:, None] == group[None, :]
        mean = member / member.sum(axis=1, keepdims=True)
        out = np.zeros((n, rows.n))
        columns = np.flatnonzero(rows.near.timed)
        for row, own in zip(mean, dofs, strict=True):
            out[np.ix_(own[own >= 0], columns)] = row
        return out

    @cached_property
    def delay(self) -> FloatArray:
        """How long each coordinate (n,) keeps its old velocity [s]."""
        return self._share @ self._rows.tau

    @property
    def _before(self) -> FloatArray:
        return self.step.beginning.kin.v

    def shift(self, v_after: FloatArray) -> FloatArray:
        """Return q+ less q_0 + dt v+ (n,)."""
        return self.delay * (self._before - v_after)

    def pullback(
        self, q_bar: FloatArray, v_after: FloatArray, before: StateTangent, theta_bar: FloatArray
    ) -> FloatArray:
        """Return the cotangent of v+ from that of q+; add those of the state before and of theta."""
        self._pull(self._share.T @ (q_bar * (self._before - v_after)), before, theta_bar)
        before.v[0] += self.delay * q_bar
        return -self.delay * q_bar

    def _pull(self, tau_bar: FloatArray, before: StateTangent, theta_bar: FloatArray) -> None:
        """Add the cotangents of the state before and of theta from that of the times (k,)."""
        rows, begin = self._rows, self.step.beginning
        centres, normal = rows.centres, rows.local[:, 2]
        bar = StateTangent.zeros(1, begin.n_rows)
        for by, index, out in (
            (rows.approach_by_coordinates(), rows.dofs, bar.q[0]),
            (rows.approach_by_centres(), centres, theta_bar),
            ((np.zeros_like(normal), normal), rows.dofs, bar.v[0]),
        ):
            np.add.at(out, index[index >= 0], (tau_bar[:, None] * rows.tau_by(*by))[index >= 0])
        begin.add_state(bar, before, theta_bar)

    def _times_along(self, x_dot: FloatArray, w_dot: FloatArray) -> FloatArray:
        """Return the tangents of the times (k, .) along those of X and of V before the step, (n_x, .) each."""
        rows, present = self._rows, (self._rows.dofs >= 0)[:, :, None]
        by_gap, by_speed = rows.approach_by_coordinates()
        x_local, w_local = (np.where(present, dot[rows.dofs], 0.0) for dot in (x_dot, w_dot))
        gap = np.einsum("kp,kpc->kc", by_gap, x_local)
        speed = np.einsum("kp,kpc->kc", by_speed, x_local) + np.einsum("kp,kpc->kc", rows.local[:, 2], w_local)
        return rows.tau_by(gap, speed)

    def by_state(self, q_dot: FloatArray, v_dot: FloatArray, v_after: FloatArray, after_dot: FloatArray) -> FloatArray:
        """Return the tangents (n, .) of the shift along those of the state before and of v+, (n, .) each."""
        begin = self.step.beginning
        fast = begin.push(v_dot)
        if not begin.same:
            fast = fast + begin.turned(begin.kin.v, q_dot)
        moved = (self._before - v_after)[:, None] * (self._share @ self._times_along(begin.push(q_dot), fast))
        return np.asarray(moved + self.delay[:, None] * (v_dot - after_dot))

    def by_theta(self, v_after: FloatArray, directions: Directions) -> Columns:
        """Return the tangents (n, .) of the shift along directions of theta, at fixed states."""
        rows, begin, centres = self._rows, self.step.beginning, self._rows.centres
        by_tau = rows.tau_by(*rows.approach_by_centres())
        apart = self._before - v_after

        def jvp(theta_dot: FloatArray, out: FloatArray) -> None:
            tau = np.einsum("kp,kp->k", by_tau, np.where(centres >= 0, theta_dot[centres], 0.0))
            if begin.lift.has_parameters:
                place, rate = begin.moved(begin.kin.v, theta_dot)
                tau = tau + self._times_along(place[:, None], rate[:, None])[:, 0]
            out += apart * (self._share @ tau)

        def vjp(bar: FloatArray, out: FloatArray) -> None:
            self._pull(self._share.T @ (apart * bar), StateTangent.zeros(1, self.is_free.size), out)

        return push([ThetaMap(jvp, vjp)], self.is_free.size, directions)
