"""Penalty contact of points on any body with shapes on any body: force, exact Jacobian, parameter derivatives, energy.

The law is that of `contact.py`. A point is a node or is fixed to a rigid body a; it may be the centre of a sphere of
radius r. A shape belongs to a rigid body b, or to the world, which stands still or translates steadily. With x, w the
coordinates of a rigid body, omega = J w_dot its angular velocity (J = J_l(w)), c the point, g the gap, n = grad g:

    rho_a = c - x_a,  rho_b = c - x_b,  l_a = rho_a - r n,  l_b = rho_b - r n,  Omega = omega_a - omega_b
    d = r - g(c),     v_rel = v_c - (v_b + omega_b x rho_b) - r Omega x n

A node does not turn, so its sphere can neither roll nor bear a torque: there the surfaces meet at c, and r is zero
everywhere but in d. F(d, n, v_rel) acts on a at c - r n, and -F on b at the same place: generalised forces
[F, J_a^T (l_a x F)] on a and minus [F, J_b^T (l_b x F)] on b. Neither the total force nor the total torque of a pair is
other than zero.

Derivatives. In axes that turn with b, F depends on the displacement ds of c relative to the material of b, and on the
change dnu of v_rel; A = dF/ds at fixed nu and K = dF/dnu are the matrices of `contact.py` at W = 0. In world axes,
dphi = J_b dw_b being the rotation of b and H the Hessian of g,

    dn   = H ds + dphi x n
    dnu  = dw - omega_b x ds - r (dOmega x n + Omega x dn) - dphi x v_rel
    dF   = dphi x F + A ds + K dnu

where dw is the change of v_c - v_b - omega_b x rho_b for a place that stays with b. By the coordinates (x, w) and rates
of a and b, P = w_q J, M = w_v J + w_q d(omega)/dw with the weights w_q, w_v of the wanted sum of dr/dq and dr/dv, and
E = A - r K [Omega] H, this is

    dF/dx_a = w_q (E - K [omega_b]) + w_v K = -dF/dx_b        dn/dx_a = w_q H = -dn/dx_b
    dF/dw_a = -(E + K [Omega]) [rho_a] P_a - K [l_a] M_a      dn/dw_a = -H [rho_a] P_a
    dF/dw_b = E [rho_b] P_b + K [l_b] M_b + C P_b             dn/dw_b = (H [rho_b] - [n]) P_b
    C       = -[F] + K [v_rel] + r K [Omega] [n]

and d(J^T (l x F)) = J^T (dl x F + l x dF) plus d(J^T tau)/dw at fixed tau. A centre of mass X_c moves the points by
-R dX_c (a) or the shapes by -R dX_c (b).

Common arguments, always in this order
    t, q, v, theta
    bodies     (nb, 4)      int64: first coordinate, indices in theta of X_c (-1: zero)
    points     (np, 3)      int64: first coordinate of the carrier, row of the pair tables, row of `bodies` (-1: node)
    arms       (np, 5)      X in the body's frame [m], radius [m], scale [-] or [m^2]
    runs       (nr, 4)      int64: points first:stop of one body or all nodes; row of the tables; row of `bodies` or -1
    spheres    (nr, 4)      ball around a run in the body's frame, centre and radius [m]; unused for nodes
    kind, size (ns,), (ns, 3)  as in `distance.py`
    hosts      (ns,)        int64: row of `bodies` that carries the shape, -1 for the world
    poses      (ns, 5, 3)   rotation (rows 0-2), position (3) [m] in the body's or the world's frame, velocity (4) [m/s]
    tables     (n_group, ns, 5)  int64: indices in theta of k_n, k_d, k_t, c_f; whether the pair is enabled
    depths     (n_group, ns, 2)  onset, ramp [m]
    law, coulomb_total, replay, codes (np, ns) int32   as in `contact.py`; zero on entry where branches are decided

Nothing is overwritten but `codes` and what `body_contact_places` fills. Arrays should be C-contiguous and writeable.
Calls and views of arrays cost more here than the arithmetic: hence scalars, and functions that numba inlines.
"""

import numpy as np
from numba import njit

