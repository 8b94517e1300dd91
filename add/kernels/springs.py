"""Local laws of couplings: forces f on the sites of an interaction from their y and rates, with all derivatives.

Here are springs, cables, bonds, motors and given forces; `add.kernels.joints` has what needs the axis of a joint.

Sites of interaction e are rows r e, r e + 1, ... of y, y_dot and f. Derivatives f_y, f_v (n, 3 r, 3 r) and f_p
(n, 3 r, n_p) are added to zeros. E is the stored energy; a force is minus its gradient.
"""

import math

import numpy as np

from add.kernels.borrowed import put
from add.kernels.caching import CALLED, njit

_INLINE = CALLED | {"forceinline": True}  # of a pair each: arrays are structs, which calls would hand over

#: Codes of a cable.
SLACK, TAUT, CLIPPED = 0, 1, 2


@njit(**CALLED)
def dot(a, b):
    """Return a . b of two 3-vectors."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@njit(**_INLINE)
def pair_block(block, f):
    """Fill f (6, 6) with [B, -B; -B, B]: what depends on the difference of two sites and acts oppositely on them."""
    for i in range(3):
        for j in range(3):
            f[i, j] = block[i, j]
            f[i, 3 + j] = -block[i, j]
            f[3 + i, j] = -block[i, j]
            f[3 + i, 3 + j] = block[i, j]


# --- spring and cable -------------------------------------------------------------------------------------------------


@njit(**_INLINE)
def stretch(a, b, a_dot, b_dot, n):
    """Fill n with the unit vector from b to a, zero where they meet; return their distance and its rate."""
    for i in range(3):
        n[i] = a[i] - b[i]
    length = math.sqrt(dot(n, n))
    if length == 0.0:
        return 0.0, 0.0
    rate = 0.0
    for i in range(3):
        n[i] /= length
        rate += n[i] * (a_dot[i] - b_dot[i])
    return length, rate


@njit(**CALLED)
def _pull(y, y_dot, p, unilateral, clip, imposed, codes, f):
    """Fill f of springs, p = (k, c, L), f_a = -F n = -f_b, F = k (l - L) + c l_dot, n = (y_a - y_b) / l.

    ``unilateral`` ones pull where l > L alone (code TAUT); with ``clip`` never where F < 0 (CLIPPED). The codes are
    imposed or written. Return how many act.
    """
    active = 0
    n = np.empty(3)
    for e in range(p.shape[0]):
        a, b = 2 * e, 2 * e + 1
        for i in range(3):
            f[a, i], f[b, i] = 0.0, 0.0
        if unilateral and imposed and codes[e] != TAUT:
            continue
        length, rate = stretch(y[a], y[b], y_dot[a], y_dot[b], n)
        force = p[e, 0] * (length - p[e, 2]) + p[e, 1] * rate
        if unilateral and not imposed:
            codes[e] = SLACK
            if length > p[e, 2]:
                codes[e] = CLIPPED if clip and force < 0.0 else TAUT
            if codes[e] != TAUT:
                continue
        active += 1
        for i in range(3):
            f[a, i] = -force * n[i]
            f[b, i] = force * n[i]
    return active


@njit(**_INLINE)
def along_line(pull, length, rate, n, a_dot, b_dot, block, f, f_y, f_v):
    """Fill f (2, 3) of a ``pull`` F(l, l_dot) along n, given with its slopes, and its derivatives (6, 6); l > 0.

    df_a/dy_a = -n (F_l n + F_rate P v)^T - F P,  df_a/dv_a = -F_rate n n^T,  P = (I - n n^T) / l
    """
    force, by_length, by_rate = pull
    for i in range(3):
        f[0, i] = -force * n[i]
        f[1, i] = force * n[i]
        for j in range(3):
            across = (a_dot[j] - b_dot[j] - rate * n[j]) / length
            block[i, j] = (
                -n[i] * (by_length * n[j] + by_rate * across)
                - force * ((1.0 if i == j else 0.0) - n[i] * n[j]) / length
            )
    pair_block(block, f_y)
    for i in range(3):
        for j in range(3):
            block[i, j] = -by_rate * n[i] * n[j]
    pair_block(block, f_v)


@njit(**CALLED)
def all_ways(slope, block, f):
    """Fill f (6, 6) of -slope times the difference of two sites, whatever its direction."""
    for i in range(3):
        for j in range(3):
            block[i, j] = -slope if i == j else 0.0
    pair_block(block, f)


def line_law(name, formula):
    """Return force and derivatives of a law between two places, a pull F(l, l_dot; p) along their line.

    ``formula``: (l, l_dot, p, F_p) -> F, dF/dl, dF/dl_dot; fills dF/dp. Where the ends meet there is no line, and no
    force; the derivatives are those of a way through that place along any one line, if no force jumps there.
    """

    @njit(variant=name, **CALLED)
    def force(y, y_dot, p, imposed, codes, f):
        n, slopes = np.empty(3), np.empty(p.shape[1])
        for e in range(p.shape[0]):
            a, b = 2 * e, 2 * e + 1
            length, rate = stretch(y[a], y[b], y_dot[a], y_dot[b], n)
            pull = formula(length, rate, p[e], slopes)[0]
            for i in range(3):
                f[a, i] = -pull * n[i]
                f[b, i] = pull * n[i]
        return p.shape[0]

    @njit(variant=name, **CALLED)
    def derivatives(y, y_dot, p, codes, f, f_y, f_v, f_p):
        n, block, slopes = np.empty(3), np.empty((3, 3)), np.empty(p.shape[1])
        for e in range(p.shape[0]):
            a, b = 2 * e, 2 * e + 1
            length, rate = stretch(y[a], y[b], y_dot[a], y_dot[b], n)
            pull = formula(length, rate, p[e], slopes)
            if length == 0.0:
                for i in range(3):
                    f[a, i] = f[b, i] = 0.0
                if pull[0] == 0.0 and math.isfinite(pull[1] + pull[2]):
                    all_ways(pull[1], block, f_y[e])
                    all_ways(pull[2], block, f_v[e])
                continue
            along_line(pull, length, rate, n, y_dot[a], y_dot[b], block, f[a : a + 2], f_y[e], f_v[e])
            for i in range(3):
                for k in range(p.shape[1]):
                    f_p[e, i, k] = -slopes[k] * n[i]
                    f_p[e, 3 + i, k] = slopes[k] * n[i]

    return force, derivatives


@njit(**CALLED)
def _pull_derivatives(y, y_dot, p, unilateral, codes, f, f_y, f_v, f_p):
    """Fill f and its derivatives; where the ends meet a spring pulls along no direction, and df/dy is that of L = 0."""
    n = np.empty(3)
    block = np.empty((3, 3))
    for e in range(p.shape[0]):
        a, b = 2 * e, 2 * e + 1
        for i in range(3):
            f[a, i], f[b, i] = 0.0, 0.0
        if unilateral and codes[e] != TAUT:
            continue
        k, c = p[e, 0], p[e, 1]
        length, rate = stretch(y[a], y[b], y_dot[a], y_dot[b], n)
        if length == 0.0:
            all_ways(k, block, f_y[e])
            if p[e, 2] == 0.0:
                all_ways(c, block, f_v[e])
            continue
        force = k * (length - p[e, 2]) + c * rate
        along_line((force, k, c), length, rate, n, y_dot[a], y_dot[b], block, f[a : a + 2], f_y[e], f_v[e])
        for i in range(3):
            f_p[e, i, 0] = -(length - p[e, 2]) * n[i]
            f_p[e, i, 1] = -rate * n[i]
            f_p[e, i, 2] = k * n[i]
            for j in range(3):
                f_p[e, 3 + i, j] = -f_p[e, i, j]


@njit(**CALLED)
def spring_force(y, y_dot, p, imposed, codes, f):
    """Fill f of springs."""
    return _pull(y, y_dot, p, False, False, True, codes, f)


@njit(**CALLED)
def spring_derivatives(y, y_dot, p, codes, f, f_y, f_v, f_p):
    """Fill f of springs and its derivatives."""
    _pull_derivatives(y, y_dot, p, False, codes, f, f_y, f_v, f_p)


@njit(**CALLED)
def cable_force(y, y_dot, p, imposed, codes, f):
    """Fill f of cables; return how many act."""
    return _pull(y, y_dot, p, True, False, imposed, codes, f)


@njit(**CALLED)
def clipped_cable_force(y, y_dot, p, imposed, codes, f):
    """Fill f of cables whose damping never pushes; return how many act."""
    return _pull(y, y_dot, p, True, True, imposed, codes, f)


@njit(**CALLED)
def cable_derivatives(y, y_dot, p, codes, f, f_y, f_v, f_p):
    """Fill f of cables and its derivatives, on the branches of the codes."""
    _pull_derivatives(y, y_dot, p, True, codes, f, f_y, f_v, f_p)


# --- bond -------------------------------------------------------------------------------------------------------------


@njit(**CALLED)
def bond_force(y, y_dot, p, imposed, codes, f):
    """Fill f_a = -k (y_a - y_b) - c (y_dot_a - y_dot_b) = -f_b, p = (k, c)."""
    for e in range(p.shape[0]):
        a, b = 2 * e, 2 * e + 1
        for i in range(3):
            f[a, i] = -p[e, 0] * (y[a, i] - y[b, i]) - p[e, 1] * (y_dot[a, i] - y_dot[b, i])
            f[b, i] = -f[a, i]
    return p.shape[0]


@njit(**CALLED)
def bond_derivatives(y, y_dot, p, codes, f, f_y, f_v, f_p):
    """Fill f and its derivatives."""
    bond_force(y, y_dot, p, True, codes, f)
    for e in range(p.shape[0]):
        a, b = 2 * e, 2 * e + 1
        for i in range(3):
            for s in range(2):
                for t in range(2):
                    sign = 1.0 if s == t else -1.0
                    f_y[e, 3 * s + i, 3 * t + i] = -sign * p[e, 0]
                    f_v[e, 3 * s + i, 3 * t + i] = -sign * p[e, 1]
                sign = 1.0 if s == 0 else -1.0
                f_p[e, 3 * s + i, 0] = -sign * (y[a, i] - y[b, i])
                f_p[e, 3 * s + i, 1] = -sign * (y_dot[a, i] - y_dot[b, i])


# --- motor ------------------------------------------------------------------------------------------------------------


@njit(**CALLED)
def motor_force(y, y_dot, p, imposed, codes, f):
    """Fill f = -dE/dy, E = k/2 |d|^2, d = cos(phi) y_1 + sin(phi) y_2 - y_3, p = (k, phi)."""
    for e in range(p.shape[0]):
        k, cos, sin = p[e, 0], math.cos(p[e, 1]), math.sin(p[e, 1])
        for i in range(3):
            kd = k * (cos * y[3 * e, i] + sin * y[3 * e + 1, i] - y[3 * e + 2, i])
            f[3 * e, i] = -cos * kd
            f[3 * e + 1, i] = -sin * kd
            f[3 * e + 2, i] = kd
    return p.shape[0]


@njit(**CALLED)
def motor_derivatives(y, y_dot, p, codes, f, f_y, f_v, f_p):
    """Fill f and its derivatives."""
    motor_force(y, y_dot, p, True, codes, f)
    s, s_phi = np.empty(3), np.empty(3)
    for e in range(p.shape[0]):
        k, cos, sin = p[e, 0], math.cos(p[e, 1]), math.sin(p[e, 1])
        s[0], s[1], s[2] = cos, sin, -1.0
        s_phi[0], s_phi[1], s_phi[2] = -sin, cos, 0.0
        for i in range(3):
            d = cos * y[3 * e, i] + sin * y[3 * e + 1, i] - y[3 * e + 2, i]
            d_phi = -sin * y[3 * e, i] + cos * y[3 * e + 1, i]
            for a in range(3):
                for b in range(3):
                    f_y[e, 3 * a + i, 3 * b + i] = -k * s[a] * s[b]
                f_p[e, 3 * a + i, 0] = -s[a] * d
                f_p[e, 3 * a + i, 1] = -k * (s_phi[a] * d + s[a] * d_phi)


# --- given forces -----------------------------------------------------------------------------------------------------


@njit(**CALLED)
def axial_force(y, y_dot, p, imposed, codes, f):
    """Fill f = s u on the first site, -s u on the second of three; u is the last site's y, p = (s,)."""
    for e in range(p.shape[0]):
        for i in range(3):
            force = p[e, 0] * y[3 * e + 2, i]
            f[3 * e, i] = force
            f[3 * e + 1, i] = -force
            f[3 * e + 2, i] = 0.0
    return p.shape[0]


@njit(**CALLED)
def axial_derivatives(y, y_dot, p, codes, f, f_y, f_v, f_p):
    """Fill f and its derivatives."""
    axial_force(y, y_dot, p, True, codes, f)
    for e in range(p.shape[0]):
        for i in range(3):
            f_y[e, i, 6 + i] = p[e, 0]
            f_p[e, i, 0] = y[3 * e + 2, i]
            f_y[e, 3 + i, 6 + i] = -p[e, 0]
            f_p[e, 3 + i, 0] = -f_p[e, i, 0]


@njit(**CALLED)
def given_force(y, y_dot, p, imposed, codes, f):
    """Fill f = p on the one site."""
    put(p, f)
    return p.shape[0]


@njit(**CALLED)
def given_derivatives(y, y_dot, p, codes, f, f_y, f_v, f_p):
    """Fill f and its derivatives."""
    put(p, f)
    for e in range(p.shape[0]):
        for i in range(3):
            f_p[e, i, i] = 1.0
