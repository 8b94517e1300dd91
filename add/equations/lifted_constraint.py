"""Equations and local entries on rows of X = Phi(q), as those on q; `add.equations.lift` has the equations.

Equations that hold points on rows of X = Phi(q), as equations on q.

A point moves with the rows of X of its carrier and of the shape's body. With c(X, V) = 0 and the derivatives by them,

    dc/dv = dc/dV P,    dc/dq = dc/dX P + dc/dV Q,
    d(G^T mu)/dq = P^T d(G_X^T mu)/dX P + sum_i (G_X^T mu)_i d2Phi_i/dq2

over the coordinates that these rows depend on: of links, the joints that carry them.
"""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from scipy.sparse import coo_array

from add.equations.kinematics import Kinematics, Weights
from add.equations.lift import Lift, LiftedState
from add.equations.term import UNIT, Constraint, StickConstraint, StickOperators
from add.kernels.caching import njit
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class Expansion:
    """Local entries over rows of X, each spread over the coordinates that its row and column depend on.

    Attributes
    ----------
    rows, cols : (k,) in q; those of the curvature last
    entry : (k',) the entry over X
    left, right : (k',) numbers of the entries of P that multiply it
    n_entries : entries over X
    """

    rows: IntArray
    cols: IntArray
    entry: IntArray
    left: IntArray
    right: IntArray
    n_entries: int

    @classmethod
    def of(cls, lift: Lift, rows: IntArray, cols: IntArray) -> "Expansion":
        """Spread a pattern over X; rows and columns beyond X (multipliers) move behind q."""
        first, coordinate, number = lift.entries
        n_x = lift.rows.n
        beyond = np.arange(int(max(rows.max(initial=-1), cols.max(initial=-1), n_x - 1)) + 1 - n_x, dtype=np.int64)
        first = np.concatenate([first, first[-1] + 1 + beyond])
        coordinate = np.concatenate([coordinate, lift.dofs.n + beyond])
        number = np.concatenate([number, np.zeros_like(beyond)])
        high, wide = first[rows + 1] - first[rows], first[cols + 1] - first[cols]
        entry = np.repeat(np.arange(rows.size), high * wide)
        within = np.arange(entry.size) - np.repeat(np.cumsum(high * wide) - high * wide, high * wide)
        left = first[rows[entry]] + within // wide[entry]
        right = first[cols[entry]] + within % wide[entry]
        more_rows, more_cols = lift.curvature_pattern()
        return cls(
            np.concatenate([coordinate[left], more_rows]),
            np.concatenate([coordinate[right], more_cols]),
            entry,
            number[left],
            number[right],
            int(rows.size),
        )

    @cached_property
    def _sorted(self) -> tuple[IntArray, IntArray]:
        """Keys of all entries by row and column, sorted, and where they are."""
        keys = self.rows * self._stride + self.cols
        order = np.argsort(keys, kind="stable")
        return keys[order], order

    @property
    def _stride(self) -> int:
        return int(self.cols.max(initial=0)) + 1

    def entries(self, dofs: IntArray) -> IntArray:
        """Return one entry for each place of dense blocks (k, m, m) over coordinates (k, m); -1 where there is none."""
        wide = dofs.shape[1]
        row, col = np.repeat(dofs, wide, axis=1).ravel(), np.tile(dofs, (1, wide)).ravel()
        keys, order = self._sorted
        wanted = row * self._stride + col
        at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
        there = (row >= 0) & (col >= 0) & (col < self._stride) & (keys[at] == wanted)
        return np.where(there, order[at], -1).reshape(-1, wide, wide)


def add_expanded(
    data: FloatArray, slots: IntArray, spread: Expansion, at: LiftedState, by: FloatArray, weights: Weights
) -> None:
    """Add the weighted entries ``by`` (3, n_entries) of dr_X/d(X, V, A), spread over q, to ``data[slots]``."""
    factors = np.array([weights.q, weights.v, weights.a])
    _add_expanded(data, slots, spread.entry, spread.left, spread.right, at.p, at.q, by, factors)


@njit(cache=True)
def _add_expanded(data, slots, entry, left, right, p, q, by, weights):
    w_q, w_v, w_a = weights
    for k in range(entry.size):
        e, l, r = entry[k], left[k], right[k]
        value = (w_q * by[0, e] + w_v * by[1, e] + w_a * by[2, e]) * p[r] + w_q * by[1, e] * q[r]
        data[slots[k]] += p[l] * value


