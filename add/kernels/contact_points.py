"""Pairs of a point on any body and a shape on any body: place, force, and how all changes with what they move with.

The law and the rows of decisions are those of `contact_pairs.py`, the blocks those of `contact_blocks.py`. A point is a
node or is fixed to a rigid body a (side 0); it may be the centre of a sphere of radius r. A shape belongs to a rigid
body b (side 1), or to the world, which stands still or translates steadily. With x, w the coordinates of a rigid body,
omega = J w_dot its angular velocity (J = J_l(w)), D = d(omega)/dw, c the point, g the gap, n = grad g, H its Hessian:

    rho_a = c - x_a,  rho_b = c - x_b,  l_a = rho_a - r n,  l_b = rho_b - r n,  Omega = omega_a - omega_b
    d = r - g(c),     v = v_a + omega_a x l_a - (v_b + omega_b x l_b)

F acts on a at c - r n, and -F on b at the same place: neither the total force nor the total torque of a pair is other
than zero. A node does not turn, so its sphere can neither roll nor bear a torque: there the surfaces meet at c, and r
is zero everywhere but in d. Relative to the material of b, c moves by ds = dc - dx_b - dphi x rho_b with
dphi = J_b dw_b, and

    dd = -n . ds,   dn = H ds + dphi x n,   dl_a = J_a dw_a x rho_a - r dn,   dl_b = dc - dx_b - r dn
    dv = dv_a + (J_a dw_dot_a + D_a dw_a) x l_a + omega_a x dl_a - the same of b

A centre of mass X_c moves the points by -R dX_c (a) or the shapes by -R dX_c (b). Sizes move points and shapes, too: a
radius moves a point or a shape along the normal, which does not turn it, and a half-length moves those features that
stand at its end (`size_ways`). Moving the shape is moving the point the other way as far as the gap goes, but leaves
the arms alone.

What is held sticks where the surfaces meet, at c - g n: the lever is g in place of r, and moves with the gap.
"""

import math
from typing import NamedTuple

from add.kernels.borrowed import borrowed
from add.kernels.caching import njit
from add.kernels.contact_arrays import OMEGA, PLACE, TURN, TURN_RATE, VELOCITY as MOVING
from add.kernels.contact_blocks import ARM, AXES, DEPTH, NORMAL, OTHER, SCALE, SPIN, VELOCITY, WAY
from add.kernels.contact_circles import CROSSES, WHICH
from add.kernels.contact_detection import reach_of
from add.kernels.contact_lines import ALONG, BENT, ITS, LEANS, ROWS, TURNED, TWIST, WEIGHT, call_cross
from add.kernels.contact_pairs import (
    ACTIVE,
    BITS,
    FACE,
    FEATURE,
    PAIR,
    Coefficients,
    gap,
    penalty_law,
    relative_velocity,
)
from add.kernels.contact_places import BEND, BY, MOVED, ROLLS, call_roll, point_place
from add.kernels.distance import FALL, FLUSH, RIM_BOTTOM, RIM_TOP, SIDE, TOP, beside, fall_radius
from add.kernels.shape_codes import BOX, CYLINDER, SPHERE
from add.typing import FloatArray

_JIT = {"cache": True, "error_model": "numpy"}


#: Floats of a `Scratch`.
SCRATCH = 99


class Scratch(NamedTuple):
    """Room for one pair: its point x and velocity u (1, 3), S (9, 3) of `gap`, L (22, 3).

    Rows of L are rho_a, rho_b, F, l_a, l_b, and what `contact_places.roll` or `contact_lines.cross` leaves; of all, the
    scale of the force stands in L[WEIGHT, 1].
    """

    x: FloatArray
    u: FloatArray
    S: FloatArray
    L: FloatArray


