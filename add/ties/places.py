"""Rules of places: where a point of one body is in the frame of another, and how far two points are apart.

A body's frame is given by its position p and its rotation vector w at the start; the world's are zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from add.kernels.rotation import left_jacobian, rotation_matrix, skew
from add.kernels.tree_map import link_parameters, place_links, rotation_vector_of
from add.kernels.trees import Tree
from add.ties.base import Rule
from add.typing import FloatArray, IntArray


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


@final
@dataclass(frozen=True)
class PoseOnOther(Rule):
    """(p_a, w_a, p_b, w_b, c) -> R_b^T (p_a - p_b) - c and log(R_b^T R_a): body a's frame, from c in that of body b."""

    def value(self, x: FloatArray) -> FloatArray:
        """Return places [m] and rotation vectors [rad]."""
        out = np.empty((x.shape[0], 6))
        for pose, row in zip(out, x, strict=True):
            p_a, w_a, p_b, w_b, origin = row.reshape(5, 3)
            back = rotation_matrix(w_b).T
            pose[:3] = back @ (p_a - p_b) - origin
            rotation_vector_of(back @ rotation_matrix(w_a), pose[3:])
        return out

    def derivative(self, x: FloatArray) -> FloatArray:
        """Return the slopes by all five vectors."""
        out = np.zeros((x.shape[0], 6, 15))
        for slopes, pose, row in zip(out, self.value(x), x, strict=True):
            p_a, w_a, p_b, w_b, _ = row.reshape(5, 3)
            back, by_a, by_b = rotation_matrix(w_b).T, left_jacobian(w_a), left_jacobian(w_b)
            slopes[:3, 0:3], slopes[:3, 6:9], slopes[:3, 12:15] = back, -back, -np.eye(3)
            slopes[:3, 9:12] = back @ skew(p_a - p_b) @ by_b
            turned = np.linalg.solve(left_jacobian(pose[3:]), back)
            slopes[3:, 3:6], slopes[3:, 9:12] = turned @ by_a, -turned @ by_b
        return out


@final
@dataclass(frozen=True, eq=False)
class LinkPose(Rule):
    """Placements and coordinates of a tree -> origin [m] and rotation vector [rad] of the frame of one link.

    Attributes
    ----------
    tree : Tree
        Its placements are indices into the rule's arguments.
    link : int
        Element of the link.
    coordinates : (n,)
        Places of the tree's coordinates among the arguments.
    """

    tree: Tree
    link: int
    coordinates: IntArray

    def value(self, x: FloatArray) -> FloatArray:
        """Return the poses."""
        out = np.empty((x.shape[0], 6))
        links, columns = np.array([self.link]), np.empty((6, self.coordinates.size))
        for row, pose in zip(x, out, strict=True):
            place_links(self.tree, row, links, row[self.coordinates], pose, columns)
        return out

    def derivative(self, x: FloatArray) -> FloatArray:
        """Return the slopes by all arguments."""
        out = np.zeros((x.shape[0], 6, x.shape[1]))
        links, n = np.array([self.link]), self.coordinates.size
        there = self.tree.placement >= 0
        by_place, by_rate = (np.empty((6, *self.tree.placement.shape)) for _ in range(2))
        for row, slopes in zip(x, out, strict=True):
            q, columns = row[self.coordinates], np.empty((6, n))
            place_links(self.tree, row, links, q, np.empty(6), columns)
            link_parameters(self.tree, row, links, q, np.zeros(n), by_place, by_rate)
            slopes[:, self.coordinates] = columns
            slopes[:, self.tree.placement[there]] = by_place[:, there]
        return out
