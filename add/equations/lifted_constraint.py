"""Equations on rows of X = Phi(q) as equations on q; `add.equations.lift` has the equations."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from scipy.sparse import coo_array

from add.equations.kinematics import Kinematics, Weights
from add.equations.lift import Lift, LiftedState
from add.equations.lifted_entries import Expansion, add_expanded
from add.equations.term import UNIT, Constraint
from add.typing import FloatArray, IntArray


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
