"""The two convex layers of staggered projections, on their own: arrays in, arrays and cotangents out.

    QP     l = argmin over l >= 0          of 1/2 l^T G l + g^T l        (Kaufman et al. 2008; Le Lidec et al. 2021)
    QCQP   l = argmin over |l_i| <= mu_i n_i of 1/2 l^T G l + g^T l      (two numbers a contact)

G is symmetric; its cotangents are symmetric, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from add.cones.cones import Cones
from add.cones.solver import ConeSolution, solve
from add.typing import FloatArray


@final
@dataclass(frozen=True)
class QPLayer:
    """Normal impulses at given friction.

    Attributes
    ----------
    solution : ConeSolution
        ``solution.impulse`` (k,) is l.
    """

    solution: ConeSolution

    @classmethod
    def of(cls, G: FloatArray, g: FloatArray) -> QPLayer:
        """Solve for G (k, k) and g (k,)."""
        return cls(solve(G, g, Cones.half_lines(np.asarray(g).size)))

    def pullback(self, impulse_bar: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the cotangents of G and g."""
        bar = self.solution.sensitivity.pullback(impulse_bar)
        return 0.5 * (bar.delassus + bar.delassus.T), bar.offset


@final
@dataclass(frozen=True)
class QCQPLayer:
    """Friction impulses at given normal impulses.

    Attributes
    ----------
    solution : ConeSolution
        ``solution.impulse`` (2 k,) is l.
    mu, normal : (k,)
    """

    solution: ConeSolution
    mu: FloatArray
    normal: FloatArray

    @classmethod
    def of(cls, G: FloatArray, g: FloatArray, mu: FloatArray, normal: FloatArray) -> QCQPLayer:
        """Solve for G (2 k, 2 k), g (2 k,), coefficients ``mu`` (k,) and normal impulses ``normal`` (k,) >= 0."""
        mu, normal = np.asarray(mu, dtype=float), np.asarray(normal, dtype=float)
        return cls(solve(G, g, Cones.discs(mu * normal)), mu, normal)

    def pullback(self, impulse_bar: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the cotangents of G, g, mu and the normal impulses; zero for discs of radius zero."""
        bar = self.solution.sensitivity.pullback(impulse_bar)
        return 0.5 * (bar.delassus + bar.delassus.T), bar.offset, self.normal * bar.bound, self.mu * bar.bound
