"""The origin of tracked displacements in a run, and products of matrices with the vectors of points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from add.equations.tangents import Columns
from add.typing import FloatArray


@final
@dataclass
class Origin:
    """The places of the points of one run at the time from which displacements count.

    Attributes
    ----------
    place : (n_points, 3), None before the run gets there [m]
    bar : (n_points, 3)
        Sum of the cotangents of ``place`` from all frames that were pulled back.
    tangents : tangents of ``place`` that Gauss-Newton keeps, None before the run gets there
    """

    place: FloatArray | None = None
    bar: FloatArray | None = None
    tangents: Columns | None = None


def times_each(matrices: FloatArray | None, vectors: FloatArray) -> FloatArray:
    """Return M_p v_p of every point and direction; without matrices the vectors."""
    return vectors if matrices is None else np.einsum("pij,pj...->pi...", matrices, vectors)
