"""The way back through the dynamics of a tree: lam^T dr by coordinates, velocities and numbers, in O(n).

With U the twists at velocities lam, lam^T r = sum U . I A - (V x U) . I V: linear in mass, first moment and inertia of
every element. What an element's columns and placement move is all that follows it, so that sums over its subtree of I U
and D^T U (`add.kernels.tree_dynamics` has D) serve all of them, and no matrix is made.
"""

import numpy as np

from add.kernels.borrowed import put
from add.kernels.caching import njit
from add.kernels.rotation import jacobian_coefficients, turn
from add.kernels.tree_dynamics import apply_inertia, composite, dot, tree_state
from add.kernels.tree_map import add_force, fill_frame, fill_frame_rate, fill_point
from add.kernels.trees import force_cross, motion_cross, parent_twists, placement_columns


@njit(cache=True, forceinline=True)
def _moved(tree, motion, lam, start, out):
    """Fill ``out`` (N, 6) with the twists of the elements at velocities ``lam``."""
    for i in range(tree.parent.size):
        p = tree.parent[i]
        out[i] = 0.0
        if p >= 0:
            put(out[p], out[i])
        stop = tree.first[i + 1] if i + 1 < tree.parent.size else tree.element.size
        for c in range(tree.first[i], stop):
            f = tree.factor[c] * lam[start + tree.coordinate[c]]
            for b in range(6):
                out[i, b] += f * motion.S[c, b]


@njit(cache=True)
def tree_parameters(tree, theta, start, n, q, v, a, lam, bars):
    """Fill the cotangents lam^T dr/dtheta: ``bars`` of the elements (N, 16), of armatures (C,) and of gravity (3,).

    r is linear in mass, first moment and inertia: with U the twists at velocities lam,
    lam^T r = sum U . I A - (V x U) . I V.
    """
    part = slice(start, start + n)
    motion, wrenches = tree_state(tree, theta, q[part], v[part], a[part])
    works = np.empty((4, tree.parent.size, 6))
    fill_works(tree, motion, wrenches, start, lam, works)
    fill_parameters(tree, theta, motion, wrenches, works, start, a, lam, bars)


@njit(cache=True, forceinline=True)
def fill_works(tree, motion, wrenches, start, lam, out):
    """Fill ``out`` (4, N, 6): twists U at velocities lam, their rates W, and work of what follows an element along U.

    That is by I and by D, sums over the subtree: D^T U = V x* I U - I W - U x* I V.
    """
    U, W, by_inertia, by_change = out[0], out[1], out[2], out[3]
    inertia, momentum = wrenches.inertia, np.empty(6)
    _moved(tree, motion, lam, start, U)
    out[1:] = 0.0
    for i in range(tree.parent.size):
        if inertia[i, 0] != 0.0:
            V = motion.V[i]
            motion_cross(V, U[i], 1.0, W[i])
            apply_inertia(inertia[i], U[i], 1.0, by_inertia[i])
            momentum[:] = 0.0
            apply_inertia(inertia[i], V, 1.0, momentum)
            force_cross(V, by_inertia[i], 1.0, by_change[i])
            apply_inertia(inertia[i], W[i], -1.0, by_change[i])
            force_cross(U[i], momentum, -1.0, by_change[i])
    composite(tree.parent, by_inertia)
    composite(tree.parent, by_change)


@njit(cache=True, forceinline=True)
def pull_columns(tree, motion, wrenches, works, start, q_bar, v_bar):
    """Add lam^T dr/dq and lam^T dr/dv to cotangents, but for `add_ball_rows`; ``works`` are those of `fill_works`."""
    U, by_inertia, by_change, above = works[0], works[2], works[3], np.empty(6)
    for c in range(tree.element.size):
        e, at, f, S, S1 = tree.element[c], start + tree.coordinate[c], tree.factor[c], motion.S[c], motion.S1[c]
        above[:] = 0.0
        force_cross(S, wrenches.force[e], 1.0, above)
        q_bar[at] += f * (dot(by_inertia[e], motion.S2[c]) + dot(by_change[e], S1) + dot(U[e], above))
        v_bar[at] += f * (2.0 * dot(by_inertia[e], S1) + dot(by_change[e], S))


