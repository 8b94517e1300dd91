"""Penalty contact of points on any body with shapes on any body: force, places, energy.

The law and the rows of decisions are those of `contact_pairs.py`. A point is a node or is fixed to a rigid body a; it
may be the centre of a sphere of radius r. A shape belongs to a rigid body b, or to the world, which stands still or
translates steadily. With x, w the coordinates of a rigid body, omega = J w_dot its angular velocity (J = J_l(w)), c the
point, g the gap, n = grad g:

    rho_a = c - x_a,  rho_b = c - x_b,  l_a = rho_a - r n,  l_b = rho_b - r n,  Omega = omega_a - omega_b
    d = r - g(c),     v_rel = v_c - (v_b + omega_b x rho_b) - r Omega x n

A node does not turn, so its sphere can neither roll nor bear a torque: there the surfaces meet at c, and r is zero
everywhere but in d. F(d, n, v_rel) acts on a at c - r n, and -F on b at the same place: generalised forces
[F, J_a^T (l_a x F)] on a and minus [F, J_b^T (l_b x F)] on b. Neither the total force nor the total torque of a pair is
other than zero.

The derivatives stand in `contact_bodies_jacobian.py` and `contact_bodies_parameters.py`.

Common arguments, always in this order

    motion     Motion of `contact_arrays.py`
    contacts   Contacts of `contact_arrays.py`
    law        Law of `contact_pairs.py`
    rows       (k, 3) decision

Nothing is overwritten but what `body_contact_places` fills. Arrays should be C-contiguous and writeable.
"""

from typing import NamedTuple

import numpy as np

from add.kernels.caching import njit
from add.kernels.contact_arrays import Motion, unpacked, unpacked_law
from add.kernels.contact_detection import OMEGA, PLACE, VELOCITY, detect, frames_of, point_place, reach_of
from add.kernels.contact_laws import normal_energy
from add.kernels.contact_pairs import (
    ACTIVE,
    BITS,
    FEATURE,
    PAIR,
    Coefficients,
    gap,
    penalty_law,
    to_frame,
    with_given,
)
from add.kernels.distance import distance_branch
from add.kernels.rotation import turn
from add.typing import FloatArray


class Scratch(NamedTuple):
    """Room for one pair: its point x and velocity u (1, 3), S (9, 3) of `gap`, L (5, 3): rho_a, rho_b, F, l_a, l_b."""

    x: FloatArray
    u: FloatArray
    S: FloatArray
    L: FloatArray


@njit(cache=True, error_model="numpy", inline="always")
def new_scratch():
    """Return room for one pair."""
    return Scratch(np.empty((1, 3)), np.empty((1, 3)), np.zeros((9, 3)), np.empty((5, 3)))


@njit(cache=True, error_model="numpy", inline="always")
def coefficients_of(i, o, theta, contacts):
    """Return the coefficients of point i and shape o."""
    row, column = contacts.points[i, 1], contacts.columns[o, 0]
    tables, depths = contacts.tables, contacts.depths
    layer, static = tables[row, column, 5], tables[row, column, 6]
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
    )


