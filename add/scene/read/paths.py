"""Dotted paths into a scene: "bodies.ball.material.young", list entries by number as in "objective.0.weight"."""

import copy
import difflib
from itertools import islice
from typing import Any

from add.errors import InputError

_MISSING = object()


def nearest(word: str, known: Any) -> str | None:
    """The entry of `known` that looks most like `word`, if any does."""
    words = [str(item) for item in islice(known, 1000)]
    word = word[:200]
    lowered = {item.lower(): item for item in reversed(words)}
    close = difflib.get_close_matches(word.lower(), list(lowered), n=1, cutoff=0.6)
    return lowered[close[0]] if close else None


def _entry(node: Any, key: str) -> Any:
    if isinstance(node, dict):
        return node.get(key, _MISSING)
    if isinstance(node, list | tuple) and key.isascii() and key.isdigit() and int(key) < len(node):
        return node[int(key)]
    return _MISSING


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
            after = _plain(default) if default is not _MISSING and default is not None else {}
            node[key] = after
        node = after
    if isinstance(node, dict):
        node[last] = copy.deepcopy(value)
    elif isinstance(node, list) and _entry(node, last) is not _MISSING:
        node[int(last)] = copy.deepcopy(value)
    else:
        raise InputError(explain_missing(raw, path)[0], place=path)


def _plain(node: Any) -> Any:
    """Deep copy with lists for tuples, as JSON has them."""
    if isinstance(node, dict):
        return {key: _plain(item) for key, item in node.items()}
    return [_plain(item) for item in node] if isinstance(node, list | tuple) else node
