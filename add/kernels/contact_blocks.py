"""Local blocks of contact: force and couple of a pair, and how its generalised forces change, for all kinds of pairs.

A pair has two sides; each is a rigid body, or up to three nodes with shares c_k, or stands still. What kind of pair it
is (a point and a shape, two primitives of meshes) says how depth d, normal n, relative velocity v, spin Omega, the arms
l of bodies and the shares change with what it moves with: columns of Y, coordinates of both sides or numbers. The law
gives F on side 0 and -F on side 1, a couple T and -T (`contact_laws.py`), with their derivatives W by
(d, n, v, Omega). Then

    dF, dT = W Y                 on a body  (F, J^T tau),  tau = l x F + T,  d(tau) = l x dF + dT + dl x F
                                 on a node  c_k F,         d(c_k F) = c_k dF + dc_k F

up to the sign of the side, and d(J^T tau)/dw at fixed tau for a body's own rotation. Derivatives by the state and by
numbers, and those of the rows that hold pairs, follow from these few.
"""

from typing import NamedTuple

import numpy as np

from add.kernels.borrowed import borrowed, put
from add.kernels.caching import njit
from add.kernels.contact_arrays import TURN
from add.kernels.contact_pairs import ACTIVE, BITS, PAIR, STICKS
from add.kernels.ordering import distinct, first_not_below
from add.kernels.rotation import turn_derivative
from add.typing import FloatArray, IntArray

_JIT = {"cache": True, "error_model": "numpy"}

#: Columns of coordinates: those of side 0 (a body, or up to two nodes), then from `OTHER` on those of side 1.
OTHER, WIDTH = 6, 15
#: Rows of Y (`N_ROWS`, WIDTH): d, n, v, Omega, arms l of both sides, way of the place of contact, turn of its axes,
#: shares of up to four points, logarithm of the scale of all forces.
DEPTH, NORMAL, VELOCITY, SPIN, ARM, WAY, AXES, SHARE, SCALE, N_ROWS = 0, 1, 4, 7, 10, 16, 19, 22, 26, 27
#: Rows of E (12, WIDTH): dF, dT, dl x F of both sides.
COUPLE, LEVER = 3, 6
#: Columns of ``ends`` (2, 4), a row a side: row of its body, -1 for none; number of its nodes; its first point; number
#: of its coordinates.
BODY, NODES, FIRST, COUNT = 0, 1, 2, 3


class Room(NamedTuple):
    """Room for the derivatives of one pair.

    ends (2, 4), dofs (WIDTH,) coordinates of the columns, -1 for none; shares (4,), arms (2, 3) of the sides; Y
    (N_ROWS, WIDTH), W (6, 10), E (12, WIDTH), F (6,) force and couple, block (WIDTH, WIDTH), Z (7, 3), G (3, 3).
    """

    ends: IntArray
    dofs: IntArray
    shares: FloatArray
    arms: FloatArray
    Y: FloatArray
    W: FloatArray
    E: FloatArray
    F: FloatArray
    block: FloatArray
    Z: FloatArray
    G: FloatArray


#: How many floats a kind of pair has for its own in a store; how many floats and integers are in one.
OWN, FLOATS, INTEGERS = 400, 1328, 44


@njit(**_JIT)
def new_store():
    """Return the floats and the integers of a `Room`: zeros, but for the shares, which are one."""
    floats = np.zeros(FLOATS)
    floats[OWN : OWN + 4] = 1.0
    return floats, np.zeros(INTEGERS, dtype=np.int64)


@njit(**_JIT, forceinline=True)
def room_in(floats, integers):
    """Return room for one pair: views that count no references, which is half of the work of a small pair.

    Their owners must be arguments of the function that makes them, or `hold` must stand behind the last use.
    """
    return Room(
        borrowed(integers, 0, (2, 4)), borrowed(integers, 8, (WIDTH,)), borrowed(floats, OWN, (4,)),
        borrowed(floats, OWN + 4, (2, 3)), borrowed(floats, OWN + 10, (N_ROWS, WIDTH)),
        borrowed(floats, OWN + 416, (6, 10)), borrowed(floats, OWN + 476, (12, WIDTH)),
        borrowed(floats, OWN + 656, (6,)), borrowed(floats, OWN + 666, (WIDTH, WIDTH)),
        borrowed(floats, OWN + 892, (7, 3)), borrowed(floats, OWN + 914, (3, 3)),
    )  # fmt: skip


@njit(**_JIT)
def hold(floats, integers):
    """Keep a store until here."""
    return floats.size + integers.size


@njit(**_JIT)
def cross(u, v, out):
    """Fill out with u x v, which may be v."""
    out[0], out[1], out[2] = u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]


