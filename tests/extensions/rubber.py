"""Rubber: Yeoh's law, friction that grows with the speed, and a normal force between a parabola and a line."""

from typing import ClassVar, Literal, final

from pydantic import Field

from add.extensions import FrictionExtension, MaterialExtension, NormalExtension, Number, Positive


@final
class Rubber(MaterialExtension):
    """Yeoh's law, nearly incompressible: kappa stands in a fixed ratio to c10."""

    energy = "c10*(I1b - 3) + c20*(I1b - 3)**2 + 20*c10*(J - 1)**2"
    columns: ClassVar[dict[str, str]] = {"c10": "Pa", "c20": "Pa"}

    type: Literal["rubber"] = Field("rubber", description="name of the law")
    c10: Positive = Field(description="half of the shear modulus [Pa]")
    c20: Number = Field(description="how it stiffens [Pa]")


@final
class RubberFriction(FrictionExtension):
    """Friction that grows with the logarithm of the speed: mu (1 + growth ln(1 + u / slow))."""

    coefficient = "mu*(1 + growth*log(1 + u/slow))"
    columns: ClassVar[dict[str, str]] = {"growth": "-", "slow": "m/s"}

    type: Literal["rubber"] = Field("rubber", description="name of the law")
    growth: Positive = Field(description="growth of the coefficient with each e-fold of the speed [-]")
    slow: Positive = Field(description="speed at which it begins to grow [m/s]")


@final
class SkinForce(NormalExtension):
    """A force that grows from a parabola to a line: E = d^3 / (d + 1 mm), in m^2."""

    energy = "d**3/(d + 0.001)"
    damping = "d/(d + 0.001)"

    type: Literal["skin"] = Field("skin", description="name of the law")
