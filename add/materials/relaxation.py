"""Stress that relaxes by a Prony series, and the second Piola stress that it remembers.

With the elastic second Piola stress S(C) of a law at fast motion, g_i the shares of branches and tau_i their times,

    S_total(t) = S - sum_i g_i h_i,    dh_i/dt = (S - h_i) / tau_i

(Simo 1987 for the whole stress: G(t)/G(0) = 1 - sum g_i + sum g_i exp(-t/tau_i)). Over a step dt in which S goes
along a straight line a recursion is exact (Taylor, Pister and Goudreau 1970); x = dt/tau, phi = (1 - exp(-x))/x:

    h_n = m_(n-1) + a S_n,    m_n = e h_n + b S_n,    e = exp(-x),    a = 1 - phi,    b = phi - e.

A step then has the energy density of an elastic law with numbers of its own at every point,

    W_step(F) = (1 - kappa) W(F) - C : M / 2,    kappa = sum_i g_i a_i,    M = sum_i g_i m_i,

so that it has the loops, the tangent and the mean dilatation of elastic laws (`add.materials.elements`).
"""

import functools
from dataclasses import replace

import numpy as np

from add.kernels.borrowed import put
from add.kernels.caching import CALLED, INLINED, INNER, njit
from add.kernels.deformation import gradient_of
from add.materials.elements import contract, dilatation, dilate
from add.materials.formulas import LawFunctions, Material, Modulus, law_by_parameters, law_stress, law_tangent

#: Entries of a symmetric matrix in the order of its six numbers.
ENTRIES = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
#: Numbers of a remembered stress at a point.
N = len(ENTRIES)
_ROW, _COLUMN = (np.array(column) for column in zip(*ENTRIES, strict=True))


@functools.cache
def relaxing(law: Material) -> Material:
    """Return the law of a step: the numbers of ``law``, kappa, and M at every point."""
    n = len(law.parameters)
    of_energy, of_stress, of_tangent, of_by_parameters, of_linear_moduli = law.functions
    kept = CALLED | {"nogil": True, "variant": f"{law.name}-relaxing"}

    @njit(**kept)
    def energy(p, f, cof, jac):
        out = (1.0 - p[n]) * of_energy(p, f, cof, jac)
        for k in range(N):
            r, c = _ROW[k], _COLUMN[k]
            both = 0.5 if r == c else 1.0
            for i in range(3):
                out -= both * f[i, r] * f[i, c] * p[n + 1 + k]
        return out

    @njit(**kept)
    def stress(p, f, cof, jac, out):
        of_stress(p, f, cof, jac, out)
        for i in range(3):
            for m in range(3):
                out[i, m] *= 1.0 - p[n]
            for k in range(N):
                r, c = _ROW[k], _COLUMN[k]
                out[i, r] -= f[i, c] * p[n + 1 + k]
                if r != c:
                    out[i, c] -= f[i, r] * p[n + 1 + k]

    @njit(**kept)
    def tangent(p, f, cof, jac, out):
        of_tangent(p, f, cof, jac, out)
        for i in range(3):
            for j in range(i, 3):
                for m in range(3):
                    for k in range(3):
                        out[i, j, m, k] *= 1.0 - p[n]
            for k in range(N):
                r, c = _ROW[k], _COLUMN[k]
                out[i, i, r, c] -= p[n + 1 + k]
                if r != c:
                    out[i, i, c, r] -= p[n + 1 + k]

    @njit(**kept)
    def by_parameters(p, f, cof, jac, out):
        of_by_parameters(p, f, cof, jac, out)
        of_stress(p, f, cof, jac, out[n])
        for i in range(3):
            for m in range(3):
                for k in range(n):
                    out[k, i, m] *= 1.0 - p[n]
                out[n, i, m] = -out[n, i, m]
        for k in range(N):
            r, c = _ROW[k], _COLUMN[k]
            out[n + 1 + k] = 0.0
            for i in range(3):
                out[n + 1 + k, i, r] -= f[i, c]
                if r != c:
                    out[n + 1 + k, i, c] -= f[i, r]

    @njit(**kept)
    def linear_moduli(p, slopes):
        mu, lame = of_linear_moduli(p, slopes)
        for k in range(n):
            slopes[0, k] *= 1.0 - p[n]
            slopes[1, k] *= 1.0 - p[n]
        slopes[0, n], slopes[1, n] = -mu, -lame
        slopes[:, n + 1 :] = 0.0
        return (1.0 - p[n]) * mu, (1.0 - p[n]) * lame

    remembered = [Modulus(f"memory.{k}", "Pa", "remembered stress") for k in range(N)]
    numbers = (*law.parameters, Modulus("relaxed", "-", "share that has relaxed within the step"), *remembered)
    functions = LawFunctions(energy, stress, tangent, by_parameters, linear_moduli)
    return replace(law, name=f"{law.name}-relaxing", parameters=numbers, make=lambda: functions, by_point=True)


