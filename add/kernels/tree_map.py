"""Poses of links as functions of a tree's coordinates, X = (x, w) of each link's frame, and their derivatives.

With a column S_l at or above link i, w = log R with |w| <= pi, and the point x of the frame's origin:

    P_l = (dx, dw):  dx = v(S_l) + omega(S_l) x x,   dw = J_l(w)^-1 omega(S_l)
    d(P u)/dq_l:     the twist U = sum S u changes by S_l x U + S'_l(u), S'_l the rate of S_l at velocities u
    sum f d2X/dq_k dq_l: of wrenches summed over what follows both columns, and of the spins' own curvature

Where w jumps at pi, forces P^T f do not: nothing that a term adds depends on the chart of w.
"""

import numpy as np

from add.kernels.borrowed import put
from add.kernels.caching import njit
from add.kernels.rotation import jacobian_coefficients, rotation_vector_of, turn_derivative
from add.kernels.trees import BALL, motion_cross, own_coordinates, placement_columns, times, tree_motion


@njit(cache=True)
def fill_inverse_jacobian(w, k, B):
    """Fill B (3, 3) with J_l(w)^-1 = I - [w]x/2 + (1 - t/2 cot(t/2))/t^2 [w]x^2, |w| < 2 pi."""
    p = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    if p < 1e-2:
        c = 1.0 / 12.0 + p / 720.0 * (1.0 + p / 42.0 * (1.0 + p / 40.0))
    else:
        half = 0.5 * np.sqrt(p)
        c = (1.0 - half * np.cos(half) / np.sin(half)) / p
    for i in range(3):
        for j in range(3):
            B[i, j] = c * w[i] * w[j]
        B[i, i] += 1.0 - c * p
    B[0, 1] += 0.5 * w[2]
    B[0, 2] -= 0.5 * w[1]
    B[1, 0] -= 0.5 * w[2]
    B[1, 2] += 0.5 * w[0]
    B[2, 0] += 0.5 * w[1]
    B[2, 1] -= 0.5 * w[0]


@njit(cache=True)
def fill_frame(motion, i, w, k, B):
    """Fill rotation vector of element ``i``, its coefficients and J_l^-1."""
    rotation_vector_of(motion.R[i], w)
    jacobian_coefficients(w[0] * w[0] + w[1] * w[1] + w[2] * w[2], k)
    fill_inverse_jacobian(w, k, B)


@njit(cache=True)
def point_rate(S, x, out):
    """Fill ``out`` (3,) with the velocity of the point x by a twist."""
    out[0] = S[3] + S[1] * x[2] - S[2] * x[1]
    out[1] = S[4] + S[2] * x[0] - S[0] * x[2]
    out[2] = S[5] + S[0] * x[1] - S[1] * x[0]


@njit(cache=True)
def _columns_of(tree, i):
    stop = tree.first[i + 1] if i + 1 < tree.parent.size else tree.element.size
    return range(tree.first[i], stop)


@njit(cache=True)
def place_links(tree, theta, links, q, X, P):
    """Fill X (6 n_l,) and P (6 n_l, n) of the elements ``links``."""
    none = np.zeros(q.size)
    fill_places(tree, tree_motion(tree, theta, q, none, none), links, X, P)


@njit(cache=True)
def fill_places(tree, motion, links, X, P):
    """Fill X and P at a state of motion; see `place_links`."""
    w, k, B, rate = np.empty(3), np.empty(6), np.empty((3, 3)), np.empty(3)
    P[:] = 0.0
    for number in range(links.size):
        i, row = links[number], 6 * number
        fill_frame(motion, i, w, k, B)
        for a in range(3):
            X[row + a] = motion.origin[i, a] + motion.x[i, a]
            X[row + 3 + a] = w[a]
        e = i
        while e >= 0:
            for c in _columns_of(tree, e):
                S, at, f = motion.S[c], tree.coordinate[c], tree.factor[c]
                point_rate(S, motion.x[i], rate)
                for a in range(3):
                    P[row + a, at] += f * rate[a]
                    P[row + 3 + a, at] += f * (B[a, 0] * S[0] + B[a, 1] * S[1] + B[a, 2] * S[2])
            e = tree.parent[e]


