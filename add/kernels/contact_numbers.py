"""Derivatives of contact between bodies by numbers: those of the law, centres of mass, and sizes of shapes."""

from add.kernels.borrowed import borrowed
from add.kernels.caching import njit
from add.kernels.contact_arrays import Motion, unpacked, unpacked_law
from add.kernels.contact_blocks import (
    BODY,
    N_NUMBERS,
    N_WAYS,
    count,
    count_numbers,
    fill_rows,
    force_columns,
    law_columns,
    law_slopes,
    new_store,
    room_in,
)
from add.kernels.contact_bodies import prepare
from add.kernels.contact_detection import frames_of
from add.kernels.contact_pairs import ACTIVE, BITS, FEATURE
from add.kernels.contact_points import SCRATCH, scratch_in, size_ways, way_column


@njit(cache=True, error_model="numpy")
def body_contact_parameters(t, q, v, theta, ints, floats, fields, growth, rows, forward, theta_p, f):
    """See `_add_parameters`; ``ints``, ``floats`` and ``fields`` are a `Packed`."""
    motion, contacts, law = Motion(t, q, v, theta), unpacked(ints, floats, fields), unpacked_law(ints)
    _add_parameters(motion, contacts, law, growth, rows, forward, theta_p, f, *new_store())


@njit(cache=True, error_model="numpy")
def _add_parameters(motion, contacts, law, growth, rows, forward, theta_p, f, floats, integers):
    """Derivatives of r by the numbers of the law, centres of mass and sizes, in either direction.

    forward False (vjp)  theta_p (n_theta,) += lam^T dr/dtheta, lam = f (n,) given
    forward True  (jvp)  f (n,) += dr/dtheta theta_p

    A size moves a point by R_a dX - n dradius, as far as both go, and a shape by what `size_ways` says.
    """
    frames, scratch, room = frames_of(2, motion, contacts), scratch_in(floats), room_in(floats, integers)
    bodies, B, S, M = contacts.bodies, frames.B, scratch.S, room.G
    F, Y, E, Z, block, ends, dofs = room.F, room.Y, room.E, room.Z, room.block, room.ends, room.dofs
    numbers, index = borrowed(integers, 24, (N_NUMBERS,)), borrowed(integers, 34, (3,))
    slopes, sums = borrowed(floats, SCRATCH, (N_NUMBERS, N_WAYS)), borrowed(floats, SCRATCH + 60, (N_WAYS,))
    causes = 4 if growth.points.shape[0] + growth.shapes.shape[0] > 0 else 2
    for pair in range(rows.shape[0]):
        if rows[pair, BITS] & ACTIVE == 0:
            continue
        i, o, lever, braked, found = prepare(pair, motion, contacts, frames, law, rows, scratch, room)
        table = contacts.tables[contacts.points[i, 1], contacts.columns[o, 0]]
        for number in range(N_NUMBERS):
            numbers[number] = table[number if number < 4 else number + 1]
        columns = law_columns(contacts.arms[i, 4], braked, found[1][0], S, Z, E)
        fill_rows(0, columns, B, ends, room.shares, room.arms, F, Y, E, block)
        law_slopes(found, slopes)
        count_numbers(columns, numbers, slopes, sums, dofs, ends, forward, theta_p, f, block)
        # The centres of mass of both bodies, then the sizes of the point and of the shape.
        for cause in range(causes):
            side = cause % 2
            body = ends[side, BODY]
            if body < 0:
                continue
            for c in range(3):
                if cause < 2:
                    index[c] = bodies[body, 1 + c]
                else:
                    index[c] = growth.points[i, c] if side == 0 else growth.shapes[o, c]
            if index[0] < 0 and index[1] < 0 and index[2] < 0:
                continue
            if cause == 3:
                size_ways(o, rows[pair, FEATURE], scratch.x[0], frames, S[0], M)
            for r in range(3):
                for c in range(3):
                    if cause < 2:
                        M[r, c] = B[body, r, c] if side == 1 else -B[body, r, c]
                    elif cause == 2:
                        M[r, c] = -S[0, r] * growth.arms[i, c, 3]
                        for e in range(3):
                            M[r, c] += B[body, r, e] * growth.arms[i, c, e]
            for c in range(3):
                if index[c] >= 0:
                    way_column(c, side, M[:, c], lever, 0.0, ends[0, BODY], ends[1, BODY], B, S, Z, Y)
            force_columns(0, 3, braked, True, F, room.W, Y, E)
            fill_rows(0, 3, B, ends, room.shares, room.arms, F, Y, E, block)
            for c in range(3):
                if index[c] >= 0:
                    count(index[c], c, dofs, ends, forward, theta_p, f, block)
