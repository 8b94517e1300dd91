"""Linear solves with rows that hold points, without a saddle-point matrix."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from add.errors import SolverError
from add.kernels.borrowed import put
from add.kernels.caching import njit
from add.linalg.base import Factorization, LinearSolve
from add.linalg.pattern import Pattern
from add.typing import FloatArray, IntArray

#: The penalty, as a multiple of the mean diagonal entry of the step's matrix. A pass leaves about its inverse of the
#: rows' defect.
PENALTY = 1e6

#: Two or three passes reach round-off; more only where a row has next to nothing to hold.
MAX_PASSES = 12

#: Share of increments and reactions that the next pass may still be expected to change: for derivatives, which are
#: solved for once, and for Newton's increments, whose rest the next iteration finds.
PASS_TOLERANCE = 1e-13
INCREMENT_TOLERANCE = 1e-11

#: What the balance of forces may be wrong by at the end, as a share of the largest number in it.
DEFECT_TOLERANCE = 1e-6


@final
@dataclass(frozen=True)
class Rows:
    """A matrix of which three rows at a time touch few columns.

    Attributes
    ----------
    index : (k, m) columns; -1 for none
    blocks : (k, 3, m)
    """

    index: IntArray
    blocks: FloatArray


@final
class AugmentedSolve(LinearSolve):
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
    pattern, data : K
    by_v, by_u : G and G_u
    penalty : p
    """

    def __init__(
        self,
        factorization: Factorization,
        pattern: Pattern,
        data: FloatArray,
        by_v: Rows,
        by_u: Rows,
        penalty: float,
    ) -> None:
        self.factorization = factorization
        self.pattern, self.data, self.by_v, self.by_u = pattern, data, by_v, by_u
        self.penalty = penalty

    def solve(self, b: FloatArray) -> FloatArray:
        """Return x and y, stacked, for b and c, stacked: (n + m,) or (n + m, k).

        Raises
        ------
        SolverError
            If the balance of forces is not reached.
        """
        return self._passes(b, False, self.by_v, self.by_u, PASS_TOLERANCE)

    def increment(self, b: FloatArray) -> FloatArray:
        """Return the same as accurately as an iteration of Newton's needs it, in fewer passes."""
        return self._passes(b, False, self.by_v, self.by_u, INCREMENT_TOLERANCE)

    def solve_transposed(self, b: FloatArray) -> FloatArray:
        """Return the solution of the transposed system."""
        return self._passes(b, True, self.by_u, self.by_v, PASS_TOLERANCE)

    def _passes(self, b: FloatArray, transposed: bool, columns: Rows, rows: Rows, tolerance: float) -> FloatArray:
        """Return the solution by passes with bare substitutions, or, where these do not get there, with refined solves.

        Those may also leave A to another back end.
        """
        given = np.ascontiguousarray(b).reshape(b.shape[0], -1)
        refined = self.factorization.solve_transposed if transposed else self.factorization.solve
        for solve in (lambda rhs: self.factorization.substitute(rhs, transposed), refined):
            out, accepted = self._iterate(solve, given, transposed, columns, rows, tolerance)
            if accepted:
                return out.reshape(b.shape)
        raise SolverError("the increments of held points are not found: the Jacobian is singular or close to it")

    def _iterate(
        self,
        solve: Callable[[FloatArray], FloatArray],
        b: FloatArray,
        transposed: bool,
        columns: Rows,
        rows: Rows,
        tolerance: float,
    ) -> tuple[FloatArray, bool]:
        """Return x and y, stacked (n + m, j), and whether the balance of forces is reached in every column."""
        n, p, pattern = self.pattern.n, self.penalty, self.pattern
        out = np.zeros_like(b)
        defect, rhs = b.copy(), np.empty((n, b.shape[1]))
        most = np.empty(b.shape[1])
        matrix = pattern.indptr, pattern.indices, self.data, transposed
        equations = matrix, (columns.index, columns.blocks), (rows.index, rows.blocks)
        size = np.inf
        for k in range(MAX_PASSES):
            _right_hand_side(columns.index, columns.blocks, p, defect, rhs)
            step = solve(rhs)
            last, size = size, float(_advance(rows.index, rows.blocks, p, step, defect, out))
            # Zeros converge, NaN does not.
            if k and size * size <= tolerance * last:
                return out, True
            _defect(*equations, out, b, defect, most)
            if k and not size <= 0.5 * last:
                break
        # The rows' own defects are left out: where they contradict each other they cannot all be zero.
        wrong = np.abs(defect[:n]).max(axis=0, initial=0.0)
        return out, bool(np.all(wrong <= DEFECT_TOLERANCE * most))


