"""The complementarity-aware choice of the backward pass (Werling et al. 2021): a second look with other modes.

The exact derivative of what rests is zero, and so is that of a force on what is held down. Where the objective wants a
contact to open, by the cotangent of its normal velocity, c_bar = G^+ J y < 0 with y = K^-T u_bar, the step is pulled
back once more with that contact separate, and with those closed that it wants to close; of both ways the one with the
larger cotangent of loads is handed on. It is a heuristic and no derivative: forward tangents do not exist.
"""

from __future__ import annotations

from typing import final

import numpy as np

from add.cones import Cones
from add.kernels.cone_modes import SEPARATE, STICK
from add.kernels.cones import FREE
from add.typing import FloatArray, IntArray

#: Cotangents of normal velocities below this share of the largest cotangent say nothing.
_NOTHING = 1e-9


@final
class ChoiceTally:
    """Steps with contact that were pulled back, and those in which the other modes were taken."""

    def __init__(self) -> None:
        self.steps = 0
        self.other = 0

    def add(self, other: bool) -> None:
        """Count a step."""
        self.steps += 1
        self.other += int(other)

    def __str__(self) -> str:
        return f"other modes than those of the motion in {self.other} of {self.steps} steps with contact"


def wanted_modes(G: FloatArray, cotangent: FloatArray, cones: Cones, modes: IntArray) -> IntArray:
    """Return the modes (k,) that the objective asks for.

    Parameters
    ----------
    G : (m, m) Delassus's operator
    cotangent : (m,) J y
    cones, modes : of the solution
    """
    by_velocity = np.linalg.pinv(G, rcond=1e-10) @ cotangent
    normal = by_velocity[cones.first + cones.sizes - 1]
    least = _NOTHING * np.abs(by_velocity).max(initial=0.0)
    out = np.where((normal > least) & (modes == SEPARATE), STICK, np.where(normal < -least, SEPARATE, modes))
    return np.where(cones.kind == FREE, modes, out)
