"""Points and shapes on bodies at one state, and which of them touch.

The bodies' poses and the shapes' frames come first, then a broad phase over balls: points come in runs, each of one
body, in a ball of its own; shapes have a ball about the origin of their frame. Many runs and shapes meet by way of a
grid of cells, few are tested one by one. A run near a shape is tested point by point.
"""

import numpy as np
from numba import types

from add.kernels.borrowed import borrowed, uncounted
from add.kernels.by_address import when_called
from add.kernels.caching import njit
from add.kernels.contact_arrays import CENTRE, OMEGA, PLACE, TURN, TURN_RATE, VELOCITY, Frames
from add.kernels.contact_lines import ROWS, call_crossing_features
from add.kernels.contact_pairs import PAIR, Shapes, to_frame, touch, with_row
from add.kernels.contact_places import CLEAR, LEFT, ROLLS, feature_at, has_corner, with_rim
from add.kernels.distance import distance_branch, distance_feature
from add.kernels.ordering import call_rows_by, first_not_below
from add.kernels.rotation import fill_jacobian, fill_rotation, jacobian_coefficients, turn, turn_derivative
from add.kernels.shape_codes import BOX, CYLINDER
from add.kernels.shape_grid import ALL, BODY, FIRST, GROUP, LINES, MORE, OWNER, STOP, ball_of, call_shapes_near

#: Values of `enabled`: never, always, and only where the point's body comes behind the shape's.
NEVER, ALWAYS, BEHIND = 0, 1, 2
#: Runs times shapes from which on a grid is quicker than testing all.
MANY = 4096
#: Depth by coordinates up to which a gap may be round-off of a thousand steps.
ROUNDING = 1e-14


@njit(cache=True, error_model="numpy")
def body_states(order, q, v, theta, bodies, B, k):
    """Fill the state B of all bodies and the coefficients k (nb, 6) of their rotations; J and D if order >= 2."""
    for b in range(bodies.shape[0]):
        s = bodies[b, 0]
        if s < 0:  # an obstacle
            for r in range(13):
                for c in range(3):
                    B[b, r, c] = 1.0 if r == c else 0.0
            continue
        w, w_dot = q[s + 3 : s + 6], v[s + 3 : s + 6]
        jacobian_coefficients(w[0] * w[0] + w[1] * w[1] + w[2] * w[2], k[b])
        fill_rotation(w, k[b], B[b])
        for a in range(3):
            B[b, PLACE, a], B[b, VELOCITY, a] = q[s + a], v[s + a]
            index = bodies[b, 1 + a]
            B[b, CENTRE, a] = theta[index] if index >= 0 else 0.0
        turn(1.0, w, w_dot, k[b], B[b, OMEGA])
        if order >= 2:
            fill_jacobian(1.0, w, k[b], B[b, TURN : TURN + 3])
            turn_derivative(1.0, w, w_dot, k[b], B[b, TURN_RATE : TURN_RATE + 3])


@njit(cache=True, error_model="numpy")
def shape_frames(t, hosts, poses, B, R, p, V, W):
    """Fill the world poses R, p and the twists V (at p), W of all shapes."""
    for o in range(hosts.size):
        b = hosts[o]
        if b < 0:
            for r in range(3):
                p[o, r] = poses[o, 3, r] + t * poses[o, 4, r]
                V[o, r], W[o, r] = poses[o, 4, r], 0.0
                for c in range(3):
                    R[o, r, c] = poses[o, r, c]
            continue
        X0, X1, X2 = (
            poses[o, 3, 0] - B[b, CENTRE, 0],
            poses[o, 3, 1] - B[b, CENTRE, 1],
            poses[o, 3, 2] - B[b, CENTRE, 2],
        )
        y0 = B[b, 0, 0] * X0 + B[b, 0, 1] * X1 + B[b, 0, 2] * X2
        y1 = B[b, 1, 0] * X0 + B[b, 1, 1] * X1 + B[b, 1, 2] * X2
        y2 = B[b, 2, 0] * X0 + B[b, 2, 1] * X1 + B[b, 2, 2] * X2
        w0, w1, w2 = B[b, OMEGA, 0], B[b, OMEGA, 1], B[b, OMEGA, 2]
        p[o, 0], p[o, 1], p[o, 2] = B[b, PLACE, 0] + y0, B[b, PLACE, 1] + y1, B[b, PLACE, 2] + y2
        V[o, 0] = B[b, VELOCITY, 0] + w1 * y2 - w2 * y1
        V[o, 1] = B[b, VELOCITY, 1] + w2 * y0 - w0 * y2
        V[o, 2] = B[b, VELOCITY, 2] + w0 * y1 - w1 * y0
        W[o, 0], W[o, 1], W[o, 2] = w0, w1, w2
        for r in range(3):
            for c in range(3):
                R[o, r, c] = B[b, r, 0] * poses[o, 0, c] + B[b, r, 1] * poses[o, 1, c] + B[b, r, 2] * poses[o, 2, c]


