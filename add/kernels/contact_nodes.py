"""Penalty contact of points with moving obstacles: force, exact Jacobian, parameter derivatives, energy.

Geilinger et al. 2020, Eqs. 16-18, 21-22, with an elastic onset, a damping ramp and the curvature of the obstacles. For
point i and obstacle o, with gap g(x), n = grad g, depth d = max(-g, 0), obstacle twist (V, W) at p:

    v_rel = v - V - W x (x - p),   v_n = n . v_rel,   v_t = v_rel - v_n n
    f_n   = max(f_e + f_d, 0),     f_e = k_n e(d),    f_d = -k_d s(d) v_n      e: `elastic_law`, s: `damping_ramp`
    f_t   = -m(|v_t|, c_f f_c) v_t / |v_t|                                     m: `friction_law`
    F     = scale (f_n n + f_t)

f_c = f_e (the paper) or f_n if `coulomb_total`. `scale` is 1 (k per node) or a rest area (k per area): it multiplies
the whole force.

Common arguments, always in this order
    x, v           (np, 3) world position [m] and velocity [m/s] of the points
    scale          (np,)   factor of the whole force
    group          (np,)   int64, row of the parameter tables
    kind           (no,)   int64, obstacle codes of `distance.py`
    size, R, p     (no, 3), (no, 3, 3), (no, 3)  obstacle X -> R X + p [m]
    V, W           (no, 3), (no, 3)  velocity of the obstacle at p [m/s] and angular velocity [1/s], world axes
    enabled        (n_group, no) bool
    k_n, k_d, k_t, c_f, onset, ramp   (n_group, no)  [N/m], [N s/m], [N s/m], [-], [m], [m]
    law            NONE, LINEAR or TANH
    coulomb_total  bool, or bits: 1 Coulomb's limit counts the damping, PULLS f_n may be negative (never CLIPPED)
    replay         bool: False decides every branch and writes it to `codes`; True takes every branch from `codes`
    codes          (np, no) int32

Decision codes (0: no contact)
    ACTIVE | SLIP (LINEAR only) | QUADRATIC (onset) | RAMPING (damping) | CLIPPED (f_n = 0) | feature << FEATURE_SHIFT
    HELD (no friction law: an equation holds the pair; see `held_contact.py`) | RELEASED (k_t STIFFER fold)

The last two are never decided here: what `codes` has of them on entry stays, also where the pair does not touch.

A replayed pair is evaluated by the smooth formula of its branch, without any max or min: d = -g whatever its sign,
f_n = f_e + f_d or 0 as the code says. Then the force is smooth in everything and the Jacobian is its exact derivative.
Kernels overwrite their force and Jacobian outputs and *add* to parameter derivatives. Arrays should be C-contiguous,
writeable and of one dtype each (int64, int32, float64, bool): every other combination compiles the kernels once more.
"""

import math

import numpy as np

from add.kernels.caching import njit
from add.kernels.contact_laws import LINEAR, NONE, damping_ramp, elastic_energy, elastic_law, friction_law
from add.kernels.distance import distance_branch, distance_feature, distance_inside

ACTIVE, SLIP, QUADRATIC, RAMPING, CLIPPED, HELD, RELEASED = 1, 2, 4, 8, 16, 32, 64
FEATURE_SHIFT = 7
#: Bits that are given, never decided.
GIVEN = HELD | RELEASED
#: How much stiffer the linear law sticks for pairs that were held beyond Coulomb's limit and released: they slip, and
#: the law's own k_t may be too soft to see that. Much stiffer, and Newton finds the kink too sharp.
STIFFER = 10.0
#: Bit of `coulomb_total`: the damping may pull while bodies part, as Eq. 22 has it.
PULLS = 2
NO_SPIN = (0.0, 0.0, 0.0)


