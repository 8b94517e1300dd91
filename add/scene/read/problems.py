"""Problems of a scene in words: place, found, expected, nearest valid key."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from add.errors import InputError
from add.scene.read.paths import nearest
from add.scene.spec.roles import below, members
from add.scene.spec.scene import SceneSpec

_SHOWN = 5  # problems listed in one error
_LETTERS = 600  # of a part of one
_TRANSLATED = 200  # problems put into words at most
_TYPES = {
    "float_type": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "string_type": "a string",
    "tuple_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}
_LIMITS = {"greater_than": "gt", "greater_than_equal": "ge", "less_than": "lt", "less_than_equal": "le"}
_WORDS = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a scene."""

    place: str
    message: str
    found: str | None = None
    expected: str | None = None
    near: str | None = None

    def text(self) -> str:
        """`message (found ...; expected ...); did you mean '...'?`."""
        named = (("found", self.found), ("expected", self.expected))
        tail = "; ".join(f"{name} {_brief(value)}" for name, value in named if value is not None)
        near = f"; did you mean '{_brief(self.near)}'?" if self.near is not None else ""
        return f"{_brief(self.message)} ({tail}){near}" if tail else f"{_brief(self.message)}{near}"


def _brief(text: str) -> str:
    """Leave out the middle of a text that is too long for a sentence: names and paths may be of any length."""
    return text if len(text) <= _LETTERS else f"{text[: _LETTERS // 2]} ... {text[-_LETTERS // 4 :]}"


def raise_problems(problems: Sequence[Problem], source: Path | None) -> None:
    """Raise one InputError that lists the first few problems; return if there are none."""
    if not problems:
        return
    first, *others = problems
    head = f"{source}: " if source is not None else ""
    lines = [first.text(), *(f"{head}{_brief(item.place)}: {item.text()}" for item in others[: _SHOWN - 1])]
    if len(problems) > _SHOWN:
        lines.append(f"... and {len(problems) - _SHOWN} more")
    raise InputError("\n".join(lines), file=source, place=_brief(first.place))


def shown(value: Any) -> str:
    """A JSON value as it stands in the file, shortened."""
    if isinstance(value, dict):
        keys = ", ".join(f"'{key}'" for key in list(value)[:6])
        return f"an object with {keys}" if value else "an empty object"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def one_of(words: Iterable[str]) -> str:
    """`'a', 'b' or 'c'`."""
    quoted = [f"'{word}'" for word in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}" if quoted else "nothing"


def from_pydantic(error: ValidationError) -> list[Problem]:
    """The problems behind a validation error of `SceneSpec`."""
    problems = [_translate(item) for item in error.errors(include_url=False)[:_TRANSLATED]]
    # A misspelt required key is one mistake, not two.
    meant = {_sibling(item.place, item.near) for item in problems if item.message == _UNKNOWN and item.near is not None}
    return [item for item in problems if not (item.message == _MISSING and item.place in meant)]


#: Parts of a place that are no keys of the file: kinds, and that a key itself is meant.
_MARK = re.compile(r"<.*>|\[key\]")
_UNKNOWN = "unknown key"
_MISSING = "missing"


def _sibling(place: str, key: str) -> str:
    return ".".join([*place.split(".")[:-1], key])


def _translate(error: Any) -> Problem:
    loc, kind, value, context = error["loc"], error["type"], error["input"], error.get("ctx", {})
    keys = [str(part) for part in loc if not _MARK.fullmatch(str(part))]
    place = ".".join(keys) or "scene"
    about = _description(loc)

    if kind == "scene":
        found = context.get("found") or (shown(value) if "key" not in context and not isinstance(value, dict) else None)
        place = ".".join([*keys, *filter(None, [context.get("key")])])
        return Problem(place, context["message"], found, context.get("expected"))
    if kind == "branch":
        return _branch(keys, value, context)
    if kind == "extra_forbidden":
        known, key = sorted(_keys_of(_kinds(loc[:-1]))), str(loc[-1])
        place = ".".join([*(keys if keys[-1:] != [key] else keys[:-1]), key[:200]])
        near = _elsewhere(loc[:-1], key, known) or nearest(key, known)
        return Problem(place, _UNKNOWN, None, f"one of {', '.join(known)}", near)
    if kind == "missing":
        if isinstance(loc[-1], int):
            return Problem(".".join(keys[:-1]), "too few entries", shown(value), f"{_length(loc[:-1])} entries")
        return Problem(place, _MISSING, None, about)
    if kind == "literal_error":
        words = re.findall(r"'([^']*)'", context["expected"])
        near = nearest(value, words) if isinstance(value, str) else None
        return Problem(place, "unknown value", shown(value), f"one of {one_of(words)}" if words else None, near)
    if kind in _TYPES:
        expected = _TYPES[kind] + (f": {about}" if about else "")
        return Problem(place, "wrong type", shown(value), expected)
    if kind in _LIMITS:
        word = _LIMITS[kind]
        message = "impossible value"
        if keys and keys[-1] == "poisson" and word == "lt":
            message = "impossible Poisson's ratio: 0.5 is incompressible, which this material cannot be"
        limit = f"{_WORDS[word]} {context[word]:g}"
        return Problem(place, message, shown(value), f"{limit}: {about}" if about else limit)
    if kind == "finite_number":
        return Problem(place, "not a finite number", shown(value), about)
    if kind in ("too_short", "too_long"):
        limit = context.get("min_length", context.get("max_length"))
        few = "too few" if kind == "too_short" else "too many"
        least = "at least" if kind == "too_short" else "at most"
        return Problem(place, f"{few} entries", str(context.get("actual_length")), f"{least} {limit}")
    if kind.startswith("string_"):
        if "xyz" in str(context.get("pattern")):
            return Problem(place, "unknown axes", shown(value), "any of x, y, z, such as 'xz'")
        expected = "a non-empty string" if value == "" else "letters, digits, '_', '-', '+', ':' and spaces; no dots"
        return Problem(place, "not a valid name", shown(value), expected)
    return Problem(place, error["msg"], shown(value))


