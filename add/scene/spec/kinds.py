"""Kinds of values of the scene format: strict numbers, vectors and names, and how a value chooses among several kinds.

Members of a union have tags in angle brackets ("<box>"), which the reader removes from the JSON path of an error; names
in scenes cannot contain such brackets. Modules of the format say them by this one's name: `kinds.Positive`.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, NamedTuple, Union, final, get_args

from pydantic import AfterValidator, Discriminator, Field, GetCoreSchemaHandler, Strict, Tag
from pydantic_core import CoreSchema, PydanticCustomError

from add.errors import InputError


def problem(message: str, **context: Any) -> PydanticCustomError:
    """Error of a scene value; `context` may hold `key`, `expected` for the report."""
    return PydanticCustomError("scene", "{message}", {"message": message, **context})


class Refers(NamedTuple):
    """The kind of thing that a name in the format stands for, beside its type: `Annotated[Name, Refers("marker")]`."""

    what: str


# --- members of a union ----------------------------------------------------------------------------------------------


class Chosen(NamedTuple):
    """How a value chooses among the members of a union.

    Attributes
    ----------
    tags : of the members, in their order
    branch : value -> tag, None where it says none
    context : what an error says of the choice
    """

    tags: tuple[str, ...]
    branch: Callable[[Any], str | None]
    context: dict[str, Any]


@final
class Branches:
    """Behind a union, `Annotated[A | B, by_key("a", "b")]`: how a value chooses among its members."""

    def __init__(self, among: Callable[[tuple[Any, ...]], Chosen]) -> None:
        self.among = among

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Tag the members, and validate a value by the one that it chooses."""
        members = get_args(source)
        chosen = self.among(members)
        tagged = tuple(Annotated[member, Tag(tag)] for member, tag in zip(members, chosen.tags, strict=True))
        discriminator = Discriminator(
            chosen.branch,
            custom_error_type="branch",
            custom_error_message="does not say which kind it is",
            custom_error_context=_Context(chosen.context),
        )
        return handler.generate_schema(Annotated[Union[tagged], discriminator])  # noqa: UP007


def by_value(
    key: str, *, default: str | None = None, further: Any = None, also: Mapping[str, str] | None = None
) -> Branches:
    """Choose the member of a union whose `key` may be the value's, or `default` where it has none.

    ``also`` names words that older scenes have in place of one of the format. Words that ``further``, a class of
    extensions, has by this name belong to it.
    """

    def among(members: tuple[Any, ...]) -> Chosen:
        words = [() if member is further else get_args(member.model_fields[key].annotation) for member in members]
        tags = [f"<{words_of[0]}>" if words_of else "<extension>" for words_of in words]
        known = {word: tag for tag, words_of in zip(tags, words, strict=True) for word in words_of}
        known |= {old: known[new] for old, new in (also or {}).items()}

        def branch(data: Any) -> str | None:
            value = data.get(key, default) if isinstance(data, dict) else getattr(data, key, None)
            if not isinstance(value, str):
                return None
            if value in known:
                if further is not None and value in further.known():
                    other = further.known()[value]
                    found = f"{other.__module__}.{other.__qualname__}"
                    text = f"an extension has the name of a kind of the format, '{value}'"
                    raise InputError(text, found=found, expected="another one")
                return known[value]
            return "<extension>" if further is not None and further.named(value) is not None else None

        return Chosen(tuple(tags), branch, {"key": key, "expected": list(known), "further": further})

    return Branches(among)


def by_key(*keys: str) -> Branches:
    """Choose the member of a union by the first of `keys` that is there, one a member."""

    def branch(data: Any) -> str | None:
        for key in keys:
            if (key in data) if isinstance(data, dict) else hasattr(data, key):
                return f"<{key}>"
        return None

    return Branches(lambda members: Chosen(tuple(f"<{key}>" for key in keys), branch, {"keys": list(keys)}))


def by_type(expected: str, **kinds: type | tuple[type, ...]) -> Branches:
    """Choose the member of a union by the type of the JSON value, `kinds` of each; `expected` words the choice."""

    def branch(data: Any) -> str | None:
        for kind, types in kinds.items():
            if isinstance(data, types) and not (isinstance(data, bool) and types is not bool):
                return f"<{kind}>"
        return None

    return Branches(lambda members: Chosen(tuple(f"<{kind}>" for kind in kinds), branch, {"expected": expected}))


class _Context(dict[str, Any]):
    """Context of an error that can be hashed, as `typing` wants for members of a union."""

    __hash__ = object.__hash__  # type: ignore[assignment]


