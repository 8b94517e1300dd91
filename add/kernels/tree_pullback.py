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
from add.kernels.trees import force_cross, motion_cross, parent_twists


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
