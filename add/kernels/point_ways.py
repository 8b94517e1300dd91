"""How far points may go before they touch shapes: laws that are infinite there keep iterates outside.

A point moves in the frame of a shape on a straight way. Along it the distance to a convex shape is a convex function:
its tangents are below it, and Newton's method on them comes from the free side, quadratically. A distance to any other
shape changes by no more than the way, which is slower and ends early beside it.
"""

import math

import numpy as np

from add.kernels.caching import njit
from add.kernels.contact_circles import UPRIGHT, is_line
from add.kernels.contact_detection import frames_of, meets, reach_of
from add.kernels.contact_pairs import to_frame
from add.kernels.contact_places import call_rolled, point_place
from add.kernels.distance import distance_branch, distance_feature
from add.kernels.mesh_distance import mesh_is_near
from add.kernels.shape_codes import MESH
from add.kernels.shape_grid import FIRST, GROUP, STOP

#: Share of its gap that a point keeps.
KEPT = 0.1
#: Kinds up to this code are convex.
LAST_CONVEX = MESH - 1
#: Steps along one way; then its rest is not gone.
MOST = 100


@njit(cache=True, error_model="numpy")
def free_way(kind, size, X, D, radius, S):
    """Return the share of the way D (3,) from X (3,), in the frame of a shape, on which a ball keeps off it.

    A ball that begins inside is not held.
    """
    length = math.sqrt(D[0] * D[0] + D[1] * D[1] + D[2] * D[2])
    if length == 0.0 or (kind == MESH and not mesh_is_near(size, X[0], X[1], X[2], radius + 2.0 * length)):
        return 1.0
    n, t, gap = S[0], 0.0, 0.0
    least = 0.0
    for step in range(MOST):
        x0, x1, x2 = X[0] + t * D[0], X[1] + t * D[1], X[2] + t * D[2]
        feature = distance_feature(kind, size, x0, x1, x2)
        gap = distance_branch(kind, size, x0, x1, x2, feature, 1, n, S[1:4]) - radius
        if step == 0:
            if not gap > 0.0:
                return 1.0
            least = KEPT * gap
        if (1.0 - t) * length < gap - least:
            return 1.0
        if gap - least <= 0.01 * least:
            return t
        speed = length
        if kind <= LAST_CONVEX:
            speed = -(n[0] * D[0] + n[1] * D[1] + n[2] * D[2])
            if speed <= 0.0:
                return 1.0
        t += (gap - least) / speed
        if t >= 1.0:
            return 1.0
    return t


@njit(cache=True, error_model="numpy")
def free_points(motion, other, contacts):
    """Return the share of the ways between two motions that is free, straight in the frames of the shapes."""
    one, two = frames_of(0, motion, contacts), frames_of(0, other, contacts)
    runs, hosts, columns, tables = contacts.runs, contacts.hosts, contacts.columns, contacts.tables
    kind, size, bounds = contacts.kind, contacts.size, contacts.bounds
    out, S = 1.0, np.zeros((4, 3))
    x, y, L, X, D = np.empty((1, 3)), np.empty((1, 3)), np.empty((10, 3)), np.empty(3), np.empty(3)
    for run in range(runs.shape[0]):
        for o in range(kind.size):
            if not meets(run, o, runs, hosts, columns, tables, contacts.apart, contacts.stride):
                continue
            if reach_of(runs[run, GROUP], columns[o, 0], motion.theta, contacts) == 0.0:
                continue
            for i in range(runs[run, FIRST], runs[run, STOP]):
                point_place(i, motion.q, contacts, one.B, x, L)
                if is_line(i, contacts):
                    continue
                is_rim = contacts.points[i, 3] >= 0
                rolls = is_rim and call_rolled((i, o, motion.q, math.inf, UPRIGHT, contacts, one, x, L, S)) >= 0
                point_place(i, other.q, contacts, two.B, y, L)
                if is_rim and call_rolled((i, o, other.q, math.inf, UPRIGHT, contacts, two, y, L, S)) < 0 and rolls:
                    point_place(i, motion.q, contacts, one.B, x, L)
                X[0], X[1], X[2] = to_frame(0, o, x, one.shapes.R, one.shapes.p)
                D[0], D[1], D[2] = to_frame(0, o, y, two.shapes.R, two.shapes.p)
                square, way = 0.0, 0.0
                for a in range(3):
                    D[a] -= X[a]
                    square, way = square + X[a] * X[a], way + D[a] * D[a]
                radius = contacts.arms[i, 3]
                if math.sqrt(square) > bounds[o] + radius + 1.2 * math.sqrt(way):
                    continue
                out = min(out, free_way(kind[o], size[o], X, D, radius, S))
    return out
