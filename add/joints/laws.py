"""The laws of couplings between sites, and their terms; the numbers of each stand in the order of its columns.

Sites are places (points that bodies carry, or nodes), directions and spins. ``TERMS`` has all kinds, in the order in
which a system adds them up.
"""

from dataclasses import dataclass, field
from typing import ClassVar, final

import numpy as np

from add.equations.signals import SignalParameter
from add.equations.sites import SiteKind
from add.equations.term import Decision
from add.joints.law import PLACE, TURNING, VECTOR, Law
from add.joints.law_term import DecidingJointLaw, JointFormula, JointLaw
from add.kernels import air, joints, springs
from add.typing import AnyArray, FloatArray, IntArray

# --- springs, cables, bonds -------------------------------------------------------------------------------------------


def _spring_energy(y: FloatArray, p: FloatArray, codes: AnyArray) -> float:
    energy = 0.5 * p[:, 0] * (np.linalg.norm(y[:, 0] - y[:, 1], axis=1) - p[:, 2]) ** 2
    # A clipped cable is stretched: its energy is there, and damping eats what it gives back.
    return float((energy[codes != springs.SLACK] if codes.size else energy).sum())


def _bond_energy(y: FloatArray, p: FloatArray, codes: AnyArray) -> float:
    return float(0.5 * p[:, 0] @ ((y[:, 0] - y[:, 1]) ** 2).sum(axis=1))


@final
@dataclass(frozen=True)
class Spring(JointLaw):
    """Central force between two places, f_a = -(k (l - L) + c l_dot) n = -f_b, n the unit vector from b to a.

    Columns: k [N/m], c [N s/m], rest length L [m].
    """

    law: ClassVar[Law] = Law(
        "Spring", springs.spring_force, springs.spring_derivatives, (PLACE, PLACE), 3, energy=_spring_energy
    )


#: Duffing's spring, F = k x + k_3 x^3 + c l_dot, x = l - L.
HARDENING_SPRING = JointFormula(
    "stiffness/2*(l - length)**2 + cubic/4*(l - length)**4", "damping*l_dot"
)  # fmt: skip


@dataclass(frozen=True)
class Cable(DecidingJointLaw):
    """A spring that pulls only: nothing where l <= L. Columns: k [N/m], c [N s/m], slack length L [m]."""

    law: ClassVar[Law] = Law(
        "Cable", springs.cable_force, springs.cable_derivatives, (PLACE, PLACE), 3, True, energy=_spring_energy
    )

    def describe(self, decision: Decision) -> dict[str, int]:
        """Return how many cables are taut and slack."""
        return {"taut": len(decision), "slack": self.sites.n - len(decision)}


@final
@dataclass(frozen=True)
class ClippedCable(Cable):
    """A cable that its damping may not make push, either: no force where k (l - L) + c l_dot < 0."""

    law: ClassVar[Law] = Law(
        "ClippedCable",
        springs.clipped_cable_force,
        springs.cable_derivatives,
        (PLACE, PLACE),
        3,
        True,
        energy=_spring_energy,
    )

    def describe(self, decision: Decision) -> dict[str, int]:
        """Return how many cables are taut, of these clipped, and slack."""
        return super().describe(decision) | {"clipped": int((decision[:, 2] == springs.CLIPPED).sum())}


@final
@dataclass(frozen=True)
class ElasticJoint(JointLaw):
    """Two sites held together, E = k/2 |y_a - y_b|^2, f_a = -k (y_a - y_b) - c (y_dot_a - y_dot_b) = -f_b.

    The soft constraints of Geilinger et al. 2020, Eqs. 23-25: places make a ball joint, two pairs of directions more a
    hinge, three a fixed joint. c y_dot gives the couple c (offset x rate) on the pair.
    Columns: k [N/m] and c [N s/m], on directions [N m] and [N m s].
    """

    law: ClassVar[Law] = Law(
        "ElasticJoint", springs.bond_force, springs.bond_derivatives, (PLACE | VECTOR, PLACE | VECTOR), 2,
        energy=_bond_energy,
    )  # fmt: skip


# --- rotation in joints, guides, stops --------------------------------------------------------------------------------


def _slider_energy(y: FloatArray, p: FloatArray, codes: AnyArray) -> float:
    d, u = y[:, 0] - y[:, 1], y[:, 2]
    offset = d - u * (u * d).sum(axis=1, keepdims=True)
    return float(0.5 * p[:, 0] @ (offset**2).sum(axis=1))


def _limit_energy(y: FloatArray, p: FloatArray, codes: AnyArray) -> float:
    phi = np.arctan2((y[:, 1] * y[:, 2]).sum(axis=1), (y[:, 0] * y[:, 2]).sum(axis=1))
    excess = phi - np.where(codes > 0, p[:, 3], p[:, 2])
    excess -= 2.0 * np.pi * np.round(excess / (2.0 * np.pi))
    return float((0.5 * p[:, 0] * excess**2)[codes != 0].sum())


