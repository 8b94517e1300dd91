"""CHOLMOD, by scikit-sparse, for symmetric positive definite matrices; all others are factored as by default.

Chen, Davis, Hager and Rajamanickam 2008, Algorithm 887. Asked for by ``time.linear_solver: "cholmod"``; the package is
an extra (``pip install add-sim[cholmod]``), which is built against the headers of SuiteSparse.
"""

from importlib.util import find_spec
from typing import Any, NamedTuple, final

import numpy as np
import scipy.sparse as sp

from add.linalg.base import SOLVE_TOLERANCE, BothWays, Factorization, check_solution
from add.linalg.fronts import is_symmetric
from add.linalg.multifrontal import factorization_for
from add.linalg.pattern import Pattern
from add.typing import FloatArray, IntArray

#: Analyses are kept for so many patterns; contacts that come back bring theirs with them.
MOST_ANALYSES = 16


class _Analysis(NamedTuple):
    """Of a pattern; ``mirror`` is where every entry's mirror image is, none where the structure is not symmetric."""

    mirror: IntArray
    symbolic: Any


@final
class Cholmod(BothWays):
    """L D L^T or L L^T by CHOLMOD where the matrix is symmetric and positive definite; otherwise the default back end.

    A matrix counts as symmetric as it does for `MultifrontalLU`: entries equal to their mirror images up to round-off,
    and a positive diagonal. CHOLMOD itself accepts an indefinite matrix in its simplicial mode, so that D > 0 is looked
    at before the factors are used. A solution that refinement leaves inaccurate is found again by the default.

    Raises
    ------
    ImportError
        If scikit-sparse is not installed; see `is_installed`.
    """

    def __init__(self) -> None:
        from sksparse import cholmod

        self._library = cholmod
        self._analyses: dict[int, _Analysis] = {}
        self._factor: Any = None
        self._default: dict[type, Factorization] = {}
        self._other: Factorization | None = None
        self._pattern: Pattern | None = None
        self._data = np.zeros(0)
        #: Factorisations by CHOLMOD, and those left to the default back end.
        self.symmetric, self.others = 0, 0

    @property
    def memory(self) -> int:
        """Bytes of the factors of the default back end; CHOLMOD does not say what its own take."""
        return self._other.memory if self._other is not None else 0

    def copy(self) -> "Cholmod":
        """Return another one, which analyses for itself."""
        return Cholmod()

    def factor(self, pattern: Pattern, data: FloatArray) -> None:
        """Factor; see `Factorization.factor`."""
        self._pattern, self._data = pattern, data[: pattern.nnz].copy()
        self._factor = self._symmetric_factor()
        self._other = None
        if self._factor is not None:
            self.symmetric += 1
            self._norm = float(np.abs(self._data).max(initial=0.0))
        else:
            self._leave()

    def _symmetric_factor(self) -> Any:
        """Return CHOLMOD's factor; None where the matrix is not symmetric and positive definite."""
        pattern = self._pattern
        assert pattern is not None
        if not pattern.n:
            return None
        mirror, symbolic = self._analysis(pattern)
        structure = pattern.indptr, pattern.indices, mirror, pattern.diagonal
        if not (mirror.size and is_symmetric(*structure, self._data)):
            return None
        if symbolic is None:
            symbolic = self._library.analyze(_matrix(pattern, self._data))
            self._analyses[pattern.id] = _Analysis(mirror, symbolic)
        try:
            factor = symbolic.cholesky(_matrix(pattern, self._data))
        except self._library.CholmodNotPositiveDefiniteError:
            return None
        # Written so that NaN counts as bad.
        return factor if np.all(factor.D() > 0.0) else None

    def _analysis(self, pattern: Pattern) -> _Analysis:
        """Return the analysis of a pattern; its symbolic part is made when the first matrix turns out symmetric."""
        known = self._analyses.pop(pattern.id, None) or _Analysis(_mirror(pattern), None)
        while len(self._analyses) >= MOST_ANALYSES:
            self._analyses.pop(next(iter(self._analyses)))
        self._analyses[pattern.id] = known
        return known

    def _leave(self) -> Factorization:
        """Factor the current matrix by the default back end."""
        assert self._pattern is not None
        self.others += 1
        fresh = factorization_for(self._pattern.n)
        other = self._default.setdefault(type(fresh), fresh)
        other.factor(self._pattern, self._data)
        self._other = other
        return other

    def solved(self, b: FloatArray, transposed: bool) -> FloatArray:
        if self._other is None:
            assert self._pattern is not None, "factor first"
            matrix = self._pattern.matrix(self._data)
            matrix = matrix.T.tocsc() if transposed else matrix
            x = np.asarray(self._factor(b))
            x = x + self._factor(b - matrix @ x)
            defect = b - matrix @ x
            if np.all(np.abs(defect).max(axis=0, initial=0.0) <= SOLVE_TOLERANCE * np.abs(b).max(axis=0, initial=0.0)):
                check_solution(self._norm, x, b, defect)
                return x
            self._leave()
        assert self._other is not None
        return self._other.solve_transposed(b) if transposed else self._other.solve(b)

    def substitute(self, b: FloatArray, transposed: bool) -> FloatArray:
        """Return A^-1 b or A^-T b (n, k), neither refined nor checked."""
        if self._other is not None:
            return self._other.substitute(b, transposed)
        return np.asarray(self._factor(b))


def is_installed() -> bool:
    """Whether scikit-sparse can be imported."""
    return find_spec("sksparse") is not None


def cholmod_for(n: int) -> Factorization:
    """Return CHOLMOD whatever the number of unknowns; see `add.linalg.factorization_for`."""
    return Cholmod()


def _matrix(pattern: Pattern, data: FloatArray) -> sp.csc_matrix:
    """Return the matrix of a pattern in the class that scikit-sparse takes without a conversion."""
    matrix = sp.csc_matrix((data, pattern.indices, pattern.indptr), shape=(pattern.n, pattern.n))
    matrix.has_sorted_indices = True
    return matrix


def _mirror(pattern: Pattern) -> IntArray:
    """Return the place of the entry on the other side of the diagonal (nnz,); nothing where one is missing."""
    numbers = np.arange(pattern.nnz, dtype=float)
    turned = sp.csc_matrix(_matrix(pattern, numbers).T)
    turned.sort_indices()
    same = np.array_equal(turned.indptr, pattern.indptr) and np.array_equal(turned.indices, pattern.indices)
    return turned.data.astype(np.int64) if same else np.zeros(0, dtype=np.int64)
