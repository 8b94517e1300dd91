"""Couples that brake the relative spin of two bodies in contact: torsional and rolling friction.

With the symbols of `contact_bodies.py`, f_c the force in Coulomb's limit and Omega_n = n . Omega, Omega_t = Omega -
Omega_n n, s = |Omega_t|, on a (and minus that on b):

    T = -scale f_c (c_t tanh(Omega_n / w_0) n + c_r tanh(s / w_0) Omega_t / s)

c_t, c_r are lengths [m]: the radius at which Coulomb's force would brake the spin as much, and the arm of the normal
force ahead of a rolling body (Johnson, Contact Mechanics 1985, sections 8.4 and 9.2, for what sets them). The power
T . Omega is never positive while f_c is not negative. A node has no spin: only points of rigid bodies bear couples.

Changes: n turns with b and by its curvature, dn = H ds + dphi x n, where ds is the displacement of c relative to the
material of b; and with u the velocity of c relative to that, v_n = n . u,

    df_c = -df_c/dd (n . ds) + df_c/dv_n (dn . u + n . du)

Arguments are those of `contact_bodies.py`. Nothing is done where the law has not the bit COUPLES.
"""

import math

import numpy as np

from add.kernels.caching import njit
from add.kernels.contact_arrays import Motion, unpacked, unpacked_law
from add.kernels.contact_bodies import cross, evaluate, new_scratch
from add.kernels.contact_bodies_jacobian import first_entry
from add.kernels.contact_bodies_parameters import size_ways
from add.kernels.contact_detection import OMEGA, TURN, TURN_RATE, frames_of
from add.kernels.contact_pairs import ACTIVE, BITS, COUPLES, FEATURE
from add.kernels.rotation import turn, turn_derivative

#: Columns of the tables with the indices of c_t, c_r and w_0.
TORSION, ROLLING, RATE = 8, 9, 10


@njit(cache=True, error_model="numpy")
def braking(x, w_0):
    """tanh(x / w_0) / x, its derivative over x, and that by w_0; x >= 0."""
    y = x / w_0
    if y < 1e-3:  # the differences cancel
        z = y * y
        slope = -(2.0 / 3.0 - z * 8.0 / 15.0) / w_0**3
        return (1.0 - z * (1.0 / 3.0 - z * 2.0 / 15.0)) / w_0, slope, (z - 1.0) / w_0**2
    sech2 = 1.0 / math.cosh(min(y, 300.0)) ** 2
    share = math.tanh(y) / x
    return share, (sech2 / w_0 - share) / (x * x), -sech2 / w_0**2


@njit(cache=True, error_model="numpy")
def couple(n, spin, c_t, c_r, w_0, Z):
    """Fill Z[0] with T per scale f_c, and its derivatives by c_t, c_r, w_0 in Z[1], Z[2], Z[3]."""
    along = spin[0] * n[0] + spin[1] * n[1] + spin[2] * n[2]
    square = 0.0
    for c in range(3):
        Z[4, c] = spin[c] - along * n[c]
        square += Z[4, c] * Z[4, c]
    twist, _, twist_0 = braking(abs(along), w_0)
    roll, _, roll_0 = braking(math.sqrt(square), w_0)
    for c in range(3):
        Z[1, c] = -along * twist * n[c]
        Z[2, c] = -roll * Z[4, c]
        Z[0, c] = c_t * Z[1, c] + c_r * Z[2, c]
        Z[3, c] = -c_t * along * twist_0 * n[c] - c_r * roll_0 * Z[4, c]


