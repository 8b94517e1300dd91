"""The contact rows of a step in velocities: geometry of its beginning, velocities of its end.

A pair i that is near has the rows J_i = push_i^T (see `add.hard_contact.geometry`), in the axes (t_1, t_2, n) of the
beginning, and with w = J v+ - V, V the given motion of a shape of the world, and w- the same with the velocities before

    u = w + (e w_n- [impact] + b(g)) n,    b = g/dt where g > 0 (it may close and no more),  kappa g/dt where g < 0

Restitution acts on a pair that touches and approaches faster than a resting one would; a pair with e > 0 that does not
touch yet is left alone, or it would lose its speed a step before. Stabilisation is never faster than a limit, and never
multiplied by e. All this depends on the coordinates and velocities before the step alone.

The tangents t_1, t_2 turn with n by the smallest rotation, domega = n x dn: the cone does not care for their choice, so
any smooth continuation gives the derivative.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from add.equations.kinematics import Kinematics
from add.hard_contact.geometry import TouchDerivatives, Touches, cross_matrices, derivatives, push_derivatives, touches
from add.hard_contact.impulse_options import ImpulseOptions
from add.hard_contact.pairs import ContactPairs
from add.typing import BoolArray, FloatArray, IntArray


@final
@dataclass(frozen=True)
class NearPairs:
    """The pairs of a step, and what was decided about them from the state before.

    Attributes
    ----------
    pair : (k,) numbers among all pairs
    slope : (k,) db/dg [1/s]: 1/dt, kappa/dt, or zero where stabilisation is at its limit
    impact : (k,) whether restitution acts
    """

    pair: IntArray
    slope: FloatArray
    impact: BoolArray


def _axes(normal: FloatArray) -> FloatArray:
    """Return orthonormal axes (k, 3, 3), columns t_1, t_2, n."""
    smallest = np.argmin(np.abs(normal), axis=1)
    first = np.cross(normal, np.eye(3)[smallest])
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    return np.stack([first, np.cross(normal, first), normal], axis=2)


@final
@dataclass(frozen=True)
class ImpulseRows:
    """Rows of the near pairs at the beginning of a step.

    Attributes
    ----------
    pairs : ContactPairs of the near pairs alone
    near : NearPairs
    restitution : (k,) e
    before : Kinematics at the beginning
    at : Touches there, with the velocities before
    axes : (k, 3, 3) columns t_1, t_2, n
    dofs : (k, 12) coordinates of carrier and host, -1 for none
    push : (k, 12, 3) generalised force per force, world axes
    bias : (k,) e w_n- + b [m/s]
    """

    pairs: ContactPairs
    near: NearPairs
    restitution: FloatArray
    before: Kinematics
    at: Touches
    axes: FloatArray
    dofs: IntArray
    push: FloatArray
    bias: FloatArray

    @classmethod
    def of(
        cls,
        pairs: ContactPairs,
        near: NearPairs,
        restitution: FloatArray,
        before: Kinematics,
        theta: FloatArray,
        options: ImpulseOptions,
    ) -> ImpulseRows:
        """Evaluate the geometry of ``near`` pairs of all ``pairs``; ``restitution`` is that of all."""
        own = pairs.select(near.pair)
        at = touches(own, before, theta)
        by = derivatives(own, at, 0.0)
        e = restitution[near.pair]
        limited = (near.slope == 0.0) & ~near.impact & (at.gap < 0.0) & (options.stabilisation > 0.0)
        bias = np.where(limited, -options.stabilisation_speed, near.slope * at.gap)
        bias += np.where(near.impact, e * at.normal_velocity, 0.0)
        return cls(own, near, e, before, at, _axes(at.normal), own.dofs(), by.push, bias)

    @property
    def n(self) -> int:
        """Number of pairs k."""
        return self.near.pair.size

    @cached_property
    def local(self) -> FloatArray:
        """Rows (k, 3, 12) over the coordinates of the pairs, in their axes."""
        return np.asarray(self.axes.transpose(0, 2, 1) @ self.push.transpose(0, 2, 1))

    def matrix(self, n: int) -> FloatArray:
        """Return J (3 k, n)."""
        out = np.zeros((self.n, 3, n + 1))
        pair = np.arange(self.n)[:, None, None]
        np.add.at(out, (pair, np.arange(3)[None, :, None], self.dofs[:, None, :]), self.local)
        return np.ascontiguousarray(out[:, :, :n].reshape(-1, n))

    @cached_property
    def shift(self) -> FloatArray:
        """U without any velocity (3 k,): the bias, less the given motion of shapes."""
        out = -np.einsum("kia,ki->ka", self.axes, self.pairs.velocity)
        out[:, 2] += self.bias
        return out.ravel()

    def world(self, local: FloatArray) -> FloatArray:
        """Return vectors (k, 3) of the pairs' axes, given as (3 k,), in world axes."""
        return np.asarray(np.einsum("kia,ka->ki", self.axes, local.reshape(-1, 3)))

    # --- derivatives by the beginning of the step ---------------------------------------------------------------------

    def _after(self, v: FloatArray, theta: FloatArray) -> Touches:
        """Return the geometry of the beginning with the velocities after the step."""
        before = self.before
        return touches(self.pairs, Kinematics(before.q, v, before.a, before.t, before.step), theta)

    def _derivative(self, v: FloatArray, force: FloatArray, theta: FloatArray, shift: bool) -> RowDerivatives:
        """Return how forces and rows change with the coordinates (12), or with the two centres of mass (6)."""
        after = self._after(v, theta)
        by_after, by_before = derivatives(self.pairs, after, 0.0), derivatives(self.pairs, self.at, 0.0)
        if shift:
            by_after, by_before = (_by_centres(self.pairs, at) for at in (after, self.at))
        gap = np.einsum("ki,kij->kj", self.at.normal, by_before.apart)
        turn = cross_matrices(self.at.normal) @ by_before.normal
        if shift:
            pushed = _push_by_centres(self.pairs, after, by_after, force)
        else:
            pushed = push_derivatives(self.pairs, after, by_after, force)
        pushed = pushed - self.push @ cross_matrices(force) @ turn
        velocity = by_after.velocity + cross_matrices(after.velocity) @ turn
        rows = self.axes.transpose(0, 2, 1) @ velocity
        bounce = np.einsum("ki,kij->kj", self.at.normal, by_before.velocity)
        bounce += np.einsum("ki,kij->kj", self.at.velocity, by_before.normal)
        rows[:, 2] += (
            self.near.slope[:, None] * gap + np.where(self.near.impact, self.restitution, 0.0)[:, None] * bounce
        )
        return RowDerivatives(pushed, rows)

    def by_coordinates(self, v: FloatArray, force: FloatArray, theta: FloatArray) -> RowDerivatives:
        """Return d(J^T F) (k, 12, 12) and du (k, 3, 12) by the coordinates before, at velocities ``v`` after.

        ``force`` (k, 3) is in world axes; its numbers in the pairs' axes are held.
        """
        return self._derivative(v, force, theta, False)

    def by_centres(self, v: FloatArray, force: FloatArray, theta: FloatArray) -> RowDerivatives:
        """Return the same by the centres of mass (k, ., 6) of carrier and host, in their frames."""
        return self._derivative(v, force, theta, True)

    @cached_property
    def by_velocity(self) -> FloatArray:
        """du_n/dv- (k, 12): where restitution acts, e times the normal row."""
        return np.asarray(self._bounce[:, None] * self.local[:, 2])

    @cached_property
    def _bounce(self) -> FloatArray:
        """E where restitution acts, else zero (k,)."""
        return np.where(self.near.impact, self.restitution, 0.0)

    @cached_property
    def centres(self) -> IntArray:
        """Indices (k, 6) in theta of the centres of mass of carrier and host; -1 for none."""
        carrier = np.where(self.pairs.rigid[:, None], self.pairs.centre, -1)
        return np.concatenate([carrier, np.where(self.pairs.hosted[:, None], self.pairs.host_centre, -1)], axis=1)


