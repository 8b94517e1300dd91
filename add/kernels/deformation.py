"""Deformation gradients of finite elements, symmetric tensors of laws as six numbers, and viscosity of any element.

Six numbers stand for xx, yy, zz, xy, xz, yz. Viscosity does not depend on rotations: a law is a dissipation potential
psi(t, II; p) [W/m^3] of t = tr D [1/s] and II = D : D [1/s^2], D = sym(F^T F_dot) = E_dot (rate of Green's strain), and
the first Piola stress is

    P_v = F S,   S = a I + c D,   a = psi_1,   c = 2 psi_2,

indices of psi its derivatives. With mean dilatation t is the average of tr D over the element, V t = sum_q w_q tr D_q,
and a that of psi_1, so that the volumetric part does not lock: forces stay the slopes by v of sum_q w_q psi(t, II_q).
Along a change of F_dot with L for F_dot and Z = sym(F^T L) the stress changes by

    dS = (psi_11 tr Z + 2 psi_12 D : Z) I + (2 psi_12 tr Z + 4 psi_22 D : Z) D + c Z.

Laws are called by address (`add.materials.viscosity`): one text is compiled once for all of them. ``numbers``
(n_groups, n_p) are the numbers of each group.
"""

import numpy as np
from numba import types

from add.kernels.borrowed import borrowed, place_of
from add.kernels.by_address import Callee, by_address
from add.kernels.caching import INLINED, INNER, THREADED, njit


@njit(**THREADED)
def gradient_of(x, cell, grad, out):
    """Write out = sum_a x_a (x) G_a for one quadrature point; x is flat, three entries a node."""
    for i in range(3):
        for j in range(3):
            out[i, j] = 0.0
    for a in range(cell.size):
        base = 3 * cell[a]
        for i in range(3):
            xi = x[base + i]
            for j in range(3):
                out[i, j] += xi * grad[a, j]


@njit(**THREADED)
def determinant_and_cofactor(f, cof):
    """Return det F and write cof F = J F^-T."""
    cof[0, 0] = f[1, 1] * f[2, 2] - f[1, 2] * f[2, 1]
    cof[0, 1] = f[1, 2] * f[2, 0] - f[1, 0] * f[2, 2]
    cof[0, 2] = f[1, 0] * f[2, 1] - f[1, 1] * f[2, 0]
    cof[1, 0] = f[0, 2] * f[2, 1] - f[0, 1] * f[2, 2]
    cof[1, 1] = f[0, 0] * f[2, 2] - f[0, 2] * f[2, 0]
    cof[1, 2] = f[0, 1] * f[2, 0] - f[0, 0] * f[2, 1]
    cof[2, 0] = f[0, 1] * f[1, 2] - f[0, 2] * f[1, 1]
    cof[2, 1] = f[0, 2] * f[1, 0] - f[0, 0] * f[1, 2]
    cof[2, 2] = f[0, 0] * f[1, 1] - f[0, 1] * f[1, 0]
    return f[0, 0] * cof[0, 0] + f[0, 1] * cof[0, 1] + f[0, 2] * cof[0, 2]


@njit(**THREADED)
def add_scaled(weight, a, out):
    """Add weight A, without a matrix between."""
    for i in range(3):
        for m in range(3):
            out[i, m] += weight * a[i, m]


#: Of what laws call, which are kept with them.


@njit(**INNER)
def cauchy_green(f):
    """Return C = F^T F."""
    return (
        f[0, 0] * f[0, 0] + f[1, 0] * f[1, 0] + f[2, 0] * f[2, 0],
        f[0, 1] * f[0, 1] + f[1, 1] * f[1, 1] + f[2, 1] * f[2, 1],
        f[0, 2] * f[0, 2] + f[1, 2] * f[1, 2] + f[2, 2] * f[2, 2],
        f[0, 0] * f[0, 1] + f[1, 0] * f[1, 1] + f[2, 0] * f[2, 1],
        f[0, 0] * f[0, 2] + f[1, 0] * f[1, 2] + f[2, 0] * f[2, 2],
        f[0, 1] * f[0, 2] + f[1, 1] * f[1, 2] + f[2, 1] * f[2, 2],
    )


@njit(**INNER)
def multiply(f, s, out):
    """Write F S."""
    for i in range(3):
        out[i, 0] = f[i, 0] * s[0] + f[i, 1] * s[3] + f[i, 2] * s[4]
        out[i, 1] = f[i, 0] * s[3] + f[i, 1] * s[1] + f[i, 2] * s[5]
        out[i, 2] = f[i, 0] * s[4] + f[i, 1] * s[5] + f[i, 2] * s[2]


