"""The shapes that points are tested against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from add.equations.kinematics import Kinematics
from add.equations.points import FrameMap
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class Shapes:
    """Signed-distance shapes on frames.

    Attributes
    ----------
    names : tuple of str
    kind : (k,) codes of `add.kernels.distance`
    size : (k, 3) [m]
    frames : FrameMap
        What carries the shapes, one frame each.
    """

    names: tuple[str, ...]
    kind: IntArray
    size: FloatArray
    frames: FrameMap

    def arguments(self, kin: Kinematics) -> tuple[IntArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return (kind, size, R, p, V, W) as the kernels take them."""
        frames = self.frames.frames(kin)
        return self.kind, self.size, frames.rotation, frames.position, frames.linear, frames.angular
