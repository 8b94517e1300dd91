"""Laws of contact: friction of rubber that grows with the speed, and a normal force between Hertz's and a spring."""

from typing import ClassVar, Literal, final

from pydantic import Field

from add.extensions import FrictionExtension, NormalExtension, Positive


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
