"""Trees of links: poses, twists and motion subspaces of all their elements in one pass from the root outwards.

An element is a frame with a joint of one kind to its parent: no coordinate (fixed), one (hinge, slide, and screw, which
is a hinge with a pitch), or the three of a rotation vector (ball). Joints of more coordinates are chains of elements of
which only the last has mass. Twists are (omega; v), wrenches (moment; force), in world axes about the point `origin`
of their tree; trees whose elements follow each other are walked together, with an origin each. With p the parent of
element i, placed at (d, P) in its frame, and S the columns of the joint:

    V_i = V_p + S v,    A_i = A_p + S a + S' v,    S' = V_p x S + ring,    A_world = (0; -g)
    S'' = A_p x S + V_p x S' + V_p x ring + ring'

S' and S'' are the total rates of S; ring is its rate in the parent's axes, zero but for a ball: (J_l(w))' e_k. A
placement has columns, too, T: those of the motions of all that follows by its six numbers, with rates alike.
"""

from typing import NamedTuple

import numpy as np

from add.kernels.arena import Floats, Floats2, Ints, Ints2
from add.kernels.borrowed import put
from add.kernels.caching import njit
from add.kernels.rotation import (
    fill_jacobian,
    fill_rotation,
    jacobian_coefficients,
    turn_derivative,
    turn_second_derivative,
)
from add.typing import FloatArray

FIXED, HINGE, SLIDE, BALL = range(4)


class Tree(NamedTuple):
    """Elements of one tree or of several, parents first; indices into theta are -1 where there is no number.

    Attributes
    ----------
    parent, kind, first : (N,) number of the parent (-1: the world), kind of joint, first column
    axis, pitch : (N, 3), (N,) unit axis in the placed frame; advance of a screw [m/rad]
    element : (C,) of each column
    coordinate, factor, offset : (C,) each column's own coordinate is offset + factor q[coordinate]
    placement : (N, 6) indices of position [m] and rotation vector [rad] in the parent's frame
    mass, centre, inertia : (N,), (N, 3), (N, 6) indices; xx, yy, zz, xy, xz, yz about the centre, in the element's axes
    armature : (C,) indices [kg, kg m^2]
    gravity : (3,) indices [m/s^2]
    """

    parent: Ints
    kind: Ints
    first: Ints
    axis: Floats2
    pitch: Floats
    element: Ints
    coordinate: Ints
    factor: Floats
    offset: Floats
    placement: Ints2
    mass: Ints
    centre: Ints2
    inertia: Ints2
    armature: Ints
    gravity: Ints


class Motion(NamedTuple):
    """A state of motion of a tree.

    Attributes
    ----------
    origin : (N, 3) place that twists and wrenches are about, the same for all elements of a tree
    R, x : (N, 3, 3), (N, 3) rotations, and places from the origin
    R0, x0 : the same before the motion of the element's joint
    V, A : (N, 6) twists and their rates
    S, S1, S2 : (C, 6) columns, S' and S''
    """

    origin: FloatArray
    R: FloatArray
    x: FloatArray
    R0: FloatArray
    x0: FloatArray
    V: FloatArray
    A: FloatArray
    S: FloatArray
    S1: FloatArray
    S2: FloatArray


@njit(cache=True, forceinline=True)
def motion_cross(X, Y, f, out):
    """Add f X x Y, the rate of a twist Y that moves with X, to ``out`` (6,)."""
    x0, x1, x2, y0, y1, y2 = f * X[0], f * X[1], f * X[2], Y[0], Y[1], Y[2]
    out[0] += x1 * y2 - x2 * y1
    out[1] += x2 * y0 - x0 * y2
    out[2] += x0 * y1 - x1 * y0
    u0, u1, u2, v0, v1, v2 = f * X[3], f * X[4], f * X[5], Y[3], Y[4], Y[5]
    out[3] += x1 * v2 - x2 * v1 + u1 * y2 - u2 * y1
    out[4] += x2 * v0 - x0 * v2 + u2 * y0 - u0 * y2
    out[5] += x0 * v1 - x1 * v0 + u0 * y1 - u1 * y0


