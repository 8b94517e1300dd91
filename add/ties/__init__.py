"""How theta follows from the numbers of a scene: composed differentiable maps, built from small rules."""

from add.ties.base import Extended, Rule, Selected, Tie, copies_of
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
from add.ties.physics import DampingFromRestitution, FlatLoss, LameFromYoung, Line, SolidMass, WeightedSum
