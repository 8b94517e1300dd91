"""The rows of a step in velocities: of the stops of joints, and of all together.

A coordinate q with the limits l <= q <= h has the gaps q - l and h - q, and, as a contact without friction and without
restitution (see `impulse_rows`), 0 <= F _|_ sign v+ + b(g_0) >= 0.

The beginning of a step in velocities on the rows of X, where contact is written down.

Bodies with coordinates of their own have rows X = Phi(q) (see `add.equations.lift`). Contact sees the places X at the
beginning q_0 and the velocities V = P u there, u before, after or without the contacts of the step; its forces act on
the coordinates by P^T f. P is that of the beginning, so that contact does no work that it should not. With
Q(u) = d(P u)/dq and H(f) = sum_i f_i d2Phi_i/dq2,

    dX = P dq_0,    dV = P du + Q(u) dq_0,    d(P^T f) = P^T df + H(f) dq_0

and dX, dV, d(P^T f) by theta where Phi depends on it. For all other bodies X is q, P one, and Q and H zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np

from add.cones import Cones
from add.equations.kinematics import Kinematics, StateTangent
from add.equations.lift import Lift, LiftedState
from add.hard_contact.impulse_rows import ImpulseRows
from add.hard_contact.law import ImpulseOptions
from add.terms import JointLimits
from add.typing import FloatArray, IntArray

# --- The beginning of a step in velocities on the rows of X, where contact is written down ----------------------------


@final
@dataclass(frozen=True)
class Beginning:
    """The state that a step begins with.

    Attributes
    ----------
    lift : Lift
    kin : Kinematics
        Of q.
    theta : (n_theta,)
    at : LiftedState
        On the rows of X.
    """

    lift: Lift
    kin: Kinematics
    theta: FloatArray
    at: LiftedState

    @classmethod
    def of(cls, lift: Lift, kin: Kinematics, theta: FloatArray) -> "Beginning":
        """Lift a state."""
        same = lift.is_identity
        at = LiftedState(kin, np.ones(1), np.zeros(1)) if same else lift.at(kin, theta, rates=False)
        return cls(lift, kin, theta, at)

    @property
    def same(self) -> bool:
        """Whether X is q."""
        return self.lift.is_identity

    @property
    def rows(self) -> Kinematics:
        """The state on the rows of X."""
        return self.at.kin

    @property
    def n_rows(self) -> int:
        """Number of rows of X."""
        return self.lift.rows.n

    def push(self, u: FloatArray) -> FloatArray:
        """Return P u (n_x, ...)."""
        return u if self.same else self.lift.push(self.at, u)

    def pull(self, force: FloatArray) -> FloatArray:
        """Return P^T f (n_q, ...)."""
        if self.same:
            return force
        out = np.zeros((self.lift.dofs.n, *force.shape[1:]))
        self.lift.pull(self.at, force, out)
        return out

    def _turning(self, u: FloatArray) -> FloatArray:
        """Return the entries of Q(u)."""
        return self.lift.at(replace(self.kin, v=u), self.theta).q

    # --- tangents -----------------------------------------------------------------------------------------------------

    def turned(self, u: FloatArray, q_dot: FloatArray) -> FloatArray:
        """Return Q(u) q_dot (n_x, ...)."""
        return np.zeros_like(q_dot) if self.same else self.lift.push(self.at, q_dot, self._turning(u))

    def bent(self, force: FloatArray, q_dot: FloatArray) -> FloatArray:
        """Return H(f) q_dot (n_q, ...)."""
        out = np.zeros_like(q_dot)
        if not self.same:
            self.lift.bend(self.kin, self.theta, force, q_dot, out)
        return out

    def moved(self, u: FloatArray, theta_dot: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return dX and d(P u) (n_x,) along theta_dot."""
        return self.lift.parameter_jvp(self.kin, self.theta, u, theta_dot)

    def add_moved_force(self, force: FloatArray, theta_dot: FloatArray, out: FloatArray) -> None:
        """Add d(P^T f) at fixed f along theta_dot to ``out`` (n_q,)."""
        self.lift.pull_parameter_jvp(self.kin, self.theta, theta_dot, force, out)

    # --- cotangents ---------------------------------------------------------------------------------------------------

    def add_state(self, bar: StateTangent, before: StateTangent, theta_bar: FloatArray) -> None:
        """Add the cotangents of q_0, v_0 and theta from those of X and of V before the step, (1, n_x) each."""
        before.q[0] += self.pull(bar.q[0])
        before.v[0] += self.pull(bar.v[0])
        if self.lift.has_parameters:
            nothing = np.zeros(self.n_rows)
            self.lift.parameter_vjp(self.kin, self.theta, self.kin.v, bar.q[0], nothing, theta_bar)
        self.add_velocity(self.kin.v, bar.v[0], before.q[0], theta_bar)

    def add_velocity(self, u: FloatArray, bar: FloatArray, q_bar: FloatArray, theta_bar: FloatArray) -> None:
        """Add the cotangents of q_0 and theta from that of P u (n_x,), u held."""
        if self.same:
            return
        self.lift.pull(self.at, bar, q_bar, self._turning(u))
        if self.lift.has_parameters:
            self.lift.parameter_vjp(self.kin, self.theta, u, np.zeros(self.n_rows), bar, theta_bar)

    def add_force(self, force: FloatArray, along: FloatArray, q_bar: FloatArray, theta_bar: FloatArray) -> None:
        """Add the cotangents of q_0 and theta from that of P^T f (n_q,), f (n_x,) held."""
        if self.same:
            return
        self.lift.bend(self.kin, self.theta, force, along, q_bar)
        if self.lift.has_parameters:
            self.lift.parameter_vjp(self.kin, self.theta, along, np.zeros(self.n_rows), force, theta_bar)


