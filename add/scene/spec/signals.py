"""Values of the scene format: signals over time, fields and directions over the elements of a mesh."""

from itertools import pairwise
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field, model_validator

from add.scene.spec import kinds
from add.scene.spec.common import Role, SelectorSpec, Spec
from add.scene.spec.kinds import problem
from add.summary import counted

#: Degree of the B-spline of each basis.
CONTROL_DEGREES = {"constant": 0, "linear": 1, "cubic": 3}


def _width(value: float | kinds.Vector3) -> int:
    return 3 if isinstance(value, tuple) else 1


def _one_width(values: tuple[float | kinds.Vector3, ...]) -> tuple[float | kinds.Vector3, ...]:
    if len({_width(value) for value in values}) > 1:
        raise problem("numbers and vectors are mixed", expected="all numbers, or all [x, y, z]")
    return values


Values = Annotated[tuple[kinds.NumberOrVectorSpec, ...], AfterValidator(_one_width)]


def check_samples(times: tuple[float, ...], values: tuple[Any, ...]) -> None:
    """Raise unless the times of samples increase and every one has its value."""
    for k, (before, after) in enumerate(pairwise(times)):
        if after <= before:
            raise problem("times must increase", key=f"times.{k + 1}", found=f"{after:g}", expected=f"above {before:g}")
    if len(values) != len(times):
        raise problem(
            "as many values as times are needed",
            key="values",
            found=counted(len(values), "value"),
            expected=f"{len(times)}",
        )


class ConstantSignalSpec(Spec, numbers=Role.DRIVE):
    """The same value at all times."""

    type: Literal["constant"] = Field("constant", description="kind of signal")
    value: kinds.NumberOrVectorSpec = Field(description="value, in the unit of what it drives")

    @property
    def width(self) -> int:
        """Numbers at each time: 1 or 3."""
        return _width(self.value)


class SineSignalSpec(Spec, numbers=Role.DRIVE):
    """offset + amplitude sin(2 pi frequency t + phase).

    Attributes
    ----------
    offset : mean value, in the unit of what it drives; a number where the amplitude is one
    """

    type: Literal["sine"] = Field("sine", description="kind of signal")
    amplitude: kinds.NumberOrVectorSpec = Field(description="amplitude, in the unit of what it drives")
    frequency: kinds.Positive = Field(description="frequency [Hz]")
    phase: kinds.Number = Field(0.0, description="phase at t = 0 [rad]")
    offset: kinds.NumberOrVectorSpec = (0.0, 0.0, 0.0)

    @property
    def width(self) -> int:
        """Numbers at each time: 1 or 3."""
        return _width(self.amplitude)

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("amplitude"), int | float) and "offset" not in data:
            return {**data, "offset": 0.0}
        return data

    def model_post_init(self, context: Any) -> None:
        _one_width((self.amplitude, self.offset))


class _RowsSpec(Spec, numbers=Role.DRIVE):
    values: Values

    @property
    def width(self) -> int:
        """Numbers at each time: 1 or 3."""
        return _width(self.values[0])


class _SampledSignalSpec(_RowsSpec):
    """Values at given times; before the first and after the last time the value stays."""

    times: tuple[kinds.Number, ...] = Field(min_length=2, description="times of the samples, increasing [s]")
    values: Values = Field(
        min_length=2, description="values, in the unit of what it drives; one per time: vectors, or numbers"
    )

    def model_post_init(self, context: Any) -> None:
        check_samples(self.times, self.values)


class TableSignalSpec(_SampledSignalSpec):
    """Linear interpolation between samples; before the first and after the last time the value stays."""

    type: Literal["table"] = Field("table", description="kind of signal")


class SplineSignalSpec(_SampledSignalSpec):
    """Natural cubic spline through the samples; before the first and after the last time the value stays."""

    type: Literal["spline"] = Field("spline", description="kind of signal")


