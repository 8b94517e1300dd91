"""Scalar laws of penalty contact: normal force, damping ramp, friction. Each with its derivative, for a given branch.

d is the depth -g [m], u = |v_t| the sliding speed [m/s]. Branches are arguments, never decided here, so each function
is smooth in its real arguments (Geilinger et al. 2020, Eqs. 16-18 and 21; onset, ramp and wall are additions).

Laws that need a thickness r [m] act before surfaces touch: their depth is that in a layer, d = R - g with the reach R
= r, or `FAR` r for the soft-max. At unit stiffness, with x = 2 d / r - 1, y = d / r and z = d / r - FAR = -g / r,

    PENALTY      e(d)                                                                         `elastic_law`
    WALL         e(d) + r/2 (x^3 / (1 - x) - 3 x^2 ln(1 - x)) for x > 0                       `wall_law`
    SOFT_MAX     r ln(1 + exp(z))
    LOG_BARRIER  r (y^2 / (1 - y) - 2 y ln(1 - y))

The wall, of energy -r^2/4 x^3 ln(1 - x), and the barrier, of energy -r^2 y^2 ln(1 - y) (Li et al. 2020), are infinite
where surfaces touch, d = r. All but e(d) are homogeneous: of degree one in (d, r), their energies of degree two.

Laws by formula (`add.contact.formulas`) are compiled functions whose addresses stand in place of the codes below.
"""

import math

from numba.core import types

from add.kernels.by_address import Callee, by_address
from add.kernels.caching import njit

NONE, LINEAR, TANH = 0, 1, 2
#: The coefficient of friction is a number. All others are addresses of a `COEFFICIENT`.
CONSTANT = 0
#: Laws of the normal force. All others are addresses of a `NORMAL`.
PENALTY, WALL, SOFT_MAX, LOG_BARRIER = 0, 1, 2, 3
#: Thicknesses beyond which the soft-max, exp(-36) = 2e-16, is left out.
FAR = 36.0

#: (u, f_c, c_f, first, second) -> mu and its derivatives by all five.
COEFFICIENT = Callee(None, (types.float64,) * 5, types.UniTuple(types.float64, 6))  # type: ignore[attr-defined]
#: (d, r) -> (e, de/dd, de/dr), (s, ds/dd, ds/dr), (E, dE/dr); those by r at a fixed gap.
NORMAL = Callee(None, (types.float64,) * 2, types.UniTuple(types.float64, 8))  # type: ignore[attr-defined]
_coefficient = by_address("coefficient of friction", lambda: COEFFICIENT)
_normal = by_address("law of the normal force", lambda: NORMAL)


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
def wall_law(d, r):
    """Force of the wall at unit stiffness, (w, dw/dd): infinite from d = r on, C^2 at d = r/2, where it begins."""
    x = 2.0 * d / r - 1.0
    y = 1.0 - x
    if y <= 0.0:
        return math.inf, math.inf
    log = math.log1p(-x)
    return 0.5 * r * x * x * (x / y - 3.0 * log), x * (6.0 * (x / y - log) + x * x / (y * y))


@njit(cache=True, error_model="numpy")
def normal_law(elastic, d, r, onset, quadratic, beyond):
    """Normal force at unit stiffness, (e, de/dd, de/dr), the last at a fixed gap; `beyond`: whether the wall acts."""
    if elastic == PENALTY:
        e, e_d = elastic_law(d, onset, quadratic)
        return e, e_d, e_d
    if elastic == WALL:
        e, e_d = elastic_law(d, onset, quadratic)
        e_r = e_d
        if beyond:
            w, w_d = wall_law(d, r)
            e, e_d, e_r = e + w, e_d + w_d, e_r + w_d + (w - d * w_d) / r
        return e, e_d, e_r
    if elastic == SOFT_MAX:
        z = d / r - FAR
        e, e_d = r * (max(z, 0.0) + math.log1p(math.exp(-abs(z)))), logistic(z)
        return e, e_d, e / r - z * e_d
    if elastic != LOG_BARRIER:
        e, e_d, e_r, _, _, _, _, _ = _normal(elastic, (d, r))
        return e, e_d, e_r
    y = d / r
    rest = 1.0 - y
    if rest <= 0.0:
        return math.inf, math.inf, math.inf
    log = math.log1p(-y)
    e, e_d = r * y * (y / rest - 2.0 * log), 4.0 * y / rest - 2.0 * log + y * y / (rest * rest)
    return e, e_d, e_d + (e - d * e_d) / r


