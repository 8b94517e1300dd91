"""Projections for contact without penalties; `add.hard_contact.equations` has the equations."""

import math

import numpy as np

from add.kernels.caching import njit


@njit(cache=True, error_model="numpy")
def staggered_projections(gap, velocity, by_gap, by_velocity, normal, c_f, sweeps, tolerance, force):
    """Sweep over contacts in turn, normal then tangential, for the linear problem of one iteration of the outer method.

        g_i = gap_i + sum_j by_gap_ij F_j,   v_i = velocity_i + sum_j by_velocity_ij F_j
        F_n <- max(0, F_n - g / w_n),   F_t <- proj(F_t - v_t / w_t; disc of radius c_f F_n)

    w_n, w_t : how much a contact's own force moves it. The forces (m, 3) are read and overwritten.

    Parameters
    ----------
    gap, velocity, normal, c_f : (m,) [m], (m, 3) [m/s], (m, 3), (m,)
    by_gap : (m, m, 3) [m/N]
    by_velocity : (m, 3, m, 3) [m/(s N)]
    sweeps, tolerance : at most so many, until no force changes by more [N]

    Returns
    -------
    int
        Sweeps done.
    """
    m = gap.size
    v, t = np.empty(3), np.empty(3)
    for sweep in range(sweeps):
        change = 0.0
        for i in range(m):
            n = normal[i]
            g = gap[i]
            for j in range(m):
                for c in range(3):
                    g += by_gap[i, j, c] * force[j, c]
            w_n = by_gap[i, i, 0] * n[0] + by_gap[i, i, 1] * n[1] + by_gap[i, i, 2] * n[2]
            f_n = force[i, 0] * n[0] + force[i, 1] * n[1] + force[i, 2] * n[2]
            new = max(0.0, f_n - g / w_n) if w_n > 0.0 else 0.0
            change = max(change, abs(new - f_n))
            for c in range(3):
                force[i, c] += (new - f_n) * n[c]
            w_t = 0.0
            for r in range(3):
                v[r] = velocity[i, r]
                for j in range(m):
                    for c in range(3):
                        v[r] += by_velocity[i, r, j, c] * force[j, c]
                w_t += by_velocity[i, r, i, r]
                for c in range(3):
                    w_t -= n[r] * by_velocity[i, r, i, c] * n[c]
            # The trace over the two tangential directions is at least the larger of the two: steps are never too long.
            v_n = v[0] * n[0] + v[1] * n[1] + v[2] * n[2]
            square = 0.0
            for c in range(3):
                t[c] = force[i, c] - new * n[c] - ((v[c] - v_n * n[c]) / w_t if w_t > 0.0 else 0.0)
                square += t[c] * t[c]
            length, limit = math.sqrt(square), c_f[i] * new
            factor = 1.0 if length <= limit else limit / length
            for c in range(3):
                value = new * n[c] + factor * t[c]
                change = max(change, abs(value - force[i, c]))
                force[i, c] = value
        if change <= tolerance:
            return sweep + 1
    return sweeps
