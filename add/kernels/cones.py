"""Projections on the cones of contact, and iterations for complementarity problems over them: sweeps and ADMM.

A problem has m rows: impulses l and velocities u = G l + g, in blocks of one cone each. Blocks are given by ``kind``,
``first`` row and ``bound``:

    FREE       1 row    no condition on l; u = 0                        (a joint)
    HALF_LINE  1 row    0 <= l  _|_  u >= 0                             (a contact without friction)
    DISC       2 rows   |l| <= r,  l = -r u/|u| where u != 0            (friction at a given normal impulse)
    CONE       3 rows   |l_t| <= mu l_n, Signorini in n, l_t = -mu l_n u_t/|u_t| where u_t != 0
    PYRAMID    3 rows   the same with |l_1| <= mu l_n and |l_2| <= mu l_n, each against its own velocity

``bound`` is r or mu. With De Saxce's term s_n = mu |u_t| (PYRAMID: mu (|u_1| + |u_2|)) the last two are complementarity
of l in K and u + s in its dual (De Saxce, Feng 1998); `admm` finds it as Carpentier, Le Lidec, Montaut 2024 do,
`sweeps` by the method of Gauss and Seidel where the problem is convex.
"""

from typing import NamedTuple

import numpy as np
from numba import types

from add.kernels.by_address import when_called
from add.kernels.caching import THREADED, njit
from add.typing import FloatArray, IntArray

FREE, HALF_LINE, DISC, CONE, PYRAMID = 0, 1, 2, 3, 4

#: Weight of the proximal term, as a share of the largest eigenvalue of G.
PROXIMAL = 1e-6


class Blocks(NamedTuple):
    """The cones of the rows.

    Attributes
    ----------
    kind, first : (k,) int64
    bound : (k,) radius of a disc, in the units of l; friction coefficient of a cone or pyramid
    """

    kind: IntArray
    first: IntArray
    bound: FloatArray


@njit(**THREADED)
def block_size(kind):
    """Return the number of rows of a block."""
    return 1 if kind <= HALF_LINE else 2 if kind == DISC else 3


@njit(**THREADED)
def _project_pyramid(mu, l, i, out):
    """Write the closest point of {|l_1|, |l_2| <= mu l_n}: one tangent, then both, may lie beyond the new limit."""
    small, large = min(abs(l[i]), abs(l[i + 1])), max(abs(l[i]), abs(l[i + 1]))
    height = l[i + 2]
    if large > mu * height:
        height = (l[i + 2] + mu * large) / (1.0 + mu * mu)
        if small > mu * height:
            height = (l[i + 2] + mu * (large + small)) / (1.0 + 2.0 * mu * mu)
    height = max(height, 0.0)
    limit = mu * height
    out[i] = min(max(l[i], -limit), limit)
    out[i + 1] = min(max(l[i + 1], -limit), limit)
    out[i + 2] = height


@njit(**THREADED)
def project(blocks, l, out):
    """Write the closest point of the cones to ``l`` (m,)."""
    for b in range(blocks.kind.size):
        i, mu, kind = blocks.first[b], blocks.bound[b], blocks.kind[b]
        if kind == FREE:
            out[i] = l[i]
        elif kind == HALF_LINE:
            out[i] = max(l[i], 0.0)
        elif kind == DISC:
            size = np.sqrt(l[i] ** 2 + l[i + 1] ** 2)
            share = 1.0 if size <= mu else mu / size
            out[i], out[i + 1] = share * l[i], share * l[i + 1]
        elif kind == CONE:
            size, n = np.sqrt(l[i] ** 2 + l[i + 1] ** 2), l[i + 2]
            if size <= mu * n and n >= 0.0:
                share, height = 1.0, n
            elif mu * size <= -n:
                share, height = 0.0, 0.0
            else:
                height = (n + mu * size) / (1.0 + mu * mu)
                share = mu * height / size
            out[i], out[i + 1], out[i + 2] = share * l[i], share * l[i + 1], height
        else:
            _project_pyramid(mu, l, i, out)


@njit(**THREADED)
def add_de_saxce(blocks, u, out):
    """Add De Saxce's term of the velocities ``u`` to the normal rows of ``out``."""
    for b in range(blocks.kind.size):
        i = blocks.first[b]
        if blocks.kind[b] == CONE:
            out[i + 2] += blocks.bound[b] * np.sqrt(u[i] ** 2 + u[i + 1] ** 2)
        elif blocks.kind[b] == PYRAMID:
            out[i + 2] += blocks.bound[b] * (abs(u[i]) + abs(u[i + 1]))


@njit(**THREADED)
def velocity_of(G, l, g):
    """Return u = G l + g."""
    u = G @ l
    for i in range(u.size):
        u[i] += g[i]
    return u


