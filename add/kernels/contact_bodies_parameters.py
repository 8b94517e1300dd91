"""Derivatives by the parameters of the contact forces of `contact_bodies.py`, whose symbols these are.

A centre of mass X_c moves the points by -R dX_c (a) or the shapes by -R dX_c (b). Sizes move points and shapes, too: a
radius moves a point or a shape along the normal, which does not turn it, and a half-length moves those features that
stand at its end (`size_ways`).
"""

import math

import numpy as np

from add.kernels.caching import njit
from add.kernels.contact_bodies import cross, evaluate, new_scratch
from add.kernels.contact_detection import frames_of
from add.kernels.contact_pairs import ACTIVE, BITS, FEATURE, add_matrices
from add.kernels.distance import BOX, CYLINDER, RIM_BOTTOM, RIM_TOP, SIDE, SPHERE, TOP
from add.kernels.rotation import turn


@njit(cache=True, error_model="numpy")
def size_ways(o, feature, x, frames, n, out):
    """Fill out (3, 3): columns by which a point moves towards shape o, seen from it, as its three sizes grow.

    x (3,), n (3,)   place of the point and normal in world axes
    """
    shapes = frames.shapes
    kind, R = shapes.kind[o], shapes.R[o]
    out[:] = 0.0
    if kind == BOX:
        for c in range(3):
            side = feature // 9 - 1.0 if c == 0 else (feature // 3 % 3 - 1.0 if c == 1 else feature % 3 - 1.0)
            for r in range(3):
                out[r, c] = -side * R[r, c]
        return
    end = 0.0
    if kind != SPHERE and feature != SIDE:
        end = 1.0 if feature == TOP or feature == RIM_TOP else -1.0
    for r in range(3):
        out[r, 0], out[r, 1] = -n[r], -end * R[r, 2]
    if kind == CYLINDER and end != 0.0:
        out[:, 0] = 0.0
        if feature == RIM_TOP or feature == RIM_BOTTOM:
            X0, X1 = 0.0, 0.0
            for r in range(3):
                y = x[r] - shapes.p[o, r]
                X0, X1 = X0 + R[r, 0] * y, X1 + R[r, 1] * y
            rho = math.sqrt(X0 * X0 + X1 * X1)
            e0, e1 = (X0 / rho, X1 / rho) if rho > 0.0 else (1.0, 0.0)
            for r in range(3):
                out[r, 0] = -(R[r, 0] * e0 + R[r, 1] * e1)


