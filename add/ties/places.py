"""Rules of places: where a point of one body is in the frame of another, and how far two points are apart.

A body's frame is given by its position p and its rotation vector w at the start; the world's are zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from add.kernels.rotation import left_jacobian, rotation_matrix, skew
from add.ties.base import Rule
from add.typing import FloatArray


@final
@dataclass(frozen=True)
class PlaceOnOther(Rule):
    """(p_a, w_a, X_a, p_b, w_b) -> R_b^T (p_a + R_a X_a - p_b): a place of body a in the frame of body b [m]."""

    def value(self, x: FloatArray) -> FloatArray:
        """Return the places [m]."""
        out = np.empty((x.shape[0], 3))
        for i, row in enumerate(x):
            p_a, w_a, place, p_b, w_b = row.reshape(5, 3)
            out[i] = rotation_matrix(w_b).T @ (p_a + rotation_matrix(w_a) @ place - p_b)
        return out

    def derivative(self, x: FloatArray) -> FloatArray:
        """Return the slopes by all five vectors."""
        out = np.empty((x.shape[0], 3, 15))
        for i, row in enumerate(x):
            p_a, w_a, place, p_b, w_b = row.reshape(5, 3)
            r_a, back = rotation_matrix(w_a), rotation_matrix(w_b).T
            arm = r_a @ place
            out[i, :, 0:3] = back
            out[i, :, 3:6] = -back @ skew(arm) @ left_jacobian(w_a)
            out[i, :, 6:9] = back @ r_a
            out[i, :, 9:12] = -back
            out[i, :, 12:15] = back @ skew(p_a + arm - p_b) @ left_jacobian(w_b)
        return out


@final
@dataclass(frozen=True)
class Distance(Rule):
    """(p_a, w_a, X_a, p_b, w_b, X_b) -> |p_a + R_a X_a - p_b - R_b X_b| [m]; at distance zero the slope is set to 0."""

    def value(self, x: FloatArray) -> FloatArray:
        """Return the distances [m]."""
        return np.array([[np.linalg.norm(self._away(row.reshape(6, 3)))] for row in x])

    @staticmethod
    def _away(row: FloatArray) -> FloatArray:
        p_a, w_a, place_a, p_b, w_b, place_b = row
        return p_a + rotation_matrix(w_a) @ place_a - p_b - rotation_matrix(w_b) @ place_b

    def derivative(self, x: FloatArray) -> FloatArray:
        """Return the slopes by all six vectors."""
        out = np.zeros((x.shape[0], 1, 18))
        for i, row in enumerate(x.reshape(-1, 6, 3)):
            away = self._away(row)
            length = np.linalg.norm(away)
            if length > 0.0:
                along = away / length
                for first, sign in ((0, 1.0), (3, -1.0)):
                    _, w, place = row[first : first + 3]
                    rotation = rotation_matrix(w)
                    by_w = -along @ skew(rotation @ place) @ left_jacobian(w)
                    out[i, 0, 3 * first : 3 * first + 9] = sign * np.concatenate([along, by_w, along @ rotation])
        return out
