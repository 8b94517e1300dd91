"""One pair of a point and a shape in penalty contact: detection, gap and penalty law, with their derivatives.

Geilinger et al. 2020, Eqs. 16-18, 21-22, with an elastic onset, a damping ramp and the curvature of the shapes. With
the gap g(x), n = grad g, depth d = -g, twist (V, W) of the shape at p:

    v_rel = v - V - W x (x - p),   v_n = n . v_rel,   v_t = v_rel - v_n n
    f_n   = max(f_e + f_d, 0),     f_e = k_n e(d),    f_d = -k_d s(d) v_n      e: `normal_law`, s: `damping_share`
    f_t   = -m(|v_t|, mu f_c) v_t / |v_t|                                      m: `friction_law`
    mu    = c_f, or a curve over |v_t| and f_c                                 `friction_coefficient`
    F     = scale (f_n n + f_t)

f_c = f_e (the paper) or f_n if the limits count the damping. `scale` is 1 (k per node) or a rest area (k per area): it
multiplies the whole force.

The three layers do not know each other: `touch` finds what touches, `gap` gives d, n, v_rel and the Hessian of g, and
`penalty_law` maps them to forces. How these act on bodies and nodes stands once, in `contact_blocks.py`.

A decision is an int64 array (k, 3), one row a pair that touches or is given, sorted by pair:

    pair       point * n_shapes + shape
    feature    smooth branch of the distance (`distance.py`)
    bits       ACTIVE | SLIP (LINEAR only) | QUADRATIC (onset) | RAMPING (damping) | CLIPPED (f_n = 0) |
               STICKS (no friction law: an equation holds the pair; see `sticking.py`) | RELEASED (k_t STIFFER fold) |
               BEYOND (deeper than half the thickness: the wall acts) | FACE (feature and pair are given, in all rows)

Laws that need a thickness have a layer around shapes: d = R - g with their reach R (`contact_laws.py`).

STICKS, RELEASED and FACE are never decided by the law: rows have them, also of pairs that do not touch. A replayed pair
is evaluated by the smooth formula of its branch, without any max or min: d = -g whatever its sign, f_n = f_e + f_d or 0
as the bits say. Then the force is smooth in everything and the Jacobian is its exact derivative.

Calls and views of arrays cost more here than the arithmetic: hence scalars, and functions that numba inlines. A named
tuple is free where it is inlined, but its arrays are copied by every call: what is called for every pair takes arrays.
"""

import math
from typing import NamedTuple

import numpy as np

from add.kernels.borrowed import put
from add.kernels.caching import njit
from add.kernels.contact_laws import LINEAR, NONE, WALL, damping_share, friction_coefficient, friction_law, normal_law
from add.kernels.distance import distance_branch, distance_feature, distance_inside
from add.kernels.mesh_distance import mesh_is_near
from add.kernels.shape_codes import MESH
from add.typing import FloatArray, IntArray

PAIR, FEATURE, BITS = 0, 1, 2
ACTIVE, SLIP, QUADRATIC, RAMPING, CLIPPED, STICKS, RELEASED = 1, 2, 4, 8, 16, 32, 64
#: 128 is a bit of meshes.
BEYOND, FACE = 256, 512
#: Bits that are given, never decided.
GIVEN = STICKS | RELEASED | FACE
#: How much stiffer the linear law sticks for pairs that were held beyond Coulomb's limit and released: they slip, and
#: the law's own k_t may be too soft to see that. Much stiffer, and Newton finds the kink too sharp.
STIFFER = 10.0
#: Bits of `Law.normal`: Coulomb's limit counts the damping; the damping may pull while bodies part, as Eq. 22 has it;
#: its share is that of the law by formula.
TOTAL, ADHESIVE, SHARED = 1, 2, 4
#: Rows of the scratch S (9, 3) of `gap` and `penalty_law`: n, v_rel, t = v_t / |v_t|, Hessian of g (3-5); 6-8 free.
NORMAL, V_REL, SLIDE, HESSIAN = 0, 1, 2, 3


