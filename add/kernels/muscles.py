"""Laws of muscle fibres, the tension T by stretch l, its rate and the activation a; and actuators on one length.

    active stress   T = a s exp(-z^2), z = (l - l_o)/w            p = (s, l_o, w)
    quadratic       T = k (l - l_o (1 - c a))                     p = (k, l_o, c)
    Hill            T = F_0 (a f_L f_V + f_P) at L = l/l_o and     p = (F_0, l_o, v_max, l_min, l_max, f_P,max, f_V,max)
                    V = (dl/dt)/(l_o v_max)

The curves of the last are MuJoCo's, parabolas piece by piece with continuous slopes (documentation of MuJoCo 3, XML
reference, actuator/muscle; Millard et al. 2013 for the measured ones).
"""

import math

import numpy as np

from add.kernels.caching import CALLED, njit

ACTIVE_STRESS, QUADRATIC, HILL = range(3)
#: Columns of the slopes of a tension: T, dT/dl, dT/d(dl/dt), dT/da, and at most seven numbers.
TENSION, BY_STRETCH, BY_RATE, BY_ACTIVATION, BY_NUMBERS = range(5)
COLUMNS = 11


@njit(**CALLED)
def force_length(l, low, high, out):
    """Fill f_L in [0, 1] and its slopes by l, l_min and l_max: zero outside these, one at 1, joined half-way."""
    out[:] = 0.0
    if l <= low or l >= high:
        return
    # Half a side runs from its end (x = 0, 1 - x^2/2 turned over) to the middle (x = 1) and on to the peak (x = 0).
    side = 1.0 - low if l <= 1.0 else high - 1.0
    sign = 1.0 if l <= 1.0 else -1.0
    end = low if l <= 1.0 else high
    by_end = 2 if l <= 1.0 else 3
    x = 2.0 * sign * (l - end) / side
    if x <= 1.0:
        out[0], out[1], out[by_end] = 0.5 * x * x, 2.0 * x * sign / side, sign * x * (x - 2.0) / side
    else:
        x = 2.0 - x
        out[0], out[1], out[by_end] = 1.0 - 0.5 * x * x, 2.0 * x * sign / side, -sign * x * x / side


@njit(**CALLED)
def force_velocity(v, most, out):
    """Fill f_V, zero at the fastest shortening v = -1, one at rest, f_V,max at most, and slopes by v and f_V,max."""
    out[:] = 0.0
    room = most - 1.0
    if v <= -1.0:
        return
    if v <= 0.0:
        out[0], out[1] = (v + 1.0) ** 2, 2.0 * (v + 1.0)
    elif v <= room:
        out[0], out[1], out[2] = most - (room - v) ** 2 / room, 2.0 * (room - v) / room, (v / room) ** 2
    else:
        out[0], out[2] = most, 1.0


@njit(**CALLED)
def force_passive(l, high, most, out):
    """Fill f_P of a fibre longer than 1, and its slopes by l, l_max and f_P,max."""
    out[:] = 0.0
    if l <= 1.0:
        return
    side = high - 1.0
    x = 2.0 * (l - 1.0) / side
    if x <= 1.0:
        out[0], out[1], out[2], out[3] = 0.5 * most * x * x, 2.0 * most * x / side, -most * x * x / side, 0.5 * x * x
    else:
        out[0], out[1], out[2], out[3] = most * (x - 0.5), 2.0 * most / side, -most * x / side, x - 0.5


@njit(**CALLED)
def tension(law, l, rate, a, p, out):
    """Fill ``out`` (11,) with T and its slopes; ``p`` (7,) the numbers of the law."""
    out[:] = 0.0
    if law == ACTIVE_STRESS:
        z = (l - p[1]) / p[2]
        bell = math.exp(-z * z)
        force = a * p[0] * bell
        out[TENSION], out[BY_STRETCH], out[BY_ACTIVATION] = force, -2.0 * z / p[2] * force, p[0] * bell
        out[4], out[5], out[6] = a * bell, 2.0 * z / p[2] * force, 2.0 * z * z / p[2] * force
        return
    if law == QUADRATIC:
        short = 1.0 - p[2] * a
        out[TENSION], out[BY_STRETCH], out[BY_ACTIVATION] = p[0] * (l - p[1] * short), p[0], p[0] * p[1] * p[2]
        out[4], out[5], out[6] = l - p[1] * short, -p[0] * short, p[0] * p[1] * a
        return
    force, best, fastest = p[0], p[1], p[2]
    f_l, f_v, f_p = np.empty(4), np.empty(3), np.empty(4)
    length, v = l / best, rate / (best * fastest)
    force_length(length, p[3], p[4], f_l)
    force_velocity(v, p[6], f_v)
    force_passive(length, p[4], p[5], f_p)
    by_length = force * (a * f_l[1] * f_v[0] + f_p[1])
    by_v = force * a * f_l[0] * f_v[1]
    out[TENSION] = force * (a * f_l[0] * f_v[0] + f_p[0])
    out[BY_STRETCH], out[BY_RATE] = by_length / best, by_v / (best * fastest)
    out[BY_ACTIVATION] = force * f_l[0] * f_v[0]
    out[4] = a * f_l[0] * f_v[0] + f_p[0]
    out[5] = -(by_length * length + by_v * v) / best
    out[6] = -by_v * v / fastest
    out[7] = force * a * f_l[2] * f_v[0]
    out[8] = force * (a * f_l[3] * f_v[0] + f_p[2])
    out[9] = force * f_p[3]
    out[10] = force * a * f_l[0] * f_v[2]


