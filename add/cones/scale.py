"""The scale of the rows of a cone problem, by which tolerances and ranks mean the same for all masses."""

from __future__ import annotations

import numpy as np

from add.cones.cones import Cones
from add.typing import FloatArray


def block_scale(G: FloatArray, cones: Cones) -> FloatArray:
    """Return one number a block, on its rows (m,): the inverse root of the mean diagonal; 1 where nothing moves."""
    trace = np.bincount(cones.block_of_row, np.diagonal(G), minlength=cones.kind.size) / np.maximum(cones.sizes, 1)
    floor = 1e-14 * trace.max(initial=0.0)
    per_block = np.where(trace > floor, 1.0 / np.sqrt(np.maximum(trace, 1e-300)), 1.0)
    return np.asarray(per_block[cones.block_of_row])
