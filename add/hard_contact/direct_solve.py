"""Linear solves of a hard-contact step: matrices that change their pattern with every active set."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from add.errors import SolverError
from add.linalg import DENSE_LIMIT
from add.typing import FloatArray


class _Solver:
    """A factored square matrix, dense or sparse, with one refinement a solve."""

    __slots__ = ("_lu", "_matrix")

    def __init__(self, matrix: sp.csc_array) -> None:
        self._matrix = matrix
        try:
            self._lu = splu(sp.csc_matrix(matrix))
        except RuntimeError as error:
            raise SolverError(f"the Jacobian is singular ({error})") from None

    def __call__(self, b: FloatArray) -> FloatArray:
        x: FloatArray = self._lu.solve(b)
        return x + self._lu.solve(b - self._matrix @ x)


class _DenseSolver:
    """The same for few unknowns."""

    __slots__ = ("_inverse", "_matrix")

    def __init__(self, matrix: sp.csc_array) -> None:
        self._matrix = matrix.toarray()
        try:
            self._inverse = np.linalg.inv(self._matrix)
        except np.linalg.LinAlgError as error:
            raise SolverError(f"the Jacobian is singular ({error})") from None

    def __call__(self, b: FloatArray) -> FloatArray:
        x: FloatArray = self._inverse @ b
        return x + self._inverse @ (b - self._matrix @ x)


def solver_for(matrix: sp.csc_array) -> _Solver | _DenseSolver:
    """Return a factored square matrix that solves when called; raises SolverError where it is singular."""
    if not matrix.shape[0]:
        return _DenseSolver(matrix)
    return _DenseSolver(matrix) if matrix.shape[0] <= DENSE_LIMIT else _Solver(matrix)


def add_blocks(matrix: FloatArray, blocks: FloatArray) -> None:
    """Add blocks (k, 3, 3) to the diagonal of matrix (3 k, 3 k)."""
    k = blocks.shape[0]
    at = 3 * np.arange(k)[:, None] + np.arange(3)
    matrix[at[:, :, None], at[:, None, :]] += blocks
