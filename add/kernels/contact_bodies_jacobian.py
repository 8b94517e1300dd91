"""Derivatives by the state of the contact forces of `contact_bodies.py`, whose symbols these are.

In axes that turn with b, F depends on the displacement ds of c relative to the material of b, and on the
change dnu of v_rel; A = dF/ds at fixed nu and K = dF/dnu are the matrices of `contact_pairs.py` at W = 0. In world
axes, dphi = J_b dw_b being the rotation of b and H the Hessian of g,

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

and d(J^T (l x F)) = J^T (dl x F + l x dF) plus d(J^T tau)/dw at fixed tau.
"""

from typing import NamedTuple

import numpy as np

from add.kernels.caching import njit
from add.kernels.contact_arrays import Motion, unpacked, unpacked_law
from add.kernels.contact_bodies import cross, evaluate, new_scratch
from add.kernels.contact_detection import TURN, TURN_RATE, frames_of
from add.kernels.contact_pairs import ACTIVE, BITS, PAIR, STICKS, add_matrices
from add.kernels.rotation import turn_derivative
from add.typing import FloatArray, IntArray


class Slots(NamedTuple):
    """The first entries of the blocks of the derivatives in a pattern; see `add.contact.sparsity`.

    Attributes
    ----------
    own : (np,) of the block of a point's carrier alone
    keys : (m,) sorted: carrier * nb + body, carriers being the rigid bodies, then nb + i for the node of point i
    first : int
        Where the blocks of the keys begin: 12 x 12 for two bodies, then 9 x 9 for a node and a body.
    """

    own: IntArray
    keys: IntArray
    first: int


class Matrices(NamedTuple):
    """Room for the derivatives of one pair: A, K, C, G, P, M (3, 3), DF, DL (3, 12), block (12, 12), tau (3,)."""

    A: FloatArray
    K: FloatArray
    C: FloatArray
    G: FloatArray
    P: FloatArray
    M: FloatArray
    DF: FloatArray
    DL: FloatArray
    block: FloatArray
    tau: FloatArray


@njit(cache=True, error_model="numpy", inline="always")
def new_matrices():
    """Return room for the derivatives of one pair."""
    A, K, C = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    G, P, M = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    return Matrices(A, K, C, G, P, M, np.empty((3, 12)), np.empty((3, 12)), np.empty((12, 12)), np.empty(3))


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
def add_rows(sign, weight_q, moved, first, F, arm, DF, DL, w, k, J, tau, G, block):
    """Add sign d[F, J^T (arm x F)] to rows first:first+6 of block (12, 12).

    DF, DL (3, 12) are dF and dl_a, which is d(arm), too, but for moved (dx_a - dx_b): moved is 0 for a, weight_q for b.
    tau, G are scratch.
    """
    cross(arm, F, tau)
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


@njit(cache=True, error_model="numpy", inline="always")
def force_derivative(a, b, lever, slope, spin, weight_q, weight_v, turned, omega, B, S, L, work):
    """Fill DF and DL (3, 12): dF and dl_a of one pair by the coordinates of a, then of b; A and K as above.

    n, v_rel and H are those of S. The arms end at c - lever n; `slope` is d(lever)/dg, so that in place of r H stands
    M = lever H + slope n n^T. `turned` is F, or zero for the derivative of F in axes that turn with b. `omega` is the
    angular velocity of b. A is overwritten by E.
    """
    A, K, C, G, P, M, DF, DL, _, _ = work
    n, v_rel, H = S[0], S[1], S[3:6]
    DF[:], DL[:] = 0.0, 0.0
    rolls = lever != 0.0 or slope != 0.0
    for r in range(3):
        for c in range(3):
            M[r, c] = lever * H[r, c] + slope * n[r] * n[c]
    if rolls:  # A becomes E
        _times_cross(1.0, K, spin, G)
        _add_times(-1.0, G, M, A)
    _times_cross(weight_q, K, omega, G)  # dF/dx = w_q (E - K [omega_b]) + w_v K
    for r in range(3):
        for c in range(3):
            value = weight_q * A[r, c] - G[r, c] + weight_v * K[r, c]
            DF[r, c], DF[r, 6 + c] = value, -value
            DL[r, c], DL[r, 6 + c] = -weight_q * M[r, c], weight_q * M[r, c]
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
        _set_cross(-weight_q, L[0], P)  # d(rho_a) / (J dw_a); then d(arm) = (I - M) of that
        for r in range(3):
            for c in range(3):
                C[r, c] = P[r, c]
        if rolls:
            _add_times(-1.0, M, P, C)
        _add_times(1.0, C, J, DL[:, 3:6])
    if b >= 0:
        J, D = B[b, TURN : TURN + 3], B[b, TURN_RATE : TURN_RATE + 3]
        _times_cross(1.0, A, L[1], C)
        _set_cross(-1.0, turned, G)
        _times_cross(1.0, K, v_rel, P)
        for r in range(3):
            for c in range(3):
                C[r, c] += G[r, c] + P[r, c]
        if lever != 0.0:
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
        if rolls:
            _times_cross(1.0, M, L[1], C)
            _set_cross(-lever, n, G)
            for r in range(3):
                for c in range(3):
                    C[r, c] += G[r, c]
            _add_times(-weight_q, C, J, DL[:, 9:12])


