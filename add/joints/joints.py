"""Forces in joints: damping and friction of their rotation, prismatic guides, limits of their angle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from add.equations.sites import Indices, LawValues, Sites
from add.equations.term import Decision
from add.joints.law import PLACE, TURNING, VECTOR, Law
from add.joints.law_term import DecidingJointLaw, JointLaw
from add.kernels import joints as kernel
from add.kernels.springs import bond_derivatives, bond_force
from add.typing import AnyArray, FloatArray


def _slider_energy(y: FloatArray, p: FloatArray, codes: AnyArray) -> float:
    d, u = y[:, 0] - y[:, 1], y[:, 2]
    offset = d - u * (u * d).sum(axis=1, keepdims=True)
    return float(0.5 * p[:, 0] @ (offset**2).sum(axis=1))


def _limit_energy(y: FloatArray, p: FloatArray, codes: AnyArray) -> float:
    phi = np.arctan2((y[:, 1] * y[:, 2]).sum(axis=1), (y[:, 0] * y[:, 2]).sum(axis=1))
    excess = phi - np.where(codes > 0, p[:, 3], p[:, 2])
    excess -= 2.0 * np.pi * np.round(excess / (2.0 * np.pi))
    return float((0.5 * p[:, 0] * excess**2)[codes != 0].sum())


DAMPING = Law("AngularDamping", bond_force, bond_derivatives, (TURNING, TURNING), 2)
FRICTION = Law("JointFriction", kernel.friction_force, kernel.friction_derivatives, (TURNING, TURNING, VECTOR), 3)
SLIDER = Law("Slider", kernel.slider_force, kernel.slider_derivatives, (PLACE, PLACE, VECTOR), 2, energy=_slider_energy)
LIMIT = Law(
    "AngleLimit", kernel.limit_force, kernel.limit_derivatives, (VECTOR, VECTOR, VECTOR), 4, branches=True,
    energy=_limit_energy,
)  # fmt: skip


@final
@dataclass(frozen=True)
class AngularDamping(JointLaw):
    """Torque -k_md (omega_a - omega_b) on a, the opposite on b; sites (spin a, spin b)."""

    law: ClassVar[Law] = DAMPING

    @classmethod
    def of(cls, sites: Sites, *, k_md: Indices) -> AngularDamping:
        """Make dampers; indices (n,) in theta of the damping [N m s]."""
        return cls(sites, LawValues.of(np.full(len(k_md), -1), k_md))  # a bond of rates alone


@final
@dataclass(frozen=True)
class JointFriction(JointLaw):
    """Torque -(c s + tau_c tanh(s / s_0)) u on a, the opposite on b, s = u . (omega_a - omega_b).

    Sites (spin a, spin b, direction u), u the unit axis as carried by a.
    """

    law: ClassVar[Law] = FRICTION

    @classmethod
    def of(cls, sites: Sites, *, c: Indices, tau_c: Indices, s_0: Indices) -> JointFriction:
        """Make frictions; indices (n,) in theta of c [N m s], tau_c [N m] and s_0 > 0 [rad/s]."""
        return cls(sites, LawValues.of(c, tau_c, s_0))


@final
@dataclass(frozen=True)
class Slider(JointLaw):
    """Place a stays on the line through place b along u, E = k/2 |eps|^2, eps = d - u (u . d), d = y_a - y_b.

    Sites (place a, place b, direction u), u the unit axis. Damping -c (d eps/dy)^T eps_dot. Rotations are free: add
    bonds of directions to hold them.
    """

    law: ClassVar[Law] = SLIDER

    @classmethod
    def of(cls, sites: Sites, *, k: Indices, c: Indices) -> Slider:
        """Make sliders; indices (n,) in theta of k [N/m] and c [N s/m]; -1 for zero."""
        return cls(sites, LawValues.of(k, c))


@final
@dataclass(frozen=True)
class AngleLimit(DecidingJointLaw):
    """Penalty torque on the angle phi = atan2(e_2 . m, e_1 . m) of a hinge outside lo <= phi <= hi.

    -k (phi - hi) - c phi_dot above hi, -k (phi - lo) - c phi_dot below lo. Sites (direction e_1 of a, direction e_2
    of a, direction m of b), e_1 and e_2 orthogonal unit vectors across the axis, m across it too. The turn of phi is
    the one nearest to the middle of the range, which must be narrower than a turn.
    """

    law: ClassVar[Law] = LIMIT

    @classmethod
    def of(cls, sites: Sites, *, k: Indices, c: Indices, lo: Indices, hi: Indices) -> AngleLimit:
        """Make limits; indices (n,) in theta of k [N m/rad], c [N m s/rad], lo and hi [rad]."""
        return cls(sites, LawValues.of(k, c, lo, hi))

    def describe(self, decision: Decision) -> dict[str, int]:
        """Return how many joints are beyond their limits."""
        return {"below": int((decision[:, 2] < 0).sum()), "above": int((decision[:, 2] > 0).sum())}