@final
@dataclass(frozen=True)
class AngularDamping(JointLaw):
    """Torque -k_md (omega_a - omega_b) on a, the opposite on b; sites (spin a, spin b).

    Columns: none (a bond of rates alone), k_md [N m s].
    """

    law: ClassVar[Law] = Law("AngularDamping", springs.bond_force, springs.bond_derivatives, (TURNING, TURNING), 2)


@final
@dataclass(frozen=True)
class JointFriction(JointLaw):
    """Torque -(c s + tau_c tanh(s / s_0)) u on a, the opposite on b, s = u . (omega_a - omega_b).

    Sites (spin a, spin b, direction u), u the unit axis as carried by a.
    Columns: c [N m s], tau_c [N m], s_0 > 0 [rad/s].
    """

    law: ClassVar[Law] = Law(
        "JointFriction", joints.friction_force, joints.friction_derivatives, (TURNING, TURNING, VECTOR), 3
    )


@final
@dataclass(frozen=True)
class Slider(JointLaw):
    """Place a stays on the line through place b along u, E = k/2 |eps|^2, eps = d - u (u . d), d = y_a - y_b.

    Sites (place a, place b, direction u), u the unit axis. Damping -c (d eps/dy)^T eps_dot. Rotations are free: add
    bonds of directions to hold them. Columns: k [N/m], c [N s/m].
    """

    law: ClassVar[Law] = Law("Slider", *joints.SLIDER, (PLACE, PLACE, VECTOR), 2, energy=_slider_energy)


@final
@dataclass(frozen=True)
class AngleLimit(DecidingJointLaw):
    """Penalty torque on the angle phi = atan2(e_2 . m, e_1 . m) of a hinge outside lo <= phi <= hi.

    -k (phi - hi) - c phi_dot above hi, -k (phi - lo) - c phi_dot below lo. Sites (direction e_1 of a, direction e_2
    of a, direction m of b), e_1 and e_2 orthogonal unit vectors across the axis, m across it too. The turn of phi is
    the one nearest to the middle of the range, which must be narrower than a turn.
    Columns: k [N m/rad], c [N m s/rad], lo and hi [rad].
    """

    law: ClassVar[Law] = Law(
        "AngleLimit", joints.limit_force, joints.limit_derivatives, (VECTOR, VECTOR, VECTOR), 4, True,
        energy=_limit_energy,
    )  # fmt: skip

    def describe(self, decision: Decision) -> dict[str, int]:
        """Return how many joints are beyond their limits."""
        return {"below": int((decision[:, 2] < 0).sum()), "above": int((decision[:, 2] > 0).sum())}


# --- given motions and forces, which follow a signal ------------------------------------------------------------------


def _motor_energy(y: FloatArray, p: FloatArray, codes: AnyArray) -> float:
    cos, sin = np.cos(p[:, 1, None]), np.sin(p[:, 1, None])
    d = cos * y[:, 0] + sin * y[:, 1] - y[:, 2]
    return float(0.5 * p[:, 0] @ (d**2).sum(axis=1))


@final
@dataclass(frozen=True)
class Motor(JointLaw):
    """Direction m of b is drawn to the one at angle phi(t) in a, E = k/2 |cos(phi) e_1 + sin(phi) e_2 - m|^2.

    Sites (direction e_1 of a, direction e_2 of a, direction m of b), unit vectors across the axis. For a hinge at
    angle phi + delta the torque is -k sin(delta): the motor slips at half a turn.
    Columns: k [N m/rad]; of the signal phi [rad].
    """

    depends: ClassVar[str] = "q"
    law: ClassVar[Law] = Law(
        "Motor", springs.motor_force, springs.motor_derivatives, (VECTOR, VECTOR, VECTOR), 2, reads_rates=False,
        driven=True, energy=_motor_energy,
    )  # fmt: skip


@final
@dataclass(frozen=True)
class AxisTorque(JointLaw):
    """Torque tau(t) u on a, -tau(t) u on b; sites (spin a, spin b, direction u). Columns: of the signal tau [N m]."""

    depends: ClassVar[str] = "q"
    law: ClassVar[Law] = Law(
        "AxisTorque", springs.axial_force, springs.axial_derivatives, (TURNING, TURNING, VECTOR), 1,
        reads_rates=False, driven=True,
    )  # fmt: skip


@final
@dataclass(frozen=True)
class PointForce(JointLaw):
    """Given force F(t) in world axes on a place, or torque on a spin; one site. It keeps its direction.

    Columns: of the signal F [N], on spins [N m], three.
    """

    depends: ClassVar[str] = "q"
    law: ClassVar[Law] = Law(
        "PointForce", springs.given_force, springs.given_derivatives, (PLACE | TURNING,), 3, reads_rates=False,
        driven=True,
    )  # fmt: skip


