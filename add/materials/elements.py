"""Loops over finite elements that evaluate elastic laws, with and without mean dilatation.

Per quadrature point F = sum_a x_a (x) G_a, and an element stores E = sum_q w_q W(F_q); with mean dilatation it stores
E = sum_q w_q W(F-bar_q), whose stress and tangent are in `add.materials.dilatation`. Laws are called by address
(`add.materials.called`): one text is compiled once for all of them.

All loops take x (3 n,) places of nodes, `Elements`, and by group moduli (n_groups, n_p). Of a law whose numbers differ
from point to point (`Material.by_point`), the group of an element is the first of the nq rows of its points.
"""

from typing import NamedTuple

import numpy as np

from add.kernels.arena import Floats2, Floats4, Ints, Ints2
from add.kernels.caching import CALLED, njit
from add.kernels.deformation import add_scaled, determinant_and_cofactor, gradient_of
from add.materials.called import (
    ROWS,
    law_by_parameters,
    law_energy,
    law_linear_moduli,
    law_stress,
    law_tangent,
)
from add.materials.dilatation import (
    add_blocks,
    add_element,
    contract,
    dilatation,
    dilate,
    dilated_tangent,
    scatter,
)

_JIT = {"error_model": "numpy", "nogil": True}


class Elements(NamedTuple):
    """Elements of one family as loops take them.

    Attributes
    ----------
    cells : (ne, nn) nodes
    gradients : (ne, nq, nn, 3) of the shape functions at the quadrature points [1/m]
    weights : (ne, nq) rest volumes of the points [m^3]
    group : (ne,)
    mean : (n_groups,) whether a group has mean dilatation
    law : (6,) of `add.materials.called.called`
    """

    cells: Ints2
    gradients: Floats4
    weights: Floats2
    group: Ints
    mean: Ints
    law: Ints


@njit(**_JIT)
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


@njit(**_JIT)
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


@njit(**_JIT)
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


@njit(**_JIT)
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


@njit(**_JIT)
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

    ``law`` is what `add.materials.called.called` returns.
    """
    lame, slopes = np.empty((moduli.shape[0], 2)), np.empty((moduli.shape[0], 2, moduli.shape[1]))
    for g in range(moduli.shape[0]):
        lame[g, 0], lame[g, 1] = law_linear_moduli(law, moduli[g], slopes[g])
    return lame, slopes
