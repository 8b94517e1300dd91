"""Relaxed complementarity at a given solution: derivatives of the central path of the cones, as interior points have.

    closed    u + kappa grad phi(l) = 0,   phi = -log(l_n), or -log(mu^2 l_n^2 - |l_t|^2) where the contact sticks
    separate  l_n u_n = kappa

are linearised at the exact solution (Howell et al. 2022, who solve them instead): what rests gives way a little, what
is near pulls a little. kappa -> 0 is the exact derivative. It is no derivative of the simulation: an optimiser that
starts where the exact one is zero may need it, and nothing else should.
"""

from __future__ import annotations

import numpy as np

from add.cones.cones import ConeKind, Cones
from add.kernels.cone_modes import SEPARATE, STICK
from add.typing import FloatArray, IntArray

#: Least distance from the edge of a cone, and least velocity, as shares of the largest impulse.
_FLOOR = 1e-6


def relax(
    cones: Cones, modes: IntArray, l: FloatArray, u: FloatArray, kappa: float, by_l: FloatArray, by_u: FloatArray
) -> None:
    """Add kappa's terms to the derivatives of the mode equations, in scaled numbers.

    Parameters
    ----------
    cones, modes, l, u : the solution, scaled
    kappa : relative to the square of the largest impulse [-]
    by_l, by_u : (m, m) dF/dl and dF/du; changed
    """
    largest = float(np.abs(l).max(initial=0.0))
    if kappa <= 0.0 or largest == 0.0:
        return
    kappa, floor = kappa * largest**2, _FLOOR * largest
    for kind, first, size, mu, mode in zip(cones.kind, cones.first, cones.sizes, cones.bound, modes, strict=True):
        if kind in (ConeKind.FREE, ConeKind.DISC):
            continue
        n = first + size - 1
        if mode == SEPARATE:
            by_u[n, n] += kappa / max(u[n], floor) ** 2
        elif kind == ConeKind.CONE and mode == STICK and mu > 0.0:
            rows = slice(first, n + 1)
            by_l[rows, rows] += kappa * _barrier(l[rows], mu, floor)
        else:
            by_l[n, n] += kappa / max(l[n], floor) ** 2


def _barrier(l: FloatArray, mu: float, floor: float) -> FloatArray:
    """Return the Hessian (3, 3) of -log(mu^2 l_n^2 - |l_t|^2)."""
    room = max(float((mu * l[2]) ** 2 - l[0] ** 2 - l[1] ** 2), floor**2)
    slope = 2.0 * np.array([l[0], l[1], -(mu**2) * l[2]])
    return np.diag([2.0, 2.0, -2.0 * mu**2]) / room + np.outer(slope, slope) / room**2