# ----------------------------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class JointStops:
    """Both sides of every limited coordinate.

    Attributes
    ----------
    dof : (s,) coordinates
    limit : (s,) indices in theta
    sign : (s,) 1 of a lower limit, -1 of an upper one
    """

    dof: IntArray
    limit: IntArray
    sign: FloatArray

    @classmethod
    def of(cls, terms: Sequence[JointLimits]) -> "JointStops":
        """Return the sides of limits that were built as penalties."""
        none = np.zeros(0, dtype=np.int64)
        dof = np.concatenate([none, *(term.dof for term in terms for _ in range(2))])
        limit = np.concatenate([none, *(side for term in terms for side in (term.lower, term.upper))])
        sign = np.concatenate([np.zeros(0), *(np.full(term.dof.size, side) for term in terms for side in (1.0, -1.0))])
        return cls(dof, limit, sign)

    @property
    def n(self) -> int:
        """Number of sides."""
        return self.dof.size

    def select(self, numbers: IntArray) -> "JointStops":
        """Return some of the sides."""
        return JointStops(self.dof[numbers], self.limit[numbers], self.sign[numbers])

    def gaps(self, q: FloatArray, theta: FloatArray) -> FloatArray:
        """Return how far (s,) each coordinate may still go [m, rad]."""
        return np.asarray(self.sign * (q[self.dof] - theta[self.limit]))


@final
@dataclass(frozen=True)
class NearStops:
    """The stops of a step, and what was decided about them from the state before.

    Attributes
    ----------
    number : (m,) among all sides
    slope : (m,) db/dg [1/s]: 1/dt, kappa/dt, or zero where stabilisation is at its limit
    """

    number: IntArray
    slope: FloatArray