# --- numbers -------------------------------------------------------------------------------------------------------

#: The largest number of a scene in size, directions aside, whose length does not matter: moments of inertia are fifth
#: powers of lengths, and those of larger ones are no numbers.
LARGEST = 1e60
#: The smallest length and step: what divides by powers of it is a number.
SMALLEST = 1e-60


def _must(be: Callable[[Any], object], message: str, expected: str) -> AfterValidator:
    """Return a validator that refuses other values."""

    def validate(value: Any) -> Any:
        if not be(value):
            raise problem(message, expected=expected)
        return value

    return AfterValidator(validate)


Finite = Annotated[float, Strict(), Field(allow_inf_nan=False)]
Number = Annotated[Finite, Field(ge=-LARGEST, le=LARGEST)]
Positive = Annotated[Number, Field(gt=0)]
Extent = Annotated[Positive, _must(lambda value: value >= SMALLEST, "impossible value", f"at least {SMALLEST:g}")]
NonNegative = Annotated[Number, Field(ge=0)]
Share = Annotated[Number, Field(ge=0, lt=1)]
# A billion of anything is a slip, and numbers of twenty digits have no place in arrays.
Count = Annotated[int, Strict(), Field(ge=1, le=10**9)]
Index = Annotated[int, Strict(), Field(ge=0, le=10**9)]
Flag = Annotated[bool, Strict()]
Vector3 = tuple[Number, Number, Number]
PositiveVector3 = tuple[Extent, Extent, Extent]


def _unit_quaternion(quaternion: tuple[float, ...]) -> tuple[float, ...]:
    length = sum(x * x for x in quaternion) ** 0.5
    if abs(length - 1.0) > 1e-6:
        raise problem(
            f"a quaternion (w, x, y, z) must have length 1 within 1e-6, this one has {length:.9g}",
            expected="a unit quaternion",
        )
    return quaternion


def unique(items: tuple[Any, ...]) -> tuple[Any, ...]:
    """Validator of a list whose entries have to differ."""
    seen = set()
    for item in items:
        if item in seen:
            raise problem(f"{item!r} appears twice", expected="different entries")
        seen.add(item)
    return items


def _unique_letters(axes: str) -> str:
    unique(tuple(axes))
    return axes


Direction = Annotated[
    tuple[Finite, Finite, Finite], _must(any, "a direction must not be zero", "a vector with a length above 0")
]
Quaternion = Annotated[tuple[Number, Number, Number, Number], AfterValidator(_unit_quaternion)]
Window = Annotated[
    tuple[Number, Number], _must(lambda w: w[0] < w[1], "a window must start before it ends", "[t0, t1] with t0 < t1")
]
Axes = Annotated[str, Field(pattern="^[xyz]{1,3}$"), AfterValidator(_unique_letters)]
Yes = Annotated[Flag, _must(bool, "only true makes sense here", "true"), Field(json_schema_extra={"const": True})]
NodeList = Annotated[tuple[Index, ...], Field(min_length=1), AfterValidator(unique)]

# --- strings -------------------------------------------------------------------------------------------------------

# No dots (paths into the scene use them), slashes (HDF5 groups) or angle brackets (tags).
Name = Annotated[str, Strict(), Field(pattern=r"^\w[\w +:-]*$", max_length=100)]
#: A side of a pair: a body, a link of an articulated one, an obstacle or a class.
SideName = Annotated[str, Strict(), Field(pattern=r"^\w[\w +:-]*(/\w[\w +:-]*)?$", max_length=200)]
#: A body, or a link of an articulated one: "a1/FR_foot".
BodyName = Annotated[SideName, Refers("body")]
MarkerName = Annotated[Name, Refers("marker")]
SignalName = Annotated[Name, Refers("signal")]
Text = Annotated[str, Strict()]
NonEmpty = Annotated[str, Strict(), Field(min_length=1)]
FilePath = Annotated[str, Strict(), Field(min_length=1, json_schema_extra={"format": "path"})]

Limit = tuple[Number | None, Number | None, Number | None]

NumberOrVectorSpec = Annotated[
    Number | Vector3,
    by_type("a number or [x, y, z]", number=(int, float), vector=(list, tuple)),
]

NumberOrListSpec = Annotated[
    Number | Annotated[tuple[Number, ...], Field(min_length=1)],
    by_type("a number or a list of numbers", number=(int, float), list=(list, tuple)),
]

TimeOrEndSpec = Annotated[
    NonNegative | Literal["end"],
    by_type('a time [s] or "end"', number=(int, float), text=str),
]