from add.kernels.contact import FEATURE_SHIFT, _add_matrices, _pair, _to_frame
from add.kernels.detection import (
    OMEGA,
    PLACE,
    TURN,
    TURN_RATE,
    VELOCITY,
    body_states,
    point_place,
    shape_frames,
    touching_pairs,
)
from add.kernels.distance import distance_branch
from add.kernels.friction import elastic_energy
from add.kernels.rotation import turn, turn_derivative


@njit(cache=True, error_model="numpy", inline="always")
def _evaluate(
    i, o, order, q, v, theta, points, arms, kind, size, hosts, tables, depths, law, coulomb_total, replay, codes,
    B, R, p, V, W, x, u, S, L,
):  # fmt: skip
    """One pair: completes its code and returns body of the point, its lever r and Omega, then what `_pair` does.

    Fills S as `_pair`, and L (5, 3): rho_a, rho_b, F, l_a, l_b.
    """
    a, b, group = point_place(i, q, points, arms, B, x, L), hosts[o], points[i, 1]
    radius, scale = arms[i, 3], arms[i, 4]
    w0, w1, w2, lever = W[o, 0], W[o, 1], W[o, 2], 0.0
    if a >= 0:
        lever = radius
        w0, w1, w2 = B[a, OMEGA, 0], B[a, OMEGA, 1], B[a, OMEGA, 2]
        u[0, 0] = B[a, VELOCITY, 0] + w1 * L[0, 2] - w2 * L[0, 1]
        u[0, 1] = B[a, VELOCITY, 1] + w2 * L[0, 0] - w0 * L[0, 2]
        u[0, 2] = B[a, VELOCITY, 2] + w0 * L[0, 1] - w1 * L[0, 0]
    else:
        for c in range(3):
            u[0, c] = v[points[i, 0] + c]
    spin = (w0 - W[o, 0], w1 - W[o, 1], w2 - W[o, 2])
    code, v_n, normal, coulomb, friction, by_k = _pair(
        0, o, x, u, kind, size, R, p, V, W,
        theta[tables[group, o, 0]], theta[tables[group, o, 1]], theta[tables[group, o, 2]], theta[tables[group, o, 3]],
        depths[group, o, 0], depths[group, o, 1],
        law, coulomb_total, replay, int(codes[i, o]), order, S, radius, spin,
    )  # fmt: skip
    codes[i, o] = code
    m = friction[0] * friction[1]
    for c in range(3):
        L[1, c] = x[0, c] - B[b, PLACE, c] if b >= 0 else 0.0
        L[2, c] = scale * (normal[0] * S[0, c] - m * S[2, c])
        L[3, c] = L[0, c] - lever * S[0, c]
        L[4, c] = L[1, c] - lever * S[0, c]
    return a, lever, spin, v_n, normal, coulomb, friction, by_k


@njit(cache=True, error_model="numpy")
def _cross(u, v, out):
    """Fill out with u x v, which may be v."""
    out[0], out[1], out[2] = u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]


@njit(cache=True, error_model="numpy", inline="always")
def _add_wrench(sign, body, arm, L, wrench):
    """Add the force sign L[2] and its torque with the arm in row `arm` of L to wrench (nb, 2, 3)."""
    f0, f1, f2 = sign * L[2, 0], sign * L[2, 1], sign * L[2, 2]
    l0, l1, l2 = L[arm, 0], L[arm, 1], L[arm, 2]
    wrench[body, 0, 0] += f0
    wrench[body, 0, 1] += f1
    wrench[body, 0, 2] += f2
    wrench[body, 1, 0] += l1 * f2 - l2 * f1
    wrench[body, 1, 1] += l2 * f0 - l0 * f2
    wrench[body, 1, 2] += l0 * f1 - l1 * f0