@njit(cache=True, error_model="numpy")
def _to_frame(i, o, x, R, p):
    """R^T (x - p): the point in the obstacle's frame."""
    y0, y1, y2 = x[i, 0] - p[o, 0], x[i, 1] - p[o, 1], x[i, 2] - p[o, 2]
    return (
        R[o, 0, 0] * y0 + R[o, 1, 0] * y1 + R[o, 2, 0] * y2,
        R[o, 0, 1] * y0 + R[o, 1, 1] * y1 + R[o, 2, 1] * y2,
        R[o, 0, 2] * y0 + R[o, 1, 2] * y1 + R[o, 2, 2] * y2,
    )


@njit(cache=True, error_model="numpy")
def _touch(i, o, x, kind, size, R, p):
    """ACTIVE and the feature if the point is inside the obstacle, else 0. Most pairs end here: keep it cheap."""
    X0, X1, X2 = _to_frame(i, o, x, R, p)
    if distance_inside(kind[o], size[o, 0], size[o, 1], size[o, 2], X0, X1, X2):
        return ACTIVE | (distance_feature(kind[o], size[o], X0, X1, X2) << FEATURE_SHIFT)
    return 0


@njit(cache=True, error_model="numpy")
def _touch_sphere(i, o, x, kind, size, R, p, radius, S):
    """As `_touch`, for a sphere of this radius about the point: it also meets edges, corners and rims from outside."""
    X0, X1, X2 = _to_frame(i, o, x, R, p)
    feature = distance_feature(kind[o], size[o], X0, X1, X2)
    if distance_branch(kind[o], size[o], X0, X1, X2, feature, 0, S[0], S) < radius:
        return ACTIVE | (feature << FEATURE_SHIFT)
    return 0


@njit(cache=True, error_model="numpy")
def evaluate_pair(
    i, o, x, v, kind, size, R, p, V, W, k_n, k_d, k_t, c_f, onset, ramp, law, coulomb_total, replay, code, order, S,
    radius, spin,
):  # fmt: skip
    """One pair in contact, per unit scale: its completed code and the scalars every kernel below needs.

    The point may be the centre of a sphere of `radius` that turns with `spin` (three numbers, world axes) relative to
    the obstacle: then d = radius - g and v_rel is that of the two surfaces, v_rel - radius spin x n.

    Scratch S (9, 3): rows 0 n, 1 v_rel, 2 t = v_t / |v_t|, 3-5 Hessian of g (world axes, if order >= 2), 6-8 free.
    Scalars: k_n .. ramp of this pair.

    Returns code, v_n, (f_n, df_n/dd, df_n/dv_n), (f_c, df_c/dd, df_c/dv_n), (u, m_over_u, w, m_L) and
    (df_n/dk_n, df_n/dk_d, df_c/dk_n, df_c/dk_d).
    """
    X0, X1, X2 = _to_frame(i, o, x, R, p)
    n, H, r = S[0], S[3:6], R[o]
    d = -distance_branch(kind[o], size[o], X0, X1, X2, code >> FEATURE_SHIFT, order, n, H)
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

    y0, y1, y2 = x[i, 0] - p[o, 0], x[i, 1] - p[o, 1], x[i, 2] - p[o, 2]
    S[1, 0] = v[i, 0] - V[o, 0] - (W[o, 1] * y2 - W[o, 2] * y1)
    S[1, 1] = v[i, 1] - V[o, 1] - (W[o, 2] * y0 - W[o, 0] * y2)
    S[1, 2] = v[i, 2] - V[o, 2] - (W[o, 0] * y1 - W[o, 1] * y0)
    if radius > 0.0:
        S[1, 0] -= radius * (spin[1] * n[2] - spin[2] * n[1])
        S[1, 1] -= radius * (spin[2] * n[0] - spin[0] * n[2])
        S[1, 2] -= radius * (spin[0] * n[1] - spin[1] * n[0])
    v_n = n[0] * S[1, 0] + n[1] * S[1, 1] + n[2] * S[1, 2]

    if not replay:
        if d < onset:
            code |= QUADRATIC
        if d < ramp:
            code |= RAMPING
    e, e_d = elastic_law(d, onset, code & QUADRATIC != 0)
    s, s_d = damping_ramp(d, ramp, code & RAMPING != 0)
    f_n = k_n * e - k_d * s * v_n
    if not replay and f_n < 0.0 and int(coulomb_total) & PULLS == 0:
        code |= CLIPPED
    keep = 0.0 if code & CLIPPED != 0 else 1.0
    f_n *= keep
    f_n_d, f_n_v = keep * (k_n * e_d - k_d * s_d * v_n), -keep * k_d * s
    if int(coulomb_total) & 1:
        f_c, f_c_d, f_c_v, f_c_kn, f_c_kd = f_n, f_n_d, f_n_v, keep * e, -keep * s * v_n
    else:  # the elastic part is never clipped
        f_c, f_c_d, f_c_v, f_c_kn, f_c_kd = k_n * e, k_n * e_d, 0.0, e, 0.0

    u, m_over_u, w, m_L = 0.0, 0.0, 0.0, 0.0
    if law != NONE and code & HELD == 0:
        for a in range(3):
            S[2, a] = S[1, a] - v_n * n[a]
        u = math.sqrt(S[2, 0] * S[2, 0] + S[2, 1] * S[2, 1] + S[2, 2] * S[2, 2])
        if u > 0.0:
            for a in range(3):
                S[2, a] /= u
        factor = STIFFER if code & RELEASED != 0 else 1.0
        # c_f f_c = 0 slips, so that a frictionless point has no friction stiffness; k_t = 0 sticks (with no force).
        if not replay and law == LINEAR and factor * k_t * u >= c_f * f_c and k_t > 0.0:
            code |= SLIP
        m_over_u, w, m_L = friction_law(law, code & SLIP != 0, u, f_c, factor * k_t, c_f)
        w *= factor
    else:
        S[2, 0], S[2, 1], S[2, 2] = 0.0, 0.0, 0.0
    by_k = (keep * e, -keep * s * v_n, f_c_kn, f_c_kd)
    return code, v_n, (f_n, f_n_d, f_n_v), (f_c, f_c_d, f_c_v), (u, m_over_u, w, m_L), by_k


