"""Inertia and gravity of a tree by the recursive Newton-Euler algorithm, with exact derivatives in O(n d), d the depth.

    F_i = I_i A_i + V_i x* I_i V_i,    F^c_i = F_i + sum over children F^c,    r = S_i^T F^c_i + armature a

Derivatives: J. Carpentier and N. Mansard, "Analytical derivatives of rigid body dynamics algorithms", RSS 2018, in
composite form and for columns with rates of their own (`add.kernels.trees`). With I^c, D^c, F^c the sums over the
subtree of I, D = B - I (V x), B X = V x* I X + X x* I V, and F: for column k at or above column l

    dr_k/dq_l = S_k^T (I^c_l S''_l + D^c_l S'_l + S_l x* F^c_l)
    dr_k/dv_l = S_k^T (2 I^c_l S'_l + D^c_l S_l),    dr_k/da_l = S_k^T I^c_l S_l

and with I^c_k, D^c_k, without the F^c, for k below l; two columns of one ball add (dS_k/dq_l)^T F^c. By the numbers of
a placement r has the derivatives of columns T without motion of their own.
"""

from typing import NamedTuple

import numpy as np

from add.kernels.borrowed import put
from add.kernels.caching import njit
from add.kernels.rotation import jacobian_coefficients, turn_derivative
from add.kernels.trees import BALL, force_cross, motion_cross, tree_motion
from add.typing import FloatArray


class Wrenches(NamedTuple):
    """Inertia and wrenches of the elements of a tree.

    Attributes
    ----------
    inertia : (N, 10) of each element alone, as `inertia_of` fills it
    force : (N, 6) F^c, of the element and all that follows it
    """

    inertia: FloatArray
    force: FloatArray


@njit(cache=True)
def new_wrenches(n):
    """Return room for ``n`` elements."""
    return Wrenches(np.empty((n, 10)), np.empty((n, 6)))


@njit(cache=True)
def inertia_of(tree, theta, i, motion, out):
    """Fill ``out`` (10,) with mass, first moments and inertia about the origin; return the mass."""
    out[:] = 0.0
    if tree.mass[i] < 0:
        return 0.0
    m, R, x, centre, index = theta[tree.mass[i]], motion.R[i], motion.x[i], tree.centre[i], tree.inertia[i]
    xx, yy, zz = theta[index[0]], theta[index[1]], theta[index[2]]
    xy, xz, yz = theta[index[3]], theta[index[4]], theta[index[5]]
    c0, c1, c2, square = theta[centre[0]], theta[centre[1]], theta[centre[2]], 0.0
    y = out[1:4]
    for a in range(3):
        y[a] = x[a] + (R[a, 0] * c0 + R[a, 1] * c1 + R[a, 2] * c2)
        square += y[a] * y[a]
    for a in range(3):
        u0 = R[a, 0] * xx + R[a, 1] * xy + R[a, 2] * xz
        u1 = R[a, 0] * xy + R[a, 1] * yy + R[a, 2] * yz
        u2 = R[a, 0] * xz + R[a, 1] * yz + R[a, 2] * zz
        out[4 + a] = u0 * R[a, 0] + u1 * R[a, 1] + u2 * R[a, 2] + m * (square - y[a] * y[a])
        for b in range(a + 1, 3):
            out[6 + a + b] = u0 * R[b, 0] + u1 * R[b, 1] + u2 * R[b, 2] - m * y[a] * y[b]
    out[0] = m
    for a in range(3):
        y[a] *= m
    return m


@njit(cache=True)
def apply_inertia(I, X, f, out):
    """Add f I X to ``out`` (6,): momentum of a twist; I as `inertia_of` fills it."""
    w0, w1, w2, v0, v1, v2 = X
    m, h0, h1, h2 = I[0], I[1], I[2], I[3]
    out[0] += f * (I[4] * w0 + I[7] * w1 + I[8] * w2 + h1 * v2 - h2 * v1)
    out[1] += f * (I[7] * w0 + I[5] * w1 + I[9] * w2 + h2 * v0 - h0 * v2)
    out[2] += f * (I[8] * w0 + I[9] * w1 + I[6] * w2 + h0 * v1 - h1 * v0)
    out[3] += f * (m * v0 + w1 * h2 - w2 * h1)
    out[4] += f * (m * v1 + w2 * h0 - w0 * h2)
    out[5] += f * (m * v2 + w0 * h1 - w1 * h0)


@njit(cache=True, forceinline=True)
def fill_wrenches(tree, theta, motion, wrenches):
    """Fill the inertias of the elements and the wrenches of what they carry."""
    momentum, (inertia, force) = np.empty(6), wrenches
    force[:] = 0.0
    for i in range(tree.parent.size):
        if inertia_of(tree, theta, i, motion, inertia[i]) != 0.0:
            momentum[:] = 0.0
            apply_inertia(inertia[i], motion.V[i], 1.0, momentum)
            apply_inertia(inertia[i], motion.A[i], 1.0, force[i])
            force_cross(motion.V[i], momentum, 1.0, force[i])
    composite(tree.parent, force)


