"""Contact: which points touch which shapes (detection), and what pushes back (laws)."""

from add.contact.formulas import (
    CONSTANT_FRICTION,
    CurveNumber,
    FrictionCurve,
    FrictionLaw,
    NormalFormula,
    NormalLaw,
    PairParameters,
)
from add.contact.meshes import MeshContact
from add.contact.penalty_bodies import BodyContact
from add.contact.sizes import Sizes, point_growth
