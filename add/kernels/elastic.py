"""Compressible Neo-Hookean elasticity on any element family, with and without mean dilatation.

Per quadrature point F = sum_a x_a (x) G_a, J = det F, I1 = tr F^T F.  Without mean dilatation

    W = mu/2 (I1 - 3) + U(J),   P = mu F + J U'(J) F^-T

with one of two volumetric parts (both include -mu ln J, which makes the rest state free of stress):

    form 0  U = -mu ln J + lambda/2 (ln J)^2
    form 1  U = -mu ln J + lambda/2 ((J^2 - 1)/2 - ln J)        (Ciarlet 1988; the scenes of Geilinger et al. 2020)

With mean dilatation (Simo, Taylor & Pister 1985; F-bar in its variational form) F is replaced by (Theta/J)^(1/3) F,
Theta the volume average of J over the element.  Since det F-bar = Theta,

    E_e = sum_q w_q mu/2 (Theta^(2/3) psi_q - 3) + V U(Theta),   psi = J^(-2/3) I1

is an energy: its tangent is symmetric and momentum is conserved.  With kappa = mu/3 Theta^(-1/3) <psi> + U'(Theta)

    P = mu Theta^(2/3) J^(-2/3) F + (kappa J - mu/3 Theta^(2/3) psi) F^-T.

An inverted point (J <= 0) writes NaN, which the line search rejects.
"""

import numpy as np

from add.kernels.caching import njit

_JIT = {"cache": True, "error_model": "numpy", "nogil": True}


@njit(**_JIT)
def volumetric(form, mu, lam, jac):
    """Return U, U' and U'' at the volume ratio ``jac``."""
    log = np.log(jac)
    if form == 0:
        return (
            -mu * log + 0.5 * lam * log * log,
            (lam * log - mu) / jac,
            (mu - lam * log + lam) / (jac * jac),
        )
    return (
        -mu * log + 0.5 * lam * (0.5 * (jac * jac - 1.0) - log),
        -mu / jac + 0.5 * lam * (jac - 1.0 / jac),
        mu / (jac * jac) + 0.5 * lam * (1.0 + 1.0 / (jac * jac)),
    )


@njit(**_JIT)
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


@njit(**_JIT)
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


@njit(**_JIT)
def squared_norm(f):
    """Return tr F^T F."""
    total = 0.0
    for i in range(3):
        for j in range(3):
            total += f[i, j] * f[i, j]
    return total


@njit(**_JIT)
def dilatation(q, cell, grads, w, f, cof):
    """Return (V, Theta, <psi>) of one element; Theta is NaN where a point is inverted."""
    volume = 0.0
    theta = 0.0
    psi = 0.0
    for p in range(w.size):
        gradient_of(q, cell, grads[p], f)
        jac = determinant_and_cofactor(f, cof)
        if jac <= 0.0:
            return 1.0, np.nan, np.nan
        volume += w[p]
        theta += w[p] * jac
        psi += w[p] * squared_norm(f) * jac ** (-2.0 / 3.0)
    return volume, theta / volume, psi / volume


@njit(**_JIT)
def elastic_energy(q, cells, grads, w, group, form, mean, mu, lam):
    """Return the stored energy [J]."""
    f = np.empty((3, 3))
    cof = np.empty((3, 3))
    total = 0.0
    for e in range(cells.shape[0]):
        g = group[e]
        if mean[g]:
            volume, theta, psi = dilatation(q, cells[e], grads[e], w[e], f, cof)
            u0, _, _ = volumetric(form[g], mu[g], lam[g], theta)
            total += volume * (0.5 * mu[g] * (theta ** (2.0 / 3.0) * psi - 3.0) + u0)
            continue
        for p in range(w.shape[1]):
            gradient_of(q, cells[e], grads[e, p], f)
            jac = determinant_and_cofactor(f, cof)
            u0, _, _ = volumetric(form[g], mu[g], lam[g], jac)
            total += w[e, p] * (0.5 * mu[g] * (squared_norm(f) - 3.0) + u0)
    return total


