"""Obstacles of the world whose place and direction are parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from add.bodies.base import (
    NO_POINTS,
    POSE_VECTORS,
    Block,
    Body,
    CarriedShape,
    ContactMesh,
    ContactPoints,
    Layouts,
    Part,
    Picture,
)
from add.bodies.rigid import frame_state
from add.bodies.shape_meshes import carried_mesh
from add.equations.initial import PinMotion, Pose, RigidPose
from add.equations.kinematics import Kinematics
from add.equations.signals import Ramp
from add.equations.term import Term
from add.kernels.rotation import rotation_matrix
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class ObstacleBody(Body):
    """An obstacle with a frame of its own, whose pose and steady velocity stand in theta.

        x(t) = position + t velocity,    w(t) = orientation

    It has the six coordinates of a rigid body, all prescribed, so that contact needs no other laws or derivatives than
    those of shapes that bodies carry: a change of its pose is one of prescribed coordinates.

    Attributes
    ----------
    name : str
    shape : CarriedShape
        In the frame.
    by_mesh : bool
        Whether it may meet others by its mesh.
    """

    order: ClassVar[int] = 2
    has_frame: ClassVar[bool] = True

    name: str
    shape: CarriedShape
    by_mesh: bool = False

    @property
    def moves(self) -> bool:
        """No force moves it."""
        return False

    @property
    def shapes(self) -> tuple[CarriedShape, ...]:
        """The obstacle."""
        return (self.shape,)

    @property
    def rest(self) -> FloatArray:
        """No points: an obstacle may be without end."""
        return np.zeros((0, 3))

    def _index(self, key: str, at: Layouts) -> IntArray:
        return at.parameters[f"obstacles.{self.name}.{key}"].indices

    def parameters(self) -> list[Block]:
        """Return the pose, and the velocity as the row of a signal; velocities of the start are not read."""
        vectors = [(f"obstacles.{self.name}.start.{key}", (3,), unit) for key, unit in POSE_VECTORS]
        return [*vectors, (f"obstacles.{self.name}.motion", (1, 3), "m/s")]

    def rows(self) -> tuple[int, int]:
        """Return the shape of origin and rotation vector."""
        return 2, 3

    def pose(self, at: Layouts) -> Pose:
        """Return the frame at t = 0."""
        vectors = [self._index(f"start.{key}", at) for key, _ in POSE_VECTORS]
        return RigidPose(at.dofs[self.name].start, None, *vectors)

    def prescribed(self, at: Layouts) -> tuple[list[IntArray], list[PinMotion]]:
        """Return all coordinates, and the steady motion of the origin."""
        dofs = at.dofs[self.name].indices
        return [dofs.ravel()], [PinMotion(dofs[0], np.arange(3), Ramp(), self._index("motion", at))]

    def parts(self, at: Layouts) -> list[Part | Term]:
        """Return nothing."""
        return []

    def contact_points(self) -> ContactPoints:
        """Return none: it is met."""
        return NO_POINTS

    def contact_mesh(self) -> ContactMesh | None:
        """Return the mesh of its shape, where it may meet by it."""
        return carried_mesh([self.shape]) if self.by_mesh else None

    def placed(self, theta: FloatArray, at: Layouts) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return rotation (3, 3), position (3,) [m] and velocity (3,) [m/s] of the shape in the world at t = 0."""
        rotation = rotation_matrix(theta[self._index("start.orientation", at)])
        position = theta[self._index("start.position", at)] + rotation @ self.shape.position
        return rotation @ self.shape.rotation, position, theta[self._index("motion", at)][0]

    def picture(self, theta: FloatArray, at: Layouts) -> Picture | None:
        """Return none: it is drawn as the obstacle that it is."""
        return None

    def state(self, kin: Kinematics, masses: FloatArray, theta: FloatArray, at: Layouts) -> dict[str, Any]:
        """Return pose and motion."""
        return frame_state(kin, at.rows[self.name].start)

    def fingerprint(self) -> list[Any]:
        """Return the shape."""
        shape = self.shape
        own = [np.array([shape.kind]), np.array(shape.size), shape.rotation, shape.position]
        return own if shape.mesh is None else [*own, shape.mesh.row]
