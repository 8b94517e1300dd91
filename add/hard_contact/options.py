"""Options of a solve with exact contact: stopping rules, and the way on where Newton cycles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from add.solve.step_equations import NewtonOptions


@final
@dataclass(frozen=True)
class ExactOptions:
    """Stopping rules, and the way on where Newton cycles.

    Attributes
    ----------
    newton : NewtonOptions
        Tolerances on the balance of forces, as without contact.
    gap : float
        Largest |g| of a contact that bears force [m].
    speed : float
        Largest |v_t| of one that sticks [m/s].
    max_iterations : int
        Of Newton, before projections are asked.
    projections : int
        Rounds of projections, each followed by Newton.
    sweeps : int
        Sweeps over the contacts a round.
    """

    newton: NewtonOptions = NewtonOptions()
    gap: float = 1e-13
    speed: float = 1e-13
    max_iterations: int = 30
    projections: int = 30
    sweeps: int = 400
