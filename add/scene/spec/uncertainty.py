"""Uncertainty of the scene format: intervals beside the standard errors, the discretisation in them."""

from typing import Annotated

from pydantic import AfterValidator, Field

from add.scene.spec.common import Count, FilePath, Flag, NonEmpty, Spec, unique


class UncertaintySpec(Spec):
    """Error bars beyond noise, correlated residuals and the spread of takes, which are always counted."""

    convergence: FilePath | None = Field(
        None,
        description="file that `add converge` wrote for this scene: its discretisation errors enter the error bars; "
        "null = those of the run folder, if `add converge` filled it",
    )
    profile: Annotated[tuple[NonEmpty, ...], AfterValidator(unique)] = Field(
        (),
        description="paths of `parameters` whose 95 % interval is found by profile likelihood: some tens of "
        "simulations with derivatives for each number",
    )
    bootstrap: Annotated[Count, Field(ge=20, le=100000)] | None = Field(
        None, description="draws of the bootstrap over takes, or over stretches of time where there are fewer than four"
    )
    candidates: Flag = Field(
        True,
        description="whether takes that are only predicted and markers that were not recorded are tried, one "
        "simulation with derivatives each, where the data hardly see a combination of parameters",
    )
