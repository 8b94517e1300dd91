"""Inertia of soft bodies and of masses attached to them, with mass-proportional damping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import numpy as np

from add.equations.family import Family, Kind
from add.equations.family_term import FamilyTerm
from add.equations.kinematics import Kinematics
from add.kernels.arena import FAMILY, FIELD, Floats2, Ints, unpacker
from add.kernels.caching import njit
from add.typing import FloatArray, IntArray


@njit(cache=True)
def nodal_inertia_residual(theta, rows, cols, mass, density, damping, v, a, out):
    """Add M (a + alpha v) to ``out`` (n,); see `Inertia` for the arrays."""
    for k in range(rows.size):
        alpha = theta[damping[k]] if damping[k] >= 0 else 0.0
        i, j = 3 * rows[k], 3 * cols[k]
        for d in range(3):
            out[i + d] += theta[density[k]] * mass[k, d] * (a[j + d] + alpha * v[j + d])


class _Arrays(NamedTuple):
    rows: Ints
    cols: Ints
    mass: Floats2
    density: Ints
    damping: Ints


_own = unpacker(_Arrays)


@njit(**FAMILY)
def _forces(arena, k, at, replay, rows, out):
    own = _own(arena, arena.families[k, FIELD])
    nodal_inertia_residual(at.theta, own.rows, own.cols, own.mass, own.density, own.damping, at.v, at.a, out)
    return rows


@njit(**FAMILY)
def _jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
    if weight_v == 0.0 and weight_a == 0.0:
        return
    own = _own(arena, arena.families[k, FIELD])
    for i in range(own.rows.size):
        alpha = at.theta[own.damping[i]] if own.damping[i] >= 0 else 0.0
        value = at.theta[own.density[i]] * (weight_a + weight_v * alpha)
        for d in range(3):
            data[slots[3 * i + d]] += value * own.mass[i, d]


@njit(**FAMILY)
def _parameters(arena, k, at, rows, forward, along, out):
    own = _own(arena, arena.families[k, FIELD])
    for i in range(own.rows.size):  # by pairs, of which a soft body has many: not entry by entry
        density, damping, row, col = own.density[i], own.damping[i], 3 * own.rows[i], 3 * own.cols[i]
        alpha, by_a, by_v = at.theta[damping] if damping >= 0 else 0.0, 0.0, 0.0
        density_dot = along[density] if forward else 0.0
        damping_dot = at.theta[density] * along[damping] if forward and damping >= 0 else 0.0
        for d in range(3):
            mass, a, v = own.mass[i, d], at.a[col + d], at.v[col + d]
            if forward:
                out[row + d] += mass * (density_dot * (a + alpha * v) + damping_dot * v)
            else:
                by_a += mass * along[row + d] * a
                by_v += mass * along[row + d] * v
        if not forward:
            out[density] += by_a + alpha * by_v
            if damping >= 0:
                out[damping] += at.theta[density] * by_v


KIND = Kind("inertia", _Arrays, _forces, _parameters, _jacobian)


@final
@dataclass(frozen=True)
class Inertia(FamilyTerm):
    """r = M (a + alpha v), M = sum over node pairs of theta[density] * mass.

    A soft body contributes its mass matrix at unit density (consistent or lumped); a point mass on a weighted set of
    nodes contributes w_i w_j at unit mass, its "density" being the mass itself.

    Attributes
    ----------
    rows, cols : (k,)
        Nodes of the system.
    mass : (k, 3)
        Mass at unit density [m^3], or products of weights [-], along each axis: the three differ only for a mass that
        hangs on a string, which does not follow sideways.
    density : (k,)
        Index in theta of the density [kg/m^3] or mass [kg].
    damping : (k,)
        Index in theta of the mass-proportional damping alpha [1/s]; -1 for none.
    """

    depends: ClassVar[str] = "va"
    linear: ClassVar[str] = "va"

    rows: IntArray
    cols: IntArray
    mass: FloatArray
    density: IntArray
    damping: IntArray

    def family(self) -> Family:
        """Return three diagonal entries a node pair."""
        rows, cols = (np.asarray((3 * nodes[:, None] + np.arange(3)).ravel()) for nodes in (self.rows, self.cols))
        arrays = _Arrays(self.rows, self.cols, self.mass, self.density, self.damping)
        return Family(KIND, arrays, (rows, cols))

    def kinetic_energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return v^T M v / 2 [J]."""
        return 0.5 * float(self._momenta(kin, theta) @ kin.v)

    def momentum(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return the linear momentum (3,) [kg m/s]."""
        return self._momenta(kin, theta).reshape(-1, 3).sum(axis=0)

    def _momenta(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return M v (n,)."""
        r, none = np.zeros_like(kin.v), np.full_like(self.damping, -1)
        nodal_inertia_residual(theta, self.rows, self.cols, self.mass, self.density, none, kin.v, kin.v, r)
        return r
