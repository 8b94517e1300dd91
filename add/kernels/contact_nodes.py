"""Penalty contact of nodes with shapes of the world: detection, force, Jacobian, parameter derivatives, energy.

The law and the rows of decisions are those of `contact_pairs.py`. Common arguments, always in this order

    points     Points
    shapes     Shapes of `contact_pairs.py`
    table      Table
    law        Law of `contact_pairs.py`
    replay     bool: False decides every branch and writes it to `rows`; True takes every branch from `rows`
    rows       (k, 3) decision

Kernels overwrite their force and Jacobian outputs and *add* to parameter derivatives. Arrays should be C-contiguous,
writeable and of one dtype each (int64, float64, bool): every other combination compiles the kernels once more.
"""

from typing import NamedTuple

import numpy as np

from add.kernels.caching import njit
from add.kernels.contact_laws import normal_energy
from add.kernels.contact_pairs import (
    ACTIVE,
    BITS,
    FEATURE,
    NO_SPIN,
    PAIR,
    Coefficients,
    Law,
    Shapes,
    add_matrices,
    gap,
    penalty_law,
    to_frame,
    touch,
    with_given,
    with_row,
)
from add.kernels.distance import distance_branch
from add.typing import BoolArray, FloatArray, IntArray

__all__ = [
    "Law",
    "Points",
    "Shapes",
    "Table",
    "contact_energy",
    "contact_force",
    "contact_jacobian",
    "contact_parameters",
    "decided_contact_force",
    "detect_contacts",
]


class Points(NamedTuple):
    """Points at one state: places and velocities (np, 3) [m], [m/s], factors of the force (np,), rows of the table."""

    x: FloatArray
    v: FloatArray
    scale: FloatArray
    group: IntArray


class Table(NamedTuple):
    """Coefficients of groups of points (rows) and of shapes (columns), and which of them meet.

    ``reach`` is the gap at which the law begins [m]: `contact_laws.py`. Both it and ``thickness`` are zero for the
    penalty alone, and so is ``v_s`` where friction does not depend on the speed.
    """

    column: IntArray
    enabled: BoolArray
    k_n: FloatArray
    k_d: FloatArray
    k_t: FloatArray
    c_f: FloatArray
    onset: FloatArray
    ramp: FloatArray
    thickness: FloatArray
    reach: FloatArray
    c_s: FloatArray
    v_s: FloatArray


@njit(cache=True, error_model="numpy", inline="always")
def coefficients_of(table, b, c):
    """Return the coefficients of row b and column c."""
    return Coefficients(
        table.k_n[b, c], table.k_d[b, c], table.k_t[b, c], table.c_f[b, c], table.onset[b, c], table.ramp[b, c],
        table.thickness[b, c], table.c_s[b, c], table.v_s[b, c],
    )  # fmt: skip


@njit(cache=True, error_model="numpy")
def detect_contacts(points, shapes, table):
    """Return the rows (k, 3) of all pairs that touch."""
    n_shapes = shapes.kind.size
    rows, n, S = np.empty((16, 3), dtype=np.int64), 0, np.zeros((3, 3))
    x, group, column, enabled = points.x, points.group, table.column, table.enabled
    kind, size, R, p = shapes.kind, shapes.size, shapes.R, shapes.p
    for i in range(x.shape[0]):
        for o in range(n_shapes):
            if enabled[group[i], column[o]]:
                feature = touch(i, o, x, kind, size, R, p, table.reach[group[i], column[o]], S)
                if feature >= 0:
                    rows = with_row(rows, n, i * n_shapes + o, feature)
                    n += 1
    return rows[:n].copy()


@njit(cache=True, error_model="numpy")
def contact_force(points, shapes, table, law, replay, rows, F):
    """Force on every point, F (np, 3) [N] (overwritten), summed over shapes. Returns how many pairs touch."""
    S = np.zeros((9, 3))
    n_shapes, n_active = shapes.kind.size, 0
    F[:] = 0.0
    for k in range(rows.shape[0]):
        if rows[k, BITS] & ACTIVE == 0:
            continue
        n_active += 1
        i, o = rows[k, PAIR] // n_shapes, rows[k, PAIR] % n_shapes
        values = coefficients_of(table, points.group[i], table.column[o])
        d, v_n = gap(i, o, points.x, points.v, shapes, rows[k, FEATURE], 1, 0.0, NO_SPIN, S)
        d += table.reach[points.group[i], table.column[o]]
        rows[k, BITS], normal, _, friction, _ = penalty_law(d, v_n, values, law, replay, rows[k, BITS], S)
        m = friction[0] * friction[1]
        for a in range(3):
            F[i, a] += points.scale[i] * (normal[0] * S[0, a] - m * S[2, a])
    return n_active


@njit(cache=True, error_model="numpy")
def decided_contact_force(points, shapes, table, law, given, F):
    """Decide, with the bits STICKS and RELEASED of ``given``; fill F and return the rows and how many pairs touch."""
    rows = with_given(detect_contacts(points, shapes, table), given)
    return rows, contact_force(points, shapes, table, law, False, rows, F)


