"""The contract of every back end, the test of a solution, and SuperLU, which the default one falls back on."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import final

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu
from threadpoolctl import ThreadpoolController

from add.errors import SolverError
from add.kernels.caching import njit
from add.linalg.pattern import Pattern
from add.typing import FloatArray, IntArray

#: A solve whose relative residual stays above this after refinement is repeated with more pivoting.
SOLVE_TOLERANCE = 1e-10

#: A solution this many times larger than 1/round-off allows, |A| |x| > |b| / (SINGULAR eps), says that A is singular.
SINGULAR = 16.0

#: Round-off.
EPS = float(np.finfo(float).eps)


@cache
def _thread_pools() -> ThreadpoolController:
    """Return the threaded libraries of this process; finding them takes longer than a step of a small system."""
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[object]:
    """Hold BLAS at one thread: on the small fronts of a step more of them cost ten times what they bring.

    Where one is all there is, as inside of another such block, nothing is done: to set and to restore takes a tenth of
    the derivatives of a small robot's step.
    """
    pools = _thread_pools()
    if all(library.num_threads == 1 for library in pools.lib_controllers if library.user_api == "blas"):
        return nullcontext()
    return pools.limit(limits=1, user_api="blas")


class LinearSolve(ABC):
    """A matrix that is ready to be solved with; right-hand sides are (n,) or (n, k).

    Solutions are refined and checked: one that is noise raises `SolverError`.
    """

    @abstractmethod
    def solve(self, b: FloatArray) -> FloatArray:
        """Return x with A x = b."""

    @abstractmethod
    def solve_transposed(self, b: FloatArray) -> FloatArray:
        """Return x with A^T x = b."""

    def increment(self, b: FloatArray) -> FloatArray:
        """Return x with A x = b, as accurately as an iteration of Newton's needs it."""
        return self.solve(b)


class Factorization(LinearSolve):
    """A back end: it factors matrices one after the other and solves with the last one."""

    @property
    def memory(self) -> int:
        """Bytes of the present factors, as far as known."""
        return 0

    def copy(self) -> "Factorization | None":
        """Return a back end of this kind that can work at the same time, with what is known of the patterns.

        None where that cannot be: sweeps then stay on one thread.
        """
        return None

    @abstractmethod
    def factor(self, pattern: Pattern, data: FloatArray) -> None:
        """Factor the matrix of this pattern and these values; the analysis of a known pattern id is reused.

        Raises
        ------
        SolverError
            If the matrix is singular or not finite.
        """

    def substitute(self, b: FloatArray, transposed: bool) -> FloatArray:
        """Return a solution (n, k) for callers that refine and check on their own: back ends may leave that out."""
        return self.solve_transposed(b) if transposed else self.solve(b)


class BothWays(Factorization):
    """A back end whose solves with the matrix and with the transposed one are one function."""

    @abstractmethod
    def solved(self, b: FloatArray, transposed: bool) -> FloatArray:
        """Return A^-1 b or A^-T b, refined and checked."""

    def solve(self, b: FloatArray) -> FloatArray:
        """Return A^-1 b."""
        return self.solved(b, False)

    def solve_transposed(self, b: FloatArray) -> FloatArray:
        """Return A^-T b."""
        return self.solved(b, True)


@njit(cache=True)
def sound(matrix_norm, x, b, defect):
    """Whether one solution (n,) passes; the same as below in a fraction of the time."""
    size, largest, wrong = 1e-300, 0.0, 0.0
    for i in range(b.size):
        size = max(size, abs(b[i]))
        largest = max(largest, abs(x[i]))
        wrong = max(wrong, abs(defect[i]))
        if not np.isfinite(x[i] + defect[i]):
            return False
    return wrong <= 1e-6 * size and matrix_norm * largest * SINGULAR * EPS <= size


def check_solution(matrix_norm: float, x: FloatArray, b: FloatArray, defect: FloatArray) -> None:
    """Raise if the solution is noise: not finite, inaccurate, or so large that b is lost in the rounding of A x."""
    if b.ndim == 1 and sound(matrix_norm, x, b, defect):
        return
    sizes = np.abs(b).max(axis=0, initial=0.0)
    reach = matrix_norm * np.abs(x).max(axis=0, initial=0.0)
    bad = ~np.isfinite(x).all() or np.any(np.abs(defect).max(axis=0, initial=0.0) > 1e-6 * np.maximum(sizes, 1e-300))
    if bad or np.any(reach * SINGULAR * EPS > np.maximum(sizes, 1e-300)):
        raise SolverError("the Jacobian is singular to working precision: something can move without any force")


# --- SuperLU ----------------------------------------------------------------------------------------------------------


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