@njit(cache=True, error_model="numpy")
def contact_force(
    x, v, scale, group, kind, size, R, p, V, W, enabled, k_n, k_d, k_t, c_f, onset, ramp, law, coulomb_total,
    replay, codes, F,
):  # fmt: skip
    """Force on every point, F (np, 3) [N] (overwritten), summed over obstacles. Returns how many pairs touch."""
    S = np.zeros((9, 3))
    n_active = 0
    for i in range(x.shape[0]):
        b = group[i]
        F[i, 0], F[i, 1], F[i, 2] = 0.0, 0.0, 0.0
        for o in range(kind.shape[0]):
            if not replay:
                codes[i, o] = (codes[i, o] & GIVEN) | (_touch(i, o, x, kind, size, R, p) if enabled[b, o] else 0)
            code = int(codes[i, o])
            if code & ACTIVE == 0:
                continue
            n_active += 1
            code, _, normal, _, friction, _ = evaluate_pair(
                i, o, x, v, kind, size, R, p, V, W,
                k_n[b, o], k_d[b, o], k_t[b, o], c_f[b, o], onset[b, o], ramp[b, o],
                law, coulomb_total, replay, code, 1, S, 0.0, NO_SPIN,
            )  # fmt: skip
            codes[i, o] = code
            m = friction[0] * friction[1]
            for a in range(3):
                F[i, a] += scale[i] * (normal[0] * S[0, a] - m * S[2, a])
    return n_active


