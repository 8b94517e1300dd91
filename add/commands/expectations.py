"""The numbers that a scene says its runs should give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from add.errors import InputError
from add.scene import Scene


@final
@dataclass(frozen=True)
class Expectation:
    """One expected number and what was found."""

    path: str
    found: Any
    expected: str
    passed: bool


def _lookup(node: Any, keys: list[str]) -> Any:
    """Return the entry at a path; names of parameters have dots of their own."""
    if not keys:
        return node
    if isinstance(node, dict):
        for cut in range(len(keys), 0, -1):
            name = ".".join(keys[:cut])
            if name in node:
                return _lookup(node[name], keys[cut:])
    if isinstance(node, list) and keys[0].isdigit() and int(keys[0]) < len(node):
        return _lookup(node[int(keys[0])], keys[1:])
    return None


def check_expectations(scene: Scene, command: str, result: dict[str, Any]) -> list[Expectation]:
    """Compare a result with the scene's ``expect`` entries of this command.

    Raises
    ------
    InputError
        If an entry names something that the result does not have.
    """
    out = []
    for path, item in scene.expect.get(command, {}).items():
        found = _lookup(result, path.split("."))
        if found is None:
            raise InputError(
                "the result has no such number",
                file=scene.source,
                place=f"expect.{command}.{path}",
                expected=", ".join(result),
            )
        try:
            number = np.asarray(found, dtype=float)
        except (TypeError, ValueError):
            raise InputError(
                "this is no number of the result",
                file=scene.source,
                place=f"expect.{command}.{path}",
                found=f"an entry with {', '.join(found)}" if isinstance(found, dict) else repr(found),
            ) from None
        passed, wanted = True, []
        if item.value is not None:
            value = np.asarray(item.value, dtype=float)
            room = (item.abs_tol or 0.0) + (item.rel_tol or 0.0) * np.abs(value)
            passed &= number.shape == value.shape and bool(np.all(np.abs(number - value) <= room))
            wanted.append(f"{value.tolist()} +- {np.max(room):.3g}")
        if item.min is not None:
            passed &= bool(np.all(number >= item.min))
            wanted.append(f">= {item.min:g}")
        if item.max is not None:
            passed &= bool(np.all(number <= item.max))
            wanted.append(f"<= {item.max:g}")
        out.append(Expectation(path, number.tolist(), ", ".join(wanted), passed))
    return out


def checks_of(scene: Scene, command: str, result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the comparison as it stands in ``result.json``."""
    return {
        item.path: {"passed": item.passed, "value": item.found, "expected": item.expected}
        for item in check_expectations(scene, command, result)
    }
