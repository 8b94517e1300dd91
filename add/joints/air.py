"""Forces of the air on bodies, which move through it or which the wind meets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from add.equations.signals import Signal
from add.equations.sites import Indices, LawValues, Sites
from add.joints.law import PLACE, Law
from add.joints.law_term import JointLaw
from add.kernels import air as kernel
from add.typing import IntArray

DRAG = Law("Drag", kernel.drag_force, kernel.drag_derivatives, (PLACE,), 6, driven=True)
FACES, CLOSED_FACES = (
    Law(name, force, derivatives, (PLACE, PLACE, PLACE), 6, driven=True)
    for name, force, derivatives in (
        ("AirOnFaces", kernel.face_force, kernel.face_derivatives),
        ("AirOnClosedFaces", kernel.closed_face_force, kernel.closed_face_derivatives),
    )
)


@final
@dataclass(frozen=True)
class Drag(JointLaw):
    """Drag of a body as a whole, F = rho C A |u| u / 2 at a place that moves with v, u = w(t) - v; one site."""

    law: ClassVar[Law] = DRAG

    @classmethod
    def of(
        cls, sites: Sites, *, density: Indices, coefficient: Indices, area: Indices, signal: Signal, rows: IntArray
    ) -> Drag:
        """Make drags; indices in theta of rho [kg/m^3], C [-], A [m^2] (n,), the wind's rows [m/s]."""
        return cls(sites, LawValues.driven(signal, rows, density, coefficient, area))


@final
@dataclass(frozen=True)
class AirOnFaces(JointLaw):
    """Pressure and friction on triangles, a third on each corner, see `add.kernels.air.face_force`; three sites.

    Attributes
    ----------
    closed : bool
        Whether the triangles, turned outward, bound a volume: pressure acts from outside alone.
    """

    closed: bool = False

    @property
    def law(self) -> Law:
        """That of ``closed``."""
        return CLOSED_FACES if self.closed else FACES

    @classmethod
    def of(
        cls,
        sites: Sites,
        *,
        density: Indices,
        coefficient: Indices,
        friction: Indices,
        signal: Signal,
        rows: IntArray,
        closed: bool,
    ) -> AirOnFaces:
        """Make faces; indices in theta of rho [kg/m^3], C [-], c [kg/(m^2 s)] (n,), of the wind's rows [m/s]."""
        return cls(sites, LawValues.driven(signal, rows, density, coefficient, friction), closed)
