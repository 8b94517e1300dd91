"""The initial state as a function of theta, a body's pose and velocity field, and the motion of given coordinates."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import final

import numpy as np

from add.equations.assembly import Assembly
from add.equations.signals import Signal
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

    @property
    @abstractmethod
    def numbers(self) -> IntArray:
        """The entries (k,) of theta that it follows from."""

    @abstractmethod
    def derivatives(self, theta: FloatArray) -> FloatArray:
        """Return those of the body's part of q0 and v0 by `numbers` (2, n, k)."""

    @final
    def jvp(self, theta: FloatArray, theta_dot: FloatArray, q_dot: FloatArray, v_dot: FloatArray) -> None:
        """Fill the body's part of their tangents."""
        along, part = theta_dot[self.numbers], self.coordinates
        # Controls ask this once a step and row, and the start does not depend on them.
        q_dot[part], v_dot[part] = self.derivatives(theta) @ along if along.any() else (0.0, 0.0)

    @final
    def vjp(self, theta: FloatArray, q_bar: FloatArray, v_bar: FloatArray, out: FloatArray) -> None:
        """Add the cotangent of theta to ``out``."""
        bars = q_bar[self.coordinates], v_bar[self.coordinates]
        if bars[0].any() or bars[1].any():
            by_q, by_v = self.derivatives(theta)
            np.add.at(out, self.numbers, bars[0] @ by_q + bars[1] @ by_v)


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
    def numbers(self) -> IntArray:
        """Entries of the four vectors (12,)."""
        return np.concatenate([self.position, self.orientation, self.velocity, self.angular_velocity])

    def evaluate(self, theta: FloatArray, q: FloatArray, v: FloatArray) -> None:
        """Fill the body's part of q0 and v0 (n,)."""
        rotation = rotation_matrix(theta[self.orientation])
        arm = (self.rest - self.centre) @ rotation.T
        q[self.coordinates] = (theta[self.position] + self.rest @ rotation.T).ravel()
        v[self.coordinates] = (theta[self.velocity] + arm @ skew(theta[self.angular_velocity]).T).ravel()

    def derivatives(self, theta: FloatArray) -> FloatArray:
        """Return dx = turn x R X and dv = omega x (turn x R (X - X_c)) by turns J_l dw, and those by the others."""
        rotation, turn = rotation_matrix(theta[self.orientation]), left_jacobian(theta[self.orientation])
        out = np.zeros((2, len(self.rest), 3, 12))
        out[0, :, :, :3] = out[1, :, :, 6:9] = np.eye(3)
        out[0, :, :, 3:6] = -skews(self.rest @ rotation.T) @ turn
        out[1, :, :, 9:] = -skews((self.rest - self.centre) @ rotation.T)
        out[1, :, :, 3:6] = skew(theta[self.angular_velocity]) @ (out[1, :, :, 9:] @ turn)
        return out.reshape(2, -1, 12)


def skews(vectors: FloatArray) -> FloatArray:
    """Return [x]x (n, 3, 3) of vectors x (n, 3)."""
    out = np.zeros((len(vectors), 3, 3))
    for a in range(3):
        b, c = (a + 1) % 3, (a + 2) % 3
        out[:, b, c], out[:, c, b] = -vectors[:, a], vectors[:, a]
    return out


def turn_slope(sign: float, w: FloatArray, u: FloatArray) -> FloatArray:
    """Return d(J u)/dw (3, 3) at fixed u: J_l for sign 1, J_l^T for sign -1."""
    k, out = np.empty(6), np.empty((3, 3))
    jacobian_coefficients(float(w @ w), k)
    turn_derivative(sign, w, np.ascontiguousarray(u), k, out)
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

    @property
    def numbers(self) -> IntArray:
        """Entries of the four vectors (12,), then of the centre of mass."""
        centre = [] if self.centre is None else [self.centre]
        return np.concatenate([self.position, self.orientation, self.velocity, self.angular_velocity, *centre])

    def derivatives(self, theta: FloatArray) -> FloatArray:
        """Return dx = dp + turn x R X_c + R dX_c, dw, and dw_dot of J_l dw_dot = domega - D dw, D = d(J_l w_dot)/dw."""
        orientation, out = theta[self.orientation], np.zeros((2, 6, self.numbers.size))
        back = np.linalg.inv(left_jacobian(orientation))
        out[0, :, :6] = np.eye(6)
        out[1, :3, 6:9] = np.eye(3)
        out[1, 3:, 9:12] = back
        out[1, 3:, 3:6] = -back @ turn_slope(1.0, orientation, back @ theta[self.angular_velocity])
        if self.centre is not None:
            rotation = rotation_matrix(orientation)
            out[0, :3, 3:6] = -skew(rotation @ theta[self.centre]) @ left_jacobian(orientation)
            out[0, :3, 12:] = rotation
        return out


