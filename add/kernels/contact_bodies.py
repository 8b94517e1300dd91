"""Penalty contact of points on any body with shapes on any body: force, places, energy.

The law is that of `contact.py`. A point is a node or is fixed to a rigid body a; it may be the centre of a sphere of
radius r. A shape belongs to a rigid body b, or to the world, which stands still or translates steadily. With x, w the
coordinates of a rigid body, omega = J w_dot its angular velocity (J = J_l(w)), c the point, g the gap, n = grad g:

    rho_a = c - x_a,  rho_b = c - x_b,  l_a = rho_a - r n,  l_b = rho_b - r n,  Omega = omega_a - omega_b
    d = r - g(c),     v_rel = v_c - (v_b + omega_b x rho_b) - r Omega x n

A node does not turn, so its sphere can neither roll nor bear a torque: there the surfaces meet at c, and r is zero
everywhere but in d. F(d, n, v_rel) acts on a at c - r n, and -F on b at the same place: generalised forces
[F, J_a^T (l_a x F)] on a and minus [F, J_b^T (l_b x F)] on b. Neither the total force nor the total torque of a pair is
other than zero.

The derivatives stand in `body_derivatives.py` and `body_parameters.py`.

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

from add.kernels.caching import njit
from add.kernels.contact_detection import OMEGA, PLACE, VELOCITY, body_states, point_place, shape_frames, touching_pairs
from add.kernels.contact_laws import elastic_energy
from add.kernels.contact_nodes import FEATURE_SHIFT, _to_frame, evaluate_pair
from add.kernels.distance import distance_branch
from add.kernels.rotation import turn


@njit(cache=True, error_model="numpy", inline="always")
def evaluate(
    i, o, order, q, v, theta, points, arms, kind, size, hosts, tables, depths, law, coulomb_total, replay, codes,
    B, R, p, V, W, x, u, S, L,
):  # fmt: skip
    """One pair: completes its code and returns body of the point, lever r and Omega, then what `evaluate_pair` does.

    Fills S as `evaluate_pair`, and L (5, 3): rho_a, rho_b, F, l_a, l_b.
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
    code, v_n, normal, coulomb, friction, by_k = evaluate_pair(
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
def cross(u, v, out):
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
        a = evaluate(
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
        lever = evaluate(
            i, o, 1, q, v, theta, points, arms, kind, size, hosts, tables, depths, law, coulomb_total, replay, codes,
            B, R, p, V, W, x, u, S, L,
        )[1]  # fmt: skip
        for c in range(3):
            place[pair, c] = x[0, c] - lever * S[0, c]
            force[pair, c] = L[2, c]


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