@njit(cache=True, error_model="numpy")
def body_contact_force(
    t, q, v, theta, bodies, points, arms, runs, spheres, kind, size, hosts, poses, tables, depths, law, coulomb_total,
    replay, codes, out,
):  # fmt: skip
    """Add minus the generalised contact forces to out (n,). Returns how many pairs touch."""
    nb, ns = bodies.shape[0], kind.size
    B, k = np.empty((nb, 13, 3)), np.empty((nb, 6))
    R, p, V, W = np.empty((ns, 3, 3)), np.empty((ns, 3)), np.empty((ns, 3)), np.empty((ns, 3))
    body_states(0, q, v, theta, bodies, B, k)
    shape_frames(t, hosts, poses, B, R, p, V, W)
    pairs = touching_pairs(q, points, arms, runs, spheres, kind, size, tables, replay, codes, B, R, p)
    if pairs.shape[0] == 0:
        return 0
    x, u, S, L, wrench = np.empty((1, 3)), np.empty((1, 3)), np.zeros((9, 3)), np.empty((5, 3)), np.zeros((nb, 2, 3))
    for pair in range(pairs.shape[0]):
        i, o = pairs[pair, 0], pairs[pair, 1]
        a = _evaluate(
            i, o, 1, q, v, theta, points, arms, kind, size, hosts, tables, depths, law, coulomb_total, replay, codes,
            B, R, p, V, W, x, u, S, L,
        )[0]  # fmt: skip
        if a >= 0:
            _add_wrench(-1.0, a, 3, L, wrench)
        else:
            for c in range(3):
                out[points[i, 0] + c] -= L[2, c]
        if hosts[o] >= 0:
            _add_wrench(1.0, hosts[o], 4, L, wrench)
    for b in range(nb):
        s, tau = bodies[b, 0], wrench[b, 1]
        turn(-1.0, q[s + 3 : s + 6], tau, k[b], tau)
        for c in range(3):
            out[s + c] += wrench[b, 0, c]
            out[s + 3 + c] += tau[c]
    return pairs.shape[0]


@njit(cache=True, error_model="numpy")
def body_contact_places(
    t, q, v, theta, bodies, points, arms, runs, spheres, kind, size, hosts, poses, tables, depths, law, coulomb_total,
    replay, codes, place, force, pairs,
):  # fmt: skip
    """Fill place (k, 3) [m], the force (k, 3) on the point's body there [N], and pairs (k, 2): point, shape."""
    nb, ns = bodies.shape[0], kind.size
    B, k = np.empty((nb, 13, 3)), np.empty((nb, 6))
    R, p, V, W = np.empty((ns, 3, 3)), np.empty((ns, 3)), np.empty((ns, 3)), np.empty((ns, 3))
    body_states(0, q, v, theta, bodies, B, k)
    shape_frames(t, hosts, poses, B, R, p, V, W)
    pairs[:] = touching_pairs(q, points, arms, runs, spheres, kind, size, tables, replay, codes, B, R, p)
    x, u, S, L = np.empty((1, 3)), np.empty((1, 3)), np.zeros((9, 3)), np.empty((5, 3))
    for pair in range(pairs.shape[0]):
        i, o = pairs[pair, 0], pairs[pair, 1]
        lever = _evaluate(
            i, o, 1, q, v, theta, points, arms, kind, size, hosts, tables, depths, law, coulomb_total, replay, codes,
            B, R, p, V, W, x, u, S, L,
        )[1]  # fmt: skip
        for c in range(3):
            place[pair, c] = x[0, c] - lever * S[0, c]
            force[pair, c] = L[2, c]


@njit(cache=True, error_model="numpy")
def _times_cross(factor, A, u, out):
    """Fill out (3, 3) with factor A [u]; not A itself."""
    for r in range(3):
        out[r, 0] = factor * (A[r, 1] * u[2] - A[r, 2] * u[1])
        out[r, 1] = factor * (A[r, 2] * u[0] - A[r, 0] * u[2])
        out[r, 2] = factor * (A[r, 0] * u[1] - A[r, 1] * u[0])


@njit(cache=True, error_model="numpy")
def _add_times(factor, A, C, out):
    """Add factor A C to out, all (3, 3)."""
    for r in range(3):
        for c in range(3):
            out[r, c] += factor * (A[r, 0] * C[0, c] + A[r, 1] * C[1, c] + A[r, 2] * C[2, c])


@njit(cache=True, error_model="numpy")
def _set_cross(factor, u, out):
    """Fill out (3, 3) with factor [u]."""
    out[0, 0], out[1, 1], out[2, 2] = 0.0, 0.0, 0.0
    out[2, 1], out[0, 2], out[1, 0] = factor * u[0], factor * u[1], factor * u[2]
    out[1, 2], out[2, 0], out[0, 1] = -factor * u[0], -factor * u[1], -factor * u[2]


