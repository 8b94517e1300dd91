"""How a pair of primitives of meshes changes with what it moves with: columns of `contact_blocks.py`.

With the symbols of `stencil.py` and `mesh_contact.py`, along a_k = n . dx_k, and W_k, g_jk, Q / d of the stencil:

    dd  = sum c_k a_k         dn   = sum c_k (Q / d) dx_k - W_k a_k        dc_j = -sum (g_jk d a_k + c_k W_j . dx_k)
    ds  = dd n + d dn         dv   = sum dc_j v_j + c_j dv_j - d(omega) x s - omega x ds

The arm of a body's side is l = |sum c_j l_j|, from its centre of mass to the closest point, and less sigma s where its
skin meets the other side there: that of a round body, or of what is held (`mesh_sticking.py`).
"""

from add.kernels.caching import CALLED, njit
from add.kernels.contact_arrays import OMEGA, TURN, TURN_RATE
from add.kernels.contact_blocks import ARM, BODY, COUNT, DEPTH, FIRST, NODES, NORMAL, OTHER, SHARE, VELOCITY, WAY
from add.kernels.mesh_arrays import EDGE_EDGE
from add.kernels.rotation import turn_derivative
from add.kernels.stencil import WAYS

#: What U of `mesh_contact.Work` has: ways of points, changes of their arms, changes of their velocities, forces.
PLACES, ARMS, RATES, FORCES = 0, 1, 2, 3