class LiftedEquations(Constraint):
    """Equations on rows of X as equations on q.

    Attributes
    ----------
    inner : Constraint
    lift : Lift
    """

    inner: Constraint
    lift: Lift

    @abstractmethod
    def _at(self, kin: Kinematics, theta: FloatArray, rates: bool = True) -> LiftedState:
        """Return the lifted state, with ``rates`` where they are asked for."""

    @cached_property
    def _expansion(self) -> Expansion:
        return Expansion.of(self.lift, *self.inner.pattern(self.lift.rows.n))

    @property
    def n_rows(self) -> int:
        """Number of equations."""
        return self.inner.n_rows

    def pattern(self, first: int) -> tuple[IntArray, IntArray]:
        """Return flat (rows, cols)."""
        n = self.lift.dofs.n
        rows, cols = (
            np.where(part < n, part, part - n + first) for part in (self._expansion.rows, self._expansion.cols)
        )
        return rows, cols

    def residual(self, kin: Kinematics, mu: FloatArray, theta: FloatArray, out: FloatArray, rows: FloatArray) -> None:
        """Add P^T G_X^T mu to ``out`` and c to ``rows``."""
        at, r = self._at(kin, theta, rates=False), np.zeros(self.lift.rows.n)
        self.inner.residual(at.kin, mu, theta, r, rows)
        self.lift.pull(at, r, out)

    def jacobian(
        self,
        kin: Kinematics,
        mu: FloatArray,
        theta: FloatArray,
        weights: Weights,
        data: FloatArray,
        slots: IntArray,
    ) -> None:
        """Add the weighted derivatives of both parts, and weights.multiplier times those by mu."""
        at, spread = self._at(kin, theta), self._expansion
        by, places = np.zeros((3, spread.n_entries)), np.arange(spread.n_entries)
        for values, (_, unit) in zip(by, UNIT, strict=True):
            self.inner.jacobian(at.kin, mu, theta, unit, values, places)
        add_expanded(data, slots, spread, at, by, weights)
        if weights.multiplier:
            by = np.zeros((3, spread.n_entries))
            self.inner.jacobian(at.kin, mu, theta, Weights(0.0, 0.0, 0.0, weights.multiplier), by[2], places)
            add_expanded(data, slots, spread, at, by, Weights(0.0, 0.0, 1.0))
        if weights.q:
            r = np.zeros(self.lift.rows.n)
            self.inner.residual(at.kin, mu, theta, r, np.zeros(self.n_rows))
            np.add.at(data, slots[spread.entry.size :], weights.q * self.lift.curvature(kin, theta, r))

    def parameter_vjp(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, lam: FloatArray, lam_rows: FloatArray, out: FloatArray
    ) -> None:
        """Add the cotangents of theta."""
        at, lift = self._at(kin, theta), self.lift
        pushed = lift.push(at, lam)
        self.inner.parameter_vjp(at.kin, mu, theta, pushed, lam_rows, out)
        if lift.has_parameters:
            r, rows = np.zeros(lift.rows.n), np.zeros(self.n_rows)
            self.inner.residual(at.kin, mu, theta, r, rows)
            by = self._by_rows(at, mu, theta)
            left = np.concatenate([pushed, lam_rows])
            x_bar, v_bar = (left @ block for block in by)
            lift.parameter_vjp(kin, theta, kin.v, x_bar, v_bar, out)
            lift.parameter_vjp(kin, theta, lam, np.zeros_like(r), r, out)

    def parameter_jvp(
        self,
        kin: Kinematics,
        mu: FloatArray,
        theta: FloatArray,
        theta_dot: FloatArray,
        out: FloatArray,
        rows: FloatArray,
    ) -> None:
        """Add the derivatives along theta_dot."""
        at, lift, r = self._at(kin, theta), self.lift, np.zeros(self.lift.rows.n)
        self.inner.parameter_jvp(at.kin, mu, theta, theta_dot, r, rows)
        if lift.has_parameters:
            force = np.zeros(lift.rows.n)
            self.inner.residual(at.kin, mu, theta, force, np.zeros(self.n_rows))
            tangents = lift.parameter_jvp(kin, theta, kin.v, theta_dot)
            for block, along in zip(self._by_rows(at, mu, theta), tangents, strict=True):
                change = block @ along
                r += change[: lift.rows.n]
                rows += change[lift.rows.n :]
            lift.pull_parameter_jvp(kin, theta, theta_dot, force, out)
        lift.pull(at, r, out)

    def _by_rows(self, at: LiftedState, mu: FloatArray, theta: FloatArray) -> tuple[Any, Any]:
        """Return the derivatives of both parts by X and by V, sparse (n_x + n_rows, n_x)."""
        rows, cols = self.inner.pattern(self.lift.rows.n)
        n, size = self.lift.rows.n, self.lift.rows.n + self.n_rows
        out = []
        for unit in (Weights(1.0, 0.0, 0.0), Weights(0.0, 1.0, 0.0)):
            values = np.zeros(rows.size)
            self.inner.jacobian(at.kin, mu, theta, unit, values, np.arange(rows.size))
            out.append(coo_array((values, (rows, cols)), shape=(size, size)).tocsr()[:, :n])
        return out[0], out[1]


