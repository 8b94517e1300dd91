"""Deformation gradients of finite elements, symmetric tensors of laws as six numbers, and viscosity of any element.

Six numbers stand for xx, yy, zz, xy, xz, yz. Viscosity does not depend on rotations:
with D = sym(F^T F_dot) = E_dot (rate of Green's strain) the first Piola stress is

    P_v = F (eta D + zeta <tr D> I),    eta = eta_b + nu s,   s = (D : D + FLOOR^2)^((h - 2)/2)

nu s D being Eq. 19 of Geilinger et al. 2020, of the dissipation nu/h |D|^h; h = 2 is linear, and s = 1. Stiffness-
proportional (Rayleigh) damping of factor beta is eta_b = 2 mu beta, zeta = lambda beta: at rest it is beta K v (with
mean dilatation up to the part of tr D that varies inside an element, in 2 mu), and unlike beta K v it does no work on
a rigid rotation. With mean dilatation <tr D> is the element average, so that the volumetric part does not lock;
without, the local value.
"""

import numpy as np

from add.kernels.caching import INNER, THREADED, njit


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


#: Rates below which a viscosity changes no more [1/s]: with h < 2 it would be infinite at rest.
FLOOR = 1e-3


@njit(**THREADED)
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


@njit(**THREADED)
def shear_thinning(d, exponent):
    """Return (s, D : D + FLOOR^2)."""
    n = FLOOR * FLOOR
    for i in range(3):
        for j in range(3):
            n += d[i, j] * d[i, j]
    return n ** (0.5 * (exponent - 2.0)), n


@njit(**THREADED)
def mean_trace(q, v, cell, grads, w, f, fd, d):
    """Return (V, <tr D>) of one element."""
    volume = 0.0
    total = 0.0
    for p in range(w.size):
        gradient_of(q, cell, grads[p], f)
        gradient_of(v, cell, grads[p], fd)
        volume += w[p]
        total += w[p] * strain_rate(f, fd, d)
    return volume, total / volume


@njit(error_model="numpy", inline="always")
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


@njit(**THREADED)
def viscous_residual(q, v, elements, viscosities, along, out):
    """Add the viscous forces along a change of the viscosities, w P_v G_a per point and node, to ``out``.

    ``viscosities`` (4 n_groups,) are eta_b, zeta, nu and h of each group; the forces are linear in the first three:
    ``along`` those, and zero for h, they are the forces themselves.
    """
    cells, grads, w, group, mean, _ = elements
    f = np.empty((3, 3))
    fd = np.empty((3, 3))
    d = np.empty((3, 3))
    for e in range(cells.shape[0]):
        g = group[e]
        nu, exponent = viscosities[4 * g + 2], viscosities[4 * g + 3]
        by_b, zeta, by_nu, by_h = along[4 * g], along[4 * g + 1], along[4 * g + 2], nu * along[4 * g + 3]
        if by_b == 0.0 and zeta == 0.0 and by_nu == 0.0 and by_h == 0.0:
            continue
        trace_mean = 0.0
        if mean[g]:
            _, trace_mean = mean_trace(q, v, cells[e], grads[e], w[e], f, fd, d)
        for p in range(w.shape[1]):
            gradient_of(q, cells[e], grads[e, p], f)
            gradient_of(v, cells[e], grads[e, p], fd)
            trace = strain_rate(f, fd, d)
            if mean[g]:
                trace = trace_mean
            eta = by_b + by_nu
            if exponent != 2.0 or by_h != 0.0:
                s, n = shear_thinning(d, exponent)
                eta = by_b + s * (by_nu + 0.5 * by_h * np.log(n))
            for i in range(3):
                for j in range(3):
                    d[i, j] *= eta
                d[i, i] += zeta * trace
            _add_stress(e, p, elements, f, d, out)


@njit(error_model="numpy", nogil=True)
def _add_outer(scale, a, b, local):
    """Add scale a_k b_l^T to the blocks (k, l) of an element."""
    for k in range(a.shape[0]):
        for l in range(b.shape[0]):
            for i in range(3):
                for j in range(3):
                    local[3 * k + i, 3 * l + j] += scale * a[k, i] * b[l, j]