@njit(cache=True, error_model="numpy")
def _add_rows(sign, weight_q, moved, first, F, arm, DF, DL, w, k, J, tau, G, block):
    """Add sign d[F, J^T (arm x F)] to rows first:first+6 of block (12, 12).

    DF, DL (3, 12) are dF and dl_a, which is d(arm), too, but for moved (dx_a - dx_b): moved is 0 for a, weight_q for b.
    tau, G are scratch.
    """
    _cross(arm, F, tau)
    for c in range(12):
        f0, f1, f2 = DF[0, c], DF[1, c], DF[2, c]
        block[first, c] += sign * f0
        block[first + 1, c] += sign * f1
        block[first + 2, c] += sign * f2
        l0, l1, l2 = DL[0, c], DL[1, c], DL[2, c]
        if c // 3 % 2 == 0:  # a translation, of a or of b
            way = moved if c < 3 else -moved
            l0 += way if c % 3 == 0 else 0.0
            l1 += way if c % 3 == 1 else 0.0
            l2 += way if c % 3 == 2 else 0.0
        t0 = l1 * F[2] - l2 * F[1] + arm[1] * f2 - arm[2] * f1
        t1 = l2 * F[0] - l0 * F[2] + arm[2] * f0 - arm[0] * f2
        t2 = l0 * F[1] - l1 * F[0] + arm[0] * f1 - arm[1] * f0
        for r in range(3):
            block[first + 3 + r, c] += sign * (J[0, r] * t0 + J[1, r] * t1 + J[2, r] * t2)
    turn_derivative(-1.0, w, tau, k, G)
    for r in range(3):
        for c in range(3):
            block[first + 3 + r, first + 3 + c] += sign * weight_q * G[r, c]


