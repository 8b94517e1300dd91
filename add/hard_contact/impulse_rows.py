"""The contact rows of a step in velocities: geometry of its beginning, velocities of its end.

A pair i that is near has the rows J_i = push_i^T (see `add.hard_contact.geometry`), in the axes (t_1, t_2, n) of the
beginning, and with w = J v+ - V, V the given motion of a shape of the world, and w- the same with the velocities before

    u = w + b(g) n,    b = g/dt where g > 0 (it may close and no more),  kappa g/dt where g < 0

A pair with a restitution e that approaches faster than a resting one would bounces in the step that closes its gap, at
tau from the beginning of the step, and so there is no overlap to be pushed out of. With the velocity w_f that the step
would end with without its impacts, kick = w_f - w_n-, the speed of arrival is w_n- + kick tau/dt, what is left of the
kick acts afterwards, and

    u_n = w_n + e (w_n- + kick tau/dt) - kick (1 - tau/dt),    g + tau w_n- + kick tau^2/dt = 0  or  tau = 0

tau is the root in (0, dt] of an impact that has a time within the step (see `add.hard_contact.impact_times`); an impact
without bounces at the beginning. Free flight, impact and free flight are then steps of the same formula, which gain no
energy. A rebound slower than what is left of the kick ends at rest: u_n = w_n. Stabilisation is never faster than a
limit, and never multiplied by e.

The tangents t_1, t_2 turn with n by domega = n x dn + s n; s keeps t_1 along n x e with the world axis e = x, or y
where n is near x. Cones do not care for it, pyramids do.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

from add.equations.kinematics import Kinematics
from add.hard_contact.geometry import (
    ContactPairs,
    LocalBlocks,
    Rows,
    TouchDerivatives,
    Touches,
    cross,
    cross_matrices,
    touches,
)
from add.hard_contact.law import ImpulseOptions
from add.kernels.contact_rows import NEAR_X
from add.typing import BoolArray, FloatArray, IntArray


@final
@dataclass(frozen=True)
class NearPairs:
    """The pairs of a step, and what was decided about them from the state before.

    Attributes
    ----------
    pair : (k,) numbers among all pairs
    slope : (k,) db/dg [1/s]: 1/dt, kappa/dt, or zero where stabilisation is at its limit
    impact : (k,) whether it arrives in this step, with a restitution
    timed : (k,) whether it does so within the step (see `add.hard_contact.impact_times`)
    rests : (k,) whether it stays where it arrives
    """

    pair: IntArray
    slope: FloatArray
    impact: BoolArray
    timed: BoolArray
    rests: BoolArray

    @property
    def bounces(self) -> BoolArray:
        """Whether restitution acts (k,)."""
        return self.impact & ~self.rests


def time_of_impact(gap: FloatArray, speed: FloatArray, kick: FloatArray, dt: float, asked: BoolArray) -> FloatArray:
    """Return the first root tau [s] (k,) of g + tau w + kick tau^2/dt, where ``asked`` and w < 0; else zero."""
    inside = np.where(asked, speed * speed - 4.0 * kick * gap / dt, 1.0)
    return np.where(asked, 2.0 * gap / (np.sqrt(np.maximum(inside, 0.0)) - np.where(asked, speed, 0.0)), 0.0)


def _world_axis(normal: FloatArray) -> FloatArray:
    """Return the world axis (k, 3) that the tangents of each normal are taken from."""
    return np.asarray(np.eye(3)[np.where(np.abs(normal[:, 0]) < NEAR_X, 0, 1)])


def _turn(axes: FloatArray, by_normal: FloatArray) -> FloatArray:
    """Return the rotation (k, 3, p) of the axes that goes with derivatives of the normals (k, 3, p)."""
    second, normal = axes[:, :, 1], axes[:, :, 2]
    axis = _world_axis(normal)
    # first = n x e / |n x e| moves along second by (dn x e) . second / |n x e|.
    size = np.linalg.norm(cross(normal, axis), axis=1)
    spin = np.einsum("ki,kip->kp", cross(axis, second), by_normal) / size[:, None]
    return np.asarray(cross_matrices(normal) @ by_normal + normal[:, :, None] * spin[:, None, :])


@final
@dataclass(frozen=True)
class ImpulseRows:
    """Rows of the near pairs at the beginning of a step.

    Attributes
    ----------
    known : ContactPairs
        Pairs whose geometry is known: all, or the near ones.
    known_at : Touches of these there, with the velocities before
    number : (k,) which of them are near
    near : NearPairs
    restitution : (k,) e
    before : Kinematics at the beginning
    built : Rows
        Axes, coordinates and rows.
    bias : (k,) [m/s]
    free : (n,) velocities v_f that the step would end with without its impacts; asked for impacts alone [m/s]
    dt : float
        Step [s].
    """

    known: ContactPairs
    known_at: Touches
    number: IntArray
    near: NearPairs
    restitution: FloatArray
    before: Kinematics
    built: Rows
    bias: FloatArray
    free: FloatArray
    dt: float

    @classmethod
    def of(
        cls,
        pairs: ContactPairs,
        near: NearPairs,
        restitution: FloatArray,
        before: Kinematics,
        theta: FloatArray,
        options: ImpulseOptions,
        dt: float,
        free: FloatArray | None = None,
        known: Touches | None = None,
    ) -> "ImpulseRows":
        """Evaluate the geometry of ``near`` pairs of all ``pairs``; ``restitution`` is that of all.

        ``free`` is asked for where there are impacts. ``known`` is the geometry of all pairs, if there is one.
        """
        number, e = near.pair, restitution[near.pair]
        if known is None:
            if number.size < pairs.n:
                pairs, number = pairs.select(number), np.arange(number.size)
            known = touches(pairs, before, theta)
        gap = known.gap[number]
        limited = (near.slope == 0.0) & ~near.impact & (gap < 0.0) & (options.stabilisation > 0.0)
        bias = np.where(limited, -options.stabilisation_speed, near.slope * gap)
        built = (known if number.size == pairs.n else known.select(number)).rows()
        rows = cls(pairs, known, number, near, e, before, built, bias, before.v if free is None else free, dt)
        if not near.impact.any():
            return rows
        return replace(rows, bias=bias + rows._bounce * rows.at.normal_velocity + rows.kept * rows.kick)

    @cached_property
    def pairs(self) -> ContactPairs:
        """The near pairs alone."""
        return self.known if self.n == self.known.n else self.known.select(self.number)

    @cached_property
    def at(self) -> Touches:
        """Touches of the near pairs, with the velocities before."""
        return self.known_at if self.n == self.known.n else self.known_at.select(self.number)

    def friction(self, theta: FloatArray) -> FloatArray:
        """Return the coefficients of friction (k,)."""
        index = self.known.c_f[self.number]
        return np.where(index >= 0, theta[index], 0.0)

    @property
    def n(self) -> int:
        """Number of pairs k."""
        return self.near.pair.size

    @cached_property
    def tau(self) -> FloatArray:
        """Times (k,) of timed impacts after the beginning of the step [s]; zero for other pairs."""
        timed = self.near.timed
        return np.where(timed, time_of_impact(self.at.gap, self.at.normal_velocity, self.kick, self.dt, timed), 0.0)

    @cached_property
    def kick(self) -> FloatArray:
        """Change (k,) of w_n by a whole step without its impacts, of pairs that have one [m/s]."""
        if not self.near.impact.any():
            return np.zeros(self.n)
        change = np.append(self.free - self.before.v, 0.0)[self.built.dofs]
        return np.where(self.near.impact, np.einsum("kp,kp->k", self.built.local[:, 2], change), 0.0)

    @cached_property
    def kept(self) -> FloatArray:
        """Share (k,) of the kick in the bias of what bounces: (1 + e) tau/dt - 1."""
        return np.where(self.near.bounces, (1.0 + self.restitution) * self.tau / self.dt - 1.0, 0.0)

    @cached_property
    def shift(self) -> FloatArray:
        """U without any velocity (3 k,): the bias, less the given motion of shapes."""
        out = -(self.known.velocity[self.number][:, None, :] @ self.built.axes)[:, 0]
        out[:, 2] += self.bias
        return np.asarray(out).ravel()

    def world(self, local: FloatArray) -> FloatArray:
        """Return vectors (k, 3) of the pairs' axes, given as (3 k,), in world axes."""
        return np.asarray(np.einsum("kia,ka->ki", self.built.axes, local.reshape(-1, 3)))

    # --- derivatives by the beginning of the step ---------------------------------------------------------------------

    def moving(self, v: FloatArray, theta: FloatArray) -> Touches:
        """Return the geometry of the beginning with other velocities (n,), such as those after the step."""
        before = self.before
        return touches(self.pairs, Kinematics(before.q, v, before.a, before.t, before.step), theta)

    def derivatives(self, after: Touches, force: FloatArray, theta: FloatArray, shift: bool) -> LocalBlocks:
        """Return d(J^T F) (12) and du (3) by the coordinates before, or with ``shift`` by the two centres of mass.

        Velocities are held as in ``after``. ``force`` (k, 3) is in world axes; its numbers in the pairs' axes are held.
        """
        by_after = self._by(after, shift, force)
        turn = _turn(self.built.axes, by_after.normal)
        pushed = by_after.pushed - self.built.push @ cross_matrices(force) @ turn
        velocity = by_after.velocity + cross_matrices(after.velocity) @ turn
        rows = self.built.axes.transpose(0, 2, 1) @ velocity
        rows[:, 2] += self.near.slope[:, None] * by_after.gap
        if self.near.impact.any():
            rows[:, 2] += self._bias_by(self.approach(theta, shift))
        index = self.pairs.centres if shift else self.built.dofs
        return LocalBlocks(index, np.concatenate([pushed, rows], axis=1))

    def _by(self, at: Touches, shift: bool, force: FloatArray | None = None) -> TouchDerivatives:
        """Return the derivatives by the coordinates, or by the centres of mass."""
        return at.by_centres(force) if shift else at.by_coordinates(0.0, force)

    def _bias_by(self, approach: "Approach") -> FloatArray:
        """Return the derivatives of the bias of impacts (k, p) from those of how they approach."""
        kick = approach.free - approach.speed
        by_tau = np.where(self.near.bounces, (1.0 + self.restitution) / self.dt * self.kick, 0.0)
        bounce = self._bounce[:, None] * approach.speed + self.kept[:, None] * kick
        return np.asarray(bounce + by_tau[:, None] * self.tau_by(approach))

    def tau_by(self, approach: "Approach") -> FloatArray:
        """Return the derivatives of tau (k, p) from those of how pairs approach."""
        share = (self.tau / self.dt)[:, None]
        speed = np.where(self.near.timed, self.at.normal_velocity + 2.0 * share[:, 0] * self.kick, 1.0)[:, None]
        moved = approach.gap + self.tau[:, None] * ((1.0 - share) * approach.speed + share * approach.free)
        return np.where(self.near.timed[:, None], -moved / speed, 0.0)

    def approach(self, theta: FloatArray, shift: bool) -> "Approach":
        """Return how pairs approach by the coordinates (12), or with ``shift`` by the two centres of mass (6)."""
        by, fast = self._by(self.at, shift), self.moving(self.free, theta)
        of_free = self._by(fast, shift)

        def normal_velocity(at: Touches, by: TouchDerivatives) -> FloatArray:
            speed = np.einsum("ki,kij->kj", at.normal, by.velocity)
            return np.asarray(speed + np.einsum("ki,kij->kj", at.velocity, by.normal))

        return Approach(by.gap, normal_velocity(self.at, by), normal_velocity(fast, of_free))

    def approach_by_velocity(self, *, free: bool) -> "Approach":
        """Return how pairs approach by the velocities before (12), or by those without impacts."""
        normal = self.built.local[:, 2]
        still = np.zeros_like(normal)
        return Approach(still, *((still, normal) if free else (normal, still)))

    def by_velocity(self, *, free: bool) -> LocalBlocks:
        """Return du_n/dv-, or du_n/dv_f."""
        return LocalBlocks(self.built.dofs, self._bias_by(self.approach_by_velocity(free=free))[:, None])

    def by_restitution(self, restitution: IntArray) -> LocalBlocks:
        """Return du_n/de, the speed of arrival where restitution acts; e stands at an index (k,), -1 for zero."""
        speed = self.at.normal_velocity + self.tau / self.dt * self.kick
        return LocalBlocks(np.where(self.near.bounces, restitution, -1)[:, None], speed[:, None, None])

    @cached_property
    def _bounce(self) -> FloatArray:
        """E where restitution acts, else zero (k,)."""
        return np.where(self.near.bounces, self.restitution, 0.0)


@final
class Approach(NamedTuple):
    """Derivatives (k, p) of how pairs approach each other.

    Attributes
    ----------
    gap, speed, free : of g, of w_n before the step, and of w_n after it without its impacts
    """

    gap: FloatArray
    speed: FloatArray
    free: FloatArray
