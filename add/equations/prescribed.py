"""Prescribed coordinates: pinned nodes, which stay where the body starts, plus a given displacement over time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import numpy as np

from add.equations.initial import InitialState
from add.equations.kinematics import generic
from add.equations.signals import Signal
from add.typing import BoolArray, FloatArray, IntArray


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
