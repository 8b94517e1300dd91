"""Elastic laws, one file each, and the loops over elements that evaluate them."""

from add.materials.base import Material, Modulus
from add.materials.elements import ElementLoops, element_loops
from add.materials.laws import MATERIALS, material
from add.materials.mooney_rivlin import MOONEY_RIVLIN
from add.materials.neo_hookean import NEO_HOOKEAN, NEO_HOOKEAN_CIARLET
from add.materials.st_venant_kirchhoff import ST_VENANT_KIRCHHOFF

__all__ = [
    "MATERIALS",
    "MOONEY_RIVLIN",
    "NEO_HOOKEAN",
    "NEO_HOOKEAN_CIARLET",
    "ST_VENANT_KIRCHHOFF",
    "ElementLoops",
    "Material",
    "Modulus",
    "element_loops",
    "material",
]
