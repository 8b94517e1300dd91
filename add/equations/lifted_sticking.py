"""Equations that hold points on rows of X = Phi(q), as equations on q.

A point moves with the rows of X of its carrier and of the shape's body. With c(X, V) = 0 and the derivatives by them,

    dc/dv = dc/dV P,    dc/dq = dc/dX P + dc/dV Q,
    d(G^T mu)/dq = P^T d(G_X^T mu)/dX P + sum_i (G_X^T mu)_i d2Phi_i/dq2

over the coordinates that these rows depend on: of links, the joints that carry them.
"""

from __future__ import annotations

from functools import cached_property
from typing import final

import numpy as np

from add.equations.kinematics import Kinematics, Weights
from add.equations.lift import Lift, LiftedState
from add.equations.lifted_constraint import LiftedEquations
from add.equations.lifted_entries import Expansion, add_expanded
from add.equations.term import StickConstraint, StickOperators
from add.typing import FloatArray, IntArray


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
        own = np.where(self._embedded >= 0, self.lift.own_columns[self._embedded], -1)
        return np.concatenate([self._same, own], axis=1)

    def _spread(self, blocks: FloatArray, entries: FloatArray) -> FloatArray:
        """Return blocks (k, 3, m) over rows of X times P, or Q, as ``entries`` say, over the embedded coordinates."""
        number, own = self._numbers, self._embedded
        matrix = self.lift.own_entries(entries)
        part = matrix[np.maximum(number, 0)[:, :, None], np.maximum(own, 0)[:, None, :]]
        part = np.where((number >= 0)[:, :, None] & (own >= 0)[:, None, :], part, 0.0)
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
    def _places(self) -> tuple[IntArray, IntArray]:
        return self.expansion.places(self.dofs)

    def add_products(
        self, factor: float, left: FloatArray, right: FloatArray, data: FloatArray, slots: IntArray
    ) -> None:
        """Add factor left^T right."""
        number, entry = self._places
        blocks = np.einsum("kam,kan->kmn", left, right).ravel()
        np.add.at(data, slots[entry], factor * blocks[number])

    def limits(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return the limit of each reaction (k,) [N]; below zero where nothing touches."""
        return self.inner.limits(self._at(kin, theta).kin, theta)

    def first_guess(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return the reactions (3 k,) of the penalty law [N]."""
        return self.inner.first_guess(self._at(kin, theta).kin, theta)