@njit(**_JIT, forceinline=True)
def scratch_in(floats):
    """Return room for one pair in a store of `contact_blocks.new_store`, or in `SCRATCH` floats; see `room_in`."""
    return Scratch(
        borrowed(floats, 0, (1, 3)), borrowed(floats, 3, (1, 3)), borrowed(floats, 6, (9, 3)),
        borrowed(floats, 33, (ROWS, 3)),
    )  # fmt: skip


@njit(**_JIT, forceinline=True)
def coefficients_of(i, o, theta, contacts):
    """Return the coefficients of point i and shape o."""
    row, column = contacts.points[i, 1], contacts.columns[o, 0]
    tables, depths = contacts.tables, contacts.depths
    layer, static, couples = tables[row, column, 5], tables[row, column, 6], tables[row, column, 8]
    return Coefficients(
        theta[tables[row, column, 0]],
        theta[tables[row, column, 1]],
        theta[tables[row, column, 2]],
        theta[tables[row, column, 3]],
        depths[row, column, 0],
        depths[row, column, 1],
        theta[layer] if layer >= 0 else 0.0,
        theta[static] if static >= 0 else 0.0,
        theta[tables[row, column, 7]] if static >= 0 else 0.0,
        theta[couples] if couples >= 0 else 0.0,
        theta[tables[row, column, 9]] if couples >= 0 else 0.0,
        theta[tables[row, column, 10]] if couples >= 0 else 0.0,
    )


@njit(**_JIT, forceinline=True)
def meet(i, o, feature, order, motion, contacts, frames, scratch):
    """Return body of point i, lever r and Omega, and d and v_n with shape o; fill S as `gap` does, and L but for F."""
    B, W = frames.B, frames.shapes.W
    x, u, S, L = scratch
    a, b = point_place(i, motion.q, contacts, B, x, L), contacts.hosts[o]
    for c in range(3):
        L[MOVED, c] = L[BY, c] = L[BEND, c] = 0.0
    L[WEIGHT, 1], L[WEIGHT, 2], d = contacts.arms[i, 4], 0.0, 0.0
    radius = contacts.arms[i, 3]
    if feature & CROSSES:
        d = radius - call_cross((i, o, feature, contacts, frames, x, L, S[0]))
    elif feature & ROLLS:
        call_roll((i, o, feature ^ ROLLS, 0.0, contacts, frames, x, L, S))
    w0, w1, w2, lever = W[o, 0], W[o, 1], W[o, 2], 0.0
    if a >= 0:
        lever = radius
        w0, w1, w2 = B[a, OMEGA, 0], B[a, OMEGA, 1], B[a, OMEGA, 2]
        u[0, 0] = B[a, MOVING, 0] + w1 * L[0, 2] - w2 * L[0, 1]
        u[0, 1] = B[a, MOVING, 1] + w2 * L[0, 0] - w0 * L[0, 2]
        u[0, 2] = B[a, MOVING, 2] + w0 * L[0, 1] - w1 * L[0, 0]
    else:
        for c in range(3):
            u[0, c] = motion.v[contacts.points[i, 0] + c]
    spin = (w0 - W[o, 0], w1 - W[o, 1], w2 - W[o, 2])
    if feature & CROSSES:
        for r in range(3 if order >= 2 else 0):
            for c in range(3):
                S[3 + r, c] = L[LEANS, r] * L[ITS, c]
        v_n = relative_velocity(0, o, x, u, frames.shapes, radius, spin, S)
    else:
        d, v_n = gap(0, o, x, u, frames.shapes, feature & ~ROLLS, order, radius, spin, S)
    for c in range(3):
        L[1, c] = x[0, c] - B[b, PLACE, c] if b >= 0 else 0.0
        L[3, c] = L[0, c] - lever * S[0, c]
        L[4, c] = L[1, c] - lever * S[0, c]
    return a, lever, spin, d, v_n


