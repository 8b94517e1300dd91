"""Placement of a recording in the scene, as numbers that a fit may find: a rotation, a translation, a scale."""

from dataclasses import dataclass, field
from typing import final

import numpy as np

from add.equations.kinematics import Columns
from add.kernels.rotation import left_jacobian, rotation_matrix, skew
from add.typing import FloatArray, IntArray


def _all() -> FloatArray:
    return np.ones(1)


@final
@dataclass(frozen=True)
class Placement:
    """y' = c + t + s R(w) (y - c): recorded points y in the scene, by seven entries of theta.

    R(w) = exp([w]x). Directions turn alone, and displacements turn and scale alone: for them t and c, or s too, are
    left out. The scale belongs to the recording, so that noise pulls a fitted one down by the share (noise / extent of
    the points)^2: 1e-4 for 1 mm on 100 mm.

    Attributes
    ----------
    turn : (3,) indices of w in theta [rad]
    move : (3,) indices of t in theta [m]
    scale : index of s in theta [-]
    about : (3,) c, the point that rotation and scale leave where it is [m]
    moves : (n_points,) or (1,), 1 for places, 0 for directions and displacements
    scales : (n_points,) or (1,), 1 for places and displacements, 0 for directions
    """

    turn: IntArray
    move: IntArray
    scale: int
    about: FloatArray
    moves: FloatArray = field(default_factory=_all)
    scales: FloatArray = field(default_factory=_all)

    @property
    def entries(self) -> IntArray:
        """Indices (7,) of w, t and s in theta."""
        return np.array([*self.turn, *self.move, self.scale])

    def _arms(self, y: FloatArray, theta: FloatArray) -> FloatArray:
        """Return R (y - c)."""
        arms = y - self.moves[:, None] * self.about
        return np.asarray(arms @ rotation_matrix(theta[self.turn]).T)

    def _factors(self, theta: FloatArray) -> FloatArray:
        return np.asarray((1.0 + self.scales * (theta[self.scale] - 1.0))[:, None])

    def places(self, y: FloatArray, theta: FloatArray) -> FloatArray:
        """Return y' of points (..., n_points, 3) [m]."""
        shift = self.moves[:, None] * (self.about + theta[self.move])
        return np.asarray(shift + self._factors(theta) * self._arms(y, theta))

    def recorded(self, places: FloatArray, theta: FloatArray) -> FloatArray:
        """Return the y (..., n_points, 3) whose y' are these places [m]."""
        arms = (places - self.moves[:, None] * (self.about + theta[self.move])) / self._factors(theta)
        return np.asarray(arms @ rotation_matrix(theta[self.turn]) + self.moves[:, None] * self.about)

    def jacobian(self, y: FloatArray, theta: FloatArray) -> FloatArray:
        """Return d y' / d `entries` (..., n_points, 3, 7): d(R a) = (J_l(w) dw) x R a, J_l the left Jacobian."""
        arms = self._arms(y, theta)
        out = np.zeros((*arms.shape, 7))
        spins = left_jacobian(theta[self.turn])
        # e_k x a for every axis k, as columns.
        across = np.stack([np.asarray(arms @ skew(axis).T) for axis in np.eye(3)], axis=-1)
        out[..., :3] = self._factors(theta)[..., None] * (across @ spins)
        out[..., 3:6] = self.moves[:, None, None] * np.eye(3)
        out[..., 6] = self.scales[:, None] * arms
        return out

    def pull(self, y: FloatArray, bar: FloatArray, theta: FloatArray, theta_bar: FloatArray) -> None:
        """Add the pull-back of the cotangent ``bar`` of y'."""
        theta_bar[self.entries] += bar.ravel() @ self.jacobian(y, theta).reshape(-1, 7)


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
