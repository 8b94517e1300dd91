"""The initial state as a function of theta, a body's pose and velocity field, and the motion of given coordinates."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import final

import numpy as np

from add.equations.assembly import Assembly
from add.equations.kinematics import generic
from add.equations.signals import Signal
from add.kernels.initial_pose import nodes_pose_vjp
from add.kernels.rotation import jacobian_coefficients, left_jacobian, rotation_matrix, skew, turn_derivative
from add.typing import BoolArray, FloatArray, IntArray


class Pose(ABC):
    """How one body starts, as a function of theta."""

    @property
    @abstractmethod
    def coordinates(self) -> slice:
        """The body's coordinates."""

    @abstractmethod
    def evaluate(self, theta: FloatArray, q: FloatArray, v: FloatArray) -> None:
        """Fill the body's part of q0 and v0 (n,)."""

    @abstractmethod
    def jvp(self, theta: FloatArray, theta_dot: FloatArray, q_dot: FloatArray, v_dot: FloatArray) -> None:
        """Fill the body's part of their tangents."""

    @abstractmethod
    def vjp(self, theta: FloatArray, q_bar: FloatArray, v_bar: FloatArray, out: FloatArray) -> None:
        """Add the cotangent of theta to ``out``."""


@final
@dataclass(frozen=True)
class BodyPose(Pose):
    """How a body of nodes starts: x = p + R X, v = velocity + omega x R (X - X_c).

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
    def coordinates(self) -> slice:
        """The body's coordinates."""
        return slice(self.start, self.start + self.rest.size)

    @property
    def _indices(self) -> tuple[IntArray, ...]:
        return self.position, self.orientation, self.velocity, self.angular_velocity

    def evaluate(self, theta: FloatArray, q: FloatArray, v: FloatArray) -> None:
        """Fill the body's part of q0 and v0 (n,)."""
        rotation = rotation_matrix(theta[self.orientation])
        arm = (self.rest - self.centre) @ rotation.T
        q[self.coordinates] = (theta[self.position] + self.rest @ rotation.T).ravel()
        v[self.coordinates] = (theta[self.velocity] + arm @ skew(theta[self.angular_velocity]).T).ravel()

    def jvp(self, theta: FloatArray, theta_dot: FloatArray, q_dot: FloatArray, v_dot: FloatArray) -> None:
        """Fill the body's part of the tangents."""
        if not any(theta_dot[index].any() for index in self._indices):
            # Controls ask this once a step and row, and the initial pose does not depend on them.
            q_dot[self.coordinates] = 0.0
            v_dot[self.coordinates] = 0.0
            return
        rotation = rotation_matrix(theta[self.orientation])
        turn = left_jacobian(theta[self.orientation]) @ theta_dot[self.orientation]
        omega = theta[self.angular_velocity]
        point = self.rest @ rotation.T
        arm = (self.rest - self.centre) @ rotation.T
        q_dot[self.coordinates] = (theta_dot[self.position] + np.cross(turn, point)).ravel()
        v_dot[self.coordinates] = (
            theta_dot[self.velocity]
            + np.cross(theta_dot[self.angular_velocity], arm)
            + np.cross(omega, np.cross(turn, arm))
        ).ravel()

    def vjp(self, theta: FloatArray, q_bar: FloatArray, v_bar: FloatArray, out: FloatArray) -> None:
        """Add the cotangent of theta to ``out``."""
        nodes_pose_vjp(self.rest, self.centre, self.start, theta, *self._indices, q_bar, v_bar, out)


def derivative(w: FloatArray, u: FloatArray) -> FloatArray:
    """Return d(J_l u)/dw (3, 3)."""
    k, out = np.empty(6), np.empty((3, 3))
    jacobian_coefficients(float(w @ w), k)
    turn_derivative(1.0, w, u, k, out)
    return out


