"""The contract of every back end, and the test of a solution."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from functools import cache

import numpy as np
from threadpoolctl import ThreadpoolController

from add.errors import SolverError
from add.kernels.caching import njit
from add.linalg.pattern import Pattern
from add.typing import FloatArray

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
