"""Places and forces of contact between bodies, for display."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class ContactPlaces:
    """The places where bodies touch, for display.

    Attributes
    ----------
    place : (k, 3) world places [m]
    force : (k, 3) force on the point's body there [N]; the shape's body takes minus that
    point, shape : (k,) what touches what
    """

    place: FloatArray
    force: FloatArray
    point: IntArray
    shape: IntArray
