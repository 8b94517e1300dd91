"""Balls around runs of points, and cells of shapes, in which a broad phase looks for those that a ball may meet.

Cells are called by address, and compiled when there are many shapes: most scenes have few, which are tested one by one.
"""

import math

import numpy as np
from numba import typeof, types

from add.kernels.borrowed import put
from add.kernels.by_address import when_called
from add.kernels.caching import njit
from add.kernels.contact_arrays import CENTRE, PLACE, Frames, nothing
from add.kernels.contact_pairs import Shapes

#: Columns of `runs`.
FIRST, STOP, GROUP, BODY, OWNER, LINES = 0, 1, 2, 3, 4, 5
#: A little more than one, against round-off.
MORE = 1.000000001


@njit(cache=True, error_model="numpy", inline="always")
def ball_of(run, q, contacts, B, centre):
    """Fill the centre (1, 3) of a ball around the spheres of a run and return its radius, a little too large."""
    spheres, arms = contacts.spheres, contacts.arms
    first, stop, a = contacts.runs[run, FIRST], contacts.runs[run, STOP], contacts.runs[run, BODY]
    if a >= 0:
        X0, X1, X2 = (
            spheres[run, 0] - B[a, CENTRE, 0],
            spheres[run, 1] - B[a, CENTRE, 1],
            spheres[run, 2] - B[a, CENTRE, 2],
        )
        for c in range(3):
            centre[0, c] = B[a, PLACE, c] + B[a, c, 0] * X0 + B[a, c, 1] * X1 + B[a, c, 2] * X2
        return MORE * spheres[run, 3]
    widest, square = 0.0, 0.0
    for i in range(first, stop):
        widest = max(widest, arms[i, 3])
    for c in range(3):
        low, high = math.inf, -math.inf
        for i in range(first, stop):
            y = q[contacts.points[i, 0] + c]
            low, high = min(low, y), max(high, y)
        centre[0, c] = 0.5 * (low + high)
        square += 0.25 * (high - low) * (high - low)
    return MORE * (math.sqrt(square) + widest)


@njit(cache=True, error_model="numpy")
def _shape_grid(p, bounds):
    """Sort the shapes into cells by the origins of their frames.

    Returns (first (cells + 1,), members), those of a cell being members[first[cell]:first[cell + 1]]; the low corner
    and the edges of the cells (3,), how many there are along each axis (3,), the largest bound of a sorted shape, and
    the shapes that are too large for cells and may meet anything.
    """
    ns = bounds.size
    total, n_finite = 0.0, 0
    for o in range(ns):
        if bounds[o] < math.inf:
            total += bounds[o]
            n_finite += 1
    limit = 4.0 * total / max(n_finite, 1)
    large, n_large, widest = np.empty(ns, dtype=np.int64), 0, 0.0
    low, high = np.full(3, math.inf), np.full(3, -math.inf)
    cell = np.zeros(ns, dtype=np.int64)
    for o in range(ns):
        # No cell is for what is nowhere: then Newton went astray, and notices by the residual.
        if not (bounds[o] <= limit and p[o, 0] * p[o, 0] + p[o, 1] * p[o, 1] + p[o, 2] * p[o, 2] < math.inf):
            large[n_large], cell[o] = o, -1
            n_large += 1
            continue
        widest = max(widest, bounds[o])
        for c in range(3):
            low[c], high[c] = min(low[c], p[o, c]), max(high[c], p[o, c])
    edge, count = np.ones(3), np.ones(3, dtype=np.int64)
    for c in range(3):
        if n_large < ns:
            edge[c] = max(2.0 * widest, (high[c] - low[c]) / 64.0, 1e-300)
            count[c] = int((high[c] - low[c]) / edge[c]) + 1
    first = np.zeros(count[0] * count[1] * count[2] + 1, dtype=np.int64)
    for o in range(ns):
        if cell[o] < 0:
            continue
        at = 0
        for c in range(3):
            at = at * count[c] + int((p[o, c] - low[c]) / edge[c])
        cell[o] = at
        first[at + 1] += 1
    for at in range(first.size - 1):
        first[at + 1] += first[at]
    members, filled = np.empty(ns - n_large, dtype=np.int64), first.copy()
    for o in range(ns):
        if cell[o] >= 0:
            members[filled[cell[o]]] = o
            filled[cell[o]] += 1
    return first, members, low, edge, count, widest, large[:n_large]


@njit(cache=True, error_model="numpy")
def _candidates(c, reach, grid, found):
    """Fill ``found`` with the shapes whose cells the ball (c (3,), reach) may meet; return how many there are."""
    first, members, low, edge, count, widest, large = grid
    n = large.size
    put(large, found)
    from_, to = np.empty(3, dtype=np.int64), np.empty(3, dtype=np.int64)
    for a in range(3):
        begin, end = (c[a] - reach - widest - low[a]) / edge[a], (c[a] + reach + widest - low[a]) / edge[a]
        if not (end >= 0.0 and begin < count[a]):
            return n
        from_[a], to[a] = int(max(begin, 0.0)), int(min(end, count[a] - 1.0))
    for i in range(from_[0], to[0] + 1):
        for j in range(from_[1], to[1] + 1):
            row = (i * count[1] + j) * count[2]
            for k in range(first[row + from_[2]], first[row + to[2] + 1]):
                found[n] = members[k]
                n += 1
    return n


@njit(cache=True, error_model="numpy")
def shapes_near(q, layer, contacts, frames):
    """Return the shapes (m,) that the balls of runs, ``layer`` around them, may meet; each run's first (nr + 1,)."""
    n_runs, n_shapes, n = contacts.runs.shape[0], contacts.kind.size, 0
    grid, x, near = _shape_grid(frames.shapes.p, contacts.bounds), np.empty((1, 3)), np.empty(n_shapes, dtype=np.int64)
    every, begins = np.empty(4 * n_runs, dtype=np.int64), np.zeros(n_runs + 1, dtype=np.int64)
    for run in range(n_runs):
        reach = ball_of(run, q, contacts, frames.B, x) + layer
        n_found = _candidates(x[0], reach, grid, near)
        if n + n_found > every.size:
            more = np.empty(2 * (n + n_found), dtype=np.int64)
            put(every[:n], more)
            every = more
        put(near[:n_found], every[n:])
        n += n_found
        begins[run + 1] = n
    return every, begins


_INTS, _CUBE, _NONE = types.int64[::1], np.zeros((0, 0, 0)), np.zeros((0, 0))
_AT = typeof(Frames(_CUBE, _NONE, Shapes(nothing().kind, _NONE, _CUBE, _NONE, _NONE, _NONE)))
#: The types of contacts and frames.
ALL = typeof(nothing()), _AT
call_shapes_near = when_called(
    shapes_near,
    (types.float64[::1], types.float64, *ALL),
    types.UniTuple(_INTS, 2),  # type: ignore[attr-defined]
)