@njit(cache=True, error_model="numpy")
def couple_change(n, spin, dn, dspin, c_t, c_r, w_0, out):
    """Fill out (3,) with the change of T per scale f_c for changes of n and Omega."""
    along = spin[0] * n[0] + spin[1] * n[1] + spin[2] * n[2]
    d_along, square, slope = 0.0, 0.0, 0.0
    for c in range(3):
        d_along += dspin[c] * n[c] + spin[c] * dn[c]
    for c in range(3):
        across = spin[c] - along * n[c]
        square += across * across
        slope += across * (dspin[c] - d_along * n[c] - along * dn[c])
    twist, twist_x, _ = braking(abs(along), w_0)
    roll, roll_x, _ = braking(math.sqrt(square), w_0)
    d_twist = d_along * (twist + twist_x * along * along)
    for c in range(3):
        across = spin[c] - along * n[c]
        d_across = dspin[c] - d_along * n[c] - along * dn[c]
        out[c] = -c_t * (d_twist * n[c] + along * twist * dn[c]) - c_r * (roll * d_across + roll_x * slope * across)


@njit(cache=True, error_model="numpy", inline="always")
def numbers_of(table, theta):
    """Return c_t, c_r and w_0 of a pair."""
    return theta[table[TORSION]], theta[table[ROLLING]], theta[table[RATE]]


@njit(cache=True, error_model="numpy")
def add_couples(motion, contacts, law, rows, out):
    """Add minus the generalised couples of replayed rows to out (n,)."""
    if law.normal & COUPLES == 0:
        return
    frames, scratch, Z = frames_of(0, motion, contacts), new_scratch(), np.empty((5, 3))
    for k in range(rows.shape[0]):
        if rows[k, BITS] & ACTIVE == 0:
            continue
        i, o, a, _, spin, _, _, found = evaluate(k, 1, motion, contacts, frames, law, True, rows, scratch)
        table = contacts.tables[contacts.points[i, 1], contacts.columns[o, 0]]
        if a < 0 or table[TORSION] < 0:
            continue
        c_t, c_r, w_0 = numbers_of(table, motion.theta)
        couple(scratch.S[0], spin, c_t, c_r, w_0, Z)
        f_c = contacts.arms[i, 4] * found[1][0]
        for c in range(3):
            Z[0, c] *= f_c
        for side in range(2):
            body = a if side == 0 else contacts.hosts[o]
            if body < 0:
                continue
            s = contacts.bodies[body, 0]
            turn(-1.0, motion.q[s + 3 : s + 6], Z[0], frames.k[body], Z[1])
            for c in range(3):
                out[s + 3 + c] -= Z[1, c] if side == 0 else -Z[1, c]


@njit(cache=True, error_model="numpy")
def add_packed_couples(t, q, v, theta, ints, floats, places, rows, out):
    """Add minus the generalised couples of rows to out (n,), with the arrays of a `Packed`."""
    add_couples(Motion(t, q, v, theta), unpacked(ints, floats, places), unpacked_law(ints), rows, out)