@njit(cache=True)
def force_cross(X, F, f, out):
    """Add f X x* F, the rate of a wrench F that moves with X, to ``out`` (6,)."""
    x0, x1, x2, m0, m1, m2 = f * X[0], f * X[1], f * X[2], F[0], F[1], F[2]
    u0, u1, u2, f0, f1, f2 = f * X[3], f * X[4], f * X[5], F[3], F[4], F[5]
    out[0] += x1 * m2 - x2 * m1 + u1 * f2 - u2 * f1
    out[1] += x2 * m0 - x0 * m2 + u2 * f0 - u0 * f2
    out[2] += x0 * m1 - x1 * m0 + u0 * f1 - u1 * f0
    out[3] += x1 * f2 - x2 * f1
    out[4] += x2 * f0 - x0 * f2
    out[5] += x0 * f1 - x1 * f0


@njit(cache=True, forceinline=True)
def _turn_about(place, omega, out):
    """Fill ``out`` (6,) with the twist of a rotation ``omega`` about ``place``."""
    p0, p1, p2, w0, w1, w2 = place[0], place[1], place[2], omega[0], omega[1], omega[2]
    out[0], out[1], out[2] = w0, w1, w2
    out[3], out[4], out[5] = p1 * w2 - p2 * w1, p2 * w0 - p0 * w2, p0 * w1 - p1 * w0


@njit(cache=True, forceinline=True)
def placed(theta, indices, d, P):
    """Fill the place d (3,) and the rotation P (3, 3) of a placement in the parent's frame."""
    for i in range(3):
        d[i] = theta[indices[3 + i]] if indices[3 + i] >= 0 else 0.0
        for j in range(3):
            P[i, j] = 1.0 if i == j else 0.0
    if d[0] != 0.0 or d[1] != 0.0 or d[2] != 0.0:
        k = np.empty(6)
        jacobian_coefficients(d[0] * d[0] + d[1] * d[1] + d[2] * d[2], k)
        fill_rotation(d, k, P)
    for i in range(3):
        d[i] = theta[indices[i]] if indices[i] >= 0 else 0.0


@njit(cache=True, forceinline=True)
def times(R, x, out):
    """Fill ``out`` (3,) with R x; calls of BLAS would take longer than that."""
    for a in range(3):
        out[a] = R[a, 0] * x[0] + R[a, 1] * x[1] + R[a, 2] * x[2]


@njit(cache=True, forceinline=True)
def product(R, P, out):
    """Fill ``out`` (3, 3) with R P."""
    for a in range(3):
        for b in range(3):
            out[a, b] = R[a, 0] * P[0, b] + R[a, 1] * P[1, b] + R[a, 2] * P[2, b]


@njit(cache=True, forceinline=True)
def _fill_joint_frame(tree, theta, i, motion):
    """Fill the frame of element ``i`` before the motion of its joint; that behind it is scratch."""
    p, d, P = tree.parent[i], motion.x[i], motion.R[i]
    placed(theta, tree.placement[i], d, P)
    if p < 0:
        put(d, motion.x0[i])
        put(P, motion.R0[i])
        return
    times(motion.R[p], d, motion.x0[i])
    for a in range(3):
        motion.x0[i, a] += motion.x[p, a]
    product(motion.R[p], P, motion.R0[i])


@njit(cache=True, forceinline=True)
def parent_twists(tree, theta, i, motion, V, A):
    """Fill V_p and A_p (6,) of element ``i``."""
    p = tree.parent[i]
    if p >= 0:
        put(motion.V[p], V)
        put(motion.A[p], A)
        return
    for a in range(3):
        V[a] = V[3 + a] = A[a] = 0.0
        A[3 + a] = -theta[tree.gravity[a]]


@njit(cache=True, forceinline=True)
def rates_with(V, A, S, S1, S2):
    """Fill the rates S' and S'' (6,) of a column that moves with a frame of twist V and rate A."""
    for b in range(6):
        S1[b] = S2[b] = 0.0
    motion_cross(V, S, 1.0, S1)
    motion_cross(A, S, 1.0, S2)
    motion_cross(V, S1, 1.0, S2)