@njit(cache=True, error_model="numpy")
def frames_of(order, motion, contacts):
    """Return the bodies and shapes at a state; J and d(omega)/dw of the bodies if order >= 2."""
    nb, ns = contacts.bodies.shape[0], contacts.kind.size
    B, k = np.empty((nb, 13, 3)), np.empty((nb, 6))
    R, p, V, W = np.empty((ns, 3, 3)), np.empty((ns, 3)), np.empty((ns, 3)), np.empty((ns, 3))
    body_states(order, motion.q, motion.v, motion.theta, contacts.bodies, B, k)
    for b in range(nb):
        o = -2 - contacts.bodies[b, 0]
        if o >= 0:
            for c in range(3):
                B[b, PLACE, c], B[b, VELOCITY, c] = motion.t * contacts.poses[o, 4, c], contacts.poses[o, 4, c]
    shape_frames(motion.t, contacts.hosts, contacts.poses, B, R, p, V, W)
    return Frames(B, k, Shapes(contacts.kind, contacts.size, R, p, V, W))


@njit(cache=True, error_model="numpy")
def fields_of_frames(motion, contacts):
    """Return the fields of `Frames` without derivatives, and those of their `Shapes`, for Python."""
    frames = frames_of(0, motion, contacts)
    shapes = frames.shapes
    return (frames.B, frames.k), (shapes.kind, shapes.size, shapes.R, shapes.p, shapes.V, shapes.W)


@njit(cache=True, error_model="numpy", inline="always")
def reach_of(row, column, theta, contacts):
    """Return the gap at which the law of a row and a column of the tables begins [m]."""
    index = contacts.tables[row, column, 5]
    return contacts.depths[row, column, 2] * theta[index] if index >= 0 else 0.0


@njit(cache=True, error_model="numpy")
def _farthest(theta, contacts):
    """Return the largest reach of all pairs [m]."""
    out, tables = 0.0, contacts.tables
    if contacts.depths.size == 0 or contacts.depths[0, 0, 2] == 0.0:
        return out
    for row in range(tables.shape[0]):
        for column in range(tables.shape[1]):
            out = max(out, reach_of(row, column, theta, contacts))
    return out


@njit(cache=True, error_model="numpy")
def meets(run, o, runs, hosts, columns, tables, apart, stride):
    """Whether the points of a run meet shape o at all: no body meets its own."""
    enabled = tables[runs[run, GROUP], columns[o, 0], 4]
    if enabled == NEVER or (hosts[o] >= 0 and hosts[o] == runs[run, BODY]):
        return False
    if enabled == BEHIND and runs[run, BODY] < hosts[o]:
        return False
    if apart.size == 0:
        return True
    key = runs[run, OWNER] * stride + columns[o, 1]
    at = first_not_below(apart, key)
    return at == apart.size or apart[at] != key


@njit(cache=True, error_model="numpy")
def _met_shapes(run, contacts, found, n):
    """Fill ``found`` with the shapes that points of a run's row and owner meet, of whatever body; return how many.

    ``n`` are those of the run before, which are the same for all links of a tree: to look at all shapes for each of
    them would take a time that grows with the square of their number.
    """
    runs, columns, tables, apart = contacts.runs, contacts.columns, contacts.tables, contacts.apart
    group, owner = runs[run, GROUP], runs[run, OWNER]
    if run > 0 and runs[run - 1, GROUP] == group and runs[run - 1, OWNER] == owner:
        return n
    n = 0
    for o in range(columns.shape[0]):
        if tables[group, columns[o, 0], 4] == NEVER:
            continue
        key = owner * contacts.stride + columns[o, 1]
        at = first_not_below(apart, key)
        if at == apart.size or apart[at] != key:
            found[n] = o
            n += 1
    return n


