"""Weakly active contacts in a ``result.json``, as warnings."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

_log = logging.getLogger(__name__)

#: Pairs that one summary names.
_SHOWN = 3


def weak_contacts_of(result: Mapping[str, Any]) -> list[str]:
    """Return one text a pair that has contacts on the border of two modes, those of all experiments."""
    key = "weak_contacts"
    parts = [result] if key in result else [result, *result.get("experiments", {}).values()]
    return [pair["text"] for part in parts for pair in part.get(key, [])]


def warn_of_weak_contacts(result: Mapping[str, Any]) -> list[str]:
    """Log and return one summary, if there are any."""
    texts = weak_contacts_of(result)
    if not texts:
        return []
    more = f"; {len(texts) - _SHOWN} more pairs" if len(texts) > _SHOWN else ""
    _log.warning("weakly active contacts: %s%s", "; ".join(texts[:_SHOWN]), more)
    return texts