@njit(cache=True, error_model="numpy")
def body_contact_jacobian(
    t, q, v, theta, bodies, points, arms, runs, spheres, kind, size, hosts, poses, tables, depths, law, coulomb_total,
    replay, codes, weight_q, weight_v, own, between, keys, dynamic, data, slots,
):  # fmt: skip
    """Add weight_q dr/dq + weight_v dr/dv, r minus the generalised forces, to data[slots]. Returns the pairs' number.

    A block is over the coordinates of the point's carrier, then those of the shape's body: 12 x 12, or 9 x 9 for a
    node, or 6 x 6 and 3 x 3 with the world. Its first entry among `slots` is own[i] (point i and the world),
    between[a, b] (two rigid bodies), or dynamic + 81 k for a node and a body, where keys[k] = i nb + b, sorted.
    """
    nb, ns = bodies.shape[0], kind.size
    B, k = np.empty((nb, 13, 3)), np.empty((nb, 6))
    R, p, V, W = np.empty((ns, 3, 3)), np.empty((ns, 3)), np.empty((ns, 3)), np.empty((ns, 3))
    body_states(2, q, v, theta, bodies, B, k)
    shape_frames(t, hosts, poses, B, R, p, V, W)
    pairs = touching_pairs(q, points, arms, runs, spheres, kind, size, tables, replay, codes, B, R, p)
    if pairs.shape[0] == 0:
        return 0
    x, u, S, L, tau = np.empty((1, 3)), np.empty((1, 3)), np.zeros((9, 3)), np.empty((5, 3)), np.empty(3)
    A, K, C, G, P = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    DF, DL, block = np.empty((3, 12)), np.empty((3, 12)), np.empty((12, 12))
    for pair in range(pairs.shape[0]):
        i, o = pairs[pair, 0], pairs[pair, 1]
        a, lever, spin, v_n, normal, coulomb, friction, _ = _evaluate(
            i, o, 2, q, v, theta, points, arms, kind, size, hosts, tables, depths, law, coulomb_total, replay, codes,
            B, R, p, V, W, x, u, S, L,
        )  # fmt: skip
        b, table = hosts[o], tables[points[i, 1], o]
        n, v_rel, H, F = S[0], S[1], S[3:6], L[2]
        A[:], K[:], DF[:], DL[:], block[:] = 0.0, 0.0, 0.0, 0.0, 0.0
        _add_matrices(
            0.0, 0.0, 0.0, v_n, normal, coulomb, friction, theta[table[2]], theta[table[3]], arms[i, 4], S, A, K
        )
        if lever > 0.0:  # A becomes E
            _times_cross(lever, K, spin, G)
            _add_times(-1.0, G, H, A)
        _times_cross(weight_q, K, W[o], G)  # dF/dx = w_q (E - K [omega_b]) + w_v K
        for r in range(3):
            for c in range(3):
                value = weight_q * A[r, c] - G[r, c] + weight_v * K[r, c]
                DF[r, c], DF[r, 6 + c] = value, -value
                DL[r, c], DL[r, 6 + c] = -lever * weight_q * H[r, c], lever * weight_q * H[r, c]
        if a >= 0:
            J, D = B[a, TURN : TURN + 3], B[a, TURN_RATE : TURN_RATE + 3]
            _times_cross(1.0, K, spin, G)
            for r in range(3):
                for c in range(3):
                    G[r, c] += A[r, c]
            _times_cross(-weight_q, G, L[0], C)
            _times_cross(-1.0, K, L[3], G)
            for r in range(3):
                for c in range(3):
                    C[r, c] += weight_v * G[r, c]
            _add_times(1.0, C, J, DF[:, 3:6])
            _add_times(weight_q, G, D, DF[:, 3:6])
            _set_cross(-weight_q, L[0], P)  # d(rho_a) / (J dw_a); then d(arm) = (I - r H) of that
            for r in range(3):
                for c in range(3):
                    C[r, c] = P[r, c]
            if lever > 0.0:
                _add_times(-lever, H, P, C)
            _add_times(1.0, C, J, DL[:, 3:6])
        if b >= 0:
            J, D = B[b, TURN : TURN + 3], B[b, TURN_RATE : TURN_RATE + 3]
            _times_cross(1.0, A, L[1], C)
            _set_cross(-1.0, F, G)
            _times_cross(1.0, K, v_rel, P)
            for r in range(3):
                for c in range(3):
                    C[r, c] += G[r, c] + P[r, c]
            if lever > 0.0:
                _times_cross(lever, K, spin, G)
                _times_cross(1.0, G, n, P)
                for r in range(3):
                    for c in range(3):
                        C[r, c] += P[r, c]
            _times_cross(1.0, K, L[4], G)
            for r in range(3):
                for c in range(3):
                    C[r, c] = weight_q * C[r, c] + weight_v * G[r, c]
            _add_times(1.0, C, J, DF[:, 9:12])
            _add_times(weight_q, G, D, DF[:, 9:12])
            if lever > 0.0:
                _times_cross(1.0, H, L[1], C)
                _set_cross(-1.0, n, G)
                for r in range(3):
                    for c in range(3):
                        C[r, c] += G[r, c]
                _add_times(-lever * weight_q, C, J, DL[:, 9:12])

        size_a = 3
        if a >= 0:
            size_a = 6
            s = bodies[a, 0]
            J = B[a, TURN : TURN + 3]
            _add_rows(-1.0, weight_q, 0.0, 0, F, L[3], DF, DL, q[s + 3 : s + 6], k[a], J, tau, G, block)
        else:
            for r in range(3):
                for c in range(12):
                    block[r, c] = -DF[r, c]
        size_b = 0
        if b >= 0:
            size_b = 6
            s = bodies[b, 0]
            J = B[b, TURN : TURN + 3]
            _add_rows(1.0, weight_q, weight_q, 6, F, L[4], DF, DL, q[s + 3 : s + 6], k[b], J, tau, G, block)
        if b < 0:
            at = own[i]
        elif a >= 0:
            at = between[a, b]
        else:
            at = dynamic + 81 * np.searchsorted(keys, i * nb + b)
        width = size_a + size_b
        for r in range(width):
            row = r if r < size_a else 6 + r - size_a
            for c in range(width):
                column = c if c < size_a else 6 + c - size_a
                data[slots[at + r * width + c]] += block[row, column]
    return pairs.shape[0]


@njit(cache=True, error_model="numpy")
def node_keys(points, hosts, codes, n_bodies):
    """Sorted keys i nb + b of the nodes i that touch shapes of bodies b."""
    keys = np.empty(np.count_nonzero(codes), dtype=np.int64)
    n = 0
    for i in range(codes.shape[0]):
        if points[i, 2] >= 0:
            continue
        for o in range(codes.shape[1]):
            if codes[i, o] != 0 and hosts[o] >= 0:
                keys[n] = i * n_bodies + hosts[o]
                n += 1
    return np.unique(keys[:n])


