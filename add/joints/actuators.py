"""Given motions and forces in couplings: motors, torques and forces that follow a signal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from add.equations.signals import Signal
from add.equations.sites import Indices, LawValues, Sites
from add.joints.law import PLACE, TURNING, VECTOR, Law
from add.joints.law_term import JointLaw
from add.kernels import springs as kernel
from add.typing import AnyArray, FloatArray, IntArray


def _motor_energy(y: FloatArray, p: FloatArray, codes: AnyArray) -> float:
    cos, sin = np.cos(p[:, 1, None]), np.sin(p[:, 1, None])
    d = cos * y[:, 0] + sin * y[:, 1] - y[:, 2]
    return float(0.5 * p[:, 0] @ (d**2).sum(axis=1))


MOTOR = Law(
    "Motor", kernel.motor_force, kernel.motor_derivatives, (VECTOR, VECTOR, VECTOR), 2, reads_rates=False, driven=True,
    energy=_motor_energy,
)  # fmt: skip
TORQUE = Law(
    "AxisTorque",
    kernel.axial_force,
    kernel.axial_derivatives,
    (TURNING, TURNING, VECTOR),
    1,
    reads_rates=False,
    driven=True,
)
GIVEN = Law(
    "PointForce", kernel.given_force, kernel.given_derivatives, (PLACE | TURNING,), 3, reads_rates=False, driven=True
)


@final
@dataclass(frozen=True)
class Motor(JointLaw):
    """Direction m of b is drawn to the one at angle phi(t) in a, E = k/2 |cos(phi) e_1 + sin(phi) e_2 - m|^2.

    Sites (direction e_1 of a, direction e_2 of a, direction m of b), unit vectors across the axis. For a hinge at
    angle phi + delta the torque is -k sin(delta): the motor slips at half a turn.
    """

    depends: ClassVar[str] = "q"
    law: ClassVar[Law] = MOTOR

    @classmethod
    def of(cls, sites: Sites, *, k: Indices, signal: Signal, rows: IntArray) -> Motor:
        """Make motors; indices in theta of k (n,) [N m/rad] and of the angle's coefficients (n_rows, n) [rad]."""
        return cls(sites, LawValues.driven(signal, np.asarray(rows)[:, :, None], k))


@final
@dataclass(frozen=True)
class AxisTorque(JointLaw):
    """Torque tau(t) u on a, -tau(t) u on b; sites (spin a, spin b, direction u)."""

    depends: ClassVar[str] = "q"
    law: ClassVar[Law] = TORQUE

    @classmethod
    def of(cls, sites: Sites, *, signal: Signal, rows: IntArray) -> AxisTorque:
        """Make torques; indices (n_rows, n) in theta of the coefficients [N m]."""
        return cls(sites, LawValues.driven(signal, np.asarray(rows)[:, :, None]))


@final
@dataclass(frozen=True)
class PointForce(JointLaw):
    """Given force F(t) in world axes on a place, or torque on a spin; one site. It keeps its direction."""

    depends: ClassVar[str] = "q"
    law: ClassVar[Law] = GIVEN

    @classmethod
    def of(cls, sites: Sites, *, signal: Signal, rows: IntArray) -> PointForce:
        """Make forces; indices (n_rows, n, 3) in theta of the coefficients [N], on spins [N m]."""
        return cls(sites, LawValues.driven(signal, rows))
