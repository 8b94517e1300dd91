"""A joint law of its own: an air spring, whose force grows as the gas in it is pressed together."""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np
from pydantic import Field

from add.extensions import NonNegative, PairExtension, Positive
from add.joints.law import PLACE, Law
from add.joints.law_term import JointLaw
from add.kernels.caching import njit
from add.kernels.springs import line_law


@njit(cache=True, error_model="numpy")
def _gas(length, rate, p, slopes):
    """Pull F = -F_0 (L/l)^gamma + c l_dot with its slopes by F_0, gamma, c, L; F by l and l_dot."""
    ratio = (p[3] / length) ** p[1]
    slopes[0], slopes[1], slopes[2] = -ratio, -p[0] * ratio * np.log(p[3] / length), rate
    slopes[3] = -p[0] * p[1] * ratio / p[3]
    return -p[0] * ratio + p[2] * rate, p[0] * p[1] * ratio / length, p[2]


_FORCE, _DERIVATIVES = line_law("air_spring", _gas)


@final
@dataclass(frozen=True)
class AirSpringTerm(JointLaw):
    """Central force f_a = (F_0 (L/l)^gamma - c l_dot) n. Columns: F_0 [N], gamma [-], c [N s/m], L [m]."""

    law: ClassVar[Law] = Law("AirSpringTerm", _FORCE, _DERIVATIVES, (PLACE, PLACE), 4)


class AirSpring(PairExtension):
    """An air spring between two places: pushes with F_0 (L/l)^gamma."""

    term = AirSpringTerm
    columns: ClassVar[dict[str, str]] = {"force": "N", "exponent": "-", "damping": "N s/m", "length": "m"}

    type: Literal["air-spring"] = Field("air-spring", description="kind of coupling")
    force: Positive = Field(description="F_0, what it pushes with at its length [N]")
    exponent: Positive = Field(1.4, description="gamma: 1 of slow, 1.4 of fast motions [-]")
    damping: NonNegative = Field(0.0, description="damping along the line [N s/m]")
    length: Positive = Field(description="L [m]")