@njit(cache=True, error_model="numpy")
def add_matrices(w0, w1, w2, v_n, normal, coulomb, friction, k_t, c_f, scale, S, Kx, Kv):
    """Add dF/dx and dF/dv of one pair (see `contact_jacobian`) to Kx and Kv (3, 3).

    `w0, w1, w2` is W; the rest comes from `evaluate_pair` with order 2, whose scratch S is used up in rows 6 and 7.
    """
    f_n, f_n_d, f_n_v = normal
    _, f_c_d, f_c_v = coulomb
    _, m_over_u, w, m_L = friction
    n, v_rel, t, H = S[0], S[1], S[2], S[3:6]
    m_f = c_f * m_L
    m_t = k_t * w - m_over_u
    S[6, 0] = w1 * n[2] - w2 * n[1]
    S[6, 1] = w2 * n[0] - w0 * n[2]
    S[6, 2] = w0 * n[1] - w1 * n[0]
    S[7, 0] = w1 * t[2] - w2 * t[1]  # -t^T [W] = (W x t)^T
    S[7, 1] = w2 * t[0] - w0 * t[2]
    S[7, 2] = w0 * t[1] - w1 * t[0]
    for c in range(3):
        v_n_x = S[6, c] + H[c, 0] * v_rel[0] + H[c, 1] * v_rel[1] + H[c, 2] * v_rel[2]
        t_v_t_x = S[7, c] - v_n * (H[c, 0] * t[0] + H[c, 1] * t[1] + H[c, 2] * t[2])
        along_n_x = -f_n_d * n[c] + f_n_v * v_n_x + m_over_u * v_n_x
        along_t_x = -m_t * t_v_t_x - m_f * (-f_c_d * n[c] + f_c_v * v_n_x)
        along_n_v = (f_n_v + m_over_u) * n[c]
        along_t_v = -m_t * t[c] - m_f * f_c_v * n[c]
        for r in range(3):
            Kx[r, c] += scale * (n[r] * along_n_x + t[r] * along_t_x + (f_n + m_over_u * v_n) * H[r, c])
            Kv[r, c] += scale * (n[r] * along_n_v + t[r] * along_t_v)
        Kv[c, c] -= scale * m_over_u
    spin = scale * m_over_u  # -m/u (-[W])
    Kx[0, 1] -= spin * w2
    Kx[0, 2] += spin * w1
    Kx[1, 0] += spin * w2
    Kx[1, 2] -= spin * w0
    Kx[2, 0] -= spin * w1
    Kx[2, 1] += spin * w0


@njit(cache=True, error_model="numpy")
def contact_jacobian(
    x, v, scale, group, kind, size, R, p, V, W, enabled, k_n, k_d, k_t, c_f, onset, ramp, law, coulomb_total,
    replay, codes, Kx, Kv,
):  # fmt: skip
    """Kx = dF/dx [N/m] and Kv = dF/dv [N s/m], (np, 3, 3) each (overwritten). Returns the number of pairs in contact.

    With H the Hessian of g and [W] the cross-product matrix of W:

        dd/dx   = -n^T                        dv_n/dx = (H v_rel + W x n)^T            dv_n/dv = n^T
        dv_t/dx = -[W] - v_n H - n dv_n/dx    dv_t/dv = I - n n^T
        dF      = n df_n + f_n H dx - m/u dv_t - (dm/du - m/u) t t^T dv_t - t dm/df_c df_c

    Unsymmetric: friction is no potential.
    """
    S = np.zeros((9, 3))
    n_active = 0
    for i in range(x.shape[0]):
        b = group[i]
        for r in range(3):
            for c in range(3):
                Kx[i, r, c], Kv[i, r, c] = 0.0, 0.0
        for o in range(kind.shape[0]):
            if not replay:
                codes[i, o] = (codes[i, o] & GIVEN) | (_touch(i, o, x, kind, size, R, p) if enabled[b, o] else 0)
            code = int(codes[i, o])
            if code & ACTIVE == 0:
                continue
            n_active += 1
            code, v_n, normal, coulomb, friction, _ = evaluate_pair(
                i, o, x, v, kind, size, R, p, V, W,
                k_n[b, o], k_d[b, o], k_t[b, o], c_f[b, o], onset[b, o], ramp[b, o],
                law, coulomb_total, replay, code, 2, S, 0.0, NO_SPIN,
            )  # fmt: skip
            codes[i, o] = code
            add_matrices(
                W[o, 0], W[o, 1], W[o, 2], v_n, normal, coulomb, friction, k_t[b, o], c_f[b, o], scale[i], S,
                Kx[i], Kv[i],
            )  # fmt: skip
    return n_active