@njit(cache=True, forceinline=True)
def fill_parameters(tree, theta, motion, wrenches, works, start, a, lam, bars):
    """Fill the cotangents at a state of motion; see `tree_parameters` and `fill_works`."""
    size, (inertia, force), (own, armature, gravity) = tree.parent.size, wrenches, bars
    U, W, by_inertia, by_change = works[0], works[1], works[2], works[3]
    own[:], gravity[:] = 0.0, 0.0
    room, V, A, meeting, change = np.empty((7, 3)), np.empty(6), np.empty(6), np.empty(6), np.empty(6)
    for i in range(size):
        p, some = tree.parent[i], False
        if inertia[i, 0] != 0.0:
            _pull_inertia(tree, theta, i, motion, U, W, room, own)
        if p < 0:
            for b in range(3):
                gravity[b] -= by_inertia[i, 3 + b]
        for b in range(6):
            some = some or tree.placement[i, b] >= 0
        if some:
            # Columns T of a placement have the rates V x T and A x T + V x (V x T): all of them meet one wrench.
            parent_twists(tree, theta, i, motion, V, A)
            for b in range(6):
                change[b], meeting[b] = -by_change[i, b], 0.0
            force_cross(V, by_inertia[i], 1.0, change)
            force_cross(V, change, 1.0, meeting)
            force_cross(A, by_inertia[i], -1.0, meeting)
            if p >= 0:
                force_cross(U[p], force[i], -1.0, meeting)
            _pull_placement(tree, theta, i, motion, meeting, own)
    for c in range(tree.element.size):
        at = start + tree.coordinate[c]
        armature[c] = tree.factor[c] ** 2 * lam[at] * a[at]


@njit(cache=True, forceinline=True)
def _pull_placement(tree, theta, i, motion, wrench, own):
    """Fill the cotangents of the placement of element ``i``, own[i, 10:], whose columns T meet a wrench: T . wrench."""
    p, x, moment, w = tree.parent[i], motion.x0[i], np.empty(3), np.zeros(3)
    turned = False
    for a in range(3):
        b, c = (a + 1) % 3, (a + 2) % 3
        moment[a] = wrench[a] + wrench[3 + b] * x[c] - wrench[3 + c] * x[b]
        w[a] = theta[tree.placement[i, 3 + a]] if tree.placement[i, 3 + a] >= 0 else 0.0
        turned = turned or w[a] != 0.0
    for a in range(3):
        own[i, 10 + a], own[i, 13 + a] = wrench[3 + a], moment[a]
        if p >= 0:
            own[i, 10 + a], own[i, 13 + a] = 0.0, 0.0
            for d in range(3):
                own[i, 10 + a] += motion.R[p, d, a] * wrench[3 + d]
                own[i, 13 + a] += motion.R[p, d, a] * moment[d]
    if turned:
        k = np.empty(6)
        jacobian_coefficients(w[0] * w[0] + w[1] * w[1] + w[2] * w[2], k)
        put(own[i, 13:16], moment)
        turn(-1.0, w, moment, k, own[i, 13:16])