@final
@dataclass(frozen=True)
class LiftedConstraint(LiftedEquations):
    """Equations on rows of X as equations on q, and nothing else; attributes as in `LiftedEquations`."""

    inner: Constraint
    lift: Lift

    def _at(self, kin: Kinematics, theta: FloatArray, rates: bool = True) -> LiftedState:
        return self.lift.at(kin, theta, rates=rates)


# --- Equations that hold points on rows of X = Phi(q), as equations on q ----------------------------------------------


@final
class LiftedStick(LiftedEquations, StickConstraint):
    """Stick constraints on rows of X as ones on q.

    Attributes
    ----------
    inner : StickConstraint
    lift : Lift
    expansion : Expansion
        Of the pattern of the inner frozen term, at whose slots the solver's matrix is changed.
    """

    inner: StickConstraint

    def __init__(self, inner: StickConstraint, lift: Lift, expansion: Expansion) -> None:
        self.inner, self.lift, self.expansion = inner, lift, expansion

    def _at(self, kin: Kinematics, theta: FloatArray, rates: bool = True) -> LiftedState:
        """Return the lifted state, the same object for the same state: the inner constraint keeps what it evaluates."""
        return self.lift.at(kin, theta)

    # --- for the solver -----------------------------------------------------------------------------------------------

    @cached_property
    def _same(self) -> IntArray:
        """Coordinates (k, m) that the rows of each point are; -1 for none."""
        return np.where(self.inner.dofs >= 0, self.lift.places[0][self.inner.dofs], -1)

    @cached_property
    def _numbers(self) -> IntArray:
        """Numbers (k, m) of the rows of each point among those that are no coordinates; -1 for others."""
        return np.where(self.inner.dofs >= 0, self.lift.places[1][self.inner.dofs], -1)

    @cached_property
    def _embedded(self) -> IntArray:
        """Numbers among `Lift.own_columns` (k, w) of those that the rows of each point depend on; -1 for none."""
        number, structure = self._numbers, self.lift.own_structure
        moves = np.zeros((number.shape[0], structure.shape[1]), dtype=bool)
        point, place = np.nonzero(number >= 0)
        np.logical_or.at(moves, point, structure[number[point, place]])
        wide = int(moves.sum(axis=1).max(initial=0))
        # Those that move first, in their order.
        order = np.argsort(~moves, axis=1, kind="stable")[:, :wide]
        return np.where(np.take_along_axis(moves, order, axis=1), order, -1)

    @cached_property
    def dofs(self) -> IntArray:
        """Coordinates (k, m) that each sticking point moves with; -1 for none."""
        embedded = np.where(self._embedded >= 0, self.lift.own_columns[self._embedded], -1)
        return np.concatenate([self._same, embedded], axis=1)

    def _spread(self, blocks: FloatArray, entries: FloatArray) -> FloatArray:
        """Return blocks (k, 3, m) over rows of X times P, or Q, as ``entries`` say, over the embedded coordinates."""
        number, column = self._numbers, self._embedded
        matrix = self.lift.own_entries(entries)
        part = matrix[np.maximum(number, 0)[:, :, None], np.maximum(column, 0)[:, None, :]]
        part = np.where((number >= 0)[:, :, None] & (column >= 0)[:, None, :], part, 0.0)
        return np.asarray(blocks @ part)

    def operators(self, kin: Kinematics, theta: FloatArray) -> StickOperators:
        """Return the linearised rows."""
        at = self._at(kin, theta)
        inner, same = self.inner.operators(at.kin, theta), (self._numbers < 0)[:, None, :]
        by_v = [np.where(same, inner.by_v, 0.0), self._spread(inner.by_v, at.p)]
        by_q = [np.where(same, inner.by_q, 0.0), self._spread(inner.by_q, at.p) + self._spread(inner.by_v, at.q)]
        return StickOperators(np.concatenate(by_v, axis=2), np.concatenate(by_q, axis=2))

    def add_geometry(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, factor: float, data: FloatArray, slots: IntArray
    ) -> None:
        """Add factor times the derivative of the generalised force by q."""
        at, spread, r = self._at(kin, theta), self.expansion, np.zeros(self.lift.rows.n)
        by = np.zeros((3, spread.n_entries))
        self.inner.add_geometry(at.kin, mu, theta, 1.0, by[0], np.arange(spread.n_entries))
        add_expanded(data, slots, spread, at, by, Weights(factor, 0.0, 0.0))
        self.inner.residual(at.kin, mu, theta, r, np.zeros(self.n_rows))
        np.add.at(data, slots[spread.entry.size :], factor * self.lift.curvature(kin, theta, r))

    @cached_property
    def entries(self) -> IntArray:
        """Places of the points' blocks among the entries of the spread pattern."""
        return self.expansion.entries(self.dofs)

    def limits(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return the limit of each reaction (k,) [N]; below zero where nothing touches."""
        return self.inner.limits(self._at(kin, theta).kin, theta)

    def first_guess(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return the reactions (3 k,) of the penalty law [N]."""
        return self.inner.first_guess(self._at(kin, theta).kin, theta)