@njit(cache=True, error_model="numpy")
def contact_parameters(
    x, v, scale, group, kind, size, R, p, V, W, enabled, k_n, k_d, k_t, c_f, onset, ramp, law, coulomb_total,
    replay, codes, forward, k_n_p, k_d_p, k_t_p, c_f_p, f,
):  # fmt: skip
    """Derivatives of the force with respect to k_n, k_d, k_t, c_f, in either direction.

    forward False (vjp)  k_n_p += lam . dF/dk_n, ... for every (group, obstacle), with lam = f (np, 3) given
    forward True  (jvp)  f (np, 3) += dF/dk_n k_n_p + dF/dk_d k_d_p + dF/dk_t k_t_p + dF/dc_f c_f_p

        dF = scale [ n df_n - t (dm/df_c df_c + dm/dk_t dk_t + dm/dc_f dc_f) ]
    """
    S = np.zeros((9, 3))
    n_active = 0
    for i in range(x.shape[0]):
        b = group[i]
        for o in range(kind.shape[0]):
            if not replay:
                codes[i, o] = (codes[i, o] & GIVEN) | (_touch(i, o, x, kind, size, R, p) if enabled[b, o] else 0)
            code = int(codes[i, o])
            if code & ACTIVE == 0:
                continue
            n_active += 1
            code, _, _, coulomb, friction, by_k = evaluate_pair(
                i, o, x, v, kind, size, R, p, V, W,
                k_n[b, o], k_d[b, o], k_t[b, o], c_f[b, o], onset[b, o], ramp[b, o],
                law, coulomb_total, replay, code, 1, S, 0.0, NO_SPIN,
            )  # fmt: skip
            codes[i, o] = code
            u, _, w, m_L = friction
            m_f, m_k, m_c = c_f[b, o] * m_L, u * w, coulomb[0] * m_L
            f_n_kn, f_n_kd, f_c_kn, f_c_kd = by_k
            if forward:
                along_n = f_n_kn * k_n_p[b, o] + f_n_kd * k_d_p[b, o]
                along_t = -m_f * (f_c_kn * k_n_p[b, o] + f_c_kd * k_d_p[b, o]) - m_k * k_t_p[b, o] - m_c * c_f_p[b, o]
                for a in range(3):
                    f[i, a] += scale[i] * (along_n * S[0, a] + along_t * S[2, a])
            else:
                lam_n = scale[i] * (f[i, 0] * S[0, 0] + f[i, 1] * S[0, 1] + f[i, 2] * S[0, 2])
                lam_t = scale[i] * (f[i, 0] * S[2, 0] + f[i, 1] * S[2, 1] + f[i, 2] * S[2, 2])
                k_n_p[b, o] += lam_n * f_n_kn - lam_t * m_f * f_c_kn
                k_d_p[b, o] += lam_n * f_n_kd - lam_t * m_f * f_c_kd
                k_t_p[b, o] -= lam_t * m_k
                c_f_p[b, o] -= lam_t * m_c
    return n_active


@njit(cache=True, error_model="numpy")
def contact_energy(x, scale, group, kind, size, R, p, enabled, k_n, onset):
    """Elastic energy stored in all contacts [J]: sum of scale k_n times the integral of e(d)."""
    S = np.zeros((3, 3))
    total = 0.0
    for i in range(x.shape[0]):
        b = group[i]
        for o in range(kind.shape[0]):
            code = _touch(i, o, x, kind, size, R, p) if enabled[b, o] else 0
            if code != 0:
                X0, X1, X2 = _to_frame(i, o, x, R, p)
                d = -distance_branch(kind[o], size[o], X0, X1, X2, code >> FEATURE_SHIFT, 0, S[0], S)
                total += scale[i] * k_n[b, o] * elastic_energy(d, onset[b, o], d < onset[b, o])
    return total
