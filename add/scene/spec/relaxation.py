"""How stress relaxes, in the scene format: branches of a Prony series, one by one or as a band of frequencies."""

import math
from typing import Annotated

from pydantic import Field, model_validator

from add.scene.spec.common import Positive, Role, Spec, problem
from add.scene.spec.unions import by_key


class BranchSpec(Spec, numbers=Role.PROPERTY):
    """A branch of relaxing stress: a share of that of fast motion fades with time, a term of a Prony series."""

    share: Annotated[Positive, Field(lt=1)] = Field(
        description="g of the stress of fast motion [-]; all together below 1"
    )
    time: Positive = Field(description="tau in which it fades to 1/e [s]")


class BandSpec(Spec, numbers=Role.PROPERTY):
    """Branches that lose the same part of the energy of a vibration at all frequencies of a band, two a decade."""

    loss: Annotated[Positive, Field(le=0.5)] = Field(
        description="loss factor tan(delta) [-]; a free vibration decays by a factor exp(-pi tan(delta)) a period"
    )
    frequencies: tuple[Positive, Positive] = Field(description="from the lowest to the highest [Hz]")

    @property
    def times(self) -> tuple[float, ...]:
        """The times of the branches [s], one over the angular frequencies."""
        low, high = self.frequencies
        n = max(2, math.ceil(2.0 * math.log10(high / low)) + 1)
        return tuple(1.0 / (2.0 * math.pi * low * (high / low) ** (k / (n - 1))) for k in range(n))

    @model_validator(mode="after")
    def _check(self) -> "BandSpec":
        low, high = self.frequencies
        if low >= high or high > 1e6 * low:
            raise problem(
                "a band goes from a lower to a higher frequency, over six decades at most", key="frequencies",
                found=f"[{low:g}, {high:g}]", expected="the lower one first",
            )  # fmt: skip
        return self


RelaxationSpec = Annotated[BranchSpec | BandSpec, by_key("share", "loss")]
