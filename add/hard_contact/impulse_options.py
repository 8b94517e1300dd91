"""How contacts in velocities touch, bounce and are kept from sinking in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class ImpulseOptions:
    """Numbers of the contact law of `ImpulseContact`.

    Attributes
    ----------
    stabilisation : float
        kappa: the share of a penetration that a step takes back, in [0, 1]. Below one, the rows of four corners on a
        plane, of which some are above and some below it by round-off, contradict each other.
    stabilisation_speed : float
        The most that it does so with [m/s]: a body that starts inside a shape is not thrown out.
    touching : float
        Gap up to which a pair counts as touching when it may bounce [m].
    """

    stabilisation: float = 1.0
    stabilisation_speed: float = 1.0
    touching: float = 1e-6
