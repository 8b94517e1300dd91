"""Rotation vectors: exponential map, left Jacobian, quaternions (w, x, y, z)."""

import numpy as np
from numba import njit


@njit(cache=True)
def skew(w):
    """Return [w]x with [w]x u = w x u."""
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


@njit(cache=True)
def rotation_matrix(w):
    """Return exp([w]x) = I + sin(t)/t [w]x + (1 - cos t)/t^2 [w]x^2, t = |w| (Rodrigues)."""
    t2 = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    if t2 < 1e-8:
        a = 1.0 - t2 / 6.0 * (1.0 - t2 / 20.0)
        b = 0.5 * (1.0 - t2 / 12.0 * (1.0 - t2 / 30.0))
    else:
        t = np.sqrt(t2)
        a = np.sin(t) / t
        b = 2.0 * (np.sin(0.5 * t) / t) ** 2
    k = skew(w)
    return np.eye(3) + a * k + b * (k @ k)


@njit(cache=True)
def left_jacobian(w):
    """Return J_l with omega = J_l(w) w_dot: I + (1 - cos t)/t^2 [w]x + (t - sin t)/t^3 [w]x^2."""
    t2 = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    if t2 < 1e-4:
        b = 0.5 * (1.0 - t2 / 12.0 * (1.0 - t2 / 30.0))
        c = (1.0 - t2 / 20.0 * (1.0 - t2 / 42.0)) / 6.0
    else:
        t = np.sqrt(t2)
        b = 2.0 * (np.sin(0.5 * t) / t) ** 2
        c = (t - np.sin(t)) / (t * t2)
    k = skew(w)
    return np.eye(3) + b * k + c * (k @ k)


def rotation_vector(quaternion):
    """Return the rotation vector of a unit quaternion (w, x, y, z), of length at most pi [rad]."""
    w, *xyz = np.asarray(quaternion, dtype=float)
    axis = np.array(xyz)
    if w < 0.0:
        w, axis = -w, -axis
    s = np.linalg.norm(axis)
    if s < 1e-12:
        return 2.0 * axis
    return 2.0 * np.arctan2(s, w) / s * axis