@njit(cache=True, error_model="numpy")
def body_contact_parameters(
    t, q, v, theta, bodies, points, arms, runs, spheres, kind, size, hosts, poses, tables, depths, law, coulomb_total,
    replay, codes, forward, theta_p, f,
):  # fmt: skip
    """Derivatives of r by k_n, k_d, k_t, c_f and the centres of mass, in either direction.

    forward False (vjp)  theta_p (n_theta,) += lam^T dr/dtheta, lam = f (n,) given
    forward True  (jvp)  f (n,) += dr/dtheta theta_p

    With the relative virtual displacement of the two bodies at the place of contact, lam . f = lam_rel . F, and their
    relative virtual rotation Lam: lam . df = lam_rel . dF + Lam . (dl x F). Moving the shape by -R dX_c is moving the
    point by R dX_c as far as the gap goes, but leaves the arms alone; so ds = delta and

        point   delta = -R_a dX_c,  dnu = Omega x (delta - r H delta),  dl = delta - r H delta
        shape   delta =  R_b dX_c,  dnu = -r Omega x H delta,           dl = -r H delta
    """
    nb, ns = bodies.shape[0], kind.size
    B, k = np.empty((nb, 13, 3)), np.empty((nb, 6))
    R, p, V, W = np.empty((ns, 3, 3)), np.empty((ns, 3)), np.empty((ns, 3)), np.empty((ns, 3))
    body_states(0, q, v, theta, bodies, B, k)
    shape_frames(t, hosts, poses, B, R, p, V, W)
    pairs = touching_pairs(q, points, arms, runs, spheres, kind, size, tables, replay, codes, B, R, p)
    x, u, S, L, Z = np.empty((1, 3)), np.empty((1, 3)), np.zeros((9, 3)), np.empty((5, 3)), np.empty((8, 3))
    A, K = np.empty((3, 3)), np.empty((3, 3))
    for pair in range(pairs.shape[0]):
        i, o = pairs[pair, 0], pairs[pair, 1]
        a, lever, spin, v_n, normal, coulomb, friction, by_k = _evaluate(
            i, o, 2, q, v, theta, points, arms, kind, size, hosts, tables, depths, law, coulomb_total, replay, codes,
            B, R, p, V, W, x, u, S, L,
        )  # fmt: skip
        b, table, scale = hosts[o], tables[points[i, 1], o], arms[i, 4]
        n, slide, H, F = S[0], S[2], S[3:6], L[2]
        s_a, s_b = points[i, 0], bodies[b, 0] if b >= 0 else -1
        A[:], K[:] = 0.0, 0.0
        _add_matrices(0.0, 0.0, 0.0, v_n, normal, coulomb, friction, theta[table[2]], theta[table[3]], scale, S, A, K)
        speed, _, w, m_L = friction
        m_f, m_k, m_c = theta[table[3]] * m_L, speed * w, coulomb[0] * m_L
        f_n_kn, f_n_kd, f_c_kn, f_c_kd = by_k
        dF, dl, y, z, lam, twist = Z[0], Z[1], Z[2], Z[3], Z[4], Z[5]
        if forward:
            k_n, k_d, k_t, c_f = theta_p[table[0]], theta_p[table[1]], theta_p[table[2]], theta_p[table[3]]
            along_n = scale * (f_n_kn * k_n + f_n_kd * k_d)
            along_t = -scale * (m_f * (f_c_kn * k_n + f_c_kd * k_d) + m_k * k_t + m_c * c_f)
            for c in range(3):
                dF[c], dl[c] = along_n * n[c] + along_t * slide[c], 0.0
        else:
            for c in range(3):
                lam[c], twist[c] = f[s_a + c], 0.0
            if a >= 0:
                turn(1.0, q[s_a + 3 : s_a + 6], f[s_a + 3 : s_a + 6], k[a], twist)
                _cross(twist, L[3], y)
                for c in range(3):
                    lam[c] += y[c]
            if b >= 0:
                turn(1.0, q[s_b + 3 : s_b + 6], f[s_b + 3 : s_b + 6], k[b], z)
                _cross(z, L[4], y)
                for c in range(3):
                    lam[c] -= f[s_b + c] + y[c]
                    twist[c] -= z[c]
            lam_n = scale * (lam[0] * n[0] + lam[1] * n[1] + lam[2] * n[2])
            lam_t = scale * (lam[0] * slide[0] + lam[1] * slide[1] + lam[2] * slide[2])
            theta_p[table[0]] -= lam_n * f_n_kn - lam_t * m_f * f_c_kn
            theta_p[table[1]] -= lam_n * f_n_kd - lam_t * m_f * f_c_kd
            theta_p[table[2]] += lam_t * m_k
            theta_p[table[3]] += lam_t * m_c
            # Cotangent z of what is crossed by Omega in dnu and is dl: K^T lam x Omega + F x Lam.
            for c in range(3):
                y[c] = K[0, c] * lam[0] + K[1, c] * lam[1] + K[2, c] * lam[2]
            _cross(F, twist, z)
            z[0] += y[1] * spin[2] - y[2] * spin[1]
            z[1] += y[2] * spin[0] - y[0] * spin[2]
            z[2] += y[0] * spin[1] - y[1] * spin[0]
        for side in range(2):
            body = a if side == 0 else b
            if body < 0:
                continue
            sign = -1.0 if side == 0 else 1.0
            keep = 1.0 if side == 0 else 0.0
            if forward:
                delta, moved = Z[6], Z[7]
                for r in range(3):
                    delta[r] = 0.0
                    for c in range(3):
                        index = bodies[body, 1 + c]
                        if index >= 0:
                            delta[r] += sign * B[body, r, c] * theta_p[index]
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
                    index = bodies[body, 1 + c]
                    if index >= 0:
                        value = B[body, 0, c] * bar[0] + B[body, 1, c] * bar[1] + B[body, 2, c] * bar[2]
                        theta_p[index] -= sign * value
        if forward:
            _cross(dl, F, lam)
            for c in range(3):
                f[s_a + c] -= dF[c]
            if a >= 0:
                _cross(L[3], dF, y)
                for c in range(3):
                    y[c] += lam[c]
                turn(-1.0, q[s_a + 3 : s_a + 6], y, k[a], y)
                for c in range(3):
                    f[s_a + 3 + c] -= y[c]
            if b >= 0:
                _cross(L[4], dF, y)
                for c in range(3):
                    y[c] += lam[c]
                turn(-1.0, q[s_b + 3 : s_b + 6], y, k[b], y)
                for c in range(3):
                    f[s_b + c] += dF[c]
                    f[s_b + 3 + c] += y[c]
    return pairs.shape[0]


