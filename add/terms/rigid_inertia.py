"""Inertia of rigid bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from add.equations.family import Family, Kind
from add.equations.family_term import FamilyTerm
from add.equations.kinematics import Kinematics
from add.kernels import rigid_inertia as kernel
from add.kernels.arena import FAMILY, FIELD, Ints, Ints2, unpacker
from add.kernels.caching import njit
from add.typing import FloatArray, IntArray


class _Arrays(NamedTuple):
    start: Ints
    mass: Ints
    inertia: Ints2


_own = unpacker(_Arrays)
inertia_residual, inertia_jacobian, inertia_parameters = (
    kernel.inertia_residual, kernel.inertia_jacobian, kernel.inertia_parameters,
)  # fmt: skip


@njit(**FAMILY)
def _forces(arena, k, at, replay, rows, out):
    own = _own(arena, arena.families[k, FIELD])
    inertia_residual(at.theta, own.start, own.mass, own.inertia, at.q, at.v, at.a, out)
    return rows


@njit(**FAMILY)
def _jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
    own = _own(arena, arena.families[k, FIELD])
    inertia_jacobian(
        at.theta, own.start, own.mass, own.inertia, at.q, at.v, at.a, weight_q, weight_v, weight_a, data, slots
    )


@njit(**FAMILY)
def _parameters(arena, k, at, rows, forward, along, out):
    own = _own(arena, arena.families[k, FIELD])
    inertia_parameters(at.theta, own.start, own.mass, own.inertia, at.q, at.v, at.a, forward, along, along, out)


KIND = Kind("rigid_inertia", _Arrays, _forces, _parameters, _jacobian)


@final
@dataclass(frozen=True)
class RigidInertia(FamilyTerm):
    """r_x = m a_x and r_w = J_l^T (I_w omega_dot + omega x I_w omega); see `add.kernels.rigid_inertia`.

    Attributes
    ----------
    start : (nb,)
        First coordinate of each body: centre of mass, then rotation vector.
    mass : (nb,)
        Index in theta [kg].
    inertia : (nb, 6)
        Indices in theta of xx, yy, zz, xy, xz, yz about the centre of mass in body axes [kg m^2].
    """

    start: IntArray
    mass: IntArray
    inertia: IntArray

    def family(self) -> Family:
        """Return three diagonal entries and one 3 x 3 block a body."""
        x = self.start[:, None] + np.arange(3)
        w = self.start[:, None] + np.arange(3, 6)
        rows = np.concatenate([x, np.repeat(w, 3, axis=1)], axis=1)
        cols = np.concatenate([x, np.tile(w, (1, 3))], axis=1)
        return Family(KIND, _Arrays(self.start, self.mass, self.inertia), (rows.ravel(), cols.ravel()))

    def kinetic_energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the kinetic energy of all bodies [J]."""
        return float(kernel.rigid_momentum(theta, self.start, self.mass, self.inertia, kin.q, kin.v, np.zeros(6)))

    def momentum(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return momentum [kg m/s] and angular momentum about the world's origin [kg m^2/s], (6,)."""
        out = np.zeros(6)
        kernel.rigid_momentum(theta, self.start, self.mass, self.inertia, kin.q, kin.v, out)
        return out