@njit(**_JIT, forceinline=True)
def evaluate(k, order, motion, contacts, frames, law, replay, rows, scratch):
    """Row k: completes its bits and returns point, shape, body of the point, lever r and Omega, the law, and the depth.

    Fills S as `gap` and `penalty_law`, and L.
    """
    S, L, n_shapes = scratch.S, scratch.L, contacts.kind.size
    i, o = rows[k, PAIR] // n_shapes, rows[k, PAIR] % n_shapes
    a, lever, spin, d, v_n = meet(i, o, rows[k, FEATURE], order, motion, contacts, frames, scratch)
    values, scale = coefficients_of(i, o, motion.theta, contacts), L[WEIGHT, 1]
    d += reach_of(contacts.points[i, 1], contacts.columns[o, 0], motion.theta, contacts)
    if not replay and rows[k, BITS] & FACE != 0:
        rows[k, BITS] = rows[k, BITS] | ACTIVE if d > 0.0 else rows[k, BITS] & ~ACTIVE
    rows[k, BITS], normal, coulomb, friction, by_k = penalty_law(d, v_n, values, law, replay, rows[k, BITS], S)
    m = friction[0] * friction[1]
    for c in range(3):
        L[2, c] = scale * (normal[0] * S[0, c] - m * S[2, c])
    return i, o, a, lever, spin, v_n, values, (normal, coulomb, friction, by_k), d


@njit(**_JIT, forceinline=True)
def _finish(c, weight_q, lever, slope, bodies, B, S, Z, Y):
    """Fill column c of Y from Z: way ds, turn dphi, explicit changes of l_a, l_b and v; S as `gap` leaves it.

    The lever changes by ``slope`` dg.
    """
    along = S[0, 0] * Z[0, 0] + S[0, 1] * Z[0, 1] + S[0, 2] * Z[0, 2]
    Y[DEPTH, c] = -weight_q * along
    for r in range(3):
        s, t = (r + 1) % 3, (r + 2) % 3
        dn = S[3 + r, 0] * Z[0, 0] + S[3 + r, 1] * Z[0, 1] + S[3 + r, 2] * Z[0, 2]
        dn += Z[1, s] * S[0, t] - Z[1, t] * S[0, s] + Z[6, r]
        moved = lever * dn + slope * along * S[0, r]
        Y[NORMAL + r, c] = weight_q * dn
        Y[ARM + r, c], Y[ARM + 3 + r, c] = weight_q * (Z[2, r] - moved), weight_q * (Z[3, r] - moved)
        Y[WAY + r, c], Y[AXES + r, c] = weight_q * Z[0, r], weight_q * Z[1, r]
        Y[VELOCITY + r, c] = Z[4, r]
    for side in range(2):
        body = bodies[side]
        if body >= 0:
            sign, at = (1.0, ARM) if side == 0 else (-1.0, ARM + 3)
            w0, w1, w2 = sign * B[body, OMEGA, 0], sign * B[body, OMEGA, 1], sign * B[body, OMEGA, 2]
            Y[VELOCITY, c] += w1 * Y[at + 2, c] - w2 * Y[at + 1, c]
            Y[VELOCITY + 1, c] += w2 * Y[at, c] - w0 * Y[at + 2, c]
            Y[VELOCITY + 2, c] += w0 * Y[at + 1, c] - w1 * Y[at, c]