@njit(**INNER)
def add_to(block, weight, s):
    """Add weight S to ``block`` (3, 3)."""
    block[0, 0] += weight * s[0]
    block[1, 1] += weight * s[1]
    block[2, 2] += weight * s[2]
    block[0, 1] += weight * s[3]
    block[1, 0] += weight * s[3]
    block[0, 2] += weight * s[4]
    block[2, 0] += weight * s[4]
    block[1, 2] += weight * s[5]
    block[2, 1] += weight * s[5]


#: A law of viscosity, by address: of numbers (address, count), tr D and D : D it writes to an address.
DISSIPATION = Callee(None, (types.uint64, types.int64, types.float64, types.float64, types.uint64), types.none)
_dissipation = by_address("law of viscosity", lambda: DISSIPATION)
#: Entries of what `add.materials.called_dissipation` returns: addresses of what writes a and c; these, psi_11, 2 psi_12
#: and 4 psi_22; the derivatives of a and c by each number; then the number that a law is a multiple of, or -1.
STRESS, SLOPES, BY_NUMBERS, SCALE = range(4)


@njit(**INLINED)
def strain_rate(f, fd, d):
    """Write D = sym(F^T F_dot) and return its trace."""
    for i in range(3):
        for j in range(i + 1):
            total = 0.0
            for k in range(3):
                total += f[k, i] * fd[k, j] + f[k, j] * fd[k, i]
            d[i, j] = 0.5 * total
            d[j, i] = 0.5 * total
    return d[0, 0] + d[1, 1] + d[2, 2]


@njit(**INLINED)
def double_product(a, b):
    """Return A : B."""
    total = 0.0
    for i in range(3):
        for j in range(3):
            total += a[i, j] * b[i, j]
    return total


@njit(**INLINED)
def _at(tensors, p):
    """Return one of several tensors (3, 3), which lie flat: no references are counted, 20 ns each."""
    return borrowed(tensors, 9 * p, (3, 3))


@njit(**INLINED)
def _rates(e, q, v, elements, f, fd, d, traces):
    """Write F, F_dot, D and tr D at the points of an element, its mean with mean dilatation; return its volume."""
    cells, grads, w, group, mean, _ = elements
    volume, total = 0.0, 0.0
    for p in range(w.shape[1]):
        gradient_of(q, cells[e], grads[e, p], _at(f, p))
        gradient_of(v, cells[e], grads[e, p], _at(fd, p))
        traces[p] = strain_rate(_at(f, p), _at(fd, p), _at(d, p))
        volume += w[e, p]
        total += w[e, p] * traces[p]
    if mean[group[e]]:
        for p in range(w.shape[1]):
            traces[p] = total / volume
    return volume


@njit(**INLINED)
def _evaluate(place, numbers, d, traces, width, out):
    """Write what a function of a law gives at the points of an element to ``out``, ``width`` numbers each."""
    for p in range(traces.size):
        square, row = double_product(_at(d, p), _at(d, p)), borrowed(out, width * p, (width,))
        _dissipation(place, (place_of(numbers), numbers.size, traces[p], square, place_of(row)))


@njit(**INLINED)
def _add_stress(e, p, elements, f, s, out):
    """Add w F S G_a of the nodes a of an element to ``out``, at one of its points."""
    cells, grads, w, _, _, _ = elements
    for i in range(3):
        p0 = w[e, p] * (f[i, 0] * s[0, 0] + f[i, 1] * s[1, 0] + f[i, 2] * s[2, 0])
        p1 = w[e, p] * (f[i, 0] * s[0, 1] + f[i, 1] * s[1, 1] + f[i, 2] * s[2, 1])
        p2 = w[e, p] * (f[i, 0] * s[0, 2] + f[i, 1] * s[1, 2] + f[i, 2] * s[2, 2])
        for a in range(cells.shape[1]):
            gr = grads[e, p, a]
            out[3 * cells[e, a] + i] += p0 * gr[0] + p1 * gr[1] + p2 * gr[2]


@njit(**INLINED)
def _vanishes(law, numbers):
    """Whether a group has no viscosity: neither of the stiffness nor of the number that its law is a multiple of."""
    return numbers[0] == 0.0 and numbers[1] == 0.0 and law[SCALE] >= 0 and numbers[law[SCALE]] == 0.0


@njit(**INLINED)
def _average(w, volume, width, values):
    """Set the first number of every point of an element to its average."""
    total = 0.0
    for p in range(w.size):
        total += w[p] * values[width * p]
    for p in range(w.size):
        values[width * p] = total / volume