@njit(**CALLED)
def set_ends(n, kind, d, turning, meshes, work, room):
    """Fill what a `Room` says of the sides; ``turning`` is that whose skin meets the other one, -1 for none."""
    points, carriers, ends, dofs, c = meshes.points, meshes.carriers, room.ends, room.dofs, work.c
    dofs[:] = -1
    for side in range(2):
        first = 0 if side == 0 else (2 if kind == EDGE_EDGE else 1)
        stop = n if side == 1 else (2 if kind == EDGE_EDGE else 1)
        sign = 1.0 if side == 0 else -1.0
        carrier, body = points[work.p[first], 0], points[work.p[first], 1]
        nodes = 0 if carrier < 0 or body >= 0 else stop - first
        ends[side, BODY], ends[side, NODES], ends[side, FIRST] = body, nodes, first
        ends[side, COUNT] = 6 if body >= 0 else 3 * nodes
        for column in range(ends[side, COUNT]):
            if body >= 0:
                dofs[OTHER * side + column] = carriers[carrier, 0] + column
            else:
                dofs[OTHER * side + column] = carriers[points[work.p[first + column // 3], 0], 0] + column % 3
        for a in range(3):
            room.arms[side, a] = -sign * d * work.S[0, a] if side == turning else 0.0
            for k in range(first, stop):
                room.arms[side, a] += sign * c[k] * work.A[k, a]


@njit(**CALLED, forceinline=True)
def _points_of_side(side, n, ends):
    """Return the first of a side's points, and where they stop."""
    return (0, ends[1, FIRST]) if side == 0 else (ends[1, FIRST], n)


@njit(**CALLED)
def _set_motion(side, column, n, weight_q, weight_v, B, work, ends):
    """Fill U with ways, changes of arms and velocities of the points by a coordinate of a side, W[1] with its spin's.

    Ways and arms are those of a unit, the others weighted.
    """
    U, W, A, axis, body = work.U, work.W, work.A, column % 3, ends[side, BODY]
    U[:3], W[1] = 0.0, 0.0
    if body < 0:
        k = ends[side, FIRST] + column // 3
        U[PLACES, k, axis], U[RATES, k, axis] = 1.0, weight_v
        return
    first, stop = _points_of_side(side, n, ends)
    if column < 3:
        for k in range(first, stop):
            U[PLACES, k, axis], U[RATES, k, axis] = 1.0, weight_v
        return
    j0, j1, j2 = B[body, TURN, axis], B[body, TURN + 1, axis], B[body, TURN + 2, axis]
    w0, w1, w2 = weight_q * B[body, OMEGA, 0], weight_q * B[body, OMEGA, 1], weight_q * B[body, OMEGA, 2]
    for r in range(3):
        W[1, r] = weight_q * B[body, TURN_RATE + r, axis] + weight_v * B[body, TURN + r, axis]
    for k in range(first, stop):
        l0, l1, l2 = A[k, 0], A[k, 1], A[k, 2]
        u0, u1, u2 = j1 * l2 - j2 * l1, j2 * l0 - j0 * l2, j0 * l1 - j1 * l0
        U[PLACES, k, 0], U[PLACES, k, 1], U[PLACES, k, 2] = u0, u1, u2
        U[ARMS, k, 0], U[ARMS, k, 1], U[ARMS, k, 2] = u0, u1, u2
        U[RATES, k, 0] = W[1, 1] * l2 - W[1, 2] * l1 + w1 * u2 - w2 * u1
        U[RATES, k, 1] = W[1, 2] * l0 - W[1, 0] * l2 + w2 * u0 - w0 * u2
        U[RATES, k, 2] = W[1, 0] * l1 - W[1, 1] * l0 + w0 * u1 - w1 * u0


@njit(**CALLED)
def _finish(c, side, n, d, weight_q, turning, mollified, B, work, room):
    """Fill column c of Y from what `_set_motion` left, of a number of ``side``."""
    ends, Y = room.ends, room.Y
    U, V, S, P, Q, g, shares = work.U, work.V, work.S, work.P, work.Q, work.g, work.c
    first, stop = _points_of_side(side, n, ends)
    Y[DEPTH, c], Y[WAY, c] = 0.0, 0.0
    for r in range(3):
        Y[NORMAL + r, c], Y[VELOCITY + r, c] = 0.0, 0.0
    for j in range(n):
        Y[SHARE + j, c] = 0.0
    for k in range(first, stop):
        x0, x1, x2 = U[PLACES, k, 0], U[PLACES, k, 1], U[PLACES, k, 2]
        if weight_q == 0.0 or (x0 == 0.0 and x1 == 0.0 and x2 == 0.0):
            continue
        along = S[0, 0] * x0 + S[0, 1] * x1 + S[0, 2] * x2
        Y[DEPTH, c] -= weight_q * shares[k] * along
        for r in range(3):
            Y[NORMAL + r, c] += weight_q * shares[k] * (Q[r, 0] * x0 + Q[r, 1] * x1 + Q[r, 2] * x2)
            Y[NORMAL + r, c] -= weight_q * along * P[WAYS + k, r]
        for j in range(n):
            moved = P[WAYS + j, 0] * x0 + P[WAYS + j, 1] * x1 + P[WAYS + j, 2] * x2
            Y[SHARE + j, c] -= weight_q * (g[j, k] * d * along + shares[k] * moved)
        if mollified:
            Y[WAY, c] += weight_q * (work.M[k, 0] * x0 + work.M[k, 1] * x1 + work.M[k, 2] * x2)
    for k in range(n):
        for r in range(3):
            Y[VELOCITY + r, c] += Y[SHARE + k, c] * V[k, r] + shares[k] * U[RATES, k, r]
    if ends[0, BODY] >= 0 or ends[1, BODY] >= 0:
        _arms(c, side, n, d, weight_q, turning, B, work, room)


@njit(**CALLED)
def _node_column(c, side, column, n, d, weights, mollified, work, room):
    """Fill column c of Y by a coordinate of a node: as `_set_motion` and `_finish`, for a way of one along an axis.

    Most of the columns of cloth are such, and all that is zero takes three times as long.
    """
    Y, V, S, P, Q, g, shares = room.Y, work.V, work.S, work.P, work.Q, work.g, work.c
    (weight_q, weight_v), axis, k = weights, column % 3, room.ends[side, FIRST] + column // 3
    along, share = S[0, axis], shares[k]
    Y[DEPTH, c] = -weight_q * share * along
    Y[WAY, c] = weight_q * work.M[k, axis] if mollified else 0.0
    for r in range(3):
        Y[NORMAL + r, c] = weight_q * (share * Q[r, axis] - along * P[WAYS + k, r])
        Y[VELOCITY + r, c] = 0.0
    Y[VELOCITY + axis, c] = share * weight_v
    for j in range(n):
        moved = -weight_q * (g[j, k] * d * along + share * P[WAYS + j, axis])
        Y[SHARE + j, c] = moved
        for r in range(3):
            Y[VELOCITY + r, c] += moved * V[j, r]


@njit(**CALLED)
def _arms(c, side, n, d, weight_q, turning, B, work, room):
    """Fill the rows of arms in column c of Y, and add what a skin that turns does to the velocity."""
    ends, Y, U, W, A, S, shares = room.ends, room.Y, work.U, work.W, work.A, work.S, work.c
    for r in range(3):
        Y[ARM + r, c], Y[ARM + 3 + r, c] = 0.0, 0.0
    for end in range(2):
        if ends[end, BODY] < 0:
            continue
        sign, at = 1.0 if end == 0 else -1.0, ARM + 3 * end
        begin, until = _points_of_side(end, n, ends)
        for k in range(begin, until):
            for r in range(3):
                Y[at + r, c] += sign * (Y[SHARE + k, c] * A[k, r] + weight_q * shares[k] * U[ARMS, k, r])
        if end == turning:
            w0, w1, w2 = B[ends[end, BODY], OMEGA, 0], B[ends[end, BODY], OMEGA, 1], B[ends[end, BODY], OMEGA, 2]
            for r in range(3):
                W[0, r] = d * S[0, r]
                W[2, r] = -Y[DEPTH, c] * S[0, r] + d * Y[NORMAL + r, c]
                Y[at + r, c] -= sign * W[2, r]
            for r in range(3):
                s, t = (r + 1) % 3, (r + 2) % 3
                w_s, w_t = (w1, w2) if r == 0 else ((w2, w0) if r == 1 else (w0, w1))
                Y[VELOCITY + r, c] -= w_s * W[2, t] - w_t * W[2, s]
                if side == turning:
                    Y[VELOCITY + r, c] -= W[1, s] * W[0, t] - W[1, t] * W[0, s]


@njit(**CALLED)
def coordinate_columns(n, d, weights, turning, mollified, B, work, room):
    """Fill the columns of Y of the coordinates of both sides: w_q d/dq + w_v d/dv, ``weights`` both."""
    (weight_q, weight_v), ends = weights, room.ends
    levers = ends[0, BODY] >= 0 or ends[1, BODY] >= 0
    for side in range(2):
        for column in range(ends[side, COUNT]):
            c = OTHER * side + column
            if ends[side, BODY] >= 0:
                _set_motion(side, column, n, weight_q, weight_v, B, work, ends)
                _finish(c, side, n, d, weight_q, turning, mollified, B, work, room)
                continue
            _node_column(c, side, column, n, d, weights, mollified, work, room)
            if levers:
                work.U[ARMS], work.W[1] = 0.0, 0.0
                _arms(c, side, n, d, weight_q, turning, B, work, room)


@njit(**CALLED)
def _set_centre(side, axis, n, B, work, ends):
    """Fill U for a centre of mass: it moves the points of its body by -R dX_c, their arms and with them their rates."""
    U, body = work.U, ends[side, BODY]
    U[:3], work.W[1] = 0.0, 0.0
    x0, x1, x2 = -B[body, 0, axis], -B[body, 1, axis], -B[body, 2, axis]
    w0, w1, w2 = B[body, OMEGA, 0], B[body, OMEGA, 1], B[body, OMEGA, 2]
    first, stop = _points_of_side(side, n, ends)
    for k in range(first, stop):
        U[PLACES, k, 0], U[PLACES, k, 1], U[PLACES, k, 2] = x0, x1, x2
        U[ARMS, k, 0], U[ARMS, k, 1], U[ARMS, k, 2] = x0, x1, x2
        U[RATES, k, 0] = w1 * x2 - w2 * x1
        U[RATES, k, 1] = w2 * x0 - w0 * x2
        U[RATES, k, 2] = w0 * x1 - w1 * x0


@njit(**CALLED)
def centre_column(c, side, axis, n, d, turning, mollified, B, work, room):
    """Fill column c of Y by an axis of the centre of mass of a side's body."""
    _set_centre(side, axis, n, B, work, room.ends)
    _finish(c, side, n, d, 1.0, turning, mollified, B, work, room)


# --- the mollifier's forces ------------------------------------------------------------------------------------------


@njit(**CALLED)
def add_point_forces(c, n, B, work, ends, block):
    """Add the forces on points U[FORCES], of the residual, to column c of ``block``."""
    U, A = work.U, work.A
    for side in range(2):
        body, at = ends[side, BODY], OTHER * side
        first, stop = _points_of_side(side, n, ends)
        for k in range(first, stop):
            f0, f1, f2 = U[FORCES, k, 0], U[FORCES, k, 1], U[FORCES, k, 2]
            if body < 0:
                if ends[side, NODES]:
                    row = at + 3 * (k - first)
                    block[row, c], block[row + 1, c], block[row + 2, c] = (
                        block[row, c] + f0, block[row + 1, c] + f1, block[row + 2, c] + f2,
                    )  # fmt: skip
                continue
            t0 = A[k, 1] * f2 - A[k, 2] * f1
            t1 = A[k, 2] * f0 - A[k, 0] * f2
            t2 = A[k, 0] * f1 - A[k, 1] * f0
            block[at, c], block[at + 1, c], block[at + 2, c] = (
                block[at, c] + f0, block[at + 1, c] + f1, block[at + 2, c] + f2,
            )  # fmt: skip
            for r in range(3):
                block[at + 3 + r, c] += B[body, TURN, r] * t0 + B[body, TURN + 1, r] * t1 + B[body, TURN + 2, r] * t2


@njit(**CALLED)
def _add_mollified(c, side, n, weight_q, scale, energy, slope, B, work, room):
    """Add the change of scale e_int dm/dx_k by a number of ``side`` to column c of the block; U has what it moves.

    ``scale``, ``energy``, ``slope`` are the area times k_n, e_int and e.
    """
    ends, Y, block = room.ends, room.Y, room.block
    U, M, N = work.U, work.M, work.N
    first, stop = _points_of_side(side, n, ends)
    for j in range(n):
        for r in range(3):
            total = slope * Y[DEPTH, c] * M[j, r]
            for k in range(first, stop):
                for e in range(3):
                    total += weight_q * energy * N[3 * j + r, 3 * k + e] * U[PLACES, k, e]
            U[FORCES, j, r] = scale * total
    add_point_forces(c, n, B, work, ends, block)
    body, at, factor = ends[side, BODY], OTHER * side + 3, weight_q * scale * energy
    if body < 0:
        return
    for k in range(first, stop):
        l0, l1, l2 = factor * U[ARMS, k, 0], factor * U[ARMS, k, 1], factor * U[ARMS, k, 2]
        t0, t1, t2 = l1 * M[k, 2] - l2 * M[k, 1], l2 * M[k, 0] - l0 * M[k, 2], l0 * M[k, 1] - l1 * M[k, 0]
        for r in range(3):
            block[at + r, c] += B[body, TURN, r] * t0 + B[body, TURN + 1, r] * t1 + B[body, TURN + 2, r] * t2


@njit(**CALLED)
def mollified_coordinates(n, weight_q, scale, energy, slope, q, k, B, work, room):
    """Add the change of the mollifier's forces by the coordinates of both sides; k (nb, 6) of rotations."""
    ends, dofs, Z, G, block = room.ends, room.dofs, room.Z, room.G, room.block
    for side in range(2):
        for column in range(ends[side, COUNT]):
            _set_motion(side, column, n, weight_q, 0.0, B, work, ends)
            _add_mollified(OTHER * side + column, side, n, weight_q, scale, energy, slope, B, work, room)
        body, at = ends[side, BODY], OTHER * side + 3
        if body < 0:
            continue
        first, stop = _points_of_side(side, n, ends)
        Z[5] = 0.0
        for j in range(first, stop):
            for r in range(3):
                s, t = (r + 1) % 3, (r + 2) % 3
                Z[5, r] += scale * energy * (work.A[j, s] * work.M[j, t] - work.A[j, t] * work.M[j, s])
        turn_derivative(-1.0, q[dofs[at] : dofs[at] + 3], Z[5], k[body], G)
        for r in range(3):
            for c in range(3):
                block[at + r, at + c] += weight_q * G[r, c]


@njit(**CALLED)
def mollified_centre(c, side, axis, n, scale, energy, slope, B, work, room):
    """Add the change of the mollifier's forces by an axis of a centre of mass to column c."""
    _set_centre(side, axis, n, B, work, room.ends)
    _add_mollified(c, side, n, 1.0, scale, energy, slope, B, work, room)
