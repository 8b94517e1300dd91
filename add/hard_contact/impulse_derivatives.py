"""How the contacts of a step in velocities change with the state before it and with theta, all modes held.

The step solves R = r - J^T F = 0 and the mode equations of u = J v - V + bias. These are the derivatives of J^T F and u
at fixed F (in the pairs' axes) and v, on the rows X that contact is written over; `step_changes` has those on q.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from add.equations.kinematics import StateTangent
from add.hard_contact.geometry import Touches
from add.hard_contact.impulse_rows import ImpulseRows, RowDerivatives
from add.typing import BoolArray, FloatArray, IntArray


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

    @cached_property
    def _present(self) -> BoolArray:
        return np.asarray(self.rows.dofs >= 0)

    @cached_property
    def _after(self) -> Touches:
        return self.rows.moving(self.velocity, self.theta)

    @cached_property
    def _world(self) -> FloatArray:
        return self.rows.world(self.force)

    @cached_property
    def _by_coordinates(self) -> RowDerivatives:
        return self.rows.by_coordinates(self._after, self._world, self.theta)

    @cached_property
    def _by_centres(self) -> RowDerivatives:
        return self.rows.by_centres(self._after, self._world, self.theta)

    @cached_property
    def _bounces(self) -> IntArray:
        """Index in theta of e where restitution acts, else -1."""
        return np.where(self.rows.near.bounces, self.restitution, -1)

    def pullback(
        self, adjoint: FloatArray, by_rows: FloatArray, bound: FloatArray, before: StateTangent, theta_bar: FloatArray
    ) -> None:
        """Add a^T d(J^T F) - c^T du, and the cotangents of the friction coefficients.

        Parameters
        ----------
        adjoint : (n,) a, by_rows : (3 k,) c, bound : (k,)
        before, theta_bar : what takes the cotangents of the state before the step and of theta
        """
        rows, c, present = self.rows, by_rows.reshape(-1, 3), self._present
        a = np.where(present, adjoint[rows.dofs], 0.0)

        def bar(derivative: RowDerivatives) -> FloatArray:
            share = np.einsum("km,kmp->kp", a, derivative.pushed)
            return np.asarray(share - np.einsum("ka,kap->kp", c, derivative.rows))

        np.add.at(before.q[0], rows.dofs[present], bar(self._by_coordinates)[present])
        np.add.at(before.v[0], rows.dofs[present], -(c[:, 2:] * rows.by_velocity())[present])
        centres = rows.centres
        if (centres >= 0).any():
            np.add.at(theta_bar, centres[centres >= 0], bar(self._by_centres)[centres >= 0])
        bounces, friction = self._bounces, rows.pairs.c_f
        np.add.at(theta_bar, bounces[bounces >= 0], -(c[:, 2] * rows.by_restitution())[bounces >= 0])
        np.add.at(theta_bar, friction[friction >= 0], bound[friction >= 0])

    def free_cotangent(self, by_rows: FloatArray) -> FloatArray:
        """Return -c^T du/dv_f (n,), the cotangent of the velocities without impacts."""
        rows, present, out = self.rows, self._present, np.zeros_like(self.velocity)
        np.add.at(out, rows.dofs[present], -(by_rows.reshape(-1, 3)[:, 2:] * rows.by_free())[present])
        return out

    def by_free(self, free_dot: FloatArray) -> FloatArray:
        """Return the tangents of u (3 k, .) along those of v_f (n, .)."""
        local = np.where(self._present[:, :, None], free_dot[self.rows.dofs], 0.0)
        out = np.zeros((self.rows.n, 3, free_dot.shape[1]))
        out[:, 2] = np.einsum("km,kmc->kc", self.rows.by_free(), local)
        return out.reshape(-1, free_dot.shape[1])

    def by_state(self, q_dot: FloatArray, v_dot: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the tangents of J^T F (n, k) and u (3 k, .) along those of the state before, (n, .) each."""
        rows, present = self.rows, self._present
        local = np.where(present[:, :, None], q_dot[rows.dofs], 0.0)
        pushed = np.zeros_like(q_dot)
        np.add.at(pushed, rows.dofs[present], (self._by_coordinates.pushed @ local)[present])
        moving = self._by_coordinates.rows @ local
        fast = np.where(present[:, :, None], v_dot[rows.dofs], 0.0)
        moving[:, 2] += np.einsum("km,kmc->kc", rows.by_velocity(), fast)
        return pushed, moving.reshape(-1, q_dot.shape[1])

    def along(self, theta_dot: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the tangents of J^T F (n,), u (3 k,) and the bounds (k,) along one of theta."""
        rows, centres, present = self.rows, self.rows.centres, self._present
        pushed = np.zeros_like(self.velocity)
        dot = np.where(centres >= 0, theta_dot[centres], 0.0)
        np.add.at(pushed, rows.dofs[present], np.einsum("kmp,kp->km", self._by_centres.pushed, dot)[present])
        u = np.einsum("kap,kp->ka", self._by_centres.rows, dot)
        bounces, friction = self._bounces, rows.pairs.c_f
        u[:, 2] += np.where(bounces >= 0, theta_dot[bounces] * rows.by_restitution(), 0.0)
        return pushed, u.ravel(), np.where(friction >= 0, theta_dot[friction], 0.0)
