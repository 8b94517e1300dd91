"""How theta follows from the numbers of a scene: composed differentiable maps, built from small rules."""

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
from add.ties.rules import (
    Begun,
    DampingFromRestitution,
    Extended,
    FlatLoss,
    LameFromYoung,
    Line,
    Rule,
    Selected,
    SolidMass,
    Tie,
    WeightedSum,
    copies_of,
)
