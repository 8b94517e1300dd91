"""How the rows of a step in velocities change with the state before it and with theta, all modes held.

The step solves R = r - J^T F = 0 and the mode equations of u = J v - V + bias. `ContactDerivatives` are those of J^T F
and u at fixed F (in the pairs' axes) and v, on the rows X that contact is written over. In `StepChanges` they become
those by q_0, the velocities and theta (see `beginning`), and the stops of joints join them. With the forces f = J_X^T F
of the contacts on the rows of X,

    J^T F = P^T f,    u = J_X P v+ + ...
"""

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from add.equations.kinematics import Columns, Directions, StateTangent, ThetaMap, push
from add.hard_contact.geometry import LocalBlocks, gathered, scatter
from add.hard_contact.impulse_rows import ImpulseRows
from add.hard_contact.step_rows import StepRows
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class ContactDerivatives:
    """The contacts of a finished step, ready for both directions.

    Attributes
    ----------
    rows : ImpulseRows
    force : (3 k,) in the pairs' axes [N]
    velocity : (n,) after the step
    theta : (n_theta,)
    restitution : (k,) index in theta of e of the pairs; -1 is zero
    """

    rows: ImpulseRows
    force: FloatArray
    velocity: FloatArray
    theta: FloatArray
    restitution: IntArray

    def _derivatives(self, shift: bool) -> LocalBlocks:
        rows = self.rows
        after = rows.moving(self.velocity, self.theta)
        return rows.derivatives(after, rows.world(self.force), self.theta, shift)

    @cached_property
    def _by_coordinates(self) -> LocalBlocks:
        return self._derivatives(False)

    @cached_property
    def _by_centres(self) -> LocalBlocks:
        return self._derivatives(True)

    @cached_property
    def _bounces(self) -> bool:
        """Whether restitution acts: velocities before the step move u then alone."""
        return bool(self.rows.near.bounces.any())

    @property
    def _by_friction(self) -> LocalBlocks:
        """Of the bounds."""
        return LocalBlocks(self.rows.pairs.c_f[:, None], np.ones((self.rows.n, 1, 1)))

    def pullback(
        self, adjoint: FloatArray, by_rows: FloatArray, bound: FloatArray, before: StateTangent, theta_bar: FloatArray
    ) -> None:
        """Add a^T d(J^T F) - c^T du, and the cotangents of the friction coefficients.

        Parameters
        ----------
        adjoint : (n,) a, by_rows : (3 k,) c, bound : (k,)
        before, theta_bar : what takes the cotangents of the state before the step and of theta
        """
        rows, u_bar = self.rows, -by_rows.reshape(-1, 3)
        both = np.concatenate([gathered(adjoint, rows.built.dofs), u_bar], axis=1)
        self._by_coordinates.pull(both, before.q[0])
        if self._bounces:
            rows.by_velocity(free=False).pull(u_bar[:, 2:], before.v[0])
            rows.by_restitution(self.restitution).pull(u_bar[:, 2:], theta_bar)
        if (rows.pairs.centres >= 0).any():
            self._by_centres.pull(both, theta_bar)
        self._by_friction.pull(bound[:, None], theta_bar)

    def free_cotangent(self, by_rows: FloatArray) -> FloatArray:
        """Return -c^T du/dv_f (n,), the cotangent of the velocities without impacts."""
        out = np.zeros_like(self.velocity)
        if self._bounces:
            self.rows.by_velocity(free=True).pull(-by_rows.reshape(-1, 3)[:, 2:], out)
        return out

    def by_free(self, free_dot: FloatArray) -> FloatArray:
        """Return the tangents of u (3 k, .) along those of v_f (n, .)."""
        out = np.zeros((self.rows.n, 3, free_dot.shape[1]))
        if self._bounces:
            out[:, 2:] = self.rows.by_velocity(free=True).push(free_dot)
        return out.reshape(3 * self.rows.n, free_dot.shape[1])

    def by_state(self, q_dot: FloatArray, v_dot: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the tangents of J^T F (n, k) and u (3 k, .) along those of the state before, (n, .) each."""
        both = self._by_coordinates.push(q_dot)
        if self._bounces:
            both[:, -1:] += self.rows.by_velocity(free=False).push(v_dot)
        return self._parted(both)

    def along(self, theta_dot: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the tangents of J^T F (n,), u (3 k,) and the bounds (k,) along one of theta."""
        dot = theta_dot[:, None]
        both = self._by_centres.push(dot)
        if self._bounces:
            both[:, -1:] += self.rows.by_restitution(self.restitution).push(dot)
        pushed, u = self._parted(both)
        return pushed[:, 0], u[:, 0], self._by_friction.push(dot).ravel()

    def _parted(self, both: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return J^T F over all coordinates (n, .), and u (3 k, .)."""
        pushed = np.zeros((self.velocity.size, both.shape[2]))
        scatter(both[:, :-3], self.rows.built.dofs, pushed)
        return pushed, both[:, -3:].reshape(3 * self.rows.n, both.shape[2])


@final
@dataclass(frozen=True)
class StepChanges:
    """The rows of a finished step, ready for both directions.

    Attributes
    ----------
    rows : StepRows
    force : (n_rows,) of contacts in the pairs' axes, and of stops [N], [N m]
    velocity : (n,) after the step
    restitution : (k,) index in theta of e of the pairs; -1 is zero
    free : (n,), optional
        Velocity after the step without its impacts, if it has any.
    """

    rows: StepRows
    force: FloatArray
    velocity: FloatArray
    restitution: IntArray
    free: FloatArray | None = None

    @cached_property
    def _contacts(self) -> ContactDerivatives:
        rows, begin = self.rows, self.rows.beginning
        velocity = begin.push(self.velocity)
        return ContactDerivatives(rows.contacts, rows.of_contacts(self.force), velocity, begin.theta, self.restitution)

    @cached_property
    def _on_rows(self) -> FloatArray:
        """The forces f (n_x,) of the contacts on the rows of X."""
        return np.asarray(self.rows.over_rows.T @ self.rows.of_contacts(self.force))

    # --- cotangents ---------------------------------------------------------------------------------------------------

    def pullback(
        self, adjoint: FloatArray, by_rows: FloatArray, bound: FloatArray, before: StateTangent, theta_bar: FloatArray
    ) -> None:
        """Add a^T d(J^T F) - c^T du, and the cotangents of the friction coefficients.

        Parameters
        ----------
        adjoint : (n,) a, by_rows : (n_rows,) c, bound : one number a contact or stop
        before, theta_bar : what takes the cotangents of the state before the step and of theta
        """
        rows, begin = self.rows, self.rows.beginning
        c = rows.of_contacts(by_rows)
        bar = StateTangent.zeros(1, begin.n_rows)
        self._contacts.pullback(begin.push(adjoint), c, bound[: rows.contacts.n], bar, theta_bar)
        begin.add_state(bar, before, theta_bar)
        if not begin.same:
            begin.add_velocity(self.velocity, -(rows.over_rows.T @ c), before.q[0], theta_bar)
            begin.add_force(self._on_rows, adjoint, before.q[0], theta_bar)
        rows.stops.pullback(rows.of_stops(by_rows), before.q[0], theta_bar)

    def free_pullback(self, by_rows: FloatArray, before: StateTangent, theta_bar: FloatArray) -> FloatArray:
        """Return -c^T du by the velocities without impacts (n,); add what P has to do with it."""
        begin = self.rows.beginning
        bar = self._contacts.free_cotangent(self.rows.of_contacts(by_rows))
        if self.free is not None:
            begin.add_velocity(self.free, bar, before.q[0], theta_bar)
        return begin.pull(bar)

    # --- tangents -----------------------------------------------------------------------------------------------------

    def _with_stops(self, moving: FloatArray, of_stops: FloatArray) -> FloatArray:
        return np.concatenate([moving, of_stops]) if self.rows.stops.n else moving

    def by_free(self, free_dot: FloatArray) -> FloatArray:
        """Return the tangents of u (n_rows, .) along those of the velocities without impacts (n, .)."""
        moving = self._contacts.by_free(self.rows.beginning.push(free_dot))
        return self._with_stops(moving, np.zeros((self.rows.stops.n, free_dot.shape[1])))

    def by_state(self, q_dot: FloatArray, v_dot: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the tangents of J^T F (n, k) and u (n_rows, .) along those of the state before, (n, .) each."""
        rows, begin = self.rows, self.rows.beginning
        fast = begin.push(v_dot)
        if not begin.same:
            fast = fast + begin.turned(begin.kin.v, q_dot)
        pushed, moving = self._contacts.by_state(begin.push(q_dot), fast)
        pushed = begin.pull(pushed)
        if not begin.same:
            pushed += begin.bent(self._on_rows, q_dot)
            moving += rows.over_rows @ begin.turned(self.velocity, q_dot)
            if self.free is not None:
                moving += self._contacts.by_free(begin.turned(self.free, q_dot))
        return pushed, self._with_stops(moving, rows.stops.by_state(q_dot))

    def by_theta(self, directions: Directions) -> Columns:
        """Return the tangents of (J^T F, u, bounds), (n + n_rows + n_blocks, .), along directions of theta."""
        rows, n = self.rows, self.velocity.size
        first, last = n, n + rows.n_rows

        def jvp(theta_dot: FloatArray, out: FloatArray) -> None:
            pushed, u, bound = self._along(theta_dot)
            out[:first] += pushed
            out[first:last] += u
            out[last : last + bound.size] += bound

        def vjp(bar: FloatArray, out: FloatArray) -> None:
            nowhere = StateTangent.zeros(1, n)
            self.pullback(bar[:first], -bar[first:last], bar[last:], nowhere, out)
            if self.free is not None:
                self.free_pullback(-bar[first:last], nowhere, out)

        return push([ThetaMap(jvp, vjp)] if rows.n else [], last + rows.n, directions)

    def _along(self, theta_dot: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the tangents of J^T F (n,), u (n_rows,) and the bounds of the contacts (k,) along one of theta."""
        rows, begin = self.rows, self.rows.beginning
        pushed, u, bound = self._contacts.along(theta_dot)
        more = np.zeros_like(self.velocity)
        if begin.lift.has_parameters:
            place, rate = begin.moved(begin.kin.v, theta_dot)
            lifted, moving = self._contacts.by_state(place[:, None], rate[:, None])
            pushed = pushed + lifted[:, 0]
            u = u + moving[:, 0] + rows.over_rows @ begin.moved(self.velocity, theta_dot)[1]
            if self.free is not None:
                u = u + self._contacts.by_free(begin.moved(self.free, theta_dot)[1][:, None])[:, 0]
            begin.add_moved_force(self._on_rows, theta_dot, more)
        return begin.pull(pushed) + more, self._with_stops(u, rows.stops.by_theta(theta_dot)), bound
