"""How theta follows from the numbers of a scene: composed differentiable maps, built from small rules."""

from add.ties.base import Copies, Extended, Rule, Selected, Tie, copies_of
from add.ties.directions import (
    AxesAcross,
    CarriedDirection,
    Distance,
    LinkPose,
    PlaceOnOther,
    PoseOnOther,
    TiltedDirection,
    TiltVector,
    axes_across,
    tilt_between,
    unit_vector,
)
from add.ties.physics import DampingFromRestitution, FlatLoss, LameFromYoung, Line, Multiple, SolidMass, WeightedSum

__all__ = [
    "AxesAcross",
    "CarriedDirection",
    "Copies",
    "DampingFromRestitution",
    "Distance",
    "Extended",
    "FlatLoss",
    "LameFromYoung",
    "Line",
    "LinkPose",
    "Multiple",
    "PlaceOnOther",
    "PoseOnOther",
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