class Shapes(NamedTuple):
    """Shapes at one state: codes and sizes of `distance.py`, X -> R X + p [m], velocity V at p [m/s], spin W [1/s]."""

    kind: IntArray
    size: FloatArray
    R: FloatArray
    p: FloatArray
    V: FloatArray
    W: FloatArray


class Law(NamedTuple):
    """Friction NONE, LINEAR or TANH; bits TOTAL, ADHESIVE, SHARED; the law of the normal force, PENALTY and others.

    ``curve`` is that of the coefficient of friction, CONSTANT or an address; so may be the law of the normal force.
    """

    friction: int
    normal: int
    elastic: int = 0
    curve: int = 0


class Coefficients(NamedTuple):
    """Coefficients of a pair: [N/m], [N s/m], [N s/m], [-], [m], [m], [m]; c_t, c_r [m], w_0 [1/s].

    ``first`` and ``second`` are the numbers of the curve of friction. w_0 = 0: nothing brakes the spin.
    """

    k_n: float
    k_d: float
    k_t: float
    c_f: float
    onset: float
    ramp: float
    thickness: float
    first: float
    second: float
    c_t: float
    c_r: float
    w_0: float


@njit(cache=True, error_model="numpy", inline="always")
def static_coefficient(law, values, f_c):
    """Return the coefficient of friction of a pair that does not slide, under a normal force f_c."""
    return friction_coefficient(law.curve, 0.0, f_c, values.c_f, values.first, values.second)[0]


@njit(cache=True, error_model="numpy")
def to_frame(i, o, x, R, p):
    """R^T (x - p): point i in the frame of shape o."""
    y0, y1, y2 = x[i, 0] - p[o, 0], x[i, 1] - p[o, 1], x[i, 2] - p[o, 2]
    return (
        R[o, 0, 0] * y0 + R[o, 1, 0] * y1 + R[o, 2, 0] * y2,
        R[o, 0, 1] * y0 + R[o, 1, 1] * y1 + R[o, 2, 1] * y2,
        R[o, 0, 2] * y0 + R[o, 1, 2] * y1 + R[o, 2, 2] * y2,
    )


@njit(cache=True, error_model="numpy")
def touch(i, o, x, kind, size, R, p, radius, S):
    """Return the feature if point i touches shape o, else -1. Most pairs end here: keep it cheap.

    A sphere about the point also meets edges, corners and rims from outside.
    """
    X0, X1, X2 = to_frame(i, o, x, R, p)
    if kind[o] == MESH and not mesh_is_near(size[o], X0, X1, X2, radius):
        return -1
    if radius > 0.0 or kind[o] == MESH:
        feature = distance_feature(kind[o], size[o], X0, X1, X2)
        if distance_branch(kind[o], size[o], X0, X1, X2, feature, 0, S[0], S) < radius:
            return feature
    elif distance_inside(kind[o], size[o, 0], size[o, 1], size[o, 2], X0, X1, X2):
        return distance_feature(kind[o], size[o], X0, X1, X2)
    return -1


@njit(cache=True, error_model="numpy")
def gap(i, o, x, v, shapes, feature, order, radius, spin, S):
    """Return d and v_n; fill n, v_rel and (if order >= 2) the Hessian of g in world axes, rows 0, 1, 3-5 of S (9, 3).

    The point may be the centre of a sphere of `radius` that turns with `spin` (three numbers, world axes) relative to
    the shape: then d = radius - g and v_rel is that of the two surfaces, v_rel - radius spin x n.
    """
    X0, X1, X2 = to_frame(i, o, x, shapes.R, shapes.p)
    n, H, r = S[0], S[3:6], shapes.R[o]
    d = -distance_branch(shapes.kind[o], shapes.size[o], X0, X1, X2, feature, order, n, H)
    if radius > 0.0:
        d += radius
    n0, n1, n2 = n[0], n[1], n[2]
    for a in range(3):
        n[a] = r[a, 0] * n0 + r[a, 1] * n1 + r[a, 2] * n2
    if order >= 2:  # H <- R H R^T
        for a in range(3):
            for b in range(3):
                S[6 + a, b] = r[a, 0] * H[0, b] + r[a, 1] * H[1, b] + r[a, 2] * H[2, b]
        for a in range(3):
            for b in range(3):
                H[a, b] = S[6 + a, 0] * r[b, 0] + S[6 + a, 1] * r[b, 1] + S[6 + a, 2] * r[b, 2]
    return d, relative_velocity(i, o, x, v, shapes, radius, spin, S)