@njit(cache=True, error_model="numpy")
def contact_jacobian(points, shapes, table, law, rows, Kx, Kv):
    """Kx = dF/dx [N/m] and Kv = dF/dv [N s/m], (np, 3, 3) each (overwritten), of replayed rows.

    Returns the number of pairs in contact.
    """
    S = np.zeros((9, 3))
    n_shapes, n_active, W = shapes.kind.size, 0, shapes.W
    Kx[:], Kv[:] = 0.0, 0.0
    for k in range(rows.shape[0]):
        if rows[k, BITS] & ACTIVE == 0:
            continue
        n_active += 1
        i, o = rows[k, PAIR] // n_shapes, rows[k, PAIR] % n_shapes
        values = coefficients_of(table, points.group[i], table.column[o])
        d, v_n = gap(i, o, points.x, points.v, shapes, rows[k, FEATURE], 2, 0.0, NO_SPIN, S)
        d += table.reach[points.group[i], table.column[o]]
        _, normal, coulomb, friction, _ = penalty_law(d, v_n, values, law, True, rows[k, BITS], S)
        add_matrices(
            W[o, 0], W[o, 1], W[o, 2], v_n, normal, coulomb, friction, points.scale[i], S, Kx[i], Kv[i],
        )  # fmt: skip
    return n_active


@njit(cache=True, error_model="numpy")
def contact_parameters(points, shapes, table, law, rows, forward, bars, f):
    """Derivatives of the force with respect to k_n, k_d, k_t, c_f, the thickness, c_s and v_s, in either direction.

    forward False (vjp)  bars[0] += lam . dF/dk_n, ... for every row and column, with lam = f (np, 3) given
    forward True  (jvp)  f (np, 3) += dF/dk_n bars[0] + ... + dF/dv_s bars[6]

        dF = scale [ n df_n - t (dm/df_c df_c + dm/dk_t dk_t + dm/dc_f dc_f + dm/dc_s dc_s + dm/dv_s dv_s) ]
    """
    S = np.zeros((9, 3))
    n_shapes, scale = shapes.kind.size, points.scale
    k_n_p, k_d_p, k_t_p, c_f_p, r_p, c_s_p, v_s_p = bars
    for k in range(rows.shape[0]):
        if rows[k, BITS] & ACTIVE == 0:
            continue
        i, o = rows[k, PAIR] // n_shapes, rows[k, PAIR] % n_shapes
        b, c = points.group[i], table.column[o]
        values = coefficients_of(table, b, c)
        d, v_n = gap(i, o, points.x, points.v, shapes, rows[k, FEATURE], 1, 0.0, NO_SPIN, S)
        d += table.reach[points.group[i], table.column[o]]
        _, _, _, friction, by_k = penalty_law(d, v_n, values, law, True, rows[k, BITS], S)
        m_f = friction[3]
        f_n_kn, f_n_kd, f_c_kn, f_c_kd, f_n_r, f_c_r, m_k, m_c, m_s, m_v = by_k
        if forward:
            along_n = f_n_kn * k_n_p[b, c] + f_n_kd * k_d_p[b, c]
            along_t = -m_f * (f_c_kn * k_n_p[b, c] + f_c_kd * k_d_p[b, c]) - m_k * k_t_p[b, c] - m_c * c_f_p[b, c]
            along_n += f_n_r * r_p[b, c]
            along_t -= m_f * f_c_r * r_p[b, c] + m_s * c_s_p[b, c] + m_v * v_s_p[b, c]
            for a in range(3):
                f[i, a] += scale[i] * (along_n * S[0, a] + along_t * S[2, a])
        else:
            lam_n = scale[i] * (f[i, 0] * S[0, 0] + f[i, 1] * S[0, 1] + f[i, 2] * S[0, 2])
            lam_t = scale[i] * (f[i, 0] * S[2, 0] + f[i, 1] * S[2, 1] + f[i, 2] * S[2, 2])
            k_n_p[b, c] += lam_n * f_n_kn - lam_t * m_f * f_c_kn
            k_d_p[b, c] += lam_n * f_n_kd - lam_t * m_f * f_c_kd
            k_t_p[b, c] -= lam_t * m_k
            c_f_p[b, c] -= lam_t * m_c
            r_p[b, c] += lam_n * f_n_r - lam_t * m_f * f_c_r
            c_s_p[b, c] -= lam_t * m_s
            v_s_p[b, c] -= lam_t * m_v


@njit(cache=True, error_model="numpy")
def contact_energy(points, shapes, table, law):
    """Elastic energy stored in all contacts [J]: sum of scale k_n times the integral of e(d)."""
    S = np.zeros((3, 3))
    rows, n_shapes, total = detect_contacts(points, shapes, table), shapes.kind.size, 0.0
    for k in range(rows.shape[0]):
        i, o = rows[k, PAIR] // n_shapes, rows[k, PAIR] % n_shapes
        b, c = points.group[i], table.column[o]
        X0, X1, X2 = to_frame(i, o, points.x, shapes.R, shapes.p)
        d = table.reach[b, c] - distance_branch(
            shapes.kind[o], shapes.size[o], X0, X1, X2, rows[k, FEATURE], 0, S[0], S
        )
        onset, r = table.onset[b, c], table.thickness[b, c]
        energy, _ = normal_energy(law.elastic, d, r, onset, d < onset, 2.0 * d > r)
        total += points.scale[i] * table.k_n[b, c] * energy
    return total
