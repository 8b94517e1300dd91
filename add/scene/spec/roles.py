"""Roles and limits of the numbers of a scene, by their paths, and the JSON Schema of the format."""

import json
import re
import types
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

import annotated_types
import numpy as np
from pydantic import BaseModel

from add.errors import InputError
from add.scene.spec import kinds
from add.scene.spec.common import Role, Spec, said_beside
from add.scene.spec.extension import NOTHING, Extension
from add.scene.spec.scene import SCHEMA, SceneSpec
from add.typing import BoolArray, FloatArray

#: Where a second path begins in the label of a number that several paths share.
_NEXT = re.compile(r"\+(?=(?:" + "|".join(SceneSpec.model_fields) + r")(?:\.|$|\[))")


class _Node(NamedTuple):
    """A place in the format: what may stand there, and what the numbers there are."""

    kind: Any
    role: Role | None


def role_of(path: str) -> Role:
    """Return what the scene format says that the number at a path is; the names in it need not exist.

    Raises
    ------
    InputError
        If the format has no such number, or does not say it.
    """
    nodes = [_Node(SceneSpec, None)]
    for key in path.split("."):
        below = [roles for node in nodes for roles in _below(node, key)]
        if not below and any(
            isinstance(part, type) and issubclass(part, BaseModel) for node in nodes for part in _parts(node.kind)
        ):
            raise InputError("the scene format has no such number", place=path)
        nodes = below or nodes  # an entry of a vector or table: what the whole is
    roles = {node.role for node in nodes}
    if len(roles) != 1 or None in roles:
        raise InputError("the scene format does not say whether this is a property or a state", place=path)
    return roles.pop()  # type: ignore[return-value]


def paths_of_label(label: str) -> list[str]:
    """Return the paths of the numbers that share a label of a result, such as ``bodies.b.mass+bodies.c.mass[0]``."""
    return _NEXT.split(label.partition("@")[0].partition("[")[0])


def roles_of_label(label: str) -> set[Role]:
    """Return the roles of the numbers that a label of a result means."""
    return {role_of(path) for path in paths_of_label(label)}


def _below(node: _Node, key: str) -> Iterator[_Node]:
    for part in _parts(node.kind):
        for inner in below(part, key):
            own = part.role if isinstance(part, type) and issubclass(part, Spec) else node.role
            yield _Node(inner, said_beside(inner, Role) or own)


def _parts(kind: Any) -> Iterator[Any]:
    """Iterate over the members of a union, and of unions within it."""
    for part, _ in members(kind):
        if part is kind:
            yield part
        else:
            yield from _parts(part)


def members(kind: Any) -> list[tuple[Any, str | None]]:
    """Return (type, tag) of each member of a union, which stays as it is under a tag; what is none has no tag."""
    how = None
    while get_origin(kind) is Annotated:
        how = next((item for item in kind.__metadata__ if isinstance(item, kinds.Branches)), how)
        kind = kind.__origin__
    if isinstance(kind, type) and issubclass(kind, Extension) and kind.own_name() is None:
        return [(known, None) for known in (kind, *kind.known().values())]
    if get_origin(kind) not in (Union, types.UnionType):
        return [(kind, None)]
    if how is None:
        return [member for branch in get_args(kind) if branch is not type(None) for member in members(branch)]
    out: list[tuple[Any, str | None]] = []
    for branch, tag in zip(get_args(kind), how.among(get_args(kind)).tags, strict=True):
        inner = members(branch)
        out += [(branch, tag)] if any(name for _, name in inner) else [(one, tag) for one, _ in inner]
    return out


