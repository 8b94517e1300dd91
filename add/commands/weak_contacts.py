"""Contacts of a run on the border of two modes, by the names of what touches, and how well contacts are solved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

from add.hard_contact import contact_term
from add.model.impacts import names
from add.scene.build.built import BuiltScene
from add.simulation import ContactForces, WeakContact


@final
@dataclass
class WeakPair:
    """The weakly active contacts of a body and what it touches.

    Attributes
    ----------
    count : int
        Contacts, over all steps.
    first, last : float
        Times of the first and the last one [s].
    margin : float
        The least.
    """

    count: int = 0
    first: float = 0.0
    last: float = 0.0
    margin: float = 1.0


@final
@dataclass
class WeakLog:
    """Weakly active contacts step by step; it goes on where a run goes on.

    Attributes
    ----------
    seen : (body, other) -> WeakPair
    natural_map : float
        The worst of all steps.
    """

    seen: dict[tuple[str, str], WeakPair] = field(default_factory=dict)
    natural_map: float = 0.0

    def add(self, built: BuiltScene, time: float, solved: ContactForces) -> None:
        """Count those of a step that ends at ``time``."""
        self.natural_map = max(self.natural_map, solved.natural_map)
        for contact in solved.weak:
            found = self.seen.setdefault(_touching(built, contact), WeakPair(first=time))
            found.count, found.last, found.margin = found.count + 1, time, min(found.margin, contact.margin)

    def described(self) -> list[dict[str, Any]]:
        """Return the pairs for ``result.json``."""
        return [
            {"bodies": list(pair), **vars(found), "text": _text(pair, found)}
            for pair, found in sorted(self.seen.items(), key=lambda item: item[1].first)
        ]

    def plain(self) -> dict[str, Any]:
        """Return the log as JSON knows it."""
        seen = [[*pair, *vars(found).values()] for pair, found in self.seen.items()]
        return {"seen": seen, "natural_map": self.natural_map}

    @classmethod
    def parsed(cls, found: Mapping[str, Any]) -> WeakLog:
        """Return the log of which `plain` is the JSON.

        Raises
        ------
        ValueError, TypeError, KeyError
            If it is none.
        """
        seen = {
            (str(a), str(b)): WeakPair(int(count), float(first), float(last), float(margin))
            for a, b, count, first, last, margin in found["seen"]
        }
        return cls(seen, float(found["natural_map"]))


def _touching(built: BuiltScene, contact: WeakContact) -> tuple[str, str]:
    """Return the names of the body of the point, and of what carries the shape."""
    owners, columns = names(built.model)
    term = contact_term(built.model.system)[0]
    assert term is not None
    return owners[term.owner[contact.point]], columns[contact.shape]


def _text(pair: tuple[str, str], found: WeakPair) -> str:
    number = "1 contact is" if found.count == 1 else f"{found.count} contacts are"
    at = f"at t = {found.first:.6g} s" if found.count == 1 else f"from t = {found.first:.6g} to {found.last:.6g} s"
    return (
        f"{pair[0]} on {pair[1]}: {number} on the border of two modes, {at} (margin {found.margin:.1e}): derivatives "
        "there are one-sided"
    )
