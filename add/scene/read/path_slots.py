"""The places in a scene that name files: by those of the format, so that a body may have any name."""

from collections.abc import Iterator
from typing import Any

Pattern = tuple[str, ...]

_PLACES: tuple[Pattern, ...] = (
    ("bodies", "*", "mesh", "file"),
    ("bodies", "*", "mesh", "surface"),
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
"""Keys from the scene to a path; "*" is any name, or any number of a list."""


def path_slots(raw: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Iterate over (object, key, place) of each file path of a scene, also in experiments; tolerates wrong types."""
    yield from _below(raw, _PLACES, "")
    for k, item in enumerate(raw["experiments"] if isinstance(raw.get("experiments"), list) else ()):
        if isinstance(item, dict):
            at = f"experiments.{k}"
            yield from _below(item, (("recording", "file"),), f"{at}.")
            overrides = item.get("overrides")
            yield from _below(overrides if isinstance(overrides, dict) else {}, _PLACES, f"{at}.overrides.")


def _below(node: Any, patterns: tuple[Pattern, ...], place: str) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Walk along patterns; a key may go several steps at once, as the dotted paths of overrides do."""
    items: list[tuple[Any, Any]] = list(enumerate(node)) if isinstance(node, list) else []
    if isinstance(node, dict):
        items = list(node.items())
    for key, item in items:
        left = patterns
        for part in str(key).split("."):
            left = tuple(pattern[1:] for pattern in left if pattern and pattern[0] in (part, "*"))
        if any(not pattern for pattern in left):
            if isinstance(node, dict) and isinstance(item, str):
                yield node, key, f"{place}{key}"
        elif left and isinstance(item, dict | list):
            yield from _below(item, left, f"{place}{key}.")
