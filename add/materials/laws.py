"""All elastic laws: a law's code is its place in `MATERIALS`, and one line here is all that adds it to the loops."""

from __future__ import annotations

from add.materials.base import Material
from add.materials.mooney_rivlin import MOONEY_RIVLIN
from add.materials.neo_hookean import NEO_HOOKEAN, NEO_HOOKEAN_CIARLET
from add.materials.st_venant_kirchhoff import ST_VENANT_KIRCHHOFF

MATERIALS: tuple[Material, ...] = (
    NEO_HOOKEAN,
    NEO_HOOKEAN_CIARLET,
    ST_VENANT_KIRCHHOFF,
    MOONEY_RIVLIN,
)


def material(name: str) -> Material:
    """Return the law of that name.

    Raises
    ------
    StopIteration
        If there is none.
    """
    return next(law for law in MATERIALS if law.name == name)