@njit(**_JIT)
def coordinate_columns(bodies, lever, slope, weights, B, S, L, Z, Y):
    """Fill the columns of Y of the coordinates of a (-1: a node, three of them) and, from `OTHER` on, of b (-1: none).

    ``bodies`` are a and b. They are w_q d/dq + w_v d/dv, ``weights`` both. B as `frames_of` with order 2 fills it,
    S and L as `evaluate`.
    """
    (a, b), (weight_q, weight_v) = bodies, weights
    if a < 0 and b < 0:
        for c in range(3):
            Y[DEPTH, c] = -weight_q * S[0, c]
            for r in range(3):
                Y[NORMAL + r, c] = weight_q * S[3 + r, c]
                Y[VELOCITY + r, c] = weight_v if r == c else 0.0
                Y[AXES + r, c] = 0.0
        return
    for c in range(OTHER + 6 if b >= 0 else 6):
        side, axis, turns = c // 6, c % 3, c % 6 >= 3
        body = a if side == 0 else b
        if turns and body < 0:
            continue
        sign = 1.0 if side == 0 else -1.0
        Z[:] = 0.0
        if turns:
            j0, j1, j2 = B[body, TURN, axis], B[body, TURN + 1, axis], B[body, TURN + 2, axis]
            r0 = sign * (weight_q * B[body, TURN_RATE, axis] + weight_v * j0)
            r1 = sign * (weight_q * B[body, TURN_RATE + 1, axis] + weight_v * j1)
            r2 = sign * (weight_q * B[body, TURN_RATE + 2, axis] + weight_v * j2)
            rho0, rho1, rho2 = L[side, 0], L[side, 1], L[side, 2]
            Z[0, 0] = sign * (j1 * rho2 - j2 * rho1)
            Z[0, 1] = sign * (j2 * rho0 - j0 * rho2)
            Z[0, 2] = sign * (j0 * rho1 - j1 * rho0)
            rolls = -sign * (L[BY, 0] * j0 + L[BY, 1] * j1 + L[BY, 2] * j2)
            rolls += Z[0, 0] * L[BEND, 0] + Z[0, 1] * L[BEND, 1] + Z[0, 2] * L[BEND, 2]
            l0, l1, l2 = L[3 + side, 0], L[3 + side, 1], L[3 + side, 2]
            Z[4, 0], Z[4, 1], Z[4, 2] = r1 * l2 - r2 * l1, r2 * l0 - r0 * l2, r0 * l1 - r1 * l0
            if side == 0:
                for r in range(3):
                    Z[2, r] = Z[3, r] = Z[0, r]
            else:
                Z[1, 0], Z[1, 1], Z[1, 2] = j0, j1, j2
            Y[SPIN, c], Y[SPIN + 1, c], Y[SPIN + 2, c] = r0, r1, r2
        else:
            Z[0, axis] = Z[3, axis] = sign
            Z[4, axis] = sign * weight_v
            Y[SPIN, c], Y[SPIN + 1, c], Y[SPIN + 2, c] = 0.0, 0.0, 0.0
            rolls = sign * L[BEND, axis]
        for r in range(3):
            way = rolls * L[MOVED, r]
            Z[0, r], Z[2, r], Z[3, r] = Z[0, r] + way, Z[2, r] + way, Z[3, r] + way
        if L[WEIGHT, 2] != 0.0:
            Y[SCALE, c] = L[WEIGHT, 0] * rolls
            for r in range(3):
                Y[SCALE, c] += L[ALONG, r] * Z[0, r]
                if turns:
                    turned = sign * B[body, TURN + r, axis]
                    Y[SCALE, c] += L[TURNED, r] * turned
                    for k in range(3):
                        Z[6, k] += L[TWIST + k, r] * turned
                Z[6, r] += rolls * L[BENT, r]
            Y[SCALE, c] *= weight_q
        _finish(c, weight_q, lever, slope, bodies, B, S, Z, Y)


@njit(**_JIT)
def way_column(c, side, way, rolls, levers, bodies, B, scratch, Z, Y):
    """Fill column c of Y for a number that moves the point (side 0), or the shape (side 1), relative to the other.

    ``way`` (3,) is that of the point relative to the shape, ``rolls`` that of its rim in units of P.
    """
    L, (lever, slope) = scratch.L, levers
    for r in range(3):
        Z[2, r] = Z[3, r] = (way[r] if side == 0 else 0.0) + rolls * L[MOVED, r]
        Z[0, r], Z[1, r], Z[4, r] = way[r] + rolls * L[MOVED, r], 0.0, 0.0
        Z[6, r] = rolls * L[BENT, r] if L[WEIGHT, 2] != 0.0 else 0.0
    _finish(c, 1.0, lever, slope, bodies, B, scratch.S, Z, Y)
    Y[SPIN, c], Y[SPIN + 1, c], Y[SPIN + 2, c] = 0.0, 0.0, 0.0
    if L[WEIGHT, 2] != 0.0:
        Y[SCALE, c] = L[WEIGHT, 0] * rolls
        for r in range(3):
            Y[SCALE, c] += L[ALONG, r] * Z[0, r]


