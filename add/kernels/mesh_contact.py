"""Penalty contact of two primitives of meshes: force, places, energy.

With the symbols of `stencil.py` and `contact_pairs.py`, the depth r - d below the reach r, which is the sum of both
half-thicknesses or a share of it (`add.contact.sides`), the weight w of the pair (`mesh_pairs.py`) and the mollifier m
of nearly parallel edges, 1 elsewhere:

    Psi   = k_n w m e_int(r - d),   de_int/dd = e        (`normal_law`)
    v_rel = sum c_i v_i,   F = f_n n + f_t               (`penalty_law`, per area)
    f_i   = w (m c_i F - k_n e_int dm/dx_i)

Forces add up to zero. Without friction their torques do, too; friction acts on either side of the gap, and its couple
d n x f_t is left to the bodies, unless one of them is round (`mesh_spin.py`). The derivatives
stand in `mesh_contact_jacobian.py` and `mesh_contact_parameters.py`.

A point of a rigid body stands at x_b + R (X - X_c); its force is one on that body with the torque J^T (l x f).
"""

from typing import NamedTuple

import numpy as np

from add.kernels.caching import njit
from add.kernels.contact_detection import CENTRE, OMEGA, PLACE, VELOCITY, body_states
from add.kernels.contact_laws import normal_energy
from add.kernels.contact_pairs import ACTIVE, BEYOND, BITS, FEATURE, PAIR, QUADRATIC, STICKS, Coefficients, penalty_law
from add.kernels.mesh_arrays import (
    EDGE_EDGE,
    MOLLIFIED,
    REGION_MASK,
    covers,
    points_of,
    reach_share,
    unnumbered,
    weight_of,
)
from add.kernels.mesh_held import with_given_rows
from add.kernels.mesh_pairs import touching_rows
from add.kernels.mesh_spin import add_cross, add_spin, round_side
from add.kernels.rotation import turn
from add.kernels.stencil import MOLLIFIED_BELOW, NORMAL, across, mollifier, stencil
from add.typing import FloatArray, IntArray


class Places(NamedTuple):
    """Places, velocities and arms (n_p, 3) of all points, the states B (nb, 13, 3) and k (nb, 6) of rigid bodies."""

    x: FloatArray
    v: FloatArray
    arms: FloatArray
    B: FloatArray
    k: FloatArray


class Work(NamedTuple):
    """Room for one pair.

    p (4,) points; X, V (4, 3); c (4,), g (4, 4), P (9, 3), Q (3, 3) of `stencil`; S (9, 3) of `penalty_law`; M (4, 3)
    and N (12, 12) of `mollifier`; F (3,) per area; K (12, 12) and C (3, 3): the residual's derivatives dr/dx, and dr/dv
    but for c_j c_i; A, Fn (3, 3), z, y (4, 3); D (4, 3, 3) of `mesh_spin`.
    """

    p: IntArray
    X: FloatArray
    V: FloatArray
    c: FloatArray
    g: FloatArray
    P: FloatArray
    Q: FloatArray
    S: FloatArray
    M: FloatArray
    N: FloatArray
    F: FloatArray
    K: FloatArray
    C: FloatArray
    A: FloatArray
    Fn: FloatArray
    z: FloatArray
    D: FloatArray


@njit(cache=True)
def new_work():
    """Return room for one pair."""
    return Work(
        np.zeros(4, dtype=np.int64), np.zeros((4, 3)), np.zeros((4, 3)), np.zeros(4), np.zeros((4, 4)),
        np.zeros((9, 3)), np.zeros((3, 3)), np.zeros((9, 3)), np.zeros((4, 3)), np.zeros((12, 12)), np.zeros(3),
        np.zeros((12, 12)), np.zeros((3, 3)), np.zeros((3, 3)), np.zeros((3, 3)), np.zeros((4, 3)),
        np.zeros((4, 3, 3)),
    )  # fmt: skip