@njit(cache=True, forceinline=True)
def own_coordinates(tree, i, values, with_offset, out):
    """Fill ``out`` (3,) with an element's own coordinates, or velocities without the offset; return how many it has."""
    first, kind = tree.first[i], tree.kind[i]
    width = 3 if kind == BALL else (0 if kind == FIXED else 1)
    for k in range(width):
        c = first + k
        out[k] = tree.factor[c] * values[tree.coordinate[c]] + (tree.offset[c] if with_offset else 0.0)
    return width


@njit(cache=True, forceinline=True)
def _turn_rows(R0, e, angle, R):
    """Fill R (3, 3) with R0 exp(angle [e]x), e a unit vector: row by row c r + (1 - c) (r . e) e + s r x e."""
    s, half = np.sin(angle), np.sin(0.5 * angle)
    rest = 2.0 * half * half  # 1 - c
    for a in range(3):
        r0, r1, r2 = R0[a, 0], R0[a, 1], R0[a, 2]
        along = rest * (r0 * e[0] + r1 * e[1] + r2 * e[2])
        R[a, 0] = r0 - rest * r0 + along * e[0] + s * (r1 * e[2] - r2 * e[1])
        R[a, 1] = r1 - rest * r1 + along * e[1] + s * (r2 * e[0] - r0 * e[2])
        R[a, 2] = r2 - rest * r2 + along * e[2] + s * (r0 * e[1] - r1 * e[0])


@njit(cache=True, forceinline=True)
def fill_frames(tree, theta, q, motion):
    """Fill the rotations of all elements, and their places from their tree's first one with mass, the origin."""
    y = np.empty(3)
    for i in range(tree.parent.size):
        _fill_joint_frame(tree, theta, i, motion)
        own_coordinates(tree, i, q, True, y)
        kind, axis, R0, R = tree.kind[i], tree.axis[i], motion.R0[i], motion.R[i]
        way = y[0] if kind == SLIDE else (tree.pitch[i] * y[0] if kind == HINGE else 0.0)
        for a in range(3):
            motion.x[i, a] = motion.x0[i, a] + way * (R0[a, 0] * axis[0] + R0[a, 1] * axis[1] + R0[a, 2] * axis[2])
        if kind == HINGE:
            _turn_rows(R0, axis, y[0], R)
        elif kind == BALL:
            k, turned = np.empty(6), np.empty((3, 3))
            jacobian_coefficients(y[0] * y[0] + y[1] * y[1] + y[2] * y[2], k)
            fill_rotation(y, k, turned)
            product(R0, turned, R)
        else:
            put(R0, R)
    _fill_origins(tree, motion)
    for i in range(tree.parent.size):
        for a in range(3):
            motion.x[i, a] -= motion.origin[i, a]
            motion.x0[i, a] -= motion.origin[i, a]


@njit(cache=True, forceinline=True)
def _fill_origins(tree, motion):
    """Fill the origins: about a place in the tree products of places stay small far from the world's origin."""
    size = tree.parent.size
    root, heavy = np.empty(size, dtype=np.int64), np.zeros(size, dtype=np.bool_)
    motion.origin[:] = 0.0
    for i in range(size):  # places on one tree may stand behind the elements of another
        root[i] = i if tree.parent[i] < 0 else root[tree.parent[i]]
        if tree.mass[i] >= 0 and not heavy[root[i]]:
            heavy[root[i]] = True
            put(motion.x[i], motion.origin[root[i]])
    for i in range(size):
        if root[i] != i:
            put(motion.origin[root[i]], motion.origin[i])


@njit(cache=True)
def new_motion(n, c):
    """Return room for the `Motion` of ``n`` elements and ``c`` columns."""
    return Motion(
        np.empty((n, 3)), np.empty((n, 3, 3)), np.empty((n, 3)), np.empty((n, 3, 3)), np.empty((n, 3)),
        np.empty((n, 6)), np.empty((n, 6)), np.empty((c, 6)), np.empty((c, 6)), np.empty((c, 6)),
    )  # fmt: skip


@njit(cache=True)
def tree_motion(tree, theta, q, v, a):
    """Return the `Motion` at coordinates, velocities and accelerations of the tree (n,)."""
    motion = new_motion(tree.parent.size, tree.element.size)
    fill_motion(tree, theta, q, v, a, motion)
    return motion