@njit(cache=True, error_model="numpy")
def couples_jacobian(t, q, v, theta, ints, floats, fields, rows, weight_q, weight_v, slots, data, places):
    """Add the weighted derivatives of the couples to data[places], in the blocks of `body_contact_jacobian`."""
    motion, contacts, law = Motion(t, q, v, theta), unpacked(ints, floats, fields), unpacked_law(ints)
    if law.normal & COUPLES == 0:
        return
    nb = contacts.bodies.shape[0]
    frames, scratch, Z, y = frames_of(2, motion, contacts), new_scratch(), np.empty((5, 3)), np.empty((7, 3))
    G, B, S, L, none = np.empty((3, 3)), frames.B, scratch.S, scratch.L, np.zeros(3)
    ds, du, dn, dspin, turned, rest, DT = y[0], y[1], y[2], y[3], y[4], y[5], y[6]
    for k in range(rows.shape[0]):
        if rows[k, BITS] & ACTIVE == 0:
            continue
        i, o, a, lever, spin, _, _, found = evaluate(k, 2, motion, contacts, frames, law, True, rows, scratch)
        table = contacts.tables[contacts.points[i, 1], contacts.columns[o, 0]]
        if a < 0 or table[TORSION] < 0:
            continue
        c_t, c_r, w_0 = numbers_of(table, theta)
        n, H, W = S[0], S[3:6], frames.shapes.W[o]
        couple(n, spin, c_t, c_r, w_0, Z)
        b, scale = contacts.hosts[o], contacts.arms[i, 4]
        f_c, f_c_d, f_c_v = found[1]
        for c in range(3):
            Z[4, c] = spin[c]
        cross(Z[4], n, rest)
        for c in range(3):  # u, without the way of the skin
            rest[c] = S[1, c] + lever * rest[c]
        omega = B[a, OMEGA]
        at, width = first_entry(i, a, b, nb, slots), 12 if b >= 0 else 6
        for column in range(width):
            first, c = column < 6, column % 3
            body, rho = (a, L[0]) if first else (b, L[1])
            turns = column % 6 >= 3
            ds[:], du[:], dspin[:], turned[:] = 0.0, 0.0, 0.0, 0.0
            sign = 1.0 if first else -1.0
            if turns:
                for r in range(3):
                    turned[r] = B[body, TURN + r, c]
                    dspin[r] = sign * (weight_q * B[body, TURN_RATE + r, c] + weight_v * turned[r])
                cross(turned, rho, ds)
            else:
                ds[c] = 1.0
            # A place that moves by ds with a is carried on by omega_a; one that b moves on by stays where it was.
            if turns:
                cross(dspin, rho, du)
                for r in range(3):
                    ds[r] *= sign * weight_q
                if first:
                    cross(omega, ds, dn)
                    for r in range(3):
                        du[r] += dn[r]
                    cross(W, ds, dn)
                    for r in range(3):
                        du[r] -= dn[r]
            else:
                ds[c] = sign * weight_q
                cross(W, ds, du)
                for r in range(3):
                    du[r] = -du[r]
                du[c] += sign * weight_v
            for r in range(3):
                dn[r] = H[r, 0] * ds[0] + H[r, 1] * ds[1] + H[r, 2] * ds[2]
            if turns and not first:
                cross(turned, n, DT)
                for r in range(3):
                    dn[r] += weight_q * DT[r]
            df_c = 0.0
            for r in range(3):
                df_c += -f_c_d * n[r] * ds[r] + f_c_v * (dn[r] * rest[r] + n[r] * du[r])
            couple_change(n, spin, dn, dspin, c_t, c_r, w_0, DT)
            for r in range(3):
                DT[r] = scale * (f_c * DT[r] + df_c * Z[0, r])
            for r in range(3):
                value = B[a, TURN, r] * DT[0] + B[a, TURN + 1, r] * DT[1] + B[a, TURN + 2, r] * DT[2]
                data[places[at + (3 + r) * width + column]] -= value
                if b >= 0:
                    value = B[b, TURN, r] * DT[0] + B[b, TURN + 1, r] * DT[1] + B[b, TURN + 2, r] * DT[2]
                    data[places[at + (9 + r) * width + column]] += value
        for c in range(3):
            none[c] = scale * f_c * Z[0, c]
        for side in range(2):
            body = a if side == 0 else b
            if body < 0:
                continue
            s = contacts.bodies[body, 0]
            turn_derivative(-1.0, q[s + 3 : s + 6], none, frames.k[body], G)
            factor = -weight_q if side == 0 else weight_q
            for r in range(3):
                for c in range(3):
                    data[places[at + (6 * side + 3 + r) * width + 6 * side + 3 + c]] += factor * G[r, c]


@njit(cache=True, error_model="numpy", inline="always")
def _count(index, forward, factor, y, theta_p, twist, total):
    """Let a number change T by factor y: backwards its cotangent, forwards the change of T."""
    if index < 0:
        return
    if forward:
        for c in range(3):
            total[c] += theta_p[index] * factor * y[c]
    else:
        theta_p[index] -= factor * (twist[0] * y[0] + twist[1] * y[1] + twist[2] * y[2])