@njit(cache=True, error_model="numpy")
def body_contact_energy(
    t, q, v, theta, bodies, points, arms, runs, spheres, kind, size, hosts, poses, tables, depths, codes
):
    """Elastic energy stored in all contacts [J]; codes (np, ns) zero on entry."""
    nb, ns = bodies.shape[0], kind.size
    B, k = np.empty((nb, 13, 3)), np.empty((nb, 6))
    R, p, V, W = np.empty((ns, 3, 3)), np.empty((ns, 3)), np.empty((ns, 3)), np.empty((ns, 3))
    body_states(0, q, v, theta, bodies, B, k)
    shape_frames(t, hosts, poses, B, R, p, V, W)
    pairs = touching_pairs(q, points, arms, runs, spheres, kind, size, tables, False, codes, B, R, p)
    x, L, S = np.empty((1, 3)), np.empty((1, 3)), np.empty((3, 3))
    total = 0.0
    for pair in range(pairs.shape[0]):
        i, o = pairs[pair, 0], pairs[pair, 1]
        point_place(i, q, points, arms, B, x, L)
        X0, X1, X2 = _to_frame(0, o, x, R, p)
        gap = distance_branch(kind[o], size[o], X0, X1, X2, codes[i, o] >> FEATURE_SHIFT, 0, S[0], S)
        d, group = arms[i, 3] - gap, points[i, 1]
        onset = depths[group, o, 0]
        total += arms[i, 4] * theta[tables[group, o, 0]] * elastic_energy(d, onset, d < onset)
    return total
