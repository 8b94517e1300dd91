"""Point clouds as an objective of the scene format."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from add.scene.spec.common import (
    Count,
    Direction,
    FilePath,
    Name,
    NonNegative,
    Number,
    Positive,
    Role,
    Spec,
    Vector3,
    Window,
    problem,
)
from add.scene.spec.markers import PlacementSpec


class CloudBoxSpec(Spec):
    """The box in which points count."""

    min: tuple[Number | None, Number | None, Number | None] = Field(
        (None, None, None), description="lowest coordinates, world axes [m]; null = unbounded"
    )
    max: tuple[Number | None, Number | None, Number | None] = Field(
        (None, None, None), description="highest coordinates, world axes [m]; null = unbounded"
    )


class CloudPlaneSpec(Spec):
    """A plane below which points do not count, such as a table that the camera sees, too."""

    point: Vector3 = Field(description="a point of the plane [m]")
    normal: Direction = Field(description="to the side that counts; any length above 0 [-]")


class CloudColourSpec(Spec):
    """The box of colours that count, for clouds whose points have colours."""

    min: tuple[Number | None, Number | None, Number | None] = Field(
        (None, None, None), description="least red, green, blue, from 0 to 1 [-]; null = unbounded"
    )
    max: tuple[Number | None, Number | None, Number | None] = Field(
        (None, None, None), description="most red, green, blue, from 0 to 1 [-]; null = unbounded"
    )


class CloudObjectiveSpec(Spec):
    """Mean squared distance of recorded points from the surface of a soft body, or a robust loss of it [m^2].

    From each point to the closest one of the deformed surface, curved where elements are quadratic; what was not
    recorded does not count.
    """

    type: Literal["cloud"] = Field("cloud", description="kind of objective")
    body: Name = Field(description="name of a soft body")
    file: FilePath = Field(
        description="sequence of point clouds, world axes: .npz (`times`, `points`, `frame`), .csv "
        "(time_s,x_m,y_m,z_m), or a folder of .ply files"
    )
    rate: Positive | None = Field(None, description="frames a second of a folder of .ply files [Hz]")
    scale: Positive = Field(1.0, description="factor from the file's unit to metres [-]")
    time_offset: Annotated[Number, Role.RECORDING] = Field(
        0.0, description="recording time at which the simulation's t = 0 [s]"
    )
    place: PlacementSpec | None = Field(
        None,
        description="where it lies in the scene, in numbers that a fit may find; `box` and `plane` choose points where "
        "the scene's own numbers put them; null = where it is",
    )
    crop: Window | None = Field(None, description="simulation times that count [s]; null = all")
    box: CloudBoxSpec | None = Field(None, description="where points count; null = everywhere")
    colour: CloudColourSpec | None = Field(None, description="colours that count; null = all")
    plane: CloudPlaneSpec | None = Field(None, description="points below it do not count; null = none")
    every: Count = Field(1, description="every n-th point of a frame counts")
    weight: Annotated[NonNegative, Field(description="factor of this term [-]")] = 1.0
    loss: Literal["squared", "huber", "soft-l1", "cauchy"] = Field(
        "squared", description="what a point at a distance counts, as for `markers`"
    )
    loss_scale: Positive | None = Field(None, description="distance from which on a point counts less [m]")

    @model_validator(mode="after")
    def _check(self) -> "CloudObjectiveSpec":
        if (self.loss == "squared") != (self.loss_scale is None):
            needs = "no 'loss_scale'" if self.loss == "squared" else "a 'loss_scale'"
            raise problem(f"the loss '{self.loss}' has {needs}", key="loss_scale")
        return self
