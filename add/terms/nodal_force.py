"""Nodal loads that vary in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from add.equations.kinematics import Kinematics, Weights
from add.equations.signals import Signal
from add.equations.term import Term
from add.typing import FloatArray, IntArray


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
