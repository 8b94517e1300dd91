"""The default back ends: LAPACK for small systems, else a multifrontal factorisation on a structure analysed once.

Hard matrices are left to SuperLU.
"""

import logging
import math
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numba import config
from scipy.linalg.lapack import dgetrf, dgetrs

from add.errors import SolverError
from add.linalg.base import BothWays, Factorization, SparseLU, check_solution
from add.linalg.blas import addresses
from add.linalg.fronts import factorise, factorise_symmetric, is_symmetric, measure
from add.linalg.pattern import MOST_PATTERNS, Pattern
from add.linalg.substitution import refine, substitute_rows
from add.linalg.symbolic import Fronts, Sizes, fronts_of
from add.linalg.tree import Structure, nested_dissection, postponed, structure_of, weak_vertices
from add.typing import AnyArray, FloatArray

_log = logging.getLogger(__name__)

#: With more replaced pivots than this, refinement is not tried.
MAX_REPLACED = 10

#: Steps of refinement after the first, taken only while the residual is too large.
EXTRA_REFINEMENTS = 4

#: Analyses are kept for patterns that come back, up to this many entries of matrices in all.
KEPT_ENTRIES = 10_000_000

#: Columns below this cannot be told from zeros.
SMALLEST = 1e-280


@final
@dataclass(frozen=True)
class Statistics:
    """Counts of the work of a back end.

    Attributes
    ----------
    analyses, factorizations, solves : int
        Calls; a solve of many right-hand sides is one.
    fallbacks : int
        Factorisations that were left to SuperLU.
    symmetric : int
        Factorisations that were of a symmetric positive definite matrix.
    replaced : int
        Pivots lost to round-off and replaced, over all factorisations.
    fill : int
        Numbers in the factors of the last pattern, zeros of relaxed fronts included.
    flops : float
        Floating-point operations of one LU of the last pattern.
    """

    analyses: int = 0
    factorizations: int = 0
    solves: int = 0
    fallbacks: int = 0
    symmetric: int = 0
    replaced: int = 0
    fill: int = 0
    flops: float = 0.0


class Analysis(NamedTuple):
    """Of a pattern; ``mirror`` are the places of the entries mirrored, none where the structure is not symmetric."""

    pattern: Pattern
    mirror: AnyArray
    fronts: Fronts
    sizes: Sizes


@final
class MultifrontalLU(BothWays):
    """LU on the fronts of a nested dissection, dense BLAS inside (Duff and Reid 1983, 1984; Liu 1992).

    Made for J: its structure is (nearly) symmetric, its values need not be. Rows are exchanged within the pivots of a
    front only, so the structure never changes; what this cannot do is seen in the number of replaced pivots or in the
    residual, and such a matrix is factored again by `SparseLU`. A matrix that turns out symmetric and positive definite
    (flight, rest, sticking on planes) is factored by Cholesky in half the time.
    """

    def __init__(self) -> None:
        self._blas = addresses()
        self._analyses: dict[int, Analysis] = {}
        self._current: Analysis | None = None
        self._factors = self._stack = self._data = np.empty(0)
        self._info = np.zeros(1, dtype=np.int32)
        self._symmetric = False
        self._fallback: SparseLU | None = None
        self._counts = dict.fromkeys(("analyses", "factorizations", "solves", "fallbacks", "symmetric", "replaced"), 0)

    @property
    def statistics(self) -> Statistics:
        """The work done so far."""
        sizes = self._current.sizes if self._current else None
        return Statistics(**self._counts, fill=sizes.fill if sizes else 0, flops=sizes.flops if sizes else 0.0)

    @property
    def memory(self) -> int:
        """Bytes of the factors and of the stack."""
        return self._factors.nbytes + self._stack.nbytes

    def copy(self) -> "MultifrontalLU":
        """Return another one, which need not analyse the patterns anew."""
        other = MultifrontalLU()
        other._analyses.update(self._analyses)
        return other

    def _analysis(self, pattern: Pattern, data: FloatArray) -> Analysis:
        """Return the analysis of a pattern, new or known."""
        known = self._analyses.pop(pattern.id, None)
        if known is None:
            known = analysis_of(pattern, data[pattern.diagonal])
            self._counts["analyses"] += 1
            room = KEPT_ENTRIES - pattern.nnz - sum(a.pattern.nnz for a in self._analyses.values())
            while self._analyses and (room < 0 or len(self._analyses) >= MOST_PATTERNS):
                room += self._analyses.pop(next(iter(self._analyses))).pattern.nnz
        self._analyses[pattern.id] = known
        return known

    def factor(self, pattern: Pattern, data: FloatArray) -> None:
        """Factor; see `Factorization.factor`."""
        if self._current is None or self._current.pattern.id != pattern.id:
            self._current = None
            current = self._analysis(pattern, data)
            n, sizes = pattern.n, current.sizes
            if self._factors.size < sizes.fill:
                self._factors = np.empty(sizes.fill)
            if self._stack.size < sizes.stack:
                self._stack = np.empty(sizes.stack)
            self._scale, self._row_sizes, self._column_sizes = np.empty((3, n))
            self._swaps = np.empty(n, dtype=np.int32)
            self._data = np.empty(pattern.nnz)
            self._current = current
        fronts = self._current.fronts
        # The caller's values may change before the solves.
        self._data[:] = data[: pattern.nnz]
        self._fallback = None
        self._counts["factorizations"] += 1
        largest = self._row_sizes, self._column_sizes, self._scale
        self._norm, smallest = measure(pattern.indptr, pattern.indices, self._data, fronts.order, *largest)
        if not self._norm < np.inf:
            raise SolverError("the Jacobian is not finite")
        if not smallest > SMALLEST:
            self._fall_back()
            return
        self._symmetric = self._factor_symmetric()
        if self._symmetric:
            return
        replaced = factorise(self._blas, fronts, self._data, self._scale, self._factors, self._swaps, self._stack)
        self._counts["replaced"] += replaced
        if replaced > MAX_REPLACED:
            self._fall_back()

    def _factor_symmetric(self) -> bool:
        """Try Cholesky; return whether the matrix is symmetric and positive definite."""
        assert self._current is not None
        pattern, mirror, fronts, _ = self._current
        structure = pattern.indptr, pattern.indices, mirror, pattern.diagonal
        if not (mirror.size and is_symmetric(*structure, self._data)):
            return False
        if not factorise_symmetric(self._blas, fronts, self._data, self._factors, self._stack, self._info):
            return False
        self._counts["symmetric"] += 1
        return True

    def _fall_back(self) -> SparseLU:
        """Leave the current matrix to SuperLU."""
        assert self._current is not None
        self._counts["fallbacks"] += 1
        _log.debug("a matrix of %d unknowns is left to SuperLU", self._current.pattern.n)
        # Made anew each time: its analysis and factors are large, and wanted rarely.
        fallback = SparseLU()
        fallback.factor(self._current.pattern, self._data)
        self._fallback = fallback
        return fallback

    def solved(self, b: FloatArray, transposed: bool) -> FloatArray:
        assert self._current is not None, "factor first"
        self._counts["solves"] += 1
        if self._fallback is not None:
            return self._fallback.solve_transposed(b) if transposed else self._fallback.solve(b)
        pattern, _, fronts, sizes = self._current
        rhs = np.ascontiguousarray(b, dtype=float).reshape(pattern.n, 1 if b.ndim == 1 else b.shape[1])
        x, defect = np.zeros_like(rhs), rhs.copy()
        work = np.empty(rhs.shape[1] * sizes.border)
        most = self._column_sizes if transposed else self._row_sizes
        factored = self._factors, self._swaps, self._symmetric
        matrix = pattern.indptr, pattern.indices, self._data, transposed
        for steps in (2, *([1] * EXTRA_REFINEMENTS)):
            if refine(self._blas, fronts, factored, matrix, rhs, x, defect, work, most, steps):
                break
        else:
            fallback = self._fall_back()
            return fallback.solve_transposed(b) if transposed else fallback.solve(b)
        x = x.reshape(b.shape)
        check_solution(self._norm, x, b, defect.reshape(b.shape))
        return x

    def substitute(self, b: FloatArray, transposed: bool) -> FloatArray:
        """Return A^-1 b or A^-T b (n, k), neither refined nor checked."""
        assert self._current is not None, "factor first"
        if self._fallback is not None:
            return self._fallback.substitute(b, transposed)
        self._counts["solves"] += 1
        _, _, fronts, sizes = self._current
        x, work = np.empty(b.shape), np.empty(b.shape[1] * sizes.border)
        substitute_rows(self._blas, fronts, self._factors, self._swaps, self._symmetric, transposed, b, x, work)
        return x


