"""Laws of penalty contact: normal force, damping ramp, friction, couples. Each with its derivative, on a given branch.

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

Of F = f_n n - M v_t with M = m/u, v_n = n . v, v_t = v - v_n n, t = v_t / u (`penalty_law`):

    dF/dd = df_n/dd n - dm/df_c df_c/dd t          p = (df_n/dv_n + M) n - dm/df_c df_c/dv_n t
    dF/dn = (f_n + M v_n) I + p v^T + v_n (dm/du - M) t t^T
    dF/dv = p n^T - M I - (dm/du - M) t t^T

Torsional and rolling friction brake the spin, with Omega_n = n . Omega, Omega_t = Omega - Omega_n n, s = |Omega_t|:

    T = f_c tau,   tau = -c_t tanh(Omega_n / w_0) n - c_r tanh(s / w_0) Omega_t / s

c_t, c_r are lengths [m]: the radius at which Coulomb's force would brake the spin as much, and the arm of the normal
force ahead of a rolling body (Johnson, Contact Mechanics 1985, sections 8.4 and 9.2, for what sets them). The power
T . Omega is never positive while f_c is not negative. What does not turn bears no couple.
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


# --- of forces and couples in space ----------------------------------------------------------------------------------


@njit(cache=True, error_model="numpy", forceinline=True)
def force_slopes(v_n, normal, coulomb, friction, scale, S, W):
    """Fill rows 0 to 2 of W (6, 10) with dF by d, n and v; n, v, t are rows 0 to 2 of S."""
    f_n, f_n_d, f_n_v = normal
    _, f_c_d, f_c_v = coulomb
    _, m_over_u, m_u, m_f = friction
    n, v, t = S[0], S[1], S[2]
    bend = m_u - m_over_u
    for r in range(3):
        p = (f_n_v + m_over_u) * n[r] - m_f * f_c_v * t[r]
        W[r, 0] = scale * (f_n_d * n[r] - m_f * f_c_d * t[r])
        for c in range(3):
            across = bend * t[r] * t[c]
            W[r, 1 + c] = scale * (p * v[c] + v_n * across)
            W[r, 4 + c] = scale * (p * n[c] - across)
        W[r, 1 + r] += scale * (f_n + m_over_u * v_n)
        W[r, 4 + r] -= scale * m_over_u


@njit(cache=True, error_model="numpy")
def braking(x, w_0):
    """tanh(x / w_0) / x, its derivative over x, and that by w_0; x >= 0."""
    y = x / w_0
    if y < 1e-3:  # the differences cancel
        z = y * y
        slope = -(2.0 / 3.0 - z * 8.0 / 15.0) / w_0**3
        return (1.0 - z * (1.0 / 3.0 - z * 2.0 / 15.0)) / w_0, slope, (z - 1.0) / w_0**2
    sech2 = 1.0 / math.cosh(min(y, 300.0)) ** 2
    share = math.tanh(y) / x
    return share, (sech2 / w_0 - share) / (x * x), -sech2 / w_0**2


@njit(cache=True, error_model="numpy")
def couple(n, spin, c_t, c_r, w_0, Z):
    """Fill Z[0] with tau, and its derivatives by c_t, c_r, w_0 in Z[1], Z[2], Z[3]; Omega_t in Z[4]."""
    along = spin[0] * n[0] + spin[1] * n[1] + spin[2] * n[2]
    square = 0.0
    for c in range(3):
        Z[4, c] = spin[c] - along * n[c]
        square += Z[4, c] * Z[4, c]
    twist, _, twist_0 = braking(abs(along), w_0)
    roll, _, roll_0 = braking(math.sqrt(square), w_0)
    for c in range(3):
        Z[1, c] = -along * twist * n[c]
        Z[2, c] = -roll * Z[4, c]
        Z[0, c] = c_t * Z[1, c] + c_r * Z[2, c]
        Z[3, c] = -c_t * along * twist_0 * n[c] - c_r * roll_0 * Z[4, c]


@njit(cache=True, error_model="numpy")
def couple_slopes(spin, values, coulomb, scale, S, Z, F, W):
    """Fill F[3:] with the couple and rows 3 to 5 of W with dT by d, n, v and Omega; Z as `couple` leaves it.

    With a = Omega_n, beta = tanh(a / w_0) / a, rho = tanh(s / w_0) / s and their derivatives over the argument:

        dtau/dn     = -c_t (k n Omega^T + a beta I) + c_r (rho (n Omega^T + a I) + a rho' Omega_t Omega_t^T)
        dtau/dOmega = -c_t k n n^T - c_r (rho (I - n n^T) + rho' Omega_t Omega_t^T),    k = beta + a^2 beta'
    """
    n, v, across = S[0], S[1], Z[4]
    c_t, c_r, w_0 = values.c_t, values.c_r, values.w_0
    f_c, f_c_d, f_c_v = coulomb
    couple(n, spin, c_t, c_r, w_0, Z)
    a = spin[0] * n[0] + spin[1] * n[1] + spin[2] * n[2]
    beta, beta_x, _ = braking(abs(a), w_0)
    s = math.sqrt(across[0] * across[0] + across[1] * across[1] + across[2] * across[2])
    rho, rho_x, _ = braking(s, w_0)
    k = c_t * (beta + beta_x * a * a)
    for r in range(3):
        F[3 + r] = scale * f_c * Z[0, r]
        W[3 + r, 0] = scale * f_c_d * Z[0, r]
        for c in range(3):
            outer = c_r * rho_x * across[r] * across[c]
            by_n = (c_r * rho - k) * n[r] * spin[c] + a * outer
            by_spin = (c_r * rho - k) * n[r] * n[c] - outer
            if r == c:
                by_n += a * (c_r * rho - c_t * beta)
                by_spin -= c_r * rho
            W[3 + r, 1 + c] = scale * (f_c * by_n + f_c_v * Z[0, r] * v[c])
            W[3 + r, 4 + c] = scale * f_c_v * Z[0, r] * n[c]
            W[3 + r, 7 + c] = scale * f_c * by_spin