# --- columns ---------------------------------------------------------------------------------------------------------


@njit(**_JIT, forceinline=True)
def force_columns(first, stop, couples, levers, F, W, Y, E):
    """Fill the columns first to stop of E (12, WIDTH) with dF, and where there are ``levers``, dT and dl x F."""
    for c in range(first, stop):
        for r in range(3):
            E[r, c] = W[r, 0] * Y[0, c] + W[r, 1] * Y[1, c] + W[r, 2] * Y[2, c] + W[r, 3] * Y[3, c]
            E[r, c] += W[r, 4] * Y[4, c] + W[r, 5] * Y[5, c] + W[r, 6] * Y[6, c]
            if levers:
                total = 0.0
                if couples:
                    for k in range(10):
                        total += W[COUPLE + r, k] * Y[k, c]
                E[COUPLE + r, c] = total
        if levers:
            lever_columns(c, F, Y, E)


@njit(**_JIT)
def scale_columns(first, stop, F, Y, E):
    """Add to the columns first to stop of E what force and couple F (6,) change by as their scale does."""
    for c in range(first, stop):
        for r in range(6):
            E[r, c] += F[r] * Y[SCALE, c]


@njit(**_JIT, forceinline=True)
def lever_columns(c, F, Y, E):
    """Fill dl x F of both sides in column c of E."""
    for side in range(2):
        at, to = ARM + 3 * side, LEVER + 3 * side
        E[to, c] = Y[at + 1, c] * F[2] - Y[at + 2, c] * F[1]
        E[to + 1, c] = Y[at + 2, c] * F[0] - Y[at, c] * F[2]
        E[to + 2, c] = Y[at, c] * F[1] - Y[at + 1, c] * F[0]


@njit(**_JIT, forceinline=True)
def _body_rows(side, first, stop, arm, J, E, block):
    """Fill the six rows of a side that is a body in the columns first to stop of ``block``."""
    sign, row, lever = (-1.0, 0, LEVER) if side == 0 else (1.0, OTHER, LEVER + 3)
    for c in range(first, stop):
        f0, f1, f2 = E[0, c], E[1, c], E[2, c]
        block[row, c], block[row + 1, c], block[row + 2, c] = sign * f0, sign * f1, sign * f2
        t0 = arm[1] * f2 - arm[2] * f1 + E[COUPLE, c] + E[lever, c]
        t1 = arm[2] * f0 - arm[0] * f2 + E[COUPLE + 1, c] + E[lever + 1, c]
        t2 = arm[0] * f1 - arm[1] * f0 + E[COUPLE + 2, c] + E[lever + 2, c]
        for r in range(3):
            block[row + 3 + r, c] = sign * (J[0, r] * t0 + J[1, r] * t1 + J[2, r] * t2)


@njit(**_JIT, forceinline=True)
def fill_rows(first, stop, B, ends, shares, arms, F, Y, E, block):
    """Fill the columns first to stop of ``block`` from those of E: the change of minus the generalised forces.

    B has the states of the bodies, with J; forces held on turning bodies change by `add_turned_rows`, too.
    """
    for side in range(2):
        body = ends[side, BODY]
        if body >= 0:
            _body_rows(side, first, stop, arms[side], B[body, TURN : TURN + 3], E, block)
        for k in range(ends[side, NODES]):
            at, point = OTHER * side + 3 * k, ends[side, FIRST] + k
            share = shares[point]
            for c in range(first, stop):
                change = Y[SHARE + point, c]
                for r in range(3):
                    block[at + r, c] = -share * E[r, c] - change * F[r]


@njit(**_JIT, forceinline=True)
def add_turned_rows(weight, q, dofs, k, ends, arms, F, Z, G, block):
    """Add minus weight d(J^T tau)/dw at fixed tau, of all bodies of a pair, to ``block``; k (nb, 6) of rotations."""
    for side in range(2):
        body = ends[side, BODY]
        if body < 0:
            continue
        sign, at = (-weight, 3) if side == 0 else (weight, OTHER + 3)
        cross(arms[side], F[:3], Z[5])
        for r in range(3):
            Z[5, r] += F[3 + r]
        turn_derivative(-1.0, q[dofs[at] : dofs[at] + 3], Z[5], k[body], G)
        for r in range(3):
            for c in range(3):
                block[at + r, at + c] += sign * G[r, c]


# --- rows that hold --------------------------------------------------------------------------------------------------


