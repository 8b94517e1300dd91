"""Derivatives of the forces of `mesh_contact.py` by the state, and by coefficients, depths, thicknesses and centres."""

from typing import NamedTuple

import numpy as np

from add.kernels.arena import Ints
from add.kernels.borrowed import borrowed
from add.kernels.caching import njit
from add.kernels.contact_blocks import (
    BODY,
    COUNT,
    FIRST,
    MORE,
    N_NUMBERS,
    N_WAYS,
    NODES,
    OTHER,
    SHARE,
    THICKNESS,
    WAY,
    add_turned_rows,
    count,
    count_numbers,
    fill_rows,
    force_columns,
    law_columns,
    law_slopes,
    new_store,
    pull_rates,
    room_in,
)
from add.kernels.contact_laws import WALL, force_slopes, normal_energy, normal_law
from add.kernels.contact_pairs import ACTIVE, BEYOND, BITS, CLIPPED, PAIR, QUADRATIC, RAMPING, TOTAL
from add.kernels.mesh_arrays import MOLLIFIED, points_of, reach_share, unnumbered
from add.kernels.mesh_columns import (
    FORCES,
    add_point_forces,
    centre_column,
    coordinate_columns,
    mollified_centre,
    mollified_coordinates,
    set_ends,
)
from add.kernels.mesh_contact import evaluate, half_thicknesses, places_of, round_side, work_in
from add.kernels.ordering import distinct, first_not_below


class Slots(NamedTuple):
    """The first entries of the blocks in a pattern.

    ``keys`` (m,) sorted: number of the lower carrier times the number of carriers, plus the higher one; ``first`` (m,)
    of the block (lower, higher), behind which (higher, lower) stands.
    """

    keys: Ints
    first: Ints


@njit(cache=True)
def carrier_keys(rows, meshes):
    """Return the sorted keys of `Slots` of all carriers of the rows."""
    n_c, points = meshes.carriers.shape[0], meshes.points
    n_p, n_e, n_f = points.shape[0], meshes.edges.shape[0], meshes.faces.shape[0]
    keys, n, p = np.empty(10 * rows.shape[0], dtype=np.int64), 0, np.zeros(4, dtype=np.int64)
    for row in range(rows.shape[0]):
        kind, i, j = unnumbered(rows[row, PAIR], n_p, n_e, n_f)
        size = points_of(kind, i, j, meshes, p)
        for a in range(size):
            for b in range(a + 1):
                one, two = points[p[a], 0], points[p[b], 0]
                if one >= 0 and two >= 0:
                    keys[n] = min(one, two) * n_c + max(one, two)
                    n += 1
    return distinct(keys[:n])


@njit(cache=True)
def block_entries(keys, meshes):
    """Return the first entry (m,) of each block and (rows, cols) of all entries."""
    n_c, carriers = meshes.carriers.shape[0], meshes.carriers
    first, n = np.empty(keys.size, dtype=np.int64), 0
    for k in range(keys.size):
        one, two = keys[k] // n_c, keys[k] % n_c
        first[k] = n
        n += carriers[one, 1] * carriers[two, 1] * (1 if one == two else 2)
    rows, cols = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    n = 0
    for k in range(keys.size):
        one, two = keys[k] // n_c, keys[k] % n_c
        for side in range(1 if one == two else 2):
            s, w = carriers[one if side == 0 else two, 0], carriers[one if side == 0 else two, 1]
            s_col, w_col = carriers[two if side == 0 else one, 0], carriers[two if side == 0 else one, 1]
            for a in range(w):
                for b in range(w_col):
                    rows[n], cols[n] = s + a, s_col + b
                    n += 1
    return first, rows, cols


@njit(cache=True, error_model="numpy", forceinline=True)
def _add_part(row, column, height, width, at, block, data, entries):
    """Add a part of the block of a pair to data[entries], from ``at`` on."""
    for a in range(height):
        for e in range(width):
            data[entries[at + width * a + e]] += block[row + a, column + e]


@njit(cache=True, error_model="numpy")
def _add_block(n_c, points, carriers, keys, first, p, ends, block, data, entries):
    """Add the block of a pair to data[entries], carrier by carrier; fill data with NaN where one has no place.

    Both parts of two carriers stand one behind the other, so that each two are looked for once.
    """
    for side in range(2):
        for k in range(ends[side, NODES] if ends[side, BODY] < 0 else 1):
            one = points[p[ends[side, FIRST] + k], 0]
            row, height = OTHER * side + 3 * k, carriers[one, 1]
            for other in range(side + 1):
                among = k + 1 if other == side else (ends[other, NODES] if ends[other, BODY] < 0 else 1)
                for m in range(among):
                    two = points[p[ends[other, FIRST] + m], 0]
                    column, width = OTHER * other + 3 * m, carriers[two, 1]
                    key = min(one, two) * n_c + max(one, two)
                    found = first_not_below(keys, key)
                    if found == keys.size or keys[found] != key:
                        data[:] = np.nan
                        return
                    at = first[found]
                    behind = at if one == two else at + height * width
                    here, there = (at, behind) if one <= two else (behind, at)
                    _add_part(row, column, height, width, here, block, data, entries)
                    if row != column:
                        _add_part(column, row, width, height, there, block, data, entries)


