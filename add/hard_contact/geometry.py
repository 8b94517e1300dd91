"""Gaps, normals and relative velocities of contact pairs, with all that a Newton matrix needs of them.

The equations stand in `add.kernels.contact_points` and `add.kernels.contact_blocks`: they are those of penalty contact,
without its law. A force F on the point acts on its carrier a as (F, J_a^T (l_a x F)), on the shape's body b as minus
(F, J_b^T (l_b x F)); at fixed F the torque changes by J^T (dl x F) + d(J^T tau)/dw dw.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from add.equations.kinematics import Kinematics
from add.hard_contact.pairs import ContactPairs
from add.kernels import contact_rows as kernel
from add.kernels.contact_arrays import Motion
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class Rows:
    """Rows of contacts in velocities.

    Attributes
    ----------
    axes : (k, 3, 3) columns t_1, t_2, n
    dofs : (k, 12) coordinates of carrier and host, -1 for none
    push : (k, 12, 3) generalised force per force, world axes
    local : (k, 3, 12) rows over the coordinates of the pairs, in their axes
    matrix : (3 k, n) rows over all coordinates
    """

    axes: FloatArray
    dofs: IntArray
    push: FloatArray
    local: FloatArray
    matrix: FloatArray


@final
@dataclass(frozen=True)
class TouchDerivatives:
    """Derivatives by p numbers of each pair: the coordinates of carrier (six) and host (six), or centres of mass.

    Attributes
    ----------
    gap : (m, p)
    normal, velocity : (m, 3, p)
    push : (m, 12, 3) generalised force per force on the point; zeros of derivatives by centres of mass
    pushed : (m, 12, p) of the generalised forces of given forces
    """

    gap: FloatArray
    normal: FloatArray
    velocity: FloatArray
    push: FloatArray
    pushed: FloatArray


@final
@dataclass(frozen=True)
class Touches:
    """Gaps, normals, velocities and places of pairs at one state; rows follow the pairs.

    Attributes
    ----------
    pairs : ContactPairs
    motion : Motion
        Time, coordinates, rates and theta: not copies, they must not change.
    gap : (m,) [m]
    normal : (m, 3) away from the shape
    velocity : (m, 3) of the point's surface relative to the shape's [m/s]
    place : (m, 3) where the surfaces meet [m]
    arms : (m, 2, 3) from the centres of mass of carrier and host to there [m]
    """

    pairs: ContactPairs
    motion: Motion
    gap: FloatArray
    normal: FloatArray
    velocity: FloatArray
    place: FloatArray
    arms: FloatArray

    def select(self, rows: IntArray) -> Touches:
        """Return those of some pairs."""
        parts = (self.gap, self.normal, self.velocity, self.place, self.arms)
        return Touches(self.pairs.select(rows), self.motion, *(part[rows] for part in parts))

    @cached_property
    def normal_velocity(self) -> FloatArray:
        """Relative velocity along the normal (m,) [m/s]."""
        return np.asarray(np.einsum("mi,mi->m", self.normal, self.velocity))

    @property
    def tangential_velocity(self) -> FloatArray:
        """Relative velocity across the normal (m, 3) [m/s]."""
        return self.velocity - self.normal_velocity[:, None] * self.normal

    @property
    def _arguments(self):
        return self.motion, self.pairs.packed, self.pairs.number

    def add_forces(self, force: FloatArray, out: FloatArray) -> None:
        """Add the generalised forces to ``out`` (n,): ``force`` (m, 3) on the points, the opposite on the shapes."""
        kernel.add_touch_forces(*self._arguments, self.arms, np.ascontiguousarray(force), out)

    def rows(self) -> Rows:
        """Return the rows of the pairs in velocities."""
        m, n = self.pairs.n, self.motion.q.size
        axes, dofs, push = np.zeros((m, 3, 3)), np.full((m, 12), -1, dtype=np.int64), np.zeros((m, 12, 3))
        out = axes, dofs, push, np.zeros((m, 3, 12)), np.zeros((3 * m, n))
        kernel.touch_rows(*self._arguments, self.normal, self.arms, out)
        return Rows(*out)

    def by_coordinates(self, c: float, force: FloatArray | None = None) -> TouchDerivatives:
        """Return the derivatives by the step's unknown u: dq = du, dv = c du; ``force`` (m, 3) is held."""
        return self._derivatives(False, c, force)

    def by_centres(self, force: FloatArray | None = None) -> TouchDerivatives:
        """Return the derivatives by the centres of mass of carrier and host (p = 6), velocities of the bodies held."""
        return self._derivatives(True, 0.0, force)

    def _derivatives(self, centres: bool, c: float, force: FloatArray | None) -> TouchDerivatives:
        m, p = self.pairs.n, 6 if centres else 12
        held = np.zeros((m, 3)) if force is None else np.ascontiguousarray(force)
        out = np.zeros((m, p)), np.zeros((m, 3, p)), np.zeros((m, 3, p)), np.zeros((m, 12, 3)), np.zeros((m, 12, p))
        kernel.touch_derivatives(*self._arguments, centres, c, held, out)
        return TouchDerivatives(*out)


def cross_matrices(u: FloatArray) -> FloatArray:
    """Return [u] (m, 3, 3) with [u] x = u x x."""
    out = np.zeros((u.shape[0], 3, 3))
    out[:, 0, 1], out[:, 0, 2], out[:, 1, 2] = -u[:, 2], u[:, 1], -u[:, 0]
    return out - out.transpose(0, 2, 1)


def cross(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return a x b of rows (m, 3): `numpy.cross` takes longer than all else of a small step."""
    out = np.empty(np.broadcast_shapes(a.shape, b.shape))
    out[:, 0] = a[:, 1] * b[:, 2] - a[:, 2] * b[:, 1]
    out[:, 1] = a[:, 2] * b[:, 0] - a[:, 0] * b[:, 2]
    out[:, 2] = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    return out


def touches(pairs: ContactPairs, kin: Kinematics, theta: FloatArray) -> Touches:
    """Return where all pairs are at ``kin``."""
    m, motion = pairs.n, Motion(float(kin.t), kin.q, kin.v, theta)
    out = np.empty(m), np.empty((m, 3)), np.empty((m, 3)), np.empty((m, 3)), np.empty((m, 2, 3))
    found = Touches(pairs, motion, *out)
    kernel.touches(*found._arguments, out)
    return found
