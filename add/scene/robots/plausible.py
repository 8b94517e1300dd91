"""Numbers of a robot that are none, or that no robot has."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from add.scene.robots.xml_file import LARGEST_NUMBER, Source

#: Infinite where there is no limit.
_LIMITS = frozenset({"lower", "upper", "effort", "velocity", "control", "force", "activation"})


def require_plausible(source: Source, kind: str, item: Any) -> None:
    """Refuse NaN, and infinite or huge numbers where they are no limits, in a part of a `Robot`.

    Raises
    ------
    InputError
        naming the part and its field.
    """
    place = source.place(kind, item.name)
    for entry in fields(item):
        value = getattr(item, entry.name)
        if value is None or isinstance(value, str) or entry.name == "segments":  # sums of places that were checked
            continue
        if entry.name in ("collision", "visual"):
            for shape in value:
                require_plausible(source, f"shape of {place}:", shape)
            continue
        flat = value if isinstance(value, np.ndarray) else np.array(list(_numbers(value)), dtype=np.float64)
        wrong = np.isnan(flat) if entry.name in _LIMITS else ~(np.abs(flat) <= LARGEST_NUMBER)
        if wrong.any():
            found = f"{entry.name} = {flat[wrong][0]:g}"
            source.fail(place, "an impossible number", found, f"finite numbers below {LARGEST_NUMBER:g}")


def _numbers(value: Any) -> Any:
    """Yield the numbers of nested tuples."""
    if isinstance(value, tuple):
        for part in value:
            yield from _numbers(part)
    elif not isinstance(value, str):
        yield float(value)
