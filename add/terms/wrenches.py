"""Actuators on places: a force and a torque that a link carries along."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import numpy as np

from add.equations.family import Family
from add.equations.family_term import FamilyTerm
from add.kernels.arena import FAMILY, Floats, Ints
from add.kernels.caching import njit
from add.kernels.rotation import fill_left_jacobian, fill_rotation, jacobian_coefficients, turn, turn_derivative
from add.kernels.sites import cross
from add.terms.lengths import LengthActuator, length_kind
from add.typing import FloatArray, IntArray


class _Arrays(NamedTuple):
    """Rows of the place, pairs of them, an actuator, and its gear; see `add.terms.lengths`."""

    length: Ints
    dof: Ints
    left: Ints
    right: Ints
    law: Ints
    rows: Ints
    numbers: Ints
    bounds: Floats
    gear: Floats


@njit(**FAMILY)
def _wrench(own, m, at):
    """Return no length, the rate s = (R g_f) . x' + (R g_t) . omega, its slopes by (x', w'), and their slopes."""
    g, h, bent = np.zeros(6), np.zeros(6), np.zeros(36)
    w = at.q[own.dof[3] : own.dof[3] + 3]
    k, R, J, D = np.empty(6), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    jacobian_coefficients(w[0] * w[0] + w[1] * w[1] + w[2] * w[2], k)
    fill_rotation(w, k, R)
    fill_left_jacobian(w, k, J)
    turned, lever, rate = np.zeros((2, 3)), np.empty((2, 3)), np.zeros(1)
    for i in range(3):
        for j in range(3):
            turned[0, i] += R[i, j] * own.gear[j]
            turned[1, i] += R[i, j] * own.gear[3 + j]
        g[i] = turned[0, i]
    turn(-1.0, w, turned[1], k, g[3:])
    turn_derivative(-1.0, w, turned[1], k, D)
    for j in range(3):
        for part in range(2):
            cross(J[:, j].copy(), turned[part], lever[part])
        for i in range(3):
            bent[6 * i + 3 + j] = lever[0, i]
            bent[6 * (3 + i) + 3 + j] = D[i, j]
            for c in range(3):
                bent[6 * (3 + i) + 3 + j] += J[c, i] * lever[1, c]
    for a in range(6):
        v = at.v[own.dof[a]]
        rate[0] += g[a] * v
        for b in range(6):
            h[b] += v * bent[6 * a + b]
    return np.zeros(1), rate, g, h, bent


KIND = length_kind("wrench", _Arrays, _wrench, driven=True, curved=True, long=False)


@final
@dataclass(frozen=True)
class Wrench(FamilyTerm):
    """r = -f g of an actuator on a place, g = (R g_f, J_l^T R g_t): its length is zero, its rate s = g . (x', w').

    Attributes
    ----------
    law : LengthActuator
    first : int
        First row of the place.
    gear : (6,) force and torque of f = 1 in its axes
    """

    depends: ClassVar[str] = "qv"

    law: LengthActuator
    first: int
    gear: tuple[float, ...]

    @property
    def inputs(self) -> IntArray:
        """See `Term.inputs`."""
        return self.law.rows

    def family(self) -> Family:
        """Return one block."""
        dof, one = self.first + np.arange(6), np.arange(6)
        left, right = np.repeat(one, 6), np.tile(one, 6)
        gear: FloatArray = np.array(self.gear)
        arrays = _Arrays(np.zeros(6, dtype=np.int64), dof, left, right, *self.law.arrays, gear)
        return Family(KIND, arrays, (dof[left], dof[right]), self.law.signal, followers=1)
