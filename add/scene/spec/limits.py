"""Limits that the format sets to a number, by its path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, get_args

import annotated_types
import numpy as np
from pydantic import BaseModel

from add.scene.spec.common import LARGEST
from add.typing import BoolArray, FloatArray

#: Of all numbers: what no one means is refused where files are read, arrays are not looked at for it.
_OF_ALL = (annotated_types.Ge(-LARGEST), annotated_types.Le(LARGEST))


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
        else:
            break  # an entry of a vector or table: the field's
    out = Limits()
    for item in _constraints(field) if field is not None else ():
        if item in _OF_ALL:
            continue
        if isinstance(item, annotated_types.Gt):
            out = out._replace(low=float(item.gt), open_low=True)  # type: ignore[arg-type]
        elif isinstance(item, annotated_types.Ge):
            out = out._replace(low=float(item.ge), open_low=False)  # type: ignore[arg-type]
        elif isinstance(item, annotated_types.Lt):
            out = out._replace(high=float(item.lt), open_high=True)  # type: ignore[arg-type]
        elif isinstance(item, annotated_types.Le):
            out = out._replace(high=float(item.le), open_high=False)  # type: ignore[arg-type]
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