@njit(cache=True)
def move_links(tree, theta, links, q, v, X, V):
    """Fill X and V = P v (6 n_l,) of the elements ``links``, without P: in a time that grows with their number."""
    w, k, B = np.empty(3), np.empty(6), np.empty((3, 3))
    motion = tree_motion(tree, theta, q, v, np.zeros(q.size))
    for number in range(links.size):
        i, row = links[number], 6 * number
        fill_frame(motion, i, w, k, B)
        twist = motion.V[i]
        point_rate(twist, motion.x[i], V[row : row + 3])
        for a in range(3):
            X[row + a] = motion.origin[i, a] + motion.x[i, a]
            X[row + 3 + a] = w[a]
            V[row + 3 + a] = B[a, 0] * twist[0] + B[a, 1] * twist[1] + B[a, 2] * twist[2]


@njit(cache=True)
def _change_of_rate(x, V, S, S1, change, moved, out):
    """Fill ``out`` (3,) with the change of the velocity of a point x that moves with V by a column S of rate S1.

    ``change`` (6,) takes that of V, ``moved`` (3,) that of x.
    """
    put(S1, change)
    motion_cross(S, V, 1.0, change)
    point_rate(S, x, moved)
    point_rate(change, x, out)
    for a in range(3):
        b, c = (a + 1) % 3, (a + 2) % 3
        out[a] += V[b] * moved[c] - V[c] * moved[b]


@njit(cache=True)
def _change_of_rates(x, B, V, S, S1, D, scratch, out):
    """Fill ``out`` (6,) with the change of (x_dot, w_dot) of a frame of twist V by a column S of rate S1."""
    change, turned = scratch[:6], scratch[9:12]
    _change_of_rate(x, V, S, S1, change, scratch[6:9], out[:3])
    for a in range(3):
        turned[a] = B[a, 0] * S[0] + B[a, 1] * S[1] + B[a, 2] * S[2]
    for a in range(3):
        change[a] -= D[a, 0] * turned[0] + D[a, 1] * turned[1] + D[a, 2] * turned[2]
    for a in range(3):
        out[3 + a] = B[a, 0] * change[0] + B[a, 1] * change[1] + B[a, 2] * change[2]


@njit(cache=True)
def fill_frame_rate(motion, i, k, B, w, w_dot, D):
    """Fill w_dot of element ``i`` and D = d(J_l w_dot)/dw."""
    V = motion.V[i]
    for a in range(3):
        w_dot[a] = B[a, 0] * V[0] + B[a, 1] * V[1] + B[a, 2] * V[2]
    turn_derivative(1.0, w, w_dot, k, D)


@njit(cache=True)
def link_rates(tree, theta, links, q, v, Q):
    """Fill Q = d(P v)/dq (6 n_l, n)."""
    fill_rates(tree, tree_motion(tree, theta, q, v, np.zeros(q.size)), links, Q)


@njit(cache=True)
def fill_rates(tree, motion, links, Q):
    """Fill Q at a state of motion; see `link_rates`. Links that are -1 are left out, with rows of zeros."""
    scratch = np.empty(12)
    w, k, B, w_dot, D, change = np.empty(3), np.empty(6), np.empty((3, 3)), np.empty(3), np.empty((3, 3)), np.empty(6)
    Q[:] = 0.0
    for number in range(links.size):
        i = links[number]
        if i < 0:
            continue
        fill_frame(motion, i, w, k, B)
        fill_frame_rate(motion, i, k, B, w, w_dot, D)
        e = i
        while e >= 0:
            for c in _columns_of(tree, e):
                _change_of_rates(motion.x[i], B, motion.V[i], motion.S[c], motion.S1[c], D, scratch, change)
                for a in range(6):
                    Q[6 * number + a, tree.coordinate[c]] += tree.factor[c] * change[a]
            e = tree.parent[e]


@njit(cache=True)
def link_parameters(tree, theta, links, q, u, dX, dU):
    """Fill the derivatives of X and of P u by the numbers of the placements, (6 n_l, N, 6) each."""
    motion = tree_motion(tree, theta, q, u, np.zeros(q.size))
    w, k, B, w_dot, D, change = np.empty(3), np.empty(6), np.empty((3, 3)), np.empty(3), np.empty((3, 3)), np.empty(6)
    T, T1, T2, rate, scratch = np.empty((6, 6)), np.empty((6, 6)), np.empty((6, 6)), np.empty(3), np.empty(12)
    dX[:], dU[:] = 0.0, 0.0
    for e in range(tree.parent.size):
        placement_columns(tree, theta, e, motion, T, T1, T2)
        for number in range(links.size):
            i, row = links[number], 6 * number
            above = i
            while above > e:
                above = tree.parent[above]
            if above != e:
                continue
            fill_frame(motion, i, w, k, B)
            fill_frame_rate(motion, i, k, B, w, w_dot, D)
            for b in range(6):
                point_rate(T[b], motion.x[i], rate)
                _change_of_rates(motion.x[i], B, motion.V[i], T[b], T1[b], D, scratch, change)
                for a in range(3):
                    dX[row + a, e, b] = rate[a]
                    dX[row + 3 + a, e, b] = B[a, 0] * T[b, 0] + B[a, 1] * T[b, 1] + B[a, 2] * T[b, 2]
                for a in range(6):
                    dU[row + a, e, b] = change[a]


