"""Chambers of bodies in the scene format: gas and liquid that press on their walls."""

from typing import Annotated, Literal

from pydantic import Field, Tag, model_validator

from add.scene.spec.common import Index, NonEmpty, Positive, Role, SelectorSpec, Spec, by_value, problem
from add.scene.spec.couplings import ScalarValueSpec
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
    volume: Positive | None = Field(None, description="V_0 [m^3]; null = the chamber's at rest")
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
    Annotated[PressureChamberSpec, Tag("<pressure>")]
    | Annotated[GasChamberSpec, Tag("<gas>")]
    | Annotated[VolumeChamberSpec, Tag("<volume>")]
    | Annotated[JoinedChamberSpec, Tag("<joined>")],
    by_value("type", "pressure", "gas", "volume", "joined"),
]
