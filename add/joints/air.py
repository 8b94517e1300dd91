"""Forces of the air on bodies, which move through it or which the wind meets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from add.equations.signals import Signal
from add.equations.sites import Indices, LawValues, Sites
from add.joints.law_term import PLACE, JointLaw, Slots
from add.kernels import air as kernel
from add.typing import IntArray


@final
@dataclass(frozen=True)
class Drag(JointLaw):
    """Drag of a body as a whole, F = rho C A |u| u / 2 at a place that moves with v, u = w(t) - v; one site."""

    depends: ClassVar[str] = "qv"
    slots: ClassVar[Slots] = (PLACE,)
    n_columns: ClassVar[int] = 6

    @classmethod
    def of(
        cls, sites: Sites, *, density: Indices, coefficient: Indices, area: Indices, signal: Signal, rows: IntArray
    ) -> Drag:
        """Make drags; indices in theta of rho [kg/m^3], C [-], A [m^2] (n,), the wind's rows [m/s]."""
        return cls(sites, LawValues.driven(signal, rows, density, coefficient, area))

    def law_forces(self, y, y_dot, p, f):
        kernel.drag_force(y, y_dot, p, f)

    def law_derivatives(self, y, y_dot, p, f, f_y, f_v, f_p):
        kernel.drag_derivatives(y, y_dot, p, f, f_y, f_v, f_p)


@final
@dataclass(frozen=True)
class AirOnFaces(JointLaw):
    """Pressure and friction on triangles, a third on each corner, see `add.kernels.air.face_force`; three sites.

    Attributes
    ----------
    closed : bool
        Whether the triangles, turned outward, bound a volume: pressure acts from outside alone.
    """

    depends: ClassVar[str] = "qv"
    slots: ClassVar[Slots] = (PLACE, PLACE, PLACE)
    n_columns: ClassVar[int] = 6

    closed: bool = False

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

    def law_forces(self, y, y_dot, p, f):
        kernel.face_force(y, y_dot, p, self.closed, f)

    def law_derivatives(self, y, y_dot, p, f, f_y, f_v, f_p):
        kernel.face_derivatives(y, y_dot, p, self.closed, f, f_y, f_v, f_p)
