"""Restitution of a damped penalty contact, and the damping that gives a wanted restitution.

A mass m meets n points of stiffness k_n and damping k_d each at once: a spring k = n k_n beside a dashpot d = n k_d, of
damping ratio zeta = d / (2 sqrt(k m)). Gravity, friction and turning are left out, and damping acts from the first
touch (no ramp, no onset). Two formulas, for two ways in which the contact may end:

    pulling   e = exp(-pi k_d / sqrt(4 k m - k_d^2))     at zero gap: the force may pull (Geilinger et al. 2020, Eq. 22)
    clipped   e = exp(-2 phi cot phi), cos phi = zeta    at zero force: what the contacts of `add` do, which never pull

While the bodies part, the dashpot would pull before the spring is free. Clipped at zero the force lets go earlier, and
the restitution is larger: 0.744 instead of 0.729 at zeta = 0.1, 0.298 instead of 0.163 at 0.5.
"""

import math
from typing import NamedTuple

from add.errors import InputError


class DampingDerivatives(NamedTuple):
    """Derivatives of a damping k_d per point.

    Attributes
    ----------
    restitution : dk_d/de [N s/m]
    stiffness : dk_d/dk_n [s]
    mass : dk_d/dm [N s/(m kg)]
    """

    restitution: float
    stiffness: float
    mass: float


def effective_mass(m1: float, m2: float | None = None) -> float:
    """Return m1 m2 / (m1 + m2) [kg], or m1 against something that does not move."""
    _positive(m1, "mass")
    if m2 is None:
        return m1
    _positive(m2, "mass")
    return m1 * m2 / (m1 + m2)


def restitution_from_damping(k_d: float, stiffness: float, mass: float, n_points: int = 1) -> float:
    """Return e = v_out / v_in of a contact that may pull (Eq. 22); zero where it is overdamped.

    Parameters
    ----------
    k_d, stiffness : float
        Of one point [N s/m], [N/m].
    mass : float
        Effective mass [kg], see `effective_mass`.
    n_points : int
        Points that touch at once.
    """
    zeta = damping_ratio(k_d, stiffness, mass, n_points)
    return math.exp(-math.pi * zeta / math.sqrt(1.0 - zeta * zeta)) if zeta < 1.0 else 0.0


def damping_from_restitution(restitution: float, stiffness: float, mass: float, n_points: int = 1) -> float:
    """Return the damping k_d per point [N s/m] with the restitution of Eq. 22.

    n k_d = 2 zeta sqrt(n k_n m),  zeta = -ln e / sqrt(pi^2 + ln^2 e)

    Not the restitution that a simulation shows, which is larger: see `clipped_damping_from_restitution`.

    Parameters
    ----------
    restitution : float
        e in (0, 1].
    stiffness, mass, n_points
        As in `restitution_from_damping`.
    """
    return _pulling_ratio(restitution) * _critical(stiffness, mass, n_points)


def damping_derivatives(restitution: float, stiffness: float, mass: float, n_points: int = 1) -> DampingDerivatives:
    """Return the derivatives of `damping_from_restitution`."""
    zeta = _pulling_ratio(restitution)
    log = math.log(restitution)
    slope = -(math.pi**2) / (math.pi**2 + log * log) ** 1.5 / restitution
    return _derivatives(zeta, slope, stiffness, mass, n_points)


def clipped_restitution_from_damping(k_d: float, stiffness: float, mass: float, n_points: int = 1) -> float:
    """Return e of a contact that never pulls: exp(-2 phi cot phi), cos phi = zeta; with cosh, coth if zeta > 1.

    Parameters as in `restitution_from_damping`.
    """
    return math.exp(-_clipped_loss(damping_ratio(k_d, stiffness, mass, n_points)))


def clipped_damping_from_restitution(restitution: float, stiffness: float, mass: float, n_points: int = 1) -> float:
    """Return the damping k_d per point [N s/m] with which contacts that never pull have the given restitution.

    Parameters as in `damping_from_restitution`; zeta by a bracketed root.
    """
    return _clipped_ratio(restitution) * _critical(stiffness, mass, n_points)


