"""Elastic laws and laws of viscosity, all of them formulas, and the loops over elements that evaluate them."""

from add.materials.elements import Elements, cauchy_stress, linear_moduli
from add.materials.formulas import DIRECTIONS, INVARIANTS, Formula, Material, called
from add.materials.laws import (
    FOAMS,
    GENT,
    HYPERFOAM,
    LINEAR,
    MATERIALS,
    MOONEY_RIVLIN,
    NAMES,
    NEO_HOOKEAN,
    NEO_HOOKEAN_CIARLET,
    SILICONES,
    ST_VENANT_KIRCHHOFF,
    YEOH,
    formula_law,
    material,
)
from add.materials.relaxation import relaxing
from add.materials.viscosity import (
    NEWTONIAN,
    POWER_LAW,
    RATES,
    Dissipation,
    called_dissipation,
    dissipation_law,
)
