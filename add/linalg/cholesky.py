"""The numbers of a multifrontal Cholesky factorisation: half the work of the LU where the matrix is symmetric."""

from __future__ import annotations

import numpy as np

from add.kernels.caching import njit
from add.linalg.blas import L, N, R, T, potrf, syrk, trsm
from add.linalg.fronts import add_children

#: Entries that differ from their mirror images by this share of sqrt(a_ii a_jj), the most that either can be in a
#: positive definite matrix, count as equal: assembly rounds them differently. The measure knows no units. Refinement
#: with the matrix itself brings back what this leaves out.
ASYMMETRY = 1e-13


@njit(cache=True, nogil=True)
def is_symmetric(indptr, indices, mirror, diagonal, data):
    """Whether the values are symmetric with a positive diagonal; the structure is.

    Parameters
    ----------
    indptr, indices : the structure by columns
    mirror : (nnz,) place of the entry on the other side of the diagonal
    diagonal : (n,) places of the diagonal entries
    data : (nnz,) values
    """
    for j in range(diagonal.size):
        # Written so that NaN counts as bad.
        if not data[diagonal[j]] > 0.0:
            return False
        for e in range(diagonal[j] + 1, indptr[j + 1]):
            i = indices[e]
            difference = data[e] - data[mirror[e]]
            if difference != 0.0 and not (
                abs(difference) <= ASYMMETRY * np.sqrt(data[diagonal[i]]) * np.sqrt(data[diagonal[j]])
            ):
                return False
    return True


@njit(cache=True, nogil=True)
def factorise_symmetric(blas, fronts, data, factors, stack, info):
    """Factor; return whether the matrix is positive definite, without which the factors are of no use.

    A11 becomes L11 L11^T, A21 becomes L21 = A21 L11^-T, and the contribution is A22 - L21 L21^T. Factors lie where
    those of the LU do; the upper halves and the second borders are not touched.

    Parameters
    ----------
    blas : Blas
    fronts : Fronts
    data : (nnz,) values of the matrix
    factors, stack : filled
    info : (1,) int32, room
    """
    top = 0
    for s in range(fronts.pivots.size - 1):
        p = fronts.pivots[s + 1] - fronts.pivots[s]
        b = fronts.border[s + 1] - fronts.border[s]
        m = p + b
        at, panel = fronts.store[s], m * p
        factors[at : at + panel] = 0.0
        for e in range(fronts.entries[s], fronts.entries[s + 1]):
            if fronts.target[e] < panel:
                factors[at + fronts.target[e]] = data[fronts.source[e]]
        bottom = add_children(fronts, s, True, factors, at, m, p, stack, top)
        potrf(blas.potrf, (L, p, factors, at, m, info, 0))
        if info[0] != 0:
            return False
        if b:
            trsm(blas.trsm, (R, L, T, N, b, p, 1.0, factors, at, m, factors, at + p, m))
            beta = 1.0 if bottom < top else 0.0
            syrk(blas.syrk, (L, N, b, p, -1.0, factors, at + p, m, beta, stack, top, b))
            if bottom < top:
                for j in range(b):
                    for i in range(j, b):
                        stack[bottom + j * b + i] = stack[top + j * b + i]
        top = bottom + b * b
    return True
