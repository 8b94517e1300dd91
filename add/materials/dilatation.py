"""Mean dilatation of finite elements: the volume average of J, its stress and its tangent, point by point.

Per quadrature point F = sum_a x_a (x) G_a, J = det F. Without mean dilatation an element stores E = sum_q w_q W(F_q).
With mean dilatation (Simo, Taylor & Pister 1985; F-bar in its variational form) F is replaced by

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
"""

import numpy as np

from add.kernels.caching import njit
from add.kernels.deformation import determinant_and_cofactor, gradient_of

_JIT = {"error_model": "numpy", "nogil": True}
_INLINE = _JIT | {"inline": "always"}


@njit(**_INLINE)
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


@njit(**_INLINE)
def dilate(f, cof, jac, theta, f_bar, cof_bar):
    """Write F-bar and its cofactor matrix; return s."""
    s = (theta / jac) ** (1.0 / 3.0)
    for i in range(3):
        for m in range(3):
            f_bar[i, m] = s * f[i, m]
            cof_bar[i, m] = s * s * cof[i, m]
    return s


@njit(**_INLINE)
def contract(a, b):
    """Return a : b."""
    total = 0.0
    for i in range(3):
        for m in range(3):
            total += a[i, m] * b[i, m]
    return total


@njit(**_INLINE)
def scatter(e, p, stress, grads, w, cells, out):
    """Add w P G_a of one point to the entries of the nodes."""
    for i in range(3):
        p0 = w[e, p] * stress[i, 0]
        p1 = w[e, p] * stress[i, 1]
        p2 = w[e, p] * stress[i, 2]
        for a in range(cells.shape[1]):
            out[3 * cells[e, a] + i] += p0 * grads[e, p, a, 0] + p1 * grads[e, p, a, 1] + p2 * grads[e, p, a, 2]


@njit(**_JIT)
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


@njit(**_INLINE)
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


@njit(**_INLINE)
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