@njit(**_JIT)
def centre_columns(bodies, levers, B, scratch, Z, Y):
    """Fill the columns of Y of the centres of mass, three of a and three of b; those of what is no body are left.

    A centre of mass moves the points of its body by -R dX_c, or its shapes.
    """
    L = scratch.L
    for side in range(2):
        body = bodies[side]
        if body < 0:
            continue
        for c in range(3):
            sign = -1.0 if side == 0 else 1.0
            for r in range(3):
                Z[5, r] = sign * B[body, r, c]
            rolls = Z[5, 0] * L[BEND, 0] + Z[5, 1] * L[BEND, 1] + Z[5, 2] * L[BEND, 2]
            way_column(3 * side + c, side, Z[5], rolls, levers, bodies, B, scratch, Z, Y)


@njit(**_JIT)
def _add_fall(n_sizes, product, size, faced, n, out):
    """Add to `size_ways` what the radius r does with which the face across axis ``faced`` goes on beyond an edge.

    ``product`` is r times `fall_radius`; as r grows, the centre goes inwards from the face.
    """
    f0, f1, f2 = out[0, faced], out[1, faced], out[2, faced]
    for c in range(n_sizes):
        grows = product / (FALL * size[c] * size[c])
        out[0, c] -= grows * (f0 + n[0])
        out[1, c] -= grows * (f1 + n[1])
        out[2, c] -= grows * (f2 + n[2])


@njit(**_JIT)
def size_ways(o, feature, x, frames, n, out):
    """Fill out (3, 3): columns by which a point moves towards shape o, seen from it, as its three sizes grow.

    x (3,), n (3,)   place of the point and normal in world axes
    """
    shapes = frames.shapes
    kind, size, R = shapes.kind[o], shapes.size[o], shapes.R[o]
    out[:] = 0.0
    if feature & CROSSES:
        feature = (feature & WHICH) // 2
    feature, faced, radius = beside(kind, size, feature)
    edge = 1.0 + FLUSH if faced >= 0 else 1.0
    if kind == BOX:
        for c in range(3):
            side = feature // 9 - 1.0 if c == 0 else (feature // 3 % 3 - 1.0 if c == 1 else feature % 3 - 1.0)
            for r in range(3):
                out[r, c] = -side * (1.0 if c == faced else edge) * R[r, c]
        if faced >= 0:
            _add_fall(3, radius * fall_radius(kind, size), size, faced, n, out)
        return
    end = 0.0
    if kind != SPHERE and feature != SIDE:
        end = 1.0 if feature == TOP or feature == RIM_TOP else -1.0
    for r in range(3):
        out[r, 0], out[r, 1] = -n[r], -end * (edge if faced == 0 else 1.0) * R[r, 2]
    if kind == CYLINDER and end != 0.0:
        out[:, 0] = 0.0
        if feature == RIM_TOP or feature == RIM_BOTTOM or faced >= 0:
            X0, X1 = 0.0, 0.0
            for r in range(3):
                y = x[r] - shapes.p[o, r]
                X0, X1 = X0 + R[r, 0] * y, X1 + R[r, 1] * y
            rho = math.sqrt(X0 * X0 + X1 * X1)
            e0, e1 = (X0 / rho, X1 / rho) if rho > 0.0 else (1.0, 0.0)
            for r in range(3):
                out[r, 0] = -(edge if faced == 1 else 1.0) * (R[r, 0] * e0 + R[r, 1] * e1)
            if faced >= 0:
                _add_fall(2, radius * fall_radius(kind, size), size, faced, n, out)
