"""Contact: which points touch which shapes (detection), and what pushes back (laws)."""

from add.contact.coefficients import (
    FrictionLaw,
    NormalLaw,
    PairParameters,
    Sizes,
    point_growth,
)
from add.contact.formulas import CONSTANT_FRICTION, CurveNumber, FrictionCurve, NormalFormula
from add.contact.meshes import MeshContact, MeshPlaces
from add.contact.penalty_bodies import BodyContact
from add.contact.places import ContactPlaces

__all__ = [
    "CONSTANT_FRICTION",
    "BodyContact",
    "ContactPlaces",
    "CurveNumber",
    "FrictionCurve",
    "FrictionLaw",
    "MeshContact",
    "MeshPlaces",
    "NormalFormula",
    "NormalLaw",
    "PairParameters",
    "Sizes",
    "point_growth",
]
