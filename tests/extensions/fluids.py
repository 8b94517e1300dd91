"""Viscosity that falls from one plateau to another as the rate grows, as of polymers (Carreau 1972)."""

from typing import ClassVar, Literal, final

from pydantic import Field

from add.extensions import NonNegative, Number, Positive, ViscosityExtension


@final
class Carreau(ViscosityExtension):
    """The stress eta D with eta = eta_inf + (eta_0 - eta_inf) (1 + l^2 D : D)^((n - 1)/2)."""

    dissipation = "eta_inf/2*DD + (eta_0 - eta_inf)/(l**2*(n + 1))*(1 + l**2*DD)**((n + 1)/2)"
    columns: ClassVar[dict[str, str]] = {"eta_0": "Pa s", "eta_inf": "Pa s", "l": "s", "n": "-"}

    type: Literal["carreau"] = Field("carreau", description="name of the law")
    eta_0: Positive = Field(description="viscosity at rest [Pa s]")
    eta_inf: NonNegative = Field(0.0, description="viscosity of fast motion [Pa s]")
    l: Positive = Field(description="one over the rate at which it begins to fall [s]")
    n: Number = Field(description="exponent of the rate in the stress between both [-]")