def clipped_damping_derivatives(
    restitution: float, stiffness: float, mass: float, n_points: int = 1
) -> DampingDerivatives:
    """Return the derivatives of `clipped_damping_from_restitution`."""
    zeta = _clipped_ratio(restitution)
    return _derivatives(zeta, -1.0 / (restitution * _clipped_loss_slope(zeta)), stiffness, mass, n_points)


def damping_ratio(k_d: float, stiffness: float, mass: float, n_points: int = 1) -> float:
    """Return zeta = k_d / (2 sqrt(k m)) of all points together."""
    if not (math.isfinite(k_d) and k_d >= 0.0):
        raise InputError("impossible contact damping", found=k_d, expected="a number >= 0 [N s/m]")
    return k_d / _critical(stiffness, mass, n_points)


def _critical(stiffness: float, mass: float, n_points: int) -> float:
    """Return the k_d per point of zeta = 1."""
    _positive(stiffness, "contact stiffness")
    _positive(mass, "mass")
    if n_points < 1:
        raise InputError("impossible number of contact points", found=n_points, expected="at least 1")
    return 2.0 * math.sqrt(stiffness * mass / n_points)


def _derivatives(zeta: float, slope: float, stiffness: float, mass: float, n_points: int) -> DampingDerivatives:
    """Return those of zeta critical, given dzeta/de; critical goes with the root of stiffness and mass."""
    critical = _critical(stiffness, mass, n_points)
    return DampingDerivatives(slope * critical, 0.5 * zeta * critical / stiffness, 0.5 * zeta * critical / mass)


def _pulling_ratio(restitution: float) -> float:
    _check_restitution(restitution)
    log = math.log(restitution)
    return -log / math.hypot(math.pi, log)


def _clipped_ratio(restitution: float) -> float:
    from scipy.optimize import brentq

    _check_restitution(restitution)
    loss = -math.log(restitution)
    if loss <= _clipped_loss(0.0):  # one but for rounding
        return 0.0
    high = 1.0
    while _clipped_loss(high) < loss:
        high *= 2.0
    return float(brentq(lambda zeta: _clipped_loss(zeta) - loss, 0.0, high, xtol=1e-300, rtol=1e-15))


def _clipped_loss(zeta: float) -> float:
    """Return -ln e = 2 phi cot phi, cos phi = zeta, or 2 s coth s, cosh s = zeta; 2 at zeta = 1."""
    y = zeta - 1.0
    if abs(y) < 1e-4:
        return 2.0 + y * (4.0 / 3.0 - 0.4 * y)
    if zeta < 1.0:
        phi = math.acos(zeta)
        return 2.0 * phi / math.tan(phi)
    s = math.acosh(zeta)
    return 2.0 * s / math.tanh(s)


def _clipped_loss_slope(zeta: float) -> float:
    """Return d(-ln e)/dzeta = 2 (phi - sin phi cos phi) / sin^3 phi, or its like with hyperbolic functions."""
    if abs(zeta - 1.0) < 1e-3:
        return 4.0 / 3.0 - 0.8 * (zeta - 1.0)
    if zeta < 1.0:
        phi, sine = math.acos(zeta), math.sqrt(1.0 - zeta * zeta)
        return 2.0 * (phi - sine * zeta) / sine**3
    s, sine = math.acosh(zeta), math.sqrt(zeta * zeta - 1.0)
    return 2.0 * (sine * zeta - s) / sine**3


def _check_restitution(restitution: float) -> None:
    if not 0.0 < restitution <= 1.0:
        raise InputError("impossible restitution", found=restitution, expected="a number in (0, 1]")


def _positive(value: float, what: str) -> None:
    if not (math.isfinite(value) and value > 0.0):
        raise InputError(f"impossible {what}", found=value, expected="a number > 0")
