"""How theta follows from the numbers of a scene: composed differentiable maps, built from small rules."""

from add.ties.base import Extended, Rule, Selected, Tie
from add.ties.copies import Copies, copies_of
from add.ties.directions import (
    AxesAcross,
    CarriedDirection,
    TiltedDirection,
    TiltVector,
    axes_across,
    tilt_between,
    unit_vector,
)
from add.ties.links import LinkPose
from add.ties.physics import DampingFromRestitution, LameFromYoung, WeightedSum
from add.ties.places import Distance, PlaceOnOther
from add.ties.solids import SolidMass

__all__ = [
    "AxesAcross",
    "CarriedDirection",
    "Copies",
    "DampingFromRestitution",
    "Distance",
    "Extended",
    "LameFromYoung",
    "LinkPose",
    "PlaceOnOther",
    "Rule",
    "Selected",
    "SolidMass",
    "Tie",
    "TiltVector",
    "TiltedDirection",
    "WeightedSum",
    "axes_across",
    "copies_of",
    "tilt_between",
    "unit_vector",
]