@njit(**INLINED)
def _place(mean, theta, f, cof, jac, f_bar, cof_bar):
    """Write where the law is evaluated; return the factor s of F and det F there."""
    if mean:
        return dilate(f, cof, jac, theta, f_bar, cof_bar), theta
    put(f, f_bar)
    put(cof, cof_bar)
    return 1.0, jac


@njit(**CALLED, nogil=True)
def remembered_stress(x, elements, moduli, out):
    """Write the second Piola stress S = F^-1 P of a law (ne, nq, 6) [Pa], with mean dilatation at F-bar."""
    cells, grads, w, group, mean, law = elements
    nq = w.shape[1]
    f, cof, jac, piola = np.empty((nq, 3, 3)), np.empty((nq, 3, 3)), np.empty(nq), np.empty((3, 3))
    f_bar, cof_bar = np.empty((3, 3)), np.empty((3, 3))
    for e in range(cells.shape[0]):
        g = group[e]
        _, theta = dilatation(e, x, cells, grads, w, f, cof, jac)
        for p in range(nq):
            _, det = _place(mean[g], theta, f[p], cof[p], jac[p], f_bar, cof_bar)
            law_stress(law, moduli[g], f_bar, cof_bar, det, piola)
            _write(cof_bar, piola, det, out[e, p])


@njit(**INNER)
def _slopes(law, p, f_bar, cof_bar, det, piola, tangent, by, second):
    """Write P, its tangent, its derivatives by the numbers, and F^-1 P at a point."""
    law_stress(law, p, f_bar, cof_bar, det, piola)
    law_tangent(law, p, f_bar, cof_bar, det, tangent)
    law_by_parameters(law, p, f_bar, cof_bar, det, by)
    for i in range(3):
        for m in range(3):
            second[i, m] = 0.0
            for j in range(3):
                second[i, m] += cof_bar[j, i] * piola[j, m] / det


@njit(**INLINED)
def _upper(tangent, i, j, m, n):
    """Return an entry of a tangent, of which the law fills those with i <= j."""
    return tangent[i, j, m, n] if i <= j else tangent[j, i, n, m]


@njit(**INLINED)
def _write(cof_bar, piola, det, out):
    """Write the six numbers of F^-1 P."""
    for k in range(N):
        r, c = _ROW[k], _COLUMN[k]
        out[k] = 0.0
        for i in range(3):
            out[k] += cof_bar[i, r] * piola[i, c] / det