@njit(cache=True, error_model="numpy")
def meeting_pairs(contacts):
    """Return all pairs (k, 2) of runs and shapes that meet; many where there are many bodies."""
    runs, hosts, columns = contacts.runs, contacts.hosts, contacts.columns
    tables, apart, stride = contacts.tables, contacts.apart, contacts.stride
    met, n = np.empty(hosts.size, dtype=np.int64), 0
    pairs, k = np.empty((16, 2), dtype=np.int64), 0
    for run in range(runs.shape[0]):
        n = _met_shapes(run, contacts, met, n)
        for o in met[:n]:
            if meets(run, o, runs, hosts, columns, tables, apart, stride):
                if k == pairs.shape[0]:
                    pairs = np.concatenate((pairs, np.empty_like(pairs)))
                pairs[k, 0], pairs[k, 1] = run, o
                k += 1
    return pairs[:k].copy()


@njit(cache=True, error_model="numpy")
def which_meet(contacts, pairs):
    """Return which pairs (k, 2) of runs and shapes meet."""
    out = np.empty(pairs.shape[0], dtype=np.bool_)
    for k in range(out.size):
        out[k] = meets(
            pairs[k, 0],
            pairs[k, 1],
            contacts.runs,
            contacts.hosts,
            contacts.columns,
            contacts.tables,
            contacts.apart,
            contacts.stride,
        )
    return out


@njit(cache=True, error_model="numpy")
def meetings(contacts, most):
    """Return which runs (nr,) meet the world, whether nodes meet bodies, and the bodies that meet bodies.

    The last are keys, body of the points * nb + body of the shapes; if they are more than ``most``, so many and
    one.
    """
    nb = contacts.bodies.shape[0]
    runs, hosts, columns = contacts.runs, contacts.hosts, contacts.columns
    tables, apart, stride = contacts.tables, contacts.apart, contacts.stride
    world, nodes = np.zeros(runs.shape[0], dtype=np.bool_), False
    keys, n = np.empty(most + 1, dtype=np.int64), 0
    met, n_found = np.empty(hosts.size, dtype=np.int64), 0
    for run in range(runs.shape[0]):
        n_found = _met_shapes(run, contacts, met, n_found)
        for o in met[:n_found]:
            if n > most and hosts[o] >= 0 and (nodes or runs[run, BODY] >= 0):
                continue
            if not meets(run, o, runs, hosts, columns, tables, apart, stride):
                continue
            if hosts[o] < 0:
                world[run] = True
            elif runs[run, BODY] < 0:
                nodes = True
            elif contacts.bodies[runs[run, BODY], 0] < 0:
                continue
            elif n <= most:
                key, known = runs[run, BODY] * nb + hosts[o], False
                for m in range(n):
                    known = known or keys[m] == key
                if not known:
                    keys[n] = key
                    n += 1
    return world, nodes, keys[:n]


@njit(cache=True, error_model="numpy")
def gap_of(o, centre, kind, size, R, p, S):
    """Return the gap [m] of a place (1, 3) and shape o: it changes by no more than the way between places."""
    X0, X1, X2 = to_frame(0, o, centre, R, p)
    feature = distance_feature(kind[o], size[o], X0, X1, X2)
    return distance_branch(kind[o], size[o], X0, X1, X2, feature, 0, S[0], S)


@njit(cache=True, error_model="numpy")
def detect(q, theta, contacts, frames):
    """Return the rows (k, 3) of all pairs that touch, sorted by pair."""
    return _touching(q, theta, contacts, frames, np.empty(15 + 3 * ROWS))