@njit(**_JIT)
def hold_columns(first, stop, n, v, m, Y, by_row, E):
    """Fill ``by_row`` (3, WIDTH) with d(P v) and E with dF of F = -P m, in axes that turn by dphi; P = I - n n^T.

    d(P v) = P dv - v_n dn - n (v . dn) - dphi x P v
    d(-P m) = -P dm + (n . m) dn + n (m . dn),   dm = dphi x m
    """
    v_n, m_n = n[0] * v[0] + n[1] * v[1] + n[2] * v[2], n[0] * m[0] + n[1] * m[1] + n[2] * m[2]
    for c in range(first, stop):
        n_dv, v_dn, m_dn, n_dm = 0.0, 0.0, 0.0, 0.0
        w0, w1, w2 = Y[AXES, c], Y[AXES + 1, c], Y[AXES + 2, c]
        E[0, c], E[1, c], E[2, c] = w1 * m[2] - w2 * m[1], w2 * m[0] - w0 * m[2], w0 * m[1] - w1 * m[0]
        for r in range(3):
            n_dv += n[r] * Y[VELOCITY + r, c]
            v_dn += v[r] * Y[NORMAL + r, c]
            m_dn += m[r] * Y[NORMAL + r, c]
            n_dm += n[r] * E[r, c]
        p0, p1, p2 = v[0] - v_n * n[0], v[1] - v_n * n[1], v[2] - v_n * n[2]
        by_row[0, c], by_row[1, c], by_row[2, c] = -w1 * p2 + w2 * p1, -w2 * p0 + w0 * p2, -w0 * p1 + w1 * p0
        for r in range(3):
            by_row[r, c] += Y[VELOCITY + r, c] - v_n * Y[NORMAL + r, c] - n[r] * (n_dv + v_dn)
            E[r, c] = -E[r, c] + n[r] * (n_dm + m_dn) + m_n * Y[NORMAL + r, c]
            E[COUPLE + r, c] = 0.0


# --- numbers ---------------------------------------------------------------------------------------------------------

#: Rows of the slopes of numbers: k_n, k_d, k_t, c_f, thickness, two of the curve of friction, and three more of a kind
#: of pair, or c_t, c_r and w_0; and how many columns of ``block`` they may change the residual along.
THICKNESS, MORE, N_NUMBERS, N_WAYS = 4, 7, 10, 6


@njit(**_JIT, forceinline=True)
def law_columns(scale, braked, f_c, S, Z, E):
    """Fill the columns of E that the numbers of a law change the force along; return how many they are.

    n, t and, where the spin is braked, tau and its derivatives by c_t, c_r and w_0; Z as `couple` leaves it.
    """
    for c in range(2 + 4 * braked):
        for r in range(12):
            E[r, c] = 0.0
        for r in range(3):
            if c < 2:
                E[r, c] = scale * S[2 * c, r]
            else:
                E[COUPLE + r, c] = scale * (1.0 if c == 2 else f_c) * Z[c - 2, r]
    return 2 + 4 * braked


@njit(**_JIT, forceinline=True)
def law_slopes(found, slopes):
    """Fill the slopes (N_NUMBERS, N_WAYS) of the numbers of a law along `law_columns`, from what `penalty_law` gave."""
    m_f = found[2][3]
    f_n_kn, f_n_kd, f_c_kn, f_c_kd, f_n_r, f_c_r, m_k, m_c, m_1, m_2 = found[3]
    along_n = (f_n_kn, f_n_kd, 0.0, 0.0, f_n_r, 0.0, 0.0)
    of_coulomb = (f_c_kn, f_c_kd, 0.0, 0.0, f_c_r, 0.0, 0.0)
    along_t = (0.0, 0.0, m_k, m_c, 0.0, m_1, m_2)
    for number in range(MORE):
        slopes[number, 0], slopes[number, 2] = along_n[number], of_coulomb[number]
        slopes[number, 1] = -m_f * of_coulomb[number] - along_t[number]
    for number in range(3):
        slopes[MORE + number, 3 + number] = 1.0


@njit(**_JIT, forceinline=True)
def count_numbers(columns, numbers, slopes, sums, dofs, ends, forward, theta_p, f, block):
    """Let the numbers of a law change the residual along the first columns of ``block``: forwards f (n,), or theta_p.

    ``numbers`` (N_NUMBERS,) are their indices in theta, -1 for none; ``sums`` (N_WAYS,) is scratch.
    """
    for c in range(columns):
        sums[c] = 0.0
        if forward:
            for number in range(N_NUMBERS):
                if numbers[number] >= 0:
                    sums[c] += slopes[number, c] * theta_p[numbers[number]]
    for side in range(2):
        for r in range(OTHER * side, OTHER * side + ends[side, COUNT]):
            for c in range(columns):
                if forward:
                    f[dofs[r]] += block[r, c] * sums[c]
                else:
                    sums[c] += block[r, c] * f[dofs[r]]
    if not forward:
        for number in range(N_NUMBERS):
            if numbers[number] >= 0:
                for c in range(columns):
                    theta_p[numbers[number]] += slopes[number, c] * sums[c]


