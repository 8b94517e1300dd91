"""Loops over finite elements that evaluate elastic laws, with and without mean dilatation.

Per quadrature point F = sum_a x_a (x) G_a, J = det F, and an element stores E = sum_q w_q W(F_q). With mean dilatation
(Simo, Taylor & Pister 1985; F-bar in its variational form) F is replaced by

    F-bar = s F,   s = (Theta/J)^(1/3),   Theta = sum_q w_q J_q / V,

the volume average of J, which is det F-bar then. E = sum_q w_q W(F-bar_q) is an energy: its tangent is symmetric and
momentum is conserved. With P-bar = W'(F-bar), tau = P-bar : F-bar and the mean pressure p = sum_q w_q tau_q / (3 V
Theta), the stress that is conjugate to F is

    P = s P-bar - tau/(3 J) cof F + p cof F.

With l = cof F / J, A-bar = W''(F-bar), u = s (A-bar : F-bar + P-bar) and m = F-bar : A-bar : F-bar + tau, the tangent
is at each point

    s^2 A-bar - (u (x) l + l (x) u)/3 + (m/9 + p J) l (x) l - (p J - tau/3) l_in l_jm,

and for the element h (x) t + t (x) h + (sum_q w_q m_q / 9 - V Theta p) t (x) t with the nodal vectors
t_a = sum_q w_q J l G_a / (V Theta) and h_a = sum_q w_q (u/3 - m l/9) G_a.

An inverted point (J <= 0) makes its element's energy and forces NaN, which the line search rejects.

Laws are called by address (`add.materials.formulas`): one text is compiled once for all of them. All loops take x
(3 n,) places of nodes, `Elements`, and by group moduli (n_groups, n_p). Of a law whose numbers differ from point to
point (`Material.by_point`), the group of an element is the first of the nq rows of its points.
"""

from typing import NamedTuple

import numpy as np

from add.kernels.arena import Floats2, Floats4, Ints, Ints2
from add.kernels.caching import CALLED, INLINED, INNER, njit
from add.kernels.deformation import add_scaled, determinant_and_cofactor, gradient_of
from add.materials.formulas import ROWS, law_by_parameters, law_energy, law_linear_moduli, law_stress, law_tangent


@njit(**INLINED)
def dilatation(e, x, cells, grads, w, f, cof, jac):
    """Write F, its cofactor matrix and J at all points of an element; return (V, Theta), NaN if a point is inverted."""
    volume = 0.0
    total = 0.0
    for p in range(w.shape[1]):
        gradient_of(x, cells[e], grads[e, p], f[p])
        jac[p] = determinant_and_cofactor(f[p], cof[p])
        volume += w[e, p]
        total += w[e, p] * jac[p] if jac[p] > 0.0 else np.nan
    return volume, total / volume


@njit(**INLINED)
def dilate(f, cof, jac, theta, f_bar, cof_bar):
    """Write F-bar and its cofactor matrix; return s."""
    s = (theta / jac) ** (1.0 / 3.0)
    for i in range(3):
        for m in range(3):
            f_bar[i, m] = s * f[i, m]
            cof_bar[i, m] = s * s * cof[i, m]
    return s


@njit(**INLINED)
def contract(a, b):
    """Return a : b."""
    total = 0.0
    for i in range(3):
        for m in range(3):
            total += a[i, m] * b[i, m]
    return total


@njit(**INLINED)
def scatter(e, p, stress, grads, w, cells, out):
    """Add w P G_a of one point to the entries of the nodes."""
    for i in range(3):
        p0 = w[e, p] * stress[i, 0]
        p1 = w[e, p] * stress[i, 1]
        p2 = w[e, p] * stress[i, 2]
        for a in range(cells.shape[1]):
            out[3 * cells[e, a] + i] += p0 * grads[e, p, a, 0] + p1 * grads[e, p, a, 1] + p2 * grads[e, p, a, 2]