@njit(cache=True)
def link_curvature(tree, theta, links, q, force, H):
    """Fill H = sum over rows of force d2X/dq2 (n, n); ``force`` (6 n_l,).

    With wrench (m; f), sum of x f^T and of the spins' curvature N over what follows the lower of two columns k and l:
    m . d omega + f . dv of the change of S_l by column k, + f . (omega_l x (v_k + omega_k x x)) + omega_k N omega_l.
    """
    none = np.zeros(q.size)
    H[:] = 0.0
    add_curvature(tree, tree_motion(tree, theta, q, none, none), links, q, 1.0, force, H)


@njit(cache=True)
def add_curvature(tree, motion, links, q, weight, force, H):
    """Add ``weight`` times the curvature at a state of motion to H; see `link_curvature`."""
    sums = np.zeros((tree.parent.size, 24))
    _add_link_sums(motion, links, force, sums)
    _bend_trees(tree, motion, q, weight, sums, H)


@njit(cache=True)
def _add_link_sums(motion, links, force, sums):
    """Add wrenches, x f^T and N, row by row, of forces on links to ``sums`` (N, 24)."""
    w, k, B, D = np.empty(3), np.empty(6), np.empty((3, 3)), np.empty((3, 3))
    row, torque = np.empty(3), np.empty(3)
    for number in range(links.size):
        i, f, g = links[number], force[6 * number : 6 * number + 3], force[6 * number + 3 : 6 * number + 6]
        if not (f.any() or g.any()):
            continue
        fill_frame(motion, i, w, k, B)
        for a in range(3):
            torque[a] = B[0, a] * g[0] + B[1, a] * g[1] + B[2, a] * g[2]
            sums[i, a] += torque[a]
        _add_point_sum(motion.x[i], f, sums[i])
        for b in range(3):
            turn_derivative(1.0, w, B[:, b].copy(), k, D)
            for a in range(3):
                row[a] = torque[0] * D[0, a] + torque[1] * D[1, a] + torque[2] * D[2, a]
            for a in range(3):
                sums[i, 15 + 3 * a + b] -= row[0] * B[0, a] + row[1] * B[1, a] + row[2] * B[2, a]


@njit(cache=True)
def add_force(x, f, out):
    """Add the wrench about the origin of a force at x to ``out`` (6,)."""
    for a in range(3):
        b, c = (a + 1) % 3, (a + 2) % 3
        out[a] += x[b] * f[c] - x[c] * f[b]
        out[3 + a] += f[a]


@njit(cache=True)
def _add_point_sum(x, f, out):
    """Add the wrench and x f^T of a force at a point to ``out`` (24,)."""
    add_force(x, f, out)
    for a in range(3):
        for d in range(3):
            out[6 + 3 * a + d] += x[a] * f[d]


@njit(cache=True)
def _bend_trees(tree, motion, q, weight, sums, H):
    """Add ``weight`` times the curvature under the sums of forces on each element, which become those of subtrees."""
    size = tree.parent.size
    for i in range(size - 1, 0, -1):
        if tree.parent[i] >= 0:
            for a in range(24):
                sums[tree.parent[i], a] += sums[i, a]
    change = np.empty(6)
    for l in range(tree.element.size):
        e = tree.element[l]
        i = e if sums[e].any() else -1
        while i >= 0:
            for c in _columns_of(tree, i):
                # Column c at or above column l: the change of S_l by q_c is S_c x S_l, and by their own joint's ring.
                change[:] = 0.0
                if i != e:
                    motion_cross(motion.S[c], motion.S[l], 1.0, change)
                elif tree.kind[i] == BALL:
                    _ball_change(tree, i, motion, q, l, c, change)
                value = _bend(sums[e], motion.S[l], motion.S[c], change) * weight * tree.factor[l] * tree.factor[c]
                H[tree.coordinate[l], tree.coordinate[c]] += value
                if i != e:
                    H[tree.coordinate[c], tree.coordinate[l]] += value
            i = tree.parent[i]