@njit(cache=True, error_model="numpy")
def _add_times(index, blocks, factor, x, out):
    """Add factor times the rows' product with x (n, j) to out (3 k, j)."""
    for k in range(index.shape[0]):
        for a in range(3):
            for m in range(index.shape[1]):
                if index[k, m] >= 0:
                    for j in range(x.shape[1]):
                        out[3 * k + a, j] += factor * blocks[k, a, m] * x[index[k, m], j]


@njit(cache=True, error_model="numpy")
def _add_transposed(index, blocks, factor, y, out):
    """Add factor times the transposed rows' product with y (3 k, j) to out (n, j)."""
    for k in range(index.shape[0]):
        for a in range(3):
            for m in range(index.shape[1]):
                if index[k, m] >= 0:
                    for j in range(y.shape[1]):
                        out[index[k, m], j] += factor * blocks[k, a, m] * y[3 * k + a, j]


@njit(cache=True, error_model="numpy")
def _right_hand_side(index, blocks, p, defect, rhs):
    """Fill rhs (n, j) with b' + p G^T c', for the defects b', c', stacked."""
    n = rhs.shape[0]
    put(defect[:n], rhs)
    _add_transposed(index, blocks, p, defect[n:], rhs)


@njit(cache=True, error_model="numpy")
def _share(part, whole):
    """The largest entry of a part over that of the whole; NaN if an entry is not finite."""
    largest = size = nothing = 0.0
    for i in range(part.shape[0]):
        for j in range(part.shape[1]):
            largest = max(largest, abs(part[i, j]))
            size = max(size, abs(whole[i, j]))
            nothing += 0.0 * part[i, j]
    return largest / max(size, 1e-300) + nothing


@njit(cache=True, error_model="numpy")
def _advance(index, blocks, p, step, defect, out):
    """Add a pass to x and y, stacked; return the share that it changes.

    Increments and reactions have different units: the larger share of either counts.
    """
    n = step.shape[0]
    reaction = np.empty((out.shape[0] - n, out.shape[1]))
    for i in range(reaction.shape[0]):
        for j in range(reaction.shape[1]):
            reaction[i, j] = -p * defect[n + i, j]
    _add_times(index, blocks, p, step, reaction)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] += step[i, j] if i < n else reaction[i - n, j]
    increments, reactions = _share(step, out[:n]), _share(reaction, out[n:])
    return max(increments, reactions) if increments + reactions < np.inf else np.nan


@njit(cache=True, error_model="numpy")
def _defect(matrix, columns, rows, out, b, defect, most):
    """Fill the defects: b - K x - G^T y, or with K^T, and c - G_u x; K in compressed columns.

    ``most`` (j,) takes the largest product or number of b in the first of them, column by column.
    """
    (indptr, indices, data, transposed), (column_index, column_blocks), (row_index, row_blocks) = matrix, columns, rows
    n = indptr.size - 1
    x, y = out[:n], out[n:]
    put(b, defect)
    most[:] = 0.0
    for c in range(n):
        for j in range(x.shape[1]):
            most[j] = max(most[j], abs(b[c, j]))
        for k in range(indptr[c], indptr[c + 1]):
            to, come = (c, indices[k]) if transposed else (indices[k], c)
            for j in range(x.shape[1]):
                product = data[k] * x[come, j]
                defect[to, j] -= product
                most[j] = max(most[j], abs(product))
    _add_transposed(column_index, column_blocks, -1.0, y, defect[:n])
    _add_times(row_index, row_blocks, -1.0, x, defect[n:])