@njit(cache=True, error_model="numpy")
def _touching(q, theta, contacts, frames, store):
    """See `detect`; ``store`` is room for a pair."""
    # References to what has an owner would be counted for every pair; arguments outlive the call.
    q, theta, contacts, frames = uncounted((q, theta, contacts, frames))
    arms, bounds, kind, size = contacts.arms, contacts.bounds, contacts.kind, contacts.size
    runs, hosts, columns = contacts.runs, contacts.hosts, contacts.columns
    tables, apart, stride = contacts.tables, contacts.apart, contacts.stride
    n_runs, n_shapes, R, p = runs.shape[0], kind.size, frames.shapes.R, frames.shapes.p
    x, S, L = borrowed(store, 0, (1, 3)), borrowed(store, 3, (4, 3)), borrowed(store, 15, (ROWS, 3))
    rows, n, ordered = np.empty((16, 3), dtype=np.int64), 0, True
    found = np.empty(contacts.points.shape[0], dtype=np.int64)
    # One list of shapes for all runs, or one behind the other for each of many.
    layer, use_grid = _farthest(theta, contacts), n_runs * n_shapes > MANY
    near, begins = np.empty(0 if use_grid else n_shapes, dtype=np.int64), np.empty(0, dtype=np.int64)
    if use_grid:
        near, begins = call_shapes_near((q, layer, contacts, frames))
    for o in range(0 if use_grid else n_shapes):
        near[o] = o
    for run in range(n_runs):
        first, stop, lines = runs[run, FIRST], runs[run, STOP], runs[run, LINES]
        many = stop - first > 2
        reach = ball_of(run, q, contacts, frames.B, x) + layer
        c0, c1, c2 = x[0, 0], x[0, 1], x[0, 2]
        rounding = ROUNDING * (abs(c0) + abs(c1) + abs(c2))
        of_obstacle = -2 - contacts.bodies[runs[run, BODY], 0] if runs[run, BODY] >= 0 else -1
        begin, end = (begins[run], begins[run + 1]) if use_grid else (0, n_shapes)
        for candidate in range(begin, end):
            o = near[candidate]
            y0, y1, y2, both = c0 - p[o, 0], c1 - p[o, 1], c2 - p[o, 2], MORE * (reach + bounds[o])
            if y0 * y0 + y1 * y1 + y2 * y2 > both * both:
                continue
            if not meets(run, o, runs, hosts, columns, tables, apart, stride):
                continue
            if of_obstacle >= 0:  # its points are no nearer than it is
                x[0, 0], x[0, 1], x[0, 2] = p[o, 0], p[o, 1], p[o, 2]
                if gap_of(of_obstacle, x, kind, size, R, p, S) > MORE * (bounds[o] + layer):
                    continue
            if many:
                x[0, 0], x[0, 1], x[0, 2] = c0, c1, c2
                if gap_of(o, x, kind, size, R, p, S) > reach:
                    continue
            # Bodies that fall together, flush, would touch by round-off: no force, but the slope of friction at rest.
            reach_of_pair = reach_of(runs[run, GROUP], columns[o, 0], theta, contacts) - rounding
            known, angular = (-1, -1), kind[o] == BOX or kind[o] == CYLINDER
            crosses = lines < stop
            if crosses:
                crosses = call_crossing_features((lines, stop, o, reach_of_pair, 0.0, contacts, frames, found))
            for i in range(first, stop if crosses else lines):
                within = reach_of_pair + arms[i, 3]
                if i >= lines:
                    feature = found[i - lines]
                else:
                    feature, known = with_rim(i, o, q, within, known, contacts, frames, x, L, S)
                    if feature == CLEAR or feature == LEFT:
                        continue
                    if feature < 0 and not (angular and has_corner(i, contacts)):
                        feature = touch(0, o, x, kind, size, R, p, within, S)
                    else:
                        rolls = ROLLS if feature >= 0 else 0
                        if feature < 0:
                            feature = feature_at(i, o, contacts, frames, x, L, False)
                        X0, X1, X2 = to_frame(0, o, x, R, p)
                        gap = distance_branch(kind[o], size[o], X0, X1, X2, feature, 0, S[0], S)
                        feature = feature | rolls if gap < within else -1
                if feature >= 0:
                    pair = i * n_shapes + o
                    ordered = ordered and (n == 0 or rows[n - 1, PAIR] < pair)
                    rows = with_row(rows, n, pair, feature)
                    n += 1
    return rows[:n].copy() if ordered else call_rows_by((rows[:n], PAIR))


_ROW = types.float64[::1]
call_detect = when_called(detect, (_ROW, _ROW, *ALL), types.int64[:, ::1])