@njit(cache=True, forceinline=True)
def _pull_inertia(tree, theta, i, motion, U, W, room, own):
    """Fill the cotangents of mass, centre (3) and inertia (6) of element ``i`` from U . I A - W . I V.

    They come through its inertia about the origin, m, h = m y and J = R C R^T + m (y^2 - y y^T), y = x + R c: row 3
    of the ``room`` (7, 3) has y, row 4 the cotangent of h, and the first three that of J.
    """
    m, out = theta[tree.mass[i]], 0.0
    for a in range(3):
        b, c = (a + 1) % 3, (a + 2) % 3
        room[3, a], room[4, a] = motion.x[i, a], 0.0
        for d in range(3):
            room[3, a] += motion.R[i, a, d] * theta[tree.centre[i, d]]
            room[a, d] = 0.0
        for X, Y, f in ((U, motion.A, 1.0), (W, motion.V, -1.0)):
            out += f * X[i, 3 + a] * Y[i, 3 + a]
            room[4, a] += f * (
                Y[i, 3 + b] * X[i, c] - Y[i, 3 + c] * X[i, b] + X[i, 3 + b] * Y[i, c] - X[i, 3 + c] * Y[i, b]
            )
            for d in range(3):
                room[a, d] += 0.5 * f * (X[i, a] * Y[i, d] + X[i, d] * Y[i, a])
    trace = room[0, 0] + room[1, 1] + room[2, 2]
    for a in range(3):
        along = trace * room[3, a]
        for d in range(3):
            along -= room[a, d] * room[3, d]
        out += room[3, a] * (room[4, a] + along)
        room[5, a] = m * (room[4, a] + 2.0 * along)
    own[i, 0] = out
    for a in range(3):
        own[i, 1 + a] = 0.0
        for d in range(3):
            own[i, 1 + a] += motion.R[i, d, a] * room[5, d]
            room[6, d] = 0.0
            for e in range(3):
                room[6, d] += room[d, e] * motion.R[i, e, a]
        for b in range(a + 1):
            value = 0.0
            for d in range(3):
                value += motion.R[i, d, b] * room[6, d]
            own[i, 4 + a if a == b else 6 + a + b] = value if a == b else 2.0 * value


@njit(cache=True, forceinline=True)
def scatter(tree, bars, out):
    """Add the cotangents of the elements' numbers, as `fill_parameters` has them, to ``out``."""
    own, armature, gravity = bars
    for i in range(tree.parent.size):
        if tree.mass[i] >= 0:
            out[tree.mass[i]] += own[i, 0]
            for b in range(3):
                out[tree.centre[i, b]] += own[i, 1 + b]
            for b in range(6):
                out[tree.inertia[i, b]] += own[i, 4 + b]
        for b in range(6):
            if tree.placement[i, b] >= 0:
                out[tree.placement[i, b]] += own[i, 10 + b]
    for c in range(tree.element.size):
        if tree.armature[c] >= 0:
            out[tree.armature[c]] += armature[c]
    for b in range(3):
        out[tree.gravity[b]] += gravity[b]


@njit(cache=True)
def add_placement_work(tree, theta, motion, links, x_bar, u_bar, own):
    """Add x_bar^T dX/dp + u_bar^T d(P u)/dp by the placements p to ``own`` (N, 6), at a motion of velocities u.

    Both are linear in the columns T and T' of a placement, the same for all that follows. T' meets the link's wrench W
    of u_bar; T meets V x* W, the share of the point's and the spin's own change, and the wrench of x_bar.
    """
    by_column, by_rate = np.zeros((tree.parent.size, 6)), np.zeros((tree.parent.size, 6))
    w, k, B, w_dot, D = np.empty(3), np.empty(6), np.empty((3, 3)), np.empty(3), np.empty((3, 3))
    torque, spin = np.empty(3), np.empty(3)
    for number in range(links.size):
        i = links[number]
        x_part, u_part = x_bar[6 * number : 6 * number + 6], u_bar[6 * number : 6 * number + 6]
        if not (x_part.any() or u_part.any()):
            continue
        fill_frame(motion, i, w, k, B)
        fill_frame_rate(motion, i, k, B, w, w_dot, D)
        _add_wrench(motion.x[i], B, x_part, by_column[i])
        _add_wrench(motion.x[i], B, u_part, by_rate[i])
        force_cross(motion.V[i], by_rate[i], 1.0, by_column[i])
        V, x = motion.V[i], motion.x[i]
        for a in range(3):
            torque[a] = B[0, a] * u_part[3] + B[1, a] * u_part[4] + B[2, a] * u_part[5]
        for a in range(3):
            spin[a] = D[0, a] * torque[0] + D[1, a] * torque[1] + D[2, a] * torque[2]
            b, c = (a + 1) % 3, (a + 2) % 3
            torque_a = u_part[b] * V[c] - u_part[c] * V[b]  # u_bar x omega
            by_column[i, 3 + a] += torque_a
            w_dot[a] = torque_a
        for a in range(3):
            b, c = (a + 1) % 3, (a + 2) % 3
            by_column[i, a] += x[b] * w_dot[c] - x[c] * w_dot[b]
            by_column[i, a] -= B[0, a] * spin[0] + B[1, a] * spin[1] + B[2, a] * spin[2]
    _add_placements(tree, theta, motion, by_column, by_rate, own)


