"""Words and warnings of a ``result.json`` about contacts: impacts, depths of meshes, those on a border of two modes."""

import logging
from collections.abc import Mapping
from typing import Any

from add.summary import few

_log = logging.getLogger(__name__)


def impacts_of(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the impacts in a ``result.json``, those of all experiments."""
    return _entries(result, "impacts")


def _entries(result: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    parts = [result] if key in result else [result, *result.get("experiments", {}).values()]
    return [entry for part in parts for entry in part.get(key, [])]


def warn_of_impacts(result: Mapping[str, Any]) -> list[str]:
    """Log and return the warnings of a run: impacts of too few steps for the restitution that was asked for."""
    texts = _texts(result, "impacts")
    for text in texts:
        _log.warning("%s", text)
    return texts


#: Key of a result -> what its summary begins with.
_SAID = {"mesh_depths": "skins press deep into each other", "sunk": "bodies sank in", "gained": "not conserved"}
#: Pairs that one summary names.
_SHOWN = 3


def mesh_depths_of(result: Mapping[str, Any]) -> list[str]:
    """Return one text a pair of bodies whose skins used up half their reach, or that sank in, and on energy gained."""
    return [text for key in _SAID for text in _texts(result, key)]


def _texts(result: Mapping[str, Any], key: str) -> list[str]:
    return [pair["text"] for pair in _entries(result, key) if pair["warning"]]


def _summarise(head: str, texts: list[str]) -> None:
    if texts:
        _log.warning("%s: %s", head, few(texts, _SHOWN, " pairs", "; "))


def warn_of_mesh_depths(result: Mapping[str, Any]) -> list[str]:
    """Log one summary of each kind, if there are any, and return all texts."""
    for key, head in _SAID.items():
        _summarise(head, _texts(result, key))
    return mesh_depths_of(result)


def weak_contacts_of(result: Mapping[str, Any]) -> list[str]:
    """Return one text a pair that has contacts on the border of two modes, those of all experiments."""
    return [pair["text"] for pair in _entries(result, "weak_contacts")]


def warn_of_weak_contacts(result: Mapping[str, Any]) -> list[str]:
    """Log and return one summary, if there are any."""
    texts = weak_contacts_of(result)
    _summarise("weakly active contacts", texts)
    return texts
