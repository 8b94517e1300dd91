"""Where bodies, points and shapes are, and which point is in which shape; arguments as in `body_contact.py`."""

import math

import numpy as np

from add.kernels.caching import njit
from add.kernels.contact_nodes import ACTIVE, GIVEN, _to_frame, _touch, _touch_sphere
from add.kernels.distance import BOX, CYLINDER, PLANE, SPHERE, distance_branch, distance_feature
from add.kernels.rotation import fill_left_jacobian, fill_rotation, jacobian_coefficients, turn, turn_derivative

# Rows of the state of a body, B (nb, 13, 3): R (0-2), x, velocity of x, omega, X_c, J (7-9), d(omega)/dw (10-12).
PLACE, VELOCITY, OMEGA, CENTRE, TURN, TURN_RATE = 3, 4, 5, 6, 7, 10


@njit(cache=True, error_model="numpy")
def body_states(order, q, v, theta, bodies, B, k):
    """Fill the state B of all bodies and the coefficients k (nb, 6) of their rotations; J and D if order >= 2."""
    for b in range(bodies.shape[0]):
        s = bodies[b, 0]
        w, w_dot = q[s + 3 : s + 6], v[s + 3 : s + 6]
        jacobian_coefficients(w[0] * w[0] + w[1] * w[1] + w[2] * w[2], k[b])
        fill_rotation(w, k[b], B[b])
        for a in range(3):
            B[b, PLACE, a], B[b, VELOCITY, a] = q[s + a], v[s + a]
            index = bodies[b, 1 + a]
            B[b, CENTRE, a] = theta[index] if index >= 0 else 0.0
        turn(1.0, w, w_dot, k[b], B[b, OMEGA])
        if order >= 2:
            fill_left_jacobian(w, k[b], B[b, TURN : TURN + 3])
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


@njit(cache=True, error_model="numpy", inline="always")
def point_place(i, q, points, arms, B, x, L):
    """Fill the world place x (1, 3) of point i and its arm L[0]; return its body or -1."""
    a = points[i, 2]
    if a < 0:
        for c in range(3):
            x[0, c], L[0, c] = q[points[i, 0] + c], 0.0
        return a
    X0, X1, X2 = arms[i, 0] - B[a, CENTRE, 0], arms[i, 1] - B[a, CENTRE, 1], arms[i, 2] - B[a, CENTRE, 2]
    for c in range(3):
        L[0, c] = B[a, c, 0] * X0 + B[a, c, 1] * X1 + B[a, c, 2] * X2
        x[0, c] = B[a, PLACE, c] + L[0, c]
    return a


@njit(cache=True, error_model="numpy")
def _bounds(kind, size, bound):
    """Fill the radii bound (ns,) of balls about the origins of the shapes' frames that hold them."""
    for o in range(kind.size):
        s0, s1, s2 = size[o, 0], size[o, 1], size[o, 2]
        if kind[o] == PLANE:
            bound[o] = math.inf
        elif kind[o] == SPHERE:
            bound[o] = s0
        elif kind[o] == BOX:
            bound[o] = math.sqrt(s0 * s0 + s1 * s1 + s2 * s2)
        elif kind[o] == CYLINDER:
            bound[o] = math.sqrt(s0 * s0 + s1 * s1)
        else:
            bound[o] = s0 + s1


@njit(cache=True, error_model="numpy")
def _near(o, centre, reach, kind, size, R, p, S):
    """Whether the ball (centre (1, 3), reach) may meet shape o: gaps change by no more than the way between places."""
    X0, X1, X2 = _to_frame(0, o, centre, R, p)
    feature = distance_feature(kind[o], size[o], X0, X1, X2)
    return distance_branch(kind[o], size[o], X0, X1, X2, feature, 0, S[0], S) <= reach


@njit(cache=True, error_model="numpy")
def _ball(run, q, points, arms, runs, spheres, B, centre):
    """Fill the centre (1, 3) of a ball around the spheres of a run and return its radius, a little too large."""
    first, stop, a = runs[run, 0], runs[run, 1], runs[run, 3]
    if a >= 0:
        X0, X1, X2 = (
            spheres[run, 0] - B[a, CENTRE, 0],
            spheres[run, 1] - B[a, CENTRE, 1],
            spheres[run, 2] - B[a, CENTRE, 2],
        )
        for c in range(3):
            centre[0, c] = B[a, PLACE, c] + B[a, c, 0] * X0 + B[a, c, 1] * X1 + B[a, c, 2] * X2
        return 1.000000001 * spheres[run, 3]
    widest, square = 0.0, 0.0
    for i in range(first, stop):
        widest = max(widest, arms[i, 3])
    for c in range(3):
        low, high = math.inf, -math.inf
        for i in range(first, stop):
            y = q[points[i, 0] + c]
            low, high = min(low, y), max(high, y)
        centre[0, c] = 0.5 * (low + high)
        square += 0.25 * (high - low) * (high - low)
    return 1.000000001 * (math.sqrt(square) + widest)


@njit(cache=True, error_model="numpy")
def touching_pairs(q, points, arms, runs, spheres, kind, size, tables, replay, codes, B, R, p):
    """Pairs (k, 2) of points and shapes in contact, row by row of the codes; decides them first unless replayed."""
    n = 0
    if replay:
        for i in range(codes.shape[0]):
            for o in range(codes.shape[1]):
                if codes[i, o] & ACTIVE != 0:
                    n += 1
    else:
        x, L, S, bound = np.empty((1, 3)), np.empty((1, 3)), np.empty((3, 3)), np.empty(kind.size)
        _bounds(kind, size, bound)
        for run in range(runs.shape[0]):
            first, stop, group = runs[run, 0], runs[run, 1], runs[run, 2]
            many = stop - first > 2
            reach = _ball(run, q, points, arms, runs, spheres, B, x)
            c0, c1, c2 = x[0, 0], x[0, 1], x[0, 2]
            for o in range(kind.size):
                if tables[group, o, 4] == 0:
                    continue
                y0, y1, y2, both = c0 - p[o, 0], c1 - p[o, 1], c2 - p[o, 2], 1.000000001 * (reach + bound[o])
                if y0 * y0 + y1 * y1 + y2 * y2 > both * both:
                    continue
                if many:
                    x[0, 0], x[0, 1], x[0, 2] = c0, c1, c2
                    if not _near(o, x, reach, kind, size, R, p, S):
                        continue
                for i in range(first, stop):
                    point_place(i, q, points, arms, B, x, L)
                    if arms[i, 3] > 0.0:
                        code = _touch_sphere(0, o, x, kind, size, R, p, arms[i, 3], S)
                    else:
                        code = _touch(0, o, x, kind, size, R, p)
                    if code != 0:
                        codes[i, o] = code | (codes[i, o] & GIVEN)
                        n += 1
    pairs = np.empty((n, 2), dtype=np.int64)
    k = 0
    for i in range(codes.shape[0]):
        if k == n:
            break
        for o in range(codes.shape[1]):
            if codes[i, o] & ACTIVE != 0:
                pairs[k, 0], pairs[k, 1] = i, o
                k += 1
    return pairs