@njit(**_JIT)
def elastic_residual(q, cells, grads, w, group, form, mean, mu, lam, out):
    """Add dE/dx to ``out``: per point w (alpha F + beta cof F) G_a, the two scalars carrying the whole law."""
    f = np.empty((3, 3))
    cof = np.empty((3, 3))
    for e in range(cells.shape[0]):
        g = group[e]
        theta = 1.0
        kappa = 0.0
        if mean[g]:
            _, theta, psi_mean = dilatation(q, cells[e], grads[e], w[e], f, cof)
            _, u1, _ = volumetric(form[g], mu[g], lam[g], theta)
            kappa = mu[g] / 3.0 * theta ** (-1.0 / 3.0) * psi_mean + u1
        for p in range(w.shape[1]):
            gradient_of(q, cells[e], grads[e, p], f)
            jac = determinant_and_cofactor(f, cof)
            if jac <= 0.0:
                alpha = np.nan
                beta = np.nan
            elif mean[g]:
                alpha = mu[g] * (theta / jac) ** (2.0 / 3.0)
                beta = kappa - alpha * squared_norm(f) / (3.0 * jac)
            else:
                _, u1, _ = volumetric(form[g], mu[g], lam[g], jac)
                alpha = mu[g]
                beta = u1
            for i in range(3):
                p0 = w[e, p] * (alpha * f[i, 0] + beta * cof[i, 0])
                p1 = w[e, p] * (alpha * f[i, 1] + beta * cof[i, 1])
                p2 = w[e, p] * (alpha * f[i, 2] + beta * cof[i, 2])
                for a in range(cells.shape[1]):
                    gr = grads[e, p, a]
                    out[3 * cells[e, a] + i] += p0 * gr[0] + p1 * gr[1] + p2 * gr[2]


@njit(**_JIT)
def elastic_jacobian(q, cells, grads, w, group, form, mean, mu, lam, weight, data, slots):
    """Add ``weight`` d2E/dx2 to ``data[slots]`` (slots: element, row dof, column dof).

    With g_a = F^-T G_a and b_a = F G_a, point by point

        K_ab = c1 (G_a . G_b) I + c2 (b_a g_b^T + g_a b_b^T) + c3 g_a g_b^T + c4 g_b g_a^T,

    to which mean dilatation adds h_a t_b^T + t_a h_b^T + s t_a t_b^T with t = dTheta/dx, h = V d2E/(dx dTheta)/V.
    """
    nn = cells.shape[1]
    f = np.empty((3, 3))
    cof = np.empty((3, 3))
    gi = np.empty((nn, 3))
    bi = np.empty((nn, 3))
    h = np.empty((nn, 3))
    t = np.empty((nn, 3))
    local = np.empty((3 * nn, 3 * nn))
    for e in range(cells.shape[0]):
        g = group[e]
        local[:] = 0.0
        volume = 1.0
        theta = 1.0
        kappa = 0.0
        rank_one = 0.0
        if mean[g]:
            volume, theta, psi_mean = dilatation(q, cells[e], grads[e], w[e], f, cof)
            _, u1, u2 = volumetric(form[g], mu[g], lam[g], theta)
            kappa = mu[g] / 3.0 * theta ** (-1.0 / 3.0) * psi_mean + u1
            rank_one = volume * (u2 - mu[g] / 9.0 * theta ** (-4.0 / 3.0) * psi_mean)
            h[:] = 0.0
            t[:] = 0.0
        for p in range(w.shape[1]):
            gradient_of(q, cells[e], grads[e, p], f)
            jac = determinant_and_cofactor(f, cof)
            for a in range(nn):
                for i in range(3):
                    gi[a, i] = (
                        cof[i, 0] * grads[e, p, a, 0] + cof[i, 1] * grads[e, p, a, 1] + cof[i, 2] * grads[e, p, a, 2]
                    ) / jac
                    bi[a, i] = f[i, 0] * grads[e, p, a, 0] + f[i, 1] * grads[e, p, a, 1] + f[i, 2] * grads[e, p, a, 2]
            wp = weight * w[e, p]
            if mean[g]:
                alpha = mu[g] * (theta / jac) ** (2.0 / 3.0)
                dev = alpha * squared_norm(f)
                c1 = wp * alpha
                c2 = -2.0 / 3.0 * wp * alpha
                c3 = wp * (2.0 / 9.0 * dev + kappa * jac)
                c4 = wp * (dev / 3.0 - kappa * jac)
                hb = 2.0 / 3.0 * w[e, p] * alpha / theta
                hg = -2.0 / 9.0 * w[e, p] * dev / theta
                for a in range(nn):
                    for i in range(3):
                        h[a, i] += hb * bi[a, i] + hg * gi[a, i]
                        t[a, i] += w[e, p] * jac / volume * gi[a, i]
            else:
                _, u1, u2 = volumetric(form[g], mu[g], lam[g], jac)
                c1 = wp * mu[g]
                c2 = 0.0
                c3 = wp * (u1 * jac + u2 * jac * jac)
                c4 = -wp * u1 * jac
            for a in range(nn):
                for b in range(a + 1):
                    diag = c1 * (
                        grads[e, p, a, 0] * grads[e, p, b, 0]
                        + grads[e, p, a, 1] * grads[e, p, b, 1]
                        + grads[e, p, a, 2] * grads[e, p, b, 2]
                    )
                    for i in range(3):
                        for j in range(3):
                            local[3 * a + i, 3 * b + j] += c3 * gi[a, i] * gi[b, j] + c4 * gi[b, i] * gi[a, j]
                        local[3 * a + i, 3 * b + i] += diag
                    if c2 != 0.0:
                        for i in range(3):
                            for j in range(3):
                                local[3 * a + i, 3 * b + j] += c2 * (bi[a, i] * gi[b, j] + gi[a, i] * bi[b, j])
        if mean[g]:
            for a in range(nn):
                for b in range(a + 1):
                    for i in range(3):
                        for j in range(3):
                            local[3 * a + i, 3 * b + j] += weight * (
                                h[a, i] * t[b, j] + t[a, i] * h[b, j] + rank_one * t[a, i] * t[b, j]
                            )
        for a in range(nn):
            for b in range(a + 1):
                for i in range(3):
                    for j in range(3):
                        value = local[3 * a + i, 3 * b + j]
                        data[slots[e, 3 * a + i, 3 * b + j]] += value
                        if a != b:
                            data[slots[e, 3 * b + j, 3 * a + i]] += value


