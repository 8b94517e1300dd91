"""The forms of the JSON files of a run, checked when one is read: it may be damaged, or not ours."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, TypeAdapter, ValidationError, model_validator

from add.errors import InputError

Text = Annotated[str, Strict()]
Number = Annotated[float, Strict()]
Count = Annotated[int, Strict(), Field(ge=0, le=10**12)]


def _hexadecimal(text: str) -> str:
    try:
        float.fromhex(text)
    except OverflowError:
        raise ValueError("not a number of 64 bits") from None
    return text


#: A number as `float.hex` writes it.
HexFloat = Annotated[str, Strict(), Field(max_length=40), AfterValidator(_hexadecimal)]


class _Form(BaseModel):
    """An object of which only some keys matter here."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)


class _Parameter(_Form):
    value: Number | None
    unit: Text
    start: Number | None = None
    standard_error: Number | None = None
    interval_lower: Number | None = None
    interval_upper: Number | None = None
    lower: Number | None = None
    upper: Number | None = None


class _Objective(_Form):
    start: Number | None = None
    end: Number | None = None
    minimum: Number | None = None
    maximum: Number | None = None


class _Phase(_Form):
    name: Text
    evaluations: Count
    status: Text
    start: Number | None = None
    end: Number | None = None
    success: bool | None = None


class _Body(_Form):
    centre: Annotated[list[Number], Field(min_length=3, max_length=3)]
    mass: Number | None = None
    elements: Count | None = None


class _SceneName(_Form):
    name: Text = ""


class _Correlation(_Form):
    labels: list[Text]
    matrix: list[list[Number | None]]


class _Weak(_Form):
    text: Text


class _Tied(_Form):
    a: Text
    b: Text
    correlation: Number


class _Bootstrap(_Form):
    labels: list[Text] = []
    replicates: list[list[Number | None]] = []

    @model_validator(mode="after")
    def _rows(self) -> Self:
        if any(len(row) != len(self.labels) for row in self.replicates):
            raise ValueError("a replicate of other numbers than the labels name")
        return self


class _Uncertainty(_Form):
    contains: list[Text] = []
    weak: list[_Weak] = []
    changing: list[_Weak] = []
    tied: list[_Tied] = []
    correlation: _Correlation | None = None
    residuals: dict[str, dict[str, Any]] = {}
    bootstrap: _Bootstrap | None = None


class _Fit(_Form):
    rms: Number
    samples: Count


class _Experiment(_Form):
    use: Literal["fit", "validate"] = "fit"
    fit: _Fit | None = None


class _Result(_Form):
    command: Text = ""
    status: Text = ""
    message: Text = ""
    scene: Text | _SceneName | None = None
    seconds: Annotated[Number, Field(ge=0.0, le=1e15)] = 0.0
    evaluations: Count = 0
    steps: Count = 0
    end_time: Number = 0.0
    objective: _Objective | None = None
    parameters: dict[str, _Parameter] = {}
    phases: list[_Phase] = []
    bodies: dict[str, _Body] = {}
    fit: _Fit | None = None
    checks: dict[str, Any] = {}
    uncertainty: _Uncertainty | None = None
    experiments: dict[str, _Experiment] = {}


class _Evaluation(_Form):
    phase: Text
    index: Count
    x: list[HexFloat]
    value: HexFloat
    gradient: list[HexFloat]
    parameters: dict[str, Number | None] = {}
    seconds: Number
    memory: list[HexFloat] = []


class _Run(_Form):
    seconds: Number
    elapsed: Number = 0.0
    failed: Text = ""


class _Sample(_Run):
    index: Annotated[list[Count], Field(min_length=1, max_length=2)]
    value: HexFloat = "0x0p+0"
    gradient: list[HexFloat] = []


class _Draw(_Run):
    index: Count


class _Refit(_Form):
    fit: Text
    name: Text
    x: list[HexFloat]
    value: Number
    runs: Count
    converged: bool


class _Axis(_Form):
    name: Text
    unit: Text
    logarithmic: bool
    values: Annotated[list[HexFloat], Field(min_length=1)]


_FORMS: dict[str, TypeAdapter[Any]] = {
    "result.json": TypeAdapter(_Result),
    "versions.json": TypeAdapter(dict[str, Text]),
    "scene.json": TypeAdapter(dict[str, Any]),
    "evaluations.jsonl": TypeAdapter(_Evaluation),
    "samples.jsonl": TypeAdapter(_Sample),
    "draws.jsonl": TypeAdapter(_Draw),
    "refits.jsonl": TypeAdapter(_Refit),
    "draws.json": TypeAdapter(dict[str, Any]),
    "grid.json": TypeAdapter(Annotated[list[_Axis], Field(min_length=1, max_length=2)]),
}


def require_form(name: str, value: object, path: Path, place: str | None = None) -> None:
    """Refuse a value that is not what the file of this name holds.

    Parameters
    ----------
    name : of the file in a run folder
    value : as JSON gives it
    path, place : for the error

    Raises
    ------
    InputError
        naming the first part that is wrong.
    """
    form = _FORMS.get(name)
    if form is None:
        return
    try:
        form.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part)[:60] for part in first["loc"])
        parts = [part for part in (place, where) if part]
        raise InputError(
            f"damaged: not what `add` writes there ({first['msg']})", file=path, place=", ".join(parts) or None
        ) from None
