"""The beginning of a step in velocities on the rows of X, where contact is written down.

Bodies with coordinates of their own have rows X = Phi(q) (see `add.equations.lift`). Contact sees the places X at the
beginning q_0 and the velocities V = P u there, u before, after or without the contacts of the step; its forces act on
the coordinates by P^T f. P is that of the beginning, so that contact does no work that it should not. With
Q(u) = d(P u)/dq and H(f) = sum_i f_i d2Phi_i/dq2,

    dX = P dq_0,    dV = P du + Q(u) dq_0,    d(P^T f) = P^T df + H(f) dq_0

and dX, dV, d(P^T f) by theta where Phi depends on it. For all other bodies X is q, P one, and Q and H zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from add.equations.kinematics import Kinematics, StateTangent
from add.equations.lift import Lift, LiftedState
from add.typing import FloatArray


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
    def of(cls, lift: Lift, kin: Kinematics, theta: FloatArray) -> Beginning:
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
