"""The derivative of a small system's equations by what drives it: the coefficients of signals that act at an instant.

A drive, a load or a motor touches few coordinates, so that the derivative by each coefficient has a closed form with
few entries; the pull-backs of `add.compiled.equations.parameters` would ask all terms for each coordinate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from add.compiled.arrays import (
    ARITY,
    AXIS_INPUTS,
    AXIS_LAW,
    AXIS_SIGNAL,
    COUNT,
    N_INDEX,
    N_SIGNAL,
    SIGNAL,
)
from add.compiled.axes import axis_slopes
from add.compiled.equations import at_rows, parts_of
from add.compiled.joints import joint_arrays, linearised, pull
from add.compiled.packed import axes_of, joints_of, links_of, loads_of
from add.kernels.caching import CALLED, njit
from add.kernels.joint_laws import COLUMNS, DRIVE
from add.typing import FloatArray, IntArray


class Found(NamedTuple):
    """Derivatives in the making.

    Attributes
    ----------
    place : (n_theta,) the row of each entry of theta, -1 for none
    entries : (m,) the entry of each row
    size : (1,) number of rows
    values : (m, n) the derivatives of r, over rows of X where there are trees
    """

    place: IntArray
    entries: IntArray
    size: IntArray
    values: FloatArray


@njit(**CALLED)
def _row(entry, indptr, found):
    """Return the row of an entry of theta, a new one if it has none; -1 where no direction moves it."""
    if entry < 0 or indptr[entry] == indptr[entry + 1]:
        return -1
    if found.place[entry] < 0:
        found.place[entry] = found.size[0]
        found.entries[found.size[0]] = entry
        found.size[0] += 1
    return found.place[entry]


@njit(**CALLED)
def _most(arrays, signals):
    """Return the number of coefficients that act, each as often as something follows it."""
    axes, loads, joints, most = axes_of(arrays), loads_of(arrays), joints_of(arrays), 0
    for k in range(axes.table.shape[0]):
        if axes.table[k, AXIS_LAW] == DRIVE:
            most += signals.table[axes.table[k, AXIS_SIGNAL], 2]
    for k in range(loads.table.shape[0]):
        most += 3 * signals.table[loads.table[k, 3], 2]
    for k in range(joints.table.shape[0]):
        row = joints.table[k]
        most += row[COUNT] * row[N_SIGNAL] * signals.table[row[SIGNAL], 2]
    return most


@njit(**CALLED)
def _add_loads(loads, at, indptr, found):
    """Add the derivatives of loads."""
    for k in range(loads.table.shape[0]):
        first, last, begin, signal, move, _ = loads.table[k]
        if move:
            continue
        row, start, width = at.signals.table[signal]
        for j in range(width):
            for c in range(3):
                to = _row(loads.rows[begin + row + j, c], indptr, found)
                if to < 0:
                    continue
                for i in range(first, last):
                    found.values[to, 3 * loads.nodes[i] + c] -= loads.shares[i] * at.signals.weights[start + j]


@njit(**CALLED)
def _add_joints(joints, at, codes, indptr, found):
    """Add the derivatives of joint laws: -J^T df/dp of each interaction, for each number that follows a signal."""
    for k in range(joints.table.shape[0]):
        row = joints.table[k]
        n, r, n_i, n_s = row[COUNT], row[ARITY], row[N_INDEX], row[N_SIGNAL]
        if n_s == 0:
            continue
        kind, dofs, shares, _, _, weights, rows = joint_arrays(joints, at.signals, k)
        frame, _, _, _, f_p = linearised(k, joints, at.signals, at.q, at.v, at.theta, codes)
        f = np.empty((r, 3))
        for e in range(n):
            own = slice(r * e, r * e + r)
            for s in range(n_s):
                for i in range(3 * r):
                    f[i // 3, i % 3] = f_p[e, i, n_i + s]
                for j in range(weights.size):
                    to = _row(rows[j, e, s], indptr, found)
                    if to >= 0:
                        pull(-weights[j], at.q, kind[own], dofs[own], shares[own], frame[own], f, found.values[to])


@njit(**CALLED)
def _add_drives(axes, at, indptr, found, out):
    """Add the derivatives of drives of joints to ``out`` (m, n)."""
    p, slopes = np.zeros(4), np.empty(COLUMNS)
    for k in range(axes.table.shape[0]):
        if axes.table[k, AXIS_LAW] != DRIVE:
            continue
        place = axis_slopes(axes, k, 0, at, p, slopes)
        begin, start, width = at.signals.table[axes.table[k, AXIS_SIGNAL]]
        for j in range(width):
            to = _row(axes.inputs[axes.table[k, AXIS_INPUTS] + begin + j], indptr, found)
            if to >= 0:
                out[to, place] += slopes[3] * at.signals.weights[start + j]


@njit(**CALLED)
def inputs(arrays, at, room, choices, indptr):
    """Return the coefficients of signals that act and that a direction moves (m,), and dr by each (m, n).

    ``room`` is that of `add.compiled.equations.residual` at this state; ``indptr`` (n_theta + 1,) counts the directions
    that move each entry of theta.
    """
    links, lifted, n = links_of(arrays), parts_of(arrays, room), at.q.size
    trees, there, rows = links.sizes.size > 0, at, n
    if trees:
        there, rows = at_rows(at, lifted), lifted.x.size
    most = _most(arrays, at.signals)
    found = Found(
        np.full(at.theta.size, -1), np.empty(most, dtype=np.int64), np.zeros(1, dtype=np.int64), np.zeros((most, rows))
    )
    if not trees or links.touched.size:
        _add_loads(loads_of(arrays), there, indptr, found)
        _add_joints(joints_of(arrays), there, choices.codes, indptr, found)
    out = found.values
    if trees:
        same, p, out = links.sizes[1], lifted.p, np.zeros((most, n))
        for m in range(found.size[0]):
            out[m, :same] = found.values[m, :same]
            for i in range(p.shape[0]):
                if found.values[m, same + i] != 0.0:
                    for k in range(p.shape[1]):
                        out[m, same + k] += p[i, k] * found.values[m, same + i]
        _add_drives(axes_of(arrays), at, indptr, found, out)
    return found.entries[: found.size[0]], out[: found.size[0]]
