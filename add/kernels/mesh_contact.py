"""Penalty contact of two primitives of meshes: force, places, energy.

With the symbols of `stencil.py` and `contact_pairs.py`, the depth r - d below the reach r, which is the sum of both
half-thicknesses or a share of it (`add.contact.surfaces`), the weight w of the pair (`mesh_pairs.py`) and the mollifier
m of nearly parallel edges, 1 elsewhere:

    Psi   = k_n w m e_int(r - d),   de_int/dd = e        (`normal_law`)
    v_rel = sum c_i v_i,   F = f_n n + f_t               (`penalty_law`, per area)
    f_i   = w (m c_i F - k_n e_int dm/dx_i)

Forces add up to zero. Without friction their torques do, too; friction acts on either side of the gap, and its couple
d n x f_t is left to the bodies, unless one of them is round. A point of a rigid body stands at x_b + R (X - X_c); its
force is one on that body with the torque J^T (l x f).

A ball is a vertex with a radius, a capsule a row of vertices and edges with one. The skin of such a round body meets
the other mesh away from its own primitive, at the closest point there: by -sigma s, where s = d n is the vector of
`stencil.py` and sigma = 1 if the round body comes first in the pair, -1 if second. With its angular velocity omega and
its points R among the x_i,

    v_rel = sum c_i v_i - omega x s              torque on it   sum_R (l_i - sigma s) x f_i

Both forces of a pair then act at one place, so that torques add up to zero with friction, too, and a ball rolls. As the
mollifier's forces on the ends of an edge add up to zero, the torque of s is that of sigma w m F.
"""

from typing import NamedTuple

import numpy as np

from add.kernels.borrowed import borrowed
from add.kernels.caching import njit
from add.kernels.contact_arrays import CENTRE, OMEGA, PLACE, VELOCITY
from add.kernels.contact_blocks import OWN, hold, new_store
from add.kernels.contact_detection import body_states
from add.kernels.contact_laws import normal_energy
from add.kernels.contact_pairs import ACTIVE, BEYOND, BITS, FEATURE, PAIR, QUADRATIC, STICKS, Coefficients, penalty_law
from add.kernels.mesh_arrays import (
    EDGE_EDGE,
    MOLLIFIED,
    REGION_MASK,
    nearer,
    points_of,
    reach_share,
    unnumbered,
    weight_of,
    with_given_rows,
)
from add.kernels.mesh_pairs import touching_rows
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


#: Where the points of a pair stand among the integers of a store.
POINTS = 40


class Work(NamedTuple):
    """Room for one pair.

    p (4,) points; X, V, A (4, 3) their places, velocities and arms; c (4,), g (4, 4), P (9, 3), Q (3, 3) of `stencil`;
    S (9, 3) of `penalty_law`; M (4, 3) and N (12, 12) of `mollifier`; F (3,) per area; U (4, 4, 3): ways, changes of
    arms and velocities, and forces of the points; W (3, 3): way s of a skin, the change of its rate, the sum of both.
    """

    p: IntArray
    X: FloatArray
    V: FloatArray
    A: FloatArray
    c: FloatArray
    g: FloatArray
    P: FloatArray
    Q: FloatArray
    S: FloatArray
    M: FloatArray
    N: FloatArray
    F: FloatArray
    U: FloatArray
    W: FloatArray


