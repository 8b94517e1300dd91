"""Pressure, volume and energy of chambers, read out after a step."""

from typing import NamedTuple

from add.equations.kinematics import Kinematics
from add.model.build import Model
from add.terms import Chamber, Pressure
from add.typing import FloatArray


class ChamberState(NamedTuple):
    """The pressure above that around the body [Pa], and the volume of a closed chamber [m^3], NaN of an open one."""

    pressure: float
    volume: float


def storing_chambers(model: Model) -> list[Pressure | Chamber]:
    """Return the terms and equations of all chambers, over rows of X."""
    inner = [getattr(part, "inner", part) for part in model.system.constraints]
    return [*model.term(Pressure), *(part for part in inner if isinstance(part, Chamber))]


def chamber_states(model: Model, kin: Kinematics, mu: FloatArray, theta: FloatArray) -> dict[str, ChamberState]:
    """Return ``body/chamber`` -> pressure and volume at the end of a step, with its multipliers ``mu``."""
    at = model.lift.kinematics(kin, theta)
    out = {term.name: ChamberState(*term.state(at, theta)) for term in model.term(Pressure)}
    for constraint, part in model.system.parts:
        chamber = getattr(constraint, "inner", constraint)
        if isinstance(chamber, Chamber):
            out[chamber.name] = ChamberState(*chamber.state(at, mu[part]))
    return out