def below(kind: Any, key: Any) -> Iterator[Any]:
    """Iterate over what stands under a key of a class, of a table or of a list of the format."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        for name, field in kind.model_fields.items():
            if (field.alias or name) == key:
                yield Annotated[field.annotation, None, *field.metadata]
    elif get_origin(kind) in (dict, tuple):
        yield get_args(kind)[get_origin(kind) is dict]


# --- Limits that the format sets to a number, by its path -------------------------------------------------------------

#: Of all numbers: what no one means is refused where files are read, arrays are not looked at for it.
_OF_ALL = (annotated_types.Ge(-kinds.LARGEST), annotated_types.Le(kinds.LARGEST))


#: Words of constraints -> the end that they limit, and whether it is excluded.
_ENDS = {"gt": ("low", True), "ge": ("low", False), "lt": ("high", True), "le": ("high", False)}


class Limits(NamedTuple):
    """Bounds of a number.

    Attributes
    ----------
    low, high : float
        -inf and inf where there is none.
    open_low, open_high : bool
        Whether the limit itself is excluded.
    """

    low: float = -np.inf
    high: float = np.inf
    open_low: bool = False
    open_high: bool = False

    def broken(self, values: FloatArray) -> BoolArray:
        """Return where values lie outside."""
        below = values <= self.low if self.open_low else values < self.low
        above = values >= self.high if self.open_high else values > self.high
        return np.asarray(below | above)

    def __str__(self) -> str:
        words = []
        if np.isfinite(self.low):
            words.append(f"{'>' if self.open_low else '>='} {self.low:g}")
        if np.isfinite(self.high):
            words.append(f"{'<' if self.open_high else '<='} {self.high:g}")
        return " and ".join(words) or "a finite number"


def limits(spec: BaseModel, path: str) -> Limits:
    """Return the limits of the numbers at a path into a scene; none where the format sets none."""
    node: Any = spec
    field: Any = None
    for key in path.split("."):
        if isinstance(node, BaseModel):
            info = type(node).model_fields.get(key)
            field, node = info, getattr(node, key, None)
        elif isinstance(node, dict):
            field, node = None, node.get(key)
        elif isinstance(node, list | tuple):
            node = {str(k): item for k, item in enumerate(node)}.get(key)
            if not isinstance(node, BaseModel):
                break  # an entry of a vector or table: the field's
        else:
            break
    out = Limits()
    for item in _constraints(field) if field is not None else ():
        if item in _OF_ALL:
            continue
        for word, (end, is_open) in _ENDS.items():
            if hasattr(item, word):
                out = out._replace(**{end: float(getattr(item, word)), f"open_{end}": is_open})  # type: ignore[arg-type]
    return out


def _constraints(item: Any) -> Iterator[Any]:
    """Iterate over all that is said about a field, into its containers and not into other models."""
    if isinstance(item, annotated_types.BaseMetadata):
        yield item
        return
    for part in getattr(item, "metadata", None) or ():
        yield from _constraints(part)
    for part in get_args(getattr(item, "annotation", item)):
        yield from _constraints(part)


# --- The JSON Schema of scene files -----------------------------------------------------------------------------------


_EVERY_NUMBER = (("minimum", -kinds.LARGEST), ("maximum", kinds.LARGEST))


def json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a scene file; editors complete and check from it.

    Checks across sections (names that refer to others, times inside the run) are the reader's alone.
    """
    schema = SceneSpec.model_json_schema(by_alias=True, mode="validation")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{SCHEMA.replace('/', ':')}",
        **_closed(schema),
        "title": f"Scene file of add ({SCHEMA})",
    }


def _closed(node: Any) -> Any:
    """Objects whose keys are names take no other keys, and a file says the kind of an object, which Python knows.

    The size that every number has at most is not said with each.
    """
    if isinstance(node, list):
        return [_closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    closed = {key: _closed(item) for key, item in node.items() if (key, item) not in _EVERY_NUMBER}
    for key in closed.keys() & {"oneOf", "anyOf"}:
        closed[key] = [item for item in closed[key] if item != NOTHING]
        if len(closed[key]) == 1:
            closed |= closed.pop(key)[0]
    if "patternProperties" in node:
        closed["additionalProperties"] = False
    kinds = [key for key, item in node.get("properties", {}).items() if isinstance(item, dict) and "const" in item]
    for key in kinds:
        closed["properties"][key].pop("default", None)
    if kinds:
        asked = {*kinds, *node.get("required", ())}
        closed["required"] = [key for key in node["properties"] if key in asked]
    return closed


def schema_text() -> str:
    """The schema as it is published, `docs/add-scene-1.schema.json`."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