@njit(**INNER)
def dilated_tangent(s, jac, pressure, f_bar, cof, u, tangent):
    """Turn A-bar into the tangent of one point, and P-bar in ``u`` into u/3 - m l/9; return m."""
    tau = contract(u, f_bar)
    for i in range(3):
        for j in range(3):
            for m in range(3):
                for n in range(3):
                    u[i, m] += (tangent[i, j, m, n] if i <= j else tangent[j, i, n, m]) * f_bar[j, n]
    work = contract(u, f_bar)
    # l = cof F / J is in every product but those of u with itself.
    outer = (work / 9.0 + pressure * jac) / (jac * jac)
    swapped = (pressure * jac - tau / 3.0) / (jac * jac)
    for i in range(3):
        for m in range(3):
            u[i, m] *= s / (3.0 * jac)
    for i in range(3):
        for j in range(i, 3):
            for m in range(3):
                for n in range(3):
                    value = s * s * tangent[i, j, m, n] - u[i, m] * cof[j, n] - cof[i, m] * u[j, n]
                    tangent[i, j, m, n] = value + outer * cof[i, m] * cof[j, n] - swapped * cof[i, n] * cof[j, m]
    for i in range(3):
        for m in range(3):
            u[i, m] = jac * u[i, m] - work / (9.0 * jac) * cof[i, m]
    return work


@njit(**INLINED)
def add_blocks(p, weight, tangent, along, local):
    """Add weight G_b . A_ij . G_c of point p to ``local[i, j, b, c]``, i <= j; point 0 sets it. along[:, b] is G_b."""
    nn = along.shape[1]
    for i in range(3):
        for j in range(i, 3):
            for b in range(nn):
                g0 = weight * along[0, b]
                g1 = weight * along[1, b]
                g2 = weight * along[2, b]
                t0 = g0 * tangent[i, j, 0, 0] + g1 * tangent[i, j, 1, 0] + g2 * tangent[i, j, 2, 0]
                t1 = g0 * tangent[i, j, 0, 1] + g1 * tangent[i, j, 1, 1] + g2 * tangent[i, j, 2, 1]
                t2 = g0 * tangent[i, j, 0, 2] + g1 * tangent[i, j, 1, 2] + g2 * tangent[i, j, 2, 2]
                for c in range(nn):
                    value = t0 * along[0, c] + t1 * along[1, c] + t2 * along[2, c]
                    local[i, j, b, c] = value if p == 0 else local[i, j, b, c] + value


@njit(**INLINED)
def add_element(weight, mean, square, h, t, local, e, data, slots):
    """Add an element's blocks, and with mean dilatation weight (h t^T + t h^T + square t t^T), to ``data[slots]``."""
    nn = h.shape[1]
    if mean:
        for i in range(3):
            for j in range(i, 3):
                for b in range(nn):
                    for c in range(nn):
                        value = h[i, b] * t[j, c] + t[i, b] * h[j, c] + square * t[i, b] * t[j, c]
                        local[i, j, b, c] += weight * value
    for b in range(nn):
        for i in range(3):
            for c in range(nn):
                for j in range(3):
                    value = local[i, j, b, c] if i <= j else local[j, i, c, b]
                    data[slots[e, 3 * b + i, 3 * c + j]] += value


class Elements(NamedTuple):
    """Elements of one family as loops take them.

    Attributes
    ----------
    cells : (ne, nn) nodes
    gradients : (ne, nq, nn, 3) of the shape functions at the quadrature points [1/m]
    weights : (ne, nq) rest volumes of the points [m^3]
    group : (ne,)
    mean : (n_groups,) whether a group has mean dilatation
    law : (6,) of `add.materials.formulas.called`
    """

    cells: Ints2
    gradients: Floats4
    weights: Floats2
    group: Ints
    mean: Ints
    law: Ints


@njit(**INNER)
def _dilated_stress(law, w, volume, theta, moduli, g, f, cof, jac, stress):
    """Write P at every point of an element with mean dilatation; return the mean pressure."""
    f_bar, cof_bar = np.empty((3, 3)), np.empty((3, 3))
    pressure = 0.0
    for p in range(w.size):
        s = dilate(f[p], cof[p], jac[p], theta, f_bar, cof_bar)
        law_stress(law, moduli[g + law[ROWS] * p], f_bar, cof_bar, theta, stress[p])
        tau = contract(stress[p], f_bar)
        pressure += w[p] * tau / (3.0 * volume * theta)
        for i in range(3):
            for m in range(3):
                stress[p, i, m] = s * stress[p, i, m] - tau / (3.0 * jac[p]) * cof[p, i, m]
    for p in range(w.size):
        for i in range(3):
            for m in range(3):
                stress[p, i, m] += pressure * cof[p, i, m]
    return pressure