#: Coordinates and velocities, or their tangents or cotangents, (n,) both.
_Pair = tuple[FloatArray, FloatArray]


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

    def moved(self, theta: FloatArray, motion: "Motion") -> _Pair:
        """Return q0 and v0 before loops are closed, with prescribed coordinates where their motion is at t = 0."""
        q, v = self.given(theta)
        q[motion.prescribed], v[motion.prescribed] = motion.positions(0.0, theta), motion.velocities(0.0, theta)
        return q, v

    def given_jvp(self, theta: FloatArray, theta_dot: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the tangents of q0 and v0 before loops are closed."""
        q, v = np.zeros(self.n), np.zeros(self.n)
        for body in self.bodies:
            body.jvp(theta, theta_dot, q, v)
        return q, v

    def given_vjp(self, theta: FloatArray, q_bar: FloatArray, v_bar: FloatArray, out: FloatArray) -> None:
        """Add the cotangent of theta from those of q0 and v0 before loops are closed to ``out``."""
        for body in self.bodies:
            body.vjp(theta, q_bar, v_bar, out)

    def closed(self, theta: FloatArray, start: _Pair) -> _Pair:
        """Return q0 and v0 from those of `given` or `moved`."""
        if self.assembly is None:
            return start
        q, v, *_ = self.assembly.solve(theta, *start)
        return q.copy(), v.copy()

    def gap(self, theta: FloatArray, q: FloatArray) -> float:
        """Return by how much coordinates leave loops open; see `Assembly.gap`."""
        return 0.0 if self.assembly is None else self.assembly.gap(theta, q)

    def closed_jvp(self, theta: FloatArray, start: _Pair, theta_dot: FloatArray, tangents: _Pair) -> _Pair:
        """Return the tangents of `closed`."""
        return tangents if self.assembly is None else self.assembly.jvp(theta, start, theta_dot, tangents)

    def closed_vjp(self, theta: FloatArray, start: _Pair, cotangents: _Pair, out: FloatArray) -> _Pair:
        """Return the cotangents of what is given to `closed`; add that of theta to ``out``."""
        return cotangents if self.assembly is None else self.assembly.vjp(theta, start, cotangents, out)

    def evaluate(self, theta: FloatArray) -> _Pair:
        """Return q0 and v0 (n,), without what moves prescribed coordinates."""
        return self.closed(theta, self.given(theta))

    def jvp(self, theta: FloatArray, theta_dot: FloatArray) -> _Pair:
        """Return the tangents of q0 and v0."""
        return self.closed_jvp(theta, self.given(theta), theta_dot, self.given_jvp(theta, theta_dot))

    def vjp(self, theta: FloatArray, q_bar: FloatArray, v_bar: FloatArray, out: FloatArray) -> None:
        """Add the cotangent of theta to ``out``."""
        self.given_vjp(theta, *self.closed_vjp(theta, self.given(theta), (q_bar, v_bar), out), out)


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

    def acting(self, t: float, *, rates: bool) -> tuple[slice, FloatArray]:
        """Return which rows act at time ``t``, and their weights or the rates of these."""
        return (slice(None), self.signal.rates(t)) if rates else self.signal.acting(t)


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
        return self._moved(t, theta, self._held.evaluate(theta)[0] if start is None else start.copy())

    def _moved(self, t: float, theta: FloatArray, q: FloatArray, *, rates: bool = False) -> FloatArray:
        """Return the prescribed entries of ``q`` (n,) with all displacements, or their rates, added."""
        for move in self.moves:
            acting, weights = move.acting(t, rates=rates)
            q[move.dofs] += (weights @ theta[move.rows[acting]])[move.axes]
        return q[self.prescribed]

    def start(self, theta: FloatArray) -> FloatArray:
        """Return the prescribed coordinates (n_p,) without any displacement."""
        return self._held.evaluate(theta)[0][self.prescribed]

    def start_rows(self, theta: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the parameters (k,) that `start` depends on, and its derivative by them (n_p, k)."""
        rows = np.zeros((self.prescribed.size, theta.size))
        for pose in self._held.bodies:
            part = pose.coordinates
            of = np.flatnonzero((self.prescribed >= part.start) & (self.prescribed < part.stop))
            np.add.at(rows, (of[:, None], pose.numbers), pose.derivatives(theta)[0, self.prescribed[of] - part.start])
        index = np.flatnonzero(rows.any(axis=0))
        return index, np.ascontiguousarray(rows[:, index])

    def rows(self, t: float, theta: FloatArray, moved: BoolArray) -> tuple[IntArray, FloatArray]:
        """Return parameters (k,) that ``moved`` marks, and the derivatives of `positions` by them (n_p, k).

        Those that `positions` depends on, one more than once if several moves read it: its derivatives add.
        """
        index, values = [np.zeros(0, dtype=np.int64)], [np.zeros((self.prescribed.size, 0))]
        if any(moved[pose.numbers].any() for pose in self._held.bodies):
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
        return self._moved(t, theta, np.zeros(self.initial.n), rates=True)

    def jvp(self, t: float, theta: FloatArray, theta_dot: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the tangents of positions and velocities."""
        return self._moved(t, theta_dot, self._held.jvp(theta, theta_dot)[0]), self.velocities(t, theta_dot)

    def vjp(self, t: float, theta: FloatArray, q_bar: FloatArray, v_bar: FloatArray | None, out: FloatArray) -> None:
        """Add the cotangent of theta to ``out``; ``q_bar``, ``v_bar`` are (n_p,)."""
        if not self.prescribed.size:
            return
        full = np.zeros(self.initial.n)
        full[self.prescribed] = q_bar
        self._held.vjp(theta, full, np.zeros(self.initial.n), out)
        for bar, rates in ((q_bar, False), (v_bar, True)):
            full[self.prescribed] = 0.0 if bar is None else bar
            for move in self.moves if bar is not None else ():
                by_axis = np.bincount(move.axes, full[move.dofs], move.rows.shape[1])
                acting, weights = move.acting(t, rates=rates)
                out[move.rows[acting]] += np.outer(weights, by_axis)