@njit(cache=True)
def add_point_work(tree, theta, motion, elements, rest, x_bar, u_bar, own):
    """Add what `add_placement_work` does of points ``rest`` (k, 3) in the frames of elements (k,)."""
    by_column, by_rate = np.zeros((tree.parent.size, 6)), np.zeros((tree.parent.size, 6))
    y, across, wrench = np.empty(3), np.empty(3), np.empty(6)
    for number in range(elements.size):
        i, u = elements[number], u_bar[3 * number : 3 * number + 3]
        V = motion.V[i]
        fill_point(motion, i, rest[number], y)
        add_force(y, x_bar[3 * number : 3 * number + 3], by_column[i])
        wrench[:] = 0.0
        add_force(y, u, wrench)
        force_cross(V, wrench, 1.0, by_column[i])
        for a in range(3):
            b, c = (a + 1) % 3, (a + 2) % 3
            across[a] = u[b] * V[c] - u[c] * V[b]  # u_bar x omega
        add_force(y, across, by_column[i])
        for a in range(6):
            by_rate[i, a] += wrench[a]
    _add_placements(tree, theta, motion, by_column, by_rate, own)


@njit(cache=True)
def point_parameters(tree, theta, motion, elements, rest, dX, dU):
    """Fill the derivatives of places and of P u of points by the numbers of the placements, (3 k, N, 6) each."""
    unit, none = np.zeros(3), np.zeros(3)
    dX[:], dU[:] = 0.0, 0.0
    for row in range(3 * elements.size):
        one = slice(row // 3, row // 3 + 1)
        unit[row % 3] = 1.0
        add_point_work(tree, theta, motion, elements[one], rest[one], unit, none, dX[row])
        add_point_work(tree, theta, motion, elements[one], rest[one], none, unit, dU[row])
        unit[row % 3] = 0.0


@njit(cache=True)
def _add_placements(tree, theta, motion, by_column, by_rate, own):
    """Add the work on the placements' columns T and T' to ``own`` (N, 6), from that of each element's own wrenches."""
    size = tree.parent.size
    for i in range(size - 1, 0, -1):
        if tree.parent[i] >= 0:
            for a in range(6):
                by_column[tree.parent[i], a] += by_column[i, a]
                by_rate[tree.parent[i], a] += by_rate[i, a]
    T, T1, T2 = np.empty((6, 6)), np.empty((6, 6)), np.empty((6, 6))
    for i in range(size):
        if (tree.placement[i] < 0).all() or not (by_column[i].any() or by_rate[i].any()):
            continue
        placement_columns(tree, theta, i, motion, T, T1, T2)
        for b in range(6):
            for a in range(6):
                own[i, b] += by_column[i, a] * T[b, a] + by_rate[i, a] * T1[b, a]


@njit(cache=True)
def _add_wrench(x, B, part, out):
    """Add the wrench about the origin of a force at x and a cotangent of the rotation vector to ``out`` (6,)."""
    add_force(x, part, out)
    for a in range(3):
        out[a] += B[0, a] * part[3] + B[1, a] * part[4] + B[2, a] * part[5]