@final
@dataclass(frozen=True)
class RigidPose(Pose):
    """How a rigid body starts: x = p + R X_c, w = orientation, v = velocity, w_dot = J_l^-1 omega.

    Attributes
    ----------
    start : int
        First coordinate of the body in q.
    centre : (3,) indices into theta of the centre of mass in the body's frame, or None for the frame's origin
    position, orientation, velocity, angular_velocity : (3,) indices into theta
    """

    start: int
    centre: IntArray | None
    position: IntArray
    orientation: IntArray
    velocity: IntArray
    angular_velocity: IntArray

    @property
    def coordinates(self) -> slice:
        """The body's coordinates."""
        return slice(self.start, self.start + 6)

    @property
    def _parts(self) -> tuple[slice, slice]:
        return slice(self.start, self.start + 3), slice(self.start + 3, self.start + 6)

    def evaluate(self, theta: FloatArray, q: FloatArray, v: FloatArray) -> None:
        """Fill the body's part of q0 and v0 (n,)."""
        x, w = self._parts
        orientation = theta[self.orientation]
        q[x], q[w] = theta[self.position], orientation
        if self.centre is not None:
            q[x] += rotation_matrix(orientation) @ theta[self.centre]
        v[x] = theta[self.velocity]
        v[w] = np.linalg.solve(left_jacobian(orientation), theta[self.angular_velocity])

    def jvp(self, theta: FloatArray, theta_dot: FloatArray, q_dot: FloatArray, v_dot: FloatArray) -> None:
        """Fill the body's part of the tangents: J_l w_ddot + D w_dot' = omega_dot with D = d(J_l w_dot)/dw."""
        x, w = self._parts
        orientation, change = theta[self.orientation], theta_dot[self.orientation]
        jacobian = left_jacobian(orientation)
        q_dot[x], q_dot[w] = theta_dot[self.position], change
        if self.centre is not None:
            rotation = rotation_matrix(orientation)
            q_dot[x] += rotation @ theta_dot[self.centre]
            q_dot[x] += np.cross(jacobian @ change, rotation @ theta[self.centre])
        v_dot[x] = theta_dot[self.velocity]
        rate = np.linalg.solve(jacobian, theta[self.angular_velocity])
        v_dot[w] = np.linalg.solve(jacobian, theta_dot[self.angular_velocity] - derivative(orientation, rate) @ change)

    def vjp(self, theta: FloatArray, q_bar: FloatArray, v_bar: FloatArray, out: FloatArray) -> None:
        """Add the cotangent of theta to ``out``."""
        x, w = self._parts
        orientation = theta[self.orientation]
        jacobian = left_jacobian(orientation)
        out[self.position] += q_bar[x]
        out[self.orientation] += q_bar[w]
        out[self.velocity] += v_bar[x]
        if self.centre is not None:
            rotation = rotation_matrix(orientation)
            out[self.centre] += rotation.T @ q_bar[x]
            out[self.orientation] += jacobian.T @ np.cross(rotation @ theta[self.centre], q_bar[x])
        rate = np.linalg.solve(jacobian, theta[self.angular_velocity])
        omega_bar = np.linalg.solve(jacobian.T, v_bar[w])
        out[self.angular_velocity] += omega_bar
        out[self.orientation] -= derivative(orientation, rate).T @ omega_bar


