"""The origin of tracked displacements in a run, and products of matrices with the vectors of points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from add.equations.tangents import Columns
from add.typing import FloatArray, IntArray


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


def less_origin(
    found: Columns,
    origin: Columns,
    weights: FloatArray,
    projector: FloatArray,
    matrices: Mapping[int, FloatArray],
    frames: IntArray,
) -> Columns:
    """Return the tangents of residuals with those of the place subtracted from which displacements count.

    Parameters
    ----------
    found : tangents of the residuals of some frames, that place held
    origin : its tangents (3 n_points, c)
    weights : (n_frames, n_points) of these frames
    projector : (3, 3)
    matrices : frame -> derivatives of its residuals by the distances (n_points, 3, 3); empty without a loss
    frames : (n_frames,) their numbers
    """
    if not origin.index.size:  # no parameter moves it
        return found
    index = np.union1d(found.index, origin.index)
    values = np.zeros((found.values.shape[0], index.size))
    values[:, np.searchsorted(index, found.index)] = found.values
    places = np.searchsorted(index, origin.index)
    first, moved = 0, origin.values.reshape(-1, 3, origin.index.size)
    for frame, weight in zip(frames, weights, strict=True):
        seen = weight > 0.0
        rows = np.einsum("pik,ij->pjk", moved[seen], projector)
        if matrices:
            rows = np.einsum("pij,pjk->pik", matrices[int(frame)][seen], rows)
        rows = np.sqrt(weight[seen])[:, None, None] * rows
        values[first : first + 3 * rows.shape[0], places] -= rows.reshape(-1, origin.index.size)
        first += 3 * rows.shape[0]
    return Columns(index, values)