@njit(cache=True, error_model="numpy")
def body_contact_parameters(motion, contacts, law, growth, rows, forward, theta_p, f):
    """Derivatives of r by k_n, k_d, k_t, c_f, c_s, v_s, thickness, centres of mass and sizes, in either direction.

    forward False (vjp)  theta_p (n_theta,) += lam^T dr/dtheta, lam = f (n,) given
    forward True  (jvp)  f (n,) += dr/dtheta theta_p

    With the relative virtual displacement of the two bodies at the place of contact, lam . f = lam_rel . F, and their
    relative virtual rotation Lam: lam . df = lam_rel . dF + Lam . (dl x F). Moving the shape by -R dX_c is moving the
    point by R dX_c as far as the gap goes, but leaves the arms alone; so ds = delta and

        point   delta = -R_a dX_c,  dnu = Omega x (delta - r H delta),  dl = delta - r H delta
        shape   delta =  R_b dX_c,  dnu = -r Omega x H delta,           dl = -r H delta

    A size moves a point by delta = R_a dX - n dradius, as far as both go, and a shape by what `size_ways` says.
    """
    frames, scratch = frames_of(0, motion, contacts), new_scratch()
    q, bodies, B, k = motion.q, contacts.bodies, frames.B, frames.k
    S, L, Z = scratch.S, scratch.L, np.empty((8, 3))
    A, K, M = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    index, grows = np.empty(3, dtype=np.int64), growth.points.shape[0] + growth.shapes.shape[0] > 0
    for pair in range(rows.shape[0]):
        if rows[pair, BITS] & ACTIVE == 0:
            continue
        i, o, a, lever, spin, v_n, _, found = evaluate(pair, 2, motion, contacts, frames, law, True, rows, scratch)
        normal, coulomb, friction, by_k = found
        b, scale = contacts.hosts[o], contacts.arms[i, 4]
        table = contacts.tables[contacts.points[i, 1], contacts.columns[o, 0]]
        n, slide, H, F = S[0], S[2], S[3:6], L[2]
        s_a, s_b = contacts.points[i, 0], bodies[b, 0] if b >= 0 else -1
        A[:], K[:] = 0.0, 0.0
        add_matrices(0.0, 0.0, 0.0, v_n, normal, coulomb, friction, scale, S, A, K)
        m_f = friction[3]
        f_n_kn, f_n_kd, f_c_kn, f_c_kd, f_n_r, f_c_r, m_k, m_c, m_s, m_v = by_k
        layer, static, speed = table[5], table[6], table[7]
        dF, dl, y, z, lam, twist = Z[0], Z[1], Z[2], Z[3], Z[4], Z[5]
        if forward:
            k_n, k_d, k_t, c_f = theta_p[table[0]], theta_p[table[1]], theta_p[table[2]], theta_p[table[3]]
            along_n = scale * (f_n_kn * k_n + f_n_kd * k_d)
            along_t = -scale * (m_f * (f_c_kn * k_n + f_c_kd * k_d) + m_k * k_t + m_c * c_f)
            if layer >= 0:
                along_n += scale * f_n_r * theta_p[layer]
                along_t -= scale * m_f * f_c_r * theta_p[layer]
            if static >= 0:
                along_t -= scale * (m_s * theta_p[static] + m_v * theta_p[speed])
            for c in range(3):
                dF[c], dl[c] = along_n * n[c] + along_t * slide[c], 0.0
        else:
            for c in range(3):
                lam[c], twist[c] = f[s_a + c], 0.0
            if a >= 0:
                turn(1.0, q[s_a + 3 : s_a + 6], f[s_a + 3 : s_a + 6], k[a], twist)
                cross(twist, L[3], y)
                for c in range(3):
                    lam[c] += y[c]
            if b >= 0:
                turn(1.0, q[s_b + 3 : s_b + 6], f[s_b + 3 : s_b + 6], k[b], z)
                cross(z, L[4], y)
                for c in range(3):
                    lam[c] -= f[s_b + c] + y[c]
                    twist[c] -= z[c]
            lam_n = scale * (lam[0] * n[0] + lam[1] * n[1] + lam[2] * n[2])
            lam_t = scale * (lam[0] * slide[0] + lam[1] * slide[1] + lam[2] * slide[2])
            theta_p[table[0]] -= lam_n * f_n_kn - lam_t * m_f * f_c_kn
            theta_p[table[1]] -= lam_n * f_n_kd - lam_t * m_f * f_c_kd
            theta_p[table[2]] += lam_t * m_k
            theta_p[table[3]] += lam_t * m_c
            if layer >= 0:
                theta_p[layer] -= lam_n * f_n_r - lam_t * m_f * f_c_r
            if static >= 0:
                theta_p[static] += lam_t * m_s
                theta_p[speed] += lam_t * m_v
            # Cotangent z of what is crossed by Omega in dnu and is dl: K^T lam x Omega + F x Lam.
            for c in range(3):
                y[c] = K[0, c] * lam[0] + K[1, c] * lam[1] + K[2, c] * lam[2]
            cross(F, twist, z)
            z[0] += y[1] * spin[2] - y[2] * spin[1]
            z[1] += y[2] * spin[0] - y[0] * spin[2]
            z[2] += y[0] * spin[1] - y[1] * spin[0]
        # The centres of mass of both bodies, then the sizes of the point and of the shape.
        for cause in range(4 if grows else 2):
            side = cause % 2
            body = a if side == 0 else b
            if body < 0:
                continue
            sign = -1.0 if side == 0 else 1.0
            keep = 1.0 if side == 0 else 0.0
            for c in range(3):
                if cause < 2:
                    index[c] = bodies[body, 1 + c]
                else:
                    index[c] = growth.points[i, c] if side == 0 else growth.shapes[o, c]
            if index[0] < 0 and index[1] < 0 and index[2] < 0:
                continue
            if cause == 2:
                for r in range(3):
                    for c in range(3):
                        M[r, c] = -n[r] * growth.arms[i, c, 3]
                        for e in range(3):
                            M[r, c] += B[body, r, e] * growth.arms[i, c, e]
            elif cause == 3:
                size_ways(o, rows[pair, FEATURE], scratch.x[0], frames, n, M)
            else:
                for r in range(3):
                    for c in range(3):
                        M[r, c] = sign * B[body, r, c]
            if forward:
                delta, moved = Z[6], Z[7]
                for r in range(3):
                    delta[r] = 0.0
                    for c in range(3):
                        if index[c] >= 0:
                            delta[r] += M[r, c] * theta_p[index[c]]
                for r in range(3):
                    moved[r] = keep * delta[r]
                    for c in range(3):
                        moved[r] -= lever * H[r, c] * delta[c]
                    dl[r] += moved[r]
                y[0] = spin[1] * moved[2] - spin[2] * moved[1]
                y[1] = spin[2] * moved[0] - spin[0] * moved[2]
                y[2] = spin[0] * moved[1] - spin[1] * moved[0]
                for r in range(3):
                    for c in range(3):
                        dF[r] += A[r, c] * delta[c] + K[r, c] * y[c]
            else:
                bar = Z[6]
                for r in range(3):
                    bar[r] = keep * z[r]
                    for c in range(3):
                        bar[r] += A[c, r] * lam[c] - lever * H[r, c] * z[c]
                for c in range(3):
                    if index[c] >= 0:
                        theta_p[index[c]] -= M[0, c] * bar[0] + M[1, c] * bar[1] + M[2, c] * bar[2]
        if forward:
            cross(dl, F, lam)
            for c in range(3):
                f[s_a + c] -= dF[c]
            if a >= 0:
                cross(L[3], dF, y)
                for c in range(3):
                    y[c] += lam[c]
                turn(-1.0, q[s_a + 3 : s_a + 6], y, k[a], y)
                for c in range(3):
                    f[s_a + 3 + c] -= y[c]
            if b >= 0:
                cross(L[4], dF, y)
                for c in range(3):
                    y[c] += lam[c]
                turn(-1.0, q[s_b + 3 : s_b + 6], y, k[b], y)
                for c in range(3):
                    f[s_b + c] += dF[c]
                    f[s_b + 3 + c] += y[c]