@njit(cache=True)
def _changes(motion, inertia, D):
    """Fill D (N, 6, 6) of the elements alone: D X = V x* I X + X x* I V - I (V x X)."""
    unit, momentum, image, column = np.zeros(6), np.empty(6), np.empty(6), np.empty(6)
    for i in range(D.shape[0]):
        if inertia[i, 0] == 0.0:
            D[i] = 0.0
            continue
        momentum[:] = 0.0
        apply_inertia(inertia[i], motion.V[i], 1.0, momentum)
        for b in range(6):
            unit[:] = 0.0
            unit[b] = 1.0
            image[:] = 0.0
            column[:] = 0.0
            apply_inertia(inertia[i], unit, 1.0, image)
            force_cross(motion.V[i], image, 1.0, column)
            force_cross(unit, momentum, 1.0, column)
            image[:] = 0.0
            motion_cross(motion.V[i], unit, 1.0, image)
            apply_inertia(inertia[i], image, -1.0, column)
            put(column, D[i, :, b])


@njit(cache=True, forceinline=True)
def composite(parent, values):
    """Add to every element (N, k) what follows it."""
    for i in range(parent.size - 1, 0, -1):
        if parent[i] >= 0:
            for b in range(values.shape[1]):
                values[parent[i], b] += values[i, b]


@njit(cache=True)
def dot(a, b):
    """Return a . b of two twists or wrenches (6,)."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3] + a[4] * b[4] + a[5] * b[5]


@njit(cache=True)
def tree_state(tree, theta, q, v, a):
    """Return motion and wrenches of a tree."""
    motion, wrenches = tree_motion(tree, theta, q, v, a), new_wrenches(tree.parent.size)
    fill_wrenches(tree, theta, motion, wrenches)
    return motion, wrenches


@njit(cache=True)
def tree_residual(tree, theta, start, n, q, v, a, out):
    """Add r to ``out``; the tree's coordinates are ``n`` from ``start`` in q, v, a, out."""
    part = slice(start, start + n)
    motion, wrenches = tree_state(tree, theta, q[part], v[part], a[part])
    add_residual(tree, theta, motion, wrenches, start, a, out)


@njit(cache=True, forceinline=True)
def add_residual(tree, theta, motion, wrenches, start, a, out):
    """Add r at a state of motion to ``out``; see `tree_residual`."""
    for c in range(tree.element.size):
        at, f = start + tree.coordinate[c], tree.factor[c]
        out[at] += f * dot(motion.S[c], wrenches.force[tree.element[c]])
        if tree.armature[c] >= 0:
            out[at] += f * f * theta[tree.armature[c]] * a[at]


@njit(cache=True)
def tree_jacobian(tree, theta, start, n, q, v, a, weights, J):
    """Add w_q dr/dq + w_v dr/dv + w_a dr/da to J (n, n); ``weights``: these three."""
    part = slice(start, start + n)
    motion, wrenches = tree_state(tree, theta, q[part], v[part], a[part])
    add_jacobian(tree, theta, motion, wrenches, q[part], weights, J)


@njit(cache=True)
def add_jacobian(tree, theta, motion, wrenches, q, weights, J):
    """Add the weighted derivatives at a state of motion to J (n, n); see `tree_jacobian`."""
    size, force = tree.parent.size, wrenches.force
    inertia, D = wrenches.inertia.copy(), np.empty((size, 6, 6))
    _changes(motion, inertia, D)
    composite(tree.parent, inertia)
    composite(tree.parent, D.reshape(size, 36))
    w_q, w_v, w_a = weights
    by_inertia, by_change, up = np.empty(6), np.empty(6), np.empty(6)
    left, low = np.empty(6), np.empty(6)
    for l in range(tree.element.size):
        e, S, S1, S2 = tree.element[l], motion.S[l], motion.S1[l], motion.S2[l]
        to, f = tree.coordinate[l], tree.factor[l]
        for b in range(6):
            by_inertia[b] = w_q * S2[b] + 2.0 * w_v * S1[b] + w_a * S[b]
            by_change[b] = w_q * S1[b] + w_v * S[b]
        up[:] = 0.0
        apply_inertia(inertia[e], by_inertia, 1.0, up)
        force_cross(S, force[e], w_q, up)
        for b in range(6):
            for c in range(6):
                up[b] += D[e, b, c] * by_change[c]
        # Rows at and above l, and by the same walk columns above the row l.
        left[:] = 0.0
        apply_inertia(inertia[e], S, 1.0, left)
        for b in range(6):
            low[b] = 0.0
            for c in range(6):
                low[b] += D[e, c, b] * S[c]
        i = e
        while i >= 0:
            stop = tree.first[i + 1] if i + 1 < size else tree.element.size
            for k in range(tree.first[i], stop):
                g = f * tree.factor[k]
                at = tree.coordinate[k]
                J[at, to] += g * dot(motion.S[k], up)
                if i != e:
                    T, T1, T2 = motion.S[k], motion.S1[k], motion.S2[k]
                    value = 0.0
                    for b in range(6):
                        value += left[b] * (w_q * T2[b] + 2.0 * w_v * T1[b] + w_a * T[b])
                        value += low[b] * (w_q * T1[b] + w_v * T[b])
                    J[to, at] += g * value
            i = tree.parent[i]
        if tree.armature[l] >= 0:
            J[to, to] += w_a * f * f * theta[tree.armature[l]]
    if w_q != 0.0:
        add_ball_rows(tree, theta, motion, wrenches, q, w_q, J)