@final
@dataclass(frozen=True)
class InitialState:
    """Positions and velocities of all bodies at the start.

    Attributes
    ----------
    n : number of coordinates
    bodies : tuple of Pose
    assembly : what moves the bodies' poses until loops are closed; None: nothing
    """

    n: int
    bodies: tuple[Pose, ...]
    assembly: Assembly | None = None

    def given(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return q0 and v0 (n,) before loops are closed."""
        q, v = np.zeros(self.n), np.zeros(self.n)
        for body in self.bodies:
            body.evaluate(theta, q, v)
        return q, v

    def evaluate(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return q0 and v0 (n,)."""
        q, v = self.given(theta)
        if self.assembly is not None:
            q, v = (part.copy() for part in self.assembly.solve(theta, q, v)[:2])
        return q, v

    def jvp(self, theta: FloatArray, theta_dot: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the tangents of q0 and v0."""
        q, v = np.zeros(self.n), np.zeros(self.n)
        for body in self.bodies:
            body.jvp(theta, theta_dot, q, v)
        return (q, v) if self.assembly is None else self.assembly.jvp(theta, self.given(theta), theta_dot, (q, v))

    def vjp(self, theta: FloatArray, q_bar: FloatArray, v_bar: FloatArray, out: FloatArray) -> None:
        """Add the cotangent of theta to ``out``."""
        if self.assembly is not None:
            q_bar, v_bar = self.assembly.vjp(theta, self.given(theta), (q_bar, v_bar), out)
        for body in self.bodies:
            body.vjp(theta, q_bar, v_bar, out)


# --- Prescribed coordinates: pinned nodes, which stay where the body starts, plus a given displacement over time ------


@final
@dataclass(frozen=True)
class PinMotion:
    """A displacement shared by several prescribed coordinates.

    Attributes
    ----------
    dofs : (k,) coordinates
    axes : (k,) column of the signal for each: its axis
    signal : Signal
    rows : (n_rows, 3) indices of the signal's coefficients in theta [m]; (n_rows, 1) for a joint [m, rad]
    """

    dofs: IntArray
    axes: IntArray
    signal: Signal
    rows: IntArray


@final
@dataclass(frozen=True)
class Motion:
    """All prescribed coordinates over time: q_p(t) = q0_p(theta) + sum of signals."""

    initial: InitialState
    prescribed: IntArray
    moves: tuple[PinMotion, ...] = ()
    _held: InitialState = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # Of the initial poses only those count that prescribed coordinates belong to.
        poses = [pose for pose in self.initial.bodies if np.isin(np.r_[pose.coordinates], self.prescribed).any()]
        object.__setattr__(self, "_held", InitialState(self.initial.n, tuple(poses)))

    def positions(self, t: float, theta: FloatArray, start: FloatArray | None = None) -> FloatArray:
        """Return the prescribed coordinates (n_p,) at time ``t``, in the order of ``prescribed``.

        ``start`` are the initial coordinates of all bodies (n,), for callers that know them.
        """
        if not self.prescribed.size:
            return np.zeros(0)
        q = self._held.evaluate(theta)[0] if start is None else start.copy()
        for move in self.moves:
            acting, weights = move.signal.acting(t)
            q[move.dofs] += (weights @ theta[move.rows[acting]])[move.axes]
        return q[self.prescribed]

    def start(self, theta: FloatArray) -> FloatArray:
        """Return the prescribed coordinates (n_p,) without any displacement."""
        return self._held.evaluate(theta)[0][self.prescribed]

    def start_rows(self, theta: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the parameters (k,) that `start` depends on, and its derivative by them (n_p, k)."""
        rows = np.zeros((self.prescribed.size, theta.size))
        for row, coordinate in zip(rows, self.prescribed, strict=True):
            unit = np.zeros(self.initial.n)
            unit[coordinate] = 1.0
            self._held.vjp(theta, unit, np.zeros(self.initial.n), row)
        index = np.flatnonzero(rows.any(axis=0))
        return index, np.ascontiguousarray(rows[:, index])

    def rows(self, t: float, theta: FloatArray, moved: BoolArray) -> tuple[IntArray, FloatArray]:
        """Return parameters (k,) that ``moved`` marks, and the derivatives of `positions` by them (n_p, k).

        Those that `positions` depends on, one more than once if several moves read it: its derivatives add.
        """
        found = np.zeros_like(theta)
        self._held.vjp(theta, generic(self.initial.n), np.zeros(self.initial.n), found)
        index, values = [np.zeros(0, dtype=np.int64)], [np.zeros((self.prescribed.size, 0))]
        if moved[found != 0.0].any():
            first, start = self.start_rows(theta)
            index, values = [first[moved[first]]], [start[:, moved[first]]]
        for move in self.moves:
            acting, weights = move.signal.acting(t)
            entries = move.rows[acting]
            share = np.zeros((self.initial.n, *entries.shape))
            share[move.dofs, :, move.axes] = weights
            kept = moved[entries]
            index.append(entries[kept])
            values.append(share[self.prescribed][:, kept])
        return np.concatenate(index), np.concatenate(values, axis=1)

    def velocities(self, t: float, theta: FloatArray) -> FloatArray:
        """Return their time derivatives (n_p,)."""
        v = np.zeros(self.initial.n)
        for move in self.moves:
            v[move.dofs] += (move.signal.rates(t) @ theta[move.rows])[move.axes]
        return v[self.prescribed]

    def jvp(self, t: float, theta: FloatArray, theta_dot: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the tangents of positions and velocities."""
        q, _ = self._held.jvp(theta, theta_dot)
        v = np.zeros(self.initial.n)
        for move in self.moves:
            q[move.dofs] += (move.signal.weights(t) @ theta_dot[move.rows])[move.axes]
            v[move.dofs] += (move.signal.rates(t) @ theta_dot[move.rows])[move.axes]
        return q[self.prescribed], v[self.prescribed]

    def vjp(self, t: float, theta: FloatArray, q_bar: FloatArray, v_bar: FloatArray | None, out: FloatArray) -> None:
        """Add the cotangent of theta to ``out``; ``q_bar``, ``v_bar`` are (n_p,)."""
        if not self.prescribed.size:
            return
        full = np.zeros(self.initial.n)
        full[self.prescribed] = q_bar
        self._held.vjp(theta, full, np.zeros(self.initial.n), out)
        rate = np.zeros(self.initial.n)
        if v_bar is not None:
            rate[self.prescribed] = v_bar
        for move in self.moves:
            by_axis = np.bincount(move.axes, full[move.dofs], move.rows.shape[1])
            acting, weights = move.signal.acting(t)
            out[move.rows[acting]] += np.outer(weights, by_axis)
            if v_bar is not None:
                by_axis = np.bincount(move.axes, rate[move.dofs], move.rows.shape[1])
                out[move.rows] += np.outer(move.signal.rates(t), by_axis)