def analysis_of(pattern: Pattern, diagonal: FloatArray | None = None) -> Analysis:
    """Return the order of elimination of a pattern and its fronts; zeros of the ``diagonal`` are those of multipliers.

    These are part of the structure, though only the values show them.
    """
    structure = structure_of(pattern.indptr, pattern.indices)
    order = nested_dissection(structure)
    if diagonal is not None:
        weak = weak_vertices(structure, diagonal)
        if weak.any():
            order = postponed(structure, order, weak)
    return Analysis(pattern, _mirror(structure), *fronts_of(structure, order))


def _mirror(structure: Structure) -> AnyArray:
    """Return the place of every entry's mirror image (nnz,); nothing where one is missing."""
    same = np.array_equal(structure.row_indptr, structure.indptr)
    same = same and np.array_equal(structure.row_indices, structure.indices)
    return structure.row_entry if same else structure.row_entry[:0]


@final
class DenseLU(BothWays):
    """LAPACK, called directly: for small systems the wrappers would take longer than the work."""

    def copy(self) -> "DenseLU":
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

    def solved(self, b: FloatArray, transposed: bool) -> FloatArray:
        if not self._dense.size:
            return b.copy()
        matrix, trans = (self._dense.T, 1) if transposed else (self._dense, 0)
        x, _ = dgetrs(self._lu, self._pivots, b, trans=trans)
        x = x + dgetrs(self._lu, self._pivots, b - matrix @ x, trans=trans)[0]
        check_solution(self._norm, x, b, b - matrix @ x)
        return x

    def substitute(self, b: FloatArray, transposed: bool) -> FloatArray:
        """Return A^-1 b or A^-T b, neither refined nor checked."""
        return dgetrs(self._lu, self._pivots, b, trans=int(transposed))[0] if self._dense.size else b.copy()


# --- Which back end suits a system ------------------------------------------------------------------------------------


#: Up to this many unknowns dense LAPACK beats a sparse factorisation, refinement included (docs/performance.md).
DENSE_LIMIT = 100


def factorization_for(n: int) -> Factorization:
    """Return the back end that suits ``n`` unknowns."""
    if n <= DENSE_LIMIT:
        return DenseLU()
    # With NUMBA_DISABLE_JIT=1 there is no calling of BLAS by address.
    return SparseLU() if config.DISABLE_JIT else MultifrontalLU()