@njit(cache=True, error_model="numpy", inline="always")
def relative_velocity(i, o, x, v, shapes, radius, spin, S):
    """Fill v_rel, row 1 of S, and return v_n along the normal in row 0; see `gap`."""
    p, V, W, n = shapes.p, shapes.V, shapes.W, S[0]
    y0, y1, y2 = x[i, 0] - p[o, 0], x[i, 1] - p[o, 1], x[i, 2] - p[o, 2]
    S[1, 0] = v[i, 0] - V[o, 0] - (W[o, 1] * y2 - W[o, 2] * y1)
    S[1, 1] = v[i, 1] - V[o, 1] - (W[o, 2] * y0 - W[o, 0] * y2)
    S[1, 2] = v[i, 2] - V[o, 2] - (W[o, 0] * y1 - W[o, 1] * y0)
    if radius > 0.0:
        S[1, 0] -= radius * (spin[1] * n[2] - spin[2] * n[1])
        S[1, 1] -= radius * (spin[2] * n[0] - spin[0] * n[2])
        S[1, 2] -= radius * (spin[0] * n[1] - spin[1] * n[0])
    return n[0] * S[1, 0] + n[1] * S[1, 1] + n[2] * S[1, 2]


@njit(cache=True, error_model="numpy")
def penalty_law(d, v_n, coefficients, law, replay, bits, S):
    """The law of a pair in contact, per unit scale: its completed bits and the scalars that every kernel needs.

    Reads n and v_rel from S and fills t. Returns bits, (f_n, df_n/dd, df_n/dv_n), (f_c, df_c/dd, df_c/dv_n),
    (u, m/u, dm/du, dm/df_c) and (df_n/dk_n, df_n/dk_d, df_c/dk_n, df_c/dk_d, df_n/dr, df_c/dr, dm/dk_t, dm/dc_f,
    dm/dfirst, dm/dsecond), those by the thickness r at a fixed gap, those of the friction m at fixed f_c.
    """
    k_n, k_d, k_t, c_f, onset, ramp, thickness, first, second, _, _, _ = coefficients
    if not replay:
        if d < onset and law.elastic <= WALL:
            bits |= QUADRATIC
        if d < ramp and law.normal & SHARED == 0:
            bits |= RAMPING
        if law.elastic == WALL and 2.0 * d > thickness:
            bits |= BEYOND
    e, e_d, e_r = normal_law(law.elastic, d, thickness, onset, bits & QUADRATIC != 0, bits & BEYOND != 0)
    s, s_d, s_r = damping_share(law.elastic, law.normal & SHARED != 0, d, thickness, ramp, bits & RAMPING != 0)
    f_n = k_n * e - k_d * s * v_n
    if not replay and f_n < 0.0 and law.normal & ADHESIVE == 0:
        bits |= CLIPPED
    keep = 0.0 if bits & CLIPPED != 0 else 1.0
    f_n *= keep
    f_n_d, f_n_v = keep * (k_n * e_d - k_d * s_d * v_n), -keep * k_d * s
    f_n_r = keep * (k_n * e_r - k_d * s_r * v_n)
    if law.normal & TOTAL:
        f_c, f_c_d, f_c_v, f_c_kn, f_c_kd, f_c_r = f_n, f_n_d, f_n_v, keep * e, -keep * s * v_n, f_n_r
    else:  # the elastic part is never clipped
        f_c, f_c_d, f_c_v, f_c_kn, f_c_kd, f_c_r = k_n * e, k_n * e_d, 0.0, e, 0.0, k_n * e_r

    u, m_over_u, m_u, m_f, m_k, m_c, m_1, m_2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    if law.friction != NONE and bits & STICKS == 0:
        for a in range(3):
            S[2, a] = S[1, a] - v_n * S[0, a]
        u = math.sqrt(S[2, 0] * S[2, 0] + S[2, 1] * S[2, 1] + S[2, 2] * S[2, 2])
        if u > 0.0:
            for a in range(3):
                S[2, a] /= u
        factor = STIFFER if bits & RELEASED != 0 else 1.0
        mu, mu_u, mu_f, mu_c, mu_1, mu_2 = friction_coefficient(law.curve, u, f_c, c_f, first, second)
        # c_f f_c = 0 slips, so that a frictionless point has no friction stiffness; k_t = 0 sticks (with no force).
        if not replay and law.friction == LINEAR and factor * k_t * u >= mu * f_c and k_t > 0.0:
            bits |= SLIP
        m_over_u, w, m_L = friction_law(law.friction, bits & SLIP != 0, u, f_c, factor * k_t, mu)
        w *= factor
        by_mu = f_c * m_L
        m_f, m_k, m_u = (mu + f_c * mu_f) * m_L, u * w, k_t * w + by_mu * mu_u
        m_c, m_1, m_2 = by_mu * mu_c, by_mu * mu_1, by_mu * mu_2
    else:
        S[2, 0], S[2, 1], S[2, 2] = 0.0, 0.0, 0.0
    by_k = (keep * e, -keep * s * v_n, f_c_kn, f_c_kd, f_n_r, f_c_r, m_k, m_c, m_1, m_2)
    return bits, (f_n, f_n_d, f_n_v), (f_c, f_c_d, f_c_v), (u, m_over_u, m_u, m_f), by_k


