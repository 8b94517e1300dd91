"""Elastic laws, all of them formulas, and the loops over elements that evaluate them."""

from add.materials.base import DIRECTIONS, Material, Modulus
from add.materials.elements import ElementLoops, Elements, element_loops
from add.materials.formulas import INVARIANTS, Formula
from add.materials.laws import (
    COROTATED,
    GENT,
    HGO,
    HOLZAPFEL_OGDEN,
    MATERIALS,
    MOONEY_RIVLIN,
    NAMES,
    NEO_HOOKEAN,
    NEO_HOOKEAN_CIARLET,
    OGDEN,
    ST_VENANT_KIRCHHOFF,
    YEOH,
    formula_law,
    material,
)
from add.materials.relaxation import StressLoops, relaxing, stress_loops
from add.materials.silicones import SILICONES, SOURCE, Silicone
from add.materials.small_strain import LINEAR

__all__ = [
    "COROTATED",
    "DIRECTIONS",
    "GENT",
    "HGO",
    "HOLZAPFEL_OGDEN",
    "INVARIANTS",
    "LINEAR",
    "MATERIALS",
    "MOONEY_RIVLIN",
    "NAMES",
    "NEO_HOOKEAN",
    "NEO_HOOKEAN_CIARLET",
    "OGDEN",
    "SILICONES",
    "SOURCE",
    "ST_VENANT_KIRCHHOFF",
    "YEOH",
    "ElementLoops",
    "Elements",
    "Formula",
    "Material",
    "Modulus",
    "Silicone",
    "StressLoops",
    "element_loops",
    "formula_law",
    "material",
    "relaxing",
    "stress_loops",
]