@njit(**THREADED)
def viscous_jacobian(q, v, elements, viscosities, weight_q, weight_v, data, slots):
    """Add weight_q dr/dq + weight_v dr/dv to ``data[slots]``.

    With b_a = F G_a, d_a = F_dot G_a, h_a = weight_v b_a + weight_q d_a, per point

        dr_a/dv_b = eta/2 ((G_a . G_b) F F^T + b_b b_a^T) + zeta b_a b_b^T
        dr_a/dq_b = eta ((G_b . D G_a) I + b_b d_a^T / 2 + (G_a . G_b) F F_dot^T / 2) + zeta (b_a d_b^T + tr D (G_a .
        G_b) I),

    the zeta products b_a b_b^T, b_a d_b^T being those of element sums over V with mean dilatation; and with k_a =
    F D G_a, l_a = F_dot D G_a, the change of eta adds nu s (h - 2) / (D : D + FLOOR^2) k_a (weight_v k_b + weight_q
    l_b)^T.
    """
    cells, grads, w, group, mean, _ = elements
    nn = cells.shape[1]
    f, fd, d, s = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    b, c, h, m, n = np.empty((nn, 3)), np.empty((nn, 3)), np.empty((nn, 3)), np.empty((nn, 3)), np.empty((nn, 3))
    along, changed = np.empty((nn, 3)), np.empty((nn, 3))
    local = np.empty((3 * nn, 3 * nn))
    for e in range(cells.shape[0]):
        g = group[e]
        by_b, zeta = viscosities[4 * g], viscosities[4 * g + 1]
        nu, exponent = viscosities[4 * g + 2], viscosities[4 * g + 3]
        eta = by_b + nu
        if by_b == 0.0 and zeta == 0.0 and nu == 0.0:
            continue
        local[:] = 0.0
        volume = 1.0
        trace_mean = 0.0
        if mean[g]:
            volume, trace_mean = mean_trace(q, v, cells[e], grads[e], w[e], f, fd, d)
            m[:] = 0.0
            n[:] = 0.0
        for p in range(w.shape[1]):
            gradient_of(q, cells[e], grads[e, p], f)
            gradient_of(v, cells[e], grads[e, p], fd)
            trace = strain_rate(f, fd, d)
            if mean[g]:
                trace = trace_mean
            if exponent != 2.0:
                share, rate = shear_thinning(d, exponent)
                eta = by_b + nu * share
                thinning = w[e, p] * nu * share * (exponent - 2.0) / rate
                for a in range(nn):
                    gr = grads[e, p, a]
                    for i in range(3):
                        along[a, i], changed[a, i] = 0.0, 0.0
                        for k in range(3):
                            turned = d[k, 0] * gr[0] + d[k, 1] * gr[1] + d[k, 2] * gr[2]
                            along[a, i] += f[i, k] * turned
                            changed[a, i] += (weight_v * f[i, k] + weight_q * fd[i, k]) * turned
                _add_outer(thinning, along, changed, local)
            # s = w eta/2 (weight_v F F^T + weight_q F F_dot^T): the block that (G_a . G_b) multiplies
            for i in range(3):
                for j in range(3):
                    total = 0.0
                    for k in range(3):
                        total += f[i, k] * (weight_v * f[j, k] + weight_q * fd[j, k])
                    s[i, j] = 0.5 * eta * w[e, p] * total
            for a in range(nn):
                gr = grads[e, p, a]
                for i in range(3):
                    b[a, i] = f[i, 0] * gr[0] + f[i, 1] * gr[1] + f[i, 2] * gr[2]
                    c[a, i] = fd[i, 0] * gr[0] + fd[i, 1] * gr[1] + fd[i, 2] * gr[2]
                    h[a, i] = weight_v * b[a, i] + weight_q * c[a, i]
                    if mean[g]:
                        m[a, i] += w[e, p] * b[a, i]
                        n[a, i] += w[e, p] * c[a, i]
            point_zeta, half = 0.0 if mean[g] else zeta * w[e, p], 0.5 * eta * w[e, p]
            for a in range(nn):
                ga = grads[e, p, a]
                da0 = d[0, 0] * ga[0] + d[0, 1] * ga[1] + d[0, 2] * ga[2]
                da1 = d[1, 0] * ga[0] + d[1, 1] * ga[1] + d[1, 2] * ga[2]
                da2 = d[2, 0] * ga[0] + d[2, 1] * ga[1] + d[2, 2] * ga[2]
                h0, h1, h2 = half * h[a, 0], half * h[a, 1], half * h[a, 2]
                for bb in range(nn):
                    gb = grads[e, p, bb]
                    dot = ga[0] * gb[0] + ga[1] * gb[1] + ga[2] * gb[2]
                    diag = weight_q * (eta * (gb[0] * da0 + gb[1] * da1 + gb[2] * da2) + zeta * trace * dot)
                    k0, k1, k2 = point_zeta * h[bb, 0], point_zeta * h[bb, 1], point_zeta * h[bb, 2]
                    for i in range(3):
                        row, col = 3 * a + i, 3 * bb
                        local[row, col] += s[i, 0] * dot + b[bb, i] * h0 + b[a, i] * k0
                        local[row, col + 1] += s[i, 1] * dot + b[bb, i] * h1 + b[a, i] * k1
                        local[row, col + 2] += s[i, 2] * dot + b[bb, i] * h2 + b[a, i] * k2
                        local[row, col + i] += w[e, p] * diag
        if mean[g]:
            _add_outer(weight_v * zeta / volume, m, m, local)
            _add_outer(weight_q * zeta / volume, m, n, local)
        for i in range(3 * nn):
            for j in range(3 * nn):
                data[slots[e, i, j]] += local[i, j]


