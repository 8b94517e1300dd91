"""Back ends of the benchmarks: SuperLU as SciPy sets it up, and a wrapper that keeps the time."""

from __future__ import annotations

import time
from typing import Literal, final

import scipy.sparse as sp
from scipy.sparse.linalg import SuperLU, splu

from add.errors import SolverError
from add.linalg import Factorization
from add.linalg.pattern import Pattern
from add.typing import FloatArray


@final
class DefaultLU(Factorization):
    """SuperLU with its default column ordering and partial pivoting, found anew each time; one step of refinement.

    What a program has that calls `scipy.sparse.linalg.splu(J)`: the yardstick of the ratios.
    """

    _lu: SuperLU
    _matrix: sp.csc_array

    def factor(self, pattern: Pattern, data: FloatArray) -> None:
        self._matrix = pattern.matrix(data.copy())
        try:
            self._lu = splu(self._matrix)
        except RuntimeError as error:
            raise SolverError(f"the Jacobian is singular ({error})") from None

    def _solve(self, b: FloatArray, trans: Literal["N", "T"]) -> FloatArray:
        matrix = self._matrix if trans == "N" else self._matrix.T
        x = self._lu.solve(b, trans)  # type: ignore[call-overload]
        return x + self._lu.solve(b - matrix @ x, trans)  # type: ignore[call-overload]

    def solve(self, b: FloatArray) -> FloatArray:
        return self._solve(b, "N")

    def solve_transposed(self, b: FloatArray) -> FloatArray:
        return self._solve(b, "T")


@final
class Timed(Factorization):
    """A back end that keeps the processor time of its calls [s]."""

    def __init__(self, inner: Factorization) -> None:
        self.inner = inner
        self.factoring: list[float] = []
        self.solving = 0.0

    def factor(self, pattern: Pattern, data: FloatArray) -> None:
        begin = time.process_time()
        self.inner.factor(pattern, data)
        self.factoring.append(time.process_time() - begin)

    def substitute(self, b: FloatArray, transposed: bool) -> FloatArray:
        begin = time.process_time()
        x = self.inner.substitute(b, transposed)
        self.solving += time.process_time() - begin
        return x

    def solve(self, b: FloatArray) -> FloatArray:
        begin = time.process_time()
        x = self.inner.solve(b)
        self.solving += time.process_time() - begin
        return x

    def solve_transposed(self, b: FloatArray) -> FloatArray:
        begin = time.process_time()
        x = self.inner.solve_transposed(b)
        self.solving += time.process_time() - begin
        return x