@njit(**THREADED)
def natural_map(blocks, l, u):
    """Return max |l - P_K(l - u - s)| over max(1, |l|): zero at solutions, and nowhere else."""
    shifted, closest = u.copy(), np.empty(l.size)
    add_de_saxce(blocks, u, shifted)
    for i in range(l.size):
        shifted[i] = l[i] - shifted[i]
    project(blocks, shifted, closest)
    worst, largest = 0.0, 1.0
    for i in range(l.size):
        # A comparison with NaN is false: it must not look like a solution.
        if not abs(l[i] - closest[i]) <= worst:
            worst = abs(l[i] - closest[i])
        largest = max(largest, abs(l[i]))
    return worst / largest


class Splitting(NamedTuple):
    """State of `admm`: it can go on from there to a tighter tolerance.

    Attributes
    ----------
    x, z, y : (m,) free copy, feasible copy, dual (minus the velocity)
    rho : (3,) penalty weight, size of its next change, direction of the last one
    """

    x: FloatArray
    z: FloatArray
    y: FloatArray
    rho: FloatArray


@njit(**THREADED)
def new_splitting(m, largest, convex):
    """Return where ADMM begins: no impulse, and the weight that suits the condition number m = 1 / PROXIMAL."""
    rho = np.empty(3)
    rho[0], rho[1], rho[2] = np.sqrt(PROXIMAL) * largest * (1.0 / PROXIMAL) ** (0.4 if convex else 0.2), 1.0, 0.0
    return Splitting(np.zeros(m), np.zeros(m), np.zeros(m), rho)


@njit(**THREADED)
def admm(vectors, values, g, blocks, state, tolerance, most, convex):
    """Iterate until |x - z|, the dual residual and the change of De Saxce's term are below ``tolerance``.

        x <- (G + (eta + rho) I)^-1 (eta x + rho z - y - g - s),    x^ = a x + (1 - a) z_old
        z <- P(x^ + y/rho),    y <- y + rho (x^ - z),    s from y

    ``vectors``, ``values`` are those of G: a new rho costs nothing. A rho that one residual outruns tenfold is changed,
    at most every fifth iteration, by ever smaller factors once the direction has turned. Returns the number of
    iterations, negative if the tolerance was not met.
    """
    m = g.size
    eta = PROXIMAL * values[m - 1]
    ratio = (1.0 / PROXIMAL) ** (0.1 if convex else 0.05)
    relax = 1.5 if convex else 1.0  # over-relaxed, cones fail in one of a hundred piles
    x, z, y, rho = state.x, state.z, state.y, state.rho
    transposed = np.ascontiguousarray(vectors.T)
    shift, old_shift, rhs = np.empty(m), np.zeros(m), np.empty(m)
    x_hat, closest, since = np.empty(m), np.empty(m), 0
    for k in range(most):
        for i in range(m):
            shift[i] = 0.0
        add_de_saxce(blocks, y, shift)
        for i in range(m):
            rhs[i] = eta * x[i] + rho[0] * z[i] - y[i] - g[i] - shift[i]
        along = transposed @ rhs
        for i in range(m):
            along[i] /= values[i] + (eta + rho[0])
        x_new = vectors @ along
        for i in range(m):
            x_hat[i] = relax * x_new[i] + (1.0 - relax) * z[i]
            rhs[i] = x_hat[i] + y[i] / rho[0]
        project(blocks, rhs, closest)
        primal, dual, scale, total = 0.0, 0.0, 1.0, 0.0
        for i in range(m):
            y[i] += rho[0] * (x_hat[i] - closest[i])
            primal = max(primal, abs(x_new[i] - closest[i]))
            dual = max(dual, abs(rho[0] * (closest[i] - z[i]) + eta * (x_new[i] - x[i])))
            dual = max(dual, abs(shift[i] - old_shift[i]))
            scale = max(scale, abs(closest[i]))
            x[i], z[i], old_shift[i] = x_new[i], closest[i], shift[i]
            total += x[i] + y[i]
        primal /= scale
        if not np.isfinite(total):
            return -(k + 1)
        if primal < tolerance and dual < tolerance:
            return k + 1
        since += 1
        way = 1.0 if primal > 10.0 * dual else -1.0 if dual > 10.0 * primal else 0.0
        if since >= 5 and way != 0.0:
            if way * rho[2] < 0.0:
                rho[1] *= 0.8
            rho[2], since = way, 0
            factor = 1.0 + (ratio - 1.0) * rho[1]
            rho[0] = rho[0] * factor if way > 0.0 else rho[0] / factor
    return -most


#: A change of impulses, scaled, that ends the sweeps.
_STILL = 1e-13


