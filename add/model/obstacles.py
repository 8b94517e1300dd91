"""What bodies meet: obstacles and the settings of contact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from add.contact import FrictionLaw
from add.typing import FloatArray


@final
@dataclass(frozen=True)
class Obstacle:
    """A shape of the world; ``kind`` and ``size`` as in `add.kernels.distance`."""

    name: str
    kind: int
    size: tuple[float, float, float]
    rotation: FloatArray
    position: FloatArray
    velocity: FloatArray


@final
@dataclass(frozen=True)
class ContactModel:
    """Contact settings that are not differentiated.

    Attributes
    ----------
    law : FrictionLaw
    per_area : bool
        Whether stiffness and damping count per rest area or per node.
    onset, ramp : float
        Depths [m]; see `add.kernels.contact_nodes`.
    total_normal : bool
    pulls : bool
        See `add.contact.PenaltyContact`.
    disabled : pairs (body, obstacle or other body) that pass through each other
    """

    law: FrictionLaw = FrictionLaw.LINEAR
    per_area: bool = False
    onset: float = 0.0
    ramp: float = 0.0
    total_normal: bool = False
    pulls: bool = False
    disabled: frozenset[tuple[str, str]] = frozenset()
