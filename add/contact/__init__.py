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
from add.kernels.contact_arrays import Sizes, point_growth