@njit(cache=True, forceinline=True)
def work_in(floats, integers):
    """Return room for one pair in a store of `contact_blocks.new_store`, whose shares are its coefficients."""
    return Work(
        borrowed(integers, POINTS, (4,)), borrowed(floats, 0, (4, 3)), borrowed(floats, 12, (4, 3)),
        borrowed(floats, 24, (4, 3)), borrowed(floats, OWN, (4,)), borrowed(floats, 36, (4, 4)),
        borrowed(floats, 52, (9, 3)), borrowed(floats, 79, (3, 3)), borrowed(floats, 88, (9, 3)),
        borrowed(floats, 115, (4, 3)), borrowed(floats, 127, (12, 12)), borrowed(floats, 271, (3,)),
        borrowed(floats, 274, (4, 4, 3)), borrowed(floats, 322, (3, 3)),
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


@njit(cache=True, error_model="numpy", forceinline=True)
def round_side(one, two, meshes):
    """Return row of `Meshes.bodies` and sigma of the round body of points one and two; -1 and 0 if none is."""
    if meshes.round[meshes.body[one]]:
        return meshes.points[one, 1], 1.0
    if meshes.round[meshes.body[two]]:
        return meshes.points[two, 1], -1.0
    return -1, 0.0


@njit(cache=True, error_model="numpy", forceinline=True)
def add_spin(B, d, S):
    """Take omega x s from the relative velocity in S[1]; the normal is in S[0]."""
    n0, n1, n2 = d * S[0, 0], d * S[0, 1], d * S[0, 2]
    w0, w1, w2 = B[OMEGA, 0], B[OMEGA, 1], B[OMEGA, 2]
    S[1, 0] -= w1 * n2 - w2 * n1
    S[1, 1] -= w2 * n0 - w0 * n2
    S[1, 2] -= w0 * n1 - w1 * n0


@njit(cache=True, error_model="numpy", forceinline=True)
def add_cross(factor, a, b, out):
    """Add factor a x b to out (3,)."""
    out[0] += factor * (a[1] * b[2] - a[2] * b[1])
    out[1] += factor * (a[2] * b[0] - a[0] * b[2])
    out[2] += factor * (a[0] * b[1] - a[1] * b[0])


@njit(cache=True, error_model="numpy", forceinline=True)
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
            X[k, a], V[k, a], work.A[k, a] = places.x[p[k], a], places.v[p[k], a], places.arms[p[k], a]
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
        theta[table[6]] if table[6] >= 0 else 0.0, theta[table[7]] if table[6] >= 0 else 0.0, 0.0, 0.0, 0.0,
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
def _add_force(places, theta, meshes, law, replay, rows, half, q, out, store):
    """Add minus the generalised forces of the rows to out (n,)."""
    floats, integers = store
    work, residual, torque = work_in(floats, integers), np.zeros(places.x.shape), np.zeros((meshes.bodies.shape[0], 3))
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
        _add_force(places, theta, meshes, law, True, rows, half_thicknesses(theta, meshes), q, out, new_store())


@njit(cache=True, error_model="numpy")
def decided_mesh_contact_force(q, v, theta, meshes, law, near, given, out):
    """Decide, with what sticks in ``given``; add minus the forces to out (n,), return the rows and whether all is near.

    If candidates were not near enough, nothing is added, and there are no rows.
    """
    places, half = places_of(1, q, v, theta, meshes), half_thicknesses(theta, meshes)
    moved, grown, covered = nearer(near, places.x, half, meshes)
    if not covered:
        return np.zeros((0, 3), dtype=np.int64), False
    rows = with_given_rows(touching_rows(near, (moved, grown), places.x, half, meshes), given, places.x, half, meshes)
    if rows.shape[0]:
        _add_force(places, theta, meshes, law, False, rows, half, q, out, new_store())
    return rows, True


@njit(cache=True, error_model="numpy")
def places_and_halves(q, v, theta, meshes):
    """Return the places of all points (n_p, 3), and the half-thicknesses of the bodies (n_bodies,) [m]."""
    return places_of(1, q, v, theta, meshes).x, half_thicknesses(theta, meshes)


@njit(cache=True, error_model="numpy")
def mesh_contact_energy(q, v, theta, meshes, law, rows):
    """Return the elastic energy of replayed rows [J]."""
    places, half, total = places_of(1, q, v, theta, meshes), half_thicknesses(theta, meshes), 0.0
    floats, integers = new_store()
    work = work_in(floats, integers)
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
    hold(floats, integers)
    return total


@njit(cache=True, error_model="numpy")
def mesh_contact_places(q, v, theta, meshes, law, rows, reactions, place, force, bodies):
    """Fill the middle (k, 3) between closest points [m], the force (k, 3) on the first body [N] and both (k, 2).

    ``reactions`` (m, 3) are those of the rows that stick, in their order [N].
    """
    places, half, (floats, integers) = places_of(1, q, v, theta, meshes), half_thicknesses(theta, meshes), new_store()
    work = work_in(floats, integers)
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
    hold(floats, integers)


@njit(cache=True, error_model="numpy")
def mesh_contact_depths(q, v, theta, meshes, law, rows, depth, stiffness, bodies):
    """Fill depth and reach (k, 2) [m], k_n (k,) [N/m^3] and both bodies (k, 2) of the rows.

    The reach is the sum of half-thicknesses, of guards their share of it.
    """
    n_p, n_e, n_f = meshes.points.shape[0], meshes.edges.shape[0], meshes.faces.shape[0]
    places, half, (floats, integers) = places_of(1, q, v, theta, meshes), half_thicknesses(theta, meshes), new_store()
    work = work_in(floats, integers)
    for row in range(rows.shape[0]):
        _, one, two, d, _, _, _, _, _, values, _ = evaluate(row, 1, theta, places, meshes, law, True, rows, half, work)
        bodies[row, 0], bodies[row, 1] = meshes.body[one], meshes.body[two]
        kind, i, j = unnumbered(rows[row, PAIR], n_p, n_e, n_f)
        depth[row, 1] = reach_share(kind, i, j, meshes) * (half[meshes.body[one]] + half[meshes.body[two]])
        depth[row, 0] = depth[row, 1] - d
        stiffness[row] = values.k_n
    hold(floats, integers)