@njit(**THREADED)
def viscous_residual(q, v, elements, law, numbers, along, out):
    """Add the viscous forces, w P_v G_a per point and node, to ``out``; those along a change of the numbers if any."""
    cells, _, w, group, mean, _ = elements
    nq, n = w.shape[1], numbers.shape[1]
    f, fd, d, traces = np.empty(9 * nq), np.empty(9 * nq), np.empty(9 * nq), np.empty(nq)
    slopes, by = np.empty(2 * nq), np.empty(2 * n * nq)
    for e in range(cells.shape[0]):
        g = group[e]
        if along.size == 0 and _vanishes(law, numbers[g]):
            continue
        volume = _rates(e, q, v, elements, f, fd, d, traces)
        if along.size == 0:
            _evaluate(law[STRESS], numbers[g], d, traces, 2, slopes)
        else:
            _evaluate(law[BY_NUMBERS], numbers[g], d, traces, 2 * n, by)
            slopes[:] = 0.0
            for p in range(nq):
                for k in range(n):
                    slopes[2 * p] += along[g, k] * by[2 * (n * p + k)]
                    slopes[2 * p + 1] += along[g, k] * by[2 * (n * p + k) + 1]
        if mean[g]:
            _average(w[e], volume, 2, slopes)
        for p in range(nq):
            s = _at(d, p)
            for i in range(3):
                for j in range(3):
                    s[i, j] *= slopes[2 * p + 1]
                s[i, i] += slopes[2 * p]
            _add_stress(e, p, elements, _at(f, p), s, out)


@njit(error_model="numpy", nogil=True)
def _add_outer(scale, a, b, local):
    """Add scale a_k b_l^T to the blocks (k, l) of an element."""
    for k in range(a.shape[0]):
        for l in range(b.shape[0]):
            for i in range(3):
                for j in range(3):
                    local[3 * k + i, 3 * l + j] += scale * a[k, i] * b[l, j]


@njit(**THREADED)
def viscous_jacobian(q, v, elements, law, numbers, weight_q, weight_v, data, slots):
    """Add weight_q dr/dq + weight_v dr/dv to ``data[slots]``.

    With b_a = F G_a, h_a = (weight_v F + weight_q F_dot) G_a, k_a = F D G_a and l_a = (weight_v F + weight_q F_dot) D
    G_a, a point adds to the block (a, b)

        c/2 ((G_a . G_b) F (weight_v F + weight_q F_dot)^T + b_b h_a^T) + weight_q (G_b . S G_a) I
        + psi_11 b_a h_b^T + 2 psi_12 (b_a l_b^T + k_a h_b^T) + 4 psi_22 k_a l_b^T,

    b_a and h_b being those of element sums over V with mean dilatation, in products with psi_11 and psi_12.
    """
    cells, grads, w, group, mean, _ = elements
    nn, nq = cells.shape[1], w.shape[1]
    f, fd, d, traces = np.empty(9 * nq), np.empty(9 * nq), np.empty(9 * nq), np.empty(nq)
    slopes, s, turn = np.empty(5 * nq), np.empty((3, 3)), np.empty((3, 3))
    b, h, along, changed = np.empty((nn, 3)), np.empty((nn, 3)), np.empty((nn, 3)), np.empty((nn, 3))
    sums = np.empty((4, nn, 3))
    local = np.empty((3 * nn, 3 * nn))
    for e in range(cells.shape[0]):
        g = group[e]
        if _vanishes(law, numbers[g]):
            continue
        local[:] = 0.0
        volume, curved, coupled = _rates(e, q, v, elements, f, fd, d, traces), 0.0, False
        _evaluate(law[SLOPES], numbers[g], d, traces, 5, slopes)
        if mean[g]:
            _average(w[e], volume, 5, slopes)
            sums[:] = 0.0
        for p in range(nq):
            f_p, fd_p, d_p, weight = _at(f, p), _at(fd, p), _at(d, p), w[e, p]
            pressure, eta = slopes[5 * p], slopes[5 * p + 1]
            by_both, by_square = weight * slopes[5 * p + 3], weight * slopes[5 * p + 4]
            # s = w c/2 F (weight_v F + weight_q F_dot)^T: the block that (G_a . G_b) multiplies
            for i in range(3):
                for j in range(3):
                    turn[i, j] = weight_v * f_p[i, j] + weight_q * fd_p[i, j]
            for i in range(3):
                for j in range(3):
                    total = 0.0
                    for k in range(3):
                        total += f_p[i, k] * turn[j, k]
                    s[i, j] = 0.5 * eta * weight * total
            for a in range(nn):
                gr = grads[e, p, a]
                for i in range(3):
                    b[a, i] = f_p[i, 0] * gr[0] + f_p[i, 1] * gr[1] + f_p[i, 2] * gr[2]
                    h[a, i] = turn[i, 0] * gr[0] + turn[i, 1] * gr[1] + turn[i, 2] * gr[2]
                    if mean[g]:
                        sums[0, a, i] += weight * b[a, i]
                        sums[1, a, i] += weight * h[a, i]
            if by_both != 0.0 or by_square != 0.0:
                for a in range(nn):
                    for i in range(3):
                        along[a, i], changed[a, i] = 0.0, 0.0
                        for k in range(3):
                            turned = 0.0
                            for m in range(3):
                                turned += d_p[k, m] * grads[e, p, a, m]
                            along[a, i] += f_p[i, k] * turned
                            changed[a, i] += turn[i, k] * turned
                        if mean[g]:
                            sums[2, a, i] += by_both * along[a, i]
                            sums[3, a, i] += by_both * changed[a, i]
                _add_outer(by_square, along, changed, local)
                coupled = True
                if not mean[g]:
                    _add_outer(by_both, b, changed, local)
                    _add_outer(by_both, along, h, local)
            curved += weight * slopes[5 * p + 2]
            by_trace, half = 0.0 if mean[g] else weight * slopes[5 * p + 2], 0.5 * eta * weight
            for a in range(nn):
                ga = grads[e, p, a]
                da0 = d_p[0, 0] * ga[0] + d_p[0, 1] * ga[1] + d_p[0, 2] * ga[2]
                da1 = d_p[1, 0] * ga[0] + d_p[1, 1] * ga[1] + d_p[1, 2] * ga[2]
                da2 = d_p[2, 0] * ga[0] + d_p[2, 1] * ga[1] + d_p[2, 2] * ga[2]
                h0, h1, h2 = half * h[a, 0], half * h[a, 1], half * h[a, 2]
                for bb in range(nn):
                    gb = grads[e, p, bb]
                    dot = ga[0] * gb[0] + ga[1] * gb[1] + ga[2] * gb[2]
                    diag = weight_q * (eta * (gb[0] * da0 + gb[1] * da1 + gb[2] * da2) + pressure * dot)
                    k0, k1, k2 = by_trace * h[bb, 0], by_trace * h[bb, 1], by_trace * h[bb, 2]
                    for i in range(3):
                        row, col = 3 * a + i, 3 * bb
                        local[row, col] += s[i, 0] * dot + b[bb, i] * h0 + b[a, i] * k0
                        local[row, col + 1] += s[i, 1] * dot + b[bb, i] * h1 + b[a, i] * k1
                        local[row, col + 2] += s[i, 2] * dot + b[bb, i] * h2 + b[a, i] * k2
                        local[row, col + i] += weight * diag
        if mean[g]:
            _add_outer(curved / volume**2, sums[0], sums[1], local)
            if coupled:
                _add_outer(1.0 / volume, sums[0], sums[3], local)
                _add_outer(1.0 / volume, sums[2], sums[1], local)
        for i in range(3 * nn):
            for j in range(3 * nn):
                data[slots[e, i, j]] += local[i, j]