class ControlSignalSpec(_RowsSpec):
    """A control over equal intervals from `start` to `end`, made to be optimised: each row acts for a short while.

    `constant`: one row an interval, which holds its end, so that with as many rows as steps row k drives step k + 1.
    `linear`: one row a knot. `cubic`: the coefficients of a B-spline, clamped at the ends. Outside, the value stays.
    """

    type: Literal["control"] = Field("control", description="kind of signal")
    basis: Literal["constant", "linear", "cubic"] = Field("linear", description="shape in time")
    rows: kinds.Count = Field(description="number of rows: at least 1 (constant), 2 (linear) or 4 (cubic)")
    start: kinds.Number = Field(0.0, description="where the first interval begins [s]")
    end: kinds.Number | None = Field(None, description="where the last interval ends [s]; null = the end of the run")
    values: Values = Field(
        min_length=1,
        description="rows, in the unit of what it drives: vectors, or numbers; one alone, as in [[0, 0, 1]] or [0.5], "
        "stands for all",
    )

    @model_validator(mode="before")
    @classmethod
    def _repeat(cls, data: Any) -> Any:
        """Write one row for all of them out, so that every row has a path."""
        if isinstance(data, dict):
            values, rows = data.get("values"), data.get("rows")
            if isinstance(values, list | tuple) and len(values) == 1 and type(rows) is int and 1 < rows <= 1_000_000:
                return {**data, "values": list(values) * rows}
        return data

    def model_post_init(self, context: Any) -> None:
        least = CONTROL_DEGREES[self.basis] + 1
        if self.rows < least:
            raise problem(
                f"too few rows for the {self.basis} basis", key="rows", found=str(self.rows), expected=f"{least}"
            )
        if len(self.values) != self.rows:
            raise problem(
                "as many values as 'rows' says are needed, or one for all",
                key="values",
                found=counted(len(self.values), "value"),
                expected=f"{self.rows}, or one (a vector alone is written [[x, y, z]])",
            )
        if self.end is not None and not self.start < self.end:
            raise problem(
                "a control must start before it ends", key="end", found=f"{self.end:g}", expected=f"> {self.start:g}"
            )


SignalSpec = Annotated[
    TableSignalSpec | SplineSignalSpec | ConstantSignalSpec | SineSignalSpec | ControlSignalSpec,
    kinds.by_value("type"),
]


# --- Values for the elements of a mesh in a scene: fields of numbers, directions of fibres ----------------------------


class EachSpec(Spec, numbers=Role.PROPERTY):
    """One number for each element, all of them the same to begin with."""

    each: kinds.Number = Field(description="the number, in the unit of what it stands for")


class CellDataSpec(Spec):
    """Values of the elements from the mesh file."""

    cell_data: kinds.NonEmpty = Field(description="name of the data in the mesh file")


class ElementFileSpec(Spec):
    """A text file with a row for each element of the mesh.

    Attributes
    ----------
    file : file of numbers, relative to the scene file, separated by commas or spaces
    """

    file: kinds.FilePath


ElementsSpec = Annotated[
    EachSpec | CellDataSpec | ElementFileSpec,
    kinds.by_key("each", "cell_data", "file"),
]

_T = TypeVar("_T")
#: A number, or one for each element.
_Field = Annotated[
    _T | Annotated[tuple[_T, ...], Field(min_length=1)] | ElementsSpec,
    kinds.by_type(
        "a number, a list with one for each element, or an object with 'each', 'cell_data' or 'file'",
        number=(int, float), list=(list, tuple), field=(dict, Spec),
    ),
]  # fmt: skip

Poisson = Annotated[kinds.Number, Field(gt=-1, lt=0.5)]
PositiveField = _Field[kinds.Positive]
NonNegativeField = _Field[kinds.NonNegative]
NumberField = _Field[kinds.Number]
PoissonField = _Field[Poisson]
#: A modulus: one number, one for each element, or where they are found.
FieldValue = float | tuple[float, ...] | EachSpec | CellDataSpec | ElementFileSpec


class ConstantDirectionSpec(Spec, numbers=Role.PROPERTY):
    """One direction for all elements."""

    direction: kinds.Direction = Field(description="direction in the rest frame, of any length")


class HelixSpec(Spec):
    """Directions that go round an axis, as fibres of a tube do."""

    around: kinds.Direction = Field(description="direction of the axis in the rest frame, of any length")
    point: kinds.Vector3 = Field((0.0, 0.0, 0.0), description="a point of the axis [m]")
    pitch: kinds.Number = Field(0.0, description="angle from the circumference towards the axis [rad]")


class LaplaceSpec(Spec):
    """Directions that lead from one end of a body to another along its shape: grad u of Laplace's equation.

    Attributes
    ----------
    between : nodes of the end that the fibres leave, where u = 0, and of the one that they reach, where u = 1
    """

    between: tuple[SelectorSpec, SelectorSpec]


DirectionFieldSpec = Annotated[
    ConstantDirectionSpec | HelixSpec | LaplaceSpec | CellDataSpec | ElementFileSpec,
    kinds.by_key("direction", "around", "between", "cell_data", "file"),
]


class FibresSpec(Spec):
    """Directions of the fibres of a material at rest; their lengths do not matter, but none may be zero.

    Attributes
    ----------
    sheet : s of I6 = |F s|^2 and I8: a second family; across the fibre where the law has I8
    """

    fibre: DirectionFieldSpec = Field(description="a of I4 = |F a|^2 and I8 = F a . F s")
    sheet: DirectionFieldSpec | None = None