@njit(cache=True, error_model="numpy")
def places_of(order, q, v, theta, meshes):
    """Return places, velocities and arms of all points; J and d(omega)/dw of the bodies if order >= 2."""
    n, nb = meshes.points.shape[0], meshes.bodies.shape[0]
    x, u, arms = np.empty((n, 3)), np.zeros((n, 3)), np.zeros((n, 3))
    B, k = np.empty((nb, 13, 3)), np.empty((nb, 6))
    body_states(order, q, v, theta, meshes.bodies, B, k)
    points, carriers, rest = meshes.points, meshes.carriers, meshes.rest
    for i in range(n):
        carrier, b = points[i, 0], points[i, 1]
        if carrier < 0:
            for a in range(3):
                x[i, a] = rest[i, a]
        elif b < 0:
            s = carriers[carrier, 0]
            for a in range(3):
                x[i, a], u[i, a] = q[s + a], v[s + a]
        else:
            X0, X1, X2 = rest[i, 0] - B[b, CENTRE, 0], rest[i, 1] - B[b, CENTRE, 1], rest[i, 2] - B[b, CENTRE, 2]
            for a in range(3):
                arms[i, a] = B[b, a, 0] * X0 + B[b, a, 1] * X1 + B[b, a, 2] * X2
                x[i, a] = B[b, PLACE, a] + arms[i, a]
            w0, w1, w2 = B[b, OMEGA, 0], B[b, OMEGA, 1], B[b, OMEGA, 2]
            u[i, 0] = B[b, VELOCITY, 0] + w1 * arms[i, 2] - w2 * arms[i, 1]
            u[i, 1] = B[b, VELOCITY, 1] + w2 * arms[i, 0] - w0 * arms[i, 2]
            u[i, 2] = B[b, VELOCITY, 2] + w0 * arms[i, 1] - w1 * arms[i, 0]
    return Places(x, u, arms, B, k)


@njit(cache=True)
def half_thicknesses(theta, meshes):
    """Return the half-thicknesses of the bodies [m]."""
    out = np.zeros(meshes.thickness.size)
    for b in range(out.size):
        if meshes.thickness[b] >= 0:
            out[b] = theta[meshes.thickness[b]]
    return out


@njit(cache=True, error_model="numpy", inline="always")
def evaluate(row, order, theta, places, meshes, law, replay, rows, half, work):
    """Evaluate a row: completes its bits, and returns number of points, d, weight, m, e_int and what the law says.

    Fills p, X, V and what `stencil`, `across`, `penalty_law` and `mollifier` give to the order, and F.
    """
    p, X, V, S, F, c = work.p, work.X, work.V, work.S, work.F, work.c
    n_p, n_e, n_f = places.x.shape[0], meshes.edges.shape[0], meshes.faces.shape[0]
    feature = rows[row, FEATURE]
    kind, i, j = unnumbered(rows[row, PAIR], n_p, n_e, n_f)
    n = points_of(kind, i, j, meshes, p)
    for k in range(n):
        for a in range(3):
            X[k, a], V[k, a] = places.x[p[k], a], places.v[p[k], a]
    d, free = stencil(feature & REGION_MASK, X, n, order, c, work.g, work.P)
    if order >= 2:
        across(free, d, work.P, work.Q)
    for a in range(3):
        S[0, a] = work.P[NORMAL, a]
        S[1, a] = 0.0
        for k in range(n):
            S[1, a] += c[k] * V[k, a]
    one, two = p[0], p[2] if kind == EDGE_EDGE else p[1]
    spinning, _ = round_side(one, two, meshes)
    if spinning >= 0:
        add_spin(places.B[spinning], d, S)
    v_n = S[0, 0] * S[1, 0] + S[0, 1] * S[1, 1] + S[0, 2] * S[1, 2]
    table = meshes.tables[meshes.points[one, 2], meshes.points[two, 2]]
    reach = reach_share(kind, i, j, meshes) * (half[meshes.body[one]] + half[meshes.body[two]])
    values = Coefficients(
        theta[table[0]], theta[table[1]], theta[table[2]], theta[table[3]], theta[table[4]], theta[table[5]], reach,
        theta[table[6]] if table[6] >= 0 else 0.0, theta[table[7]] if table[6] >= 0 else 0.0,
    )  # fmt: skip
    depth = reach - d
    bits, normal, coulomb, friction, by_k = penalty_law(depth, v_n, values, law, replay, rows[row, BITS], S)
    rows[row, BITS] = bits
    m, energy = 1.0, 0.0
    if bits & MOLLIFIED:
        eps = MOLLIFIED_BELOW * meshes.squares[i] * meshes.squares[j]
        m = mollifier(X, eps, order, work.M, work.N)
        energy, _ = normal_energy(law.elastic, depth, reach, values.onset, bits & QUADRATIC != 0, bits & BEYOND != 0)
    weight = weight_of(kind, i, j, feature, meshes)
    slide = friction[0] * friction[1]
    for a in range(3):
        F[a] = normal[0] * S[0, a] - slide * S[2, a]
    return n, one, two, d, depth, v_n, weight, m, energy, values, (normal, coulomb, friction, by_k)


