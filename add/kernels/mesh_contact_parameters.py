"""Derivatives of the forces of `mesh_contact.py` by coefficients, depths, half-thicknesses and centres of mass."""

import numpy as np

from add.kernels.caching import njit
from add.kernels.contact_detection import OMEGA, TURN
from add.kernels.contact_laws import WALL, normal_energy, normal_law
from add.kernels.contact_pairs import ACTIVE, BEYOND, BITS, CLIPPED, PAIR, QUADRATIC, RAMPING, TOTAL
from add.kernels.mesh_arrays import MOLLIFIED, reach_share, unnumbered
from add.kernels.mesh_contact import add_generalised, evaluate, half_thicknesses, new_work, places_of
from add.kernels.mesh_contact_jacobian import point_derivatives
from add.kernels.mesh_spin import add_cross, round_side, spin_derivatives, turned_by_moving


@njit(cache=True, error_model="numpy")
def mesh_contact_parameters(q, v, theta, meshes, law, rows, forward, theta_p, f):
    """Derivatives of r in either direction.

    forward False (vjp)  theta_p (n_theta,) += lam^T dr/dtheta, lam = f (n,) given
    forward True  (jvp)  f (n,) += dr/dtheta theta_p

    A centre of mass X_c moves the points of its body by -R dX_c, their arms and with them their velocities.
    """
    places, half, work = places_of(2, q, v, theta, meshes), half_thicknesses(theta, meshes), new_work()
    points, carriers, bodies = meshes.points, meshes.carriers, meshes.bodies
    n_p = points.shape[0]
    residual, lam = np.zeros((n_p, 3)), np.zeros((n_p, 3))
    along, change = np.zeros((10, 2)), np.zeros((4, 3))
    torque, held, shift, push = np.zeros((bodies.shape[0], 3)), np.zeros((4, 3)), np.zeros(3), np.zeros(3)
    turned, delta = np.zeros(3), np.zeros(3)
    if not forward:
        for i in range(n_p):
            carrier, b = points[i, 0], points[i, 1]
            if carrier < 0:
                continue
            s = carriers[carrier, 0]
            for a in range(3):
                lam[i, a] = f[s + a]
            if b >= 0:
                l, J = places.arms[i], places.B[b, TURN : TURN + 3]
                w0 = J[0, 0] * f[s + 3] + J[0, 1] * f[s + 4] + J[0, 2] * f[s + 5]
                w1 = J[1, 0] * f[s + 3] + J[1, 1] * f[s + 4] + J[1, 2] * f[s + 5]
                w2 = J[2, 0] * f[s + 3] + J[2, 1] * f[s + 4] + J[2, 2] * f[s + 5]
                lam[i, 0] += w1 * l[2] - w2 * l[1]
                lam[i, 1] += w2 * l[0] - w0 * l[2]
                lam[i, 2] += w0 * l[1] - w1 * l[0]
    for row in range(rows.shape[0]):
        if rows[row, BITS] & ACTIVE == 0:
            continue
        n, one, two, d, depth, v_n, weight, m, energy, values, found = evaluate(
            row, 2, theta, places, meshes, law, True, rows, half, work
        )
        spinning, sigma = round_side(one, two, meshes)
        for a in range(3):
            shift[a], push[a] = -sigma * d * work.S[0, a], 0.0
        if not forward:
            # What each point's force is pulled back to; the skin of a round body has an arm of its own.
            for k in range(n):
                for a in range(3):
                    held[k, a] = lam[work.p[k], a]
                if spinning >= 0 and points[work.p[k], 1] == spinning:
                    _add_turned(places.B[spinning], f, bodies[spinning, 0] + 3, shift, held[k])
        _, _, friction, by_k = found
        bits, p, c, S = rows[row, BITS], work.p, work.c, work.S
        mollified = bits & MOLLIFIED != 0
        quadratic = bits & QUADRATIC != 0
        table = meshes.tables[points[one, 2], points[two, 2]]
        m_f = friction[3]
        keep = 0.0 if bits & CLIPPED else 1.0
        keep_c = keep if law.normal & TOTAL else 1.0
        beyond, r = bits & BEYOND != 0, values.thickness
        e, _, _ = normal_law(law.elastic, depth, r, values.onset, quadratic, beyond)
        with_onset = law.elastic <= WALL
        # By each number: change of F along n and t, and of k_n e_int.
        e_onset = -0.5 * depth * depth / (values.onset * values.onset) if quadratic else -0.5
        if not with_onset:
            e_onset = 0.0
        if bits & RAMPING:
            y = depth / values.ramp
            s_ramp = -6.0 * y * y * (1.0 - y) / values.ramp
        else:
            s_ramp = 0.0
        damped = -values.k_d * s_ramp * v_n
        damped_c = keep * damped if law.normal & TOTAL else 0.0
        along[0, 0], along[0, 1] = by_k[0], -m_f * by_k[2]
        along[1, 0], along[1, 1] = by_k[1], -m_f * by_k[3]
        along[2, 0], along[2, 1] = 0.0, -by_k[6]
        along[3, 0], along[3, 1] = 0.0, -by_k[7]
        along[4, 0], along[4, 1] = keep * values.k_n * e_onset, -m_f * keep_c * values.k_n * e_onset
        along[5, 0], along[5, 1] = keep * damped, -m_f * damped_c
        kind, i, j = unnumbered(rows[row, PAIR], n_p, meshes.edges.shape[0], meshes.faces.shape[0])
        share = reach_share(kind, i, j, meshes)
        along[6, 0], along[6, 1] = 0.0, -by_k[8]
        along[7, 0], along[7, 1] = 0.0, -by_k[9]
        along[8, 0], along[8, 1] = share * by_k[4], -share * m_f * by_k[5]
        along[9, 0], along[9, 1] = along[8, 0], along[8, 1]
        for number in range(10):
            if number < 8:
                index = table[number]
            else:
                index = meshes.thickness[meshes.body[one if number == 8 else two]]
            if index < 0:
                continue
            stored = 0.0
            if mollified:
                if number == 0:
                    stored = energy
                elif number == 4 and with_onset:
                    if quadratic:
                        stored = -values.k_n * depth * depth * depth / (6.0 * values.onset * values.onset)
                    else:
                        stored = values.k_n * (values.onset / 3.0 - 0.5 * depth)
                elif number >= 8:
                    _, by_r = normal_energy(law.elastic, depth, r, values.onset, quadratic, beyond)
                    stored = share * values.k_n * by_r
            total = 0.0
            for k in range(n):
                for a in range(3):
                    value = -weight * m * c[k] * (along[number, 0] * S[0, a] + along[number, 1] * S[2, a])
                    if mollified:
                        value += weight * stored * work.M[k, a]
                    if forward:
                        residual[p[k], a] += value * theta_p[index]
                        if points[p[k], 1] == spinning:
                            push[a] += value * theta_p[index]
                    else:
                        total += value * held[k, a]
            if not forward:
                theta_p[index] += total
        if spinning >= 0:
            add_cross(1.0, shift, push, torque[spinning])
            push[0], push[1], push[2] = 0.0, 0.0, 0.0
        with_centre = False
        for k in range(n):
            b = points[p[k], 1]
            if b >= 0 and (bodies[b, 1] >= 0 or bodies[b, 2] >= 0 or bodies[b, 3] >= 0):
                with_centre = True
        if not with_centre:
            continue
        S[7, 0] = e
        point_derivatives(n, d, v_n, weight, m, energy, values, found, mollified, work)
        K, C = work.K, work.C
        if spinning >= 0:
            spin_derivatives(n, d, places.B[spinning], work)
        for first in range(n):
            b = points[p[first], 1]
            new = b >= 0
            for k in range(first):
                new = new and points[p[k], 1] != b
            if not new:
                continue
            R, omega = places.B[b, :3], places.B[b, OMEGA]
            for axis in range(3):
                index = bodies[b, 1 + axis]
                if index < 0:
                    continue
                x0, x1, x2 = -R[0, axis], -R[1, axis], -R[2, axis]
                u0, u1, u2 = omega[1] * x2 - omega[2] * x1, omega[2] * x0 - omega[0] * x2, omega[0] * x1 - omega[1] * x0
                total = 0.0
                for k in range(n):
                    for a in range(3):
                        value = 0.0
                        for i in range(n):
                            if points[p[i], 1] == b:
                                value += (
                                    K[3 * k + a, 3 * i] * x0
                                    + K[3 * k + a, 3 * i + 1] * x1
                                    + K[3 * k + a, 3 * i + 2] * x2
                                    + c[k] * c[i] * (C[a, 0] * u0 + C[a, 1] * u1 + C[a, 2] * u2)
                                )
                        if forward:
                            residual[p[k], a] += value * theta_p[index]
                            if points[p[k], 1] == spinning:
                                push[a] += value * theta_p[index]
                        else:
                            total += value * held[k, a]
                for k in range(n):
                    if points[p[k], 1] != b:
                        continue
                    for a in range(3):
                        change[k, a] = -weight * m * c[k] * work.F[a]
                        if mollified:
                            change[k, a] += weight * values.k_n * energy * work.M[k, a]
                    r = change[k]
                    t0, t1, t2 = x1 * r[2] - x2 * r[1], x2 * r[0] - x0 * r[2], x0 * r[1] - x1 * r[0]
                    s, J = bodies[b, 0], places.B[b, TURN : TURN + 3]
                    for a in range(3):
                        along_axis = J[0, a] * t0 + J[1, a] * t1 + J[2, a] * t2
                        if forward:
                            f[s + 3 + a] += along_axis * theta_p[index]
                        else:
                            total += along_axis * f[s + 3 + a]
                if spinning >= 0:
                    for a in range(3):
                        delta[a] = 0.0
                        for i in range(n):
                            if points[p[i], 1] == b:
                                delta[a] += work.D[i, a, 0] * x0 + work.D[i, a, 1] * x1 + work.D[i, a, 2] * x2
                    s = bodies[spinning, 0]
                    turned_by_moving(delta, weight * m, work.F, places.B[spinning], turned)
                    for a in range(3):
                        if forward:
                            f[s + 3 + a] += turned[a] * theta_p[index]
                        else:
                            total += turned[a] * f[s + 3 + a]
                if not forward:
                    theta_p[index] += total
        if spinning >= 0:
            add_cross(1.0, shift, push, torque[spinning])
    if forward:
        add_generalised(residual, torque, places, meshes, q, f)


@njit(cache=True, error_model="numpy")
def _add_turned(B, f, s, arm, out):
    """Add (J f[s:s+3]) x arm to out (3,): what a torque's cotangent says of the force on the arm."""
    w = np.zeros(3)
    for a in range(3):
        w[a] = B[TURN + a, 0] * f[s] + B[TURN + a, 1] * f[s + 1] + B[TURN + a, 2] * f[s + 2]
    add_cross(1.0, w, arm, out)
