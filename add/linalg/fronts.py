"""The numbers of a multifrontal LU (Duff and Reid 1983, 1984), and of a Cholesky factorisation of symmetric ones."""

import numpy as np

from add.kernels.caching import njit
from add.linalg.blas import L, N, R, T, U, gemm, potrf, syrk, trsm

#: Columns that are eliminated one by one.
BLOCK = 16

#: A pivot below this share of its column's largest entry is round-off: it is replaced.
ROUND_OFF = 1e-14

#: What a replaced pivot becomes, as a share of its column's largest entry: about the square root of round-off, so that
#: neither the change nor the growth that follows outlasts refinement.
REPLACEMENT = 1e-8


@njit(cache=True, nogil=True)
def measure(indptr, indices, data, order, rows, columns, scale):
    """Fill the largest entry of every row and column, and of the columns in the order of elimination, too.

    Returns the (largest, smallest) of the columns; the largest is infinite if an entry is not finite.
    """
    largest, smallest = 0.0, np.inf
    rows[:] = 0.0
    for j in range(columns.size):
        most = 0.0
        for e in range(indptr[j], indptr[j + 1]):
            size, i = abs(data[e]), indices[e]
            if not size < np.inf:
                return np.inf, 0.0
            if size > most:
                most = size
            if size > rows[i]:
                rows[i] = size
        columns[j] = most
        largest, smallest = max(largest, most), min(smallest, most)
    for k in range(order.size):
        scale[k] = columns[order[k]]
    return largest, smallest


@njit(cache=True)
def _swap(x, i, j, stride, count):
    for k in range(count):
        x[i + k * stride], x[j + k * stride] = x[j + k * stride], x[i + k * stride]


@njit(cache=True)
def _swap_rows(x, at, m, low, high, swaps, first, last):
    """Exchange rows of columns first..last of a panel as the elimination of columns low..high decided."""
    for k in range(low, high):
        if swaps[k] != k:
            _swap(x, at + first * m + k, at + first * m + swaps[k], m, last - first)


@njit(cache=True)
def _eliminate_columns(x, at, m, p, low, high, swaps, scale):
    """Eliminate columns low..high one by one; return the number of replaced pivots."""
    replaced = 0
    for k in range(low, high):
        column = x[at + k * m : at + k * m + p]
        r, largest = k, abs(column[k])
        for i in range(k + 1, p):
            size = abs(column[i])
            if size > largest:
                r, largest = i, size
        swaps[k] = r
        if r != k:
            _swap(x, at + low * m + k, at + low * m + r, m, high - low)
        # Written so that NaN is left alone: it shows up in the residual.
        if largest <= ROUND_OFF * scale[k]:
            replaced += 1
            column[k] = -REPLACEMENT * scale[k] if column[k] < 0.0 else REPLACEMENT * scale[k]
        inverse = 1.0 / column[k]
        below = column[k + 1 :]
        for i in range(below.size):
            below[i] *= inverse
        for j in range(k + 1, high):
            factor = x[at + j * m + k]
            if factor != 0.0:
                other = x[at + j * m + k + 1 : at + j * m + p]
                for i in range(other.size):
                    other[i] -= below[i] * factor
    return replaced


@njit(cache=True)
def _eliminate(blas, x, at, m, p, swaps, scale):
    """Factor the p x p block at ``x[at]`` (leading dimension m) with partial pivoting; return the replaced pivots.

    The block is halved again and again so that nearly all work is in large products (Toledo 1997), written as a loop:
    when panel i is done, the last w panels update the next w, w the largest power of two that divides i + 1.
    """
    replaced = 0
    done = 0
    for low in range(0, p, BLOCK):
        high = min(low + BLOCK, p)
        replaced += _eliminate_columns(x, at, m, p, low, high, swaps, scale)
        _swap_rows(x, at, m, low, high, swaps, 0, low)
        done += 1
        width = (done & -done) * BLOCK
        end = min(high + width, p)
        if end > high:
            start, count = high - width, end - high
            _swap_rows(x, at, m, start, high, swaps, high, end)
            left, right = at + start * m, at + high * m
            trsm(blas.trsm, (L, L, N, U, width, count, 1.0, x, left + start, m, x, right + start, m))
            sizes = (p - high, count, width)
            gemm(blas.gemm, (N, N, *sizes, -1.0, x, left + high, m, x, right + start, m, 1.0, x, right + high, m))
    return replaced