def _branch(keys: list[str], value: Any, context: dict[str, Any]) -> Problem:
    """A union whose branch could not be chosen."""
    place = ".".join(keys)
    if "keys" in context:
        expected = f"an object with {one_of(context['keys'])}"
        if not isinstance(value, dict):
            return Problem(place, "wrong type", shown(value), expected)
        near = next(filter(None, (nearest(key, context["keys"]) for key in value)), None)
        return Problem(place, "does not say which kind it is", shown(value), expected, near)
    if "key" not in context:
        return Problem(place, "wrong type", shown(value), context["expected"])
    further = context.get("further")
    words = [*context["expected"], *(further.known() if further else ())]
    key, kinds = context["key"], one_of(words)
    if not isinstance(value, dict):
        return Problem(place, "wrong type", shown(value), f"an object with '{key}' {kinds}")
    if key in value:
        near = nearest(value[key], words) if isinstance(value[key], str) else None
        brings = "" if further is None or near else "; files with further kinds come by `add --extension FILE`"
        return Problem(f"{place}.{key}", "unknown kind", shown(value[key]), kinds + brings, near)
    close = nearest(key, value)
    if close is not None:
        return Problem(f"{place}.{close}", _UNKNOWN, None, None, key)
    return Problem(f"{place}.{key}", _MISSING, None, kinds)


# --- what the format says about a place -------------------------------------------------------------------------------


def _descend(kinds: list[tuple[Any, str | None]], part: Any) -> list[tuple[Any, str | None]]:
    if isinstance(part, str) and re.fullmatch("<.*>", part):
        return [member for kind, tag in kinds if tag in (part, None) for member in members(kind)]
    return [member for kind, _ in kinds for inner in below(kind, part) for member in members(inner)]


def _kinds(loc: Sequence[Any]) -> list[Any]:
    kinds: list[tuple[Any, str | None]] = [(SceneSpec, None)]
    for part in loc:
        kinds = _descend(kinds, part)
    return [kind for kind, _ in kinds]


def _length(loc: Sequence[Any]) -> int:
    """Number of entries of the fixed-length list at a place."""
    return max((len(get_args(kind)) for kind in _kinds(loc) if get_origin(kind) is tuple), default=0)


def _keys_of(kinds: Iterable[Any]) -> set[str]:
    models = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
    return {field.alias or name for model in models for name, field in model.model_fields.items()}


def _elsewhere(loc: Sequence[Any], key: str, known: Sequence[str]) -> str | None:
    """Return the place of an object above, right below, or first in a list there, that has the key."""
    above = [loc[:end] for end in range(len(loc) - 1, -1, -1) if not _MARK.fullmatch(str(loc[end]))]
    for there in (*above, *((*loc, name) for name in known), *((*loc, name, 0) for name in known)):
        kinds: list[Any] = []
        for kind in (wanted := _kinds(there)):  # which grows by what stands in its unions, and by extensions
            if kind not in kinds:
                kinds.append(kind)
                wanted += [member for member, _ in members(kind)]
        if key in _keys_of(kinds):
            return ".".join([*(str(part) for part in there if not _MARK.fullmatch(str(part))), key])
    return None


def _description(loc: Sequence[Any]) -> str | None:
    """Description of the innermost field that holds the place."""
    kinds: list[tuple[Any, str | None]] = [(SceneSpec, None)]
    about = None
    for part in loc:
        for kind, _ in kinds:
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                named = {field.alias or name: field for name, field in kind.model_fields.items()}
                about = named[part].description if part in named else about
        kinds = _descend(kinds, part)
    return about