@njit(cache=True, error_model="numpy")
def normal_energy(elastic, d, r, onset, quadratic, beyond):
    """Integral of `normal_law` over d, and its derivative by r at a fixed gap, (E [m^2], dE/dr [m])."""
    e, _, _ = normal_law(elastic, d, r, onset, quadratic, beyond)
    if elastic == PENALTY:
        return elastic_energy(d, onset, quadratic), e
    if elastic == WALL:
        total, by_r = elastic_energy(d, onset, quadratic), e
        if beyond:
            x, (w, _) = 2.0 * d / r - 1.0, wall_law(d, r)
            part = -0.25 * r * r * x * x * x * math.log1p(-x) if x < 1.0 else math.inf
            total, by_r = total + part, by_r + (2.0 * part - d * w) / r
        return total, by_r
    if elastic == SOFT_MAX:
        z = d / r - FAR
        # -Li_2(-exp(z)); by inversion where z > 0, and by Landen's identity, whose series is one of at most 1/2.
        u = math.exp(-abs(z))
        log, w, power, part = math.log1p(u), u / (1.0 + u), 1.0, 0.0
        part = 0.5 * log * log
        for k in range(1, 50):
            power *= w
            part += power / (k * k)
        if z > 0.0:
            part = math.pi * math.pi / 6.0 + 0.5 * z * z - part
        return r * r * part, 2.0 * r * part - z * e
    if elastic != LOG_BARRIER:
        _, _, _, _, _, _, total, by_r = _normal(elastic, (d, r))
        return total, by_r
    y = d / r
    part = -r * r * y * y * math.log1p(-y) if y < 1.0 else math.inf
    return part, e + (2.0 * part - d * e) / r


@njit(cache=True, error_model="numpy")
def logistic(z):
    """1 / (1 + exp(-z))."""
    u = math.exp(-abs(z))
    return 1.0 / (1.0 + u) if z > 0.0 else u / (1.0 + u)


@njit(cache=True, error_model="numpy")
def damping_share(elastic, by_formula, d, r, ramp, ramping):
    """Share s of the damping, (s, ds/dd, ds/dr), the last at a fixed gap.

    It is the ramp, the slope of the soft-max, or what a formula says.
    """
    if by_formula:
        _, _, _, s, s_d, s_r, _, _ = _normal(elastic, (d, r))
        return s, s_d, s_r
    if elastic == SOFT_MAX:
        z = d / r - FAR
        s = logistic(z)
        slope = s * (1.0 - s) / r
        return s, slope, -z * slope
    s, s_d = damping_ramp(d, ramp, ramping)
    return s, s_d, s_d


@njit(cache=True, error_model="numpy")
def damping_ramp(d, ramp, ramping):
    """Share s of the damping at depth d, (s, ds/dd): s = 3 y^2 - 2 y^3, y = d / ramp, while ramping; else 1."""
    if ramping:
        y = d / ramp
        return y * y * (3.0 - 2.0 * y), 6.0 * y * (1.0 - y) / ramp
    return 1.0, 0.0


@njit(cache=True, error_model="numpy")
def friction_coefficient(curve, u, f_c, c_f, first, second):
    """Coefficient of friction at a speed u and a normal force f_c: `COEFFICIENT`, or the number c_f."""
    if curve == CONSTANT:
        return c_f, 0.0, 0.0, 1.0, 0.0, 0.0
    return _coefficient(curve, (u, f_c, c_f, first, second))


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