@njit(cache=True, error_model="numpy", forceinline=True)
def prepare(row, theta, places, meshes, law, rows, half, work, room):
    """Evaluate an active row: fill ends, slopes and force of ``room``.

    Returns number of points, d, side of a skin, whether edges are nearly parallel, v_n and depth, area, e_int, e, the
    coefficients, and what `penalty_law` found.
    """
    n, one, two, d, depth, v_n, weight, m, energy, values, pieces = evaluate(
        row, 2, theta, places, meshes, law, True, rows, half, work
    )
    bits = rows[row, BITS]
    kind, _, _ = unnumbered(rows[row, PAIR], meshes.points.shape[0], meshes.edges.shape[0], meshes.faces.shape[0])
    spinning, sigma = round_side(one, two, meshes)
    turning = -1 if spinning < 0 else (0 if sigma > 0.0 else 1)
    set_ends(n, kind, d, turning, meshes, work, room)
    force_slopes(v_n, pieces[0], pieces[1], pieces[2], weight * m, work.S, room.W)
    for a in range(3):
        room.F[a] = weight * m * work.F[a]
    e, _, _ = normal_law(law.elastic, depth, values.thickness, values.onset, bits & QUADRATIC != 0, bits & BEYOND != 0)
    return n, one, two, d, turning, bits & MOLLIFIED != 0, v_n, depth, weight, m, energy, e, values, pieces


@njit(cache=True, error_model="numpy", forceinline=True)
def _mollify(first, stop, weight, Y, E, work):
    """Add what the change of the mollifier does to the force to the columns first to stop of E."""
    for c in range(first, stop):
        for r in range(3):
            E[r, c] += weight * Y[WAY, c] * work.F[r]


@njit(cache=True, error_model="numpy")
def mesh_contact_jacobian(q, v, theta, meshes, law, rows, weights, slots, data, entries):
    """Add w_q dr/dq + w_v dr/dv, r minus the generalised forces, to data[entries], of replayed rows."""
    _add_jacobian((q, v, theta), meshes, law, rows, weights, slots, data, entries, new_store())


@njit(cache=True, error_model="numpy")
def _add_jacobian(state, meshes, law, rows, weights, slots, data, entries, store):
    (q, v, theta), (floats, integers), weight_q = state, store, weights[0]
    places, half = places_of(2, q, v, theta, meshes), half_thicknesses(theta, meshes)
    work, room = work_in(floats, integers), room_in(floats, integers)
    B, F, W, Y, E, block, ends = places.B, room.F, room.W, room.Y, room.E, room.block, room.ends
    n_c, keys, starts = meshes.carriers.shape[0], slots.keys, slots.first
    for row in range(rows.shape[0]):
        if rows[row, BITS] & ACTIVE == 0:
            continue
        n, _, _, d, turning, mollified, _, _, weight, _, energy, e, values, _ = prepare(
            row, theta, places, meshes, law, rows, half, work, room
        )
        mollified = mollified and weight_q != 0.0
        levers = ends[0, BODY] >= 0 or ends[1, BODY] >= 0
        coordinate_columns(n, d, weights, turning, mollified, B, work, room)
        for side in range(2):
            first, stop = OTHER * side, OTHER * side + ends[side, COUNT]
            force_columns(first, stop, False, levers, F, W, Y, E)
            if mollified:
                _mollify(first, stop, weight, Y, E, work)
            fill_rows(first, stop, B, ends, room.shares, room.arms, F, Y, E, block)
        if levers:
            add_turned_rows(weight_q, q, room.dofs, places.k, ends, room.arms, F, room.Z, room.G, block)
        if mollified:
            mollified_coordinates(n, weight_q, weight * values.k_n, energy, e, q, places.k, B, work, room)
        _add_block(n_c, meshes.points, meshes.carriers, keys, starts, work.p, ends, block, data, entries)


