"""Rows that hold touching pairs against sliding, with all their derivatives.

For a pair in contact (symbols of `contact.py` and `body_contact.py`), with the projector P = I - n n^T and the rotation
R_o of the shape,

    c = R_o^T P v_rel = 0,        generalised force on the coordinates  -(dc/dv)^T lam,

is sticking of hybrid friction (Geilinger et al. 2020, section 4.3): lam (3,) [N], in the axes of the shape, holds the
point with the force -P R_o lam. Three rows of rank two need no tangents, whose choice would have to be differentiated;
what lam has along n does nothing.

A point that has gone into a shape would be held by its place inside. The points of a body's face that leans a little go
in to different depths; held there, they could bear a torque, and the body could not rock. So bodies are held where the
surfaces meet: v_rel and the arms are those of the place c - g n, with the gap g of the point in place of the radius.

In axes that turn with the shape, c depends on ds and dnu by

    dc = P dnu - (v_n H + n (H v_rel)^T) ds,        d(-P lam) = ((n . lam) H + n (H lam)^T) ds.

`body_derivatives.py` turns such pairs (A, K) into derivatives by the coordinates.
"""

import numpy as np

from add.kernels.caching import njit
from add.kernels.contact_bodies import cross, evaluate
from add.kernels.contact_bodies_jacobian import fill_block, force_derivative
from add.kernels.contact_detection import TURN, body_states, point_place, shape_frames
from add.kernels.contact_laws import NONE
from add.kernels.contact_nodes import ACTIVE, FEATURE_SHIFT, HELD, NO_SPIN, _to_frame, evaluate_pair
from add.kernels.distance import distance_branch, distance_feature


@njit(cache=True, error_model="numpy")
def held_pairs(codes):
    """Pairs (k, 2) of points and shapes that are held, row by row of the codes."""
    n = 0
    for i in range(codes.shape[0]):
        for o in range(codes.shape[1]):
            if codes[i, o] & HELD != 0:
                n += 1
    pairs = np.empty((n, 2), dtype=np.int64)
    k = 0
    for i in range(codes.shape[0]):
        if k == n:
            break
        for o in range(codes.shape[1]):
            if codes[i, o] & HELD != 0:
                pairs[k, 0], pairs[k, 1] = i, o
                k += 1
    return pairs


@njit(cache=True, error_model="numpy", inline="always")
def _project(n, u, out):
    """Fill out with u - (n . u) n."""
    along = n[0] * u[0] + n[1] * u[1] + n[2] * u[2]
    for a in range(3):
        out[a] = u[a] - along * n[a]
    return along


@njit(cache=True, error_model="numpy")
def _slope(along, n, H, u, out):
    """Fill out (3, 3) with along H + n (H u)^T."""
    for c in range(3):
        Hu = H[c, 0] * u[0] + H[c, 1] * u[1] + H[c, 2] * u[2]
        for r in range(3):
            out[r, c] = along * H[r, c] + n[r] * Hu


@njit(cache=True, error_model="numpy")
def held_nodes(
    x, v, scale, group, kind, size, R, p, V, W, k_n, k_d, k_t, c_f, onset, ramp, coulomb_total, codes, pairs, lam,
    rows, by_v, by_q, geometric, limit, stiffness,
):  # fmt: skip
    """Rows c (k, 3) of nodes held on obstacles of the world, in world axes, and their derivatives.

    by_v, by_q (k, 3, 3) are dc/dv and dc/dx, geometric (k, 3, 3) is d(by_v^T lam)/dx. limit (k,) is Coulomb's c_f f_c
    [N], -1 where the pair does not touch; stiffness (k,) is that of the linear law [N s/m].
    """
    S, y = np.zeros((9, 3)), np.empty(3)
    for k in range(pairs.shape[0]):
        i, o = pairs[k, 0], pairs[k, 1]
        b, code = group[i], int(codes[i, o])
        if code & ACTIVE == 0:
            X0, X1, X2 = _to_frame(i, o, x, R, p)
            code = HELD | distance_feature(kind[o], size[o], X0, X1, X2) << FEATURE_SHIFT
        _, v_n, _, coulomb, _, _ = evaluate_pair(
            i, o, x, v, kind, size, R, p, V, W,
            k_n[b, o], k_d[b, o], k_t[b, o], c_f[b, o], onset[b, o], ramp[b, o],
            NONE, coulomb_total, True, code, 2, S, 0.0, NO_SPIN,
        )  # fmt: skip
        limit[k] = scale[i] * c_f[b, o] * coulomb[0] if code & ACTIVE != 0 else -1.0
        stiffness[k] = scale[i] * k_t[b, o]
        n, v_rel, H = S[0], S[1], S[3:6]
        _project(n, v_rel, rows[k])
        _slope(-v_n, n, H, v_rel, by_q[k])
        for c in range(3):
            # -n (H v_rel)^T, and P times -[W].
            for r in range(3):
                by_q[k, r, c] -= 2.0 * n[r] * (H[c, 0] * v_rel[0] + H[c, 1] * v_rel[1] + H[c, 2] * v_rel[2])
                by_v[k, r, c] = -n[r] * n[c]
            by_v[k, c, c] += 1.0
        for c in range(3):
            S[6, 0], S[6, 1], S[6, 2] = 0.0, 0.0, 0.0
            S[6, c] = 1.0
            cross(W[o], S[6], y)
            _project(n, y, S[7])
            for r in range(3):
                by_q[k, r, c] -= S[7, r]
        along = n[0] * lam[k, 0] + n[1] * lam[k, 1] + n[2] * lam[k, 2]
        _slope(along, n, H, lam[k], geometric[k])
        for r in range(3):
            for c in range(3):
                geometric[k, r, c] *= -1.0