@njit(**CALLED, nogil=True)
def energy(x, elements, moduli):
    """Return the stored energy [J]; NaN where a point is inverted."""
    cells, grads, w, group, mean, law = elements
    nq = w.shape[1]
    f, cof, jac = np.empty((nq, 3, 3)), np.empty((nq, 3, 3)), np.empty(nq)
    f_bar, cof_bar = np.empty((3, 3)), np.empty((3, 3))
    total = 0.0
    for e in range(cells.shape[0]):
        g = group[e]
        _, theta = dilatation(e, x, cells, grads, w, f, cof, jac)
        if np.isnan(theta):
            return np.nan
        for p in range(nq):
            if mean[g]:
                dilate(f[p], cof[p], jac[p], theta, f_bar, cof_bar)
                total += w[e, p] * law_energy(law, moduli[g + law[ROWS] * p], f_bar, cof_bar, theta)
            else:
                total += w[e, p] * law_energy(law, moduli[g + law[ROWS] * p], f[p], cof[p], jac[p])
    return total


@njit(**INNER)
def residual(x, elements, moduli, out):
    """Add dE/dx; NaN at the nodes of inverted elements."""
    cells, grads, w, group, mean, law = elements
    nq = w.shape[1]
    f, cof, jac, stress = np.empty((nq, 3, 3)), np.empty((nq, 3, 3)), np.empty(nq), np.empty((nq, 3, 3))
    f_p, cof_p, stress_p = f[0], cof[0], stress[0]
    for e in range(cells.shape[0]):
        g = group[e]
        if mean[g] and nq > 1:
            volume, theta = dilatation(e, x, cells, grads, w, f, cof, jac)
            _dilated_stress(law, w[e], volume, theta, moduli, g, f, cof, jac, stress)
            for p in range(nq):
                scatter(e, p, stress[p], grads, w, cells, out)
            continue
        for p in range(nq):
            gradient_of(x, cells[e], grads[e, p], f_p)
            jac_p = determinant_and_cofactor(f_p, cof_p)
            if jac_p > 0.0:
                law_stress(law, moduli[g + law[ROWS] * p], f_p, cof_p, jac_p, stress_p)
            else:
                stress_p[:] = np.nan
            scatter(e, p, stress_p, grads, w, cells, out)


@njit(**INNER)
def jacobian(x, elements, moduli, weight, data, slots):
    """Add weight d2E/dx2 to data[slots] (slots: element, row dof, column dof)."""
    cells, grads, w, group, mean, law = elements
    nq, nn = w.shape[1], cells.shape[1]
    f, cof, jac, stress = np.empty((nq, 3, 3)), np.empty((nq, 3, 3)), np.empty(nq), np.empty((nq, 3, 3))
    f_p, cof_p, u = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    tangent = np.empty((3, 3, 3, 3))
    along, h, t = np.empty((3, nn)), np.empty((3, nn)), np.empty((3, nn))
    local = np.empty((3, 3, nn, nn))
    for e in range(cells.shape[0]):
        g = group[e]
        dilated = mean[g] and nq > 1
        volume, theta, pressure, square = 1.0, 1.0, 0.0, 0.0
        if dilated:
            volume, theta = dilatation(e, x, cells, grads, w, f, cof, jac)
            pressure = _dilated_stress(law, w[e], volume, theta, moduli, g, f, cof, jac, stress)
            square = -volume * theta * pressure
            h[:] = 0.0
            t[:] = 0.0
        for p in range(nq):
            for a in range(nn):
                for i in range(3):
                    along[i, a] = grads[e, p, a, i]
            if dilated:
                s = dilate(f[p], cof[p], jac[p], theta, f_p, cof_p)
                law_tangent(law, moduli[g + law[ROWS] * p], f_p, cof_p, theta, tangent)
                law_stress(law, moduli[g + law[ROWS] * p], f_p, cof_p, theta, u)
                square += w[e, p] / 9.0 * dilated_tangent(s, jac[p], pressure, f_p, cof[p], u, tangent)
                for i in range(3):
                    for m in range(3):
                        u_w, t_w = w[e, p] * u[i, m], w[e, p] / (volume * theta) * cof[p, i, m]
                        for a in range(nn):
                            h[i, a] += u_w * along[m, a]
                            t[i, a] += t_w * along[m, a]
            else:
                gradient_of(x, cells[e], grads[e, p], f_p)
                jac_p = determinant_and_cofactor(f_p, cof_p)
                law_tangent(law, moduli[g + law[ROWS] * p], f_p, cof_p, jac_p, tangent)
            add_blocks(p, weight * w[e, p], tangent, along, local)
        add_element(weight, dilated, square, h, t, local, e, data, slots)


