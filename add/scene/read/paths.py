"""Dotted paths into a scene: "bodies.ball.material.young", list entries by number as in "objective.0.weight"."""

import copy
import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from add.errors import InputError
from add.summary import few

_MISSING = object()
#: What has entries and is no list.
_WORDS = (str, bytes, bytearray)


def nearest(word: str, known: Any) -> str | None:
    """The entry of `known` that looks most like `word`, if any does."""
    words = [str(item) for item in islice(known, 1000)]
    word = word[:200]
    lowered = {item.lower(): item for item in reversed(words)}
    close = difflib.get_close_matches(word.lower(), list(lowered), n=1, cutoff=0.6)
    return lowered[close[0]] if close else None


def meant(word: str, known: Any) -> str:
    """Return "; did you mean '...'?" with the entry of `known` that looks most like `word`, or nothing."""
    close = nearest(word, known)
    return f"; did you mean '{close}'?" if close else ""


def require_known(kind: str, name: str, known: Collection[str], place: str) -> None:
    """Refuse a name that is none of the known ones.

    Raises
    ------
    InputError
        With the nearest of them, and a list.
    """
    if name not in known:
        expected = f"one of {few([repr(str(item)) for item in known], 12)}" if known else f"a {kind}, and there is none"
        said = f"there is no {kind} of this name{meant(name, known)}"
        raise InputError(said, place=place, found=f"'{name}'", expected=expected)


def _entry(node: Any, key: str) -> Any:
    if isinstance(node, dict):
        return node.get(key, _MISSING)
    if isinstance(node, list | tuple) and key.isascii() and key.isdigit() and int(key) < len(node):
        return node[int(key)]
    return _MISSING


def entries(node: Any) -> Iterable[tuple[Any, Any]]:
    """Return (key or position, value) of what an object or a list holds; nothing of anything else."""
    return node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list | tuple) else ()


def explain_missing(data: Any, path: str) -> tuple[str, str | None]:
    """Why `path` is not in `data`, and the nearest path that is."""
    keys = path.split(".")
    for k, key in enumerate(keys):
        after = _entry(data, key)
        if after is _MISSING:
            where = f"'{'.'.join(keys[:k])}'" if k else "the scene"
            if isinstance(data, dict):
                close = nearest(key, data)
                mended = None if close is None else ".".join([*keys[:k], close, *keys[k + 1 :]])
                return f"{where} has no '{key}'", mended
            if isinstance(data, list | tuple):
                return f"{where} has {len(data)} entries, none is '{key}'", None
            return (f"{where} is not given" if data is None else f"{where} has no parts"), None
        data = after
    return "is there", None


def get_value(data: Any, path: str) -> Any:
    """Value at a dotted path of a scene's dictionary; InputError if it is not there.

    `scene.full()` has the defaults too, `scene.raw` only what the file says.
    """
    node = data
    for key in path.split("."):
        node = _entry(node, key)
        if node is _MISSING:
            message, close = explain_missing(data, path)
            raise InputError(message + (f"; did you mean '{close}'?" if close else ""), place=path)
    return node


def set_value(raw: dict[str, Any], path: str, value: Any, defaults: dict[str, Any] | None = None) -> None:
    """Write `value` at a dotted path of `raw`, in place.

    A part that `raw` leaves out is copied from `defaults` (the full scene) when it has it, and made as an object else.
    """
    *parents, last = path.split(".")
    node: Any = raw
    default: Any = defaults
    for key in parents:
        default = _entry(default, key)
        after = _entry(node, key)
        if after is _MISSING or after is None:
            if not isinstance(node, dict):
                raise InputError(explain_missing(raw, path)[0], place=path)
            after = plain(default) if default is not _MISSING and default is not None else {}
            node[key] = after
        node = after
    if isinstance(node, dict):
        node[last] = copy.deepcopy(value)
    elif isinstance(node, list) and _entry(node, last) is not _MISSING:
        node[int(last)] = copy.deepcopy(value)
    else:
        raise InputError(explain_missing(raw, path)[0], place=path)


