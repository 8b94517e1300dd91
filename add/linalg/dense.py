"""LAPACK for small systems, and the choice among factorisations."""

from __future__ import annotations

import math
from typing import Literal, final

import numpy as np
from numba import config
from scipy.linalg.lapack import dgetrf, dgetrs

from add.errors import SolverError
from add.linalg.base import Factorization, check_solution
from add.linalg.multifrontal import MultifrontalLU
from add.linalg.pattern import Pattern
from add.linalg.superlu import SparseLU
from add.typing import FloatArray


@final
class DenseLU(Factorization):
    """LAPACK, called directly: for small systems the wrappers would take longer than the work."""

    def copy(self) -> DenseLU:
        """Return another one."""
        return DenseLU()

    def factor(self, pattern: Pattern, data: FloatArray) -> None:
        """Factor; see `Factorization.factor`."""
        n = pattern.n
        full = np.zeros(n * n)
        full[pattern.dense_positions] = data[: pattern.nnz]
        self.factor_matrix(full.reshape(n, n).T)

    def factor_matrix(self, matrix: FloatArray) -> None:
        """Factor a full matrix (n, n), which is kept, best by columns; see `Factorization.factor`."""
        self._norm = float(np.abs(matrix).max(initial=0.0))
        if not math.isfinite(self._norm):
            raise SolverError("the Jacobian is not finite")
        self._dense = matrix
        if matrix.size:
            self._lu, self._pivots, info = dgetrf(self._dense)
            if info > 0:
                raise SolverError("the Jacobian is singular")

    def _solve(self, b: FloatArray, trans: Literal[0, 1]) -> FloatArray:
        if not self._dense.size:
            return b.copy()
        matrix = self._dense.T if trans else self._dense
        x, _ = dgetrs(self._lu, self._pivots, b, trans=trans)
        x = x + dgetrs(self._lu, self._pivots, b - matrix @ x, trans=trans)[0]
        check_solution(self._norm, x, b, b - matrix @ x)
        return x

    def substitute(self, b: FloatArray, transposed: bool) -> FloatArray:
        """Return A^-1 b or A^-T b, neither refined nor checked."""
        return dgetrs(self._lu, self._pivots, b, trans=int(transposed))[0] if self._dense.size else b.copy()

    def solve(self, b: FloatArray) -> FloatArray:
        """Return A^-1 b."""
        return self._solve(b, 0)

    def solve_transposed(self, b: FloatArray) -> FloatArray:
        """Return A^-T b."""
        return self._solve(b, 1)


# --- Which back end suits a system ------------------------------------------------------------------------------------


#: Up to this many unknowns dense LAPACK beats a sparse factorisation, refinement included (docs/performance.md).
DENSE_LIMIT = 100


def factorization_for(n: int) -> Factorization:
    """Return the back end that suits ``n`` unknowns."""
    if n <= DENSE_LIMIT:
        return DenseLU()
    # With NUMBA_DISABLE_JIT=1 there is no calling of BLAS by address.
    return SparseLU() if config.DISABLE_JIT else MultifrontalLU()
