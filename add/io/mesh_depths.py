"""Skins of meshes that press deep into each other, from a ``result.json``, as a warning."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

_log = logging.getLogger(__name__)

#: Pairs that one summary names.
_SHOWN = 3


def mesh_depths_of(result: Mapping[str, Any]) -> list[str]:
    """Return one text a pair of bodies that came nearer than half their reach, those of all experiments."""
    key = "mesh_depths"
    parts = [result] if key in result else [result, *result.get("experiments", {}).values()]
    return [pair["text"] for part in parts for pair in part.get(key, []) if pair["warning"]]


def warn_of_mesh_depths(result: Mapping[str, Any]) -> list[str]:
    """Log and return one summary, if there are any."""
    texts = mesh_depths_of(result)
    if not texts:
        return []
    more = f"; {len(texts) - _SHOWN} more pairs" if len(texts) > _SHOWN else ""
    _log.warning("skins press deep into each other: %s%s", "; ".join(texts[:_SHOWN]), more)
    return texts