@njit(cache=True, error_model="numpy", forceinline=True)
def _depth_slopes(law, bits, depth, v_n, share, m_f, energy, e, values, slopes):
    """Fill the slopes of onset, ramp and half-thicknesses, and of all numbers along the mollifier's forces."""
    quadratic, beyond = bits & QUADRATIC != 0, bits & BEYOND != 0
    keep = 0.0 if bits & CLIPPED else 1.0
    keep_c = keep if law.normal & TOTAL else 1.0
    onset, ramp, k_n = values.onset, values.ramp, values.k_n
    by_onset, stored = 0.0, 0.0
    if law.elastic <= WALL:
        by_onset = -0.5 * depth * depth / (onset * onset) if quadratic else -0.5
        stored = onset / 3.0 - 0.5 * depth
        if quadratic:
            stored = -depth * depth * depth / (6.0 * onset * onset)
    by_ramp = 0.0
    if bits & RAMPING:
        y = depth / ramp
        by_ramp = 6.0 * values.k_d * y * y * (1.0 - y) / ramp * v_n
    slopes[MORE, 0], slopes[MORE, 1] = keep * k_n * by_onset, -m_f * keep_c * k_n * by_onset
    slopes[MORE + 1, 0] = keep * by_ramp
    slopes[MORE + 1, 1] = -m_f * keep * by_ramp if law.normal & TOTAL else 0.0
    _, by_r = normal_energy(law.elastic, depth, values.thickness, onset, quadratic, beyond)
    for number in range(N_NUMBERS):
        slopes[number, 2] = 0.0
    slopes[0, 2], slopes[MORE, 2] = energy, k_n * stored
    slopes[THICKNESS, 2] = k_n * by_r
    for c in range(3):
        slopes[THICKNESS, c] *= share
        slopes[MORE + 2, c] = slopes[THICKNESS, c]


@njit(cache=True, error_model="numpy")
def mesh_contact_parameters(state, meshes, law, rows, forward, theta_p, f, by_v):
    """Derivatives of r in either direction; ``state`` is q, v and theta.

    forward False (vjp)  theta_p (n_theta,) += lam^T dr/dtheta, lam = f (n,) given; ``by_v`` (n,) += lam^T dr/dv, if it
                         has any size
    forward True  (jvp)  f (n,) += dr/dtheta theta_p
    """
    _add_parameters(state, meshes, law, rows, forward, theta_p, f, by_v, new_store())


@njit(cache=True, error_model="numpy")
def _add_parameters(state, meshes, law, rows, forward, theta_p, f, by_v, store):
    (q, v, theta), (floats, integers) = state, store
    places, half = places_of(2, q, v, theta, meshes), half_thicknesses(theta, meshes)
    work, room = work_in(floats, integers), room_in(floats, integers)
    B, F, W, Y, E, Z = places.B, room.F, room.W, room.Y, room.E, room.Z
    block, ends, dofs, bodies = room.block, room.ends, room.dofs, meshes.bodies
    numbers = borrowed(integers, 24, (N_NUMBERS,))
    slopes, sums = borrowed(floats, 331, (N_NUMBERS, N_WAYS)), borrowed(floats, 391, (N_WAYS,))
    n_p, n_e, n_f = meshes.points.shape[0], meshes.edges.shape[0], meshes.faces.shape[0]
    for row in range(rows.shape[0]):
        if rows[row, BITS] & ACTIVE == 0:
            continue
        n, one, two, d, turning, mollified, v_n, depth, weight, m, energy, e, values, pieces = prepare(
            row, theta, places, meshes, law, rows, half, work, room
        )
        kind, i, j = unnumbered(rows[row, PAIR], n_p, n_e, n_f)
        table = meshes.tables[meshes.points[one, 2], meshes.points[two, 2]]
        for number in range(4):
            numbers[number] = table[number]
        numbers[THICKNESS], numbers[5], numbers[6] = meshes.thickness[meshes.body[one]], table[6], table[7]
        numbers[MORE], numbers[8], numbers[9] = table[4], table[5], meshes.thickness[meshes.body[two]]
        columns = law_columns(weight * m, False, 0.0, work.S, Z, E)
        for r in range(12):
            E[r, 2] = 0.0
        Y[SHARE:, :3] = 0.0
        fill_rows(0, 3, B, ends, room.shares, room.arms, F, Y, E, block)
        if mollified:
            columns = 3
            for k in range(n):
                for r in range(3):
                    work.U[FORCES, k, r] = weight * work.M[k, r]
            add_point_forces(2, n, B, work, ends, block)
        law_slopes(pieces, slopes)
        _depth_slopes(
            law, rows[row, BITS], depth, v_n, reach_share(kind, i, j, meshes), pieces[2][3], energy, e, values, slopes
        )
        count_numbers(columns, numbers, slopes, sums, dofs, ends, forward, theta_p, f, block)
        if by_v.size:
            pull_rates(False, f, B, room, by_v)
        for side in range(2):
            body = ends[side, BODY]
            if body < 0:
                continue
            for axis in range(3):
                index = bodies[body, 1 + axis]
                if index < 0:
                    continue
                centre_column(axis, side, axis, n, d, turning, mollified, B, work, room)
                force_columns(axis, axis + 1, False, True, F, W, Y, E)
                if mollified:
                    _mollify(axis, axis + 1, weight, Y, E, work)
                fill_rows(axis, axis + 1, B, ends, room.shares, room.arms, F, Y, E, block)
                if mollified:
                    mollified_centre(axis, side, axis, n, weight * values.k_n, energy, e, B, work, room)
                count(index, axis, dofs, ends, forward, theta_p, f, block)