@njit(cache=True, error_model="numpy", inline="always")
def evaluate(k, order, motion, contacts, frames, law, replay, rows, scratch):
    """Row k: completes its bits and returns point, shape, body of the point, lever r and Omega, then gap and law.

    Fills S as `gap` and `penalty_law`, and L.
    """
    B, shapes, W = frames.B, frames.shapes, frames.shapes.W
    x, u, S, L = scratch
    n_shapes = contacts.kind.size
    i, o = rows[k, PAIR] // n_shapes, rows[k, PAIR] % n_shapes
    a, b = point_place(i, motion.q, contacts, B, x, L), contacts.hosts[o]
    radius, scale = contacts.arms[i, 3], contacts.arms[i, 4]
    w0, w1, w2, lever = W[o, 0], W[o, 1], W[o, 2], 0.0
    if a >= 0:
        lever = radius
        w0, w1, w2 = B[a, OMEGA, 0], B[a, OMEGA, 1], B[a, OMEGA, 2]
        u[0, 0] = B[a, VELOCITY, 0] + w1 * L[0, 2] - w2 * L[0, 1]
        u[0, 1] = B[a, VELOCITY, 1] + w2 * L[0, 0] - w0 * L[0, 2]
        u[0, 2] = B[a, VELOCITY, 2] + w0 * L[0, 1] - w1 * L[0, 0]
    else:
        for c in range(3):
            u[0, c] = motion.v[contacts.points[i, 0] + c]
    spin = (w0 - W[o, 0], w1 - W[o, 1], w2 - W[o, 2])
    values = coefficients_of(i, o, motion.theta, contacts)
    d, v_n = gap(0, o, x, u, shapes, rows[k, FEATURE], order, radius, spin, S)
    d += reach_of(contacts.points[i, 1], contacts.columns[o, 0], motion.theta, contacts)
    rows[k, BITS], normal, coulomb, friction, by_k = penalty_law(d, v_n, values, law, replay, rows[k, BITS], S)
    m = friction[0] * friction[1]
    for c in range(3):
        L[1, c] = x[0, c] - B[b, PLACE, c] if b >= 0 else 0.0
        L[2, c] = scale * (normal[0] * S[0, c] - m * S[2, c])
        L[3, c] = L[0, c] - lever * S[0, c]
        L[4, c] = L[1, c] - lever * S[0, c]
    return i, o, a, lever, spin, v_n, values, (normal, coulomb, friction, by_k)


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
def _add_force(motion, contacts, frames, law, replay, rows, out):
    """Add minus the generalised forces of the rows to out (n,)."""
    nb = contacts.bodies.shape[0]
    scratch, wrench = new_scratch(), np.zeros((nb, 2, 3))
    L, touching = scratch.L, False
    for k in range(rows.shape[0]):
        if rows[k, BITS] & ACTIVE == 0:
            continue
        i, o, a, _, _, _, _, _ = evaluate(k, 1, motion, contacts, frames, law, replay, rows, scratch)
        touching = True
        if a >= 0:
            _add_wrench(-1.0, a, 3, L, wrench)
        else:
            for c in range(3):
                out[contacts.points[i, 0] + c] -= L[2, c]
        if contacts.hosts[o] >= 0:
            _add_wrench(1.0, contacts.hosts[o], 4, L, wrench)
    if not touching:
        return
    for b in range(nb):
        s, tau = contacts.bodies[b, 0], wrench[b, 1]
        turn(-1.0, motion.q[s + 3 : s + 6], tau, frames.k[b], tau)
        for c in range(3):
            out[s + c] += wrench[b, 0, c]
            out[s + 3 + c] += tau[c]


@njit(cache=True, error_model="numpy")
def body_contact_force(motion, contacts, law, rows, out):
    """Add minus the generalised contact forces of replayed rows to out (n,)."""
    _add_force(motion, contacts, frames_of(0, motion, contacts), law, True, rows, out)


@njit(cache=True, error_model="numpy")
def decided_body_contact_force(t, q, v, theta, ints, floats, places, given, out):
    """Decide, with the bits STICKS and RELEASED of ``given``; add minus the forces to out (n,) and return the rows.

    Called at every residual, so that motion and the arrays (`Packed`) come as their parts.
    """
    motion, contacts, law = Motion(t, q, v, theta), unpacked(ints, floats, places), unpacked_law(ints)
    frames = frames_of(0, motion, contacts)
    rows = with_given(detect(motion.q, theta, contacts, frames), given)
    _add_force(motion, contacts, frames, law, False, rows, out)
    return rows


@njit(cache=True, error_model="numpy")
def body_contact_places(motion, contacts, law, rows, place, force):
    """Fill place (k, 3) [m] and the force (k, 3) on the point's body there [N], of those of the rows that touch."""
    frames, scratch, n = frames_of(0, motion, contacts), new_scratch(), 0
    for k in range(rows.shape[0]):
        if rows[k, BITS] & ACTIVE == 0:
            continue
        _, _, _, lever, _, _, _, _ = evaluate(k, 1, motion, contacts, frames, law, True, rows, scratch)
        for c in range(3):
            place[n, c] = scratch.x[0, c] - lever * scratch.S[0, c]
            force[n, c] = scratch.L[2, c]
        n += 1


@njit(cache=True, error_model="numpy")
def body_contact_energy(motion, contacts, law):
    """Elastic energy stored in all contacts [J]."""
    frames = frames_of(0, motion, contacts)
    rows, shapes = detect(motion.q, motion.theta, contacts, frames), frames.shapes
    n_shapes = contacts.kind.size
    x, L, S = np.empty((1, 3)), np.empty((1, 3)), np.empty((3, 3))
    total = 0.0
    for k in range(rows.shape[0]):
        i, o = rows[k, PAIR] // n_shapes, rows[k, PAIR] % n_shapes
        point_place(i, motion.q, contacts, frames.B, x, L)
        X0, X1, X2 = to_frame(0, o, x, shapes.R, shapes.p)
        g = distance_branch(shapes.kind[o], shapes.size[o], X0, X1, X2, rows[k, FEATURE], 0, S[0], S)
        d, values = contacts.arms[i, 3] - g, coefficients_of(i, o, motion.theta, contacts)
        d += reach_of(contacts.points[i, 1], contacts.columns[o, 0], motion.theta, contacts)
        onset, r = values.onset, values.thickness
        energy, _ = normal_energy(law.elastic, d, r, onset, d < onset, 2.0 * d > r)
        total += contacts.arms[i, 4] * values.k_n * energy
    return total
