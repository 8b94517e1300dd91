"""Factorisations: analyse a pattern once, factor values many times, check every solve."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from functools import cache
from typing import Literal, final

import numpy as np
import scipy.sparse as sp
from scipy.linalg.lapack import dgetrf, dgetrs
from scipy.sparse.linalg import splu
from threadpoolctl import ThreadpoolController

from add.assembly import Pattern
from add.errors import SolverError
from add.typing import FloatArray, IntArray

#: Below this many unknowns dense LAPACK beats a sparse factorisation, refinement included: measured break-even is 180
#: for a chain of rigid bodies and 300 for a soft mesh.
DENSE_LIMIT = 180

#: A solve whose relative residual stays above this after refinement is refactored with full pivoting.
SOLVE_TOLERANCE = 1e-10

#: A solution this many times larger than 1/round-off allows, |A| |x| > |b| / (SINGULAR eps), says that A is singular.
SINGULAR = 16.0


@cache
def _thread_pools() -> ThreadpoolController:
    """Return the threaded libraries of this process; finding them takes longer than a step of a small system."""
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[object]:
    """Hold BLAS at one thread: on the small fronts of a step more of them cost ten times what they bring."""
    return _thread_pools().limit(limits=1, user_api="blas")


class Factorization(ABC):
    """A matrix ready to be solved with.

    ``solve`` and ``solve_transposed`` take (n,) or (n, k) right-hand sides, do one step of iterative refinement and
    check the residual.
    """

    @abstractmethod
    def factor(self, pattern: Pattern, data: FloatArray) -> None:
        """Factor the matrix of this pattern and these values; the analysis of a known pattern id is reused.

        Raises
        ------
        SolverError
            If the matrix is singular or not finite.
        """

    @abstractmethod
    def solve(self, b: FloatArray) -> FloatArray:
        """Return x with A x = b."""

    @abstractmethod
    def solve_transposed(self, b: FloatArray) -> FloatArray:
        """Return x with A^T x = b."""


def node_ordering(pattern: Pattern) -> IntArray:
    """Return a fill-reducing symmetric permutation, found on the graph of nodes.

    Coordinates come in threes that share their neighbours: ordering the compressed graph is nine times smaller work
    and keeps the three together, which gives SuperLU its supernodes. Multipliers after the last triple stay single.
    """
    n = pattern.n
    group = _groups(pattern)
    n_groups = int(group[-1]) + 1 if n else 0
    cols = np.repeat(np.arange(n), np.diff(pattern.indptr))
    graph = sp.coo_array(
        (np.ones(pattern.nnz), (group[pattern.indices], group[cols])), shape=(n_groups, n_groups)
    ).tocsc()
    graph = graph + graph.T
    # Only the column order of this factorisation is used; dominance of the diagonal keeps it free of pivoting.
    graph.data[:] = -1.0
    graph.setdiag(2.0 * n_groups)
    order = splu(
        graph.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    ).perm_c
    return np.argsort(order[group], kind="stable")


def _groups(pattern: Pattern) -> IntArray:
    """Number runs of columns with identical structure."""
    group = np.zeros(pattern.n, dtype=np.int64)
    for j in range(1, pattern.n):
        a, b, c = pattern.indptr[j - 1], pattern.indptr[j], pattern.indptr[j + 1]
        same = b - a == c - b and np.array_equal(pattern.indices[a:b], pattern.indices[b:c])
        group[j] = group[j - 1] + (0 if same else 1)
    return group


def _check_solution(matrix_norm: float, x: FloatArray, b: FloatArray, defect: FloatArray) -> None:
    """Raise if the solution is noise: not finite, inaccurate, or so large that b is lost in the rounding of A x."""
    if b.ndim == 1:
        size, largest, wrong = (float(np.abs(y).max(initial=0.0)) for y in (b, x, defect))
        size = max(size, 1e-300)
        # Written so that NaN counts as bad.
        if wrong <= 1e-6 * size and matrix_norm * largest * SINGULAR * np.finfo(float).eps <= size:
            return
    sizes = np.abs(b).max(axis=0, initial=0.0)
    reach = matrix_norm * np.abs(x).max(axis=0, initial=0.0)
    bad = ~np.isfinite(x).all() or np.any(np.abs(defect).max(axis=0, initial=0.0) > 1e-6 * np.maximum(sizes, 1e-300))
    if bad or np.any(reach * SINGULAR * np.finfo(float).eps > np.maximum(sizes, 1e-300)):
        raise SolverError(
            "the Jacobian is singular to working precision: something can move without any force (a body that is "
            "not held has no static equilibrium, and two constraints may ask for the same)"
        )


@final
class SparseLU(Factorization):
    """SuperLU with an ordering found once a pattern, and default partial pivoting as the fallback.

    Diagonal pivots are preferred (threshold 0.01), since J is dominated by mass and stiffness; a solve that this leaves
    inaccurate is repeated with full partial pivoting and a column ordering.
    """

    def __init__(self) -> None:
        self._pattern_id = -1
        self._matrix: sp.csc_array | None = None

    def _analyse(self, pattern: Pattern) -> None:
        order = node_ordering(pattern)
        self._order = order
        numbered = sp.csc_array(
            (np.arange(1, pattern.nnz + 1, dtype=float), pattern.indices, pattern.indptr), shape=(pattern.n, pattern.n)
        )
        permuted = numbered[order][:, order].tocsc()
        permuted.sort_indices()
        self._gather = permuted.data.astype(np.int64) - 1
        self._permuted = sp.csc_matrix(
            (np.zeros(pattern.nnz), permuted.indices.astype(np.int32), permuted.indptr.astype(np.int32)),
            shape=permuted.shape,
        )
        self._permuted.has_sorted_indices = True
        self._permuted.has_canonical_format = True
        self._pattern_id = pattern.id

    def factor(self, pattern: Pattern, data: FloatArray) -> None:
        """Factor; see `Factorization.factor`."""
        if pattern.id != self._pattern_id:
            self._analyse(pattern)
        np.take(data, self._gather, out=self._permuted.data)
        if not np.isfinite(self._permuted.data).all():
            raise SolverError("the Jacobian is not finite")
        self._norm = float(np.abs(self._permuted.data).max(initial=0.0))
        self._robust = False
        try:
            self._lu = splu(
                self._permuted, permc_spec="NATURAL", diag_pivot_thresh=0.01, options={"SymmetricMode": True}
            )
        except RuntimeError:
            self._refactor()

    def _refactor(self) -> None:
        """Factor again with partial pivoting."""
        self._robust = True
        try:
            self._lu = splu(self._permuted)
        except RuntimeError as error:
            raise SolverError(f"the Jacobian is singular ({error})") from None

    def _solve(self, b: FloatArray, trans: Literal["N", "T"]) -> FloatArray:
        rhs = b[self._order]
        matrix = self._permuted if trans == "N" else self._permuted.T
        size = np.abs(rhs).max(axis=0, initial=0.0)
        for _ in range(2):
            x = self._lu.solve(rhs, trans)  # type: ignore[call-overload]
            defect = rhs - matrix @ x
            correction = self._lu.solve(defect, trans)  # type: ignore[call-overload]
            x += correction
            defect = rhs - matrix @ x
            if self._robust or np.all(np.abs(defect).max(axis=0, initial=0.0) <= SOLVE_TOLERANCE * size):
                break
            self._refactor()
        _check_solution(self._norm, x, rhs, defect)
        out = np.empty_like(x)
        out[self._order] = x
        return out

    def solve(self, b: FloatArray) -> FloatArray:
        """Return A^-1 b."""
        return self._solve(b, "N")

    def solve_transposed(self, b: FloatArray) -> FloatArray:
        """Return A^-T b."""
        return self._solve(b, "T")


@final
class DenseLU(Factorization):
    """LAPACK, called directly: for small systems the wrappers would take longer than the work."""

    def factor(self, pattern: Pattern, data: FloatArray) -> None:
        """Factor; see `Factorization.factor`."""
        n = pattern.n
        full = np.zeros(n * n)
        full[pattern.dense_positions] = data[: pattern.nnz]
        self._norm = float(np.abs(full).max(initial=0.0))
        if not math.isfinite(self._norm):
            raise SolverError("the Jacobian is not finite")
        self._dense = full.reshape(n, n).T
        if n:
            self._lu, self._pivots, info = dgetrf(self._dense)
            if info > 0:
                raise SolverError("the Jacobian is singular")

    def _solve(self, b: FloatArray, trans: Literal[0, 1]) -> FloatArray:
        if not self._dense.size:
            return b.copy()
        matrix = self._dense.T if trans else self._dense
        x, _ = dgetrs(self._lu, self._pivots, b, trans=trans)
        x = x + dgetrs(self._lu, self._pivots, b - matrix @ x, trans=trans)[0]
        _check_solution(self._norm, x, b, b - matrix @ x)
        return x

    def solve(self, b: FloatArray) -> FloatArray:
        """Return A^-1 b."""
        return self._solve(b, 0)

    def solve_transposed(self, b: FloatArray) -> FloatArray:
        """Return A^-T b."""
        return self._solve(b, 1)


def factorization_for(n: int) -> Factorization:
    """Return the back end that suits ``n`` unknowns."""
    return DenseLU() if n <= DENSE_LIMIT else SparseLU()
