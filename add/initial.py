"""The initial state as a function of theta: a body's pose and initial velocity field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from add.kernels.rotation import left_jacobian, rotation_matrix
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class BodyPose:
    """How one soft body starts: x = p + R X, v = velocity + omega x R (X - X_c).

    Attributes
    ----------
    start : int
        First coordinate of the body in q.
    rest : (n, 3)
        Rest positions X [m].
    centre : (3,)
        Centre of mass X_c of the rest shape [m].
    position, orientation, velocity, angular_velocity : (3,) indices into theta
        Orientation is a rotation vector [rad], R = exp([orientation]x).
    """

    start: int
    rest: FloatArray
    centre: FloatArray
    position: IntArray
    orientation: IntArray
    velocity: IntArray
    angular_velocity: IntArray

    @property
    def slice(self) -> slice:
        """The body's coordinates."""
        return slice(self.start, self.start + self.rest.size)


@final
@dataclass(frozen=True)
class InitialState:
    """Positions and velocities of all bodies at the start."""

    n: int
    bodies: tuple[BodyPose, ...]

    def evaluate(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return q0 and v0 (n,)."""
        q, v = np.zeros(self.n), np.zeros(self.n)
        for body in self.bodies:
            rotation = rotation_matrix(theta[body.orientation])
            arm = (body.rest - body.centre) @ rotation.T
            q[body.slice] = (theta[body.position] + body.rest @ rotation.T).ravel()
            v[body.slice] = (theta[body.velocity] + np.cross(theta[body.angular_velocity], arm)).ravel()
        return q, v

    def jvp(self, theta: FloatArray, theta_dot: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the tangents of q0 and v0."""
        q, v = np.zeros(self.n), np.zeros(self.n)
        for body in self.bodies:
            rotation = rotation_matrix(theta[body.orientation])
            turn = left_jacobian(theta[body.orientation]) @ theta_dot[body.orientation]
            omega = theta[body.angular_velocity]
            point = body.rest @ rotation.T
            arm = (body.rest - body.centre) @ rotation.T
            q[body.slice] = (theta_dot[body.position] + np.cross(turn, point)).ravel()
            v[body.slice] = (
                theta_dot[body.velocity]
                + np.cross(theta_dot[body.angular_velocity], arm)
                + np.cross(omega, np.cross(turn, arm))
            ).ravel()
        return q, v

    def vjp(self, theta: FloatArray, q_bar: FloatArray, v_bar: FloatArray, out: FloatArray) -> None:
        """Add the cotangent of theta to ``out``."""
        for body in self.bodies:
            rotation = rotation_matrix(theta[body.orientation])
            omega = theta[body.angular_velocity]
            point = body.rest @ rotation.T
            arm = (body.rest - body.centre) @ rotation.T
            qb, vb = q_bar[body.slice].reshape(-1, 3), v_bar[body.slice].reshape(-1, 3)
            out[body.position] += qb.sum(axis=0)
            out[body.velocity] += vb.sum(axis=0)
            out[body.angular_velocity] += np.cross(arm, vb).sum(axis=0)
            # omega x (turn x arm) . vb = turn . (arm x (vb x omega))
            turn_bar = np.cross(point, qb).sum(axis=0) + np.cross(arm, np.cross(vb, omega)).sum(axis=0)
            out[body.orientation] += left_jacobian(theta[body.orientation]).T @ turn_bar
