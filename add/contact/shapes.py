"""The shapes that points are tested against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from add.equations.kinematics import Kinematics
from add.equations.points import FrameMap
from add.kernels import contact_pairs as kernel
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class Shapes:
    """Signed-distance shapes on frames.

    Attributes
    ----------
    names : tuple of str
    kind : (k,) codes of `add.kernels.distance`
    size : (k, m) [m]
        Three numbers of each shape, or the row of a mesh.
    frames : FrameMap
        What carries the shapes, one frame each.
    """

    names: tuple[str, ...]
    kind: IntArray
    size: FloatArray
    frames: FrameMap

    def at(self, kin: Kinematics) -> kernel.Shapes:
        """Return the shapes at a state as the kernels take them."""
        frames = self.frames.frames(kin)
        return kernel.Shapes(self.kind, self.size, frames.rotation, frames.position, frames.linear, frames.angular)