@njit(cache=True, forceinline=True)
def add_mass(tree, theta, motion, wrenches, start, n, data):
    """Add dr/da, which is symmetric, to ``data`` (n n,) over all coordinates; those of trees begin at ``start``."""
    inertia, up = wrenches.inertia.copy(), np.empty(6)
    composite(tree.parent, inertia)
    for l in range(tree.element.size):
        to, f, i = start + tree.coordinate[l], tree.factor[l], tree.element[l]
        up[:] = 0.0
        apply_inertia(inertia[i], motion.S[l], 1.0, up)
        while i >= 0:
            stop = tree.first[i + 1] if i + 1 < tree.parent.size else tree.element.size
            for k in range(tree.first[i], stop):
                value, at = f * tree.factor[k] * dot(motion.S[k], up), start + tree.coordinate[k]
                data[to * n + at] += value
                if i != tree.element[l]:
                    data[at * n + to] += value
            i = tree.parent[i]
        if tree.armature[l] >= 0:
            data[to * n + to] += f * f * theta[tree.armature[l]]


@njit(cache=True)
def add_ball_rows(tree, theta, motion, wrenches, q, weight, J):
    """Add ``weight`` times what the columns of balls, turned by each other, add to dr/dq to J (n, n)."""
    for i in range(tree.parent.size):
        if tree.kind[i] == BALL:
            _ball_rows(tree, theta, i, motion, wrenches.force[i], q, weight, J)


@njit(cache=True)
def _ball_rows(tree, theta, i, motion, force, q, weight, J):
    """Add (dS_k/dq_l)^T F^c of the columns of one ball."""
    R, x, w, k = motion.R0[i], motion.x0[i], np.empty(3), np.empty(6)
    D, unit, first = np.empty((3, 3)), np.zeros(3), tree.first[i]
    for b in range(3):
        w[b] = q[tree.coordinate[first + b]]
    jacobian_coefficients(w[0] * w[0] + w[1] * w[1] + w[2] * w[2], k)
    about, moment = np.empty(3), np.zeros(3)
    for b in range(3):
        c, d = (b + 1) % 3, (b + 2) % 3
        about[b] = force[b] - (x[c] * force[3 + d] - x[d] * force[3 + c])
    for b in range(3):
        for c in range(3):
            moment[b] += R[c, b] * about[c]
    for b in range(3):
        unit[:] = 0.0
        unit[b] = 1.0
        turn_derivative(1.0, w, unit, k, D)
        for c in range(3):
            J[tree.coordinate[first + b], tree.coordinate[first + c]] += weight * (
                moment[0] * D[0, c] + moment[1] * D[1, c] + moment[2] * D[2, c]
            )


@njit(cache=True)
def tree_energy(tree, theta, start, n, q, v, momentum):
    """Return kinetic energy, and potential energy from the world's origin [J]; add the links' momentum (6,)."""
    part = slice(start, start + n)
    motion = tree_motion(tree, theta, q[part], v[part], np.zeros(n))
    inertia, momentum_of = np.empty(10), np.empty(6)
    kinetic, potential = 0.0, 0.0
    for i in range(tree.parent.size):
        m = inertia_of(tree, theta, i, motion, inertia)
        if m == 0.0:
            continue
        momentum_of[:] = 0.0
        apply_inertia(inertia, motion.V[i], 1.0, momentum_of)
        kinetic += 0.5 * dot(motion.V[i], momentum_of)
        origin = motion.origin[i]
        for a in range(3):
            b, c = (a + 1) % 3, (a + 2) % 3
            potential -= theta[tree.gravity[a]] * (inertia[1 + a] + m * origin[a])
            momentum[a] += momentum_of[3 + a]
            momentum[3 + a] += momentum_of[a] + origin[b] * momentum_of[3 + c] - origin[c] * momentum_of[3 + b]
    for c in range(tree.element.size):
        if tree.armature[c] >= 0:
            rate = tree.factor[c] * v[start + tree.coordinate[c]]
            kinetic += 0.5 * theta[tree.armature[c]] * rate * rate
    return kinetic, potential