@njit(cache=True, error_model="numpy")
def add_generalised(force, torque, places, meshes, q, out):
    """Add forces (n_p, 3) on points and further torques (n_b, 3) on rigid bodies, generalised, to out (n,)."""
    points, carriers, bodies = meshes.points, meshes.carriers, meshes.bodies
    wrench = np.zeros((bodies.shape[0], 2, 3))
    for i in range(points.shape[0]):
        carrier, b = points[i, 0], points[i, 1]
        if carrier < 0:
            continue
        if b < 0:
            s = carriers[carrier, 0]
            for a in range(3):
                out[s + a] += force[i, a]
            continue
        l, f = places.arms[i], force[i]
        for a in range(3):
            wrench[b, 0, a] += f[a]
        wrench[b, 1, 0] += l[1] * f[2] - l[2] * f[1]
        wrench[b, 1, 1] += l[2] * f[0] - l[0] * f[2]
        wrench[b, 1, 2] += l[0] * f[1] - l[1] * f[0]
    for b in range(bodies.shape[0]):
        s, tau = bodies[b, 0], wrench[b, 1]
        for a in range(3):
            tau[a] += torque[b, a]
        turn(-1.0, q[s + 3 : s + 6], tau, places.k[b], tau)
        for a in range(3):
            out[s + a] += wrench[b, 0, a]
            out[s + 3 + a] += tau[a]


@njit(cache=True, error_model="numpy")
def _add_force(places, theta, meshes, law, replay, rows, half, q, out):
    """Add minus the generalised forces of the rows to out (n,)."""
    work, residual, torque = new_work(), np.zeros(places.x.shape), np.zeros((meshes.bodies.shape[0], 3))
    for row in range(rows.shape[0]):
        if rows[row, BITS] & ACTIVE == 0:
            continue
        n, one, two, d, _, _, weight, m, energy, values, _ = evaluate(
            row, 1, theta, places, meshes, law, replay, rows, half, work
        )
        p, c, F = work.p, work.c, work.F
        for k in range(n):
            for a in range(3):
                residual[p[k], a] -= weight * m * c[k] * F[a]
        if rows[row, BITS] & MOLLIFIED:
            for k in range(n):
                for a in range(3):
                    residual[p[k], a] += weight * values.k_n * energy * work.M[k, a]
        spinning, _ = round_side(one, two, meshes)
        if spinning >= 0:
            add_cross(weight * m * d, work.S[0], F, torque[spinning])
    add_generalised(residual, torque, places, meshes, q, out)


@njit(cache=True, error_model="numpy")
def mesh_contact_force(q, v, theta, meshes, law, rows, out):
    """Add minus the generalised forces of replayed rows to out (n,)."""
    if rows.shape[0]:
        places = places_of(1, q, v, theta, meshes)
        _add_force(places, theta, meshes, law, True, rows, half_thicknesses(theta, meshes), q, out)


