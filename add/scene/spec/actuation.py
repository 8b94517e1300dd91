"""Chambers and muscles of bodies in the scene format."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from add.scene.spec.common import (
    Index,
    NonEmpty,
    NonNegative,
    Number,
    Positive,
    Role,
    SelectorSpec,
    Spec,
    Vector3,
    exactly_one,
    problem,
)
from add.scene.spec.couplings import ScalarValueSpec
from add.scene.spec.signals import DirectionFieldSpec
from add.scene.spec.unions import by_value
from add.terms.pressure import ATMOSPHERE


class _ChamberSpec(Spec, numbers=Role.PROPERTY):
    cavity: Index | None = Field(
        None,
        description="which hollow inside the body, from 0, in the order of their lowest nodes; null = the only one",
    )
    where: SelectorSpec | None = Field(
        None,
        description="instead of a hollow: the faces of the surface all of whose nodes are selected, in the rest frame "
        "of the mesh",
    )

    @model_validator(mode="after")
    def _one(self) -> "_ChamberSpec":
        if self.cavity is not None and self.where is not None:
            raise problem("a chamber is a hollow or a selection", key="where", found="both", expected="one of them")
        return self


class PressureChamberSpec(_ChamberSpec):
    """A given pressure on the walls, which follows them: of a closed chamber, or of an open part of the surface."""

    type: Literal["pressure"] = Field("pressure", description="kind of chamber")
    pressure: ScalarValueSpec = Field(description="p above that around the body, over time [Pa]")


class GasChamberSpec(_ChamberSpec):
    """A gas at one temperature in a closed chamber: p = p_0 V_0 / V - p_atm above that around the body."""

    type: Literal["gas"] = Field("gas", description="kind of chamber")
    pressure: ScalarValueSpec = Field(
        ATMOSPHERE, description="p_0, absolute, at the volume V_0, over time [Pa]: one that grows is gas pumped in"
    )
    rest_volume: Positive | None = Field(None, description="V_0 [m^3]; null = the chamber's at rest")
    atmosphere: Positive = Field(ATMOSPHERE, description="p_atm around the body [Pa]")


class VolumeChamberSpec(_ChamberSpec):
    """A closed chamber whose volume is given: a liquid that is pumped in and out. Its pressure is a reaction."""

    type: Literal["volume"] = Field("volume", description="kind of chamber")
    volume: ScalarValueSpec | None = Field(None, description="V over time [m^3]; null = the chamber's at rest, always")


class JoinedChamberSpec(_ChamberSpec):
    """A closed chamber that shares the pressure and the content of another one: their volumes add up."""

    type: Literal["joined"] = Field("joined", description="kind of chamber")
    to: NonEmpty = Field(description="the other, not itself joined: `chamber` of this body, or `body/chamber`")


ChamberSpec = Annotated[
    PressureChamberSpec | GasChamberSpec | VolumeChamberSpec | JoinedChamberSpec,
    by_value("type"),
]


class _MuscleSpec(Spec, numbers=Role.PROPERTY):
    where: SelectorSpec | None = Field(
        None, description="its elements, all of whose nodes are selected, in the rest frame of the mesh; null = all"
    )


class ActivationDynamicsSpec(Spec, numbers=Role.PROPERTY):
    """How the activation a of a muscle follows what excites it, u: a' = (u - a)/tau.

    tau = rise (1/2 + 3a/2) where u > a, fall/(1/2 + 3a/2) where not (Millard et al. 2013, MuJoCo).
    """

    rise: Positive = Field(0.01, description="time of activation [s]")
    fall: Positive = Field(0.04, description="time of deactivation [s]")


class _FibreMuscleSpec(_MuscleSpec):
    activation: ScalarValueSpec = Field(
        description="a over time, 0 at rest to 1 [-]; with `dynamics` the excitation u that a follows"
    )
    dynamics: ActivationDynamicsSpec | None = Field(
        None, description="how a follows u, from a = u at the start; null = at once"
    )
    fibres: DirectionFieldSpec | None = Field(None, description="direction of the fibres in every element at rest")
    points: tuple[Vector3, ...] | None = Field(
        None,
        min_length=2,
        description="instead of fibres: a line through these points of the body at rest [m], with one tension",
    )
    optimal: Positive = Field(1.0, description="stretch l_o of the fibre at which it is at its best [-]")

    @model_validator(mode="after")
    def _along(self) -> "_FibreMuscleSpec":
        exactly_one(self, "fibres", "points")
        if self.points is not None and self.where is not None:
            raise problem("a line through points has no elements", key="where", found="both", expected="one of them")
        return self


class ActiveStressMuscleSpec(_FibreMuscleSpec):
    """A muscle with the tension a s exp(-((l - l_o)/w)^2) along its fibres, l their stretch."""

    type: Literal["active-stress"] = Field("active-stress", description="kind of muscle")
    strength: NonNegative = Field(description="s, the most [Pa], of a line [N]")
    width: Positive = Field(0.5, description="w of the bell [-]")


class QuadraticMuscleSpec(_FibreMuscleSpec):
    """A muscle with the energy k/2 (l - l_o (1 - c a))^2 of its fibres' stretch l: springs that shorten."""

    type: Literal["quadratic-fibre"] = Field("quadratic-fibre", description="kind of muscle")
    stiffness: Positive = Field(description="k [Pa], of a line [N]")
    contraction: NonNegative = Field(1.0, description="c, the part by which full activation shortens them [-]")


class HillMuscleSpec(_FibreMuscleSpec):
    """A muscle with the tension F_0 (a f_L f_V + f_P) along its fibres, by MuJoCo's curves of length and speed."""

    type: Literal["hill"] = Field("hill", description="kind of muscle")
    strength: NonNegative = Field(description="F_0, the most at rest [Pa], of a line [N]")
    speed: Positive = Field(1.5, description="v_max, the fastest shortening [optimal lengths/s]")
    shortest: Annotated[Positive, Field(lt=1)] = Field(0.5, description="l_min, where f_L begins [optimal lengths]")
    longest: Annotated[Number, Field(gt=1)] = Field(1.6, description="l_max, where f_L ends [optimal lengths]")
    passive: NonNegative = Field(1.3, description="f_P at l_max [-]")
    lengthening: Annotated[Number, Field(gt=1)] = Field(1.2, description="f_V of fast lengthening [-]")


class VolumetricActuatorSpec(_MuscleSpec):
    """Cells that take a volume: the energy k/2 (J - a)^2 of every point, J its volume over that at rest."""

    type: Literal["volumetric-actuator"] = Field("volumetric-actuator", description="kind of muscle")
    stiffness: Positive = Field(description="k [Pa]")
    volume: ScalarValueSpec = Field(description="a over time, 1 = as at rest [-]")


MuscleSpec = Annotated[
    ActiveStressMuscleSpec | QuadraticMuscleSpec | HillMuscleSpec | VolumetricActuatorSpec,
    by_value("type"),
]