@njit(cache=True)
def _gather(x, at, m, p, child, local, y, top):
    """Add a child's contribution at ``y[child]`` to its parent's panel and border at ``x[at]``, and to ``y[top]``."""
    size = local.size
    b = m - p
    border = at + m * p
    within = 0
    while within < size and local[within] < p:
        within += 1
    for j in range(within):
        source = y[child + j * size : child + (j + 1) * size]
        column = x[at + local[j] * m : at + (local[j] + 1) * m]
        for i in range(size):
            column[local[i]] += source[i]
    for j in range(within, size):
        source = y[child + j * size : child + (j + 1) * size]
        row = local[j] - p
        for i in range(within):
            x[border + local[i] * b + row] += source[i]
        column = y[top + row * b : top + (row + 1) * b]
        for i in range(within, size):
            column[local[i] - p] += source[i]


@njit(cache=True)
def _gather_lower(x, at, m, p, child, local, y, top):
    """Add the lower half of a child's contribution to its parent, as `_gather` does with all of it.

    Rows of a border are in order, so that what is below the diagonal stays there.
    """
    size = local.size
    b = m - p
    for j in range(size):
        source = y[child + j * size : child + (j + 1) * size]
        if local[j] < p:
            column = x[at + local[j] * m : at + (local[j] + 1) * m]
            for i in range(j, size):
                column[local[i]] += source[i]
        else:
            first = top + (local[j] - p) * b
            column = y[first : first + b]
            for i in range(j, size):
                column[local[i] - p] += source[i]


@njit(cache=True)
def add_children(fronts, s, lower, x, at, m, p, y, top):
    """Gather the contributions of a front's children, or their lower halves, the last on y; return where they begin.

    Their sum over the border is left at ``y[top]``, where there is a child with rows.
    """
    first, last = fronts.children[s], fronts.children[s + 1]
    bottom = top
    for k in range(first, last):
        c = fronts.child[k]
        bottom -= (fronts.border[c + 1] - fronts.border[c]) ** 2
    if bottom < top:
        y[top : top + (m - p) ** 2] = 0.0
        place = bottom
        for k in range(first, last):
            c = fronts.child[k]
            local = fronts.local[fronts.border[c] : fronts.border[c + 1]]
            if lower:
                _gather_lower(x, at, m, p, place, local, y, top)
            else:
                _gather(x, at, m, p, place, local, y, top)
            place += local.size**2
    return bottom


@njit(cache=True, nogil=True)
def factorise(blas, fronts, data, scale, factors, swaps, stack):
    """Factor; return the number of replaced pivots.

    A front is P [A11 A12; A21 A22] with its p pivots first. It becomes L11 U11 = P A11, L21 = A21 U11^-1,
    U12 = L11^-1 P A12, and its contribution A22 - L21 U12 waits on the stack for the parent.

    Parameters
    ----------
    blas : Blas
    fronts : Fronts
    data : (nnz,) values of the matrix
    scale : (n,) largest entry of every column, in the order of elimination
    factors, swaps, stack : filled
    """
    top = 0
    replaced = 0
    for s in range(fronts.pivots.size - 1):
        low, high = fronts.pivots[s], fronts.pivots[s + 1]
        p = high - low
        b = fronts.border[s + 1] - fronts.border[s]
        m = p + b
        at = fronts.store[s]
        border = at + m * p
        factors[at : fronts.store[s + 1]] = 0.0
        for e in range(fronts.entries[s], fronts.entries[s + 1]):
            factors[at + fronts.target[e]] = data[fronts.source[e]]
        bottom = add_children(fronts, s, False, factors, at, m, p, stack, top)
        replaced += _eliminate(blas, factors, at, m, p, swaps[low:high], scale[low:high])
        if b:
            _swap_rows_of_border(factors, border, b, swaps[low:high])
            trsm(blas.trsm, (R, U, N, N, b, p, 1.0, factors, at, m, factors, at + p, m))
            if p > 1:
                trsm(blas.trsm, (R, L, T, U, b, p, 1.0, factors, at, m, factors, border, b))
            beta = 1.0 if bottom < top else 0.0
            gemm(blas.gemm, (N, T, b, b, p, -1.0, factors, at + p, m, factors, border, b, beta, stack, top, b))
            if bottom < top:
                made, kept = stack[top : top + b * b], stack[bottom : bottom + b * b]
                for i in range(made.size):
                    kept[i] = made[i]
        top = bottom + b * b
    return replaced


@njit(cache=True)
def _swap_rows_of_border(x, border, b, swaps):
    """Exchange rows of U12; it is stored transposed, so they are columns."""
    for k in range(swaps.size):
        if swaps[k] != k:
            _swap(x, border + k * b, border + swaps[k] * b, 1, b)


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
