"""Linear solves with rows that hold points, without a saddle-point matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import numpy as np

from add.errors import SolverError
from add.linalg import Factorization
from add.typing import FloatArray, Matrix

#: The penalty, as a multiple of the mean diagonal entry of the step's matrix. A pass leaves about its inverse of the
#: rows' defect.
PENALTY = 1e6

#: Two or three passes reach round-off; more only where a row has next to nothing to hold.
MAX_PASSES = 12


@final
class HeldSolve:
    """Solves by passes.

    The solution of

        [ K    G^T ] [ x ]   [ b ]
        [ G_u      ] [ y ] = [ c ]

    by the factors of A = K + p G^T G_u alone: with the defects b', c' of what was found so far,

        A dx = b' + p G^T c',    dy = p (G_u dx - c'),

    which solves the same equations with -1/p added in the empty corner, until the defects are round-off (method of
    multipliers; Fortin & Glowinski 1983). A has the sparsity of K where a row touches the coordinates of one contact,
    so that no new analysis is needed when the rows change, and rows that depend on each other do no harm: of all y
    those in the range of G_u are found.

    Attributes
    ----------
    factorization : Factorization
        Of A.
    matrix : (n, n) K
    by_v, by_u : (m, n) G and G_u
    penalty : p
    """

    def __init__(
        self, factorization: Factorization, matrix: Matrix, by_v: Matrix, by_u: Matrix, penalty: float
    ) -> None:
        self.factorization = factorization
        self.matrix, self.by_v, self.by_u = matrix, by_v, by_u
        self.penalty = penalty

    def solve(self, b: FloatArray) -> FloatArray:
        """Return x and y, stacked, for b and c, stacked: (n + m,) or (n + m, k)."""
        return self._passes(b, self.factorization.solve, self.matrix, self.by_v.T, self.by_u)

    def solve_transposed(self, b: FloatArray) -> FloatArray:
        """Return the solution of the transposed system."""
        return self._passes(b, self.factorization.solve_transposed, self.matrix.T, self.by_u.T, self.by_v)

    def _passes(
        self, b: FloatArray, solve: Callable[[FloatArray], FloatArray], matrix: Matrix, columns: Matrix, rows: Matrix
    ) -> FloatArray:
        n, p = matrix.shape[0], self.penalty
        out = np.zeros_like(b)
        x, y = out[:n], out[n:]
        defect = b.copy()
        size = np.inf
        for k in range(MAX_PASSES):
            try:
                step = solve(defect[:n] + p * (columns @ defect[n:]))
            except SolverError:
                if k:  # a defect of round-off is no right-hand side
                    break
                raise
            reaction = p * (rows @ step - defect[n:])
            x += step
            y += reaction
            defect[:n] = b[:n] - matrix @ x - columns @ y
            defect[n:] = b[n:] - rows @ x
            last, size = size, float(np.abs(reaction).max(initial=0.0))
            scale = float(np.abs(y).max(initial=0.0))
            if size <= 1e-13 * scale or size > 0.5 * last:
                break
        return out
