"""How values of scenes choose among the members of a union.

Members have tags in angle brackets ("<box>"), which the reader removes from the JSON path of an error; names in scenes
cannot contain such brackets.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple, Union, final, get_args

from pydantic import Discriminator, GetCoreSchemaHandler, Tag
from pydantic_core import CoreSchema

from add.errors import InputError


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
                    problem = f"an extension has the name of a kind of the format, '{value}'"
                    raise InputError(problem, found=found, expected="another one")
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
