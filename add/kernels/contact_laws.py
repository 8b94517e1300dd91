"""Scalar laws of penalty contact: elastic onset, damping ramp, friction. Each with its derivative, for a given branch.

d is the depth -g [m], u = |v_t| the sliding speed [m/s]. Branches are arguments, never decided here, so each function
is smooth in its real arguments (Geilinger et al. 2020, Eqs. 16-18 and 21; onset and ramp are additions).
"""

import math

from add.kernels.caching import njit

NONE, LINEAR, TANH = 0, 1, 2


@njit(cache=True, error_model="numpy")
def elastic_law(d, onset, quadratic):
    """Elastic force at unit stiffness, (e, de/dd): e = d^2 / (2 onset) if quadratic, else d - onset / 2.

    Eq. 16 is onset = 0.
    """
    if quadratic:
        return 0.5 * d * d / onset, d / onset
    return d - 0.5 * onset, 1.0


@njit(cache=True, error_model="numpy")
def elastic_energy(d, onset, quadratic):
    """Integral of `elastic_law` from 0 to d [m^2]: d^3 / (6 onset), then d^2/2 - onset d/2 + onset^2/6."""
    if quadratic:
        return d * d * d / (6.0 * onset)
    return 0.5 * d * (d - onset) + onset * onset / 6.0


@njit(cache=True, error_model="numpy")
def damping_ramp(d, ramp, ramping):
    """Share s of the damping at depth d, (s, ds/dd): s = 3 y^2 - 2 y^3, y = d / ramp, while ramping; else 1."""
    if ramping:
        y = d / ramp
        return y * y * (3.0 - 2.0 * y), 6.0 * y * (1.0 - y) / ramp
    return 1.0, 0.0


@njit(cache=True, error_model="numpy")
def friction_law(law, slip, u, f_n, k_t, c_f):
    """Friction m(u, L), L = c_f f_n, of f_t = -m v_t / u, as (m_over_u, w, m_L).

    LINEAR (Eq. 17)   stick m = k_t u,  slip m = L
    TANH   (Eq. 18)   m = L tanh(s),  s = k_t u / |L|

    m_over_u stays finite at u = 0 (tanh: k_t tanhc(s)); w = (dm/du) / k_t = (dm/dk_t) / u; m_L = dm/dL, so that
    dm/df_n = c_f m_L and dm/dc_f = f_n m_L.

    |L| in s continues the tanh law smoothly through L = 0 for u > 0, which a replayed step may cross. L = 0 gives no
    friction, with the one-sided slope m_L = 1 (the derivative with respect to c_f at c_f = 0). LINEAR slip at u = 0 has
    no direction: no force.
    """
    L = c_f * f_n
    if law == LINEAR:
        if not slip:
            return k_t, 1.0, 0.0
        if u > 0.0:
            return L / u, 0.0, 1.0
        return 0.0, 0.0, 0.0
    if law == TANH and u > 0.0 and (L != 0.0 or k_t > 0.0):
        s = k_t * u / abs(L) if L != 0.0 else math.inf
        if s > 100.0:  # 1 - tanh(s) < 1e-86, and s may be inf
            return L / u, 0.0, 1.0
        sign = 1.0 if L > 0.0 else -1.0
        th = math.tanh(s)
        sech2 = 1.0 / math.cosh(s) ** 2
        if s < 1e-2:  # tanh(s) - s sech(s)^2 cancels
            q = s * s
            m_L = s * q * (2.0 / 3.0 - q * (8.0 / 15.0 - q * (34.0 / 105.0)))
            return sign * k_t * (1.0 - q * (1.0 / 3.0 - q * (2.0 / 15.0 - q * (17.0 / 315.0)))), sign * sech2, m_L
        return sign * k_t * th / s, sign * sech2, th - s * sech2
    if law == TANH and L > 0.0:
        return k_t, 1.0, 0.0
    return 0.0, 0.0, 0.0