@njit(**_JIT)
def pull_rates(couples, lam, B, room, by_v):
    """Add lam^T dr/dv of a pair to ``by_v`` (n,): r = P F, the relative velocity is -P^T v, and so -P dF/dv^T P^T lam.

    W is that of `force_slopes` and, of ``couples``, of `couple_slopes`; columns from the seventh on, zeros of
    a new store, are its own, and Z is scratch.
    """
    E, W, Y, Z, block, ends, first = room.E, room.W, room.Y, room.Z, room.block, room.ends, 6
    stop = first + (6 if couples else 3)
    for c in range(first, stop):
        E[c - first, c] = 1.0
    fill_rows(first, stop, B, ends, room.shares, room.arms, room.F, Y, E, block)
    Z[:4] = 0.0
    for side in range(2):
        for r in range(OTHER * side, OTHER * side + ends[side, COUNT]):
            for c in range(stop - first):
                Z[c // 3, c % 3] += block[r, first + c] * lam[room.dofs[r]]
    for c in range(stop - first):
        for k in range(stop - first):
            Z[2 + c // 3, c % 3] += W[k, VELOCITY + c] * Z[k // 3, k % 3]
    for side in range(2):
        for r in range(OTHER * side, OTHER * side + ends[side, COUNT]):
            for c in range(stop - first):
                by_v[room.dofs[r]] -= block[r, first + c] * Z[2 + c // 3, c % 3]


@njit(**_JIT, forceinline=True)
def count(index, c, dofs, ends, forward, theta_p, f, block):
    """Let a number change the residual by column c of ``block``: forwards f (n,), or theta_p."""
    change = 0.0
    for side in range(2):
        for r in range(OTHER * side, OTHER * side + ends[side, COUNT]):
            if forward:
                f[dofs[r]] += theta_p[index] * block[r, c]
            else:
                change += block[r, c] * f[dofs[r]]
    if not forward:
        theta_p[index] += change


# --- places in a pattern -----------------------------------------------------------------------------------------


class Slots(NamedTuple):
    """The first entries of the blocks of the derivatives in a pattern; see `add.contact.sparsity`.

    Attributes
    ----------
    own : (np + nb,) of the block of a point's carrier alone, then of that of a body that points of obstacles meet
    keys : (m,) sorted: carrier * nb + body, carriers being the rigid bodies, then nb + i for the node of point i
    first : int
        Where the blocks of the keys begin: 12 x 12 for two bodies, then 9 x 9 for a node and a body.
    """

    own: IntArray
    keys: IntArray
    first: int


@njit(**_JIT)
def first_entry(i, b, contacts, slots):
    """Return where the block of the carrier of point i and of body b (-1: the world) begins."""
    a, nb, keys = contacts.points[i, 2], contacts.bodies.shape[0], slots.keys
    if b < 0:
        return slots.own[i]
    if a >= 0 and contacts.bodies[a, 0] < 0:
        return slots.own[contacts.points.shape[0] + b]
    at = first_not_below(keys, (a if a >= 0 else nb + i) * nb + b)
    if a >= 0:
        return slots.first + 144 * at
    n_rigid = first_not_below(keys, nb * nb)
    return slots.first + 144 * n_rigid + 81 * (at - n_rigid)


@njit(**_JIT)
def first_entries(contacts, slots, rows):
    """Return `first_entry` of every row (k,)."""
    out, n_shapes = np.empty(rows.shape[0], dtype=np.int64), contacts.kind.size
    for k in range(rows.shape[0]):
        i, o = rows[k, PAIR] // n_shapes, rows[k, PAIR] % n_shapes
        out[k] = first_entry(i, contacts.hosts[o], contacts, slots)
    return out


@njit(**_JIT)
def block_keys(rows, contacts, always):
    """Return the sorted keys of the blocks of points and bodies that touch, and those of ``always``."""
    n_shapes, nb = contacts.kind.size, contacts.bodies.shape[0]
    keys, n = np.empty(rows.shape[0] + always.size, dtype=np.int64), 0
    for k in range(rows.shape[0]):
        i, b = rows[k, PAIR] // n_shapes, contacts.hosts[rows[k, PAIR] % n_shapes]
        if rows[k, BITS] & (ACTIVE | STICKS) == 0 or b < 0:
            continue
        a = contacts.points[i, 2]
        if a >= 0 and contacts.bodies[a, 0] < 0:
            continue
        keys[n] = (a if a >= 0 else nb + i) * nb + b
        n += 1
    if n == 0:
        return always
    put(always, keys[n:])
    return distinct(keys[: n + always.size])
