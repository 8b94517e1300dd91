"""The volume mesh of a soft body in its rest state."""

from dataclasses import dataclass

import numpy as np

from add.errors import InputError
from add.geometry.elements import ElementFamily, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class SoftMesh:
    """Nodes and elements of one family.

    Attributes
    ----------
    points : (n, 3) rest positions [m]
    cells : (ne, nn) nodes of each element, counted from 0, in the order of `family`
    family : TET4, TET10 or HEX8

    Notes
    -----
    Only shapes are checked here. `add.geometry.validate` checks the rest and mends orientation; every mesh that comes
    from `add.io` has been through it.
    """

    points: FloatArray
    cells: IntArray
    family: ElementFamily

    def __post_init__(self) -> None:
        """Bring the arrays to C-ordered float64 and int64."""
        points = np.ascontiguousarray(self.points, dtype=np.float64)
        cells = np.ascontiguousarray(self.cells, dtype=np.int64)
        if points.ndim != 2 or points.shape[1] != 3:
            raise InputError("points of a mesh must be three-dimensional", found=points.shape, expected="shape (n, 3)")
        if cells.ndim != 2 or cells.shape[1] != self.family.n_nodes:
            raise InputError(
                f"elements of a {self.family.name} mesh have the wrong number of nodes",
                found=cells.shape,
                expected=f"shape (ne, {self.family.n_nodes})",
            )
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "cells", cells)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.points)

    @property
    def n_elements(self) -> int:
        """Number of elements."""
        return len(self.cells)
