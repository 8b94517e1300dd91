"""Obstacles of the scene format."""

from typing import Annotated, Literal

from pydantic import Field

from add.scene.spec.common import (
    Direction,
    Extent,
    FilePath,
    Flag,
    Positive,
    PositiveVector3,
    Quaternion,
    Role,
    Spec,
    Vector3,
)
from add.scene.spec.unions import by_value


class _ObstacleSpec(Spec, numbers=Role.PROPERTY):
    velocity: Annotated[Vector3, Role.DRIVE] = Field(
        (0.0, 0.0, 0.0), description="constant velocity of the obstacle [m/s]"
    )
    adjustable: Flag = Field(
        False,
        description="whether its place, orientation or normal (two tilts from the scene's) and velocity are numbers "
        "that parameters may name: it has coordinates then, which are given",
    )


class PlaneSpec(_ObstacleSpec):
    """The half space behind a plane."""

    shape: Literal["plane"] = Field("plane", description="kind of obstacle")
    point: Vector3 = Field(description="a point of the plane at t = 0 [m]")
    normal: Direction = Field(description="direction of the free side; any length above 0 [-]")


class SphereSpec(_ObstacleSpec):
    """A ball."""

    shape: Literal["sphere"] = Field("sphere", description="kind of obstacle")
    center: Vector3 = Field(description="centre at t = 0 [m]")
    radius: Extent = Field(description="radius [m]")


class _OrientedSpec(_ObstacleSpec):
    center: Vector3 = Field(description="centre at t = 0 [m]")
    orientation: Quaternion = Field((1.0, 0.0, 0.0, 0.0), description="unit quaternion w, x, y, z [-]")


class BoxObstacleSpec(_OrientedSpec):
    """A box."""

    shape: Literal["box"] = Field("box", description="kind of obstacle")
    half_size: PositiveVector3 = Field(description="half the edge lengths along its x, y, z [m]")


class CapsuleSpec(_OrientedSpec):
    """A cylinder along its z axis with round ends."""

    shape: Literal["capsule"] = Field("capsule", description="kind of obstacle")
    radius: Extent = Field(description="radius [m]")
    half_length: Extent = Field(description="half the length of the straight part [m]")


class CylinderSpec(_OrientedSpec):
    """A cylinder along its z axis with flat ends."""

    shape: Literal["cylinder"] = Field("cylinder", description="kind of obstacle")
    radius: Extent = Field(description="radius [m]")
    half_length: Extent = Field(description="half the length [m]")


class MeshObstacleSpec(_OrientedSpec):
    """A closed surface mesh from a file (STL, OBJ, PLY ...), triangles counter-clockwise seen from outside."""

    shape: Literal["mesh"] = Field("mesh", description="kind of obstacle")
    file: FilePath = Field(description="surface mesh, relative to the scene file; `${NAME}` is an environment variable")
    scale: Positive = Field(1.0, description="factor from the mesh's unit to metres [-]")
    center: Vector3 = Field((0.0, 0.0, 0.0), description="place of the mesh's origin at t = 0 [m]")


ObstacleSpec = Annotated[
    PlaneSpec | SphereSpec | BoxObstacleSpec | CapsuleSpec | CylinderSpec | MeshObstacleSpec,
    by_value("shape"),
]