@final
@dataclass(frozen=True)
class RowDerivatives:
    """Derivatives by p numbers of each pair.

    Attributes
    ----------
    pushed : (k, 12, p) of the generalised forces
    rows : (k, 3, p) of u, in the pairs' axes
    """

    pushed: FloatArray
    rows: FloatArray


def _by_centres(pairs: ContactPairs, at: Touches) -> TouchDerivatives:
    """Return the derivatives by the centres of mass of carrier and host (k, ., 6), as by coordinates.

    The carrier's point moves by -R dX from its centre of mass; the shape by -R_b dX_b, and all else with it.
    """
    k = pairs.n
    ways = np.zeros((k, 3, 6))
    ways[:, :, :3] = np.where(pairs.rigid[:, None, None], -at.carrier.matrix, 0.0)
    apart = ways.copy()
    apart[:, :, 3:] = np.where(pairs.hosted[:, None, None], at.host.matrix, 0.0)
    normal = at.hessian @ apart
    lever = np.where(pairs.rigid, pairs.radius, 0.0)[:, None, None]
    carrier_arm = np.where(pairs.rigid[:, None, None], ways - lever * normal, 0.0)
    host_arm = np.where(pairs.hosted[:, None, None], ways - lever * normal, 0.0)
    velocity = cross_matrices(at.carrier.omega) @ carrier_arm - cross_matrices(at.host.omega) @ host_arm
    return TouchDerivatives(apart, normal, velocity, carrier_arm, host_arm, np.zeros((k, 12, 3)))


def _push_by_centres(pairs: ContactPairs, at: Touches, by: TouchDerivatives, force: FloatArray) -> FloatArray:
    """Return the derivative (k, 12, 6) of the generalised forces by the centres of mass."""
    out = np.zeros((pairs.n, 12, 6))
    for sign, side, arm, rows in (
        (1.0, at.carrier, by.carrier_arm, slice(3, 6)),
        (-1.0, at.host, by.host_arm, slice(9, 12)),
    ):
        out[:, rows] = -sign * side.turn.transpose(0, 2, 1) @ cross_matrices(force) @ arm
    return out
