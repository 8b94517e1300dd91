"""Actuators on one length: forces affine in length and rate, and muscles, with all slopes."""

import numpy as np

from add.kernels.caching import njit
from add.kernels.muscles import (
    BY_ACTIVATION,
    BY_NUMBERS,
    BY_RATE,
    BY_STRETCH,
    COLUMNS as OF_TENSION,
    HILL,
    TENSION,
    tension,
)

#: Laws, and how many numbers they have.
AFFINE, MUSCLE = 0, 1
NUMBERS = (6, 8)


@njit(cache=True)
def length_drive(law, length, rate, asked, p, control, force, out):
    """Fill ``out`` (4 + n_p,) with r, its slopes by l, l' and the signal, and by the numbers p.

    - affine, p = (g0, g1, g2, b0, b1, b2): r = -clip((g0 + g1 l + g2 l') u + b0 + b1 l + b2 l'), u = clip(asked)
    - muscle, p = (F_0, l_o, v_max, l_min, l_max, f_P, f_V, l_T): r = clip(T(l - l_T, l', u)), the tension of a Hill
      muscle (`add.kernels.muscles`)

    ``control`` and ``force`` (2,) are the lowest and highest u and force -r; beyond them what is clipped is constant.
    """
    out[:] = 0.0
    u = min(max(asked, control[0]), control[1])
    if law == MUSCLE:
        own = np.empty(OF_TENSION)
        tension(HILL, length - p[7], rate, u, p, own)
        f, by_u, n = -own[TENSION], -own[BY_ACTIVATION], 7
        out[1], out[2], out[11] = own[BY_STRETCH], own[BY_RATE], -own[BY_STRETCH]
        for i in range(n):
            out[4 + i] = own[BY_NUMBERS + i]
    else:
        state = (1.0, length, rate)
        by_u, f = 0.0, 0.0
        for i in range(3):
            by_u += p[i] * state[i]
            f += (p[i] * u + p[3 + i]) * state[i]
            out[4 + i], out[7 + i] = -u * state[i], -state[i]
        out[1], out[2] = -(p[1] * u + p[4]), -(p[2] * u + p[5])
    if not force[0] < f < force[1]:
        out[:] = 0.0
        out[0] = -min(max(f, force[0]), force[1])
        return
    out[0] = -f
    if control[0] < asked < control[1]:
        out[3] = -by_u
