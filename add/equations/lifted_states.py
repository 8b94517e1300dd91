"""Many states of motion on the rows of X at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from add.equations.lift import Lift
from add.typing import FloatArray


@final
@dataclass(frozen=True)
class LiftedStates:
    """k states of motion on the rows of X, and the derivatives of the lift there.

    Attributes
    ----------
    lift : Lift
    q, u : (k, n)
        The states.
    theta : (n_theta,)
    x, v : (k, n_x)
        X and V.
    p : tuple of (k, m, n), dPhi/dq of each embedding
    """

    lift: Lift
    q: FloatArray
    u: FloatArray
    theta: FloatArray
    x: FloatArray
    v: FloatArray
    p: tuple[FloatArray, ...]

    @classmethod
    def at(cls, lift: Lift, q: FloatArray, v: FloatArray, theta: FloatArray) -> LiftedStates:
        """Return k states (k, n) lifted."""
        x, blocks = np.empty((2, q.shape[0], lift.rows.n)), []
        x[:, :, lift.same] = q[:, : lift.n_same], v[:, : lift.n_same]
        for e, own, rows, _ in lift.blocks:
            x[0][:, rows], block = e.place_over(q[:, own], theta)
            x[1][:, rows] = (block @ v[:, own, None])[:, :, 0]
            blocks.append(block)
        return cls(lift, q, v, theta, x[0], x[1], tuple(blocks))

    def push(self, q_dot: FloatArray, v_dot: FloatArray, theta_dot: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the tangents (k, c, n_x) of X and V, X_dot = P q_dot, V_dot = P v_dot + Q q_dot, and theta's share.

        Parameters
        ----------
        q_dot, v_dot : (k, c, n)
        theta_dot : (c, n_theta)
        """
        n = self.lift.n_same
        x_dot, rate_dot = np.empty((2, *q_dot.shape[:2], self.lift.rows.n))
        x_dot[:, :, self.lift.same], rate_dot[:, :, self.lift.same] = q_dot[:, :, :n], v_dot[:, :, :n]
        for (e, own, rows, _), p in zip(self.lift.blocks, self.p, strict=True):
            by_q, by_v, across = q_dot[:, :, own], v_dot[:, :, own], p.transpose(0, 2, 1)
            bent = e.rates_over(self.q[:, own], self.u[:, own], self.theta).transpose(0, 2, 1)
            place, rate = by_q @ across, by_v @ across + by_q @ bent
            along = theta_dot[:, e.parameters]
            if along.any():
                by_place, by_rate = e.by_parameters_over(self.q[:, own], self.u[:, own], self.theta)
                place, rate = place + along @ by_place.transpose(0, 2, 1), rate + along @ by_rate.transpose(0, 2, 1)
            x_dot[:, :, rows], rate_dot[:, :, rows] = place, rate
        return x_dot, rate_dot