@njit(cache=True, error_model="numpy")
def couples_parameters(motion, contacts, law, growth, rows, forward, theta_p, f):
    """Derivatives of the couples by all numbers, as `body_contact_parameters` has those of the forces."""
    if law.normal & COUPLES == 0:
        return
    frames, scratch, Z, y = frames_of(0, motion, contacts), new_scratch(), np.empty((5, 3)), np.empty((7, 3))
    q, bodies, B, S = motion.q, contacts.bodies, frames.B, scratch.S
    M, grows = np.empty((3, 3)), growth.points.shape[0] + growth.shapes.shape[0] > 0
    twist, total, delta, dn, none, rest, DT = y[0], y[1], y[2], y[3], np.zeros(3), y[4], y[5]
    for pair in range(rows.shape[0]):
        if rows[pair, BITS] & ACTIVE == 0:
            continue
        i, o, a, lever, spin, _, _, found = evaluate(pair, 2, motion, contacts, frames, law, True, rows, scratch)
        table = contacts.tables[contacts.points[i, 1], contacts.columns[o, 0]]
        if a < 0 or table[TORSION] < 0:
            continue
        c_t, c_r, w_0 = numbers_of(table, motion.theta)
        n, H, b, scale = S[0], S[3:6], contacts.hosts[o], contacts.arms[i, 4]
        couple(n, spin, c_t, c_r, w_0, Z)
        (f_c, f_c_d, f_c_v), by_k = found[1], found[3]
        twist[:], total[:] = 0.0, 0.0
        if not forward:
            for side in range(2):
                body = a if side == 0 else b
                if body >= 0:
                    s = bodies[body, 0]
                    turn(1.0, q[s + 3 : s + 6], f[s + 3 : s + 6], frames.k[body], DT)
                    for c in range(3):
                        twist[c] += DT[c] if side == 0 else -DT[c]
        for number in range(3):
            _count(table[TORSION + number], forward, scale * f_c, Z[1 + number], theta_p, twist, total)
        _count(table[0], forward, scale * by_k[2], Z[0], theta_p, twist, total)
        _count(table[1], forward, scale * by_k[3], Z[0], theta_p, twist, total)
        _count(table[5], forward, scale * by_k[5], Z[0], theta_p, twist, total)
        for c in range(3):
            Z[4, c] = spin[c]
        cross(Z[4], n, rest)
        for c in range(3):
            rest[c] = S[1, c] + lever * rest[c]
        # The centres of mass of both bodies, then the sizes of the point and of the shape.
        for cause in range(4 if grows else 2):
            side = cause % 2
            body = a if side == 0 else b
            if body < 0:
                continue
            if cause == 2:
                for r in range(3):
                    for c in range(3):
                        M[r, c] = -n[r] * growth.arms[i, c, 3]
                        for e in range(3):
                            M[r, c] += B[body, r, e] * growth.arms[i, c, e]
            elif cause == 3:
                size_ways(o, rows[pair, FEATURE], scratch.x[0], frames, n, M)
            else:
                for r in range(3):
                    for c in range(3):
                        M[r, c] = -B[body, r, c] if side == 0 else B[body, r, c]
            for number in range(3):
                if cause < 2:
                    index = bodies[body, 1 + number]
                else:
                    index = growth.points[i, number] if side == 0 else growth.shapes[o, number]
                if index < 0:
                    continue
                for r in range(3):
                    delta[r] = M[r, number]
                for r in range(3):
                    dn[r] = H[r, 0] * delta[0] + H[r, 1] * delta[1] + H[r, 2] * delta[2]
                df_c = 0.0
                if side == 0:  # du = Omega x delta
                    cross(Z[4], delta, DT)
                    df_c = f_c_v * (n[0] * DT[0] + n[1] * DT[1] + n[2] * DT[2])
                for r in range(3):
                    df_c += -f_c_d * n[r] * delta[r] + f_c_v * dn[r] * rest[r]
                couple_change(n, spin, dn, none, c_t, c_r, w_0, DT)
                for r in range(3):
                    DT[r] = f_c * DT[r] + df_c * Z[0, r]
                _count(index, forward, scale, DT, theta_p, twist, total)
        if forward:
            for side in range(2):
                body = a if side == 0 else b
                if body >= 0:
                    s = bodies[body, 0]
                    turn(-1.0, q[s + 3 : s + 6], total, frames.k[body], DT)
                    for c in range(3):
                        f[s + 3 + c] -= DT[c] if side == 0 else -DT[c]
