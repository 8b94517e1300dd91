"""Given motions and forces in couplings: motors, torques and forces that follow a signal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from add.equations.signals import Signal
from add.equations.sites import Indices, LawValues, Sites
from add.joints.law_term import PLACE, TURNING, VECTOR, JointLaw, Slots
from add.kernels import springs as kernel
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class Motor(JointLaw):
    """Direction m of b is drawn to the one at angle phi(t) in a, E = k/2 |cos(phi) e_1 + sin(phi) e_2 - m|^2.

    Sites (direction e_1 of a, direction e_2 of a, direction m of b), unit vectors across the axis. For a hinge at
    angle phi + delta the torque is -k sin(delta): the motor slips at half a turn.
    """

    depends: ClassVar[str] = "q"
    slots: ClassVar[Slots] = (VECTOR, VECTOR, VECTOR)
    n_columns: ClassVar[int] = 2

    @classmethod
    def of(cls, sites: Sites, *, k: Indices, signal: Signal, rows: IntArray) -> Motor:
        """Make motors; indices in theta of k (n,) [N m/rad] and of the angle's coefficients (n_rows, n) [rad]."""
        return cls(sites, LawValues.driven(signal, np.asarray(rows)[:, :, None], k))

    def law_forces(self, y, y_dot, p, f):
        kernel.motor_force(y, y_dot, p, f)

    def law_derivatives(self, y, y_dot, p, f, f_y, f_v, f_p):
        kernel.motor_derivatives(y, y_dot, p, f, f_y, f_v, f_p)

    def law_energy(self, y: FloatArray, p: FloatArray) -> float:
        cos, sin = np.cos(p[:, 1, None]), np.sin(p[:, 1, None])
        d = cos * y[:, 0] + sin * y[:, 1] - y[:, 2]
        return float(0.5 * p[:, 0] @ (d**2).sum(axis=1))


@final
@dataclass(frozen=True)
class AxisTorque(JointLaw):
    """Torque tau(t) u on a, -tau(t) u on b; sites (spin a, spin b, direction u)."""

    depends: ClassVar[str] = "q"
    slots: ClassVar[Slots] = (TURNING, TURNING, VECTOR)
    n_columns: ClassVar[int] = 1

    @classmethod
    def of(cls, sites: Sites, *, signal: Signal, rows: IntArray) -> AxisTorque:
        """Make torques; indices (n_rows, n) in theta of the coefficients [N m]."""
        return cls(sites, LawValues.driven(signal, np.asarray(rows)[:, :, None]))

    def law_forces(self, y, y_dot, p, f):
        kernel.axial_force(y, y_dot, p, 3, f)

    def law_derivatives(self, y, y_dot, p, f, f_y, f_v, f_p):
        kernel.axial_derivatives(y, y_dot, p, 3, f, f_y, f_v, f_p)


@final
@dataclass(frozen=True)
class PointForce(JointLaw):
    """Given force F(t) in world axes on a place, or torque on a spin; one site. It keeps its direction."""

    depends: ClassVar[str] = "q"
    slots: ClassVar[Slots] = (PLACE | TURNING,)
    n_columns: ClassVar[int] = 3

    @classmethod
    def of(cls, sites: Sites, *, signal: Signal, rows: IntArray) -> PointForce:
        """Make forces; indices (n_rows, n, 3) in theta of the coefficients [N], on spins [N m]."""
        return cls(sites, LawValues.driven(signal, rows))

    def law_forces(self, y, y_dot, p, f):
        f[:] = p

    def law_derivatives(self, y, y_dot, p, f, f_y, f_v, f_p):
        f[:] = p
        f_p[:] = np.eye(3)
