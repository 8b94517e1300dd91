"""How long an impact of a damped penalty contact lasts, and what few steps, onset and ramp do to its restitution."""

from __future__ import annotations

import math

import numpy as np

from add.contact.restitution import damping_ratio
from add.kernels.contact_laws import damping_ramp, elastic_law
from add.typing import FloatArray

#: Below so many steps an impact, where within a step it begins decides more than a per cent or two of the speed.
ENOUGH_STEPS = 20


def impact_duration(
    k_d: float, stiffness: float, mass: float, n_points: int = 1, *, adhesive_damping: bool = False
) -> float:
    """Return how long a head-on impact without onset and ramp lasts [s]; infinite where it may pull and is overdamped.

    With omega = sqrt(n k_n / m) and cos phi = zeta, the damping ratio, to zero force, or to zero gap if the
    damping may pull (``adhesive_damping``):

        T = 2 phi / (omega sin phi),    T = pi / (omega sin phi)

    with hyperbolic functions beyond zeta = 1. Parameters as in `add.contact.restitution`.
    """
    zeta = damping_ratio(k_d, stiffness, mass, n_points)
    omega = math.sqrt(n_points * stiffness / mass)
    if adhesive_damping:
        return math.pi / (omega * math.sqrt(1.0 - zeta * zeta)) if zeta < 1.0 else math.inf
    if abs(zeta - 1.0) < 1e-8:
        return 2.0 / omega
    if zeta < 1.0:
        return 2.0 * math.acos(zeta) / (omega * math.sqrt(1.0 - zeta * zeta))
    return 2.0 * math.acosh(zeta) / (omega * math.sqrt(zeta * zeta - 1.0))


def restitution_error(restitution: float, steps: float, order: int) -> float:
    """Return how far from e the speed after an impact of N steps may be, as a share of that before it.

        BDF2   1.1 e |ln e| / N + 2.7 / N^2
        BDF1   (5 e + 1.1 e |ln e|) / N       (always too low: numerical damping, exp(-pi^2 / 2N))

    The impact begins somewhere within a step, and the damping force m omega 2 zeta v with it: an impulse of up to half
    a step too much or too little, which is e |ln e| / N of the speed. The other terms bound what was measured for e
    from 0.05 to 1 and N from 5 to 144 (`tests/claims/validation/test_impacts.py` has a part of it).

    Parameters
    ----------
    restitution : float
        e in (0, 1].
    steps : float
        N, those with a force.
    order : int
        Of the BDF.
    """
    by_phase = 1.1 * restitution * abs(math.log(restitution)) / steps
    return by_phase + (2.7 / steps**2 if order == 2 else 5.0 * restitution / steps)


def restitution_of_law(
    speed: float,
    k_d: float,
    stiffness: float,
    mass: float,
    n_points: int = 1,
    *,
    onset: float = 0.0,
    ramp: float = 0.0,
    adhesive_damping: bool = False,
) -> float:
    """Return e of the contact law itself at a speed of approach [m/s], integrated in time as finely as needed.

    Onset and ramp [m] take from the damping where the contact is shallow: e grows, the more the slower the impact.
    Other parameters as in `add.contact.restitution`.
    """
    from scipy.integrate import solve_ivp

    k, d = n_points * stiffness, n_points * k_d
    omega = math.sqrt(k / mass)

    def force(y: FloatArray) -> float:
        if y[0] <= 0.0:
            return 0.0
        e, _ = elastic_law(y[0], onset, y[0] < onset)
        s, _ = damping_ramp(y[0], ramp, y[0] < ramp)
        return float(k * e + d * s * y[1])  # y: depth and its rate

    def rate(_: float, y: FloatArray) -> list[float]:
        return [y[1], -max(force(y), 0.0) / mass if not adhesive_damping else -force(y) / mass]

    def out(_: float, y: FloatArray) -> float:
        return float(y[0])

    out.terminal, out.direction = True, -1.0  # type: ignore[attr-defined]
    # A force of zero on the way out ends the push; without a force the body goes on to zero depth by itself.
    scale = speed / omega
    first = np.array([1e-9 * scale, speed])
    found = solve_ivp(rate, (0.0, 1e3 / omega), first, events=out, rtol=1e-8, atol=1e-10 * scale, max_step=0.1 / omega)
    return float(max(-found.y[1, -1], 0.0) / speed)
