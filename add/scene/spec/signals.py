"""Signals of the scene format."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from add.scene.spec.common import (
    Count,
    Number,
    NumberOrVectorSpec,
    Positive,
    Role,
    Spec,
    Vector3,
    check_samples,
    problem,
)
from add.scene.spec.unions import by_value

#: Degree of the B-spline of each basis.
CONTROL_DEGREES = {"constant": 0, "linear": 1, "cubic": 3}


def _width(value: float | Vector3) -> int:
    return 3 if isinstance(value, tuple) else 1


def _one_width(values: tuple[float | Vector3, ...]) -> tuple[float | Vector3, ...]:
    if len({_width(value) for value in values}) > 1:
        raise problem("numbers and vectors are mixed", expected="all numbers, or all [x, y, z]")
    return values


Values = Annotated[tuple[NumberOrVectorSpec, ...], AfterValidator(_one_width)]


class ConstantSignalSpec(Spec, numbers=Role.DRIVE):
    """The same value at all times."""

    type: Literal["constant"] = Field("constant", description="kind of signal")
    value: NumberOrVectorSpec = Field(description="value, in the unit of what it drives")

    @property
    def width(self) -> int:
        """Numbers at each time: 1 or 3."""
        return _width(self.value)


class SineSignalSpec(Spec, numbers=Role.DRIVE):
    """offset + amplitude sin(2 pi frequency t + phase)."""

    type: Literal["sine"] = Field("sine", description="kind of signal")
    amplitude: NumberOrVectorSpec = Field(description="amplitude, in the unit of what it drives")
    frequency: Positive = Field(description="frequency [Hz]")
    phase: Number = Field(0.0, description="phase at t = 0 [rad]")
    offset: NumberOrVectorSpec = Field(
        (0.0, 0.0, 0.0), description="mean value, in the unit of what it drives; a number where the amplitude is one"
    )

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

    @model_validator(mode="after")
    def _check(self) -> "SineSignalSpec":
        _one_width((self.amplitude, self.offset))
        return self


class _SampledSignalSpec(Spec, numbers=Role.DRIVE):
    """Values at given times; before the first and after the last time the value stays."""

    times: tuple[Number, ...] = Field(min_length=2, description="times of the samples, increasing [s]")
    values: Values = Field(
        min_length=2, description="values, in the unit of what it drives; one per time: vectors, or numbers"
    )

    @property
    def width(self) -> int:
        """Numbers at each time: 1 or 3."""
        return _width(self.values[0])

    @model_validator(mode="after")
    def _check(self) -> "_SampledSignalSpec":
        check_samples(self.times, self.values)
        return self


class TableSignalSpec(_SampledSignalSpec):
    """Linear interpolation between samples; before the first and after the last time the value stays."""

    type: Literal["table"] = Field("table", description="kind of signal")


class SplineSignalSpec(_SampledSignalSpec):
    """Natural cubic spline through the samples; before the first and after the last time the value stays."""

    type: Literal["spline"] = Field("spline", description="kind of signal")


class ControlSignalSpec(Spec, numbers=Role.DRIVE):
    """A control over equal intervals from `start` to `end`, made to be optimised: each row acts for a short while.

    `constant`: one row an interval, which holds its end, so that with as many rows as steps row k drives step k + 1.
    `linear`: one row a knot. `cubic`: the coefficients of a B-spline, clamped at the ends. Outside, the value stays.
    """

    type: Literal["control"] = Field("control", description="kind of signal")
    basis: Literal["constant", "linear", "cubic"] = Field("linear", description="shape in time")
    rows: Count = Field(description="number of rows: at least 1 (constant), 2 (linear) or 4 (cubic)")
    start: Number = Field(0.0, description="where the first interval begins [s]")
    end: Number | None = Field(None, description="where the last interval ends [s]; null = the end of the run")
    values: Values = Field(
        min_length=1,
        description="rows, in the unit of what it drives: vectors, or numbers; one alone, as in [[0, 0, 1]] or [0.5], "
        "stands for all",
    )

    @property
    def width(self) -> int:
        """Numbers at each time: 1 or 3."""
        return _width(self.values[0])

    @model_validator(mode="before")
    @classmethod
    def _repeat(cls, data: Any) -> Any:
        """Write one row for all of them out, so that every row has a path."""
        if isinstance(data, dict):
            values, rows = data.get("values"), data.get("rows")
            if isinstance(values, list | tuple) and len(values) == 1 and type(rows) is int and 1 < rows <= 1_000_000:
                return {**data, "values": list(values) * rows}
        return data

    @model_validator(mode="after")
    def _check(self) -> "ControlSignalSpec":
        least = CONTROL_DEGREES[self.basis] + 1
        if self.rows < least:
            raise problem(
                f"too few rows for the {self.basis} basis", key="rows", found=str(self.rows), expected=f"{least}"
            )
        if len(self.values) != self.rows:
            raise problem(
                "as many values as 'rows' says are needed, or one for all",
                key="values",
                found=f"{len(self.values)} values",
                expected=f"{self.rows}, or one (a vector alone is written [[x, y, z]])",
            )
        if self.end is not None and not self.start < self.end:
            raise problem(
                "a control must start before it ends", key="end", found=f"{self.end:g}", expected=f"> {self.start:g}"
            )
        return self


SignalSpec = Annotated[
    TableSignalSpec | SplineSignalSpec | ConstantSignalSpec | SineSignalSpec | ControlSignalSpec,
    by_value("type"),
]