@njit(cache=True)
def _bend(sums, S, C, change):
    """Return the work of summed wrenches on the second derivative of poses by the column S, then by C."""
    value = 0.0
    for a in range(6):
        value += sums[a] * change[a]
    trace = sums[6] + sums[10] + sums[14]
    along = 0.0
    for a in range(3):
        b, c = (a + 1) % 3, (a + 2) % 3
        # f . (omega_l x v_c)
        value += sums[3 + a] * (S[b] * C[3 + c] - S[c] * C[3 + b])
        along += S[a] * C[a]
        for d in range(3):
            # sum of (omega_l . x) (f . omega_c)
            value += S[a] * sums[6 + 3 * a + d] * C[d]
            value += C[a] * sums[15 + 3 * a + d] * S[d]
    return value - trace * along


@njit(cache=True)
def _ball_change(tree, i, motion, q, l, c, out):
    """Fill ``out`` (6,) with dS_l/dq_c of two columns of one ball."""
    x, w, k, D = motion.x0[i], np.empty(3), np.empty(6), np.empty((3, 3))
    unit, first, omega = np.zeros(3), tree.first[i], np.empty(3)
    own_coordinates(tree, i, q, True, w)
    jacobian_coefficients(w[0] * w[0] + w[1] * w[1] + w[2] * w[2], k)
    unit[l - first] = 1.0
    turn_derivative(1.0, w, unit, k, D)
    times(motion.R0[i], D[:, c - first], omega)
    for a in range(3):
        b, d = (a + 1) % 3, (a + 2) % 3
        out[a] = omega[a]
        out[3 + a] = x[b] * omega[d] - x[d] * omega[b]


@njit(cache=True)
def fill_point(motion, i, rest, y):
    """Fill y (3,) with the place of a point in the frame of element ``i``, from the origin."""
    times(motion.R[i], rest, y)
    for a in range(3):
        y[a] += motion.x[i, a]


@njit(cache=True)
def fill_points(tree, motion, elements, rest, X, P, Q):
    """Fill X (3 k,), P and, unless it is empty, Q (3 k, n) of points ``rest`` (k, 3) in the frames of elements (k,)."""
    y, change, moved, rate = np.empty(3), np.empty(6), np.empty(3), np.empty(3)
    P[:], Q[:] = 0.0, 0.0
    for number in range(elements.size):
        i, row = elements[number], 3 * number
        V = motion.V[i]
        fill_point(motion, i, rest[number], y)
        for a in range(3):
            X[row + a] = motion.origin[i, a] + y[a]
        while i >= 0:
            for c in _columns_of(tree, i):
                at, f = tree.coordinate[c], tree.factor[c]
                point_rate(motion.S[c], y, rate)
                for a in range(3):
                    P[row + a, at] += f * rate[a]
                if Q.size:
                    _change_of_rate(y, V, motion.S[c], motion.S1[c], change, moved, rate)
                    for a in range(3):
                        Q[row + a, at] += f * rate[a]
            i = tree.parent[i]


@njit(cache=True)
def add_point_curvature(tree, motion, elements, rest, q, weight, force, H):
    """Add ``weight`` sum force d2X/dq2 of points to H (n, n); ``force`` (3 k,)."""
    sums, y = np.zeros((tree.parent.size, 24)), np.empty(3)
    for number in range(elements.size):
        fill_point(motion, elements[number], rest[number], y)
        _add_point_sum(y, force[3 * number : 3 * number + 3], sums[elements[number]])
    _bend_trees(tree, motion, q, weight, sums, H)


@njit(cache=True)
def place_links_over(tree, theta, links, q, X, P):
    """Fill X (k, 6 n_l) and P (k, 6 n_l, n) at k places q (k, n)."""
    for k in range(q.shape[0]):
        place_links(tree, theta, links, q[k], X[k], P[k])


@njit(cache=True)
def link_rates_over(tree, theta, links, q, v, Q):
    """Fill Q = d(P v)/dq (k, 6 n_l, n) at k states."""
    for k in range(q.shape[0]):
        link_rates(tree, theta, links, q[k], v[k], Q[k])


@njit(cache=True)
def link_parameters_over(tree, theta, links, q, u, dX, dU):
    """Fill the derivatives of X and of P u by the numbers of the placements, (k, 6 n_l, N, 6) each."""
    for k in range(q.shape[0]):
        link_parameters(tree, theta, links, q[k], u[k], dX[k], dU[k])