@njit(cache=True, error_model="numpy")
def _turned_back(R, D, out):
    """Fill out with R^T D; R (3, 3), D (3, m)."""
    for r in range(3):
        for c in range(D.shape[1]):
            out[r, c] = R[0, r] * D[0, c] + R[1, r] * D[1, c] + R[2, r] * D[2, c]


@njit(cache=True, error_model="numpy")
def held_bodies(
    t, q, v, theta, bodies, points, arms, kind, size, hosts, poses, tables, depths, coulomb_total, codes, pairs, lam,
    rows, by_v, by_q, geometric, by_centre, geometric_by_centre, limit, stiffness,
):  # fmt: skip
    """As `held_nodes` for points and shapes on bodies: columns are those of the point's carrier, then the shape's.

    by_v, by_q (k, 3, 12), geometric (k, 12, 12): coordinates (x, w) of a, then of b; a node has the first three alone.
    by_centre (k, 3, 6) and geometric_by_centre (k, 12, 6) are the derivatives of c and by_v^T lam by the centres of
    mass of a and of b. `codes` is completed for pairs that do not touch: pass a copy.
    """
    nb, ns = bodies.shape[0], kind.size
    B, coefficients = np.empty((nb, 13, 3)), np.empty((nb, 6))
    R, p, V, W = np.empty((ns, 3, 3)), np.empty((ns, 3)), np.empty((ns, 3)), np.empty((ns, 3))
    body_states(2, q, v, theta, bodies, B, coefficients)
    shape_frames(t, hosts, poses, B, R, p, V, W)
    x, u, S, L, tau = np.empty((1, 3)), np.empty((1, 3)), np.zeros((9, 3)), np.empty((5, 3)), np.empty(3)
    A, K, C, G, P = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    M = np.empty((3, 3))
    A_c, A_f, zero = np.empty((3, 3)), np.empty((3, 3)), np.zeros(3)
    DF, DL, world = np.empty((3, 12)), np.empty((3, 12)), np.empty((7, 3))
    for k in range(pairs.shape[0]):
        i, o = pairs[k, 0], pairs[k, 1]
        if codes[i, o] & ACTIVE == 0:
            point_place(i, q, points, arms, B, x, L)
            X0, X1, X2 = _to_frame(0, o, x, R, p)
            codes[i, o] = HELD | distance_feature(kind[o], size[o], X0, X1, X2) << FEATURE_SHIFT
        a, lever, spin, v_n, _, coulomb, _, _ = evaluate(
            i, o, 2, q, v, theta, points, arms, kind, size, hosts, tables, depths, NONE, coulomb_total, True, codes,
            B, R, p, V, W, x, u, S, L,
        )  # fmt: skip
        b, table = hosts[o], tables[points[i, 1], o]
        limit[k] = arms[i, 4] * theta[table[3]] * coulomb[0] if codes[i, o] & ACTIVE != 0 else -1.0
        stiffness[k] = arms[i, 4] * theta[table[2]]
        n, v_rel, H, F = S[0], S[1], S[3:6], L[2]
        slope = 0.0
        if a >= 0:
            # The place of contact is on the surface, not on the point inside: lever g instead of r.
            X0, X1, X2 = _to_frame(0, o, x, R, p)
            gap = distance_branch(kind[o], size[o], X0, X1, X2, codes[i, o] >> FEATURE_SHIFT, 0, n, H)
            v_rel[0] += (lever - gap) * (spin[1] * n[2] - spin[2] * n[1])
            v_rel[1] += (lever - gap) * (spin[2] * n[0] - spin[0] * n[2])
            v_rel[2] += (lever - gap) * (spin[0] * n[1] - spin[1] * n[0])
            for r in range(3):
                L[3, r], L[4, r] = L[0, r] - gap * n[r], L[1, r] - gap * n[r]
            lever, slope = gap, 1.0
        _project(n, v_rel, world[0])
        for r in range(3):
            rows[k, r] = R[o, 0, r] * world[0, 0] + R[o, 1, r] * world[0, 1] + R[o, 2, r] * world[0, 2]
            world[1, r] = R[o, r, 0] * lam[k, 0] + R[o, r, 1] * lam[k, 1] + R[o, r, 2] * lam[k, 2]
        along = _project(n, world[1], world[2])
        _slope(v_n, n, H, v_rel, A_c)
        _slope(along, n, H, world[1], A_f)
        for r in range(3):
            F[r] = -world[2, r]
            for c in range(3):
                A_c[r, c] *= -1.0
                K[r, c] = (1.0 if r == c else 0.0) - n[r] * n[c]
        for way in range(2):
            A[:] = A_c
            weight_q, weight_v = (1.0, 0.0) if way == 0 else (0.0, 1.0)
            force_derivative(
                a, b, lever, slope, spin, weight_q, weight_v, n, v_rel, H, zero, W[o], A, K, B, L, DF, DL, C, G, P, M
            )
            _turned_back(R[o], DF, by_q[k] if way == 0 else by_v[k])
        if b < 0:
            by_q[k, :, 6:], by_v[k, :, 6:] = 0.0, 0.0
        by_centre[k], geometric_by_centre[k] = 0.0, 0.0
        for side in range(2):
            body = a if side == 0 else b
            if body < 0:
                continue
            sign, keep = (-1.0, 1.0) if side == 0 else (1.0, 0.0)
            for column in range(3):
                delta, moved, y, dF, z = world[3], world[4], world[5], world[6], tau
                for r in range(3):
                    delta[r] = sign * B[body, r, column]
                for r in range(3):
                    moved[r] = keep * delta[r]
                    for c in range(3):
                        moved[r] -= (lever * H[r, c] + slope * n[r] * n[c]) * delta[c]
                y[0] = spin[1] * moved[2] - spin[2] * moved[1]
                y[1] = spin[2] * moved[0] - spin[0] * moved[2]
                y[2] = spin[0] * moved[1] - spin[1] * moved[0]
                for r in range(3):
                    z[r], dF[r] = 0.0, 0.0
                    for c in range(3):
                        z[r] += A_c[r, c] * delta[c] + K[r, c] * y[c]
                        dF[r] += A_f[r, c] * delta[c]
                at = 3 * side + column
                for r in range(3):
                    by_centre[k, r, at] = R[o, 0, r] * z[0] + R[o, 1, r] * z[1] + R[o, 2, r] * z[2]
                for end in range(2):
                    other = a if end == 0 else b
                    sense = -1.0 if end == 0 else 1.0
                    if end == 1 and b < 0:
                        continue
                    for r in range(3):
                        geometric_by_centre[k, 6 * end + r, at] = sense * dF[r]
                    if other < 0:
                        continue
                    cross(moved, F, y)
                    cross(L[3 + end], dF, z)
                    for r in range(3):
                        y[r] += z[r]
                    for r in range(3):
                        for c in range(3):
                            geometric_by_centre[k, 6 * end + 3 + r, at] += sense * B[other, TURN + c, r] * y[c]
        A[:], K[:] = A_f, 0.0
        force_derivative(
            a, b, lever, slope, spin, 1.0, 0.0, n, v_rel, H, F, W[o], A, K, B, L, DF, DL, C, G, P, M
        )  # fmt: skip
        fill_block(a, b, 1.0, q, bodies, coefficients, B, F, DF, DL, L, tau, G, geometric[k])
        if b < 0:
            geometric[k, :, 6:] = 0.0