@njit(**THREADED)
def disc_minimum(a, b, d, p, q, radius):
    """Return the minimum of (a x^2 + 2 b x y + d y^2)/2 + p x + q y over the disc of this radius.

    On its edge -grad = gamma (x, y), gamma > 0: Newton's method on 1/|x(gamma)| = 1/radius, whose iterates rise to the
    root from the bound |(p, q)|/radius - (largest eigenvalue).
    """
    if radius <= 0.0:
        return 0.0, 0.0
    angle = 0.5 * np.arctan2(2.0 * b, a - d)
    cos, sin = np.cos(angle), np.sin(angle)
    large = 0.5 * (a + d) + np.sqrt((0.5 * (a - d)) ** 2 + b * b)
    small = max((a * d - b * b) / large, 0.0) if large > 0.0 else 0.0
    along, across = cos * p + sin * q, cos * q - sin * p
    size = np.sqrt(p * p + q * q)
    if size == 0.0:
        return 0.0, 0.0
    x, y = 0.0, 0.0
    if small > 0.0:
        x, y = -along / large, -across / small
    if not (small > 0.0 and x * x + y * y <= radius * radius):
        gamma = max(size / radius - large, 0.0)
        for _ in range(60):
            if small + gamma <= 0.0:
                gamma = 1e-300
            x, y = -along / (large + gamma), -across / (small + gamma)
            square = x * x + y * y
            length = np.sqrt(square)
            if length <= radius * (1.0 + 1e-15):
                break
            gamma += (length - radius) / radius * square / (x * x / (large + gamma) + y * y / (small + gamma))
        share = radius / length
        x, y = share * x, share * y
    return cos * x - sin * y, sin * x + cos * y


@njit(**THREADED)
def sweeps(G, g, blocks, l, most):
    """Improve ``l`` (m,) by at most so many sweeps over blocks of free rows, half-lines and discs; return how many."""
    u = velocity_of(G, l, g)
    for sweep in range(most):
        change, largest = 0.0, 1.0
        for k in range(blocks.kind.size):
            i, kind = blocks.first[k], blocks.kind[k]
            if kind in (FREE, HALF_LINE):
                if G[i, i] <= 0.0:
                    continue
                x = l[i] - u[i] / G[i, i]
                if kind == HALF_LINE:
                    x = max(x, 0.0)
                step, second = x - l[i], 0.0
            else:
                a, b, d = G[i, i], 0.5 * (G[i, i + 1] + G[i + 1, i]), G[i + 1, i + 1]
                p, q = u[i] - a * l[i] - b * l[i + 1], u[i + 1] - b * l[i] - d * l[i + 1]
                x, y = disc_minimum(a, b, d, p, q, blocks.bound[k])
                step, second = x - l[i], y - l[i + 1]
                l[i + 1] = y
                for r in range(l.size):
                    u[r] += G[r, i + 1] * second
            l[i] = x
            for r in range(l.size):
                u[r] += G[r, i] * step
            change, largest = max(change, abs(step), abs(second)), max(largest, abs(x))
        if change <= _STILL * largest:
            return sweep + 1
    return most


# --- Eigenvalues and singular values, whose functions take seconds to compile: when a problem needs them first --------


@njit(**THREADED)
def _singular_values(matrix):
    """Return the singular value decomposition; by eigenvalues where LAPACK's divide and conquer does not converge.

    Those of [[0, A], [A^T, 0]] are plus and minus the singular values of A, with the vectors (u, v)/sqrt(2).
    """
    m = matrix.shape[0]
    try:
        return np.linalg.svd(matrix)
    except Exception:
        both = np.zeros((2 * m, 2 * m))
        for r in range(m):
            for c in range(m):
                both[r, m + c] = both[m + c, r] = matrix[r, c]
        values, vectors = np.linalg.eigh(both)
        scale = np.sqrt(2.0)
        left, right = np.empty((m, m)), np.empty((m, m))
        for k in range(m):
            for r in range(m):
                left[r, k] = scale * vectors[r, 2 * m - 1 - k]
                right[k, r] = scale * vectors[m + r, 2 * m - 1 - k]
        return left, np.maximum(values[::-1][:m], 0.0), right


@njit(**THREADED)
def _eigenvalues(A):
    """Return the eigenvalues of a symmetric matrix in ascending order, and its eigenvectors as columns."""
    values, columns = np.linalg.eigh(A)
    return values, np.ascontiguousarray(columns)


_MATRIX, _ANY, _ROW = types.float64[:, ::1], types.float64[:, :], types.float64[::1]
eigenvalues = when_called(_eigenvalues, (_MATRIX,), types.Tuple((_ROW, _MATRIX)))  # type: ignore[attr-defined]
singular_values = when_called(_singular_values, (_MATRIX,), types.Tuple((_ANY, _ROW, _ANY)))  # type: ignore[attr-defined]