@njit(**THREADED)
def viscous_pullback(q, v, lam_vec, elements, law, numbers, out, by_v):
    """Add the products of lam with the derivatives of r by the numbers to ``out`` (n_groups, n_p).

    If ``by_v`` (n,) has any size, it takes lam^T dr/dv = w F dS G_a per point and node, dS along L = grad lam: slopes
    of S by D are symmetric.
    """
    cells, _, w, group, mean, _ = elements
    nq, n = w.shape[1], numbers.shape[1]
    f, fd, d, traces = np.empty(9 * nq), np.empty(9 * nq), np.empty(9 * nq), np.empty(nq)
    rates, changes, works = np.empty(9 * nq), np.empty(nq), np.empty(nq)
    slopes, by = np.empty(5 * nq), np.empty(2 * n * nq)
    for e in range(cells.shape[0]):
        g = group[e]
        volume = _rates(e, q, v, elements, f, fd, d, traces)
        _rates(e, q, lam_vec, elements, f, fd, rates, changes)
        _evaluate(law[BY_NUMBERS], numbers[g], d, traces, 2 * n, by)
        for p in range(nq):
            works[p] = double_product(_at(d, p), _at(rates, p))
            for k in range(n):
                out[g, k] += w[e, p] * (by[2 * (n * p + k)] * changes[p] + by[2 * (n * p + k) + 1] * works[p])
        if by_v.size == 0 or _vanishes(law, numbers[g]):
            continue
        _evaluate(law[SLOPES], numbers[g], d, traces, 5, slopes)
        for p in range(nq):
            slopes[5 * p] = slopes[5 * p + 2] * changes[p] + slopes[5 * p + 3] * works[p]
        if mean[g]:
            _average(w[e], volume, 5, slopes)
        for p in range(nq):
            along = slopes[5 * p + 3] * changes[p] + slopes[5 * p + 4] * works[p]
            s, d_p = _at(rates, p), _at(d, p)
            for i in range(3):
                for j in range(3):
                    s[i, j] = slopes[5 * p + 1] * s[i, j] + along * d_p[i, j]
                s[i, i] += slopes[5 * p]
            _add_stress(e, p, elements, _at(f, p), s, by_v)
