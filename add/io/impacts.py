"""The impacts in a ``result.json``: what is said and warned of."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

_log = logging.getLogger(__name__)


def impacts_of(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the impacts in a ``result.json``, those of all experiments."""
    parts = [result, *result.get("experiments", {}).values()] if "impacts" not in result else [result]
    return [impact for part in parts for impact in part.get("impacts", [])]


def warn_of_impacts(result: Mapping[str, Any]) -> list[str]:
    """Log and return the warnings of a run: impacts of too few steps for the restitution that was asked for."""
    texts = [impact["text"] for impact in impacts_of(result) if impact["warning"]]
    for text in texts:
        _log.warning("%s", text)
    return texts
