"""Rules of directions, which live on the unit sphere: two numbers turn one away from its value in the scene.

Rules of places: where a point of one body is in the frame of another, and how far two points are apart.

A body's frame is given by its position p and its rotation vector w at the start; the world's are zero.
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from add.kernels.rotation import left_jacobian, rotation_matrix, rotation_vector_of, skew
from add.kernels.tree_map import link_parameters, place_links
from add.kernels.trees import Tree
from add.ties.rules import Rule
from add.typing import FloatArray, IntArray

#: Distance of two places that is rounding, over the largest of their coordinates.
_ROUNDING = 1e-13


def unit_vector(vector: FloatArray) -> FloatArray:
    """Return v / |v| (3,); no length overflows or vanishes on the way."""
    v = np.asarray(vector, dtype=float)
    # The square of a large entry would be infinite, that of a small one zero.
    v = v / np.abs(v).max()
    return v / np.linalg.norm(v)


def axes_across(direction: FloatArray) -> FloatArray:
    """Return (2, 3) unit vectors e1, e2 that make a right-handed frame (e1, e2, d) with a unit vector d (3,).

    e1 is the part of the x axis across d, or of the y axis where d is within 26 degrees of x; for d = z these are x, y.
    """
    e1, e2 = AxesAcross().value(np.asarray(direction, dtype=float)[None])[0].reshape(2, 3)
    return np.stack([e1, e2])


def tilt_between(start: FloatArray, direction: FloatArray) -> FloatArray:
    """Return the tilt t (2,) [rad] that turns the unit vector ``start`` into ``direction``; see `TiltedDirection`."""
    axes = axes_across(start)
    axis = np.cross(start, direction)
    sine, cosine = np.linalg.norm(axis), float(np.dot(start, direction))
    if sine < 1e-15:
        return np.array([0.0 if cosine > 0.0 else np.pi, 0.0])
    return np.arctan2(sine, cosine) / sine * (axes @ axis)


@final
@dataclass(frozen=True)
class TiltedDirection(Rule):
    """(t, d, e1, e2) -> exp([t1 e1 + t2 e2]x) d: a unit vector, turned about two axes across it.

    Every direction but -d has one tilt |t| < pi; the two numbers are independent, so that no length has to be fixed.
    """

    def value(self, x: FloatArray) -> FloatArray:
        """Return the directions [-]."""
        return np.array([rotation_matrix(row[0] * row[5:8] + row[1] * row[8:11]) @ row[2:5] for row in x])

    def derivative(self, x: FloatArray) -> FloatArray:
        """Return the slopes by t, d, e1 and e2: d(R d) = -[R d]x J_l dw + R dd."""
        out = np.empty((x.shape[0], 3, 11))
        for i, row in enumerate(x):
            e1, e2 = row[5:8], row[8:11]
            w = row[0] * e1 + row[1] * e2
            rotation = rotation_matrix(w)
            by_w = -skew(rotation @ row[2:5]) @ left_jacobian(w)
            out[i, :, 0], out[i, :, 1] = by_w @ e1, by_w @ e2
            out[i, :, 2:5] = rotation
            out[i, :, 5:8], out[i, :, 8:11] = row[0] * by_w, row[1] * by_w
        return out


@final
@dataclass(frozen=True)
class TiltVector(Rule):
    """(t, e1, e2) -> t1 e1 + t2 e2: the rotation vector of the tilt of `TiltedDirection` [rad]."""

    def value(self, x: FloatArray) -> FloatArray:
        """Return the rotation vectors [rad]."""
        return np.asarray(x[:, :1] * x[:, 2:5] + x[:, 1:2] * x[:, 5:8])

    def derivative(self, x: FloatArray) -> FloatArray:
        """Return the slopes by t, e1 and e2."""
        out = np.zeros((x.shape[0], 3, 8))
        out[:, :, 0], out[:, :, 1] = x[:, 2:5], x[:, 5:8]
        for k in range(2):
            out[:, :, 2 + 3 * k : 5 + 3 * k] = x[:, k, None, None] * np.eye(3)
        return out


@final
@dataclass(frozen=True)
class CarriedDirection(Rule):
    """(w_a, e, w_b) -> R_b^T R_a e: a direction of body a in the frame of body b, for rotation vectors w."""

    def value(self, x: FloatArray) -> FloatArray:
        """Return the directions [-]."""
        return np.array([rotation_matrix(row[6:9]).T @ rotation_matrix(row[0:3]) @ row[3:6] for row in x])

    def derivative(self, x: FloatArray) -> FloatArray:
        """Return the slopes by w_a, e and w_b."""
        out = np.empty((x.shape[0], 3, 9))
        for i, row in enumerate(x):
            w_a, e, w_b = row.reshape(3, 3)
            r_a, back = rotation_matrix(w_a), rotation_matrix(w_b).T
            turning = back @ skew(r_a @ e)
            out[i, :, 0:3] = -turning @ left_jacobian(w_a)
            out[i, :, 3:6] = back @ r_a
            out[i, :, 6:9] = turning @ left_jacobian(w_b)
        return out


@final
@dataclass(frozen=True)
class AxesAcross(Rule):
    """d -> (e1, e2): axes across a unit vector, e1 = (h - (h . d) d) / |...|, e2 = d x e1, h the x or y axis."""

    def value(self, x: FloatArray) -> FloatArray:
        """Return the axes, (m, 6)."""
        h = self._helper(x)
        e1 = h - (h * x).sum(axis=1, keepdims=True) * x
        e1 /= np.linalg.norm(e1, axis=1, keepdims=True)
        return np.concatenate([e1, np.cross(x, e1)], axis=1)

    @staticmethod
    def _helper(x: FloatArray) -> FloatArray:
        return np.where(np.abs(x[:, :1]) < 0.9, np.eye(3)[0], np.eye(3)[1])

    def derivative(self, x: FloatArray) -> FloatArray:
        """Return the slopes by d, on the branch of h."""
        out = np.empty((x.shape[0], 6, 3))
        for i, (d, h) in enumerate(zip(x, self._helper(x), strict=True)):
            u = h - (h @ d) * d
            e1 = u / np.linalg.norm(u)
            by_u = -(np.outer(d, h) + (h @ d) * np.eye(3))
            out[i, :3] = (np.eye(3) - np.outer(e1, e1)) @ by_u / np.linalg.norm(u)
            out[i, 3:] = -skew(e1) + skew(d) @ out[i, :3]
        return out


# --- Rules of places: where a point of one body is in the frame of another, and how far two points are apart ----------


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
    """(p_a, w_a, X_a, p_b, w_b, X_b) -> |p_a + R_a X_a - p_b - R_b X_b| [m]; at distance zero the slope is set to 0.

    What is rounding of the places is zero: a spring that was 1e-17 m long would have one direction, and no stiffness
    across it.
    """

    def value(self, x: FloatArray) -> FloatArray:
        """Return the distances [m]."""
        return np.array([[np.linalg.norm(self._away(row.reshape(6, 3)))] for row in x])

    @staticmethod
    def _away(row: FloatArray) -> FloatArray:
        p_a, w_a, place_a, p_b, w_b, place_b = row
        arms = rotation_matrix(w_a) @ place_a, rotation_matrix(w_b) @ place_b
        away = p_a + arms[0] - p_b - arms[1]
        rounding = _ROUNDING * max(float(np.abs(part).max()) for part in (p_a, p_b, *arms))
        return away if np.abs(away).max() > rounding else np.zeros(3)

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