@njit(cache=True, forceinline=True)
def fill_motion(tree, theta, q, v, a, motion):
    """Fill a `Motion`; see `tree_motion`."""
    n = tree.parent.size
    fill_frames(tree, theta, q, motion)
    room = np.empty((4, 3))
    y, rate, acceleration, e = room[0], room[1], room[2], room[3]
    for i in range(n):
        V, A = motion.V[i], motion.A[i]  # of the parent, until the columns are there
        parent_twists(tree, theta, i, motion, V, A)
        first = tree.first[i]
        width = own_coordinates(tree, i, q, True, y)
        own_coordinates(tree, i, v, False, rate)
        own_coordinates(tree, i, a, False, acceleration)
        if width == 3:
            _ball(motion.R0[i], motion.x0[i], V, A, y, rate, acceleration, motion, first)
        elif width == 1:
            S = motion.S[first]
            times(motion.R0[i], tree.axis[i], e)
            if tree.kind[i] == HINGE:
                _turn_about(motion.x0[i], e, S)
                for b in range(3):
                    S[3 + b] += tree.pitch[i] * e[b]
            else:
                for b in range(3):
                    S[b], S[3 + b] = 0.0, e[b]
            rates_with(V, A, S, motion.S1[first], motion.S2[first])
        for k in range(width):
            S, S1 = motion.S[first + k], motion.S1[first + k]
            for b in range(6):
                V[b] += S[b] * rate[k]
                A[b] += S[b] * acceleration[k] + S1[b] * rate[k]


@njit(cache=True)
def _ball(R, x, V, A, w, w_dot, w_ddot, motion, first):
    """Fill the columns of a ball: omega = R J_l(w) w_dot in the joint's frame R."""
    k, J, D, E = np.empty(6), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    unit, ring, ring1, turned, e = np.zeros(3), np.empty(6), np.empty(6), np.empty(3), np.empty(3)
    jacobian_coefficients(w[0] * w[0] + w[1] * w[1] + w[2] * w[2], k)
    fill_jacobian(1.0, w, k, J)
    for c in range(3):
        S, S1, S2 = motion.S[first + c], motion.S1[first + c], motion.S2[first + c]
        times(R, J[:, c], e)
        _turn_about(x, e, S)
        rates_with(V, A, S, S1, S2)
        unit[:] = 0.0
        unit[c] = 1.0
        turn_derivative(1.0, w, unit, k, D)
        turn_second_derivative(1.0, w, unit, w_dot, k, E)
        times(D, w_dot, turned)
        times(R, turned, e)
        _turn_about(x, e, ring)
        for b in range(3):
            turned[b] = 0.0
            for d in range(3):
                turned[b] += D[b, d] * w_ddot[d] + E[b, d] * w_dot[d]
        times(R, turned, e)
        _turn_about(x, e, ring1)
        motion_cross(V, ring, 2.0, S2)  # once in V x S', once in the rate of ring itself
        for b in range(6):
            S1[b] += ring[b]
            S2[b] += ring1[b]


@njit(cache=True)
def placement_columns(tree, theta, i, motion, T, T1, T2):
    """Fill the columns T (6, 6) of the placement of element ``i``, and their rates."""
    V, A = np.empty(6), np.empty(6)
    parent_twists(tree, theta, i, motion, V, A)
    p = tree.parent[i]
    w, k, J, turned = np.zeros(3), np.empty(6), np.empty((3, 3)), np.empty(3)
    for b in range(3):
        w[b] = theta[tree.placement[i, 3 + b]] if tree.placement[i, 3 + b] >= 0 else 0.0
    jacobian_coefficients(w[0] * w[0] + w[1] * w[1] + w[2] * w[2], k)
    fill_jacobian(1.0, w, k, J)
    T[:] = 0.0
    for b in range(3):
        for c in range(3):
            T[b, 3 + c] = motion.R[p, c, b] if p >= 0 else (1.0 if b == c else 0.0)
        for c in range(3):
            turned[c] = (
                J[c, b]
                if p < 0
                else motion.R[p, c, 0] * J[0, b] + motion.R[p, c, 1] * J[1, b] + motion.R[p, c, 2] * J[2, b]
            )
        _turn_about(motion.x0[i], turned, T[3 + b])
    for b in range(6):
        rates_with(V, A, T[b], T1[b], T2[b])