#: Stretch of a segment below which it is a point, which has no direction: its stiffness, tension over length, would be
#: so great that rounding covers whatever force is left.
POINT = 1e-6


@njit(**CALLED)
def stretch_of(x, v, dof, local, shares, g, h, bent, wanted):
    """Return l = sum_s |y_s|, y_s = sum_a shares_sa x_a, of one line and its rate; fill g = dl/dx.

    Parameters
    ----------
    dof : (3 m,) coordinates of the nodes of the line
    local, shares : (n_s, k)
        Which of the nodes each segment has, and with what shares.
    g, h : (3 m,) dl/dx, and H v
    bent : (3 m, 3 m)
        H = d2l/dx2; filled with h where ``wanted``.
    """
    g[: dof.size] = 0.0
    if wanted:
        bent[:] = 0.0
    y, total, rate = np.empty(3), 0.0, 0.0
    for s in range(local.shape[0]):
        y[:] = 0.0
        for k in range(local.shape[1]):
            for i in range(3):
                y[i] += shares[s, k] * x[dof[3 * local[s, k] + i]]
        length = math.sqrt(y[0] ** 2 + y[1] ** 2 + y[2] ** 2)
        if length < POINT:
            length = math.nan
        total += length
        y /= length
        for k in range(local.shape[1]):
            for i in range(3):
                g[3 * local[s, k] + i] += shares[s, k] * y[i]
        if wanted:
            for k in range(local.shape[1]):
                for n in range(local.shape[1]):
                    share = shares[s, k] * shares[s, n] / length
                    for i in range(3):
                        for j in range(3):
                            value = (1.0 if i == j else 0.0) - y[i] * y[j]
                            bent[3 * local[s, k] + i, 3 * local[s, n] + j] += share * value
    for c in range(dof.size):
        rate += g[c] * v[dof[c]]
    if wanted:
        for r in range(dof.size):
            h[r] = 0.0
            for c in range(dof.size):
                h[r] += bent[r, c] * v[dof[c]]
    return total, rate


#: Laws, and how many numbers they have.
AFFINE, MUSCLE = 0, 1
NUMBERS = (6, 8)


@njit(cache=True, forceinline=True)
def length_drive(law, length, rate, asked, theta, numbers, bounds, out):
    """Fill ``out`` (4 + n_p,) with r, its slopes by l, l' and the signal, and by the numbers p = theta[numbers].

    - affine, p = (g0, g1, g2, b0, b1, b2): r = -clip((g0 + g1 l + g2 l') u + b0 + b1 l + b2 l'), u = clip(asked)
    - muscle, p = (F_0, l_o, v_max, l_min, l_max, f_P, f_V, l_T): r = clip(T(l - l_T, l', u)), the tension of a Hill
      muscle (`add.kernels.muscles`)

    ``bounds`` (4,) are the lowest and highest u, and force -r; beyond them what is clipped is constant.
    """
    out[:] = 0.0
    u = min(max(asked, bounds[0]), bounds[1])
    if law == MUSCLE:
        p, curve = np.empty(NUMBERS[MUSCLE]), np.empty(COLUMNS)
        for i in range(p.size):
            p[i] = theta[numbers[i]]
        tension(HILL, length - p[7], rate, u, p, curve)
        f, by_u, n = -curve[TENSION], -curve[BY_ACTIVATION], 7
        out[1], out[2], out[11] = curve[BY_STRETCH], curve[BY_RATE], -curve[BY_STRETCH]
        for i in range(n):
            out[4 + i] = curve[BY_NUMBERS + i]
    else:
        state = (1.0, length, rate)
        by_u, f = 0.0, 0.0
        for i in range(3):
            gain, bias = theta[numbers[i]], theta[numbers[3 + i]]
            by_u += gain * state[i]
            f += (gain * u + bias) * state[i]
            out[i], out[4 + i], out[7 + i] = -(gain * u + bias), -u * state[i], -state[i]
    if not bounds[2] < f < bounds[3]:
        out[:] = 0.0
        out[0] = -min(max(f, bounds[2]), bounds[3])
        return
    out[0] = -f
    if bounds[0] < asked < bounds[1]:
        out[3] = -by_u