@njit(**CALLED, nogil=True)
def push_remembered_stress(x, elements, moduli, x_dot, moduli_dot, out):
    """Write the tangent of `remembered_stress` along places and moduli."""
    cells, grads, w, group, mean, law = elements
    nq, n_p = w.shape[1], moduli.shape[1]
    f, cof, jac = np.empty((nq, 3, 3)), np.empty((nq, 3, 3)), np.empty(nq)
    f_dot, jac_dot = np.empty((nq, 3, 3)), np.empty(nq)
    f_bar, cof_bar, piola, s_f = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    tangent, by, second = np.empty((3, 3, 3, 3)), np.empty((n_p, 3, 3)), np.empty((3, 3))
    for e in range(cells.shape[0]):
        g = group[e]
        volume, theta = dilatation(e, x, cells, grads, w, f, cof, jac)
        theta_dot = 0.0
        for p in range(nq):
            gradient_of(x_dot, cells[e], grads[e, p], f_dot[p])
            jac_dot[p] = contract(cof[p], f_dot[p])
            theta_dot += w[e, p] * jac_dot[p] / volume
        for p in range(nq):
            s, det = _place(mean[g], theta, f[p], cof[p], jac[p], f_bar, cof_bar)
            s_dot = s / 3.0 * (theta_dot / theta - jac_dot[p] / jac[p]) if mean[g] else 0.0
            _slopes(law, moduli[g], f_bar, cof_bar, det, piola, tangent, by, second)
            for i in range(3):
                for m in range(3):
                    s_f[i, m] = s * f_dot[p, i, m] + s_dot * f[p, i, m]
            for i in range(3):
                for m in range(3):
                    piola[i, m] = 0.0
                    for k in range(n_p):
                        piola[i, m] += moduli_dot[g, k] * by[k, i, m]
                    for j in range(3):
                        piola[i, m] -= s_f[i, j] * second[j, m]
                        for n in range(3):
                            piola[i, m] += _upper(tangent, i, j, m, n) * s_f[j, n]
            _write(cof_bar, piola, det, out[e, p])


@njit(**CALLED, nogil=True)
def pull_remembered_stress(x, elements, moduli, bar, x_bar, moduli_bar):
    """Add the cotangents (3 n,) and (n_groups, n_p) of that of S (ne, nq, 6)."""
    cells, grads, w, group, mean, law = elements
    nq, n_p = w.shape[1], moduli.shape[1]
    f, cof, jac = np.empty((nq, 3, 3)), np.empty((nq, 3, 3)), np.empty(nq)
    by_f, by_jac = np.empty((nq, 3, 3)), np.empty(nq)
    f_bar, cof_bar, piola, y = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    tangent, by, second = np.empty((3, 3, 3, 3)), np.empty((n_p, 3, 3)), np.empty((3, 3))
    along = np.empty((3, 3))
    for e in range(cells.shape[0]):
        g = group[e]
        volume, theta = dilatation(e, x, cells, grads, w, f, cof, jac)
        by_theta = 0.0
        for p in range(nq):
            s, det = _place(mean[g], theta, f[p], cof[p], jac[p], f_bar, cof_bar)
            _slopes(law, moduli[g], f_bar, cof_bar, det, piola, tangent, by, second)
            y[:] = 0.0
            for k in range(N):
                r, c = _ROW[k], _COLUMN[k]
                for i in range(3):
                    y[i, c] += cof_bar[i, r] / det * bar[e, p, k]
            for k in range(n_p):
                moduli_bar[g, k] += contract(y, by[k])
            for j in range(3):
                for n in range(3):
                    along[j, n] = 0.0
                    for m in range(3):
                        along[j, n] -= y[j, m] * second[n, m]
                        for i in range(3):
                            along[j, n] += _upper(tangent, i, j, m, n) * y[i, m]
            by_jac[p] = 0.0
            for i in range(3):
                for m in range(3):
                    by_f[p, i, m] = s * along[i, m]
            if mean[g]:
                by_s = contract(along, f[p])
                by_jac[p] = -by_s * s / (3.0 * jac[p])
                by_theta += by_s * s / (3.0 * theta)
        for p in range(nq):
            factor = by_jac[p] + by_theta * w[e, p] / volume
            for i in range(3):
                for m in range(3):
                    value = by_f[p, i, m] + factor * cof[p, i, m]
                    for a in range(cells.shape[1]):
                        x_bar[3 * cells[e, a] + i] += value * grads[e, p, a, m]