@njit(**THREADED)
def viscous_pullback(q, v, lam_vec, elements, viscosities, out, by_v):
    """Add the products of lam with the derivatives of r by eta_b, zeta, nu and h to ``out`` (4 n_groups,).

    If ``by_v`` (n,) has any size, it takes lam^T dr/dv, w F T G_a per point and node: with L = grad lam and
    S = sym(F^T L), lam . r = w (eta D : S + zeta <tr D> tr S), so that

        T = eta S + zeta <tr S> I + nu s (h - 2) (D : S) / (D : D + FLOOR^2) D
    """
    cells, grads, w, group, mean, _ = elements
    f = np.empty((3, 3))
    fd = np.empty((3, 3))
    d = np.empty((3, 3))
    lf = np.empty((3, 3))
    rates = np.empty((3, 3))
    for e in range(cells.shape[0]):
        g = group[e]
        trace_mean = lam_mean = 0.0
        by_b, zeta = viscosities[4 * g], viscosities[4 * g + 1]
        nu, exponent = viscosities[4 * g + 2], viscosities[4 * g + 3]
        rated = by_v.size > 0 and (by_b != 0.0 or zeta != 0.0 or nu != 0.0)
        if mean[g]:
            _, trace_mean = mean_trace(q, v, cells[e], grads[e], w[e], f, fd, d)
            if rated:
                _, lam_mean = mean_trace(q, lam_vec, cells[e], grads[e], w[e], f, fd, d)
        for p in range(w.shape[1]):
            gradient_of(q, cells[e], grads[e, p], f)
            gradient_of(v, cells[e], grads[e, p], fd)
            trace = strain_rate(f, fd, d)
            if mean[g]:
                trace = trace_mean
            gradient_of(lam_vec, cells[e], grads[e, p], lf)
            by_trace, by_eta = strain_rate(f, lf, rates), 0.0
            for i in range(3):
                for j in range(3):
                    by_eta += d[i, j] * rates[i, j]
            share, rate = shear_thinning(d, exponent)
            out[4 * g] += w[e, p] * by_eta
            out[4 * g + 1] += w[e, p] * trace * by_trace
            out[4 * g + 2] += w[e, p] * share * by_eta
            out[4 * g + 3] += 0.5 * w[e, p] * nu * share * np.log(rate) * by_eta
            if not rated:
                continue
            if mean[g]:
                by_trace = lam_mean
            eta, thinning = by_b + nu * share, nu * share * (exponent - 2.0) / rate * by_eta
            for i in range(3):
                for j in range(3):
                    rates[i, j] = eta * rates[i, j] + thinning * d[i, j]
                rates[i, i] += zeta * by_trace
            _add_stress(e, p, elements, f, rates, by_v)
