"""Nodal loads that vary in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import numpy as np

from add.equations.family import Family, Kind
from add.equations.kinematics import Kinematics, Weights
from add.equations.signals import Signal
from add.equations.term import Term
from add.kernels.arena import FAMILY, FIELD, Floats, Ints, Ints2, row_of, unpacker, window
from add.kernels.caching import njit
from add.typing import FloatArray, IntArray


class _Arrays(NamedTuple):
    nodes: Ints
    shares: Floats
    rows: Ints2


_own = unpacker(_Arrays)


@njit(**FAMILY)
def _forces(arena, k, at, replay, rows, out):
    own = _own(arena, arena.families[k, FIELD])
    first, weights = window(arena, k, at)
    for c in range(3):
        force = 0.0
        for j in range(weights.size):
            force += weights[j] * at.theta[own.rows[first + j, c]]
        for i in range(own.nodes.size):
            out[3 * own.nodes[i] + c] -= own.shares[i] * force
    return rows


@njit(**FAMILY)
def _parameters(arena, k, at, rows, lam, out):
    own = _own(arena, arena.families[k, FIELD])
    first, weights = window(arena, k, at)
    for c in range(3):
        bar = 0.0
        for i in range(own.nodes.size):
            bar -= own.shares[i] * lam[3 * own.nodes[i] + c]
        for j in range(weights.size):
            out[own.rows[first + j, c]] += weights[j] * bar


@njit(**FAMILY)
def _inputs(arena, k, at, rows, indptr, found):
    own = _own(arena, arena.families[k, FIELD])
    first, weights = window(arena, k, at)
    for j in range(weights.size):
        for c in range(3):
            to = row_of(own.rows[first + j, c], indptr, found)
            if to >= 0:
                for i in range(own.nodes.size):
                    found.values[to, 3 * own.nodes[i] + c] -= own.shares[i] * weights[j]


KIND = Kind("nodal_force", _Arrays, _forces, _parameters, inputs=_inputs)


@final
@dataclass(frozen=True)
class NodalForce(Term):
    """r = -share_i F(t): a total force F(t) [N] spread over nodes; dead, it keeps its direction.

    Attributes
    ----------
    nodes : (k,)
    shares : (k,)
        Share of each node, summing to one.
    signal : Signal
    rows : (n_rows, 3)
        Indices in theta of the signal's coefficients [N].
    """

    depends: ClassVar[str] = ""

    nodes: IntArray
    shares: FloatArray
    signal: Signal
    rows: IntArray

    @property
    def inputs(self) -> IntArray:
        """See `Term.inputs`."""
        return self.rows.ravel()

    def pattern(self) -> tuple[IntArray, IntArray]:
        """Return nothing: the force does not depend on the motion."""
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)

    def family(self) -> Family:
        """See `Term.family`."""
        return Family(KIND, _Arrays(self.nodes, self.shares, self.rows), self.pattern(), self.signal, followers=3)

    def residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add -share F(t)."""
        force = self.signal.weights(kin.t) @ theta[self.rows]
        np.subtract.at(out.reshape(-1, 3), self.nodes, np.outer(self.shares, force))

    def jacobian(self, kin: Kinematics, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray) -> None:
        """Add nothing."""

    def parameter_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> None:
        """Add the cotangents of the signal's coefficients."""
        force_bar = self.shares @ lam.reshape(-1, 3)[self.nodes]
        np.subtract.at(out, self.rows, np.outer(self.signal.weights(kin.t), force_bar))

    def parameter_jvp(self, kin: Kinematics, theta: FloatArray, theta_dot: FloatArray, out: FloatArray) -> None:
        """Add the tangent along ``theta_dot``."""
        self.residual(kin, theta_dot, out)
