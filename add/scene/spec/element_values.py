"""Values for the elements of a mesh in a scene: fields of numbers, directions of fibres."""

from typing import Annotated, TypeVar

from pydantic import Field

from add.scene.spec.common import (
    Direction,
    FilePath,
    NonEmpty,
    NonNegative,
    Number,
    Positive,
    Role,
    SelectorSpec,
    Spec,
    Vector3,
)
from add.scene.spec.unions import by_key, by_type


class EachSpec(Spec, numbers=Role.PROPERTY):
    """One number for each element, all of them the same to begin with."""

    each: Number = Field(description="the number, in the unit of what it stands for")


class CellDataSpec(Spec):
    """Values of the elements from the mesh file."""

    cell_data: NonEmpty = Field(description="name of the data in the mesh file")


class ElementFileSpec(Spec):
    """A text file with a row for each element of the mesh."""

    file: FilePath = Field(description="file of numbers, relative to the scene file, separated by commas or spaces")


ElementsSpec = Annotated[
    EachSpec | CellDataSpec | ElementFileSpec,
    by_key("each", "cell_data", "file"),
]

_T = TypeVar("_T")
#: A number, or one for each element.
_Field = Annotated[
    _T | Annotated[tuple[_T, ...], Field(min_length=1)] | ElementsSpec,
    by_type(
        "a number, a list with one for each element, or an object with 'each', 'cell_data' or 'file'",
        number=(int, float), list=(list, tuple), field=(dict, Spec),
    ),
]  # fmt: skip

Poisson = Annotated[Number, Field(gt=-1, lt=0.5)]
PositiveField = _Field[Positive]
NonNegativeField = _Field[NonNegative]
NumberField = _Field[Number]
PoissonField = _Field[Poisson]
#: A modulus: one number, one for each element, or where they are found.
FieldValue = float | tuple[float, ...] | EachSpec | CellDataSpec | ElementFileSpec


class ConstantDirectionSpec(Spec, numbers=Role.PROPERTY):
    """One direction for all elements."""

    direction: Direction = Field(description="direction in the rest frame, of any length")


class HelixSpec(Spec):
    """Directions that go round an axis, as fibres of a tube do."""

    around: Direction = Field(description="direction of the axis in the rest frame, of any length")
    point: Vector3 = Field((0.0, 0.0, 0.0), description="a point of the axis [m]")
    pitch: Number = Field(0.0, description="angle from the circumference towards the axis [rad]")


class LaplaceSpec(Spec):
    """Directions that lead from one end of a body to another along its shape: grad u of Laplace's equation."""

    between: tuple[SelectorSpec, SelectorSpec] = Field(
        description="nodes of the end that the fibres leave, where u = 0, and of the one that they reach, where u = 1"
    )


DirectionFieldSpec = Annotated[
    ConstantDirectionSpec | HelixSpec | LaplaceSpec | CellDataSpec | ElementFileSpec,
    by_key("direction", "around", "between", "cell_data", "file"),
]


class FibresSpec(Spec):
    """Directions of the fibres of a material at rest; their lengths do not matter, but none may be zero."""

    fibre: DirectionFieldSpec = Field(description="a of I4 = |F a|^2 and I8 = F a . F s")
    sheet: DirectionFieldSpec | None = Field(
        None, description="s of I6 = |F s|^2 and I8: a second family; across the fibre where the law has I8"
    )
