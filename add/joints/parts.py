"""Springs, joints, motors and forces as values; gathered into one term a kind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import numpy as np

from add.equations.signals import SignalParameter
from add.equations.sites import SiteKind
from add.typing import FloatArray, IntArray


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


class JointPart:
    """One spring, joint part or force. Names are blocks of theta."""


@final
@dataclass(frozen=True)
class SpringPart(JointPart):
    """Along the line between two points; ``unilateral`` for a cable."""

    a: BodySite
    b: BodySite
    stiffness: str
    damping: str
    length: str
    unilateral: bool = False


@final
@dataclass(frozen=True)
class ElasticJointPart(JointPart):
    """Two points, or two directions, stay together."""

    a: BodySite
    b: BodySite
    stiffness: str
    damping: str


@final
@dataclass(frozen=True)
class SliderPart(JointPart):
    """Two points stay together across an axis that the body of ``a`` carries."""

    a: BodySite
    b: BodySite
    axis: BodySite
    stiffness: str
    damping: str


@final
@dataclass(frozen=True)
class MotorPart(JointPart):
    """A direction of one body follows one of the other that is turned by a target angle in the plane (e1, e2)."""

    e1: BodySite
    e2: BodySite
    b: BodySite
    angle: SignalParameter
    stiffness: str


@final
@dataclass(frozen=True)
class DampingPart(JointPart):
    """A torque against the relative angular velocity of two spins."""

    a: BodySite
    b: BodySite
    damping: str


@final
@dataclass(frozen=True)
class FrictionPart(JointPart):
    """Viscous and dry friction about an axis."""

    a: BodySite
    b: BodySite
    axis: BodySite
    viscous: str
    coulomb: str
    rate: str


@final
@dataclass(frozen=True)
class TorquePart(JointPart):
    """A given torque about an axis on ``b``, the opposite on ``a``."""

    a: BodySite
    b: BodySite
    axis: BodySite
    torque: SignalParameter


@final
@dataclass(frozen=True)
class LimitPart(JointPart):
    """Stops of the angle of direction ``b`` in the plane (e1, e2) of the other body."""

    e1: BodySite
    e2: BodySite
    b: BodySite
    stiffness: str
    damping: str
    lower: str
    upper: str


@final
@dataclass(frozen=True)
class ForcePart(JointPart):
    """A given force on a point, or a torque on a spin, in world axes."""

    on: BodySite
    force: SignalParameter


@final
@dataclass(frozen=True)
class DragPart(JointPart):
    """Drag of the air on a body as a whole, at a point of it; names of density, coefficient and area."""

    on: BodySite
    density: str
    coefficient: str
    area: str
    wind: SignalParameter


@final
@dataclass(frozen=True)
class AirPart(JointPart):
    """Pressure and friction of the air on triangles of a body.

    Attributes
    ----------
    corners : (m) triples of sites, of closed surfaces turned outward
    density, coefficient, friction : str
    wind : SignalParameter
    closed : bool
    """

    corners: tuple[tuple[BodySite, BodySite, BodySite], ...]
    density: str
    coefficient: str
    friction: str
    wind: SignalParameter
    closed: bool


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