def plain(value: Any) -> Any:
    """Return objects of the format, arrays and tuples as dictionaries, lists and numbers."""
    if isinstance(value, BaseModel):
        kinds = {key: getattr(value, key) for key in ("type", "shape", "model") if key in type(value).model_fields}
        fields = type(value).model_fields.items()
        given = {of.alias or key: getattr(value, key) for key, of in fields if key in value.model_fields_set}
        return plain(kinds | given)
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        raise InputError("a set has no order", found=f"{value!r:.80}", expected="a list")
    if hasattr(value, "tolist"):
        return value.tolist()
    return [plain(item) for item in value] if isinstance(value, Iterable) and not isinstance(value, _WORDS) else value


Pattern = tuple[str, ...]

#: Keys from the scene to a path; "*" is any name, or any number of a list.
_PLACES: tuple[Pattern, ...] = (
    ("bodies", "*", "mesh", "file"),
    ("bodies", "*", "rest", "file"),
    ("bodies", "*", "mesh", "surface"),
    ("bodies", "*", "muscles", "*", "fibres", "file"),
    ("bodies", "*", "material", "*", "file"),
    ("bodies", "*", "material", "*", "*", "file"),
    ("bodies", "*", "regions", "*", "material", "*", "file"),
    ("bodies", "*", "regions", "*", "material", "*", "*", "file"),
    ("bodies", "*", "geometry", "file"),
    ("bodies", "*", "model"),
    ("bodies", "*", "srdf"),
    ("bodies", "*", "packages", "*"),
    ("bodies", "*", "links", "*", "shapes", "*", "geometry", "file"),
    ("obstacles", "*", "file"),
    ("objective", "*", "positions_file"),
    ("objective", "*", "file"),
    ("recording", "file"),
    ("uncertainty", "convergence"),
)


def path_slots(raw: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Iterate over (object, key, place) of each file path of a scene, also in experiments; tolerates wrong types."""
    yield from _below(raw, _PLACES, "")
    for k, item in enumerate(raw["experiments"] if isinstance(raw.get("experiments"), list) else ()):
        if isinstance(item, dict):
            at = f"experiments.{k}"
            yield from _below(item, (("recording", "file"),), f"{at}.")
            overrides = item.get("overrides")
            yield from _below(overrides if isinstance(overrides, dict) else {}, _PLACES, f"{at}.overrides.")


def within(raw: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return a scene whose paths into a folder count from there, so that the folder may be moved with what it holds.

    However both are written: by "..", or by a link to a folder above.
    """
    raw, whole = copy.deepcopy(raw), folder.resolve()
    for node, key, _ in path_slots(raw):
        path = Path(node[key])
        if path.is_absolute() and (path := path.parent.resolve() / path.name).is_relative_to(whole):
            node[key] = path.relative_to(whole).as_posix()
    return raw


def _below(node: Any, patterns: tuple[Pattern, ...], place: str) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Walk along patterns; a key may go several steps at once, as the dotted paths of overrides do."""
    for key, item in list(entries(node)):
        left = patterns
        for part in str(key).split("."):
            left = tuple(pattern[1:] for pattern in left if pattern and pattern[0] in (part, "*"))
        if any(not pattern for pattern in left):
            if isinstance(node, dict) and isinstance(item, str):
                yield node, key, f"{place}{key}"
        elif left and isinstance(item, dict | list):
            yield from _below(item, left, f"{place}{key}.")


@contextmanager
def asked_for_by(place: str, *, of_scene: bool = True) -> Iterator[None]:
    """Let an error in a file say which file it is and which place of the scene asked for it.

    Parameters
    ----------
    place : JSON path of what names the file. The error's own `file` and `place`, if it has any, go to the front of its
        message, since whoever builds the scene writes the scene's there.
    of_scene : whether a place without a file is one of the scene
    """
    try:
        yield
    except InputError as error:
        if error.file is not None or not of_scene:
            parts = (error.file, error.place, error.message)
            error.message = ": ".join(str(part) for part in parts if part is not None)
            error.file, error.place = None, place
        elif error.place is None:
            error.place = place
        raise


@contextmanager
def about_robot(model: str | None) -> Iterator[None]:
    """Let an error of an articulated body name the robot's file and the mesh that it is about, before its message.

    Parameters
    ----------
    model : the robot's file; None of a tree that the scene writes down
    """
    try:
        yield
    except InputError as error:
        if error.file is not None:
            error.message, error.file = f"{error.file}: {error.message}", None
        if model is not None and model not in str(error):
            error.message = f"{model}: {error.message}"
        raise