@njit(cache=True, error_model="numpy", inline="always")
def fill_block(a, b, weight_q, q, contacts, frames, F, L, work):
    """Fill block (12, 12) with d[-F, -J_a^T (l_a x F), F, J_b^T (l_b x F)]; return how wide a and b are."""
    B, k, bodies = frames.B, frames.k, contacts.bodies
    DF, DL, tau, G, block = work.DF, work.DL, work.tau, work.G, work.block
    block[:] = 0.0
    size_a = 3
    if a >= 0:
        size_a = 6
        s = bodies[a, 0]
        J = B[a, TURN : TURN + 3]
        add_rows(-1.0, weight_q, 0.0, 0, F, L[3], DF, DL, q[s + 3 : s + 6], k[a], J, tau, G, block)
    else:
        for r in range(3):
            for c in range(12):
                block[r, c] = -DF[r, c]
    size_b = 0
    if b >= 0:
        size_b = 6
        s = bodies[b, 0]
        J = B[b, TURN : TURN + 3]
        add_rows(1.0, weight_q, weight_q, 6, F, L[4], DF, DL, q[s + 3 : s + 6], k[b], J, tau, G, block)
    return size_a, size_b


@njit(cache=True, error_model="numpy")
def first_entry(i, a, b, nb, slots):
    """Return where the block of point i of body a (-1: a node) and body b (-1: the world) begins."""
    if b < 0:
        return slots.own[i]
    keys = slots.keys
    at = np.searchsorted(keys, (a if a >= 0 else nb + i) * nb + b)
    if a >= 0:
        return slots.first + 144 * at
    n_rigid = np.searchsorted(keys, nb * nb)
    return slots.first + 144 * n_rigid + 81 * (at - n_rigid)


@njit(cache=True, error_model="numpy")
def first_entries(contacts, slots, rows):
    """Return `first_entry` of every row (k,)."""
    out, n_shapes, nb = np.empty(rows.shape[0], dtype=np.int64), contacts.kind.size, contacts.bodies.shape[0]
    for k in range(rows.shape[0]):
        i, o = rows[k, PAIR] // n_shapes, rows[k, PAIR] % n_shapes
        out[k] = first_entry(i, contacts.points[i, 2], contacts.hosts[o], nb, slots)
    return out


@njit(cache=True, error_model="numpy")
def body_contact_jacobian(t, q, v, theta, ints, floats, fields, rows, weight_q, weight_v, slots, data, places):
    """Add weight_q dr/dq + weight_v dr/dv, r minus the generalised forces, to data[places], of replayed rows.

    A block is over the coordinates of the point's carrier, then those of the shape's body: 12 x 12, or 9 x 9 for a
    node, or 6 x 6 and 3 x 3 with the world; `slots` say where they begin among the places. ``ints``, ``floats`` and
    ``fields`` are a `Packed`.
    """
    motion, contacts, law = Motion(t, q, v, theta), unpacked(ints, floats, fields), unpacked_law(ints)
    nb = contacts.bodies.shape[0]
    frames, scratch, work = frames_of(2, motion, contacts), new_scratch(), new_matrices()
    S, L, A, K, block, W = scratch.S, scratch.L, work.A, work.K, work.block, frames.shapes.W
    for pair in range(rows.shape[0]):
        if rows[pair, BITS] & ACTIVE == 0:
            continue
        i, o, a, lever, spin, v_n, _, found = evaluate(pair, 2, motion, contacts, frames, law, True, rows, scratch)
        b, scale = contacts.hosts[o], contacts.arms[i, 4]
        A[:], K[:] = 0.0, 0.0
        add_matrices(0.0, 0.0, 0.0, v_n, found[0], found[1], found[2], scale, S, A, K)
        force_derivative(a, b, lever, 0.0, spin, weight_q, weight_v, L[2], W[o], frames.B, S, L, work)
        size_a, size_b = fill_block(a, b, weight_q, motion.q, contacts, frames, L[2], L, work)
        at = first_entry(i, a, b, nb, slots)
        width = size_a + size_b
        for r in range(width):
            row = r if r < size_a else 6 + r - size_a
            for c in range(width):
                column = c if c < size_a else 6 + c - size_a
                data[places[at + r * width + c]] += block[row, column]


@njit(cache=True, error_model="numpy")
def block_keys(rows, contacts, always):
    """Return the sorted keys of the blocks of points and bodies that touch, and those of ``always``."""
    n_shapes, nb = contacts.kind.size, contacts.bodies.shape[0]
    keys, n = np.empty(rows.shape[0] + always.size, dtype=np.int64), 0
    for k in range(rows.shape[0]):
        i, b = rows[k, PAIR] // n_shapes, contacts.hosts[rows[k, PAIR] % n_shapes]
        if rows[k, BITS] & (ACTIVE | STICKS) == 0 or b < 0:
            continue
        a = contacts.points[i, 2]
        keys[n] = (a if a >= 0 else nb + i) * nb + b
        n += 1
    if n == 0:
        return always
    keys[n : n + always.size] = always
    return np.unique(keys[: n + always.size])