@njit(**_JIT)
def elastic_parameter_vjp(q, lam_vec, cells, grads, w, group, form, mean, n_groups):
    """Return (n_groups, 2): lam . dr/dmu and lam . dr/dlambda; r is linear in both."""
    f = np.empty((3, 3))
    cof = np.empty((3, 3))
    lf = np.empty((3, 3))
    out = np.zeros((n_groups, 2))
    for e in range(cells.shape[0]):
        g = group[e]
        theta = 1.0
        kappa1 = 0.0
        kappa2 = 0.0
        if mean[g]:
            _, theta, psi_mean = dilatation(q, cells[e], grads[e], w[e], f, cof)
            _, u1, _ = volumetric(form[g], 1.0, 0.0, theta)
            kappa1 = theta ** (-1.0 / 3.0) * psi_mean / 3.0 + u1
            _, kappa2, _ = volumetric(form[g], 0.0, 1.0, theta)
        for p in range(w.shape[1]):
            gradient_of(q, cells[e], grads[e, p], f)
            jac = determinant_and_cofactor(f, cof)
            gradient_of(lam_vec, cells[e], grads[e, p], lf)
            lf_f = 0.0
            lf_cof = 0.0
            for i in range(3):
                for j in range(3):
                    lf_f += lf[i, j] * f[i, j]
                    lf_cof += lf[i, j] * cof[i, j]
            if mean[g]:
                alpha = (theta / jac) ** (2.0 / 3.0)
                beta1 = kappa1 - alpha * squared_norm(f) / (3.0 * jac)
                beta2 = kappa2
            else:
                alpha = 1.0
                _, beta1, _ = volumetric(form[g], 1.0, 0.0, jac)
                _, beta2, _ = volumetric(form[g], 0.0, 1.0, jac)
            out[g, 0] += w[e, p] * (alpha * lf_f + beta1 * lf_cof)
            out[g, 1] += w[e, p] * beta2 * lf_cof
    return out


@njit(**_JIT)
def cauchy_stress(q, cells, grads, w, group, form, mean, mu, lam):
    """Return (ne, 3, 3): the volume-averaged Cauchy stress P F^T / J of every element [Pa]."""
    f = np.empty((3, 3))
    cof = np.empty((3, 3))
    out = np.zeros((cells.shape[0], 3, 3))
    for e in range(cells.shape[0]):
        g = group[e]
        theta = 1.0
        kappa = 0.0
        volume = 0.0
        if mean[g]:
            _, theta, psi_mean = dilatation(q, cells[e], grads[e], w[e], f, cof)
            _, u1, _ = volumetric(form[g], mu[g], lam[g], theta)
            kappa = mu[g] / 3.0 * theta ** (-1.0 / 3.0) * psi_mean + u1
        for p in range(w.shape[1]):
            gradient_of(q, cells[e], grads[e, p], f)
            jac = determinant_and_cofactor(f, cof)
            if mean[g]:
                alpha = mu[g] * (theta / jac) ** (2.0 / 3.0)
                beta = kappa - alpha * squared_norm(f) / (3.0 * jac)
            else:
                alpha = mu[g]
                _, beta, _ = volumetric(form[g], mu[g], lam[g], jac)
            volume += w[e, p]
            for i in range(3):
                for j in range(3):
                    total = 0.0
                    for k in range(3):
                        total += (alpha * f[i, k] + beta * cof[i, k]) * f[j, k]
                    out[e, i, j] += w[e, p] * total / jac
        for i in range(3):
            for j in range(3):
                out[e, i, j] /= volume
    return out