@njit(**INNER)
def _stress_by_moduli(law, w, volume, theta, dilated, moduli, at, out, pressure):
    """Write dP_p/dmoduli (nq, n_p, 3, 3) with the mean pressure held, and what a modulus adds to that (nq, n_p).

    ``moduli`` begin with those of the element, ``at`` is F, its cofactor matrix and J at the points.
    """
    f, cof, jac = at
    f_bar, cof_bar = np.empty((3, 3)), np.empty((3, 3))
    pressure[:] = 0.0
    for p in range(w.size):
        if not dilated:
            law_by_parameters(law, moduli[law[ROWS] * p], f[p], cof[p], jac[p], out[p])
            continue
        s = dilate(f[p], cof[p], jac[p], theta, f_bar, cof_bar)
        law_by_parameters(law, moduli[law[ROWS] * p], f_bar, cof_bar, theta, out[p])
        for k in range(moduli.shape[1]):
            tau = contract(out[p, k], f_bar)
            pressure[p, k] = w[p] * tau / (3.0 * volume * theta)
            for i in range(3):
                for m in range(3):
                    out[p, k, i, m] = s * out[p, k, i, m] - tau / (3.0 * jac[p]) * cof[p, i, m]


@njit(**INNER)
def parameters(x, elements, moduli, indices, forward, along, out):
    """Add dr/dmoduli of ``along`` (n_theta,) at ``indices`` (n_groups, n_p) to ``out`` (n,).

    Or backward: add ``along`` (n,) times dr/dmoduli to ``out`` (n_theta,).
    """
    cells, grads, w, group, mean, law = elements
    nq = w.shape[1]
    f, cof, jac = np.empty((nq, 3, 3)), np.empty((nq, 3, 3)), np.empty(nq)
    n_p = moduli.shape[1]
    by, pressure, gradient = np.empty((nq, n_p, 3, 3)), np.empty((nq, n_p)), np.empty((nq, 3, 3))
    for e in range(cells.shape[0]):
        g = group[e]
        volume, theta = dilatation(e, x, cells, grads, w, f, cof, jac)
        _stress_by_moduli(law, w[e], volume, theta, mean[g], moduli[g:], (f, cof, jac), by, pressure)
        if forward:
            rise = 0.0
            for p in range(nq):
                gradient[p] = 0.0
                for k in range(n_p):
                    dot = along[indices[g + law[ROWS] * p, k]]
                    add_scaled(dot, by[p, k], gradient[p])
                    rise += dot * pressure[p, k]
            for p in range(nq):
                add_scaled(rise, cof[p], gradient[p])
                scatter(e, p, gradient[p], grads, w, cells, out)
            continue
        spread = 0.0
        for p in range(nq):
            gradient_of(along, cells[e], grads[e, p], gradient[p])
            spread += w[e, p] * contract(cof[p], gradient[p])
        for p in range(nq):
            for k in range(n_p):
                bar = w[e, p] * contract(by[p, k], gradient[p]) + pressure[p, k] * spread
                out[indices[g + law[ROWS] * p, k]] += bar


@njit(**CALLED, nogil=True)
def cauchy_stress(x, elements, moduli):
    """Return the volume-averaged Cauchy stress P F^T / J of every element (ne, 3, 3) [Pa]."""
    cells, grads, w, group, mean, law = elements
    nq = w.shape[1]
    f, cof, jac, stress = np.empty((nq, 3, 3)), np.empty((nq, 3, 3)), np.empty(nq), np.empty((nq, 3, 3))
    out = np.zeros((cells.shape[0], 3, 3))
    for e in range(cells.shape[0]):
        g = group[e]
        volume, theta = dilatation(e, x, cells, grads, w, f, cof, jac)
        if mean[g]:
            _dilated_stress(law, w[e], volume, theta, moduli, g, f, cof, jac, stress)
        for p in range(nq):
            if not mean[g]:
                law_stress(law, moduli[g + law[ROWS] * p], f[p], cof[p], jac[p], stress[p])
            for i in range(3):
                for j in range(3):
                    for k in range(3):
                        out[e, i, j] += w[e, p] / (jac[p] * volume) * stress[p, i, k] * f[p, j, k]
    return out


@njit(**CALLED, nogil=True)
def linear_moduli(law, moduli):
    """Return the Lame constants of a law at rest (n_groups, 2) [Pa], and their slopes (n_groups, 2, n_p).

    ``law`` is what `add.materials.formulas.called` returns.
    """
    lame, slopes = np.empty((moduli.shape[0], 2)), np.empty((moduli.shape[0], 2, moduli.shape[1]))
    for g in range(moduli.shape[0]):
        lame[g, 0], lame[g, 1] = law_linear_moduli(law, moduli[g], slopes[g])
    return lame, slopes
