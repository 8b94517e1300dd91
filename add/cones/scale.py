"""The scale of the rows of a cone problem, by which tolerances and ranks mean the same for all masses."""

from __future__ import annotations

from add.cones.cones import Cones
from add.kernels.cone_solve import row_scale
from add.typing import FloatArray


def block_scale(G: FloatArray, cones: Cones) -> FloatArray:
    """Return one number a block, on its rows (m,): the inverse root of the mean diagonal; 1 where nothing moves."""
    found: FloatArray = row_scale(G, cones.blocks)
    return found