# --- rows of decisions -----------------------------------------------------------------------------------------------


@njit(cache=True)
def with_row(rows, n, pair, feature):
    """Return the rows, twice as many if they are full, with row n that of a pair that touches."""
    if n == rows.shape[0]:
        more = np.empty((2 * n, 3), dtype=np.int64)
        put(rows, more)
        rows = more
    rows[n, PAIR], rows[n, FEATURE], rows[n, BITS] = pair, feature, ACTIVE
    return rows


@njit(cache=True)
def has_faces(rows):
    """Whether the features of the rows are given, and no other pairs are met."""
    return rows.shape[0] > 0 and rows[0, BITS] & FACE != 0


@njit(cache=True)
def with_given(rows, given):
    """Return the rows with the bits STICKS and RELEASED of ``given``, and with its other pairs that have any.

    Both are sorted by pair, and so is what comes back; ``given`` may have rows without these bits.
    """
    n = rows.shape[0]
    for g in range(given.shape[0]):
        if given[g, BITS] & GIVEN != 0:
            n += 1
    if n == rows.shape[0]:
        return rows
    out = np.empty((n, 3), dtype=np.int64)
    k, r, g = 0, 0, 0
    while r < rows.shape[0] or g < given.shape[0]:
        if g < given.shape[0] and given[g, BITS] & GIVEN == 0:
            g += 1
            continue
        if g == given.shape[0] or (r < rows.shape[0] and rows[r, PAIR] <= given[g, PAIR]):
            put(rows[r], out[k])
            if g < given.shape[0] and given[g, PAIR] == rows[r, PAIR]:
                out[k, BITS] |= given[g, BITS] & GIVEN
                g += 1
            r += 1
        else:
            out[k, PAIR], out[k, FEATURE], out[k, BITS] = given[g, PAIR], 0, given[g, BITS] & GIVEN
            g += 1
        k += 1
    return out[:k].copy()
