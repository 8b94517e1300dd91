"""Bodies that press too deep into each other, from a ``result.json``, as warnings."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

_log = logging.getLogger(__name__)

#: Key of a result -> what its summary begins with.
_SAID = {"mesh_depths": "skins press deep into each other", "sunk": "bodies sank in"}
#: Pairs that one summary names.
_SHOWN = 3


def mesh_depths_of(result: Mapping[str, Any]) -> list[str]:
    """Return one text a pair of bodies whose skins used up half their reach, or that sank in, of all experiments."""
    return [text for key in _SAID for text in _texts(result, key)]


def _texts(result: Mapping[str, Any], key: str) -> list[str]:
    parts = [result] if key in result else [result, *result.get("experiments", {}).values()]
    return [pair["text"] for part in parts for pair in part.get(key, []) if pair["warning"]]


def warn_of_mesh_depths(result: Mapping[str, Any]) -> list[str]:
    """Log one summary of each kind, if there are any, and return all texts."""
    for key, head in _SAID.items():
        texts = _texts(result, key)
        if texts:
            more = f"; {len(texts) - _SHOWN} more pairs" if len(texts) > _SHOWN else ""
            _log.warning("%s: %s%s", head, "; ".join(texts[:_SHOWN]), more)
    return mesh_depths_of(result)
