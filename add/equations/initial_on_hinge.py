"""How a body starts on a hinge of another one: from the other's start, an angle and a rate."""

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.spatial.transform import Rotation

from add.equations.initial import Pose, turn_slope
from add.kernels.rotation import left_jacobian, rotation_matrix
from add.typing import FloatArray, IntArray


def _cross(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return a x b_k for one vector (3,) and columns (3, k), or the other way round."""
    if a.ndim < b.ndim:
        a = a[:, None]
    elif b.ndim < a.ndim:
        b = b[:, None]
    return np.cross(a, b, axis=0)


@final
@dataclass(frozen=True)
class HingedPose(Pose):
    """How a rigid body b starts that hangs on a hinge of another body a, or of the world.

        R_b = R_a exp(angle [e]x) R_0,   omega_b = omega_a + rate n,   n = R_a e,   R_0 = A^T B
        x_b = x_a + arm_a - arm_b,       v_b = v_a + omega_a x arm_a - omega_b x arm_b
        arm_a = R_a (P_a - C_a),         arm_b = R_b (P_b - C_b)

    Attributes
    ----------
    start : int
        First coordinate of b in q.
    n : int
        Number of coordinates of the system.
    parent : Pose, optional
        How a starts; None for the world.
    parent_start : int
        First coordinate of a.
    parent_centre : (3,) indices into theta of C_a, or None for the world
    reference_a : (3,) indices into theta of the rotation vector of A, or None for the world, A = I
    reference_b : (3,) indices into theta of the rotation vector of B
        Orientations of both bodies at angle zero: those that their scene gives them.
    places : (2, 3) indices into theta
        P_a and P_b, the hinge in both frames.
    axis : (3,) indices into theta
        e, a unit vector in a's frame.
    centre : (3,) indices into theta of C_b
    angle, rate : int
        Indices into theta [rad], [rad/s].
    """

    start: int
    n: int
    parent: Pose | None
    parent_start: int
    parent_centre: IntArray | None
    reference_a: IntArray | None
    reference_b: IntArray
    places: IntArray
    axis: IntArray
    centre: IntArray
    angle: int
    rate: int

    @property
    def coordinates(self) -> slice:
        """The body's coordinates."""
        return slice(self.start, self.start + 6)

    def evaluate(self, theta: FloatArray, q: FloatArray, v: FloatArray) -> None:
        """Fill the body's part of q0 and v0 (n,)."""
        hinged = _Found(self, theta)
        q[self.coordinates], v[self.coordinates] = hinged.q, hinged.v

    @property
    def _inputs(self) -> IntArray:
        """The entries of theta that are read beside a's start; -1 where the world has none."""
        none = np.full(3, -1)
        parent = none if self.parent_centre is None else self.parent_centre
        before = none if self.reference_a is None else self.reference_a
        of_b = self.places[1], self.centre, before, self.reference_b
        return np.concatenate([self.places[0], parent, self.axis, [self.angle, self.rate], *of_b])

    @property
    def numbers(self) -> IntArray:
        """Entries of a's start, then its own."""
        inputs = self._inputs[self._inputs >= 0]
        return inputs if self.parent is None else np.concatenate([self.parent.numbers, inputs])

    def derivatives(self, theta: FloatArray) -> FloatArray:
        """Return those of the body's part of q0 and v0 by `numbers` (2, 6, k)."""
        read = np.flatnonzero(self._inputs >= 0)
        along = np.zeros((12 + self._inputs.size, self.numbers.size))
        along[12 + read, self.numbers.size - read.size + np.arange(read.size)] = 1.0
        if self.parent is not None:
            first = self.parent_start - self.parent.coordinates.start
            of_parent = self.parent.derivatives(theta)[:, first : first + 6]
            along[:12, : of_parent.shape[2]] = of_parent.reshape(12, -1)
        return _Found(self, theta).along(along).reshape(2, 6, -1)


class _Found:
    """The start of a hinged body at one theta, with what its tangents need."""

    def __init__(self, pose: HingedPose, theta: FloatArray) -> None:
        q, v = np.zeros(pose.n), np.zeros(pose.n)
        if pose.parent is not None:
            pose.parent.evaluate(theta, q, v)
        first = pose.parent_start
        x_a, self.w_a, v_a, self.rate_a = (z[i : i + 3] for z in (q, v) for i in (first, first + 3))
        if pose.parent is None:
            x_a, self.w_a, v_a, self.rate_a = np.zeros((4, 3))
        self.R_a, self.J_a = rotation_matrix(self.w_a), left_jacobian(self.w_a)
        centre_a = np.zeros(3) if pose.parent_centre is None else theta[pose.parent_centre]
        self.omega_a = self.J_a @ self.rate_a
        axis, self.angle, self.rate = theta[pose.axis], float(theta[pose.angle]), float(theta[pose.rate])
        self.n = self.R_a @ axis
        self.J_angle = left_jacobian(self.angle * axis)
        self.axis = axis
        self.hinged = self.R_a @ rotation_matrix(self.angle * axis)
        self.reference_a = np.zeros(3) if pose.reference_a is None else theta[pose.reference_a]
        self.reference_b = theta[pose.reference_b]
        self.back = rotation_matrix(self.reference_a).T
        self.R_b = self.hinged @ self.back @ rotation_matrix(self.reference_b)
        w_b = Rotation.from_matrix(self.R_b).as_rotvec()
        self.w_b, self.J_b = w_b, left_jacobian(w_b)
        self.arm_a = self.R_a @ (theta[pose.places[0]] - centre_a)
        self.arm_b = self.R_b @ (theta[pose.places[1]] - theta[pose.centre])
        self.omega_b = self.omega_a + self.rate * self.n
        self.rate_b = np.linalg.solve(self.J_b, self.omega_b)
        self.q = np.concatenate([x_a + self.arm_a - self.arm_b, w_b])
        of_arms = np.cross(self.omega_a, self.arm_a) - np.cross(self.omega_b, self.arm_b)
        self.v = np.concatenate([v_a + of_arms, self.rate_b])

    def along(self, inputs: FloatArray) -> FloatArray:
        """Return the tangents (12, k) of q and v along (35, k): a's q and v, then `HingedPose._inputs`."""
        x_a, w_a, v_a, rate_a, place_a, centre_a, axis = (inputs[3 * i : 3 * i + 3] for i in range(7))
        angle, rate, place_b, centre_b = inputs[21], inputs[22], inputs[23:26], inputs[26:29]
        before, of_b = inputs[29:32], inputs[32:35]
        turn_a = self.J_a @ w_a
        omega_a = self.J_a @ rate_a + turn_slope(1.0, self.w_a, self.rate_a) @ w_a
        n = _cross(turn_a, self.n) + self.R_a @ axis
        change = self.axis[:, None] * angle + self.angle * axis
        # R_0 = A^T B turns by A^T (turn of B - turn of A) in a's frame.
        relative = left_jacobian(self.reference_b) @ of_b - left_jacobian(self.reference_a) @ before
        turn_b = turn_a + self.R_a @ self.J_angle @ change + self.hinged @ self.back @ relative
        arm_a = _cross(turn_a, self.arm_a) + self.R_a @ (place_a - centre_a)
        arm_b = _cross(turn_b, self.arm_b) + self.R_b @ (place_b - centre_b)
        omega_b = omega_a + self.n[:, None] * rate + self.rate * n
        w_b = np.linalg.solve(self.J_b, turn_b)
        rate_b = np.linalg.solve(self.J_b, omega_b - turn_slope(1.0, self.w_b, self.rate_b) @ w_b)
        of_a = _cross(omega_a, self.arm_a) + _cross(self.omega_a, arm_a)
        of_b = _cross(omega_b, self.arm_b) + _cross(self.omega_b, arm_b)
        return np.concatenate([x_a + arm_a - arm_b, w_b, v_a + of_a - of_b, rate_b])
