"""SuperLU with an ordering found once a pattern: what the multifrontal back end falls back on."""

from typing import final

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from add.errors import SolverError
from add.linalg.base import SOLVE_TOLERANCE, BothWays, check_solution
from add.linalg.pattern import Pattern
from add.typing import FloatArray, IntArray


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
    lengths = np.diff(pattern.indptr)
    column = np.repeat(np.arange(pattern.n), lengths)
    # Against the entry of the same rank in the column before, which is one length back where both are equally long.
    other = pattern.indices != pattern.indices[np.arange(pattern.nnz) - lengths[column]]
    new = np.bincount(column[other], minlength=pattern.n) > 0
    new |= np.diff(lengths, prepend=-1) != 0
    return np.cumsum(new) - 1


@final
class SparseLU(BothWays):
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

    def copy(self) -> "SparseLU":
        """Return another one, which analyses for itself."""
        return SparseLU()

    def substitute(self, b: FloatArray, transposed: bool) -> FloatArray:
        """Return A^-1 b or A^-T b (n, k), neither refined nor checked."""
        out = np.empty_like(b)
        out[self._order] = self._lu.solve(b[self._order], "T" if transposed else "N")  # type: ignore[call-overload]
        return out

    def solved(self, b: FloatArray, transposed: bool) -> FloatArray:
        rhs = b[self._order]
        matrix, trans = (self._permuted.T, "T") if transposed else (self._permuted, "N")
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
        check_solution(self._norm, x, rhs, defect)
        out = np.empty_like(x)
        out[self._order] = x
        return out