@njit(cache=True, error_model="numpy")
def decided_mesh_contact_force(q, v, theta, meshes, law, near, given, out):
    """Decide, with what sticks in ``given``; add minus the forces to out (n,), return the rows and whether all is near.

    If candidates were not near enough, nothing is added, and there are no rows.
    """
    places, half = places_of(1, q, v, theta, meshes), half_thicknesses(theta, meshes)
    if not covers(near, places.x, half):
        return np.zeros((0, 3), dtype=np.int64), False
    rows = with_given_rows(touching_rows(near.vf, near.ee, places.x, half, meshes), given, places.x, half, meshes)
    if rows.shape[0]:
        _add_force(places, theta, meshes, law, False, rows, half, q, out)
    return rows, True


@njit(cache=True, error_model="numpy")
def places_and_halves(q, v, theta, meshes):
    """Return the places of all points (n_p, 3), and the half-thicknesses of the bodies (n_bodies,) [m]."""
    return places_of(1, q, v, theta, meshes).x, half_thicknesses(theta, meshes)


@njit(cache=True, error_model="numpy")
def mesh_contact_energy(q, v, theta, meshes, law, rows):
    """Return the elastic energy of replayed rows [J]."""
    places, half, work, total = places_of(1, q, v, theta, meshes), half_thicknesses(theta, meshes), new_work(), 0.0
    for row in range(rows.shape[0]):
        if rows[row, BITS] & ACTIVE == 0:
            continue
        _, _, _, _, depth, _, weight, m, _, values, _ = evaluate(
            row, 0, theta, places, meshes, law, True, rows, half, work
        )
        bits = rows[row, BITS]
        energy, _ = normal_energy(
            law.elastic, depth, values.thickness, values.onset, bits & QUADRATIC != 0, bits & BEYOND != 0
        )
        total += weight * m * values.k_n * energy
    return total


@njit(cache=True, error_model="numpy")
def mesh_contact_places(q, v, theta, meshes, law, rows, reactions, place, force, bodies):
    """Fill the middle (k, 3) between closest points [m], the force (k, 3) on the first body [N] and both (k, 2).

    ``reactions`` (m, 3) are those of the rows that stick, in their order [N].
    """
    places, half, work = places_of(1, q, v, theta, meshes), half_thicknesses(theta, meshes), new_work()
    stuck = 0
    for row in range(rows.shape[0]):
        n, one, two, _, _, _, weight, m, _, _, _ = evaluate(row, 1, theta, places, meshes, law, True, rows, half, work)
        bodies[row, 0], bodies[row, 1] = meshes.body[one], meshes.body[two]
        active = 1.0 if rows[row, BITS] & ACTIVE else 0.0
        for a in range(3):
            place[row, a], force[row, a] = 0.0, active * weight * m * work.F[a]
            for k in range(n):
                place[row, a] += 0.5 * abs(work.c[k]) * work.X[k, a]
        if rows[row, BITS] & STICKS and stuck < reactions.shape[0]:
            normal, mu = work.S[0], reactions[stuck]
            along = normal[0] * mu[0] + normal[1] * mu[1] + normal[2] * mu[2]
            for a in range(3):
                force[row, a] -= mu[a] - along * normal[a]
            stuck += 1


@njit(cache=True, error_model="numpy")
def mesh_contact_depths(q, v, theta, meshes, law, rows, depth, stiffness, bodies):
    """Fill depth and reach (k, 2) [m], k_n (k,) [N/m^3] and both bodies (k, 2) of the rows.

    The reach is the sum of half-thicknesses, of guards their share of it.
    """
    n_p, n_e, n_f = meshes.points.shape[0], meshes.edges.shape[0], meshes.faces.shape[0]
    places, half, work = places_of(1, q, v, theta, meshes), half_thicknesses(theta, meshes), new_work()
    for row in range(rows.shape[0]):
        _, one, two, d, _, _, _, _, _, values, _ = evaluate(row, 1, theta, places, meshes, law, True, rows, half, work)
        bodies[row, 0], bodies[row, 1] = meshes.body[one], meshes.body[two]
        kind, i, j = unnumbered(rows[row, PAIR], n_p, n_e, n_f)
        depth[row, 1] = reach_share(kind, i, j, meshes) * (half[meshes.body[one]] + half[meshes.body[two]])
        depth[row, 0] = depth[row, 1] - d
        stiffness[row] = values.k_n