# --- air and fluids ---------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class Drag(JointLaw):
    """Drag of a body as a whole, F = rho C A |u| u / 2 at a place that moves with v, u = w(t) - v; one site.

    Columns: rho [kg/m^3], C [-], A [m^2]; of the signal the wind w [m/s], three.
    """

    law: ClassVar[Law] = Law("Drag", *air.DRAG, (PLACE,), 6, driven=True)


@final
@dataclass(frozen=True)
class AxialDrag(JointLaw):
    """Drag along one axis u of a body, F = -(c + b |s|) s u, s = u . (v - w); of a spin the torque, s = u . omega.

    Sites (place or spin, direction). Columns: c [N s/m], b [N s^2/m^2], on spins [N m s] and [N m s^2]; of the signal
    the wind w [m/s], three, zero on spins.
    """

    law: ClassVar[Law] = Law("AxialDrag", *air.AXIAL_DRAG, (PLACE | TURNING, VECTOR), 5, driven=True)


#: Numbers of an ellipsoid in a fluid, with their units, behind density and viscosity.
ELLIPSOID_NUMBERS = (
    *((f"semi_axis.{i}", "m") for i in range(3)),
    *((key, "-") for key in ("blunt_drag", "slender_drag", "angular_drag", "kutta_lift", "magnus_lift")),
    *((f"virtual_mass.{i}", "m^3") for i in range(3)), *((f"virtual_inertia.{i}", "m^5") for i in range(3)),
)  # fmt: skip


@final
@dataclass(frozen=True)
class EllipsoidInFluid(JointLaw):
    """Drag, lift and added mass of an ellipsoid, see `add.kernels.air.ellipsoid`.

    Sites (centre, spin, first axis, second axis). Columns: rho [kg/m^3], beta [Pa s], `ELLIPSOID_NUMBERS`; of the
    signal the wind [m/s], three.
    """

    law: ClassVar[Law] = Law("EllipsoidInFluid", *air.ELLIPSOID, (PLACE, TURNING, VECTOR, VECTOR), 19, driven=True)


@final
@dataclass(frozen=True)
class AirOnFaces(JointLaw):
    """Pressure and friction on triangles, a third on each corner, see `add.kernels.air.faces`; three sites.

    Columns: rho [kg/m^3], C [-], c [kg/(m^2 s)]; of the signal the wind [m/s], three.
    """

    law: ClassVar[Law] = Law("AirOnFaces", *air.FACES, (PLACE, PLACE, PLACE), 6, driven=True)


@final
@dataclass(frozen=True)
class AirOnClosedFaces(JointLaw):
    """The same on triangles, turned outward, that bound a volume: pressure acts from outside alone."""

    law: ClassVar[Law] = Law("AirOnClosedFaces", *air.CLOSED_FACES, (PLACE, PLACE, PLACE), 6, driven=True)


TERMS: tuple[type[JointLaw] | type[DecidingJointLaw] | JointFormula, ...] = (
    Spring, HARDENING_SPRING, ElasticJoint, Slider, AngularDamping, JointFriction, Motor, AxisTorque, PointForce, Drag,
    AxialDrag, EllipsoidInFluid, AirOnFaces, AirOnClosedFaces, Cable, ClippedCable, AngleLimit,
)  # fmt: skip


# --- Couplings as values between bodies; gathered into one term a kind ------------------------------------------------


@final
@dataclass(frozen=True)
class BodySite:
    """A vector that a body carries, or that stands in the world.

    Attributes
    ----------
    kind : SiteKind
    body : str
        Empty for the world.
    arm : str
        Block of theta with the place or direction in the body's frame (or the world); empty for nodes and spins.
    nodes, weights : of the body, for NODES
    """

    kind: SiteKind
    body: str = ""
    arm: str = ""
    nodes: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    weights: FloatArray = field(default_factory=lambda: np.zeros(0))


@final
@dataclass(frozen=True)
class JointPart:
    """One spring, part of a joint or force; or many alike, as the air on the faces of a surface.

    Attributes
    ----------
    term : the kind of term that it is gathered into, or the formula that makes one
    sites : those of each interaction, one behind the other, in the order of the term's law
    numbers : blocks of theta, the first columns of the law; empty for zero
    drive : SignalParameter or None
        What the columns behind them follow.
    """

    term: type[JointLaw] | type[DecidingJointLaw] | JointFormula
    sites: tuple[BodySite, ...]
    numbers: tuple[str, ...] = ()
    drive: SignalParameter | None = None


@final
@dataclass(frozen=True)
class HingeStart:
    """The start of a body on a hinge: at an angle and a rate against the other. Names are blocks of theta.

    At angle zero the bodies have the orientations of their own blocks.

    Attributes
    ----------
    a, b : str
        Names of rigid bodies; ``a`` is empty for the world.
    place_a, place_b : str
        The hinge in both frames.
    axis : str
        A unit vector in a's frame.
    angle, rate : str
    """

    a: str
    b: str
    place_a: str
    place_b: str
    axis: str
    angle: str
    rate: str