@final
@dataclass(frozen=True)
class StopRows:
    """Rows of the near stops.

    Attributes
    ----------
    stops : JointStops of the near sides alone
    near : NearStops
    gap : (m,) at the beginning of the step [m, rad]
    speed : float
        The most that stabilisation gives [m/s, rad/s].
    """

    stops: JointStops
    near: NearStops
    gap: FloatArray
    speed: float

    @classmethod
    def of(
        cls, stops: JointStops, near: NearStops, q: FloatArray, theta: FloatArray, options: ImpulseOptions
    ) -> "StopRows":
        """Evaluate the stops that are near at the beginning of a step."""
        chosen = stops.select(near.number)
        speed = options.stabilisation_speed if options.stabilisation > 0.0 else 0.0
        return cls(chosen, near, chosen.gaps(q, theta), speed)

    @property
    def n(self) -> int:
        """Number of rows m."""
        return self.near.number.size

    def matrix(self, n: int) -> FloatArray:
        """Return the rows (m, n)."""
        out = np.zeros((self.n, n))
        out[np.arange(self.n), self.stops.dof] = self.stops.sign
        return out

    @cached_property
    def shift(self) -> FloatArray:
        """B (m,) [m/s, rad/s]."""
        limited = (self.near.slope == 0.0) & (self.gap < 0.0)
        return np.where(limited, -self.speed, self.near.slope * self.gap)

    @property
    def _by_coordinate(self) -> FloatArray:
        return np.asarray(self.near.slope * self.stops.sign)

    def pullback(self, by_rows: FloatArray, q_bar: FloatArray, theta_bar: FloatArray) -> None:
        """Add -c^T du by the coordinates before the step and by the limits."""
        share = by_rows * self._by_coordinate
        np.add.at(q_bar, self.stops.dof, -share)
        np.add.at(theta_bar, self.stops.limit, share)

    def by_state(self, q_dot: FloatArray) -> FloatArray:
        """Return the tangents of u (m, .) along those of the coordinates before the step."""
        return np.asarray(self._by_coordinate[:, None] * q_dot[self.stops.dof])

    def by_theta(self, theta_dot: FloatArray) -> FloatArray:
        """Return the tangent of u (m,) along one of theta."""
        return np.asarray(-self._by_coordinate * theta_dot[self.stops.limit])


@final
@dataclass(frozen=True)
class StepRows:
    """The rows J of a step, u = J v+ + shift; each contact has three of them, each stop one.

    Attributes
    ----------
    beginning : Beginning
    contacts : ImpulseRows
        Over the rows of X.
    stops : StopRows
        Over the coordinates.
    """

    beginning: Beginning
    contacts: ImpulseRows
    stops: StopRows

    @property
    def n(self) -> int:
        """Number of contacts and stops."""
        return self.contacts.n + self.stops.n

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return 3 * self.contacts.n + self.stops.n

    @cached_property
    def over_rows(self) -> FloatArray:
        """Rows (3 k, n_x) of the contacts over X."""
        return self.contacts.built.matrix

    @cached_property
    def matrix(self) -> FloatArray:
        """J (n_rows, n)."""
        if self.beginning.same and not self.stops.n:
            return self.over_rows
        of_contacts = np.ascontiguousarray(self.beginning.pull(self.over_rows.T).T)
        return np.concatenate([of_contacts, self.stops.matrix(of_contacts.shape[1])]) if self.stops.n else of_contacts

    @cached_property
    def shift(self) -> FloatArray:
        """U without any velocity (n_rows,)."""
        return np.concatenate([self.contacts.shift, self.stops.shift]) if self.stops.n else self.contacts.shift

    def cones(self, pyramids: bool) -> Cones:
        """Return the conditions on the forces of all rows."""
        friction = self.contacts.friction(self.beginning.theta)
        of_contacts = (Cones.pyramids if pyramids else Cones.friction)(friction)
        return of_contacts + Cones.half_lines(self.stops.n) if self.stops.n else of_contacts

    def of_contacts(self, values: FloatArray) -> FloatArray:
        """Return the part of values (n_rows, ...) that belongs to contacts."""
        return values[: 3 * self.contacts.n]

    def of_stops(self, values: FloatArray) -> FloatArray:
        """Return the part of values (n_rows, ...) that belongs to stops."""
        return values[3 * self.contacts.n :]
